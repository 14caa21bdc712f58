/* SPDX-License-Identifier: Apache-2.0 */
/* ConvLSTM1D to ConvLSTM3D: LSTMs whose products are convolutions.  The convolution of the input is computed once for
 * all steps; the convolution of the state has padding "same".
 * Source: keras.layers.ConvLSTM2D, ConvLSTM1D and ConvLSTM3D of current Keras; Shi et al. 2015 (arXiv 1506.04214),
 * without peepholes. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/convolutional/conv_common.h"
#include "nn/layers/rnn/rnn_unrolled.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_recurrence recurrence;
    int64_t filters;
    leati_ints kernel_size, strides, dilation_rate;
    int32_t padding, data_format;
    leati_activation activation, recurrent_activation;
    bool use_bias, unit_forget_bias;
    leati_weight_config kernel, recurrent, bias;
    double dropout, recurrent_dropout;
    leati_initializer forget_bias; /* initialized by build */
} config;

#define FIELDS(spatial)                                                                                      \
    {                                                                                                        \
        LEATI_RECURRENCE_FIELDS(config), LEATI_RECURRENCE_FIELD(config, unroll, LEATI_FIELD_BOOL, "false"),  \
            LEATI_RECURRENCE_FIELD(config, activity_regularizer, LEATI_FIELD_REGULARIZER, "null"),           \
            LEATI_INT_FIELD(config, filters, 1, NULL),                                                       \
            LEATI_TUPLE_FIELD(config, kernel_size, spatial, NULL),                                           \
            LEATI_TUPLE_FIELD(config, strides, spatial, "1"),                                                \
            LEATI_TUPLE_FIELD(config, dilation_rate, spatial, "1"), LEATI_PADDING_FIELD(config),             \
            LEATI_DATA_FORMAT_FIELD(config),                                                                 \
            LEATI_FIELD(config, activation, LEATI_FIELD_ACTIVATION, "\"tanh\""),                             \
            LEATI_FIELD(config, recurrent_activation, LEATI_FIELD_ACTIVATION, "\"hard_sigmoid\""),           \
            LEATI_FIELD(config, use_bias, LEATI_FIELD_BOOL, "true"),                                         \
            LEATI_FIELD(config, unit_forget_bias, LEATI_FIELD_BOOL, "true"),                                 \
            LEATI_WEIGHT_FIELDS(config, kernel, "kernel", "\"glorot_uniform\""),                             \
            LEATI_WEIGHT_FIELDS(config, recurrent, "recurrent", "\"orthogonal\""),                           \
            LEATI_WEIGHT_FIELDS(config, bias, "bias", "\"zeros\""),                                          \
            LEATI_FIELD(config, dropout, LEATI_FIELD_FLOAT, "0.0"),                                          \
            LEATI_FIELD(config, recurrent_dropout, LEATI_FIELD_FLOAT, "0.0"), {                              \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field fields1d[] = FIELDS(1), fields2d[] = FIELDS(2), fields3d[] = FIELDS(3);

static leati_slide slide_of(const config *c) {
    return (leati_slide){&c->kernel_size, &c->strides, &c->dilation_rate, c->padding};
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    leati_slide slide = slide_of(c);
    c->recurrence.state_count = 2;
    c->dropout = leati_dropout_rate(c->dropout);
    c->recurrent_dropout = leati_dropout_rate(c->recurrent_dropout);
    if (c->recurrence.unroll)
        return leati_fail(err, LEAT_EINVAL, "unroll: expected false, as in Keras, received true");
    if (c->data_format == LEATI_CHANNELS_FIRST &&
        (leati_activation_reads_last_axis(&c->activation) ||
         leati_activation_reads_last_axis(&c->recurrent_activation)))
        return leati_fail(
            err, LEAT_ENOTSUP,
            "expected element-wise activations with \"channels_first\", received one over the last axis");
    return leati_slide_check(&slide, err);
}

/* ---- Shapes and weights ---- */

static leat_status step_image(const config *c, const leati_shape *input, leati_shape *image,
                              leat_error *err) {
    static const char *const expected[] = {"a sequence of sequences, of rank 4",
                                           "a sequence of images, of rank 5",
                                           "a sequence of volumes, of rank 6"};
    const int spatial = c->kernel_size.count;
    leati_shape step = {.rank = input->rank - 1, .dims = {input->dims[0]}};
    if (input->rank != spatial + 3) return leati_shape_unexpected(input, expected[spatial - 1], err);
    memcpy(step.dims + 1, input->dims + 2, (size_t)(spatial + 1) * sizeof step.dims[0]);
    return leati_image_shape(&step, spatial, c->data_format, image, err);
}

static leat_status shapes(const leati_layer *layer, const leati_shape *input, leati_shape *output,
                          leati_shape *states, leat_error *err) {
    const config *c = layer->config;
    leati_slide slide = slide_of(c);
    leati_shape image = {0};
    LEATI_TRY(step_image(c, input, &image, err));
    LEATI_TRY(leati_slide_infer(&slide, &image, err));
    image.dims[image.rank - 1] = c->filters;
    *output = leati_image_shape_back(&image, c->data_format);
    states[0] = states[1] = *output;
    return LEAT_OK;
}

static leat_status draw_bias(const void *layer_config, int rank, const int64_t *dims, leat_rng *rng,
                             float *out, leat_error *err) {
    const config *c = layer_config;
    (void)rank;
    return leati_forget_bias_draw(c->bias.initializer, c->filters, dims[0], rng, out, err);
}

static const leati_initializer_type bias_type = {.class_name = "ConvLSTM's bias",
                                                 .seed_offset = SIZE_MAX,
                                                 .draw = draw_bias};

/* Declares a kernel (kernel_size..., in, 4 filters). */
static leat_status add_kernel(leati_layer *layer, const char *name, const leati_weight_config *weight,
                              int64_t in, leat_error *err) {
    const config *c = layer->config;
    const int spatial = c->kernel_size.count;
    int64_t dims[LEAT_MAX_RANK];
    memcpy(dims, c->kernel_size.values, sizeof dims);
    dims[spatial] = in;
    dims[spatial + 1] = 4 * c->filters;
    return leati_weight_config_add(layer, name, weight, spatial + 2, dims, err);
}

static leat_status add_weights(leati_layer *layer, int64_t channels, leat_error *err) {
    config *c = layer->config;
    const int64_t width = 4 * c->filters;
    leati_weight_config bias = c->bias;
    c->forget_bias = (leati_initializer){.type = &bias_type, .config = c};
    if (c->unit_forget_bias && bias.initializer) bias.initializer = &c->forget_bias;
    LEATI_TRY(add_kernel(layer, "kernel", &c->kernel, channels, err));
    LEATI_TRY(add_kernel(layer, "recurrent_kernel", &c->recurrent, c->filters, err));
    return c->use_bias ? leati_weight_config_add(layer, "bias", &bias, 1, &width, err) : LEAT_OK;
}

/* ---- Lowering ---- */

/* The values that all steps share. */
typedef struct cell {
    const config *config;
    const leati_lowering *lowering;
    leati_value recurrent, h_mask; /* (4, N, spatial..., F) or LEATI_NONE */
    leati_value zeros[2];          /* initial states that are 0; LEATI_INVALID: there are none */
} cell;

/* Reshape images (T, N, ...) to (T N, ...), and back. */
static leati_value fold(leati_graph *g, leati_value x) {
    leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank < 4) return LEATI_INVALID;
    desc.shape[1] *= desc.shape[0];
    return leati_reshape(g, x, desc.rank - 1, desc.shape + 1);
}

static leati_value unfold(leati_graph *g, leati_value x, int64_t first, int64_t second) {
    const leati_desc desc = *leati_graph_desc(g, x);
    int64_t dims[LEAT_MAX_RANK + 1] = {first, second};
    if (desc.rank < 3) return LEATI_INVALID;
    memcpy(dims + 2, desc.shape + 1, (size_t)(desc.rank - 1) * sizeof dims[0]);
    return leati_reshape(g, x, desc.rank + 1, dims);
}

/* Returns dropout factors for each gate, (4, N, spatial..., C); LEATI_NONE without dropout. */
static leati_value dropout_mask(leati_lowering *lowering, double rate, const leati_desc *image,
                                uint64_t stream) {
    int64_t dims[LEAT_MAX_RANK + 1] = {4};
    if (!leati_lowering_in_training(lowering) || !(rate > 0 && rate < 1)) return LEATI_NONE;
    memcpy(dims + 1, image->shape, (size_t)image->rank * sizeof dims[0]);
    leati_value ones = leati_full(lowering->graph, image->rank + 1, dims, 1.0f);
    return leati_dropout(lowering->graph, ones, (float)rate, 0, stream);
}

/* Returns the convolution of x by the kernels of all gates; with factors, each gate has its own convolution of x
 * times its factors.  x has `repeat` images of each sample, one of all samples after the other. */
static leati_value convolve(leati_graph *g, const leati_slide *slide, leati_value x, leati_value factors,
                            int64_t repeat, leati_value kernel, leati_value bias) {
    leati_value parts[4];
    if (factors == LEATI_NONE) return leati_slide_convolve(slide, g, x, kernel, bias, 1);
    const leati_desc f = *leati_graph_desc(g, factors);
    leati_desc repeated = f; /* (repeat, N, spatial..., C) */
    if (f.rank < 2) return LEATI_INVALID;
    repeated.shape[0] = repeat;
    for (int i = 0; i < 4; ++i) {
        leati_value gate_factors = leati_slice_axis(g, factors, 0, i, 1);
        gate_factors = fold(g, leati_broadcast(g, gate_factors, f.rank, repeated.shape));
        leati_value gate_bias = bias == LEATI_NONE ? bias : leati_steps_gates(g, bias, 4, i, 1);
        parts[i] = leati_slide_convolve(slide, g, leati_mul(g, x, gate_factors),
                                        leati_steps_gates(g, kernel, 4, i, 1), gate_bias, 1);
    }
    return leati_concat(g, 4, parts, f.rank - 2);
}

static void step(const void *context, leati_graph *g, leati_value x, const leati_value *before,
                 leati_value *after) {
    const cell *c = context;
    const leati_ints once = {.count = c->config->kernel_size.count, .values = {1, 1, 1}};
    const leati_slide same = {&c->config->kernel_size, &once, NULL, LEATI_PADDING_SAME};
    if (before[0] != c->zeros[0])
        x = leati_add(g, convolve(g, &same, before[0], c->h_mask, 1, c->recurrent, LEATI_NONE), x);
    leati_steps_lstm(c->lowering, x, &c->config->activation, &c->config->recurrent_activation,
                     before[1] != c->zeros[1] ? before[1] : LEATI_NONE, after);
}

static void run(const leati_layer *layer, leati_lowering *lowering, leati_scan_call *call) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_slide slide = slide_of(c);
    const int64_t batch = leati_graph_desc(g, call->x)->shape[0],
                  steps = leati_graph_desc(g, call->x)->shape[1];
    leati_value x = leati_image_value(g, fold(g, leati_steps_swap(g, call->x)), c->data_format);
    leati_desc image = *leati_graph_desc(g, x);
    image.shape[0] = batch;
    leati_value x_mask = dropout_mask(lowering, c->dropout, &image, lowering->stream);
    leati_value z = convolve(g, &slide, x, x_mask, steps, leati_layer_weight(layer, lowering, 0),
                             c->use_bias ? leati_layer_weight(layer, lowering, 2) : LEATI_NONE);
    leati_desc state = *leati_graph_desc(g, z);
    state.shape[0] = batch;
    state.shape[state.rank > 0 ? state.rank - 1 : 0] = c->filters;
    cell of = {c,
               lowering,
               leati_layer_weight(layer, lowering, 1),
               dropout_mask(lowering, c->recurrent_dropout, &state, lowering->stream + 1),
               {LEATI_INVALID, LEATI_INVALID}};
    for (int i = 0; i < 2; ++i) {
        const bool begins_at_zero = call->initial[i] == LEATI_NONE;
        call->initial[i] = begins_at_zero ? leati_full(g, state.rank, state.shape, 0.0f)
                                          : leati_image_value(g, call->initial[i], c->data_format);
        /* With a single step the recurrent weights would have no gradient. */
        if (begins_at_zero && steps > 1) of.zeros[i] = call->initial[i];
    }
    leati_steps_run(g, call, unfold(g, z, steps, batch), 2, step, &of);
    call->sequence =
        unfold(g, leati_image_value_back(g, fold(g, call->sequence), c->data_format), batch, steps);
    call->last = leati_image_value_back(g, call->last, c->data_format);
    for (int i = 0; i < 2; ++i) call->states[i] = leati_image_value_back(g, call->states[i], c->data_format);
}

/* ---- The layer ---- */

static const leati_scan scan = {shapes, run};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    return leati_recurrence_infer(layer, &scan, input_count, inputs, outputs, output_count, err);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    leati_shape image = {0};
    (void)input_count;
    LEATI_TRY(step_image(layer->config, &inputs[0], &image, err));
    if (image.dims[image.rank - 1] < 1)
        return leati_shape_unexpected(&inputs[0], "images whose channels are known", err);
    LEATI_TRY(add_weights(layer, image.dims[image.rank - 1], err));
    return leati_recurrence_build(layer, &scan, inputs, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    leati_recurrence_lower(layer, &scan, lowering, input_count, inputs, outputs);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    .min_inputs = 1, .max_inputs = 3, .masking = LEATI_MASK_COMPUTED, .check = check, .infer = infer,        \
    .build = build, .weight_path = leati_recurrent_weight_path, .lower = lower

LEATI_LAYER_TYPE(conv_lstm1d, "ConvLSTM1D", "conv_lstm1d", config, fields1d, COMMON_MEMBERS);
LEATI_LAYER_TYPE(conv_lstm2d, "ConvLSTM2D", "conv_lst_m2d", config, fields2d, COMMON_MEMBERS);
LEATI_LAYER_TYPE(conv_lstm3d, "ConvLSTM3D", "conv_lstm3d", config, fields3d, COMMON_MEMBERS);
