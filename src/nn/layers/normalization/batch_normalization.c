/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization: gamma (x - mean) / sqrt(variance + epsilon) + beta, with the moments over all axes but one.  In
 * training, a frozen layer of Keras 2.3.1 uses the moments of the batch, but does not update its moving averages; a
 * frozen layer of tf.keras and current Keras uses its moving averages, like a layer that is called with training=False.
 * Source: keras.layers.BatchNormalization; Ioffe and Szegedy 2015, algorithms 1 and 2. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t axis; /* negative: from the end */
    double momentum, epsilon;
    bool center, scale;
    bool synchronized; /* statistics over the samples of all ranks */
    bool as_keras3;    /* set for files of current Keras */
    bool as_tf_keras;  /* set for images in files of tf.keras: a frozen layer is that of current Keras */
    leati_weight_config beta, gamma;
    leati_initializer *moving_mean_initializer, *moving_variance_initializer;
} config;

static const leati_field fields[] = {LEATI_FIELD(config, axis, LEATI_FIELD_INT, "-1"),
                                     LEATI_FIELD(config, momentum, LEATI_FIELD_FLOAT, "0.99"),
                                     LEATI_FIELD(config, epsilon, LEATI_FIELD_FLOAT, "0.001"),
                                     LEATI_FIELD(config, center, LEATI_FIELD_BOOL, "true"),
                                     LEATI_FIELD(config, scale, LEATI_FIELD_BOOL, "true"),
                                     LEATI_WEIGHT_FIELDS(config, beta, "beta", "\"zeros\""),
                                     LEATI_WEIGHT_FIELDS(config, gamma, "gamma", "\"ones\""),
                                     LEATI_FIELD(config, moving_mean_initializer, LEATI_FIELD_INITIALIZER,
                                                 "\"zeros\""),
                                     LEATI_FIELD(config, moving_variance_initializer, LEATI_FIELD_INITIALIZER,
                                                 "\"ones\""),
                                     {.key = "synchronized",
                                      .kind = LEATI_FIELD_BOOL,
                                      .offset = offsetof(config, synchronized),
                                      .preset = "false",
                                      .later = true},
                                     LEATI_AS_KERAS3_FIELD(config),
                                     {.key = "as_tf_keras",
                                      .kind = LEATI_FIELD_BOOL,
                                      .offset = offsetof(config, as_tf_keras),
                                      .preset = "false",
                                      .later = true},
                                     {.key = NULL}};

static int axis_of(const config *c, int rank) {
    int64_t axis = c->axis < 0 ? c->axis + rank : c->axis;
    return axis >= 1 && axis < rank ? (int)axis : 0;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    if (axis_of(layer->config, inputs[0].rank) == 0)
        return leati_shape_unexpected(&inputs[0], "an input that has the axis (not the batch axis)", err);
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static leat_status add_average(leati_layer *layer, const char *name, const leati_initializer *initializer,
                               int64_t size, leat_error *err) {
    leati_weight_spec spec = {
        .name = name, .rank = 1, .dims = {size}, .initializer = initializer, .fixed = true};
    return leati_layer_add_weight(layer, &spec, err);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    int64_t size = inputs[0].dims[axis_of(c, inputs[0].rank)];
    (void)input_count;
    if (size < 1) return leati_shape_unexpected(&inputs[0], "an input whose axis is known", err);
    if (c->scale) LEATI_TRY(leati_weight_config_add(layer, "gamma", &c->gamma, 1, &size, err));
    if (c->center) LEATI_TRY(leati_weight_config_add(layer, "beta", &c->beta, 1, &size, err));
    LEATI_TRY(add_average(layer, "moving_mean", c->moving_mean_initializer, size, err));
    return add_average(layer, "moving_variance", c->moving_variance_initializer, size, err);
}

/* The weights as values; LEATI_NONE: the layer does not have the weight. */
typedef struct weights {
    leati_value gamma, beta, mean, variance;
} weights;

static weights weights_of(const leati_layer *layer, const leati_lowering *lowering) {
    const config *c = layer->config;
    int next = 0;
    weights w = {.gamma = LEATI_NONE, .beta = LEATI_NONE};
    if (c->scale) w.gamma = leati_layer_weight(layer, lowering, next++);
    if (c->center) w.beta = leati_layer_weight(layer, lowering, next++);
    w.mean = leati_layer_weight(layer, lowering, next);
    w.variance = leati_layer_weight(layer, lowering, next + 1);
    return w;
}

/* True if the statistics are those of the samples of all ranks. */
static bool is_synchronized(const config *c, const leati_lowering *lowering) {
    return lowering->norms == LEATI_NORMS_JOINED ||
           (lowering->norms == LEATI_NORMS_MARKED && c->synchronized);
}

/* Returns the number of rows behind the statistics of each channel. */
static int64_t count_rows(const config *c, const leati_lowering *lowering, leati_value x) {
    const leati_desc *desc = leati_graph_desc(lowering->graph, x);
    int64_t channels = desc->rank > 0 ? desc->shape[desc->rank - 1] : 1;
    int64_t rows = channels ? leati_desc_count(desc) / channels : 0;
    if (!is_synchronized(c, lowering) || lowering->part_batch == 0) return rows;
    return rows / lowering->part_batch * lowering->whole_batch;
}

/* ---- Rows with statistics of their own ---- */

/* Makes (N, spatial..., rows * C) of (N * rows, spatial..., C), so that each row of a sample has channels of its own.
 * `back` is the other direction. */
static leati_value rows_as_channels(leati_graph *g, leati_value x, int64_t rows, bool back) {
    const leati_desc d = *leati_graph_desc(g, x);
    const int last = d.rank - 1;
    int64_t samples = back ? d.shape[0] : d.shape[0] / rows,
            channels = back ? d.shape[last] / rows : d.shape[last], places = 1;
    for (int i = 1; i < last; ++i) places *= d.shape[i];
    const int64_t apart[] = {samples, rows, places, channels}, joined[] = {samples, places, rows, channels};
    leati_desc out = d;
    out.shape[0] = back ? samples * rows : samples;
    out.shape[last] = back ? channels : rows * channels;
    x = leati_transpose(g, leati_reshape(g, x, 4, back ? joined : apart), (int32_t[]){0, 2, 1, 3});
    return leati_reshape(g, x, out.rank, out.shape);
}

/* Repeats a weight for each row; LEATI_NONE stays. */
static leati_value for_each_row(leati_graph *g, leati_value weight, int64_t rows) {
    if (weight == LEATI_NONE) return weight;
    const int64_t channels = leati_graph_desc(g, weight)->shape[0];
    leati_value all = leati_broadcast(g, weight, 2, (int64_t[]){rows, channels});
    return leati_reshape(g, all, 1, (int64_t[]){rows * channels});
}

/* Joins the statistics of the rows to one number for each channel: the update with this number and the momentum to the
 * power of `rows` is that of all rows, one after the other. */
static leati_value join_rows(leati_graph *g, leati_value statistics, int64_t rows, double momentum) {
    const int64_t channels = leati_graph_desc(g, statistics)->shape[0] / rows;
    const leati_desc column = leati_desc_make(LEAT_F32, 2, (int64_t[]){rows, 1});
    float *shares = leati_calloc((size_t)rows, sizeof *shares);
    if (!shares) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for %lld numbers", (long long)rows);
    const double all = 1 - pow(momentum, (double)rows);
    for (int64_t i = 0; i < rows; ++i) {
        const double share = (1 - momentum) * pow(momentum, (double)(rows - 1 - i));
        shares[i] = (float)(all != 0 ? share / all : 1 / (double)rows);
    }
    leati_value by = leati_graph_constant(g, &column, shares);
    leati_free(shares);
    leati_value each = leati_reshape(g, statistics, 2, (int64_t[]){rows, channels});
    return leati_reduce_of(g, LEATI_REDUCE_SUM, leati_mul(g, each, by), 1, false);
}

/* Updates the moving averages.  Keras 2.3.1 first multiplies the variance of the batch by n / (n - (1 + epsilon));
 * current Keras does not. */
static void update_averages(const leati_layer *layer, leati_lowering *lowering, const weights *w,
                            leati_value x, const leati_value *statistics) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const int64_t rows = lowering->apart_rows;
    float n = (float)count_rows(c, lowering, x);
    float correction = c->as_keras3 ? 1.0f : n / (n - (1.0f + (float)c->epsilon));
    leati_value mean = statistics[1], variance = leati_linear(g, statistics[2], correction, 0.0f);
    double momentum = c->momentum;
    if (rows > 1) {
        mean = join_rows(g, mean, rows, momentum);
        variance = join_rows(g, variance, rows, momentum);
        momentum = pow(momentum, (double)rows);
    }
    leati_moving_average(g, w->mean, mean, (float)momentum);
    leati_moving_average(g, w->variance, variance, (float)momentum);
}

/* Sums x over all axes but the last one. */
static leati_value sum_by_channel(leati_graph *g, leati_value x) {
    const uint32_t axes = (UINT32_C(1) << (leati_graph_desc(g, x)->rank - 1)) - 1;
    return leati_reduce_of(g, LEATI_REDUCE_SUM, x, axes, false);
}

/* Sums a and b by channel; if the layer is synchronized, over all ranks, which tell each other both at once. */
static void sum_both(const config *c, const leati_lowering *lowering, leati_value *a, leati_value *b) {
    leati_graph *g = lowering->graph;
    leati_value sums[] = {sum_by_channel(g, *a), b ? sum_by_channel(g, *b) : LEATI_NONE};
    *a = sums[0];
    if (b) *b = sums[1];
    if (!is_synchronized(c, lowering)) return;
    if (!b) {
        *a = leati_rank_sum(g, sums[0]);
        return;
    }
    const leati_desc *desc = leati_graph_desc(g, sums[0]);
    const int64_t channels = desc->shape[0];
    leati_value both = leati_rank_sum(g, leati_concat(g, 2, sums, 0));
    *a = leati_slice_axis(g, both, 0, 0, channels);
    *b = leati_slice_axis(g, both, 0, channels, channels);
}

/* Normalizes in training by the steps that count, as current Keras does.  The mask has the shape of x. */
static leati_value normalise_masked(const leati_layer *layer, leati_lowering *lowering, const weights *w,
                                    leati_value x, leati_value mask) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_eltwise root = {.function = LEATI_FN_POW, .a = -0.5f};
    leati_value weighted = leati_mul(g, x, mask), statistics[3] = {LEATI_NONE};
    leati_value count = mask, sum = weighted;
    sum_both(c, lowering, &count, &sum);
    count = leati_linear(g, count, 1.0f, LEATI_EPSILON);
    statistics[1] = leati_div(g, sum, count);
    leati_value square = leati_function_of(g, leati_sub(g, weighted, statistics[1]), LEATI_FN_SQUARE);
    square = leati_mul(g, square, mask);
    sum_both(c, lowering, &square, NULL);
    statistics[2] = leati_div(g, square, count);
    leati_value inverse = leati_eltwise_of(g, leati_linear(g, statistics[2], 1.0f, (float)c->epsilon), root);
    leati_value y = leati_mul(g, leati_sub(g, x, statistics[1]), inverse);
    if (w->gamma != LEATI_NONE) y = leati_mul(g, y, w->gamma);
    if (w->beta != LEATI_NONE) y = leati_add(g, y, w->beta);
    update_averages(layer, lowering, w, x, statistics);
    return y;
}

/* Normalizes by the statistics of the batch.  mask: LEATI_NONE, or in the shape of x. */
static leati_value normalise_batch(const leati_layer *layer, leati_lowering *lowering, const weights *w,
                                   leati_value x, leati_value mask) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_attrs attrs = {.batch_norm = {.epsilon = (float)c->epsilon}};
    if (mask != LEATI_NONE && leati_lowering_trains(lowering, layer))
        return normalise_masked(layer, lowering, w, x, mask);
    attrs.batch_norm.synchronized = is_synchronized(c, lowering);
    leati_value args[] = {x, w->gamma, w->beta}, out[LEATI_MAX_OUTPUTS];
    leati_value y = leati_graph_node(g, LEATI_OP_BATCH_NORM, &attrs, 3, args, out);
    if (y >= 0 && leati_lowering_trains(lowering, layer)) update_averages(layer, lowering, w, x, out);
    return y;
}

/* Normalizes along the last axis.  mask: LEATI_NONE, or in the shape of x. */
static leati_value normalise(const leati_layer *layer, leati_lowering *lowering, leati_value x,
                             leati_value mask) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    weights w = weights_of(layer, lowering);
    leati_attrs attrs = {.batch_norm = {.epsilon = (float)c->epsilon}};
    const int64_t rows = lowering->apart_rows;
    const bool infers = (c->as_keras3 || c->as_tf_keras) && !leati_lowering_trains(lowering, layer);
    if (!leati_lowering_in_training(lowering) || infers) {
        leati_value apply_inputs[] = {x, w.gamma, w.beta, w.mean, w.variance};
        return leati_graph_node(g, LEATI_OP_BATCH_NORM_APPLY, &attrs, 5, apply_inputs, NULL);
    }
    if (rows <= 1) return normalise_batch(layer, lowering, &w, x, mask);
    if (leati_graph_desc(g, x)->rank < 2 || leati_graph_desc(g, x)->shape[0] % rows != 0)
        return leati_graph_fail(g, LEAT_ESHAPE, "expected %lld rows of each sample", (long long)rows);
    w.gamma = for_each_row(g, w.gamma, rows);
    w.beta = for_each_row(g, w.beta, rows);
    if (mask != LEATI_NONE) mask = rows_as_channels(g, mask, rows, false);
    leati_value y = normalise_batch(layer, lowering, &w, rows_as_channels(g, x, rows, false), mask);
    return rows_as_channels(g, y, rows, true);
}

/* Returns the mask in the shape of x if the layer uses it: current Keras uses one with all axes of x but the last. */
static leati_value mask_of(const config *c, const leati_lowering *lowering, leati_value x) {
    leati_graph *g = lowering->graph;
    const leati_value mask = lowering->input_masks[0];
    const leati_desc *desc = leati_graph_desc(g, x);
    bool used = c->as_keras3 && lowering->mode == LEATI_TRAIN && mask != LEATI_NONE &&
                leati_graph_desc(g, mask)->rank == desc->rank - 1;
    if (!used) return LEATI_NONE;
    int64_t dims[LEAT_MAX_RANK];
    memcpy(dims, desc->shape, sizeof dims);
    return leati_broadcast(g, leati_expand_last(g, mask), desc->rank, dims);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    leati_graph *g = lowering->graph;
    int rank = leati_graph_desc(g, inputs[0])->rank, axis = axis_of(layer->config, rank);
    leati_value mask = mask_of(layer->config, lowering, inputs[0]);
    int32_t swap[LEAT_MAX_RANK]; /* exchanges the axis and the last one; its own inverse */
    (void)input_count;
    if (axis == rank - 1) {
        outputs[0] = normalise(layer, lowering, inputs[0], mask);
        return;
    }
    for (int32_t i = 0; i < rank; ++i) swap[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    if (mask != LEATI_NONE) mask = leati_transpose(g, mask, swap);
    leati_value y = normalise(layer, lowering, leati_transpose(g, inputs[0], swap), mask);
    outputs[0] = leati_transpose(g, y, swap);
}

LEATI_LAYER_TYPE(batch_normalization, "BatchNormalization", "batch_normalization", config, fields,
                 LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED, .steps = LEATI_STEPS_BY_AXIS, .infer = infer,
                 .build = build, .lower = lower);
