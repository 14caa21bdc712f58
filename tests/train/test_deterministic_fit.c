/* SPDX-License-Identifier: Apache-2.0 */
/* leat_model_set_deterministic: the same weights and predictions, byte for byte, with any number of threads. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "leat/predictor.h"
#include "leat/rng.h"
#include "train/support.h"

enum { SAMPLES = 64, BATCH = 32, SIDE = 16, CHANNELS = 8, PIXELS = SIDE * SIDE * CHANNELS, CLASSES = 4 };

/* Strides and dilations, so that several kinds of kernels compute sums, with enough work for several threads. */
static const char convolutions[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"a\", \"filters\": 16, \"kernel_size\": [3, 3],"
    " \"padding\": \"same\", \"batch_input_shape\": [null, 16, 16, 8]}},"
    "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\"}},"
    "{\"class_name\": \"Activation\", \"config\": {\"name\": \"c\", \"activation\": \"relu\"}},"
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"d\", \"filters\": 64, \"kernel_size\": [1, 1]}},"
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"e\", \"filters\": 16, \"kernel_size\": [3, 3],"
    " \"dilation_rate\": [2, 2]}},"
    "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"g\", \"units\": 64, \"activation\": \"tanh\"}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"h\", \"units\": 4}}]}}";

static const char recurrence[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"a\", \"target_shape\": [32, 64],"
    " \"batch_input_shape\": [null, 16, 16, 8]}},"
    "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"b\", \"units\": 24, \"return_sequences\": true}},"
    "{\"class_name\": \"LayerNormalization\", \"config\": {\"name\": \"c\"}},"
    "{\"class_name\": \"GRU\", \"config\": {\"name\": \"d\", \"units\": 16}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"e\", \"units\": 4}}]}}";

static float pixels[SAMPLES * PIXELS], targets[SAMPLES * CLASSES];

static leat_model *make(const char *architecture) {
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer =
        "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01, \"clipnorm\": 1.0}}";
    options.loss = "mse";
    expect_ok(leat_model_from_json(&model, architecture, &err), &err);
    expect_ok(leat_model_initialize(model, 7, &err), &err);
    expect_ok(leat_model_compile(model, &options, &err), &err);
    leat_model_set_deterministic(model, true);
    return model;
}

static void train(leat_model *model, int threads) {
    leat_rng rng = leat_rng_for(1, 2, 3);
    for (int64_t i = 0; i < SAMPLES * PIXELS; ++i) pixels[i] = (float)leat_rng_uniform(&rng) - 0.5f;
    for (int64_t i = 0; i < SAMPLES * CLASSES; ++i) targets[i] = (float)leat_rng_uniform(&rng);
    leat_array input = {
        .tensor = leat_tensor_view(LEAT_F32, 4, (int64_t[]){SAMPLES, SIDE, SIDE, CHANNELS}, pixels)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, CLASSES}, targets)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_fit_options fit = quiet_fit(2);
    leat_history *history = NULL;
    leat_error err = {0};
    fit.threads = threads;
    expect_ok(leat_model_fit(model, &arrays, BATCH, &fit, &history, &err), &err);
    assert_true(isfinite(series_at(history, "loss", 1)));
    leat_history_destroy(&history);
}

static void predict(leat_model *model, int threads, float out[BATCH][CLASSES]) {
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *predictor = NULL;
    leat_error err = {0};
    options.batch_size = BATCH;
    options.threads = threads;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    expect_ok(leat_predictor_run(predictor, (const void *[]){pixels}, (void *[]){out}, &err), &err);
    leat_predictor_destroy(&predictor);
}

static void check(const char *architecture) {
    float expected[BATCH][CLASSES], got[BATCH][CLASSES];
    uint64_t hash = 0;
    for (int threads = 1; threads <= 3; ++threads) {
        leat_model *model = make(architecture);
        train(model, threads);
        predict(model, threads, threads == 1 ? expected : got);
        if (threads == 1)
            hash = weights_hash(model);
        else if (weights_hash(model) != hash)
            fail_msg("%d threads make other weights than one", threads);
        else
            assert_memory_equal(got, expected, sizeof got);
        leat_model_destroy(&model);
    }
}

static void convolutions_train_alike(void **state) {
    (void)state;
    check(convolutions);
}

static void recurrent_layers_train_alike(void **state) {
    (void)state;
    check(recurrence);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_train_alike),
        cmocka_unit_test(recurrent_layers_train_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
