/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding: turns the two halves of the features of step p by the angles p f, with a frequency f for each pair:
 * x cos + (-second half, first half) sin.  p counts from `start_index`, or is that of the positions (N, T) that are a
 * second input.
 * Source: keras_hub.layers.RotaryEmbedding; Su et al. 2021 (arXiv 2104.09864); YaRN: Peng et al. 2023. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/hub/positions.h"
#include "nn/layers/types.h"

typedef struct config {
    double max_wavelength, scaling_factor, beta_fast, beta_slow;
    int32_t rope_type;
    int64_t original_max_position_embeddings, sequence_axis, feature_axis, denominator_dim, start_index;
    bool truncate, positions;
} config;

enum { LINEAR, DYNAMIC, YARN };
static const char *const rope_types[] = {"linear", "dynamic", "yarn", NULL};

static const leati_field fields[] = {LEATI_FIELD(config, max_wavelength, LEATI_FIELD_FLOAT, "10000"),
                                     LEATI_FIELD(config, scaling_factor, LEATI_FIELD_FLOAT, "1.0"),
                                     LEATI_CHOICE_FIELD(config, rope_type, rope_types, "\"linear\""),
                                     LEATI_FIELD(config, beta_fast, LEATI_FIELD_FLOAT, "32.0"),
                                     LEATI_FIELD(config, beta_slow, LEATI_FIELD_FLOAT, "1.0"),
                                     LEATI_INT_FIELD(config, original_max_position_embeddings, 1, "4096"),
                                     LEATI_FIELD(config, truncate, LEATI_FIELD_BOOL, "true"),
                                     LEATI_FIELD(config, sequence_axis, LEATI_FIELD_INT, "1"),
                                     LEATI_FIELD(config, feature_axis, LEATI_FIELD_INT, "-1"),
                                     {.key = "denominator_dim",
                                      .kind = LEATI_FIELD_OPTIONAL_INT,
                                      .offset = offsetof(config, denominator_dim),
                                      .preset = "null",
                                      .minimum = 1,
                                      .limited = true},
                                     LEATI_POSITIONS_FIELDS(config, false),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    const struct {
        const char *key;
        double value;
    } positive[] = {{"max_wavelength", c->max_wavelength},
                    {"scaling_factor", c->scaling_factor},
                    {"beta_fast", c->beta_fast},
                    {"beta_slow", c->beta_slow}};
    for (size_t i = 0; i < sizeof positive / sizeof positive[0]; ++i)
        if (!(positive[i].value > 0))
            return leati_fail(err, LEAT_EINVAL, "%s: expected a number above 0, received %g", positive[i].key,
                              positive[i].value);
    return LEAT_OK;
}

/* ---- Shapes ---- */

/* Finds the order of axes in which the steps are axis 1 and the features the last axis. */
static leat_status find_axes(const config *c, int rank, int32_t perm[LEAT_MAX_RANK], leat_error *err) {
    const int64_t steps = c->sequence_axis + (c->sequence_axis < 0 ? rank : 0);
    const int64_t features = c->feature_axis + (c->feature_axis < 0 ? rank : 0);
    if (steps < 0 || steps >= rank || features < 0 || features >= rank || steps == features)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected an input that has sequence_axis %lld and feature_axis %lld, received one "
                          "of %d axes",
                          (long long)c->sequence_axis, (long long)c->feature_axis, rank);
    int next = 0;
    for (int i = 0; i < rank; ++i) {
        if (i == steps || i == features) continue;
        perm[next++] = i;
        if (next == 1) ++next; /* axis 1 is that of the steps */
    }
    perm[1] = (int32_t)steps;
    perm[rank - 1] = (int32_t)features;
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const leati_shape *x = &inputs[0];
    int32_t perm[LEAT_MAX_RANK] = {0};
    (void)output_count;
    LEATI_TRY(leati_positions_check_count(c->positions, input_count, err));
    if (x->rank < 3) return leati_shape_unexpected(x, "an input of rank 3 or more", err);
    LEATI_TRY(find_axes(c, x->rank, perm, err));
    if (perm[0] != 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "sequence_axis, feature_axis: expected other axes than the batch");
    if (x->dims[perm[x->rank - 1]] > 0 && x->dims[perm[x->rank - 1]] % 2 != 0)
        return leati_shape_unexpected(x, "an even number of features", err);
    if (c->positions && inputs[1].rank != 2)
        return leati_shape_unexpected(&inputs[1], "positions (N, steps)", err);
    outputs[0] = *x;
    return LEAT_OK;
}

/* ---- Frequencies, rounded to float as Keras rounds them ---- */

/* Returns the pair of features that makes `turns` turns over the original positions. */
static float pair_of_turns(const config *c, float turns, float features) {
    const float most = (float)c->original_max_position_embeddings;
    return features * logf(most / (turns * 2 * 3.14159265358979f)) / (2 * logf((float)c->max_wavelength));
}

static void fill_yarn(const config *c, int64_t features, float *out) {
    const float count = (float)features;
    float low = pair_of_turns(c, (float)c->beta_fast, count),
          high = pair_of_turns(c, (float)c->beta_slow, count);
    if (c->truncate) low = floorf(low), high = ceilf(high);
    low = fmaxf(low, 0);
    high = fminf(high, count - 1);
    const float between = fmaxf(high - low, 0.001f);
    for (int64_t i = 0; i < features / 2; ++i) {
        const float power = powf((float)c->max_wavelength, (float)(2 * i) / count);
        const float ramp = fminf(fmaxf(((float)i - low) / between, 0), 1), kept = 1 - ramp;
        out[i] = 1 / ((float)c->scaling_factor * power) * (1 - kept) + 1 / power * kept;
    }
}

static void fill_half(const config *c, int64_t features, float *out) {
    const float count = (float)(c->denominator_dim == INT64_MIN ? features : c->denominator_dim);
    const float rotated = (float)features;
    float scale = (float)c->scaling_factor;
    if (c->rope_type == YARN) {
        fill_yarn(c, features, out);
        return;
    }
    if (c->rope_type == DYNAMIC) scale = powf(scale, rotated / (features > 3 ? rotated - 2 : 1));
    for (int64_t i = 0; i < features / 2; ++i)
        out[i] = powf((float)c->max_wavelength, -((float)(2 * i) / count)) / scale;
}

/* ---- Ops ---- */

/* The frequency of a pair stands at both of its features. */
static void fill_frequencies(float *out, int64_t features, const void *user) {
    fill_half(user, features, out);
    memcpy(out + features / 2, out, (size_t)(features / 2) * sizeof *out);
}

static void fill_positions(float *out, int64_t steps, const void *user) {
    for (int64_t i = 0; i < steps; ++i) out[i] = (float)i + (float)((const config *)user)->start_index;
}

/* Returns the sine or the cosine of the angles (batch or 1, steps, 1, ..., features). */
static leati_value turned(const config *c, leati_graph *g, leati_value angles, int rank, leati_function f) {
    const leati_desc desc = *leati_graph_desc(g, angles);
    int64_t dims[LEAT_MAX_RANK] = {0};
    for (int i = 0; i < rank; ++i) dims[i] = 1;
    if (desc.rank > 2) dims[0] = desc.shape[0];
    if (desc.rank > 1) dims[1] = desc.shape[desc.rank - 2], dims[rank - 1] = desc.shape[desc.rank - 1];
    leati_value y = leati_reshape(g, leati_function_of(g, angles, f), rank, dims);
    return c->rope_type == YARN ? leati_linear(g, y, 0.1f * logf((float)c->scaling_factor) + 1, 0) : y;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const int rank = leati_graph_desc(g, inputs[0])->rank;
    int32_t perm[LEAT_MAX_RANK] = {0}, back[LEAT_MAX_RANK] = {0};
    outputs[0] = LEATI_INVALID;
    if (rank < 3 || find_axes(c, rank, perm, NULL) != LEAT_OK) return; /* a failed graph has no shapes */
    for (int i = 0; i < rank; ++i) back[perm[i]] = i;
    leati_value x = leati_transpose(g, inputs[0], perm);
    const leati_desc desc = *leati_graph_desc(g, x);
    const int64_t features = desc.shape[rank - 1], half = features / 2;
    leati_value p = input_count == 2 ? leati_cast(g, inputs[1], LEAT_F32, 1)
                                     : leati_vector_of(g, desc.shape[1], fill_positions, c);
    leati_value angles =
        leati_mul(g, leati_expand_last(g, p), leati_vector_of(g, features, fill_frequencies, c));
    leati_value first = leati_slice_axis(g, x, rank - 1, 0, half);
    leati_value second = leati_slice_axis(g, x, rank - 1, half, half);
    leati_value halves[] = {leati_linear(g, second, -1, 0), first};
    leati_value other = leati_concat(g, 2, halves, rank - 1);
    leati_value y = leati_mul(g, x, turned(c, g, angles, rank, LEATI_FN_COS));
    y = leati_add(g, y, leati_mul(g, other, turned(c, g, angles, rank, LEATI_FN_SIN)));
    outputs[0] = leati_transpose(g, y, back);
}

LEATI_LAYER_TYPE(rotary_embedding, "keras_hub>RotaryEmbedding", "rotary_embedding", config, fields,
                 .module = "keras_hub.src.layers.modeling.rotary_embedding", .min_inputs = 1, .max_inputs = 2,
                 .arguments = leati_positions_arguments, .call_options = leati_positions_options,
                 .check = check, .infer = infer, .lower = lower);
