/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM: gates i, f, c, o.  Source: keras.layers.LSTM; Hochreiter and Schmidhuber 1997. */
#include "nn/layers/rnn/lstm_gru_common.h"
#include "nn/layers/types.h"

static const leati_field fields[] = {LEATI_RECURRENT_FIELDS,
                                     LEATI_CELL_FIELDS,
                                     LEATI_GATED_CELL_FIELDS,
                                     LEATI_FIELD(leati_recurrent, unit_forget_bias, LEATI_FIELD_BOOL, "true"),
                                     {.key = NULL}};

static const leati_field cell_fields[] = {LEATI_CELL_FIELDS,
                                          LEATI_GATED_CELL_FIELDS,
                                          LEATI_FIELD(leati_recurrent, unit_forget_bias, LEATI_FIELD_BOOL,
                                                      "true"),
                                          {.key = NULL}};

static const leati_old_preset old_presets[] = {{"recurrent_activation", 2, 3, "\"hard_sigmoid\""},
                                               {"implementation", 2, 3, "1"},
                                               {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    return leati_recurrent_check(layer, LEATI_CELL_LSTM, err);
}

LEATI_LAYER_TYPE(lstm, "LSTM", "lstm", leati_recurrent, fields, .old_presets = old_presets,
                 LEATI_RECURRENT_MEMBERS);

LEATI_LAYER_TYPE(lstm_cell, "LSTMCell", "lstm_cell", leati_recurrent, cell_fields, .old_presets = old_presets,
                 LEATI_CELL_MEMBERS);
