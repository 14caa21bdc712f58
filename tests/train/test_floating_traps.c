/* SPDX-License-Identifier: Apache-2.0 */
/* A program may have the processor trap invalid floating-point operations (feenableexcept): with finite data leat
 * makes none. */
#define _GNU_SOURCE /* feenableexcept */
#include "cmocka_all.h"

#include <fenv.h>
#include <stdio.h>
#include <string.h>

#include "nn/losses/types.h"
#include "nn/metrics/types.h"
#include "nn/optimizers/types.h"
#include "train/support.h"

/* Sizes that are no multiple of the vector width, so that each kernel runs its remainder loop. */
enum { SAMPLES = 22, INPUTS = 5, CLASSES = 3 };

static int set_traps(void **state) {
    (void)state;
    (void)feenableexcept(FE_INVALID);
    return 0;
}

static int clear_traps(void **state) {
    (void)state;
    (void)fedisableexcept(FE_INVALID);
    return 0;
}

static void need_traps(void) {
    if ((fegetexcept() & FE_INVALID) == 0)
        LEAT_SKIP("this processor does not trap floating-point exceptions");
}

/* Trains two epochs, evaluates and predicts, with a thread for the data and two to compute. */
static void train(const char *optimizer, const char *loss, const char *metrics) {
    static const char layers[] =
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 13, \"activation\": \"relu\","
        " \"batch_input_shape\": [null, 5]}},"
        "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\"}},"
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"c\", \"units\": 3, \"activation\": "
        "\"softmax\"}}]}}";
    static float x[SAMPLES * INPUTS], y[SAMPLES * CLASSES];
    leat_error err = {0};
    leat_model *model = NULL;
    for (int i = 0; i < SAMPLES * INPUTS; ++i) x[i] = (float)(i * 7 % 11) / 5.0f - 1.0f;
    for (int i = 0; i < SAMPLES; ++i) y[i * CLASSES + i % CLASSES] = 1;
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, INPUTS}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, y)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_compile_options compile = leat_compile_options_default();
    leat_fit_options options = quiet_fit(2);
    expect_ok(leat_model_from_json(&model, layers, &err), &err);
    compile.optimizer = optimizer;
    compile.loss = loss;
    compile.metrics = metrics;
    if (leat_model_compile(model, &compile, &err) != LEAT_OK)
        fail_msg("%s, %s, %s: %s", optimizer, loss, metrics, err.message);
    expect_ok(leat_model_initialize(model, 3, &err), &err);
    options.workers = 1;
    options.threads = 2;
    print_message("%s, %s, %s\n", optimizer, loss, metrics ? metrics : "no metric");
    expect_ok(leat_model_fit(model, &arrays, 8, &options, NULL, &err), &err);
    leat_model_destroy(&model);
}

static void every_optimizer(void **state) {
    (void)state;
    static const char *const configs[] = {
        "", "\"clipnorm\": 0.5", "\"clipvalue\": 0.5", "\"global_clipnorm\": 0.5",
        "\"weight_decay\": 0.01, \"use_ema\": true, \"ema_overwrite_frequency\": 2"};
    need_traps();
    for (int i = 0; leati_optimizer_types[i]; ++i)
        for (int k = 0; k < 5; ++k) {
            char text[256];
            snprintf(text, sizeof text, "{\"class_name\": \"%s\", \"config\": {%s}}",
                     leati_optimizer_types[i]->class_name, configs[k]);
            train(text, "mse", NULL);
        }
}

static void every_loss(void **state) {
    (void)state;
    need_traps();
    for (int i = 0; leati_loss_types[i]; ++i)
        if (!leati_loss_types[i]->sparse && !leati_loss_types[i]->label_lists)
            train("adam", leati_loss_types[i]->measure.name, NULL);
}

/* Keys that a metric must have in its configuration. */
static const char *required_keys(const char *metric) {
    static const struct {
        const char *metric, *config;
    } required[] = {
        {"MeanIoU", "\"num_classes\": 3"},
        {"IoU", "\"num_classes\": 3, \"target_class_ids\": [0, 2]"},
        {"OneHotIoU", "\"num_classes\": 3, \"target_class_ids\": [0, 2]"},
        {"OneHotMeanIoU", "\"num_classes\": 3"},
        {"SensitivityAtSpecificity", "\"specificity\": 0.5"},
        {"SpecificityAtSensitivity", "\"sensitivity\": 0.5"},
        {"PrecisionAtRecall", "\"recall\": 0.5"},
        {"RecallAtPrecision", "\"precision\": 0.5"},
    };
    for (size_t i = 0; i < sizeof required / sizeof *required; ++i)
        if (strcmp(required[i].metric, metric) == 0) return required[i].config;
    return "";
}

static bool takes_class_numbers(const char *metric) {
    return strstr(metric, "Sparse") || strcmp(metric, "CategoricalGeneralizedCrossEntropy") == 0;
}

static void every_metric(void **state) {
    (void)state;
    need_traps();
    for (int i = 0; leati_metric_types[i]; ++i) {
        const char *name = leati_metric_types[i]->measure->class_name;
        char text[256];
        if (!name || takes_class_numbers(name))
            continue; /* without a name: a metric that is only a function */
        snprintf(text, sizeof text, "[{\"class_name\": \"%s\", \"config\": {%s}}]", name,
                 required_keys(name));
        train("sgd", "mse", text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_optimizer, set_traps, clear_traps),
        cmocka_unit_test_setup_teardown(every_loss, set_traps, clear_traps),
        cmocka_unit_test_setup_teardown(every_metric, set_traps, clear_traps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
