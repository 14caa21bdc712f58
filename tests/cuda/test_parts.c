/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a batch on a GPU, computed one after the other by a single rank of a deterministic model: the same
 * losses as on the CPU.  tests/cuda/ranks.cmake has tests of several ranks. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "leat/dist.h"
#include "leat/train.h"

enum { SAMPLES = 44, BATCH = 12, FEATURES = 6, WORDS = 9, EPOCHS = 2 };

static const char dense[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"dense\", \"layers\": ["
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 5, \"use_bias\": false,"
    " \"batch_input_shape\": [null, 6]}},"
    "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\"}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"c\", \"units\": 1}}]}}";
/* The gradient of the table is a list of rows. */
static const char words[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"words\", \"layers\": ["
    "{\"class_name\": \"Embedding\", \"config\": {\"name\": \"w\", \"input_dim\": 9, \"output_dim\": 3,"
    " \"batch_input_shape\": [null, 6]}},"
    "{\"class_name\": \"GlobalAveragePooling1D\", \"config\": {\"name\": \"m\"}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"c\", \"units\": 1}}]}}";

static void require_ok(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

/* Trains a model on a device, and gives the loss of each epoch. */
static void train(const char *architecture, const char *device, double losses[EPOCHS]) {
    float x[SAMPLES * FEATURES], y[SAMPLES];
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, FEATURES}, x)},
               target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, y)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_compile_options compilation = leat_compile_options_default();
    leat_dist_options alone = leat_dist_options_default();
    leat_fit_options options = leat_fit_options_default();
    leat_model *model = NULL;
    leat_dist *dist = NULL;
    leat_history *history = NULL;
    leat_error err = {0};
    int count = 0;
    for (int i = 0; i < SAMPLES * FEATURES; ++i) x[i] = (float)((i * 7) % WORDS);
    for (int i = 0; i < SAMPLES; ++i) y[i] = 0.1f * x[i * FEATURES];
    compilation.loss = "mse";
    compilation.optimizer = "adam";
    compilation.arithmetic = "keras3";
    alone.kind = LEAT_DIST_SELF;
    require_ok(leat_dist_open(&dist, &alone, &err), &err);
    require_ok(leat_model_from_json(&model, architecture, &err), &err);
    require_ok(leat_model_initialize(model, 3, &err), &err);
    require_ok(leat_model_compile(model, &compilation, &err), &err);
    require_ok(leat_model_set_device(model, device, &err), &err);
    leat_model_set_deterministic(model, true);
    options.epochs = EPOCHS;
    options.verbose = 0;
    options.dist = dist;
    require_ok(leat_model_fit(model, &arrays, BATCH, &options, &history, &err), &err);
    const double *values = leat_history_values(history, "loss", &count);
    assert_int_equal(count, EPOCHS);
    memcpy(losses, values, EPOCHS * sizeof *losses);
    require_ok(leat_model_set_device(model, "cpu", &err),
               &err); /* the fit does not hold the device any more */
    leat_history_destroy(&history);
    leat_model_destroy(&model);
    leat_dist_close(&dist);
}

static void compare(const char *architecture) {
    double host[EPOCHS] = {0}, device[EPOCHS] = {0};
    train(architecture, "cpu", host);
    train(architecture, "cuda", device);
    for (int i = 0; i < EPOCHS; ++i) assert_true(fabs(host[i] - device[i]) <= 1e-5 * fabs(host[i]));
    assert_true(host[EPOCHS - 1] != host[0]);
}

static void parts_add_up(void **state) {
    (void)state;
    compare(dense);
}

static void rows_add_up(void **state) {
    (void)state;
    compare(words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(rows_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
