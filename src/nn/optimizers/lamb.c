/* SPDX-License-Identifier: Apache-2.0 */
/* Lamb: Adam's step, scaled for each weight to the length of the weight (You and others 2019, arXiv:1904.00962).  The
 * update is a chain of ops for each weight. */
#include <math.h>

#include "engine/graph/build.h"
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                     LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                     LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
                                     LEATI_OPTIMIZER_OPTIONAL(epsilon, false), LEATI_OPTIMIZER_COMMON};

/* Indices of the scalars: GAIN_i is 1 - beta_i, BIAS_i is 1 - beta_i^t. */
enum { RATE, GAIN_1, GAIN_2, BIAS_1, BIAS_2, SCALAR_COUNT };

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    const leati_optimizer_config *c = &optimizer->config;
    float t = (float)iterations + 1.0f;
    out[RATE] = leati_optimizer_rate(optimizer, iterations);
    out[GAIN_1] = leati_optimizer_complement(c->beta_1);
    out[GAIN_2] = leati_optimizer_complement(c->beta_2);
    out[BIAS_1] = 1.0f - powf((float)c->beta_1, t);
    out[BIAS_2] = 1.0f - powf((float)c->beta_2, t);
}

/* Updates a moving average: state += (value - state) gain. */
static leati_value average(leati_graph *g, leati_value kept, leati_value value, leati_value gain) {
    leati_value now = leati_add(g, kept, leati_mul(g, leati_sub(g, value, kept), gain));
    leati_graph_store(g, kept, now);
    return now;
}

static leati_value length(leati_graph *g, leati_value x) {
    leati_value squares = leati_function_of(g, x, LEATI_FN_SQUARE);
    return leati_function_of(g, leati_reduce_all(g, LEATI_REDUCE_SUM, squares), LEATI_FN_SQRT);
}

/* Returns a / b, or 1 where one of them is 0. */
static leati_value ratio(leati_graph *g, leati_value a, leati_value b) {
    leati_value zero = leati_scalar(g, 0.0f), step = leati_binary_of(g, LEATI_GREATER, b, zero);
    leati_value both = leati_mul(g, leati_binary_of(g, LEATI_GREATER, a, zero), step);
    leati_value divisor = leati_add(g, b, leati_linear(g, step, -1.0f, 1.0f));
    leati_value quotient = leati_mul(g, both, leati_div(g, a, divisor));
    return leati_add(g, quotient, leati_linear(g, both, -1.0f, 1.0f));
}

/* `powers` is as in leati_update. */
static void lower_weight(const leati_optimizer_config *c, leati_graph *g, const leati_weight *weight,
                         leati_value powers, const leati_value *s) {
    size_t offset = weight->offset_bytes;
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, offset, &weight->desc);
    leati_value gradient = leati_graph_state(g, LEATI_SLAB_GRADIENTS, offset, &weight->desc);
    leati_value square = powers == LEATI_NONE ? leati_function_of(g, gradient, LEATI_FN_SQUARE) : powers;
    leati_value m =
        average(g, leati_graph_state(g, LEATI_SLAB_SLOT0, offset, &weight->desc), gradient, s[GAIN_1]);
    leati_value v =
        average(g, leati_graph_state(g, LEATI_SLAB_SLOT1, offset, &weight->desc), square, s[GAIN_2]);
    leati_value root = leati_function_of(g, leati_div(g, v, s[BIAS_2]), LEATI_FN_SQRT);
    leati_value step =
        leati_div(g, leati_div(g, m, s[BIAS_1]), leati_linear(g, root, 1.0f, (float)c->epsilon));
    leati_value scale = leati_mul(g, ratio(g, length(g, w), length(g, step)), s[RATE]);
    leati_graph_store(g, w, leati_sub(g, w, leati_mul(g, step, scale)));
}

static void lower(const leati_optimizer *optimizer, leati_graph *g, const leati_update *update,
                  const leati_value *s) {
    for (int32_t i = 0; i < update->weights->trainable_count; ++i)
        if (leati_share_has(&update->share, update->weights->entries[i]))
            lower_weight(&optimizer->config, g, update->weights->entries[i], update->powers[i], s);
}

const leati_optimizer_type leati_optimizer_lamb = {.class_name = "Lamb",
                                                   .fields = fields,
                                                   .lower = lower,
                                                   .by_weight = true,
                                                   .powers = LEATI_POWERS_SQUARE,
                                                   .is_new = true,
                                                   .slot_count = 2,
                                                   .slots = {"m", "v"},
                                                   .scalar_count = SCALAR_COUNT,
                                                   .scalars = scalars};
