/* SPDX-License-Identifier: Apache-2.0 */
/* A custom recurrent cell (leat/custom.h): leaky units, whose state h moves a part of the way to a new value in each
 * step, h' = (1 - leak) h + leak tanh(x kernel + h recurrent + bias).  The layer RNN runs the cell over time.
 *
 *     cc custom_cell.c $(pkg-config --cflags --libs leat) -lm && ./a.out */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "leat/leat.h"

/* The configuration, filled in from the keys. */
typedef struct leaky {
    int64_t units;
    double leak;
} leaky;

static const leat_layer_key keys[] = {
    {.key = "units", .kind = LEAT_KEY_INT, .offset = offsetof(leaky, units), .minimum = 1, .limited = true},
    {.key = "leak", .kind = LEAT_KEY_FLOAT, .offset = offsetof(leaky, leak), .preset = "0.5"},
    {.key = NULL}};

/* The output of the step and the new state: (batch, units).  The states' shapes are what `infer` decides about, so that
 * it must not read them from the inputs. */
static leat_status infer(const void *config, int input_count, const leat_tensor *inputs, leat_tensor *outputs,
                         leat_error *err) {
    (void)input_count, (void)inputs, (void)err;
    for (int i = 0; i < 2; ++i) outputs[i].shape[1] = ((const leaky *)config)->units;
    return LEAT_OK;
}

static leat_status build(const void *config, int input_count, const leat_tensor *inputs,
                         leat_layer_weights *weights, leat_error *err) {
    const int64_t units = ((const leaky *)config)->units;
    leat_layer_weight kernel = leat_layer_weight_default(), recurrent = kernel, bias = kernel;
    (void)input_count;
    kernel.name = "kernel";
    kernel.rank = 2;
    kernel.shape[0] = inputs[0].shape[1];
    kernel.shape[1] = units;
    recurrent.name = "recurrent_kernel";
    recurrent.rank = 2;
    recurrent.shape[0] = recurrent.shape[1] = units;
    recurrent.initializer = "orthogonal";
    bias.name = "bias";
    bias.rank = 1;
    bias.shape[0] = units;
    bias.initializer = "zeros";
    leat_status status = leat_layer_add_weight(weights, &kernel, err);
    if (status == LEAT_OK) status = leat_layer_add_weight(weights, &recurrent, err);
    return status == LEAT_OK ? leat_layer_add_weight(weights, &bias, err) : status;
}

/* Returns the value to which unit u of sample n moves. */
static float goal(const leat_layer_call *call, int64_t n, int64_t u) {
    const int64_t features = call->weights[0].shape[0], units = call->weights[0].shape[1];
    const float *x = (const float *)call->inputs[0].data + n * features; /* (features) */
    const float *h = (const float *)call->inputs[1].data + n * units;    /* (units): the state before */
    const float *kernel = call->weights[0].data, *recurrent = call->weights[1].data;
    float z = ((const float *)call->weights[2].data)[u];
    for (int64_t i = 0; i < features; ++i) z += x[i] * kernel[i * units + u];
    for (int64_t i = 0; i < units; ++i) z += h[i] * recurrent[i * units + u];
    return tanhf(z);
}

static leat_status forward(const leat_layer_call *call, leat_error *err) {
    const int64_t samples = call->inputs[0].shape[0], units = call->weights[0].shape[1];
    const float leak = (float)((const leaky *)call->config)->leak, *h = call->inputs[1].data;
    float *y = call->outputs[0].data, *state = call->outputs[1].data;
    (void)err;
    for (int64_t n = 0; n < samples; ++n)
        for (int64_t u = 0; u < units; ++u) {
            const int64_t k = n * units + u;
            y[k] = state[k] = (1 - leak) * h[k] + leak * goal(call, n, u);
        }
    return LEAT_OK;
}

/* Adds the share of unit u of sample n; d is the gradient with respect to the argument of tanh. */
static void add(const leat_layer_call *call, int64_t n, int64_t u, float d) {
    const int64_t features = call->weights[0].shape[0], units = call->weights[0].shape[1];
    const float *x = (const float *)call->inputs[0].data + n * features;
    const float *h = (const float *)call->inputs[1].data + n * units;
    const float *kernel = call->weights[0].data, *recurrent = call->weights[1].data;
    float *diff_x = call->diff_inputs[0].data, *diff_h = call->diff_inputs[1].data;
    float *diff_kernel = call->diff_weights[0].data, *diff_recurrent = call->diff_weights[1].data;
    float *diff_bias = call->diff_weights[2].data; /* a gradient that is not needed is NULL */
    for (int64_t i = 0; i < features; ++i) {
        if (diff_kernel) diff_kernel[i * units + u] += d * x[i];
        if (diff_x) diff_x[n * features + i] += d * kernel[i * units + u];
    }
    for (int64_t i = 0; i < units; ++i) {
        if (diff_recurrent) diff_recurrent[i * units + u] += d * h[i];
        if (diff_h) diff_h[n * units + i] += d * recurrent[i * units + u];
    }
    if (diff_bias) diff_bias[u] += d;
}

static leat_status backward(const leat_layer_call *call, leat_error *err) {
    const int64_t samples = call->inputs[0].shape[0], units = call->weights[0].shape[1];
    const float leak = (float)((const leaky *)call->config)->leak;
    const float *diff_y = call->diff_outputs[0].data, *diff_state = call->diff_outputs[1].data;
    float *diff_h = call->diff_inputs[1].data;
    (void)err;
    for (int64_t n = 0; n < samples; ++n)
        for (int64_t u = 0; u < units; ++u) {
            const float d = diff_y[n * units + u] + diff_state[n * units + u], value = goal(call, n, u);
            if (diff_h) diff_h[n * units + u] += (1 - leak) * d;
            add(call, n, u, leak * d * (1 - value * value));
        }
    return LEAT_OK;
}

static leat_layer_definition definition(void) {
    leat_layer_definition d = leat_layer_definition_default();
    d.class_name = "LeakyCell";
    d.keys = keys;
    d.config_bytes = sizeof(leaky);
    d.min_inputs = d.max_inputs = d.outputs = 2; /* one more than the cell has states */
    d.infer = infer;
    d.build = build;
    d.forward = forward;
    d.backward = backward;
    return d;
}

LEAT_PLUGIN leat_status leat_plugin_register(leat_registry *registry, leat_error *err) {
    const leat_layer_definition d = definition();
    return leat_registry_add_cell(registry, &d, err);
}

/* ---- A network with it ---- */

enum { SAMPLES = 512, STEPS = 12 };
static float sequences[SAMPLES][STEPS][1], means[SAMPLES][1];

static leat_status make(leat_model **out, const leat_registry *registry, leat_error *err) {
    leat_builder *builder = NULL;
    leat_status status = leat_builder_create(&builder, err);
    if (status != LEAT_OK) return status;
    leat_builder_use(builder, registry);
    leat_node *input = leat_input(builder, (int64_t[]){STEPS, 1}, 2);
    leat_node *x = leat_layer(input, "RNN",
                              "{'cell': {'class_name': 'LeakyCell', 'config': {'units': 8, 'leak': 0.3}}}");
    x = leat_dense(x, 1, NULL);
    status = leat_model_create(out, &builder, &input, 1, &x, 1, err);
    if (status != LEAT_OK) return status;
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "Adam(learning_rate=0.01)";
    compile.loss = "mse";
    return leat_model_compile(*out, &compile, err);
}

/* Learns the mean of the steps of a sequence. */
static leat_status run(const leat_registry *registry, leat_error *err) {
    const leat_array x = {.tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){SAMPLES, STEPS, 1}, sequences)};
    const leat_array t = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, means)};
    const leat_arrays data = {.inputs = &x, .targets = &t, .input_count = 1, .target_count = 1};
    leat_fit_options fit = leat_fit_options_default();
    leat_rng rng = leat_rng_for(1, 0, 0);
    leat_model *model = NULL;
    leat_logs logs = {0};
    for (int i = 0; i < SAMPLES; ++i)
        for (int j = 0; j < STEPS; ++j) {
            sequences[i][j][0] = (float)leat_rng_normal(&rng);
            means[i][0] += sequences[i][j][0] / STEPS;
        }
    fit.epochs = 20;
    fit.verbose = 0;
    leat_status status = make(&model, registry, err);
    if (status == LEAT_OK) status = leat_model_fit(model, &data, 32, &fit, NULL, err);
    if (status == LEAT_OK) status = leat_model_evaluate(model, &data, 32, NULL, &logs, err);
    if (status == LEAT_OK) printf("trained: loss %.4f\n", logs.items[0].value);
    leat_model_destroy(&model);
    return status;
}

int main(void) {
    /* a step of 3 samples: the inputs, and the states before */
    const leat_tensor shapes[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 4}, NULL),
                                  leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 5}, NULL)};
    const leat_layer_definition d = definition();
    leat_registry *registry = NULL;
    leat_error err = {0};
    double worst = 0;
    leat_status status = leat_layer_check_gradient(&d, "{'units': 5}", 2, shapes, &worst, &err);
    if (status == LEAT_OK) printf("gradient: differs by %.0e from finite differences\n", worst);
    if (status == LEAT_OK) status = leat_registry_create(&registry, &err);
    if (status == LEAT_OK) status = leat_plugin_register(registry, &err);
    if (status == LEAT_OK) status = run(registry, &err);
    if (status != LEAT_OK) fprintf(stderr, "custom_cell: %s\n", err.message);
    leat_registry_destroy(&registry);
    return status == LEAT_OK ? 0 : 1;
}
