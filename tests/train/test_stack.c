/* SPDX-License-Identifier: Apache-2.0 */
/* docs/threading.md states how large a stack leat needs: everything is done here in a thread that has no more. */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/support.h"

/* The size that docs/threading.md states. */
enum { STACK_BYTES = 128 * 1024 };

static char folder[] = "/tmp/leat-stack-XXXXXX";

#define IMAGES "\"batch_input_shape\": [null, 12, 12, 3]"

/* A network with images, normalisation and states, so that kernels of all kinds run. */
static const char network[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"a\", \"filters\": 8, \"kernel_size\": [3, "
    "3], " IMAGES "}},"
    "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"b\"}},"
    "{\"class_name\": \"MaxPooling2D\", \"config\": {\"name\": \"c\"}},"
    "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"d\", \"target_shape\": [25, 8]}},"
    "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"e\", \"units\": 16}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"f\", \"units\": 3, \"activation\": "
    "\"softmax\"}}]}}";

enum { SAMPLES = 40 };
static float x[SAMPLES * 12 * 12 * 3], y[SAMPLES * 3];

static void fit(leat_model *model, int workers, bool processes) {
    leat_error err = {0};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 4, (int64_t[]){SAMPLES, 12, 12, 3}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 3}, y)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_fit_options options = quiet_fit(2);
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.threads = 2;
    expect_ok(leat_model_fit(model, &arrays, 16, &options, NULL, &err), &err);
}

static leat_model *build(void) {
    leat_error err = {0};
    leat_model *model = NULL;
    leat_compile_options compile = leat_compile_options_default();
    compile.loss = "categorical_crossentropy";
    compile.optimizer = "adam";
    compile.metrics = "accuracy";
    expect_ok(leat_model_from_json(&model, network, &err), &err);
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    expect_ok(leat_model_initialize(model, 1, &err), &err);
    return model;
}

static void fits(void) {
    leat_model *model = build();
    fit(model, 0, false);
    fit(model, 2, false);
    fit(model, 2, true);
    leat_model_destroy(&model);
}

static void predicts_evaluates_and_validates(void) {
    leat_error err = {0};
    clusters data = clusters_of(40, 16);
    leat_model *classifier = make_classifier(1);
    leat_sequence sequence = clusters_sequence(&data);
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_predictions *predictions = NULL;
    leat_logs logs = {0};
    expect_ok(leat_model_evaluate_generator(classifier, &sequence, &options, &logs, &err), &err);
    expect_ok(leat_model_predict_generator(classifier, &sequence, &options, &predictions, &err), &err);
    leat_predictions_destroy(&predictions);
    clusters other = clusters_of(20, 16);
    leat_sequence validation = clusters_sequence(&other);
    leat_fit_options fit = quiet_fit(2);
    fit.validation = &validation;
    expect_ok(leat_model_fit_generator(classifier, &sequence, &fit, NULL, &err), &err);
    leat_model_destroy(&classifier);
}

static void saves_and_loads(void) {
    leat_error err = {0};
    leat_model *model = build(), *again = NULL;
    char path[64];
    fit(model, 0, false);
    snprintf(path, sizeof path, "%s/model.h5", folder);
    expect_ok(leat_model_save(model, path, true, &err), &err);
    expect_ok(leat_model_load(&again, path, &err), &err);
    unlink(path);
    leat_model_destroy(&again);
    leat_model_destroy(&model);
}

/* Reads JSON that is nested up to and beyond the reader's limit; each text is an error. */
static void reads_deep_json(void) {
    leat_error err = {0};
    leat_model *model = NULL;
    for (int depth = 100; depth <= 100000; depth *= 10) {
        char *text = malloc((size_t)depth + 1);
        if (!text) return;
        memset(text, '[', (size_t)depth);
        text[depth] = '\0';
        assert_int_not_equal(leat_model_from_json(&model, text, &err), LEAT_OK);
        free(text);
    }
}

/* ---- In a thread ---- */

static void *in_thread(void *work) {
    ((void (*)(void))work)();
    return NULL;
}

static size_t stack_bytes(void) {
    const char *given = getenv("LEAT_TEST_STACK_KIB"); /* to measure by hand */
    return given ? (size_t)atol(given) * 1024 : STACK_BYTES;
}

static void with_small_stack(void (*work)(void)) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    LEAT_SKIP("a sanitizer's frames are larger");
#endif
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, stack_bytes()), 0);
    assert_int_equal(pthread_create(&thread, &attributes, in_thread, (void *)work), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

static void a_fit(void **state) {
    (void)state;
    with_small_stack(fits);
}

static void predictions_and_evaluations(void **state) {
    (void)state;
    with_small_stack(predicts_evaluates_and_validates);
}

static void saving_and_loading(void **state) {
    (void)state;
    with_small_stack(saves_and_loads);
}

static void deep_json(void **state) {
    (void)state;
    with_small_stack(reads_deep_json);
}

static int make_folder(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; ++i) y[3 * i + i % 3] = 1;
    for (size_t i = 0; i < sizeof x / sizeof x[0]; ++i) x[i] = (float)(i % 17) / 17.0f;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit),
        cmocka_unit_test(predictions_and_evaluations),
        cmocka_unit_test(saving_and_loading),
        cmocka_unit_test(deep_json),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
