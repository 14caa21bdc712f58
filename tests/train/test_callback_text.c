/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks that are made from a text: their arguments, mistakes in them, and learning rate schedules, compared with
 * Keras's. */
#include "cmocka_all.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nn/model/model.h"
#include "support/npz.h"
#include "train/hooks/training.h"
#include "train/support.h"

static leat_callback made(const char *text) {
    leat_error err = {0};
    leat_callback callback;
    expect_ok(leat_callback_from_text(&callback, sizeof callback, text, &err), &err);
    return callback;
}

static void refused(const char *text, leat_status status, const char *said) {
    leat_error err = {0};
    leat_callback callback;
    if (leat_callback_from_text(&callback, sizeof callback, text, &err) != status)
        fail_msg("%s: unexpected status, or '%s'", text, err.message);
    if (!strstr(err.message, said)) fail_msg("%s: expected '%s' in: %s", text, said, err.message);
    assert_null(callback.user);
}

static void mistakes_are_named(void **state) {
    (void)state;
    refused("", LEAT_EINVAL, "callback");
    refused("EarlyStoping(patience=3)", LEAT_ENOTFOUND,
            "unknown callback 'EarlyStoping'; did you mean 'EarlyStopping'?");
    refused("CosinDecay(decay_steps=3)", LEAT_ENOTFOUND, "did you mean 'CosineDecay'?");
    refused("EarlyStopping(patienc=3)", LEAT_ENOTSUP,
            "EarlyStopping: unknown key 'patienc'; did you mean 'patience'?");
    refused("EarlyStopping(3)", LEAT_EINVAL, "expected key=value, received '3'");
    refused("EarlyStopping(patience=3", LEAT_EINVAL, "expected Name(key=value, ...)");
    refused("EarlyStopping(patience=-1)", LEAT_EINVAL, "EarlyStopping: patience: expected at least 0");
    refused("EarlyStopping(patience=often)", LEAT_EINVAL,
            "patience: expected an integer, received \"often\"");
    refused("EarlyStopping(monitor=3)", LEAT_EINVAL, "EarlyStopping: monitor: expected a text");
    refused("EarlyStopping(mode=best)", LEAT_EINVAL, "mode: expected \"auto\" or \"min\" or \"max\"");
    refused("ReduceLROnPlateau(factor=2)", LEAT_EINVAL, "factor: expected a number between 0 and 1");
    refused("ModelCheckpoint()", LEAT_EINVAL, "filepath is required");
    refused("ModelCheckpoint(filepath='a{')", LEAT_EINVAL, "for a brace");
    refused("CSVLogger(separator=';')", LEAT_EINVAL, "the key 'filename' is missing");
    refused("CSVLogger(filename='x', separator='')", LEAT_EINVAL, "separator");
    refused("TensorBoard(log_dir='')", LEAT_EINVAL, "TensorBoard: log_dir: expected the path of a folder");
    refused("TensorBoard(update_freq=0)", LEAT_EINVAL, "update_freq: expected epoch, batch, or a number");
    refused("TensorBoard(update_freq=often)", LEAT_EINVAL, "update_freq: expected epoch, batch, or a number");
    refused("TensorBoard(update_freq=2.5)", LEAT_EINVAL, "update_freq: expected epoch, batch, or a number");
    refused("TensorBoard(histogram_freq=-1)", LEAT_EINVAL, "histogram_freq: expected at least 0");
    refused("TensorBoard(profile_batch=2)", LEAT_ENOTSUP, "TensorBoard: unknown key 'profile_batch'");
    refused("TerminateOnNaN(x=1)", LEAT_ENOTSUP, "TerminateOnNaN: unknown key 'x'");
    refused("ExponentialDecay(initial_learning_rate=0.1, decay_steps=10)", LEAT_EINVAL,
            "ExponentialDecay: the key 'decay_rate' is missing");
    refused("CosineDecay(initial_learning_rate=0.1, decay_steps=0)", LEAT_EINVAL,
            "decay_steps: expected at least 1");
    refused("PiecewiseConstantDecay(boundaries=[1, 2], values=[1, 2])", LEAT_EINVAL,
            "values: expected one number more than boundaries, which has 2; received 2");
    refused("PiecewiseConstantDecay(boundaries=[2, 2], values=[1, 2, 3])", LEAT_EINVAL, "ascending order");
    refused("{\"class_name\": ", LEAT_EFORMAT, "JSON");
    refused("{\"config\": {}}", LEAT_EINVAL, "class_name");
}

/* ---- The arguments reach the callbacks ---- */

static leat_status worsen(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                          leat_error *err) {
    (void)user, (void)training, (void)err;
    leat_logs_set(logs, "watched", (double)epoch);
    return LEAT_OK;
}

/* Trains for at most 6 epochs while "watched" grows, and returns the number of epochs. */
static int epochs_with(leat_callback callback, double *rate) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_callback watched = {.size = sizeof watched, .on_epoch_end = worsen};
    leat_fit_options options = quiet_fit_with(6, (leat_callback *[]){&watched, &callback}, 2);
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    int epochs = series_count(history, "loss");
    if (rate) *rate = leat_model_learning_rate(model);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
    leat_callback_destroy(&callback);
    return epochs;
}

static void arguments_are_keras_arguments(void **state) {
    (void)state;
    double rate = 0;
    assert_int_equal(epochs_with(made("EarlyStopping(monitor=watched)"), NULL), 2);
    assert_int_equal(epochs_with(made(" EarlyStopping ( monitor='watched', patience = 3 ) "), NULL), 4);
    assert_int_equal(epochs_with(made("EarlyStopping(monitor=watched, mode=max)"), NULL), 6);
    assert_int_equal(epochs_with(made("EarlyStopping(monitor=watched, mode=max, min_delta=2)"), NULL), 2);
    assert_int_equal(epochs_with(made("EarlyStopping(monitor=watched, baseline=-1, patience=2)"), NULL), 2);
    assert_int_equal(
        epochs_with(made("{\"class_name\": \"EarlyStopping\", \"config\": {\"monitor\": \"watched\", "
                         "\"patience\": 2, \"restore_best_weights\": true}}"),
                    NULL),
        3);
    epochs_with(made("ReduceLROnPlateau(monitor=watched, patience=1, factor=0.5, cooldown=1, min_lr=0.003)"),
                &rate);
    assert_true(fabs(rate - 0.003) < 1e-8);
    assert_int_equal(epochs_with(made("TerminateOnNaN"), NULL), 6);
    assert_int_equal(epochs_with(made("TerminateOnNaN()"), NULL), 6);
    char path[] = "/tmp/leat-text-XXXXXX", text[128], line[64] = "";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    snprintf(text, sizeof text, "CSVLogger(filename='%s', separator=';')", path);
    epochs_with(made(text), NULL);
    assert_int_equal(read(fd, line, sizeof line - 1), sizeof line - 1);
    assert_ptr_equal(strstr(line, "epoch;accuracy;loss;watched\r\n0;"), line);
    snprintf(text, sizeof text, "ModelCheckpoint(filepath='%s', save_weights_only=true, period=2)", path);
    epochs_with(made(text), NULL);
    leat_model *whole = NULL;
    leat_error err = {0};
    assert_int_not_equal(leat_model_load(&whole, path, &err), LEAT_OK); /* a file with weights alone */
    close(fd);
    unlink(path);
}

/* ---- Schedules ---- */

/* Returns the learning rate that the callback sets before step number `step`. */
static double rate_before(const leat_callback *callback, leat_model *model, int64_t step) {
    leat_error err = {0};
    leat_logs logs = {0};
    leat_training training = {.model = model};
    model->iterations = step;
    expect_ok(callback->on_train_batch_begin(callback->user, &training, 0, &logs, &err), &err);
    return leat_model_learning_rate(model);
}

static void compare_with_keras(const char *name, leat_model *model) {
    char path[128];
    snprintf(path, sizeof path, "keras-3/schedules/%s", name);
    leat_npz *npz = test_npz_open(path);
    leat_tensor text = test_npz_get(npz, "schedule"), steps = test_npz_get(npz, "steps"),
                rates = test_npz_get(npz, "rates");
    char json[1024] = "";
    assert_true(leat_tensor_count(&text) < (int64_t)sizeof json);
    memcpy(json, text.data, (size_t)leat_tensor_count(&text));
    leat_callback callback = made(json);
    for (int64_t i = 0; i < leat_tensor_count(&steps); ++i) {
        double expected = (double)((const float *)rates.data)[i];
        int step = (int)((const int32_t *)steps.data)[i];
        double received = rate_before(&callback, model, step);
        /* Keras computes in float32, where 1 + cos(x) loses digits near 0. */
        if (fabs(received - expected) > 2e-6 * fabs(expected) + 1e-8)
            fail_msg("%s: step %d: expected %.9g, received %.9g", name, step, expected, received);
    }
    leat_callback_destroy(&callback);
    leat_npz_close(&npz);
}

static void schedules_have_keras_rates(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    DIR *folder = opendir(LEAT_SOURCE_DIR "/tests/golden/keras-3/schedules");
    assert_non_null(folder);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".npz")) continue;
        compare_with_keras(entry->d_name, model);
        ++count;
    }
    closedir(folder);
    assert_int_equal(count, 16);
    leat_model_destroy(&model);
}

/* A schedule counts the optimizer's steps, so that two fits of 2 epochs do what one fit of 4 epochs does. */
static void schedules_go_on_where_the_optimizer_is(void **state) {
    (void)state;
    leat_error err = {0};
    uint64_t hashes[2];
    double rates[2];
    for (int parts = 1; parts <= 2; ++parts) {
        leat_model *model = make_classifier(1);
        clusters data = clusters_of(16, 8);
        leat_sequence sequence = clusters_sequence(&data);
        for (int part = 0; part < parts; ++part) {
            leat_callback schedule =
                made("ExponentialDecay(initial_learning_rate=0.1, decay_steps=3, decay_rate=0.5)");
            leat_fit_options options =
                quiet_fit_with(4 / parts * (part + 1), (leat_callback *[]){&schedule}, 1);
            options.initial_epoch = 4 / parts * part;
            leat_history *history = NULL;
            expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
            assert_int_equal(series_count(history, "lr"), 4 / parts);
            rates[parts - 1] = series_at(history, "lr", 4 / parts - 1);
            leat_history_destroy(&history);
            leat_callback_destroy(&schedule);
        }
        hashes[parts - 1] = weights_hash(model);
        leat_model_destroy(&model);
    }
    assert_true(hashes[0] == hashes[1]);
    assert_true(fabs(rates[0] - 0.1 * pow(0.5, 7.0 / 3)) < 1e-8 && rates[0] == rates[1]);
}

static void a_rate_that_is_no_number_ends_training(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_training training = {.model = model};
    leat_logs logs = {0};
    leat_callback schedule = made("ExponentialDecay(initial_learning_rate=1, decay_steps=2, decay_rate=-1)");
    model->iterations = 1;
    assert_int_equal(schedule.on_train_batch_begin(schedule.user, &training, 0, &logs, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "the learning rate of step 1 is"));
    leat_callback_destroy(&schedule);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(arguments_are_keras_arguments),
        cmocka_unit_test(schedules_have_keras_rates),
        cmocka_unit_test(schedules_go_on_where_the_optimizer_is),
        cmocka_unit_test(a_rate_that_is_no_number_ends_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
