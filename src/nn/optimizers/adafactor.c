/* SPDX-License-Identifier: Apache-2.0 */
/* Adafactor: the second moment of a matrix is the outer product of the means of its rows and of its columns (Shazeer,
 * Stern 2018, arXiv:1804.04235).  The update is a chain of ops for each weight.  The slots r and c are means over the
 * last axis and over the last but one. */
#include <math.h>

#include "engine/graph/build.h"
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                     LEATI_OPTIMIZER_FLOAT(beta_2_decay, "-0.8"),
                                     LEATI_OPTIMIZER_FLOAT(epsilon_1, "1e-30"),
                                     LEATI_OPTIMIZER_FLOAT(epsilon_2, "0.001"),
                                     LEATI_OPTIMIZER_FLOAT(clip_threshold, "1.0"),
                                     {.key = "relative_step",
                                      .kind = LEATI_FIELD_BOOL,
                                      .offset = offsetof(leati_optimizer_config, relative_step),
                                      .preset = "true"},
                                     LEATI_OPTIMIZER_COMMON};

enum { RHO, DECAY, GAIN, SCALAR_COUNT }; /* indices of the scalars; DECAY and GAIN sum to 1 */

/* The rate is min(rate, 1 / sqrt(t)): with and without relative_step, Keras computes the same. */
static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    float t = (float)(iterations + 1), decay = 1.0f - powf(t, (float)optimizer->config.beta_2_decay);
    out[RHO] = fminf(leati_optimizer_rate(optimizer, iterations), 1.0f / sqrtf(t));
    out[DECAY] = decay;
    out[GAIN] = 1.0f - decay;
}

/* For a vector, r and c are a single number, which stays 0. */
static leati_desc slot_desc(int slot, const leati_desc *weight) {
    leati_desc desc = *weight;
    if (slot == 2) return desc;
    if (weight->rank < 2) return leati_desc_make(LEAT_F32, 0, NULL);
    desc.rank -= 1;
    if (slot == 1) desc.shape[desc.rank - 1] = weight->shape[weight->rank - 1];
    return desc;
}

static leati_value state(leati_graph *g, const leati_weight *weight, int slot) {
    const leati_desc desc = slot_desc(slot, &weight->desc);
    return leati_graph_state(g, (leati_slab)(LEATI_SLAB_SLOT0 + slot), weight->offset_bytes, &desc);
}

static leati_value root_mean(leati_graph *g, leati_value square) {
    return leati_function_of(g, leati_reduce_all(g, LEATI_REDUCE_MEAN, square), LEATI_FN_SQRT);
}

static leati_value root_mean_square(leati_graph *g, leati_value x) {
    return root_mean(g, leati_function_of(g, x, LEATI_FN_SQUARE));
}

/* Updates a moving average: state = DECAY state + GAIN value. */
static leati_value average(leati_graph *g, leati_value kept, leati_value value, const leati_value *s) {
    leati_value sum = leati_add(g, leati_mul(g, kept, s[DECAY]), leati_mul(g, value, s[GAIN]));
    leati_graph_store(g, kept, sum);
    return sum;
}

/* Inserts an axis of length 1 before axis `axis`. */
static leati_value with_axis(leati_graph *g, leati_value x, int axis) {
    leati_desc desc = *leati_graph_desc(g, x);
    for (int i = desc.rank; i > axis; --i) desc.shape[i] = desc.shape[i - 1];
    desc.shape[axis] = 1;
    return leati_reshape(g, x, desc.rank + 1, desc.shape);
}

/* Returns the estimate of the squared gradient, and updates its slots. */
static leati_value second_moment(leati_graph *g, const leati_weight *weight, leati_value square,
                                 const leati_value *s) {
    int rank = weight->desc.rank;
    if (rank < 2) return average(g, state(g, weight, 2), square, s);
    leati_value rows = leati_reduce_last(g, LEATI_REDUCE_MEAN, square, false);
    leati_value columns = leati_reduce_of(g, LEATI_REDUCE_MEAN, square, UINT32_C(1) << (rank - 2), false);
    rows = average(g, state(g, weight, 0), rows, s);
    columns = average(g, state(g, weight, 1), columns, s);
    rows = leati_div(g, rows, leati_reduce_last(g, LEATI_REDUCE_MEAN, rows, true));
    leati_value product = leati_mul(g, with_axis(g, rows, rank - 1), with_axis(g, columns, rank - 2));
    leati_graph_store(g, state(g, weight, 2), product);
    return product;
}

/* `powers` is as in leati_update. */
static void lower_weight(const leati_optimizer_config *c, leati_graph *g, const leati_weight *weight,
                         leati_value powers, const leati_value *s) {
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, weight->offset_bytes, &weight->desc);
    leati_value gradient = leati_graph_state(g, LEATI_SLAB_GRADIENTS, weight->offset_bytes, &weight->desc);
    leati_value scale =
        leati_binary_of(g, LEATI_MAX, root_mean_square(g, w), leati_scalar(g, (float)c->epsilon_2));
    leati_value square = powers == LEATI_NONE ? leati_function_of(g, gradient, LEATI_FN_SQUARE) : powers;
    leati_value moment = second_moment(g, weight, leati_linear(g, square, 1.0f, (float)c->epsilon_1), s);
    leati_value step = leati_div(g, gradient, leati_function_of(g, moment, LEATI_FN_SQRT));
    leati_value size =
        powers == LEATI_NONE ? root_mean_square(g, step) : root_mean(g, leati_div(g, powers, moment));
    leati_value excess = leati_linear(g, size, 1.0f / (float)c->clip_threshold, 0.0f);
    step = leati_div(g, step, leati_binary_of(g, LEATI_MAX, excess, leati_scalar(g, 1.0f)));
    leati_value move = leati_mul(g, step, leati_mul(g, scale, s[RHO]));
    leati_graph_store(g, w, leati_sub(g, w, move));
}

static void lower(const leati_optimizer *optimizer, leati_graph *g, const leati_update *update,
                  const leati_value *s) {
    for (int32_t i = 0; i < update->weights->trainable_count; ++i)
        if (leati_share_has(&update->share, update->weights->entries[i]))
            lower_weight(&optimizer->config, g, update->weights->entries[i], update->powers[i], s);
}

const leati_optimizer_type leati_optimizer_adafactor = {.class_name = "Adafactor",
                                                        .fields = fields,
                                                        .lower = lower,
                                                        .by_weight = true,
                                                        .powers = LEATI_POWERS_SQUARE,
                                                        .is_new = true,
                                                        .slot_count = 3,
                                                        .slots = {"r", "c", "v"},
                                                        .slot_desc = slot_desc,
                                                        .scalar_count = SCALAR_COUNT,
                                                        .scalars = scalars};
