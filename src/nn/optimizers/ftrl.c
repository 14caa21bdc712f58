/* SPDX-License-Identifier: Apache-2.0 */
/* FTRL-Proximal, which sets weights to exactly 0 (McMahan and others 2013), as a chain of ops over all weights:
 * accumulator += g^2; linear += g' - (accumulator^-p - before^-p) / lr w; w = (clip(linear, -l1, l1) - linear) /
 * quadratic.  g' is g with the shrinkage; before is the old accumulator. */
#include "engine/graph/build.h"
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                     LEATI_OPTIMIZER_FLOAT(learning_rate_power, "-0.5"),
                                     LEATI_OPTIMIZER_FLOAT(initial_accumulator_value, "0.1"),
                                     LEATI_OPTIMIZER_FLOAT(l1_regularization_strength, "0.0"),
                                     LEATI_OPTIMIZER_FLOAT(l2_regularization_strength, "0.0"),
                                     LEATI_OPTIMIZER_FLOAT(l2_shrinkage_regularization_strength, "0.0"),
                                     LEATI_OPTIMIZER_FLOAT(beta, "0.0"),
                                     LEATI_OPTIMIZER_COMMON};

enum { RATE, TWICE_L2 }; /* indices of the scalars */

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    float rate = leati_optimizer_rate(optimizer, iterations);
    float l2 = (float)optimizer->config.l2_regularization_strength;
    out[RATE] = rate;
    out[TWICE_L2] = 2.0f * (l2 + (float)optimizer->config.beta / (2.0f * rate));
}

static double preset(const leati_optimizer_config *config, int slot) {
    return slot == 0 ? config->initial_accumulator_value : 0.0;
}

static leati_value raised(leati_graph *g, leati_value x, double power) {
    if (power == 0.5) return leati_function_of(g, x, LEATI_FN_SQRT);
    return leati_eltwise_of(g, x, (leati_eltwise){.function = LEATI_FN_POW, .a = (float)power});
}

static void lower_range(const leati_optimizer_config *c, leati_graph *g, const leati_update_range *range,
                        const leati_value *s) {
    const leati_desc all = leati_desc_make(LEAT_F32, 1, &range->count);
    leati_value gradient = leati_graph_state(g, LEATI_SLAB_GRADIENTS, range->offset_bytes, &all);
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, range->offset_bytes, &all);
    leati_value accumulator = leati_graph_state(g, LEATI_SLAB_SLOT0, range->offset_bytes, &all);
    leati_value linear = leati_graph_state(g, LEATI_SLAB_SLOT1, range->offset_bytes, &all), shrunk = gradient;
    leati_value square = range->powers;
    float shrinkage = 2.0f * (float)c->l2_shrinkage_regularization_strength;
    float l1 = (float)c->l1_regularization_strength;
    if (square == LEATI_NONE) square = leati_function_of(g, gradient, LEATI_FN_SQUARE);
    if (shrinkage > 0.0f) shrunk = leati_add(g, gradient, leati_linear(g, w, shrinkage, 0.0f));
    leati_value before = raised(g, accumulator, -c->learning_rate_power);
    leati_value sum = leati_add(g, accumulator, square);
    leati_value after = raised(g, sum, -c->learning_rate_power);
    leati_value sigma = leati_div(g, leati_sub(g, after, before), s[RATE]);
    leati_value moved = leati_add(g, linear, leati_sub(g, shrunk, leati_mul(g, sigma, w)));
    leati_value quadratic = leati_add(g, leati_div(g, after, s[RATE]), s[TWICE_L2]);
    leati_value step = leati_div(g, leati_sub(g, leati_clip(g, moved, -l1, l1), moved), quadratic);
    leati_graph_store(g, w, step);
    leati_graph_store(g, linear, moved);
    leati_graph_store(g, accumulator, sum);
}

static void lower(const leati_optimizer *optimizer, leati_graph *g, const leati_update *update,
                  const leati_value *s) {
    for (int i = 0; i < update->range_count; ++i) lower_range(&optimizer->config, g, &update->ranges[i], s);
}

const leati_optimizer_type leati_optimizer_ftrl = {.class_name = "Ftrl",
                                                   .fields = fields,
                                                   .lower = lower,
                                                   .powers = LEATI_POWERS_SQUARE,
                                                   .is_new = true,
                                                   .slot_count = 2,
                                                   .slots = {"accumulator", "linear"},
                                                   .slot_preset = preset,
                                                   .scalar_count = 2,
                                                   .scalars = scalars};
