/* SPDX-License-Identifier: Apache-2.0 */
/* RNN: a layer around a cell.  It is what the cell's own layer is, with the cell's configuration apart.
 * Source: keras.layers.RNN. */
#include "base/error.h"
#include "nn/layers/recurrent.h"
#include "nn/layers/types.h"
#include "nn/wrapping.h"

typedef struct config {
    leati_layer *cell;
    bool return_sequences, return_state, go_backwards, stateful, unroll;
} config;

static const leati_field fields[] = {LEATI_ROW(config, cell, LEATI_FIELD_LAYER, NULL),
                                     LEATI_ROW(config, return_sequences, LEATI_FIELD_BOOL, "false"),
                                     LEATI_ROW(config, return_state, LEATI_FIELD_BOOL, "false"),
                                     LEATI_ROW(config, go_backwards, LEATI_FIELD_BOOL, "false"),
                                     LEATI_ROW(config, stateful, LEATI_FIELD_BOOL, "false"),
                                     LEATI_ROW(config, unroll, LEATI_FIELD_BOOL, "false"),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    if (!c->cell || !leati_recurrent_is_cell(c->cell->type))
        return leati_fail(err, LEAT_ENOTSUP, "cell: expected SimpleRNNCell, GRUCell or LSTMCell, received %s",
                          c->cell ? c->cell->type->class_name : "none");
    leati_recurrent *r = c->cell->config;
    r->return_sequences = c->return_sequences;
    r->return_state = c->return_state;
    r->go_backwards = c->go_backwards;
    r->stateful = c->stateful;
    r->unroll = c->unroll;
    leati_layer_adopt(layer, c->cell);
    return leati_recurrent_check(c->cell, r->cell, err);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    return leati_recurrent_infer(c->cell, input_count, inputs, outputs, output_count, err);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    return leati_layer_build_inner(layer, c->cell, NULL, input_count, inputs, err);
}

static void place(const leati_layer *layer, int index, char *out, size_t bytes) {
    const config *c = layer->config;
    leati_layer_place_inner(c->cell, "cell", index, out, bytes);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_recurrent_lower(c->cell, lowering, input_count, inputs, outputs);
}

const leati_layer_type leati_layer_rnn = {.class_name = "RNN",
                                          .name_prefix = "rnn",
                                          .config_bytes = sizeof(config),
                                          .fields = fields,
                                          .min_inputs = 1,
                                          .max_inputs = 3,
                                          .masking = LEATI_MASK_OWN,
                                          .check = check,
                                          .infer = infer,
                                          .build = build,
                                          .place = place,
                                          .lower = lower};
