/* SPDX-License-Identifier: Apache-2.0 */
/* Small custom objects (leat/custom.h): an activation, an initializer, a regularizer, a constraint and an
 * optimizer.  A model is read
 * from the JSON text that Keras writes for a model with such objects of a user's own, and trained.
 *
 *     cc custom_parts.c $(pkg-config --cflags --libs leat) -lm && ./a.out */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "leat/leat.h"

/* ---- An activation: snake(x) = x + sin(x)^2 ---- */

static leat_status snake(const leat_activation_call *call, leat_error *err) {
    (void)err;
    for (int64_t i = 0; i < call->rows * call->width; ++i) {
        const float sine = sinf(call->x[i]);
        call->y[i] = call->x[i] + sine * sine;
    }
    return LEAT_OK;
}

static leat_status snake_backward(const leat_activation_call *call, leat_error *err) {
    (void)err;
    for (int64_t i = 0; i < call->rows * call->width; ++i)
        call->diff_x[i] = call->diff_y[i] * (1 + sinf(2 * call->x[i]));
    return LEAT_OK;
}

static leat_activation_definition snake_definition(void) {
    leat_activation_definition d = leat_activation_definition_default();
    d.name = "snake";
    d.forward = snake;
    d.backward = snake_backward;
    return d;
}

/* ---- An initializer: a few weights of each column are not 0 ---- */

typedef struct sparse {
    double share, stddev;
} sparse;

static const leat_layer_key sparse_keys[] = {
    {.key = "share", .kind = LEAT_KEY_FLOAT, .offset = offsetof(sparse, share), .preset = "0.1"},
    {.key = "stddev", .kind = LEAT_KEY_FLOAT, .offset = offsetof(sparse, stddev), .preset = "1.0"},
    {.key = NULL}};

static leat_status fill_sparse(const leat_initializer_call *call, leat_error *err) {
    const sparse *s = call->config;
    (void)err;
    for (int64_t i = 0; i < call->count; ++i)
        call->weight[i] =
            leat_rng_uniform(call->rng) < s->share ? (float)(s->stddev * leat_rng_normal(call->rng)) : 0;
    return LEAT_OK;
}

static leat_initializer_definition sparse_definition(void) {
    leat_initializer_definition d = leat_initializer_definition_default();
    d.name = "Sparse";
    d.keys = sparse_keys;
    d.config_bytes = sizeof(sparse);
    d.fill = fill_sparse;
    return d;
}

/* ---- A regularizer: strength * sum log(1 + w^2) ---- */

typedef struct cauchy {
    double strength;
} cauchy;

static const leat_layer_key cauchy_keys[] = {
    {.key = "strength", .kind = LEAT_KEY_FLOAT, .offset = offsetof(cauchy, strength), .preset = "0.01"},
    {.key = NULL}};

static leat_status cauchy_penalty(leat_regularizer_call *call, leat_error *err) {
    const double strength = ((const cauchy *)call->config)->strength;
    (void)err;
    for (int64_t i = 0; i < call->count; ++i)
        call->penalty += strength * log1p((double)call->x[i] * (double)call->x[i]);
    return LEAT_OK;
}

static leat_status cauchy_gradient(leat_regularizer_call *call, leat_error *err) {
    const float strength = (float)((const cauchy *)call->config)->strength;
    (void)err;
    for (int64_t i = 0; i < call->count; ++i)
        call->gradient[i] = 2 * strength * call->x[i] / (1 + call->x[i] * call->x[i]);
    return LEAT_OK;
}

static leat_regularizer_definition cauchy_definition(void) {
    leat_regularizer_definition d = leat_regularizer_definition_default();
    d.name = "Cauchy";
    d.keys = cauchy_keys;
    d.config_bytes = sizeof(cauchy);
    d.penalty = cauchy_penalty;
    d.gradient = cauchy_gradient;
    return d;
}

/* ---- A constraint: the mean of each column is 0 ---- */

static leat_status center(const leat_constraint_call *call, leat_error *err) {
    const int64_t rows = call->shape[0], columns = call->count / rows;
    (void)err;
    for (int64_t j = 0; j < columns; ++j) {
        float mean = 0;
        for (int64_t i = 0; i < rows; ++i) mean += call->weight[i * columns + j] / (float)rows;
        for (int64_t i = 0; i < rows; ++i) call->weight[i * columns + j] -= mean;
    }
    return LEAT_OK;
}

static leat_constraint_definition center_definition(void) {
    leat_constraint_definition d = leat_constraint_definition_default();
    d.name = "Centered";
    d.apply = center;
    return d;
}

/* ---- An optimizer: steps of one size in the direction of an average gradient's signs ---- */

typedef struct sign_momentum {
    double momentum;
} sign_momentum;

static const leat_layer_key sign_momentum_keys[] = {
    {.key = "momentum", .kind = LEAT_KEY_FLOAT, .offset = offsetof(sign_momentum, momentum), .preset = "0.9"},
    {.key = NULL}};

static leat_status update(const leat_optimizer_call *call, leat_error *err) {
    const float momentum = (float)((const sign_momentum *)call->config)->momentum;
    const float rate = (float)call->learning_rate;
    float *average = call->slots[0];
    (void)err;
    for (int64_t i = 0; i < call->count; ++i) {
        average[i] = momentum * average[i] + (1 - momentum) * call->gradient[i];
        call->weight[i] -= average[i] > 0 ? rate : average[i] < 0 ? -rate : 0;
    }
    return LEAT_OK;
}

static leat_optimizer_definition sign_momentum_definition(void) {
    static const char *const slots[] = {"average", NULL};
    leat_optimizer_definition d = leat_optimizer_definition_default();
    d.name = "SignMomentum";
    d.keys = sign_momentum_keys;
    d.config_bytes = sizeof(sign_momentum);
    d.slots = slots;
    d.update = update;
    return d;
}

LEAT_PLUGIN leat_status leat_plugin_register(leat_registry *registry, leat_error *err) {
    const leat_activation_definition activation = snake_definition();
    const leat_initializer_definition initializer = sparse_definition();
    const leat_regularizer_definition regularizer = cauchy_definition();
    const leat_constraint_definition constraint = center_definition();
    const leat_optimizer_definition optimizer = sign_momentum_definition();
    leat_status status = leat_registry_add_activation(registry, &activation, err);
    if (status == LEAT_OK) status = leat_registry_add_initializer(registry, &initializer, err);
    if (status == LEAT_OK) status = leat_registry_add_regularizer(registry, &regularizer, err);
    if (status == LEAT_OK) status = leat_registry_add_constraint(registry, &constraint, err);
    if (status == LEAT_OK) status = leat_registry_add_optimizer(registry, &optimizer, err);
    return status;
}

/* ---- A model with them, as current Keras writes it ---- */

static const char architecture[] =
    "{'module': 'keras', 'class_name': 'Sequential', 'config': {'name': 'small', 'layers': ["
    "{'module': 'keras.layers', 'class_name': 'Dense', 'config': {'name': 'hidden', 'units': 16, "
    "'batch_input_shape': [null, 1], "
    "'activation': {'module': 'builtins', 'class_name': 'function', 'config': 'snake', 'registered_name': "
    "'function'}, "
    "'kernel_initializer': {'module': null, 'class_name': 'Sparse', 'config': {'share': 0.9, 'stddev': 2.0}, "
    "'registered_name': 'Custom>Sparse'}, "
    "'kernel_regularizer': {'module': null, 'class_name': 'Cauchy', 'config': {'strength': 0.0001}, "
    "'registered_name': 'Custom>Cauchy'}}, 'registered_name': null}, "
    "{'module': 'keras.layers', 'class_name': 'Dense', 'config': {'name': 'out', 'units': 1, "
    "'kernel_constraint': {'module': null, 'class_name': 'Centered', 'config': {}, 'registered_name': "
    "'Custom>Centered'}}, 'registered_name': null}]}, 'registered_name': null}";

enum { SAMPLES = 256 };
static float angles[SAMPLES][1], waves[SAMPLES][1];

/* JSON has double quotes; C's texts are easier to read without them. */
static void quote(char *out, const char *text) {
    for (; *text; ++text) *out++ = *text == '\'' ? '"' : *text;
    *out = '\0';
}

static leat_status run(const leat_registry *registry, leat_error *err) {
    const leat_array x = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, angles)};
    const leat_array t = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, waves)};
    const leat_arrays data = {.inputs = &x, .targets = &t, .input_count = 1, .target_count = 1};
    leat_compile_options compile = leat_compile_options_default();
    leat_fit_options fit = leat_fit_options_default();
    leat_model *model = NULL;
    leat_logs logs = {0};
    static char json[sizeof architecture];
    for (int i = 0; i < SAMPLES; ++i) {
        angles[i][0] = (float)i / SAMPLES * 6 - 3;
        waves[i][0] = sinf(2 * angles[i][0]);
    }
    quote(json, architecture);
    leat_status status = leat_model_from_json_with(&model, json, registry, err);
    if (status == LEAT_OK) printf("read from the file: %d weights\n", leat_model_weight_count(model));
    compile.optimizer = "SignMomentum(learning_rate=0.003)";
    compile.loss = "mse";
    fit.epochs = 100;
    fit.verbose = 0;
    if (status == LEAT_OK) status = leat_model_compile(model, &compile, err);
    if (status == LEAT_OK) status = leat_model_fit(model, &data, 32, &fit, NULL, err);
    if (status == LEAT_OK) status = leat_model_evaluate(model, &data, 32, NULL, &logs, err);
    if (status == LEAT_OK) printf("trained: loss %.3f\n", logs.items[0].value);
    leat_model_destroy(&model);
    return status;
}

/* Compares the gradients with finite differences. */
static leat_status check_gradients(leat_error *err) {
    float numbers[6] = {-2, -1, -0.25f, 0.5f, 1, 3};
    const leat_tensor x = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 3}, numbers);
    const leat_activation_definition activation = snake_definition();
    const leat_regularizer_definition regularizer = cauchy_definition();
    double worst[2] = {0, 0};
    leat_status status = leat_activation_check_gradient(&activation, NULL, &x, &worst[0], err);
    if (status == LEAT_OK)
        status = leat_regularizer_check_gradient(&regularizer, "{'strength': 0.5}", &x, &worst[1], err);
    if (status == LEAT_OK)
        printf("gradients: differ by %.0e and %.0e from finite differences\n", worst[0], worst[1]);
    return status;
}

int main(void) {
    leat_registry *registry = NULL;
    leat_error err = {0};
    leat_status status = check_gradients(&err);
    if (status == LEAT_OK) status = leat_registry_create(&registry, &err);
    if (status == LEAT_OK) status = leat_plugin_register(registry, &err);
    if (status == LEAT_OK) status = run(registry, &err);
    if (status != LEAT_OK) fprintf(stderr, "custom_parts: %s\n", err.message);
    leat_registry_destroy(&registry);
    return status == LEAT_OK ? 0 : 1;
}
