/* SPDX-License-Identifier: Apache-2.0 */
/* Muon: the step of a matrix is its momentum with all singular values near 1, by Newton's and Schulz's iteration
 * (Jordan and others 2024; Liu and others 2025, arXiv:2502.16982).  Other weights, Embeddings and excluded layers have
 * Adam's step.  The update is a chain of ops for each weight. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "engine/graph/build.h"
#include "nn/optimizers/types.h"

#define OPTION(member, field_kind, value)                                                                    \
    {                                                                                                        \
        .key = #member, .kind = field_kind, .offset = offsetof(leati_optimizer_config, member),              \
        .preset = value                                                                                      \
    }

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                     OPTION(weight_decay, LEATI_FIELD_OPTIONAL_FLOAT, "0.004"),
                                     LEATI_OPTIMIZER_FLOAT(adam_beta_1, "0.9"),
                                     LEATI_OPTIMIZER_FLOAT(adam_beta_2, "0.999"),
                                     LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                     OPTION(exclude_layers, LEATI_FIELD_JSON, "null"),
                                     LEATI_OPTIMIZER_FLOAT(muon_a, "3.4445"),
                                     LEATI_OPTIMIZER_FLOAT(muon_b, "-4.775"),
                                     LEATI_OPTIMIZER_FLOAT(muon_c, "2.0315"),
                                     LEATI_OPTIMIZER_FLOAT(adam_lr_ratio, "1"),
                                     LEATI_OPTIMIZER_FLOAT(momentum, "0.95"),
                                     {.key = "ns_steps",
                                      .kind = LEATI_FIELD_INT,
                                      .offset = offsetof(leati_optimizer_config, ns_steps),
                                      .preset = "5",
                                      .minimum = 0,
                                      .limited = true},
                                     OPTION(nesterov, LEATI_FIELD_BOOL, "true"),
                                     OPTION(exclude_embeddings, LEATI_FIELD_BOOL, "true"),
                                     OPTION(adam_weight_decay, LEATI_FIELD_OPTIONAL_FLOAT, "0.004"),
                                     OPTION(rms_rate, LEATI_FIELD_OPTIONAL_FLOAT, "0.2"),
                                     LEATI_OPTIMIZER_SHARED,
                                     {.key = NULL}};

/* Indices of the scalars.  DECAY and ADAM_DECAY are the shares of the weights that decay; ADAM_RATE contains the
 * correction of the moments' bias. */
enum { RATE, ADAM_RATE, GAIN_1, GAIN_2, DECAY, ADAM_DECAY, SCALAR_COUNT };

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    const leati_optimizer_config *c = &optimizer->config;
    float t = (float)iterations + 1.0f, rate = leati_optimizer_rate(optimizer, iterations);
    float bias_1 = 1.0f - powf((float)c->adam_beta_1, t), bias_2 = 1.0f - powf((float)c->adam_beta_2, t);
    out[RATE] = rate;
    out[ADAM_RATE] = rate * (float)c->adam_lr_ratio * sqrtf(bias_2) / bias_1;
    out[GAIN_1] = leati_optimizer_complement(c->adam_beta_1);
    out[GAIN_2] = leati_optimizer_complement(c->adam_beta_2);
    out[DECAY] = isnan(c->weight_decay) ? 0.0f : (float)c->weight_decay * rate;
    out[ADAM_DECAY] = isnan(c->adam_weight_decay) ? 0.0f : (float)c->adam_weight_decay * rate;
}

/* True if the name contains a word, in small or capital letters. */
static bool contains(const char *name, const char *word) {
    size_t length = strlen(word);
    for (; *name; ++name)
        if (strncasecmp(name, word, length) == 0) return true;
    return false;
}

/* True if the weight has Adam's step. */
static bool is_adams(const leati_optimizer_config *c, const leati_weights *weights, int32_t weight) {
    const char *name = weights->names[weight];
    if (weights->entries[weight]->desc.rank != 2) return true;
    if (c->exclude_embeddings && contains(name, "embedding")) return true;
    for (size_t i = 0; i < json_array_size(c->exclude_layers); ++i)
        if (strstr(name, json_string_value(json_array_get(c->exclude_layers, i)))) return true;
    return false;
}

static bool has_slot(const leati_optimizer_config *config, const leati_weights *weights, int32_t weight,
                     int slot) {
    return slot == 0 || is_adams(config, weights, weight);
}

static leati_value slot_of(leati_graph *g, const leati_weight *weight, int slot) {
    return leati_graph_state(g, (leati_slab)(LEATI_SLAB_SLOT0 + slot), weight->offset_bytes, &weight->desc);
}

/* Returns the weight after its decay by a share. */
static leati_value decayed(leati_graph *g, const leati_weight *weight, double rate, leati_value share) {
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, weight->offset_bytes, &weight->desc);
    return isnan(rate) ? w : leati_sub(g, w, leati_mul(g, w, share));
}

/* Updates a moving average: state += (value - state) gain. */
static leati_value average(leati_graph *g, leati_value kept, leati_value value, leati_value gain) {
    leati_value now = leati_add(g, kept, leati_mul(g, leati_sub(g, value, kept), gain));
    leati_graph_store(g, kept, now);
    return now;
}

/* `powers` is as in leati_update. */
static void lower_adam(const leati_optimizer_config *c, leati_graph *g, const leati_weight *weight,
                       leati_value powers, const leati_value *s) {
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, weight->offset_bytes, &weight->desc);
    leati_value gradient = leati_graph_state(g, LEATI_SLAB_GRADIENTS, weight->offset_bytes, &weight->desc);
    leati_value square = powers == LEATI_NONE ? leati_function_of(g, gradient, LEATI_FN_SQUARE) : powers;
    leati_value m = average(g, slot_of(g, weight, 0), gradient, s[GAIN_1]);
    leati_value v = average(g, slot_of(g, weight, 1), square, s[GAIN_2]);
    leati_value root = leati_linear(g, leati_function_of(g, v, LEATI_FN_SQRT), 1.0f, (float)c->epsilon);
    leati_value step = leati_div(g, leati_mul(g, m, s[ADAM_RATE]), root);
    leati_graph_store(g, w, leati_sub(g, decayed(g, weight, c->adam_weight_decay, s[ADAM_DECAY]), step));
}

/* Returns the matrix with singular values near 1.  The smaller side comes first, so that the products are small. */
static leati_value orthogonal(const leati_optimizer_config *c, leati_graph *g, leati_value x) {
    const int64_t *shape = leati_graph_desc(g, x)->shape;
    static const int32_t swap[] = {1, 0};
    bool turned = shape[0] > shape[1];
    if (turned) x = leati_transpose(g, x, swap);
    leati_value squares = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_function_of(g, x, LEATI_FN_SQUARE));
    leati_value norm = leati_function_of(g, squares, LEATI_FN_SQRT);
    x = leati_div(g, x, leati_linear(g, norm, 1.0f, 1e-7f));
    for (int64_t i = 0; i < c->ns_steps; ++i) {
        leati_value a = leati_matmul(g, x, false, x, true, LEATI_NONE);
        leati_value b =
            leati_matmul(g, leati_linear(g, a, (float)c->muon_c, 0.0f), false, a, false, LEATI_NONE);
        b = leati_add(g, leati_linear(g, a, (float)c->muon_b, 0.0f), b);
        leati_value product = leati_matmul(g, b, false, x, false, LEATI_NONE);
        x = leati_add(g, leati_linear(g, x, (float)c->muon_a, 0.0f), product);
    }
    return turned ? leati_transpose(g, x, swap) : x;
}

static void lower_muon(const leati_optimizer_config *c, leati_graph *g, const leati_weight *weight,
                       const leati_value *s) {
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, weight->offset_bytes, &weight->desc);
    leati_value gradient = leati_graph_state(g, LEATI_SLAB_GRADIENTS, weight->offset_bytes, &weight->desc);
    leati_value m = slot_of(g, weight, 0), change = leati_linear(g, m, (float)(c->momentum - 1.0), 0.0f);
    leati_value now = leati_add(g, m, leati_add(g, gradient, change));
    leati_value direction = now;
    leati_graph_store(g, m, now);
    if (c->nesterov) direction = leati_add(g, gradient, leati_linear(g, now, (float)c->momentum, 0.0f));
    leati_value step = leati_mul(g, orthogonal(c, g, direction), s[RATE]);
    int64_t rows = weight->desc.shape[0], columns = weight->desc.shape[1];
    float larger = sqrtf((float)(rows > columns ? rows : columns));
    if (!isnan(c->rms_rate)) step = leati_linear(g, step, larger * (float)c->rms_rate, 0.0f);
    leati_graph_store(g, w, leati_sub(g, decayed(g, weight, c->weight_decay, s[DECAY]), step));
}

static void lower(const leati_optimizer *optimizer, leati_graph *g, const leati_update *update,
                  const leati_value *s) {
    const leati_optimizer_config *c = &optimizer->config;
    for (int32_t i = 0; i < update->weights->trainable_count; ++i) {
        const leati_weight *weight = update->weights->entries[i];
        if (!leati_share_has(&update->share, weight)) continue;
        if (is_adams(c, update->weights, i))
            lower_adam(c, g, weight, update->powers[i], s);
        else
            lower_muon(c, g, weight, s);
    }
}

const leati_optimizer_type leati_optimizer_muon = {.class_name = "Muon",
                                                   .fields = fields,
                                                   .lower = lower,
                                                   .by_weight = true,
                                                   .powers = LEATI_POWERS_SQUARE,
                                                   .is_new = true,
                                                   .decays_itself = true,
                                                   .slot_count = 2,
                                                   .slots = {"momentum", "velocity"},
                                                   .has_slot = has_slot,
                                                   .scalar_count = SCALAR_COUNT,
                                                   .scalars = scalars};
