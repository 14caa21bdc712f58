/* SPDX-License-Identifier: Apache-2.0 */
/* AddLoss and AddMetric: what model.add_loss(tensor) and model.add_metric(tensor) leave in the files of tf.keras 2.4 to
 * 2.15.  No output needs them (nn/network/order.c keeps them all the same).
 * Source: tf.keras 2.15, keras/src/engine/base_layer.py. */
#include "base/error.h"
#include "nn/layers/added.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct loss_config {
    bool unconditional; /* has no effect */
} loss_config;

static const leati_field loss_fields[] = {LEATI_FIELD(loss_config, unconditional, LEATI_FIELD_BOOL, "false"),
                                          {.key = NULL}};

static leat_status infer_loss(const leati_layer *layer, int input_count, const leati_shape *inputs,
                              leati_shape *outputs, int *output_count, leat_error *err) {
    (void)layer, (void)input_count, (void)output_count;
    outputs[0] = inputs[0];
    if (inputs[0].rank == 0) return LEAT_OK;
    return leati_shape_unexpected(&inputs[0], "one number for a batch, as reduce_mean returns", err);
}

static void lower_loss(const leati_layer *layer, leati_lowering *lowering, int input_count,
                       const leati_value *inputs, leati_value *outputs) {
    (void)layer, (void)input_count;
    outputs[0] = inputs[0];
    if (lowering->whole_batch == 0 || lowering->mode == LEATI_PREDICT)
        leati_lowering_add_loss(lowering, inputs[0]);
    else if (lowering->added_loss_count < LEATI_LOWERING_MAX_ADDED)
        lowering->added_losses[lowering->added_loss_count++] = inputs[0];
    else
        leati_graph_fail(lowering->graph, LEAT_ENOTSUP, "more than %d AddLoss layers with several ranks",
                         LEATI_LOWERING_MAX_ADDED);
}

LEATI_LAYER_TYPE(add_loss, "AddLoss", "add_loss", loss_config, loss_fields, LEATI_ONE_INPUT, .scalars = true,
                 .infer = infer_loss, .lower = lower_loss);

static const char *const aggregations[] = {"mean", NULL};

static const leati_field metric_fields[] = {LEATI_CHOICE_FIELD(leati_added_metric_config, aggregation,
                                                               aggregations, NULL),
                                            {.key = "metric_name",
                                             .kind = LEATI_FIELD_TEXT,
                                             .offset = offsetof(leati_added_metric_config, metric_name),
                                             .preset = NULL},
                                            {.key = NULL}};

static void lower_metric(const leati_layer *layer, leati_lowering *lowering, int input_count,
                         const leati_value *inputs, leati_value *outputs) {
    leati_graph *g = lowering->graph;
    (void)input_count;
    outputs[0] = inputs[0];
    if (lowering->mode == LEATI_PREDICT || lowering->added_count == LEATI_LOWERING_MAX_ADDED) return;
    const int64_t count = leati_desc_count(leati_graph_desc(g, inputs[0]));
    lowering->added_metrics[lowering->added_count] = leati_reshape(g, inputs[0], 1, &count);
    lowering->added_layers[lowering->added_count++] = layer;
}

LEATI_LAYER_TYPE(add_metric, "AddMetric", "add_metric", leati_added_metric_config, metric_fields,
                 LEATI_ONE_INPUT, .scalars = true, .infer = leati_infer_same, .lower = lower_metric);
