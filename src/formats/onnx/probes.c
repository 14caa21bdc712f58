/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers a model with two sizes of each open axis, and finds the nodes that count.  Room: formats. */
#include "formats/onnx/probes.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* ---- Sizes ---- */

/* How the sizes of open axes are chosen.  A model may need axes of the same size in two inputs, or sizes that can be
 * halved several times, so each way is tried until the lowering succeeds.  Odd sizes come first, because they show
 * which windows have padding="same". */
typedef enum choice {
    CHOICE_ODD,
    CHOICE_ODD_BY_AXIS, /* the same size for the same axis of all inputs */
    CHOICE_EVEN,
    CHOICE_EVEN_BY_AXIS,
    CHOICE_EVEN_EQUAL, /* the same size for all axes */
    CHOICE_COUNT
} choice;

/* Returns the size of open axis `axis`, the `number`-th one of the model.  The sizes are large, so that a limit in a
 * layer (a window of attention) shows in its constants. */
static leati_onnx_size chosen_size(choice how, int number, int axis) {
    static const bool odd[CHOICE_COUNT] = {true, true};
    static const bool by_axis[CHOICE_COUNT] = {false, true, false, true};
    const int64_t k = how == CHOICE_EVEN_EQUAL ? 0 : by_axis[how] ? axis : number;
    const int64_t sizes[] = {64 * (16 + k), 64 * (20 + k)};
    return (leati_onnx_size){{sizes[0] - odd[how], sizes[1] + odd[how]}};
}

static void name_size(leati_onnx *x, const char *input, int axis, leati_onnx_size size) {
    char name[LEAT_NAME_BYTES + 8];
    snprintf(name, sizeof name, "%s_%d", input, axis);
    for (int i = 0; i < x->open_count; ++i)
        if (x->open[i].at[0] == size.at[0] && x->open[i].at[1] == size.at[1]) return;
    x->open[x->open_count].at[0] = size.at[0], x->open[x->open_count].at[1] = size.at[1];
    x->open[x->open_count++].name = leati_onnx_name(x, false, axis == 0 ? "batch" : name);
}

const char *leati_onnx_open_name(const leati_onnx *x, leati_onnx_size size) {
    for (int i = 0; i < x->open_count; ++i)
        if (x->open[i].at[0] == size.at[0] && x->open[i].at[1] == size.at[1]) return x->open[i].name;
    return NULL;
}

/* Fills the shapes of the inputs of both graphs.  Returns the number of open axes, apart from the batch. */
static int fill_specs(leati_onnx *x, choice how, leati_program_spec specs[2]) {
    const leat_model *model = x->model;
    int number = 0;
    x->open_count = 0;
    for (int i = 0; i < 2; ++i) specs[i].mode = LEATI_PREDICT, specs[i].input_count = model->input_count;
    for (int i = 0; i < model->input_count && i < LEATI_NETWORK_MAX_OUTPUTS; ++i) {
        const leati_shape shape = leati_model_input_shape(model, i);
        const leat_dtype dtype = model->members[model->inputs[i].layer].layer->dtype;
        leati_desc desc =
            leati_desc_make(leati_onnx_type_of(dtype) ? dtype : LEAT_F32, shape.rank, shape.dims);
        specs[0].inputs[i] = specs[1].inputs[i] = desc;
        for (int axis = 0; axis < shape.rank; ++axis) {
            if (shape.dims[axis] >= 0) continue;
            const leati_onnx_size size =
                axis == 0 ? (leati_onnx_size){{7, 11}} : chosen_size(how, number, axis);
            number += axis > 0;
            for (int p = 0; p < 2; ++p) specs[p].inputs[i].shape[axis] = size.at[p];
            name_size(x, leati_model_input_name(model, i), axis, size);
        }
    }
    return number;
}

static void destroy(leati_onnx *x) {
    for (int i = 0; i < 2; ++i) leati_graph_destroy(&x->probes[i].graph);
}

/* Lowers both graphs.  *open: the number of open axes, apart from the batch. */
static leat_status build(leati_onnx *x, choice how, int *open, leat_error *err) {
    leati_program_spec *specs = leati_calloc(2, sizeof *specs);
    if (!specs) return leati_fail_memory(err, 2 * sizeof *specs, "an ONNX graph");
    destroy(x);
    *open = fill_specs(x, how, specs);
    leat_status status = leati_program_build(x->model, &specs[0], &x->probes[0], err);
    if (status == LEAT_OK) status = leati_program_build(x->model, &specs[1], &x->probes[1], err);
    leati_free(specs);
    return status;
}

/* ---- Comparison ---- */

static leat_status fail_different(const leati_node *node, leat_error *err) {
    return leati_fail(
        err, LEAT_ENOTSUP,
        "layer '%s': an open size of an input decides how many operations this layer needs, which ONNX "
        "cannot represent; give the inputs of the model fixed sizes, apart from the batch",
        node->label ? node->label : "?");
}

/* True if a number that an emitter copies from the first graph is the same in the second one. */
static bool has_same_numbers(const leati_node *a, const leati_node *b) {
    const leati_eltwise *f = &a->attrs.eltwise, *g = &b->attrs.eltwise;
    if (a->op == LEATI_OP_ELTWISE) return f->a == g->a && f->b == g->b && f->c == g->c;
    return a->op != LEATI_OP_CAST || a->attrs.cast.scale == b->attrs.cast.scale;
}

static bool has_same_inputs(const leati_node *a, const leati_node *b) {
    if (a->op != b->op || a->input_count != b->input_count || a->output_count != b->output_count)
        return false;
    return memcmp(a->inputs, b->inputs, (size_t)a->input_count * sizeof *a->inputs) == 0 &&
           memcmp(a->outputs, b->outputs, (size_t)a->output_count * sizeof *a->outputs) == 0;
}

static leat_status compare(leati_onnx *x, leat_error *err) {
    const leati_graph *a = x->probes[0].graph, *b = x->probes[1].graph;
    const int32_t left = leati_graph_node_count(a), right = leati_graph_node_count(b);
    for (int32_t i = 0; i < left; ++i) {
        const leati_node *node = leati_graph_node_at(a, i);
        if (i >= right || !has_same_inputs(node, leati_graph_node_at(b, i))) return fail_different(node, err);
        if (!has_same_numbers(node, leati_graph_node_at(b, i)))
            return leati_fail(
                err, LEAT_ENOTSUP,
                "layer '%s': it computes with a number that depends on an open size of an input, which "
                "ONNX cannot represent; give the inputs of the model fixed sizes, apart from the batch",
                node->label ? node->label : "?");
    }
    return left == right && leati_graph_value_count(a) == leati_graph_value_count(b)
               ? LEAT_OK
               : fail_different(leati_graph_node_at(b, right - 1), err);
}

/* ---- Nodes that the outputs need ---- */

static bool is_state_store(const leati_graph *graph, const leati_node *node) {
    if (node->op != LEATI_OP_STORE) return false;
    const leati_value_info *state = leati_graph_value(graph, node->inputs[1]);
    return state->storage == LEATI_IN_SLAB && state->where.slab == LEATI_SLAB_STATES;
}

static leat_status mark_live(leati_onnx *x, leat_error *err) {
    const int32_t nodes = leati_graph_node_count(x->graph), values = leati_graph_value_count(x->graph);
    bool *needed = leati_calloc((size_t)values + 1, sizeof *needed);
    x->live = leati_calloc((size_t)nodes + 1, sizeof *x->live);
    x->forms = leati_calloc((size_t)values + 1, sizeof *x->forms);
    if (!needed || !x->live || !x->forms) {
        leati_free(needed);
        return leati_fail_memory(err, (size_t)values * sizeof *x->forms, "an ONNX graph");
    }
    for (int i = 0; i < x->model->output_count; ++i) needed[x->probes[0].predictions[i]] = true;
    for (int32_t i = nodes - 1; i >= 0; --i) {
        const leati_node *node = leati_graph_node_at(x->graph, i);
        x->live[i] = is_state_store(x->graph, node);
        for (int32_t j = 0; j < node->output_count; ++j)
            if (node->outputs[j] >= 0) x->live[i] |= needed[node->outputs[j]];
        for (int32_t j = 0; x->live[i] && j < node->input_count; ++j)
            if (node->inputs[j] >= 0) needed[node->inputs[j]] = true;
    }
    leati_free(needed);
    return LEAT_OK;
}

leat_status leati_onnx_probe(leati_onnx *x, leat_error *err) {
    leat_status status = LEAT_EINVAL;
    int open = 1;
    for (int how = 0; status != LEAT_OK && status != LEAT_ENOMEM && how < CHOICE_COUNT; ++how) {
        if (how > 0 && open == 0) break; /* the next choice would have the same sizes */
        status = build(x, (choice)how, &open, err);
        if (status == LEAT_OK) status = compare(x, err);
    }
    LEATI_TRY(status);
    x->graph = x->probes[0].graph;
    return mark_live(x, err);
}
