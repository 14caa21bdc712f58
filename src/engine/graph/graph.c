/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the graph: values, nodes and the first failure.  Room: engine. */
#include "engine/graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/graph_private.h"
#include "engine/op_semantics/infer.h"

static void *own(leati_owned *owned, void *item) {
    if (!item) return NULL;
    if (owned->count == owned->capacity) {
        int32_t capacity = owned->capacity ? 2 * owned->capacity : 16;
        void **grown = leati_realloc(owned->items, (size_t)capacity, sizeof *grown);
        if (!grown) {
            leati_free(item);
            return NULL;
        }
        owned->items = grown;
        owned->capacity = capacity;
    }
    return owned->items[owned->count++] = item;
}

static void free_owned(leati_owned *owned) {
    for (int32_t i = 0; i < owned->count; ++i) leati_free(owned->items[i]);
    leati_free(owned->items);
    *owned = (leati_owned){0};
}

leat_status leati_graph_create(leati_graph **out, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, "a graph");
    (*out)->forward = -1;
    return LEAT_OK;
}

void leati_graph_destroy(leati_graph **graph) {
    if (!*graph) return;
    free_owned(&(*graph)->values);
    free_owned(&(*graph)->nodes);
    free_owned(&(*graph)->labels);
    free_owned(&(*graph)->constants);
    leati_free(*graph);
    *graph = NULL;
}

leat_status leati_graph_check(const leati_graph *graph, leat_error *err) {
    if (graph->failure.code != LEAT_OK && err) *err = graph->failure;
    return (leat_status)graph->failure.code;
}

leati_value leati_graph_fail(leati_graph *graph, leat_status code, const char *format, ...) {
    if (graph->failure.code != LEAT_OK) return LEATI_INVALID;
    char text[LEAT_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (graph->label)
        leati_fail(&graph->failure, code, "'%s': %s", graph->label, text);
    else
        leati_fail(&graph->failure, code, "%s", text);
    return LEATI_INVALID;
}

static leati_value fail_memory(leati_graph *graph, const char *what) {
    return leati_graph_fail(graph, LEAT_ENOMEM, "no memory for %s", what);
}

void leati_graph_label(leati_graph *graph, const char *label) {
    if (label && graph->label && strcmp(label, graph->label) == 0) return;
    graph->label = NULL;
    if (!label) return;
    graph->label = own(&graph->labels, leati_strdup(label));
    if (!graph->label) fail_memory(graph, "a label");
}

/* Returns true if the rank, type and dimensions are valid and the size in bytes does not overflow. */
static bool desc_fits(const leati_desc *desc) {
    if (desc->rank < 0 || desc->rank > LEAT_MAX_RANK || leati_dtype_bytes(desc->dtype) == 0) return false;
    int64_t bytes = (int64_t)leati_dtype_bytes(desc->dtype);
    for (int i = 0; i < desc->rank; ++i) {
        if (desc->shape[i] < 0) return false;
        if (desc->shape[i] > 0 && !leati_mul_i64(bytes, desc->shape[i], &bytes)) return false;
    }
    return bytes < INT64_MAX / 4;
}

static leati_value add_value(leati_graph *graph, const leati_desc *desc, leati_storage storage,
                             int32_t producer) {
    if (graph->failure.code != LEAT_OK) return LEATI_INVALID;
    if (!desc_fits(desc)) {
        char text[LEATI_DESC_TEXT_BYTES] = "";
        if (desc->rank <= LEAT_MAX_RANK) leati_desc_text(text, desc);
        return leati_graph_fail(graph, LEAT_ESHAPE,
                                "the shape is invalid or too large for the address space: %s (rank %d)", text,
                                desc->rank);
    }
    leati_value_info *info = own(&graph->values, leati_calloc(1, sizeof *info));
    if (!info) return fail_memory(graph, "a value");
    info->desc = *desc;
    info->storage = storage;
    info->producer = producer;
    return graph->values.count - 1;
}

leati_value leati_graph_input(leati_graph *graph, int input, const leati_desc *desc) {
    leati_value value = add_value(graph, desc, LEATI_IN_INPUT, -1);
    if (value >= 0) leati_graph_value_mutable(graph, value)->where.input = input;
    return value;
}

bool leati_states_overlap(const leati_value_info *a, const leati_value_info *b) {
    if (a->storage != LEATI_IN_SLAB || b->storage != LEATI_IN_SLAB || a->where.slab != b->where.slab)
        return false;
    return a->where.offset_bytes < b->where.offset_bytes + leati_desc_bytes(&b->desc) &&
           b->where.offset_bytes < a->where.offset_bytes + leati_desc_bytes(&a->desc);
}

leati_value leati_graph_state(leati_graph *graph, leati_slab slab, size_t offset_bytes,
                              const leati_desc *desc) {
    for (leati_value value = 0; value < graph->values.count; ++value) {
        const leati_value_info *info = graph->values.items[value];
        if (info->storage == LEATI_IN_SLAB && info->where.slab == slab &&
            info->where.offset_bytes == offset_bytes && info->desc.dtype == desc->dtype &&
            leati_desc_same_shape(&info->desc, desc))
            return value;
    }
    leati_value value = add_value(graph, desc, LEATI_IN_SLAB, -1);
    if (value < 0) return value;
    leati_value_info *info = leati_graph_value_mutable(graph, value);
    info->where.slab = slab;
    info->where.offset_bytes = offset_bytes;
    return value;
}

void *leati_graph_own_constant(leati_graph *graph, size_t bytes) {
    return own(&graph->constants, leati_calloc_aligned(bytes ? bytes : 1));
}

leati_value leati_graph_constant(leati_graph *graph, const leati_desc *desc, const void *data) {
    leati_value value = add_value(graph, desc, LEATI_IN_CONSTANT, -1);
    if (value < 0) return value;
    size_t bytes = leati_desc_bytes(desc);
    void *copy = leati_graph_own_constant(graph, bytes);
    if (!copy) return fail_memory(graph, "a constant");
    if (bytes) memcpy(copy, data, bytes);
    leati_graph_value_mutable(graph, value)->where.constant = copy;
    return value;
}

/* Fills the descriptions of the inputs and checks that each input is allowed.  On failure records it and returns
 * false. */
static bool collect_inputs(leati_graph *graph, const leati_op_descriptor *descriptor, leati_node *node,
                           leati_desc *descs) {
    for (int i = 0; i < node->input_count; ++i) {
        leati_value value = node->inputs[i];
        if (value == LEATI_INVALID || value < LEATI_INVALID || value >= graph->values.count) {
            leati_graph_fail(graph, LEAT_EINTERNAL, "op %s: input %d is not a value of this graph",
                             descriptor->name, i);
            return false;
        }
        bool may_be_absent = i < 32 && (descriptor->optional >> i & 1u);
        if (value == LEATI_NONE && !may_be_absent) {
            leati_graph_fail(graph, LEAT_EINVAL, "op %s: input %d is absent", descriptor->name, i);
            return false;
        }
        descs[i] = value == LEATI_NONE ? (leati_desc){.rank = -1} : *leati_graph_desc(graph, value);
        bool written = i < 32 && (descriptor->writes >> i & 1u);
        if (written && value != LEATI_NONE && leati_graph_value(graph, value)->storage != LEATI_IN_SLAB) {
            leati_graph_fail(graph, LEAT_EINVAL, "op %s: input %d is written, so it must be a state",
                             descriptor->name, i);
            return false;
        }
    }
    return true;
}

static bool fill_inputs(leati_graph *graph, const leati_op_descriptor *descriptor, leati_node *node,
                        int count, const leati_value *inputs) {
    if (count < descriptor->min_inputs || count > descriptor->max_inputs) {
        leati_graph_fail(graph, LEAT_EINVAL, "op %s: expected %d to %d inputs, received %d", descriptor->name,
                         descriptor->min_inputs, descriptor->max_inputs, count);
        return false;
    }
    node->input_count = descriptor->optional ? descriptor->max_inputs : count;
    for (int i = 0; i < node->input_count; ++i) node->inputs[i] = i < count ? inputs[i] : LEATI_NONE;
    return true;
}

/* Adds the output values.  On failure records it and returns false; the caller then drops the node. */
static bool add_outputs(leati_graph *graph, const leati_op_descriptor *descriptor, leati_node *node,
                        const leati_desc *descs) {
    leati_desc made[LEATI_MAX_OUTPUTS] = {{0}};
    leat_error failure = {0};
    leat_status status = descriptor->infer(&node->attrs, node->input_count, descs, made, &failure);
    if (status != LEAT_OK) {
        leati_graph_fail(graph, status, "op %s: %s", descriptor->name, failure.message);
        return false;
    }
    node->output_count = descriptor->outputs;
    for (int i = 0; i < descriptor->outputs; ++i) {
        node->outputs[i] = add_value(graph, &made[i], LEATI_IN_ARENA, graph->nodes.count);
        if (node->outputs[i] < 0) return false;
    }
    return true;
}

/* ---- Values that may be stored as bf16 ---- */

bool leati_graph_store_bf16(leati_graph *graph, bool on) {
    bool before = graph->store_bf16;
    graph->store_bf16 = on;
    return before;
}

void leati_graph_set_exact(leati_graph *graph, leati_value value) {
    if (value >= 0) leati_graph_value_mutable(graph, value)->exact = true;
}

void leati_graph_mark_bf16(leati_graph *graph, leati_value value) {
    for (; value >= 0;
         value = leati_graph_node_at(graph, leati_graph_value(graph, value)->producer)->inputs[0]) {
        leati_value_info *info = leati_graph_value_mutable(graph, value);
        if (info->desc.dtype != LEAT_F32 || info->storage != LEATI_IN_ARENA || info->exact) return;
        info->may_be_bf16 = true;
        if (!(leati_op_descriptor_of(leati_graph_node_at(graph, info->producer)->op)->flags & LEATI_OP_VIEW))
            return;
    }
}

leati_value leati_graph_rounded_to_bf16(leati_graph *graph, leati_value value) {
    if (value < 0) return value;
    const leati_value_info *info = leati_graph_value(graph, value);
    if (info->desc.dtype != LEAT_F32 || info->may_be_bf16 || info->exact) return value;
    leati_attrs attrs = {.cast = {.dtype = LEAT_F32, .scale = 1}};
    leati_value copy = leati_graph_node(graph, LEATI_OP_CAST, &attrs, 1, &value, NULL);
    if (copy >= 0) leati_graph_mark_bf16(graph, copy);
    return copy;
}

/* Returns true if the op only moves elements. */
static bool only_moves_elements(leati_op op) {
    switch (op) {
    case LEATI_OP_RESHAPE:
    case LEATI_OP_TRANSPOSE:
    case LEATI_OP_SLICE:
    case LEATI_OP_CONCAT:
    case LEATI_OP_PAD:
    case LEATI_OP_REVERSE:
    case LEATI_OP_BROADCAST: return true;
    default: return false;
    }
}

/* Returns how many of the first outputs may be bf16.  Statistics and workspaces stay f32. */
static int bf16_outputs(const leati_node *node) {
    switch (node->op) {
    case LEATI_OP_BATCH_NORM:
    case LEATI_OP_GROUP_NORM:
    case LEATI_OP_ATTENTION: return 1;
    case LEATI_OP_RNN: return 3;
    default: return node->output_count;
    }
}

static void mark_outputs(leati_graph *graph, const leati_node *node) {
    bool all = only_moves_elements(node->op), any = false;
    for (int i = 0; i < node->input_count; ++i) {
        if (node->inputs[i] < 0) continue;
        all = all && leati_graph_value(graph, node->inputs[i])->exact;
        any = any || leati_graph_value(graph, node->inputs[i])->may_be_bf16;
    }
    if (all) {
        leati_graph_set_exact(graph, node->outputs[0]);
        return;
    }
    bool view = leati_op_descriptor_of(node->op)->flags & LEATI_OP_VIEW;
    for (int i = 0; (view ? any : graph->store_bf16) && i < bf16_outputs(node); ++i)
        leati_graph_mark_bf16(graph, node->outputs[i]);
}

leati_value leati_graph_node(leati_graph *graph, leati_op op, const leati_attrs *attrs, int input_count,
                             const leati_value *inputs, leati_value *outputs) {
    const leati_op_descriptor *descriptor = leati_op_descriptor_of(op);
    for (int i = 0; outputs && i < descriptor->outputs; ++i) outputs[i] = LEATI_INVALID;
    if (graph->failure.code != LEAT_OK) return LEATI_INVALID;
    if (!descriptor->infer)
        return leati_graph_fail(graph, LEAT_ENOTSUP, "op %s has no shape rule", descriptor->name);

    leati_node *node = leati_calloc(1, sizeof *node);
    if (!node) return fail_memory(graph, "a node");
    node->op = op;
    if (attrs) node->attrs = *attrs;
    node->forward = graph->forward;
    node->label = graph->label;
    leati_desc descs[LEATI_MAX_INPUTS];
    if (!fill_inputs(graph, descriptor, node, input_count, inputs) ||
        !collect_inputs(graph, descriptor, node, descs) || !add_outputs(graph, descriptor, node, descs)) {
        leati_free(node);
        return LEATI_INVALID;
    }
    if (!own(&graph->nodes, node)) return fail_memory(graph, "a node");
    mark_outputs(graph, node);
    for (int i = 0; outputs && i < descriptor->outputs; ++i) outputs[i] = node->outputs[i];
    return descriptor->outputs ? node->outputs[0] : LEATI_NONE;
}

void leati_graph_store(leati_graph *graph, leati_value state, leati_value value) {
    leati_graph_node(graph, LEATI_OP_STORE, NULL, 2, (leati_value[]){value, state}, NULL);
}

void leati_graph_keep(leati_graph *graph, leati_value value) {
    if (value >= 0 && value < graph->values.count) leati_graph_value_mutable(graph, value)->output = true;
}

const leati_desc *leati_graph_desc(const leati_graph *graph, leati_value value) {
    static const leati_desc scalar = {.dtype = LEAT_F32, .rank = 0};
    return value >= 0 && value < graph->values.count ? &leati_graph_value(graph, value)->desc : &scalar;
}

const leati_value_info *leati_graph_value(const leati_graph *graph, leati_value value) {
    return graph->values.items[value];
}

leati_value_info *leati_graph_value_mutable(leati_graph *graph, leati_value value) {
    return graph->values.items[value];
}

int32_t leati_graph_value_count(const leati_graph *graph) {
    return graph->values.count;
}

const leati_node *leati_graph_node_at(const leati_graph *graph, int32_t node) {
    return graph->nodes.items[node];
}

leati_node *leati_graph_node_mutable(leati_graph *graph, int32_t node) {
    return graph->nodes.items[node];
}

int32_t leati_graph_node_count(const leati_graph *graph) {
    return graph->nodes.count;
}
