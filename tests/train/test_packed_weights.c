/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels keep weights packed between predictions: whatever changes the weights, the next prediction sees it. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/predictor.h"
#include "train/support.h"

enum { PIXELS = 6 * 6 * 8, CLASSES = 8 };

static const char architecture[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 16, \"kernel_size\": [3, 3],"
    " \"batch_input_shape\": [null, 6, 6, 8]}},"
    "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"n\"}},"
    "{\"class_name\": \"Activation\", \"config\": {\"name\": \"a\", \"activation\": \"relu\"}},"
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"d\", \"filters\": 8, \"kernel_size\": [3, 3]}},"
    "{\"class_name\": \"GlobalAveragePooling2D\", \"config\": {\"name\": \"g\"}}]}}";

static float pixels[4][PIXELS], targets[4][CLASSES];

static leat_model *make(uint64_t seed) {
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.5}}";
    options.loss = "mse";
    expect_ok(leat_model_from_json(&model, architecture, &err), &err);
    expect_ok(leat_model_initialize(model, seed, &err), &err);
    expect_ok(leat_model_compile(model, &options, &err), &err);
    leat_model_set_threads(model, 1);
    return model;
}

static leat_arrays batch(leat_array *input, leat_array *target, int64_t samples) {
    *input = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 4, (int64_t[]){samples, 6, 6, 8}, pixels)};
    *target = (leat_array){.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, CLASSES}, targets)};
    return (leat_arrays){.inputs = input, .input_count = 1, .targets = target, .target_count = 1};
}

/* Predicts a batch, and copies the prediction of its first sample to `out`. */
static void predict(leat_model *model, int64_t samples, float out[CLASSES]) {
    leat_array input, target;
    leat_arrays arrays = batch(&input, &target, samples);
    leat_tensor output;
    leat_error err = {0};
    expect_ok(leat_model_predict_on_batch(model, &arrays, &output, &err), &err);
    memcpy(out, output.data, CLASSES * sizeof *out);
}

static void train(leat_model *model) {
    leat_array input, target;
    leat_arrays arrays = batch(&input, &target, 4);
    leat_error err = {0};
    expect_ok(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
}

/* Saves the weights to the file, and predicts with a new model that has loaded them. */
static void predict_anew(const leat_model *model, const char *path, float out[CLASSES]) {
    leat_model *fresh = make(99);
    leat_error err = {0};
    expect_ok(leat_model_save_weights(model, path, &err), &err);
    expect_ok(leat_model_load_weights(fresh, path, false, &err), &err);
    predict(fresh, 2, out);
    leat_model_destroy(&fresh);
}

static void expect_fresh(leat_model *model, float last[CLASSES], const char *after) {
    char path[] = "/tmp/leat-packed-XXXXXX";
    float expected[CLASSES], got[CLASSES];
    close(mkstemp(path));
    predict_anew(model, path, expected);
    unlink(path);
    for (int again = 0; again < 2; ++again) {
        predict(model, 2, got);
        if (memcmp(got, expected, sizeof got) != 0) fail_msg("the weights are stale after %s", after);
        predict(model, 1, got); /* another plan, the same weights */
        for (int i = 0; i < CLASSES; ++i)
            assert_true(got[i] - expected[i] < 1e-5f && expected[i] - got[i] < 1e-5f);
    }
    if (last && memcmp(last, expected, sizeof expected) == 0) fail_msg("nothing changed by %s", after);
    if (last) memcpy(last, expected, sizeof expected);
}

static int fill(void **state) {
    (void)state;
    for (int i = 0; i < 4; ++i) {
        for (int k = 0; k < PIXELS; ++k) pixels[i][k] = (float)((i * 31 + k * 17) % 23) / 23 - 0.4f;
        for (int k = 0; k < CLASSES; ++k) targets[i][k] = (float)((i + k) % 3);
    }
    return 0;
}

static void every_change_is_seen(void **state) {
    (void)state;
    char path[] = "/tmp/leat-packed-XXXXXX";
    leat_model *model = make(1), *other = make(2);
    leat_error err = {0};
    float last[CLASSES];
    close(mkstemp(path));
    predict(model, 2, last);
    expect_fresh(model, NULL, "nothing");
    train(model);
    expect_fresh(model, last, "a training step");
    expect_ok(leat_model_save_weights(other, path, &err), &err);
    expect_ok(leat_model_load_weights(model, path, false, &err), &err);
    expect_fresh(model, last, "loading weights");
    expect_ok(leat_model_initialize(model, 3, &err), &err);
    expect_fresh(model, last, "initializing");
    expect_ok(leat_model_set_trainable(model, "c", false, &err), &err);
    leat_compile_options options = leat_compile_options_default();
    options.loss = "mse";
    expect_ok(leat_model_compile(model, &options, &err), &err); /* compile moves the weights */
    train(model);
    expect_fresh(model, last, "compiling anew and training the second convolution");
    leat_tensor kernel = leat_model_weight(model, 0);
    ((float *)kernel.data)[0] += 1;
    expect_fresh(model, last, "writing through a view");
    ((float *)kernel.data)[1] += 1;
    expect_fresh(model, last, "writing through it again");
    unlink(path);
    leat_model_destroy(&model);
    leat_model_destroy(&other);
}

/* EarlyStopping restores the best weights. */
static void weights_that_a_callback_restores_are_seen(void **state) {
    (void)state;
    leat_array input, target;
    leat_arrays arrays = batch(&input, &target, 4);
    leat_model *model = make(4);
    leat_error err = {0};
    leat_early_stopping_options stopping = leat_early_stopping_options_default();
    leat_callback callback, *callbacks[] = {&callback};
    leat_fit_options options = quiet_fit(6);
    stopping.monitor = "val_loss";
    stopping.patience = 1;
    stopping.mode = LEAT_MONITOR_MAX; /* the first epochs are the best ones, since the loss falls */
    stopping.restore_best_weights = true;
    expect_ok(leat_early_stopping_create(&callback, sizeof callback, &stopping, &err), &err);
    options.callbacks = callbacks;
    options.callback_count = 1;
    leat_sequence validation;
    leat_source_options source = leat_source_options_default();
    source.batch_size = 2;
    expect_ok(leat_arrays_open(&validation, sizeof validation, &arrays, &source, &err), &err);
    options.validation = &validation;
    expect_ok(leat_model_fit(model, &arrays, 4, &options, NULL, &err), &err);
    expect_fresh(model, NULL, "early stopping");
    leat_sequence_destroy(&validation);
    leat_callback_destroy(&callback);
    leat_model_destroy(&model);
}

static bool normalises_by_itself(leat_model *model) {
    char *text = NULL;
    leat_error err = {0};
    leat_plan_options options = leat_plan_options_default();
    expect_ok(leat_model_plan_summary(model, &options, &text, &err), &err);
    bool found = strstr(text, "batch_norm_apply") != NULL;
    leat_string_free(text);
    return found;
}

/* Predicts the first sample with a predictor for one sample. */
static void predict_one(leat_model *model, float out[CLASSES]) {
    leat_predictor *predictor = NULL;
    leat_error err = {0};
    expect_ok(leat_predictor_create(&predictor, model, NULL, &err), &err);
    expect_ok(leat_predictor_run(predictor, (const void *[]){pixels}, (void *[]){out}, &err), &err);
    leat_predictor_destroy(&predictor);
}

static void folding_can_be_turned_off(void **state) {
    (void)state;
    leat_model *model = make(5);
    float folded[2][CLASSES], plain[2][CLASSES], again[CLASSES];
    for (int step = 0; step < 3; ++step) train(model); /* statistics that are not 0 and 1 */
    assert_false(normalises_by_itself(model));
    predict(model, 2, folded[0]);
    predict_one(model, folded[1]);
    leat_model_set_folding(model, false);
    assert_true(normalises_by_itself(model));
    predict(model, 2, plain[0]);
    predict_one(model, plain[1]);
    for (int i = 0; i < 2 * CLASSES; ++i)
        assert_float_equal(folded[i / CLASSES][i % CLASSES], plain[i / CLASSES][i % CLASSES], 1e-5f);
    leat_model_set_folding(model, true);
    predict(model, 2, again);
    assert_memory_equal(again, folded[0], sizeof again);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_change_is_seen, fill),
        cmocka_unit_test_setup(weights_that_a_callback_restores_are_seen, fill),
        cmocka_unit_test_setup(folding_can_be_turned_off, fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
