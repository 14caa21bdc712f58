/* SPDX-License-Identifier: Apache-2.0 */
/* GRU: gates z, r, h; `reset_after` as in cuDNN, with a bias for each of the two products.
 * Source: keras.layers.GRU; Cho et al. 2014 (arXiv 1406.1078, version 3, and version 1 for reset_after). */
#include "nn/layers/rnn/lstm_gru_common.h"
#include "nn/layers/types.h"

static const leati_field fields[] = {LEATI_RECURRENT_FIELDS,
                                     LEATI_CELL_FIELDS,
                                     LEATI_GATED_CELL_FIELDS,
                                     LEATI_FIELD(leati_recurrent, reset_after, LEATI_FIELD_BOOL, "false"),
                                     {.key = NULL}};

static const leati_field cell_fields[] = {LEATI_CELL_FIELDS,
                                          LEATI_GATED_CELL_FIELDS,
                                          LEATI_FIELD(leati_recurrent, reset_after, LEATI_FIELD_BOOL,
                                                      "false"),
                                          {.key = NULL}};

static const leati_old_preset old_presets[] = {{"recurrent_activation", 2, 3, "\"hard_sigmoid\""},
                                               {"implementation", 2, 3, "1"},
                                               {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const leati_recurrent *c = layer->config;
    return leati_recurrent_check(layer, c->reset_after ? LEATI_CELL_GRU_RESET_AFTER : LEATI_CELL_GRU, err);
}

LEATI_LAYER_TYPE(gru, "GRU", "gru", leati_recurrent, fields, .old_presets = old_presets,
                 LEATI_RECURRENT_MEMBERS);

LEATI_LAYER_TYPE(gru_cell, "GRUCell", "gru_cell", leati_recurrent, cell_fields, .old_presets = old_presets,
                 LEATI_CELL_MEMBERS);
