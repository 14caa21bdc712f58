/* SPDX-License-Identifier: Apache-2.0 */
/* A custom loss and a custom metric (leat/custom.h).  PinballLoss is the loss of quantile regression: with the key
 * `quantile` = 0.9 the network learns a bound that 90 % of the targets stay below.  Coverage counts these targets.
 *
 *     cc custom_loss.c $(pkg-config --cflags --libs leat) -lm
 *     ./a.out custom_loss.h5 custom_loss.npz                   checks, trains, saves, loads
 *     cc -shared -fPIC custom_loss.c -o loss.so $(pkg-config --cflags --libs leat) -lm
 *     leat evaluate custom_loss.h5 --data npz:custom_loss.npz --layers ./loss.so     this file as a plugin */
#include <stddef.h>
#include <stdio.h>

#include "leat/leat.h"

/* ---- The loss ---- */

/* The configuration, filled in from the keys. */
typedef struct pinball {
    double quantile;
} pinball;

static const leat_layer_key pinball_keys[] = {{.key = "quantile",
                                               .kind = LEAT_KEY_FLOAT,
                                               .offset = offsetof(pinball, quantile),
                                               .preset = "0.5",
                                               .minimum = 0,
                                               .limited = true},
                                              {.key = NULL}};

static leat_status check_pinball(void *config, void *user, leat_error *err) {
    const pinball *p = config;
    (void)user;
    if (p->quantile < 1) return LEAT_OK;
    return leat_error_set(err, LEAT_EINVAL, "quantile: expected a number below 1, received %g", p->quantile);
}

/* The value of a row is the mean of q (t - y) where the target is above the prediction, and (1 - q) (y - t) below. */
static leat_status pinball_values(const leat_loss_call *call, leat_error *err) {
    const float q = (float)((const pinball *)call->config)->quantile;
    const float *t = call->y_true->data, *y = call->y_pred->data;
    (void)err;
    for (int64_t i = 0; i < call->rows; ++i) {
        float sum = 0;
        for (int64_t j = 0; j < call->row_elements; ++j) {
            const float error = t[i * call->row_elements + j] - y[i * call->row_elements + j];
            sum += error > 0 ? q * error : (q - 1) * error;
        }
        call->values[i] = sum / (float)call->row_elements;
    }
    return LEAT_OK;
}

static leat_status pinball_gradient(const leat_loss_call *call, leat_error *err) {
    const float q = (float)((const pinball *)call->config)->quantile;
    const float *t = call->y_true->data, *y = call->y_pred->data;
    (void)err;
    for (int64_t k = 0; k < call->rows * call->row_elements; ++k)
        call->gradient[k] = (t[k] > y[k] ? -q : 1 - q) / (float)call->row_elements;
    return LEAT_OK;
}

static leat_loss_definition pinball_definition(void) {
    leat_loss_definition d = leat_loss_definition_default();
    d.name = "examples>PinballLoss"; /* register_keras_serializable(package="examples") */
    d.keys = pinball_keys;
    d.config_bytes = sizeof(pinball);
    d.check = check_pinball;
    d.values = pinball_values;
    d.gradient = pinball_gradient;
    return d;
}

/* ---- The metric ---- */

/* state: the weights of the targets that are not above the prediction, and of all targets */
static leat_status count_covered(const leat_metric_call *call, leat_error *err) {
    const float *t = call->y_true->data, *y = call->y_pred->data;
    const float *weights = call->sample_weight ? call->sample_weight->data : NULL;
    (void)err;
    for (int64_t i = 0; i < leat_tensor_count(call->y_pred); ++i) {
        const double weight = weights ? (double)weights[i] : 1;
        if (t[i] <= y[i]) call->state[0] += weight;
        call->state[1] += weight;
    }
    return LEAT_OK;
}

static double covered(const void *config, const double *state, int64_t state_count, void *user) {
    (void)config, (void)state_count, (void)user;
    return state[0] / state[1];
}

static leat_metric_definition coverage_definition(void) {
    leat_metric_definition d = leat_metric_definition_default();
    d.name = "examples>Coverage";
    d.state_count = 2;
    d.update = count_covered;
    d.result = covered;
    return d;
}

LEAT_PLUGIN leat_status leat_plugin_register(leat_registry *registry, leat_error *err) {
    const leat_loss_definition loss = pinball_definition();
    const leat_metric_definition metric = coverage_definition();
    leat_status status = leat_registry_add_loss(registry, &loss, err);
    return status == LEAT_OK ? leat_registry_add_metric(registry, &metric, err) : status;
}

/* ---- A network with them ---- */

enum { SAMPLES = 2048 };
static float positions[SAMPLES][1], heights[SAMPLES][1];

/* Draws targets from the normal distribution whose mean is twice the input. */
static void draw_samples(void) {
    leat_rng rng = leat_rng_for(1, 0, 0);
    for (int i = 0; i < SAMPLES; ++i) {
        positions[i][0] = (float)leat_rng_uniform(&rng);
        heights[i][0] = 2 * positions[i][0] + (float)leat_rng_normal(&rng);
    }
}

static leat_status make(leat_model **out, const leat_registry *registry, leat_error *err) {
    leat_builder *builder = NULL;
    leat_status status = leat_builder_create(&builder, err);
    if (status != LEAT_OK) return status;
    leat_builder_use(builder, registry); /* the model knows the registry's objects from now on */
    leat_node *input = leat_input(builder, (int64_t[]){1}, 1);
    leat_node *x = leat_dense(input, 1, NULL);
    status = leat_model_create(out, &builder, &input, 1, &x, 1, err);
    if (status != LEAT_OK) return status;
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "{'class_name': 'Adam', 'config': {'learning_rate': 0.02}}";
    compile.loss = "{'class_name': 'PinballLoss', 'config': {'quantile': 0.9}}";
    compile.metrics = "Coverage";
    return leat_model_compile(*out, &compile, err);
}

/* Evaluates the model and prints loss and coverage. */
static leat_status measure(leat_model *model, const char *when, const leat_arrays *data, leat_error *err) {
    leat_logs logs;
    leat_status status = leat_model_evaluate(model, data, 64, NULL, &logs, err);
    printf("%s:", when);
    for (int i = 0; status == LEAT_OK && i < logs.count; ++i)
        printf(" %s %.3f", logs.items[i].name, logs.items[i].value);
    printf("\n");
    return status;
}

/* Trains, saves and loads the model; writes the data to data_path, unless it is NULL. */
static leat_status run(leat_registry *registry, const char *path, const char *data_path, leat_error *err) {
    const leat_array x = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, positions)};
    const leat_array t = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, heights)};
    const leat_arrays data = {.inputs = &x, .targets = &t, .input_count = 1, .target_count = 1};
    leat_fit_options fit = leat_fit_options_default();
    leat_model *model = NULL, *loaded = NULL;
    fit.epochs = 30;
    fit.verbose = 0;
    draw_samples();
    leat_status status = make(&model, registry, err);
    if (status == LEAT_OK) status = leat_model_fit(model, &data, 64, &fit, NULL, err);
    if (status == LEAT_OK) status = measure(model, "trained", &data, err);
    if (status == LEAT_OK) status = leat_model_save(model, path, true, err);
    if (status == LEAT_OK) status = leat_model_load_with(&loaded, path, registry, err);
    if (status == LEAT_OK) status = measure(loaded, "loaded again", &data, err);
    if (status == LEAT_OK && data_path)
        status = leat_npz_write(data_path, (const char *const[]){"x", "y"},
                                (const leat_tensor[]){x.tensor, t.tensor}, 2, err);
    leat_model_destroy(&model);
    leat_model_destroy(&loaded);
    return status;
}

/* Compares the gradient of the loss with finite differences, at points that are not near the kink. */
static leat_status check_gradient(leat_error *err) {
    float target[4] = {0.5f, -1, 2, 0}, prediction[4] = {0.1f, 1, -1, 0.7f};
    const leat_tensor t = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 2}, target);
    const leat_tensor y = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 2}, prediction);
    const leat_loss_definition loss = pinball_definition();
    double worst = 0;
    leat_status status = leat_loss_check_gradient(&loss, "{'quantile': 0.9}", &t, &y, &worst, err);
    if (status == LEAT_OK) printf("gradient: differs by %.0e from finite differences\n", worst);
    return status;
}

int main(int argc, char **argv) {
    leat_registry *registry = NULL;
    leat_error err = {0};
    leat_status status = check_gradient(&err);
    if (status == LEAT_OK) status = leat_registry_create(&registry, &err);
    if (status == LEAT_OK) status = leat_plugin_register(registry, &err);
    if (status == LEAT_OK)
        status = run(registry, argc > 1 ? argv[1] : "custom_loss.h5", argc > 2 ? argv[2] : NULL, &err);
    if (status != LEAT_OK) fprintf(stderr, "custom_loss: %s\n", err.message);
    leat_registry_destroy(&registry);
    return status == LEAT_OK ? 0 : 1;
}
