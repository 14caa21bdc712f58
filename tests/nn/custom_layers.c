/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/custom_layers.h"

#include "cmocka_all.h"

/* ---- Product ---- */

typedef struct product {
    int64_t units;
} product;

static const leat_layer_key product_keys[] = {
    {.key = "units", .kind = LEAT_KEY_INT, .offset = offsetof(product, units), .minimum = 1, .limited = true},
    {.key = "kernel_initializer", .kind = LEAT_KEY_INITIALIZER, .preset = "\"glorot_uniform\""},
    {.key = "kernel_regularizer", .kind = LEAT_KEY_REGULARIZER, .preset = "null"},
    {.key = "kernel_constraint", .kind = LEAT_KEY_CONSTRAINT, .preset = "null"},
    {.key = NULL}};

static leat_status infer_product(const void *config, int count, const leat_tensor *inputs,
                                 leat_tensor *outputs, leat_error *err) {
    (void)err, (void)count, (void)inputs;
    outputs[0].shape[outputs[0].rank - 1] = ((const product *)config)->units;
    return LEAT_OK;
}

static leat_status build_product(const void *config, int count, const leat_tensor *inputs,
                                 leat_layer_weights *weights, leat_error *err) {
    const int64_t units = ((const product *)config)->units;
    (void)count;
    const leat_layer_weight kernel = {.size = sizeof(leat_layer_weight),
                                      .name = "kernel",
                                      .rank = 2,
                                      .shape = {inputs[0].shape[inputs[0].rank - 1], units},
                                      .initializer = "kernel_initializer",
                                      .regularizer = "kernel_regularizer",
                                      .constraint = "kernel_constraint"},
                            bias = {.size = sizeof(leat_layer_weight),
                                    .name = "bias",
                                    .rank = 1,
                                    .shape = {units},
                                    .initializer = "zeros"};
    leat_status status = leat_layer_add_weight(weights, &kernel, err);
    return status == LEAT_OK ? leat_layer_add_weight(weights, &bias, err) : status;
}

static int64_t rows_of(const leat_layer_call *call) {
    const int64_t in = call->weights[0].shape[0];
    return leat_tensor_count(&call->inputs[0]) / in;
}

static leat_status run_product(const leat_layer_call *call, leat_error *err) {
    const int64_t in = call->weights[0].shape[0], units = call->weights[0].shape[1];
    const float *x = call->inputs[0].data, *kernel = call->weights[0].data, *bias = call->weights[1].data;
    float *y = call->outputs[0].data;
    (void)err;
    for (int64_t n = 0; n < rows_of(call); ++n)
        for (int64_t j = 0; j < units; ++j) {
            double sum = (double)bias[j];
            for (int64_t i = 0; i < in; ++i) sum += (double)x[n * in + i] * (double)kernel[i * units + j];
            y[n * units + j] = (float)sum;
        }
    return LEAT_OK;
}

static leat_status run_product_back(const leat_layer_call *call, leat_error *err) {
    const int64_t in = call->weights[0].shape[0], units = call->weights[0].shape[1];
    const float *x = call->inputs[0].data, *kernel = call->weights[0].data,
                *diff = call->diff_outputs[0].data;
    float *diff_x = call->diff_inputs[0].data, *diff_kernel = call->diff_weights[0].data;
    float *diff_bias = call->diff_weights[1].data;
    (void)err;
    for (int64_t n = 0; n < rows_of(call); ++n)
        for (int64_t j = 0; j < units; ++j) {
            const float d = diff[n * units + j];
            if (diff_bias) diff_bias[j] += d;
            for (int64_t i = 0; i < in; ++i) {
                if (diff_x) diff_x[n * in + i] += d * kernel[i * units + j];
                if (diff_kernel) diff_kernel[i * units + j] += d * x[n * in + i];
            }
        }
    return LEAT_OK;
}

leat_layer_definition custom_product(void) {
    leat_layer_definition d = leat_layer_definition_default();
    d.class_name = "Product";
    d.keys = product_keys;
    d.config_bytes = sizeof(product);
    d.infer = infer_product;
    d.build = build_product;
    d.forward = run_product;
    d.backward = run_product_back;
    return d;
}

/* ---- times ---- */

typedef struct times {
    double factor;
} times;

static const leat_layer_key times_keys[] = {
    {.key = "factor", .kind = LEAT_KEY_FLOAT, .offset = offsetof(times, factor), .preset = "2.0"},
    {.key = NULL}};

static void multiply(const leat_layer_call *call, const leat_tensor *from, const leat_tensor *to) {
    const float factor = (float)((const times *)call->config)->factor;
    for (int64_t i = 0; i < leat_tensor_count(from); ++i)
        ((float *)to->data)[i] = factor * ((const float *)from->data)[i];
}

static leat_status run_times(const leat_layer_call *call, leat_error *err) {
    (void)err;
    multiply(call, &call->inputs[0], &call->outputs[0]);
    return LEAT_OK;
}

static leat_status run_times_back(const leat_layer_call *call, leat_error *err) {
    (void)err;
    if (call->diff_inputs[0].data) multiply(call, &call->diff_outputs[0], &call->diff_inputs[0]);
    return LEAT_OK;
}

leat_layer_definition custom_times(void) {
    leat_layer_definition d = leat_layer_definition_default();
    d.class_name = "times";
    d.keys = times_keys;
    d.config_bytes = sizeof(times);
    d.supports_masking = true;
    d.forward = run_times;
    d.backward = run_times_back;
    return d;
}

/* ---- SumAndDifference ---- */

static leat_status run_sum(const leat_layer_call *call, leat_error *err) {
    const float *a = call->inputs[0].data, *b = call->inputs[1].data;
    float *sum = call->outputs[0].data, *difference = call->outputs[1].data;
    (void)err;
    for (int64_t i = 0; i < leat_tensor_count(&call->inputs[0]); ++i) {
        sum[i] = a[i] + b[i];
        difference[i] = a[i] - b[i];
    }
    return LEAT_OK;
}

static leat_status run_sum_back(const leat_layer_call *call, leat_error *err) {
    const float *sum = call->diff_outputs[0].data, *difference = call->diff_outputs[1].data;
    float *a = call->diff_inputs[0].data, *b = call->diff_inputs[1].data;
    (void)err;
    for (int64_t i = 0; i < leat_tensor_count(&call->inputs[0]); ++i) {
        if (a) a[i] = sum[i] + difference[i];
        if (b) b[i] = sum[i] - difference[i];
    }
    return LEAT_OK;
}

leat_layer_definition custom_sum_and_difference(void) {
    leat_layer_definition d = leat_layer_definition_default();
    d.class_name = "SumAndDifference";
    d.min_inputs = d.max_inputs = d.outputs = 2;
    d.forward = run_sum;
    d.backward = run_sum_back;
    return d;
}

leat_registry *custom_registry(void) {
    const leat_layer_definition all[] = {custom_product(), custom_times(), custom_sum_and_difference()};
    leat_registry *registry = NULL;
    leat_error err = {0};
    if (leat_registry_create(&registry, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        if (leat_registry_add(registry, &all[i], &err) != LEAT_OK) fail_msg("%s", err.message);
    return registry;
}
