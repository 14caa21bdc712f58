/* SPDX-License-Identifier: Apache-2.0 */
/* ConvLSTM2D: an LSTM whose products are convolutions.  The convolution of the input is computed once for all steps;
 * that of the state has padding "same".
 * Source: keras.layers.ConvLSTM2D; Shi et al. 2015 (arXiv 1506.04214), without peepholes. */
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

static const leati_field fields[] = {LEATI_RECURRENCE_FIELDS(config),
                                     LEATI_RECURRENCE_FIELD(config, unroll, LEATI_FIELD_BOOL, "false"),
                                     LEATI_RECURRENCE_FIELD(config, activity_regularizer,
                                                            LEATI_FIELD_REGULARIZER, "null"),
                                     LEATI_INT_FIELD(config, filters, 1, NULL),
                                     LEATI_TUPLE_FIELD(config, kernel_size, 2, NULL),
                                     LEATI_TUPLE_FIELD(config, strides, 2, "1"),
                                     LEATI_TUPLE_FIELD(config, dilation_rate, 2, "1"),
                                     LEATI_PADDING_FIELD(config),
                                     LEATI_DATA_FORMAT_FIELD(config),
                                     LEATI_FIELD(config, activation, LEATI_FIELD_ACTIVATION, "\"tanh\""),
                                     LEATI_FIELD(config, recurrent_activation, LEATI_FIELD_ACTIVATION,
                                                 "\"hard_sigmoid\""),
                                     LEATI_FIELD(config, use_bias, LEATI_FIELD_BOOL, "true"),
                                     LEATI_FIELD(config, unit_forget_bias, LEATI_FIELD_BOOL, "true"),
                                     LEATI_WEIGHT_FIELDS(config, kernel, "kernel", "\"glorot_uniform\""),
                                     LEATI_WEIGHT_FIELDS(config, recurrent, "recurrent", "\"orthogonal\""),
                                     LEATI_WEIGHT_FIELDS(config, bias, "bias", "\"zeros\""),
                                     LEATI_FIELD(config, dropout, LEATI_FIELD_FLOAT, "0.0"),
                                     LEATI_FIELD(config, recurrent_dropout, LEATI_FIELD_FLOAT, "0.0"),
                                     {.key = NULL}};

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
    leati_shape step = {.rank = input->rank - 1, .dims = {input->dims[0]}};
    if (input->rank != 5) return leati_shape_unexpected(input, "a sequence of images, of rank 5", err);
    memcpy(step.dims + 1, input->dims + 2, 3 * sizeof step.dims[0]);
    return leati_image_shape(&step, 2, c->data_format, image, err);
}

static leat_status shapes(const leati_layer *layer, const leati_shape *input, leati_shape *output,
                          leati_shape *states, leat_error *err) {
    const config *c = layer->config;
    leati_slide slide = slide_of(c);
    leati_shape image = {0};
    LEATI_TRY(step_image(c, input, &image, err));
    LEATI_TRY(leati_slide_infer(&slide, &image, err));
    image.dims[3] = c->filters;
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

static const leati_initializer_type bias_type = {.class_name = "ConvLSTM2D's bias",
                                                 .seed_offset = SIZE_MAX,
                                                 .draw = draw_bias};

static leat_status add_weights(leati_layer *layer, int64_t channels, leat_error *err) {
    config *c = layer->config;
    const int64_t *size = c->kernel_size.values, width = 4 * c->filters;
    leati_weight_config bias = c->bias;
    c->forget_bias = (leati_initializer){&bias_type, c};
    if (c->unit_forget_bias && bias.initializer) bias.initializer = &c->forget_bias;
    LEATI_TRY(leati_weight_config_add(layer, "kernel", &c->kernel, 4,
                                      (int64_t[]){size[0], size[1], channels, width}, err));
    LEATI_TRY(leati_weight_config_add(layer, "recurrent_kernel", &c->recurrent, 4,
                                      (int64_t[]){size[0], size[1], c->filters, width}, err));
    return c->use_bias ? leati_weight_config_add(layer, "bias", &bias, 1, &width, err) : LEAT_OK;
}

/* ---- Lowering ---- */

/* The values that all steps share. */
typedef struct cell {
    const config *config;
    leati_value recurrent, h_mask; /* (4, N, H, W, F) or LEATI_NONE */
} cell;

/* Reshape images (N, T, ...) to (N T, ...), and back. */
static leati_value fold(leati_graph *g, leati_value x) {
    leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank != 5) return LEATI_INVALID;
    desc.shape[1] *= desc.shape[0];
    return leati_reshape(g, x, 4, desc.shape + 1);
}

static leati_value unfold(leati_graph *g, leati_value x, int64_t batch, int64_t steps) {
    const leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank != 4) return LEATI_INVALID;
    return leati_reshape(g, x, 5, (int64_t[]){batch, steps, desc.shape[1], desc.shape[2], desc.shape[3]});
}

/* Returns dropout factors for each gate, (4, N, H, W, C); LEATI_NONE without dropout. */
static leati_value dropout_mask(leati_lowering *lowering, double rate, const int64_t *image,
                                uint64_t stream) {
    const int64_t dims[] = {4, image[0], image[1], image[2], image[3]};
    if (lowering->mode != LEATI_TRAIN || !(rate > 0 && rate < 1)) return LEATI_NONE;
    return leati_dropout(lowering->graph, leati_full(lowering->graph, 5, dims, 1.0f), (float)rate, 0, stream);
}

/* Returns the convolution of x by the kernels of all gates; with factors, each gate has its own convolution of x
 * times its factors.  Each sample's factors apply to `repeat` images of x. */
static leati_value convolve(leati_graph *g, const leati_slide *slide, leati_value x, leati_value factors,
                            int64_t repeat, leati_value kernel, leati_value bias) {
    leati_value parts[4];
    if (factors == LEATI_NONE) return leati_slide_convolve(slide, g, x, kernel, bias, 1);
    const leati_desc f = *leati_graph_desc(g, factors);
    const int64_t single[] = {f.shape[1], 1, f.shape[2], f.shape[3], f.shape[4]};
    const int64_t repeated[] = {f.shape[1], repeat, f.shape[2], f.shape[3], f.shape[4]};
    for (int i = 0; i < 4; ++i) {
        leati_value gate_factors = leati_reshape(g, leati_slice_axis(g, factors, 0, i, 1), 5, single);
        gate_factors = fold(g, leati_broadcast(g, gate_factors, 5, repeated));
        leati_value gate_bias = bias == LEATI_NONE ? bias : leati_steps_gates(g, bias, 4, i, 1);
        parts[i] = leati_slide_convolve(slide, g, leati_mul(g, x, gate_factors),
                                        leati_steps_gates(g, kernel, 4, i, 1), gate_bias, 1);
    }
    return leati_concat(g, 4, parts, 3);
}

static void step(const void *context, leati_graph *g, leati_value x, const leati_value *before,
                 leati_value *after) {
    const cell *c = context;
    static const leati_ints once = {.count = 2, .values = {1, 1}};
    const leati_slide same = {&c->config->kernel_size, &once, NULL, LEATI_PADDING_SAME};
    leati_value h = convolve(g, &same, before[0], c->h_mask, 1, c->recurrent, LEATI_NONE);
    leati_steps_lstm(g, leati_add(g, x, h), &c->config->activation, &c->config->recurrent_activation, before,
                     after);
}

static void run(const leati_layer *layer, leati_lowering *lowering, leati_scan_call *call) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_slide slide = slide_of(c);
    const int64_t batch = leati_graph_desc(g, call->x)->shape[0],
                  steps = leati_graph_desc(g, call->x)->shape[1];
    leati_value x = leati_image_value(g, fold(g, call->x), c->data_format);
    leati_desc image = *leati_graph_desc(g, x);
    image.shape[0] = batch;
    leati_value x_mask = dropout_mask(lowering, c->dropout, image.shape, lowering->stream);
    leati_value z = convolve(g, &slide, x, x_mask, steps, leati_layer_weight(layer, lowering, 0),
                             c->use_bias ? leati_layer_weight(layer, lowering, 2) : LEATI_NONE);
    leati_desc state = *leati_graph_desc(g, z);
    state.shape[0] = batch;
    state.shape[3] = c->filters;
    cell of = {c, leati_layer_weight(layer, lowering, 1),
               dropout_mask(lowering, c->recurrent_dropout, state.shape, lowering->stream + 1)};
    for (int i = 0; i < 2; ++i)
        call->initial[i] = call->initial[i] == LEATI_NONE
                               ? leati_full(g, 4, state.shape, 0.0f)
                               : leati_image_value(g, call->initial[i], c->data_format);
    leati_steps_run(g, call, unfold(g, z, batch, steps), 2, step, &of);
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
    if (image.dims[3] < 1) return leati_shape_unexpected(&inputs[0], "images whose channels are known", err);
    LEATI_TRY(add_weights(layer, image.dims[3], err));
    return leati_recurrence_build(layer, &scan, inputs, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    leati_recurrence_lower(layer, &scan, lowering, input_count, inputs, outputs);
}

LEATI_LAYER_TYPE(conv_lstm2d, "ConvLSTM2D", "conv_lst_m2d", config, fields, .min_inputs = 1, .max_inputs = 3,
                 .masking = LEATI_MASK_COMPUTED, .check = check, .infer = infer, .build = build,
                 .weight_path = leati_recurrent_weight_path, .lower = lower);
