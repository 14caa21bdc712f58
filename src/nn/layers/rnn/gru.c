/* SPDX-License-Identifier: Apache-2.0 */
/* GRU: gates z, r, h; `reset_after` as in cuDNN, with a bias for either product.
 * Source: keras.layers.GRU; Cho et al. 2014 (arXiv 1406.1078, version 3, and version 1 for reset_after). */
#include "nn/layers/rnn/lstm_gru_common.h"
#include "nn/layers/types.h"

static const leati_field fields[] = {LEATI_RECURRENT_ROWS,
                                     LEATI_CELL_ROWS,
                                     LEATI_GATED_CELL_ROWS,
                                     LEATI_ROW(leati_recurrent, reset_after, LEATI_FIELD_BOOL, "false"),
                                     {.key = NULL}};

static const leati_field cell_fields[] = {LEATI_CELL_ROWS,
                                          LEATI_GATED_CELL_ROWS,
                                          LEATI_ROW(leati_recurrent, reset_after, LEATI_FIELD_BOOL, "false"),
                                          {.key = NULL}};

static const leati_old_preset old_presets[] = {{"recurrent_activation", 2, 3, "\"hard_sigmoid\""},
                                               {"implementation", 2, 3, "1"},
                                               {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const leati_recurrent *c = layer->config;
    return leati_recurrent_check(layer, c->reset_after ? LEATI_CELL_GRU_RESET_AFTER : LEATI_CELL_GRU, err);
}

const leati_layer_type leati_layer_gru = {.class_name = "GRU",
                                          .name_prefix = "gru",
                                          .old_presets = old_presets,
                                          LEATI_RECURRENT_TYPE};

const leati_layer_type leati_layer_gru_cell = {.class_name = "GRUCell",
                                               .name_prefix = "gru_cell",
                                               .old_presets = old_presets,
                                               LEATI_CELL_TYPE};
