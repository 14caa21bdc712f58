/* SPDX-License-Identifier: Apache-2.0 */
/* RNN: a layer around a cell.  StackedRNNCells: several cells that act as one; each cell processes all steps before
 * the next cell begins.  A custom cell (leat_registry_add_cell) is called once for each step.
 * Source: keras.layers.RNN, keras.layers.StackedRNNCells. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/rnn/lstm_gru_common.h"
#include "nn/layers/rnn/rnn_unrolled.h"
#include "nn/layers/types.h"
#include "nn/layers/wrapping.h"

/* ---- StackedRNNCells ---- */

typedef struct stack {
    leati_layers cells;
    int32_t state_count; /* set by check */
} stack;

static const leati_field stack_fields[] = {LEATI_FIELD(stack, cells, LEATI_FIELD_LAYERS, NULL),
                                           {.key = NULL}};

static bool is_stack(const leati_layer *cell) {
    return cell->type == &leati_layer_stacked_rnn_cells;
}

static bool is_custom(const leati_layer *cell) {
    return cell->type->cell_states > 0;
}

static int32_t states_of(const leati_layer *cell) {
    if (is_custom(cell)) return cell->type->cell_states;
    return is_stack(cell) ? ((const stack *)cell->config)->state_count
                          : ((const leati_recurrent *)cell->config)->recurrence.state_count;
}

/* Writes the inputs of a custom cell to `inputs`: a step and the states, whose sizes are not known. */
static int cell_inputs(const leati_layer *cell, int64_t batch, int64_t features, leati_shape *inputs) {
    inputs[0] = (leati_shape){.rank = 2, .dims = {batch, features}};
    for (int i = 1; i <= states_of(cell); ++i) inputs[i] = (leati_shape){.rank = 2, .dims = {batch, -1}};
    return 1 + states_of(cell);
}

static leat_status infer_custom(const leati_layer *cell, int64_t batch, int64_t features, leati_shape *output,
                                leati_shape *states, leat_error *err) {
    leati_shape inputs[LEATI_LAYER_MAX_OUTPUTS], outputs[LEATI_LAYER_MAX_OUTPUTS];
    int count = 1;
    LEATI_TRY(
        leati_layer_infer(cell, cell_inputs(cell, batch, features, inputs), inputs, outputs, &count, err));
    *output = outputs[0];
    for (int i = 0; i < states_of(cell); ++i) states[i] = outputs[1 + i];
    if (output->rank == 2 && output->dims[1] > 0) return LEAT_OK;
    return leati_shape_unexpected(output, "its infer to give an output (batch, units)", err);
}

/* Infers the shapes of a step's output and of the states. */
static leat_status infer_step(const leati_layer *cell, int64_t batch, int64_t features, leati_shape *output,
                              leati_shape *states, leat_error *err) {
    if (is_custom(cell))
        return leati_prefix(infer_custom(cell, batch, features, output, states, err), err, "%s",
                            cell->type->class_name);
    if (!is_stack(cell)) {
        const int64_t units = ((const leati_recurrent *)cell->config)->units;
        *output = (leati_shape){.rank = 2, .dims = {batch, units}};
        for (int32_t i = 0; i < states_of(cell); ++i) states[i] = *output;
        return LEAT_OK;
    }
    const stack *s = cell->config;
    for (int32_t i = 0; i < s->cells.count; ++i) {
        LEATI_TRY(infer_step(s->cells.items[i], batch, features, output, states, err));
        states += states_of(s->cells.items[i]);
        features = output->dims[1];
    }
    return LEAT_OK;
}

/* Declares the weights of a cell.  input is (batch, steps, features); a cell only needs the features. */
static leat_status build_cell(leati_layer *layer, leati_layer *cell, const char *scope,
                              const leati_shape *input, leat_error *err) {
    leati_shape inputs[LEATI_LAYER_MAX_OUTPUTS];
    if (!is_custom(cell)) return leati_layer_build_inner(layer, cell, scope, 1, input, err);
    const int count = cell_inputs(cell, input->dims[0], input->dims[input->rank - 1], inputs);
    return leati_layer_build_inner(layer, cell, scope, count, inputs, err);
}

static leat_status expect_cell(const leati_layer *cell, leat_error *err) {
    if (cell && (is_stack(cell) || is_custom(cell) || leati_recurrent_is_cell(cell->type))) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP,
                      "cell: expected SimpleRNNCell, GRUCell, LSTMCell, StackedRNNCells or a cell that is "
                      "registered (leat_registry_add_cell), received %s",
                      cell ? cell->type->class_name : "none");
}

static leat_status check_stack(leati_layer *layer, leat_error *err) {
    stack *s = layer->config;
    if (s->cells.count < 1) return leati_fail(err, LEAT_EINVAL, "cells: expected at least one cell");
    for (int32_t i = 0; i < s->cells.count; ++i) {
        LEATI_TRY(expect_cell(s->cells.items[i], err));
        leati_layer_adopt(layer, s->cells.items[i]);
        s->state_count += states_of(s->cells.items[i]);
    }
    if (s->state_count <= LEATI_MAX_STATES) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP, "cells: expected at most %d states in total, received %d",
                      LEATI_MAX_STATES, (int)s->state_count);
}

/* inputs[0] is (batch, steps, features); a cell only needs the features. */
static leat_status build_stack(leati_layer *layer, int input_count, const leati_shape *inputs,
                               leat_error *err) {
    const stack *s = layer->config;
    leati_shape shape = inputs[0], output, states[LEATI_MAX_STATES];
    char scope[16];
    (void)input_count;
    for (int32_t i = 0; i < s->cells.count; ++i) {
        leati_layer *cell = s->cells.items[i];
        snprintf(scope, sizeof scope, "cell_%d", (int)i);
        LEATI_TRY(build_cell(layer, cell, scope, &shape, err));
        LEATI_TRY(infer_step(cell, shape.dims[0], shape.dims[shape.rank - 1], &output, states, err));
        shape.dims[shape.rank - 1] = output.dims[1];
    }
    return LEAT_OK;
}

/* Cells of the same class are numbered. */
static void stack_weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    const stack *s = layer->config;
    int32_t cell_index = s->cells.count - 1, before = 0;
    char group[LEAT_NAME_BYTES], number[16] = "";
    while (cell_index > 0 && s->cells.items[cell_index]->first_outer_weight > index) --cell_index;
    const leati_layer *cell = s->cells.items[cell_index];
    for (int32_t i = 0; i < cell_index; ++i) before += s->cells.items[i]->type == cell->type;
    if (before > 0) snprintf(number, sizeof number, "_%d", (int)before);
    snprintf(group, sizeof group, "cells/%s%s", cell->type->name_prefix, number);
    leati_layer_inner_weight_path(cell, group, index, out, bytes);
}

LEATI_LAYER_TYPE(stacked_rnn_cells, "StackedRNNCells", "stacked_rnn_cells", stack, stack_fields,
                 .check = check_stack, .build = build_stack, .weight_path = stack_weight_path);

/* ---- RNN ---- */

typedef struct config {
    leati_recurrence recurrence;
    leati_layer *cell;
    int64_t num_constants;
} config;

static const leati_field fields[] = {LEATI_RECURRENCE_FIELDS(config),
                                     LEATI_RECURRENCE_FIELD(config, unroll, LEATI_FIELD_BOOL, "false"),
                                     LEATI_FIELD(config, cell, LEATI_FIELD_LAYER, NULL),
                                     {.key = "num_constants",
                                      .kind = LEATI_FIELD_OPTIONAL_INT,
                                      .offset = offsetof(config, num_constants),
                                      .preset = "null",
                                      .later = true},
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    LEATI_TRY(expect_cell(c->cell, err));
    if (c->num_constants > 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "num_constants: expected null or 0, because no cell of Keras has constants");
    c->recurrence.state_count = states_of(c->cell);
    leati_layer_adopt(layer, c->cell);
    return LEAT_OK;
}

static leat_status shapes(const leati_layer *layer, const leati_shape *input, leati_shape *output,
                          leati_shape *states, leat_error *err) {
    const config *c = layer->config;
    if (input->rank != 3) return leati_shape_unexpected(input, "a sequence (batch, steps, features)", err);
    return infer_step(c->cell, input->dims[0], input->dims[2], output, states, err);
}

static void run_cell(const leati_layer *cell, leati_lowering *lowering, leati_scan_call *call);

/* If the first cell goes backwards, the following cells process its outputs in the order in which they were
 * computed. */
static void run_stack(const stack *s, leati_lowering *lowering, leati_scan_call *call) {
    leati_lowering cell_lowering = *lowering;
    leati_scan_call inner = {.x = call->x, .mask = call->mask, .go_backwards = call->go_backwards};
    for (int32_t i = 0, first = 0; i < s->cells.count; ++i) {
        size_t states = (size_t)states_of(s->cells.items[i]) * sizeof call->states[0];
        memcpy(inner.initial, call->initial + first, states);
        cell_lowering.stream = leati_stream(lowering->stream, s->cells.items[i]->name) + 2 * (uint64_t)i;
        run_cell(s->cells.items[i], &cell_lowering, &inner);
        memcpy(call->states + first, inner.states, states);
        first += states_of(s->cells.items[i]);
        inner.x = inner.sequence;
        if (inner.go_backwards && inner.mask != LEATI_NONE)
            inner.mask = leati_reverse(lowering->graph, inner.mask, 1);
        inner.go_backwards = false;
    }
    call->sequence = inner.sequence;
    call->last = inner.last;
}

/* The steps of a custom cell. */
typedef struct custom_steps {
    const leati_layer *cell;
    leati_lowering lowering;
} custom_steps;

/* The states of the loop are the cell's output, which no step reads, and the cell's states. */
static void custom_step(const void *context, leati_graph *g, leati_value x, const leati_value *before,
                        leati_value *after) {
    custom_steps *steps = (custom_steps *)(uintptr_t)context;
    leati_value inputs[LEATI_LAYER_MAX_OUTPUTS] = {x};
    (void)g;
    memcpy(inputs + 1, before + 1, (size_t)states_of(steps->cell) * sizeof *inputs);
    steps->lowering.stream += 1; /* each step has random numbers of its own */
    steps->cell->type->lower(steps->cell, &steps->lowering, 1 + states_of(steps->cell), inputs, after);
}

static void run_custom(const leati_layer *cell, leati_lowering *lowering, leati_scan_call *call) {
    leati_graph *g = lowering->graph;
    const leati_desc x = *leati_graph_desc(g, call->x);
    custom_steps steps = {.cell = cell, .lowering = *lowering};
    leati_scan_call inner = *call;
    leati_shape output, states[LEATI_MAX_STATES];
    leat_error err = {0};
    leat_status status = infer_step(cell, x.shape[0], x.shape[x.rank - 1], &output, states, &err);
    if (status != LEAT_OK) {
        leati_graph_fail(g, status, "%s", err.message);
        return;
    }
    steps.lowering.stream = leati_stream(lowering->stream, cell->name);
    inner.initial[0] = leati_full(g, output.rank, output.dims, 0);
    for (int i = 0; i < states_of(cell); ++i)
        inner.initial[1 + i] = call->initial[i] != LEATI_NONE
                                   ? call->initial[i]
                                   : leati_full(g, states[i].rank, states[i].dims, 0);
    leati_steps_run(g, &inner, leati_steps_swap(g, call->x), 1 + states_of(cell), custom_step, &steps);
    call->sequence = inner.sequence;
    call->last = inner.last;
    memcpy(call->states, inner.states + 1, (size_t)states_of(cell) * sizeof *call->states);
}

static void run_cell(const leati_layer *cell, leati_lowering *lowering, leati_scan_call *call) {
    if (is_custom(cell)) {
        run_custom(cell, lowering, call);
        return;
    }
    if (is_stack(cell)) {
        run_stack(cell->config, lowering, call);
        return;
    }
    const leati_recurrent_values weights = leati_recurrent_layer_weights(cell, lowering);
    leati_recurrent_run(cell, lowering, &weights, call);
}

static void run(const leati_layer *layer, leati_lowering *lowering, leati_scan_call *call) {
    const config *c = layer->config;
    run_cell(c->cell, lowering, call);
}

static const leati_scan scan = {shapes, run};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    return leati_recurrence_infer(layer, &scan, input_count, inputs, outputs, output_count, err);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    if (is_custom(c->cell))
        LEATI_TRY(build_cell(layer, c->cell, NULL, &inputs[0], err));
    else
        LEATI_TRY(leati_layer_build_inner(layer, c->cell, NULL, input_count, inputs, err));
    return leati_recurrence_build(layer, &scan, inputs, err);
}

static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    const config *c = layer->config;
    leati_layer_inner_weight_path(c->cell, "cell", index, out, bytes);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    leati_recurrence_lower(layer, &scan, lowering, input_count, inputs, outputs);
}

LEATI_LAYER_TYPE(rnn, "RNN", "rnn", config, fields, .min_inputs = 1, .max_inputs = LEATI_MAX_STATES + 1,
                 .masking = LEATI_MASK_COMPUTED, .check = check, .infer = infer, .build = build,
                 .weight_path = weight_path, .lower = lower);
