/* SPDX-License-Identifier: Apache-2.0 */
/* ScheduleFreeAdamW: a mean of all iterates takes the place of a schedule (Defazio and others 2024, arXiv:2405.15682).
 * The slot m has the iterates, which begin as the weights; the weights lie between the iterates and their mean.
 * Like Keras with TensorFlow, the old mean is computed from the new iterate: momentum.value is no
 * copy. */
#include <math.h>

#include "engine/graph/build.h"
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.0025"),
                                     LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                     LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
                                     LEATI_OPTIMIZER_FLOAT(epsilon, "1e-8"),
                                     {.key = "warmup_steps",
                                      .kind = LEATI_FIELD_INT,
                                      .offset = offsetof(leati_optimizer_config, warmup_steps),
                                      .preset = "0",
                                      .minimum = 0,
                                      .limited = true},
                                     LEATI_OPTIMIZER_COMMON};

/* Indices of the scalars.  FIRST is 1 in the first step, where m is 0 instead of the weights; SHARE is that of the
 * new iterate in the mean; BIAS is 1 - beta_2^t. */
enum { RATE, FIRST, GAIN, BIAS, SHARE, REST, DECAY, SCALAR_COUNT };

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    const leati_optimizer_config *c = &optimizer->config;
    float t = (float)iterations + 1.0f, rate = leati_optimizer_rate(optimizer, iterations);
    out[DECAY] = leati_optimizer_decays(optimizer) ? (float)c->weight_decay * rate : 0.0f;
    if (c->warmup_steps > 0) rate *= fminf(t / (float)c->warmup_steps, 1.0f);
    out[RATE] = rate;
    out[FIRST] = iterations == 0 ? 1.0f : 0.0f;
    out[GAIN] = 1.0f - (float)c->beta_2;
    out[BIAS] = 1.0f - powf((float)c->beta_2, t);
    out[SHARE] = 1.0f / t;
    out[REST] = 1.0f - out[SHARE];
}

/* Returns a x + b y for numbers a and b. */
static leati_value mixed(leati_graph *g, float a, leati_value x, float b, leati_value y) {
    return leati_add(g, leati_linear(g, x, a, 0.0f), leati_linear(g, y, b, 0.0f));
}

static void lower_range(const leati_optimizer *optimizer, leati_graph *g, const leati_update_range *range,
                        const leati_value *s) {
    const leati_desc all = leati_desc_make(LEAT_F32, 1, &range->count);
    const leati_optimizer_config *c = &optimizer->config;
    float beta = (float)c->beta_1;
    leati_value gradient = leati_graph_state(g, LEATI_SLAB_GRADIENTS, range->offset_bytes, &all);
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, range->offset_bytes, &all);
    leati_value m = leati_graph_state(g, LEATI_SLAB_SLOT0, range->offset_bytes, &all);
    leati_value v = leati_graph_state(g, LEATI_SLAB_SLOT1, range->offset_bytes, &all);
    leati_value square = range->powers;
    if (square == LEATI_NONE) square = leati_function_of(g, gradient, LEATI_FN_SQUARE);
    leati_value before = leati_add(g, m, leati_mul(g, w, s[FIRST]));
    leati_value decayed = leati_optimizer_decays(optimizer) ? leati_sub(g, w, leati_mul(g, w, s[DECAY])) : w;
    leati_value moment = leati_add(g, v, leati_mul(g, leati_sub(g, square, v), s[GAIN]));
    leati_value root = leati_function_of(g, leati_div(g, moment, s[BIAS]), LEATI_FN_SQRT);
    leati_value step =
        leati_div(g, leati_mul(g, gradient, s[RATE]), leati_linear(g, root, 1.0f, (float)c->epsilon));
    leati_value iterate = leati_sub(g, before, step);
    leati_value mean = leati_div(g, mixed(g, 1.0f, decayed, -(1.0f - beta), iterate), leati_scalar(g, beta));
    mean = leati_add(g, leati_mul(g, mean, s[REST]), leati_mul(g, iterate, s[SHARE]));
    leati_graph_store(g, v, moment);
    leati_graph_store(g, m, iterate);
    leati_graph_store(g, w, mixed(g, 1.0f - beta, iterate, beta, mean));
}

static void lower(const leati_optimizer *optimizer, leati_graph *g, const leati_update *update,
                  const leati_value *s) {
    for (int i = 0; i < update->range_count; ++i) lower_range(optimizer, g, &update->ranges[i], s);
}

const leati_optimizer_type leati_optimizer_schedule_free_adamw = {.class_name = "ScheduleFreeAdamW",
                                                                  .fields = fields,
                                                                  .lower = lower,
                                                                  .powers = LEATI_POWERS_SQUARE,
                                                                  .is_new = true,
                                                                  .decays_itself = true,
                                                                  .slot_count = 2,
                                                                  .slots = {"m", "v"},
                                                                  .scalar_count = SCALAR_COUNT,
                                                                  .scalars = scalars};
