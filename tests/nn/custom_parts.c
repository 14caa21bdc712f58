/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/custom_parts.h"

#include <math.h>

#include "cmocka_all.h"

/* A configuration with one number. */
typedef struct number {
    double value;
} number;

#define NUMBER_KEYS(name, key_, preset_)                                                                     \
    static const leat_layer_key name[] = {                                                                   \
        {.key = (key_), .kind = LEAT_KEY_FLOAT, .offset = offsetof(number, value), .preset = (preset_)},     \
        {.key = NULL}}

static float number_of(const void *config) {
    return (float)((const number *)config)->value;
}

/* ---- Losses ---- */

static leat_status mse(const leat_loss_call *call, leat_error *err) {
    const float *t = call->y_true->data, *p = call->y_pred->data;
    (void)err;
    for (int64_t i = 0; i < call->rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < call->row_elements; ++j) {
            const int64_t k = i * call->row_elements + j;
            sum += (p[k] - t[k]) * (p[k] - t[k]);
        }
        call->values[i] = number_of(call->config) * sum / (float)call->row_elements;
    }
    return LEAT_OK;
}

static leat_status mse_gradient(const leat_loss_call *call, leat_error *err) {
    const float *t = call->y_true->data, *p = call->y_pred->data;
    (void)err;
    for (int64_t k = 0; k < call->rows * call->row_elements; ++k)
        call->gradient[k] = number_of(call->config) * 2 * (p[k] - t[k]) / (float)call->row_elements;
    return LEAT_OK;
}

leat_loss_definition custom_mse(void) {
    NUMBER_KEYS(keys, "factor", "1");
    leat_loss_definition d = leat_loss_definition_default();
    d.name = "MyMse";
    d.keys = keys;
    d.config_bytes = sizeof(number);
    d.values = mse;
    d.gradient = mse_gradient;
    return d;
}

static leat_status classes(const leat_loss_call *call, leat_error *err) {
    const float *t = call->y_true->data, *p = call->y_pred->data;
    (void)err;
    for (int64_t i = 0; i < call->rows; ++i)
        call->values[i] = -logf(p[i * call->row_elements + (int64_t)t[i]]);
    return LEAT_OK;
}

static leat_status classes_gradient(const leat_loss_call *call, leat_error *err) {
    const float *t = call->y_true->data, *p = call->y_pred->data;
    (void)err;
    for (int64_t i = 0; i < call->rows; ++i)
        for (int64_t j = 0; j < call->row_elements; ++j) {
            const int64_t k = i * call->row_elements + j;
            call->gradient[k] = j == (int64_t)t[i] ? -1 / p[k] : 0;
        }
    return LEAT_OK;
}

leat_loss_definition custom_classes(void) {
    leat_loss_definition d = leat_loss_definition_default();
    d.name = "my_classes";
    d.class_numbers = true;
    d.values = classes;
    d.gradient = classes_gradient;
    return d;
}

/* ---- Metrics ---- */

static void reset(const void *config, double *state, int64_t count, void *user) {
    (void)user, (void)count;
    state[0] = ((const number *)config)->value;
    state[1] = 0;
}

/* state: the weighted sum of errors with the offset in front; the sum of weights */
static leat_status update(const leat_metric_call *call, leat_error *err) {
    const float *t = call->y_true->data, *p = call->y_pred->data,
                *w = call->sample_weight ? call->sample_weight->data : NULL;
    (void)err;
    for (int64_t i = 0; i < leat_tensor_count(call->y_pred); ++i) {
        const double weight = w ? (double)w[i] : 1;
        call->state[0] += weight * fabs((double)p[i] - (double)t[i]);
        call->state[1] += weight;
    }
    return LEAT_OK;
}

static double result(const void *config, const double *state, int64_t count, void *user) {
    const double offset = ((const number *)config)->value;
    (void)user, (void)count;
    return (state[0] - offset) / state[1] + offset;
}

leat_metric_definition custom_error(void) {
    NUMBER_KEYS(keys, "offset", "0");
    leat_metric_definition d = leat_metric_definition_default();
    d.name = "MyError";
    d.keys = keys;
    d.config_bytes = sizeof(number);
    d.state_count = 2;
    d.reset = reset;
    d.update = update;
    d.result = result;
    return d;
}

/* ---- Activations ---- */

static leat_status run_tanh(const leat_activation_call *call, leat_error *err) {
    (void)err;
    for (int64_t i = 0; i < call->rows * call->width; ++i) call->y[i] = tanhf(call->x[i]);
    return LEAT_OK;
}

static leat_status run_tanh_back(const leat_activation_call *call, leat_error *err) {
    (void)err;
    for (int64_t i = 0; i < call->rows * call->width; ++i)
        call->diff_x[i] = call->diff_y[i] * (1 - call->y[i] * call->y[i]);
    return LEAT_OK;
}

leat_activation_definition custom_tanh(void) {
    leat_activation_definition d = leat_activation_definition_default();
    d.name = "my_tanh";
    d.forward = run_tanh;
    d.backward = run_tanh_back;
    return d;
}

static void centre(const float *from, float *to, int64_t rows, int64_t width, float factor) {
    for (int64_t i = 0; i < rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < width; ++j) sum += from[i * width + j];
        for (int64_t j = 0; j < width; ++j)
            to[i * width + j] = factor * (from[i * width + j] - sum / (float)width);
    }
}

static leat_status run_rows(const leat_activation_call *call, leat_error *err) {
    (void)err;
    centre(call->x, call->y, call->rows, call->width, number_of(call->config));
    return LEAT_OK;
}

static leat_status run_rows_back(const leat_activation_call *call, leat_error *err) {
    (void)err;
    centre(call->diff_y, call->diff_x, call->rows, call->width, number_of(call->config));
    return LEAT_OK;
}

leat_activation_definition custom_rows(void) {
    NUMBER_KEYS(keys, "factor", "1");
    leat_activation_definition d = leat_activation_definition_default();
    d.name = "MyRows";
    d.keys = keys;
    d.config_bytes = sizeof(number);
    d.whole_rows = true;
    d.forward = run_rows;
    d.backward = run_rows_back;
    return d;
}

/* ---- Initializers, regularizers, constraints ---- */

static leat_status fill(const leat_initializer_call *call, leat_error *err) {
    const double low = -0.05, high = ((const number *)call->config)->value;
    (void)err;
    for (int64_t i = 0; i < call->count; ++i)
        call->weight[i] = (float)(low + (high - low) * leat_rng_uniform(call->rng));
    return LEAT_OK;
}

leat_initializer_definition custom_uniform(void) {
    NUMBER_KEYS(keys, "maxval", "0.05");
    leat_initializer_definition d = leat_initializer_definition_default();
    d.name = "MyUniform";
    d.keys = keys;
    d.config_bytes = sizeof(number);
    d.fill = fill;
    return d;
}

static leat_status penalty(leat_regularizer_call *call, leat_error *err) {
    (void)err;
    for (int64_t i = 0; i < call->count; ++i)
        call->penalty += (double)number_of(call->config) * (double)call->x[i] * (double)call->x[i];
    return LEAT_OK;
}

static leat_status penalty_gradient(leat_regularizer_call *call, leat_error *err) {
    (void)err;
    for (int64_t i = 0; i < call->count; ++i) call->gradient[i] = 2 * number_of(call->config) * call->x[i];
    return LEAT_OK;
}

leat_regularizer_definition custom_l2(void) {
    NUMBER_KEYS(keys, "l2", "0.01");
    leat_regularizer_definition d = leat_regularizer_definition_default();
    d.name = "MyL2";
    d.keys = keys;
    d.config_bytes = sizeof(number);
    d.penalty = penalty;
    d.gradient = penalty_gradient;
    return d;
}

static leat_status max_norm(const leat_constraint_call *call, leat_error *err) {
    const float most = number_of(call->config);
    const int64_t rows = call->shape[0], width = call->count / rows;
    (void)err;
    for (int64_t j = 0; j < width; ++j) {
        float norm = 0;
        for (int64_t i = 0; i < rows; ++i) norm += call->weight[i * width + j] * call->weight[i * width + j];
        norm = sqrtf(norm);
        const float desired = fminf(norm, most);
        for (int64_t i = 0; i < rows; ++i) call->weight[i * width + j] *= desired / (1e-7f + norm);
    }
    return LEAT_OK;
}

leat_constraint_definition custom_max_norm(void) {
    NUMBER_KEYS(keys, "max_value", "2");
    leat_constraint_definition d = leat_constraint_definition_default();
    d.name = "MyMaxNorm";
    d.keys = keys;
    d.config_bytes = sizeof(number);
    d.apply = max_norm;
    return d;
}

/* ---- Optimizers ---- */

typedef struct adam {
    double beta_1, beta_2, epsilon;
} adam;

static const leat_layer_key adam_keys[] = {
    {.key = "beta_1", .kind = LEAT_KEY_FLOAT, .offset = offsetof(adam, beta_1), .preset = "0.9"},
    {.key = "beta_2", .kind = LEAT_KEY_FLOAT, .offset = offsetof(adam, beta_2), .preset = "0.999"},
    {.key = "epsilon", .kind = LEAT_KEY_FLOAT, .offset = offsetof(adam, epsilon), .preset = "1e-7"},
    {.key = NULL}};

static leat_status adam_update(const leat_optimizer_call *call, leat_error *err) {
    const adam *a = call->config;
    const double t = (double)call->iterations + 1;
    const float b1 = (float)a->beta_1, b2 = (float)a->beta_2,
                rate = (float)(call->learning_rate * sqrt(1 - pow(a->beta_2, t)) / (1 - pow(a->beta_1, t)));
    (void)err;
    for (int64_t i = 0; i < call->count; ++i) {
        const float g = call->gradient[i];
        call->slots[0][i] = b1 * call->slots[0][i] + (1 - b1) * g;
        call->slots[1][i] = b2 * call->slots[1][i] + (1 - b2) * g * g;
        call->weight[i] -= rate * call->slots[0][i] / (sqrtf(call->slots[1][i]) + (float)a->epsilon);
    }
    return LEAT_OK;
}

leat_optimizer_definition custom_adam(void) {
    static const char *const slots[] = {"m", "v", NULL};
    leat_optimizer_definition d = leat_optimizer_definition_default();
    d.name = "MyAdam";
    d.keys = adam_keys;
    d.config_bytes = sizeof(adam);
    d.slots = slots;
    d.update = adam_update;
    return d;
}

static leat_status normalized_update(const leat_optimizer_call *call, leat_error *err) {
    double sum = 0;
    for (int64_t i = 0; i < call->count; ++i) sum += (double)call->gradient[i] * (double)call->gradient[i];
    if (call->rank < 1 || call->rank > 2)
        return leat_error_set(err, LEAT_EUSER, "expected a weight of rank 1 or 2");
    for (int64_t i = 0; i < call->count; ++i)
        call->weight[i] -= (float)call->learning_rate * call->gradient[i] / (float)sqrt(sum);
    return LEAT_OK;
}

leat_optimizer_definition custom_normalized(void) {
    leat_optimizer_definition d = leat_optimizer_definition_default();
    d.name = "MyNormalized";
    d.learning_rate = 0.5;
    d.whole_weights = true;
    d.update = normalized_update;
    return d;
}

/* ---- Cells ---- */

typedef struct lstm {
    int64_t units;
} lstm;

static const leat_layer_key lstm_keys[] = {
    {.key = "units", .kind = LEAT_KEY_INT, .offset = offsetof(lstm, units), .minimum = 1, .limited = true},
    {.key = NULL}};

static leat_status lstm_infer(const void *config, int count, const leat_tensor *inputs, leat_tensor *outputs,
                              leat_error *err) {
    (void)count, (void)inputs, (void)err;
    for (int i = 0; i < 3; ++i) outputs[i].shape[1] = ((const lstm *)config)->units;
    return LEAT_OK;
}

static leat_status lstm_build(const void *config, int count, const leat_tensor *inputs,
                              leat_layer_weights *weights, leat_error *err) {
    const int64_t units = ((const lstm *)config)->units;
    (void)count;
    leat_layer_weight kernel = leat_layer_weight_default(), recurrent = kernel, bias = kernel;
    kernel.name = "kernel", kernel.rank = 2, kernel.shape[0] = inputs[0].shape[1],
    kernel.shape[1] = 4 * units;
    recurrent.name = "recurrent_kernel", recurrent.rank = 2, recurrent.shape[0] = units;
    recurrent.shape[1] = 4 * units, recurrent.initializer = "orthogonal";
    bias.name = "bias", bias.rank = 1, bias.shape[0] = 4 * units, bias.initializer = "zeros";
    leat_status status = leat_layer_add_weight(weights, &kernel, err);
    if (status == LEAT_OK) status = leat_layer_add_weight(weights, &recurrent, err);
    return status == LEAT_OK ? leat_layer_add_weight(weights, &bias, err) : status;
}

static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

/* The gates of unit u of sample n: input, forget, candidate, output. */
static void gates_of(const leat_layer_call *call, int64_t n, int64_t u, float out[4]) {
    const int64_t features = call->weights[0].shape[0], units = call->weights[1].shape[0];
    const float *x = (const float *)call->inputs[0].data + n * features,
                *h = (const float *)call->inputs[1].data + n * units, *kernel = call->weights[0].data,
                *recurrent = call->weights[1].data, *bias = call->weights[2].data;
    for (int64_t k = 0; k < 4; ++k) {
        float z = bias[k * units + u];
        for (int64_t i = 0; i < features; ++i) z += x[i] * kernel[(i * 4 + k) * units + u];
        for (int64_t i = 0; i < units; ++i) z += h[i] * recurrent[(i * 4 + k) * units + u];
        out[k] = k == 2 ? tanhf(z) : sigmoid(z);
    }
}

static leat_status lstm_forward(const leat_layer_call *call, leat_error *err) {
    const int64_t units = call->weights[1].shape[0];
    const float *c = call->inputs[2].data;
    float *y = call->outputs[0].data, *h = call->outputs[1].data, *next = call->outputs[2].data;
    (void)err;
    for (int64_t n = 0; n < call->inputs[0].shape[0]; ++n)
        for (int64_t u = 0; u < units; ++u) {
            const int64_t k = n * units + u;
            float gate[4];
            gates_of(call, n, u, gate);
            next[k] = gate[1] * c[k] + gate[0] * gate[2];
            y[k] = h[k] = gate[3] * tanhf(next[k]);
        }
    return LEAT_OK;
}

/* Adds the share of one gate's argument z to the gradients. */
static void add_gate(const leat_layer_call *call, int64_t n, int64_t column, float dz) {
    const int64_t features = call->weights[0].shape[0], units = call->weights[1].shape[0], width = 4 * units;
    const float *x = (const float *)call->inputs[0].data + n * features,
                *h = (const float *)call->inputs[1].data + n * units, *kernel = call->weights[0].data,
                *recurrent = call->weights[1].data;
    float *dx = call->diff_inputs[0].data, *dh = call->diff_inputs[1].data, *dk = call->diff_weights[0].data,
          *dr = call->diff_weights[1].data, *db = call->diff_weights[2].data;
    for (int64_t i = 0; i < features; ++i) {
        if (dk) dk[i * width + column] += dz * x[i];
        if (dx) dx[n * features + i] += dz * kernel[i * width + column];
    }
    for (int64_t i = 0; i < units; ++i) {
        if (dr) dr[i * width + column] += dz * h[i];
        if (dh) dh[n * units + i] += dz * recurrent[i * width + column];
    }
    if (db) db[column] += dz;
}

static leat_status lstm_backward(const leat_layer_call *call, leat_error *err) {
    const int64_t units = call->weights[1].shape[0];
    const float *c = call->inputs[2].data, *next = call->outputs[2].data, *dy = call->diff_outputs[0].data,
                *dh = call->diff_outputs[1].data, *dc = call->diff_outputs[2].data;
    float *diff_c = call->diff_inputs[2].data;
    (void)err;
    for (int64_t n = 0; n < call->inputs[0].shape[0]; ++n)
        for (int64_t u = 0; u < units; ++u) {
            const int64_t k = n * units + u;
            const float t = tanhf(next[k]), d = dy[k] + dh[k];
            float g[4];
            gates_of(call, n, u, g);
            const float state = dc[k] + d * g[3] * (1 - t * t);
            if (diff_c) diff_c[k] += state * g[1];
            add_gate(call, n, u, state * g[2] * g[0] * (1 - g[0]));
            add_gate(call, n, units + u, state * c[k] * g[1] * (1 - g[1]));
            add_gate(call, n, 2 * units + u, state * g[0] * (1 - g[2] * g[2]));
            add_gate(call, n, 3 * units + u, d * t * g[3] * (1 - g[3]));
        }
    return LEAT_OK;
}

leat_layer_definition custom_lstm_cell(void) {
    leat_layer_definition d = leat_layer_definition_default();
    d.class_name = "cells>MyLSTMCell";
    d.keys = lstm_keys;
    d.config_bytes = sizeof(lstm);
    d.min_inputs = d.max_inputs = d.outputs = 3;
    d.infer = lstm_infer;
    d.build = lstm_build;
    d.forward = lstm_forward;
    d.backward = lstm_backward;
    return d;
}

/* ---- The registry ---- */

#define ADD(kind, definition_)                                                                               \
    do {                                                                                                     \
        leat_error err = {0};                                                                                \
        const leat_##kind##_definition definition = (definition_);                                           \
        if (leat_registry_add_##kind(registry, &definition, &err) != LEAT_OK) fail_msg("%s", err.message);   \
    } while (0)

leat_registry *custom_parts_registry(void) {
    leat_registry *registry = NULL;
    assert_int_equal(leat_registry_create(&registry, NULL), LEAT_OK);
    ADD(loss, custom_mse());
    ADD(loss, custom_classes());
    ADD(metric, custom_error());
    ADD(activation, custom_tanh());
    ADD(activation, custom_rows());
    ADD(initializer, custom_uniform());
    ADD(regularizer, custom_l2());
    ADD(constraint, custom_max_norm());
    ADD(optimizer, custom_adam());
    ADD(optimizer, custom_normalized());
    const leat_layer_definition cell = custom_lstm_cell();
    assert_int_equal(leat_registry_add_cell(registry, &cell, NULL), LEAT_OK);
    return registry;
}
