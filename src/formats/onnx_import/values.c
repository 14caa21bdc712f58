/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of the graph by name, and what a node has: inputs, outputs, attributes.  Room: formats. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "formats/onnx_import/import.h"
#include "formats/protobuf/reader.h"

/* ---- Failures ---- */

void leati_import_failed(leati_import *x, leat_status status, const leat_error *err) {
    if (status == LEAT_OK || !leati_import_ok(x)) return;
    x->failure = *err;
    x->failure.code = status;
    if (x->node)
        leati_prefix(status, &x->failure, "node '%.64s' (%.32s, opset %lld)", x->node->name, x->node->op,
                     (long long)x->file->opset);
}

void leati_import_refuse(leati_import *x, const char *format, ...) {
    leat_error err = {0};
    char text[sizeof err.message];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    leati_import_failed(x, leati_fail(&err, LEAT_ENOTSUP, "%s", text), &err);
}

void *leati_import_memory(leati_import *x, int64_t count, size_t size) {
    leat_error err = {0};
    if (!leati_import_ok(x)) return NULL;
    void *memory = count >= 0 ? leati_arena_get(x->file->arena, (size_t)count + 1, size) : NULL;
    if (!memory) leati_import_failed(x, leati_fail_memory(&err, (size_t)count * size, "a constant"), &err);
    return memory;
}

/* ---- The table of names ---- */

static uint32_t hash_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; ++name) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash ^ hash >> 15;
}

/* Returns the slot of a name, which is free if the table does not have the name. */
static int32_t *slot_of(leati_import *x, const char *name) {
    uint32_t at = hash_of(name) & x->slot_mask;
    while (x->slots[at] >= 0 && strcmp(x->values[x->slots[at]].name, name) != 0) at = (at + 1) & x->slot_mask;
    return &x->slots[at];
}

/* Returns the value of a name, which is new at first. */
static leati_import_value *add(leati_import *x, const char *name) {
    int32_t *slot = slot_of(x, name);
    if (*slot < 0) {
        *slot = x->value_count++;
        x->values[*slot] = (leati_import_value){.name = name, .maker = -1};
    }
    return &x->values[*slot];
}

leati_import_value *leati_import_find(leati_import *x, const char *name) {
    const int32_t *slot = name[0] ? slot_of(x, name) : NULL;
    if (slot && *slot >= 0) return &x->values[*slot];
    return slot && x->outer ? leati_import_find(x->outer, name) : NULL;
}

/* Counts the names that the nodes of a graph inside an attribute read. */
static void count_inner(leati_import *x, const leati_import_attr *attr) {
    enum { GRAPH_NODE = 1, NODE_INPUT = 1, NAME_BYTES = 512 };
    leati_proto graph = leati_proto_of(attr->graph, attr->graph_bytes);
    leati_proto_field node, input;
    char name[NAME_BYTES];
    while (attr->graph && leati_proto_next(&graph, &node)) {
        leati_proto fields = leati_proto_of(node.data, node.bytes);
        if (node.number != GRAPH_NODE || node.wire != LEATI_WIRE_BYTES) continue;
        while (leati_proto_next(&fields, &input)) {
            if (input.number != NODE_INPUT || input.wire != LEATI_WIRE_BYTES || input.bytes >= NAME_BYTES)
                continue;
            if (input.bytes > 0) memcpy(name, input.data, input.bytes);
            name[input.bytes] = '\0';
            leati_import_value *value = leati_import_find(x, name);
            if (value) ++value->readers;
        }
    }
}

static bool reserve(leati_import *x) {
    const leati_import_file *file = x->file;
    int64_t count = (int64_t)file->tensor_count + file->input_count;
    for (int32_t i = 0; i < file->node_count; ++i) count += file->nodes[i].output_count;
    uint32_t slots = 64;
    while (slots < 2 * count && slots < UINT32_C(1) << 30) slots *= 2;
    x->slots = leati_import_memory(x, slots, sizeof *x->slots);
    x->values = leati_import_memory(x, count, sizeof *x->values);
    if (!x->slots || !x->values) return false;
    for (uint32_t i = 0; i < slots; ++i) x->slots[i] = -1;
    x->slot_mask = slots - 1;
    return true;
}

void leati_import_values_make(leati_import *x) {
    const leati_import_file *file = x->file;
    if (!reserve(x)) return;
    for (int32_t i = 0; i < file->tensor_count; ++i) {
        leati_import_value *value = add(x, file->tensors[i].name);
        value->constant = &file->tensors[i];
        value->type = file->tensors[i].type;
        value->made = true;
    }
    for (int32_t i = 0; i < file->input_count; ++i) {
        leati_import_value *value = add(x, file->inputs[i].name);
        if (!value->constant) value->type = file->inputs[i].type;
    }
    for (int32_t i = 0; i < file->node_count; ++i)
        for (int32_t k = 0; k < file->nodes[i].output_count; ++k)
            if (file->nodes[i].outputs[k][0]) add(x, file->nodes[i].outputs[k])->maker = i;
    for (int32_t i = 0; i < file->node_count; ++i)
        for (int32_t k = 0; k < file->nodes[i].input_count; ++k) {
            leati_import_value *value = leati_import_find(x, file->nodes[i].inputs[k]);
            if (value) ++value->readers;
        }
    for (int32_t i = 0; i < file->node_count; ++i)
        for (int32_t k = 0; k < file->nodes[i].attr_count; ++k) count_inner(x, &file->nodes[i].attrs[k]);
    for (int32_t i = 0; i < file->output_count; ++i) {
        leati_import_value *value = leati_import_find(x, file->outputs[i].name);
        if (value) ++value->readers;
    }
}

/* ---- Inputs and outputs of the node ---- */

leati_import_value *leati_import_in(leati_import *x, int index) {
    if (index >= x->node->input_count || !x->node->inputs[index][0]) return NULL;
    leati_import_value *value = leati_import_find(x, x->node->inputs[index]);
    if (value && value->made) return value;
    leati_import_refuse(x, "its input '%.64s' is not made by an earlier node", x->node->inputs[index]);
    return NULL;
}

leati_import_value *leati_import_need(leati_import *x, int index) {
    static leati_import_value none; /* without views: used only after a failure */
    leati_import_value *value = leati_import_in(x, index);
    if (value) return value;
    leati_import_refuse(x, "expected an input %d", index);
    return &none;
}

const leati_import_tensor *leati_import_constant_in(leati_import *x, int index, const char *what) {
    const leati_import_value *value = leati_import_in(x, index);
    if (value && !value->constant)
        leati_import_refuse(
            x, "expected the %s, input %d, as a constant of the file, received a computed tensor", what,
            index);
    return value && leati_import_ok(x) ? value->constant : NULL;
}

static leati_import_value *output_of(leati_import *x, int index) {
    if (!leati_import_ok(x) || index >= x->node->output_count) return NULL;
    return leati_import_find(x, x->node->outputs[index]);
}

bool leati_import_is_read(leati_import *x, int index) {
    const leati_import_value *value = output_of(x, index);
    return value && value->readers > 0;
}

leati_import_value *leati_import_set(leati_import *x, int index, const leati_view *view) {
    leati_import_value *out = output_of(x, index);
    if (!out) return NULL;
    const leati_import_value *first = leati_import_in(x, 0);
    out->type = first && !first->constant ? first->type : LEATI_IMPORT_FLOAT;
    out->views[0] = *view;
    out->view_count = 1;
    out->made = true;
    return out;
}

/* Returns a constant without its sizes if all of them are known. */
static const leati_import_tensor *without_sizes(leati_import *x, const leati_import_tensor *tensor) {
    for (int64_t i = 0; tensor->sizes && i < tensor->count; ++i)
        if (tensor->sizes[i] != LEATI_SIZE_KNOWN) return tensor;
    if (!tensor->sizes) return tensor;
    leati_import_tensor *out = leati_import_memory(x, 1, sizeof *out);
    if (!out) return tensor;
    *out = *tensor;
    out->sizes = NULL;
    return out;
}

leati_import_value *leati_import_set_constant(leati_import *x, int index, const leati_import_tensor *tensor) {
    leati_import_value *out = output_of(x, index);
    if (!out || !tensor) return NULL;
    out->constant = without_sizes(x, tensor);
    out->type = tensor->type;
    out->made = true;
    return out;
}

void leati_import_alias(leati_import *x, int index, const leati_import_value *value) {
    leati_import_value *out = output_of(x, index);
    if (!out) return;
    const leati_import_value old = *out;
    *out = *value;
    out->name = old.name, out->readers = old.readers, out->maker = old.maker;
    out->made = true;
}

/* ---- Attributes ---- */

int64_t leati_import_int(leati_import *x, const char *name, int64_t preset) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, name);
    return attr ? attr->number : preset;
}

float leati_import_real(leati_import *x, const char *name, float preset) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, name);
    return attr ? attr->real : preset;
}

const char *leati_import_string(leati_import *x, const char *name, const char *preset) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, name);
    return attr ? attr->text : preset;
}

int leati_import_ints(leati_import *x, const char *name, int index, int most, int64_t *out) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, name);
    const leati_import_tensor *tensor = !attr && index >= 0 ? leati_import_constant_in(x, index, name) : NULL;
    const int64_t count = attr ? attr->int_count : tensor ? tensor->count : 0;
    if (!attr && !tensor) return -1;
    if (count > most || (tensor && tensor->rank > 1)) {
        leati_import_refuse(x, "%s: expected at most %d integers, received %lld", name, most,
                            (long long)count);
        return -1;
    }
    for (int64_t i = 0; i < count; ++i) out[i] = attr ? attr->ints[i] : leati_import_integer(tensor, i);
    if (tensor && tensor->sizes)
        for (int64_t i = 0; i < count; ++i)
            if (tensor->sizes[i] != LEATI_SIZE_KNOWN)
                leati_import_refuse(
                    x,
                    "%s: a number depends on a size that is open in the model; export the model with "
                    "fixed sizes, except for the batch",
                    name);
    return (int)count;
}

int leati_import_axis(leati_import *x, int64_t axis, int rank) {
    const int64_t from = axis < 0 ? axis + rank : axis;
    if (from >= 0 && from < rank) return (int)from;
    leati_import_refuse(x, "a tensor of %d axes has no axis %lld", rank, (long long)axis);
    return 0;
}
