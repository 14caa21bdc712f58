/* SPDX-License-Identifier: Apache-2.0 */
/* PositionEmbedding: a row of weights for each step of a sequence (..., T, D), from step `start_index` on, or for the
 * positions (N, T) that are a second input.  Only the shape of the first input counts.
 * Source: keras_hub.layers.PositionEmbedding; Devlin et al. 2019. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/hub/positions.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t sequence_length, start_index;
    leati_initializer *initializer;
    bool positions; /* there is a second input */
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, sequence_length, 1, NULL),
                                     LEATI_FIELD(config, initializer, LEATI_FIELD_INITIALIZER,
                                                 "\"glorot_uniform\""),
                                     LEATI_POSITIONS_FIELDS(config, true),
                                     {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const leati_shape *x = &inputs[0];
    (void)output_count;
    LEATI_TRY(leati_positions_check(c->positions, input_count, inputs, err));
    const int64_t steps = x->dims[x->rank - 2];
    if (!c->positions && steps > c->sequence_length - c->start_index)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected at most sequence_length - start_index = %lld steps, received %lld",
                          (long long)(c->sequence_length - c->start_index), (long long)steps);
    outputs[0] = *x;
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    (void)input_count;
    leati_weight_spec spec = {.name = "embeddings",
                              .rank = 2,
                              .dims = {c->sequence_length, inputs[0].dims[inputs[0].rank - 1]},
                              .initializer = c->initializer};
    return leati_layer_add_weight(layer, &spec, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc desc = *leati_graph_desc(g, inputs[0]);
    leati_value rows = leati_layer_weight(layer, lowering, 0);
    outputs[0] = LEATI_INVALID;
    if (desc.rank < 3) return; /* a graph that has failed has no shapes */
    if (input_count == 2)
        rows = leati_gather(g, rows, inputs[1]);
    else
        rows = leati_slice_axis(g, rows, 0, c->start_index, desc.shape[desc.rank - 2]);
    outputs[0] = leati_broadcast(g, rows, desc.rank, desc.shape);
}

LEATI_LAYER_TYPE(position_embedding, "keras_hub>PositionEmbedding", "position_embedding", config, fields,
                 .module = "keras_hub.src.layers.modeling.position_embedding", .min_inputs = 1,
                 .max_inputs = 2, .arguments = leati_positions_arguments,
                 .call_options = leati_positions_options, .indices = true, .infer = infer, .build = build,
                 .lower = lower);
