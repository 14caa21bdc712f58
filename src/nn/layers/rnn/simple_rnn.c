/* SPDX-License-Identifier: Apache-2.0 */
/* SimpleRNN: h = activation(x kernel + h_before recurrent_kernel + bias).  Source: keras.layers.SimpleRNN. */
#include "nn/layers/rnn/lstm_gru_common.h"
#include "nn/layers/types.h"

static const leati_field fields[] = {LEATI_RECURRENT_FIELDS,
                                     LEATI_CELL_FIELDS,
                                     {.key = "implementation",
                                      .kind = LEATI_FIELD_INT,
                                      .offset = offsetof(leati_recurrent, implementation),
                                      .preset = "1",
                                      .hidden = true}, /* key of older versions; ignored */
                                     {.key = NULL}};

static const leati_field cell_fields[] = {LEATI_CELL_FIELDS, {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    leati_recurrent *c = layer->config;
    c->implementation = 1;
    return leati_recurrent_check(layer, LEATI_CELL_SIMPLE, err);
}

LEATI_LAYER_TYPE(simple_rnn, "SimpleRNN", "simple_rnn", leati_recurrent, fields, LEATI_RECURRENT_MEMBERS);

LEATI_LAYER_TYPE(simple_rnn_cell, "SimpleRNNCell", "simple_rnn_cell", leati_recurrent, cell_fields,
                 LEATI_CELL_MEMBERS);
