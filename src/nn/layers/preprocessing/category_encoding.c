/* SPDX-License-Identifier: Apache-2.0 */
/* CategoryEncoding: integers as one-hot vectors, or as the set or the counts of those in a row.
 * Source: keras.layers.CategoryEncoding. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

enum { MULTI_HOT, ONE_HOT, COUNT };
static const char *const modes[] = {"multi_hot", "one_hot", "count", NULL};

typedef struct config {
    int64_t num_tokens;
    int32_t output_mode;
} config;

static const leati_field fields[] = {{.key = "num_tokens",
                                      .kind = LEATI_FIELD_INT,
                                      .offset = offsetof(config, num_tokens),
                                      .minimum = 1,
                                      .limited = true},
                                     LEATI_CHOICE_FIELD(config, output_mode, modes, "\"multi_hot\""),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    if (c->num_tokens <= INT32_MAX) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "num_tokens: expected at most %d", INT32_MAX);
}

/* True if the last axis of the input, which has length 1 or is reduced, becomes the axis of the tokens. */
static bool replaces_last(const config *c, int rank, int64_t last) {
    return c->output_mode != ONE_HOT || (rank > 1 && last == 1);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const leati_shape *in = &inputs[0];
    (void)input_count, (void)output_count;
    if (in->rank < 2 || in->rank >= LEAT_MAX_RANK)
        return leati_shape_unexpected(in, "an input (batch, ..., integers)", err);
    outputs[0] = *in;
    if (!replaces_last(c, in->rank, in->dims[in->rank - 1])) ++outputs[0].rank;
    outputs[0].dims[outputs[0].rank - 1] = c->num_tokens;
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const int rank = leati_graph_desc(g, inputs[0])->rank;
    leati_value y = leati_one_hot(g, leati_cast(g, inputs[0], LEAT_I32, 1), c->num_tokens);
    (void)input_count;
    outputs[0] = y;
    if (rank < 1 || !replaces_last(c, rank, leati_graph_desc(g, inputs[0])->shape[rank - 1])) return;
    leati_reduce kind = c->output_mode == COUNT ? LEATI_REDUCE_SUM : LEATI_REDUCE_MAX;
    outputs[0] = leati_reduce_of(g, kind, y, UINT32_C(1) << (rank - 1), false);
}

LEATI_LAYER_TYPE(category_encoding, "CategoryEncoding", "category_encoding", config, fields, LEATI_ONE_INPUT,
                 .check = check, .infer = infer, .lower = lower);
