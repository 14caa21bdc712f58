/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of the layer AddMetric of tf.keras. */
#ifndef LEATI_NN_LAYERS_ADDED_H
#define LEATI_NN_LAYERS_ADDED_H

#include "nn/layers/layer.h"

typedef struct leati_added_metric_config {
    int32_t aggregation; /* "mean" is the only one */
    char metric_name[LEATI_FIELD_TEXT_BYTES];
} leati_added_metric_config;

/* True for AddLoss and AddMetric, which compute without an output that needs them. */
bool leati_layer_is_added(const leati_layer *layer);

#endif
