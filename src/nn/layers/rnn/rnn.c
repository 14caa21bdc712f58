/* SPDX-License-Identifier: Apache-2.0 */
/* RNN: a layer around a cell.  StackedRNNCells: several cells that act as one; each cell processes all steps before
 * the next cell begins.  Source: keras.layers.RNN, keras.layers.StackedRNNCells. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/rnn/lstm_gru_common.h"
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

static int32_t states_of(const leati_layer *cell) {
    return is_stack(cell) ? ((const stack *)cell->config)->state_count
                          : ((const leati_recurrent *)cell->config)->recurrence.state_count;
}

static int64_t units_of(const leati_layer *cell) {
    if (!is_stack(cell)) return ((const leati_recurrent *)cell->config)->units;
    const stack *s = cell->config;
    return units_of(s->cells.items[s->cells.count - 1]);
}

static leat_status expect_cell(const leati_layer *cell, leat_error *err) {
    if (cell && (is_stack(cell) || leati_recurrent_is_cell(cell->type))) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP,
                      "cell: expected SimpleRNNCell, GRUCell, LSTMCell or StackedRNNCells, received %s",
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
    leati_shape shape = inputs[0];
    char scope[16];
    for (int32_t i = 0; i < s->cells.count; ++i) {
        leati_layer *cell = s->cells.items[i];
        snprintf(scope, sizeof scope, "cell_%d", (int)i);
        LEATI_TRY(leati_layer_build_inner(layer, cell, scope, input_count, &shape, err));
        shape.dims[shape.rank - 1] = units_of(cell);
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

/* Writes the shapes of the cell's states to `states`. */
static void cell_states(const leati_layer *cell, int64_t batch, leati_shape *states) {
    if (!is_stack(cell)) {
        for (int32_t i = 0; i < states_of(cell); ++i)
            states[i] = (leati_shape){.rank = 2, .dims = {batch, units_of(cell)}};
        return;
    }
    const stack *s = cell->config;
    for (int32_t i = 0; i < s->cells.count; ++i) {
        cell_states(s->cells.items[i], batch, states);
        states += states_of(s->cells.items[i]);
    }
}

static leat_status shapes(const leati_layer *layer, const leati_shape *input, leati_shape *output,
                          leati_shape *states, leat_error *err) {
    const config *c = layer->config;
    if (input->rank != 3) return leati_shape_unexpected(input, "a sequence (batch, steps, features)", err);
    *output = (leati_shape){.rank = 2, .dims = {input->dims[0], units_of(c->cell)}};
    cell_states(c->cell, input->dims[0], states);
    return LEAT_OK;
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

static void run_cell(const leati_layer *cell, leati_lowering *lowering, leati_scan_call *call) {
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
