/* SPDX-License-Identifier: Apache-2.0 */
/* Keras 2.3.1's own tests of the loop with feeds, under their names: tests/test_multiprocessing.py (which Keras skips
 * as a whole) and tests/keras/engine/test_training.py. */
#include "cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/npz.h"
#include "train/support.h"

static const int worker_counts[] = {4, 1, 0};
enum { samples = 60, batch = 10, steps = 6, kinds = 2, counts = 3 };

static leat_fit_options fit_with(int64_t epochs, int workers, bool processes) {
    leat_fit_options options = quiet_fit(epochs);
    options.workers = workers;
    options.use_multiprocessing = processes;
    return options;
}

static leat_evaluate_options evaluate_with(int64_t count, int workers, bool processes) {
    leat_evaluate_options options = leat_evaluate_options_default();
    options.steps = count;
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.threads = 1;
    return options;
}

/* ---- tests/test_multiprocessing.py ---- */

/* Trains with each number of workers: without validation, with arrays as validation data, and with a generator. */
static void train_with_validation(bool processes, int workers, int validation_kind) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(samples, batch), held_out = clusters_of(samples, batch);
    leat_sequence generator = clusters_generator(&data);
    leat_sequence triple, endless = clusters_generator(&held_out);
    held_out.weighted = true;
    triple = clusters_sequence(&held_out);
    leat_fit_options options = fit_with(1, workers, processes);
    options.steps_per_epoch = steps;
    if (validation_kind == 1) options.validation = &triple;
    if (validation_kind == 2) {
        options.validation = &endless;
        options.validation_steps = 1;
        held_out.weighted = false;
    }
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &generator, &options, &history, &err), &err);
    assert_int_equal(series_count(history, "loss"), 1);
    assert_int_equal(series_count(history, "val_loss"), validation_kind > 0);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void refuses(leat_model *model, const leat_sequence *data, const leat_sequence *validation,
                    int64_t steps_per_epoch, const char *words) {
    leat_error err = {0};
    leat_fit_options options = fit_with(1, 2, true);
    options.steps_per_epoch = steps_per_epoch;
    options.validation = validation;
    assert_int_equal(leat_model_fit_generator(model, data, &options, NULL, &err), LEAT_EINVAL);
    if (!strstr(err.message, words)) fail_msg("'%s' does not say '%s'", err.message, words);
}

static void test_multiprocessing_training(void **state) {
    (void)state;
    leat_error err = {0};
    for (int processes = 0; processes < kinds; ++processes)
        for (int i = 0; i < counts; ++i)
            for (int kind = 0; kind < 3; ++kind) train_with_validation(processes, worker_counts[i], kind);
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(samples, batch), odd = clusters_of(samples, batch);
    leat_sequence generator = clusters_generator(&data), sequence = clusters_sequence(&data);
    refuses(model, &generator, &generator, steps, "validation_steps is needed");
    /* Four tensors where Keras's batches and validation data have at most three parts. */
    odd.weighted = true;
    leat_sequence four = clusters_sequence(&odd);
    expect_ok(leat_batch_spec_add(&four.spec, LEAT_PART_SAMPLE_WEIGHT, NULL, LEAT_F32, 0, NULL, &err), &err);
    refuses(model, &four, NULL, steps, "sample weight");
    refuses(model, &sequence, &four, 0, "sample weight");
    leat_fit_options options = fit_with(1, 0, true);
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    leat_model_destroy(&model);
}

static int entries(const char *folder) {
    DIR *dir = opendir(folder);
    int count = -2; /* . and .. */
    assert_non_null(dir);
    while (readdir(dir)) ++count;
    closedir(dir);
    return count;
}

/* Sequences that read from an open .npz file; nothing but that file is ever in the folder. */
static void train_from_file(bool processes) {
    leat_error err = {0};
    char folder[] = "/tmp/leat-keras-XXXXXX", path[64], spec[128];
    float x[samples * 4], y[samples * 3];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/data.npz", folder);
    snprintf(spec, sizeof spec, "npz:%s", path);
    for (int i = 0; i < samples * 4; ++i) x[i] = (float)(i % 7);
    for (int i = 0; i < samples * 3; ++i) y[i] = (float)(i % 3 == i / 3 % 3);
    leat_tensor arrays[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 4}, x),
                            leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 3}, y)};
    const char *names[] = {"x", "y"};
    expect_ok(leat_npz_write(path, names, arrays, 2, &err), &err);
    for (int i = 0; i < counts; ++i) {
        leat_model *model = make_classifier(1);
        leat_sequence sequence = {0}, validation = {0};
        leat_source_options source = leat_source_options_default();
        source.batch_size = batch;
        expect_ok(leat_source_open(&sequence, sizeof sequence, spec, &source, &err), &err);
        expect_ok(leat_source_open(&validation, sizeof validation, spec, &source, &err), &err);
        leat_fit_options options = fit_with(2, worker_counts[i], processes);
        options.validation = &validation;
        expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
        leat_sequence_destroy(&sequence);
        leat_sequence_destroy(&validation);
        leat_model_destroy(&model);
        assert_int_equal(entries(folder), 1);
    }
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

static void test_multiprocessing_training_from_file(void **state) {
    (void)state;
    train_from_file(true);
}

static void test_multithreading_from_file(void **state) {
    (void)state;
    train_from_file(false);
}

static void predict_by(bool processes) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    for (int i = 0; i < counts; ++i) {
        clusters data = clusters_of(samples, batch);
        leat_sequence generator = clusters_generator(&data);
        leat_evaluate_options options = evaluate_with(5, worker_counts[i], processes);
        leat_predictions *predictions = NULL;
        expect_ok(leat_model_predict_generator(model, &generator, &options, &predictions, &err), &err);
        assert_int_equal(leat_predictions_get(predictions, 0).shape[0], 5 * batch);
        leat_predictions_destroy(&predictions);
    }
    leat_model_destroy(&model);
}

static void test_multiprocessing_predicting(void **state) {
    (void)state;
    predict_by(true);
}

static void test_multithreading_predicting(void **state) {
    (void)state;
    predict_by(false);
}

static void evaluate_by(bool processes) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    double first = 0, loss = 0;
    for (int i = 0; i < counts; ++i) {
        clusters data = clusters_of(samples, batch);
        leat_sequence generator = clusters_generator(&data);
        leat_evaluate_options options = evaluate_with(5, worker_counts[i], processes);
        leat_logs logs;
        expect_ok(leat_model_evaluate_generator(model, &generator, &options, &logs, &err), &err);
        assert_true(leat_logs_get(&logs, "loss", &loss));
        if (i == 0) first = loss;
        assert_true(loss == first);
    }
    leat_model_destroy(&model);
}

static void test_multiprocessing_evaluating(void **state) {
    (void)state;
    evaluate_by(true);
}

static void test_multithreading_evaluating(void **state) {
    (void)state;
    evaluate_by(false);
}

/* A generator fails after three good batches: its message reaches the caller. */
typedef leat_status (*attempt)(leat_model *model, const leat_sequence *generator, int workers, bool processes,
                               leat_error *err);

static leat_status try_fit(leat_model *model, const leat_sequence *generator, int workers, bool processes,
                           leat_error *err) {
    leat_fit_options options = fit_with(1, workers, processes);
    options.steps_per_epoch = steps;
    return leat_model_fit_generator(model, generator, &options, NULL, err);
}

static leat_status try_evaluate(leat_model *model, const leat_sequence *generator, int workers,
                                bool processes, leat_error *err) {
    leat_evaluate_options options = evaluate_with(steps, workers, processes);
    leat_logs logs;
    return leat_model_evaluate_generator(model, generator, &options, &logs, err);
}

static leat_status try_predict(leat_model *model, const leat_sequence *generator, int workers, bool processes,
                               leat_error *err) {
    leat_evaluate_options options = evaluate_with(steps, workers, processes);
    leat_predictions *predictions = NULL;
    leat_status status = leat_model_predict_generator(model, generator, &options, &predictions, err);
    assert_null(predictions);
    return status;
}

static void fails_after_three(attempt run, bool processes) {
    leat_model *model = make_classifier(1);
    for (int i = 0; i < counts; ++i) {
        leat_error err = {0};
        clusters data = clusters_of(samples, batch);
        data.fail_at = 3;
        leat_sequence generator = clusters_generator(&data);
        assert_int_equal(run(model, &generator, worker_counts[i], processes, &err), LEAT_EUSER);
        assert_non_null(strstr(err.message, "no data today"));
        assert_non_null(strstr(err.message, "batch 3"));
    }
    leat_model_destroy(&model);
}

#define ERROR_TEST(name, run, processes)                                                                     \
    static void name(void **state) {                                                                         \
        (void)state;                                                                                         \
        fails_after_three(run, processes);                                                                   \
    }
ERROR_TEST(test_multiprocessing_fit_error, try_fit, true)
ERROR_TEST(test_multithreading_fit_error, try_fit, false)
ERROR_TEST(test_multiprocessing_evaluate_error, try_evaluate, true)
ERROR_TEST(test_multithreading_evaluate_error, try_evaluate, false)
ERROR_TEST(test_multiprocessing_predict_error, try_predict, true)
ERROR_TEST(test_multithreading_predict_error, try_predict, false)

/* ---- tests/keras/engine/test_training.py ---- */

/* Epochs from 0, and in each of them batches from 0 to count - 1. */
static void assert_regular(const journal *seen, int epochs, int count) {
    assert_int_equal(seen->epoch_count, epochs);
    assert_int_equal(seen->batch_count, epochs * count);
    for (int i = 0; i < epochs; ++i) assert_int_equal(seen->epochs[i], i);
    for (int i = 0; i < epochs * count; ++i) assert_int_equal(seen->batches[i], i % count);
}

static void fit_generator_counts(int workers) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(12 * 3, 3), held_out = clusters_of(12 * 4, 4);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    journal seen;
    leat_callback watch = journal_callback(&seen);
    leat_fit_options options = fit_with(5, workers, false);
    options.callbacks = (leat_callback *[]){&watch};
    options.callback_count = 1;
    options.validation = &validation;
    options.max_queue_size = 1;
    options.steps_per_epoch = 3;
    options.validation_steps = 3;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    assert_regular(&seen, 5, 3);
    options.steps_per_epoch = options.validation_steps = 0; /* the length */
    watch = journal_callback(&seen);
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    assert_regular(&seen, 5, 12);
    assert_int_equal(seen.test_count, 5);
    leat_model_destroy(&model);
}

static void test_fit_generator(void **state) {
    (void)state;
    leat_error err = {0};
    for (int workers = 0; workers < 3; ++workers) fit_generator_counts(workers);
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(48, 4), held_out = clusters_of(48, 4);
    leat_sequence generator = clusters_generator(&data), validation = clusters_generator(&held_out);
    leat_fit_options options = fit_with(3, 2, false);
    assert_int_equal(leat_model_fit_generator(model, &generator, &options, NULL, &err), LEAT_EINVAL);
    options.steps_per_epoch = 2;
    options.validation = &validation;
    options.validation_steps = 1;
    options.max_queue_size = 2;
    expect_ok(leat_model_fit_generator(model, &generator, &options, NULL, &err), &err);
    assert_int_equal(data.given, 3 * 2); /* Keras allows 10 */
    assert_in_range(held_out.given, 3, 3 + 2);
    leat_model_destroy(&model);
}

/* A batch size that grows after each pass. */
typedef struct growing {
    int64_t total, size;
    bool doubles; /* otherwise it grows by two */
} growing;

static int64_t growing_length(void *user) {
    const growing *self = user;
    return (self->total + self->size - 1) / self->size;
}

static leat_status growing_get(void *user, int64_t index, leat_rng *rng, leat_batch *out, leat_error *err) {
    const growing *self = user;
    (void)index, (void)err;
    out->size = self->size;
    float *x = out->tensors[0].data, *y = out->tensors[1].data;
    for (int64_t i = 0; i < out->size; ++i) {
        x[i] = (float)leat_rng_uniform(rng);
        y[i] = 2 * x[i];
    }
    return LEAT_OK;
}

static leat_status growing_end(void *user, int64_t pass, leat_error *err) {
    growing *self = user;
    (void)pass, (void)err;
    self->size = self->doubles ? 2 * self->size : self->size + 2;
    return LEAT_OK;
}

static void grows(growing data, int workers, bool processes, const int64_t wanted[5]) {
    leat_error err = {0};
    leat_model *model = make_line(0.01);
    leat_sequence sequence = leat_sequence_default();
    sequence.user = sequence.state = &data;
    sequence.state_bytes = sizeof data;
    sequence.length = growing_length;
    sequence.get = growing_get;
    sequence.on_epoch_end = growing_end;
    sequence.spec.batch_size = 80;
    for (int part = LEAT_PART_INPUT; part <= LEAT_PART_TARGET; ++part)
        expect_ok(leat_batch_spec_add(&sequence.spec, (leat_batch_part)part, NULL, LEAT_F32, 1,
                                      (int64_t[]){1}, &err),
                  &err);
    journal seen;
    leat_callback watch = journal_callback(&seen);
    leat_fit_options options = fit_with(5, workers, processes);
    options.callbacks = (leat_callback *[]){&watch};
    options.callback_count = 1;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    int64_t all = 0;
    for (int i = 0; i < 5; ++i) {
        assert_int_equal(seen.steps[i], wanted[i]);
        all += wanted[i];
    }
    assert_int_equal(seen.batch_count, all);
    leat_model_destroy(&model);
}

static void grows_by(int workers, bool processes) {
    grows((growing){20, 3, false}, workers, processes, (int64_t[]){7, 4, 3, 3, 2});
    grows((growing){30, 3, false}, workers, processes, (int64_t[]){10, 6, 5, 4, 3});
    grows((growing){1010, 5, true}, workers, processes, (int64_t[]){202, 101, 51, 26, 13});
}

static void test_fit_generator_dynamic_size_sequence_with_workers(void **state) {
    (void)state;
    grows_by(4, false);
    grows_by(4, true);
}

static void test_fit_generator_dynamic_size_sequence_main_thread(void **state) {
    (void)state;
    grows_by(0, false);
}

/* A model with 4 inputs and one or two outputs. */
static leat_model *make_forked(int outputs) {
    leat_error err = {0};
    leat_model *model = NULL;
    char json[1024];
    snprintf(json, sizeof json,
             "{\"class_name\": \"Model\", \"config\": {\"name\": \"forked\", \"layers\": ["
             "{\"class_name\": \"InputLayer\", \"name\": \"in\", \"inbound_nodes\": [],"
             " \"config\": {\"name\": \"in\", \"batch_input_shape\": [null, 4]}},"
             "{\"class_name\": \"Dense\", \"name\": \"a\", \"inbound_nodes\": [[[\"in\", 0, 0, {}]]],"
             " \"config\": {\"name\": \"a\", \"units\": 4}},"
             "{\"class_name\": \"Dense\", \"name\": \"b\", \"inbound_nodes\": [[[\"in\", 0, 0, {}]]],"
             " \"config\": {\"name\": \"b\", \"units\": 3}}],"
             "\"input_layers\": [[\"in\", 0, 0]], \"output_layers\": [[\"a\", 0, 0]%s]}}",
             outputs == 2 ? ", [\"b\", 0, 0]" : "");
    expect_ok(leat_model_from_json(&model, json, &err), &err);
    expect_ok(leat_model_initialize(model, 1, &err), &err);
    return model;
}

static void test_fit_generator_shape(void **state) {
    (void)state;
    leat_error err = {0};
    for (int outputs = 1; outputs <= 2; ++outputs)
        for (int64_t count = 1; count <= 2; ++count) {
            leat_model *model = make_forked(outputs);
            clusters data = clusters_of(36, 3);
            leat_sequence sequence = clusters_sequence(&data);
            leat_evaluate_options options = evaluate_with(count, 2, false);
            leat_predictions *predictions = NULL;
            expect_ok(leat_model_predict_generator(model, &sequence, &options, &predictions, &err), &err);
            assert_int_equal(leat_predictions_count(predictions), outputs);
            for (int i = 0; i < outputs; ++i) {
                leat_tensor output = leat_predictions_get(predictions, i);
                assert_int_equal(output.rank, 2);
                assert_int_equal(output.shape[0], 3 * count);
                assert_int_equal(output.shape[1], i ? 3 : 4);
            }
            leat_predictions_destroy(&predictions);
            leat_model_destroy(&model);
        }
}

static void test_validation_freq(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(16, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    const int64_t listed[] = {4, 2, 2, 1};
    for (int list = 0; list < 2; ++list) {
        journal seen;
        leat_callback watch = journal_callback(&seen);
        leat_fit_options options = fit_with(4, 1, false);
        options.callbacks = (leat_callback *[]){&watch};
        options.callback_count = 1;
        options.validation = &validation;
        options.validation_freq = 2;
        if (list) {
            options.validation_epochs = listed;
            options.validation_epoch_count = 4;
        }
        expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
        assert_int_equal(seen.test_count, list ? 3 : 2);
    }
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multiprocessing_training),
        cmocka_unit_test(test_multiprocessing_training_from_file),
        cmocka_unit_test(test_multithreading_from_file),
        cmocka_unit_test(test_multiprocessing_predicting),
        cmocka_unit_test(test_multithreading_predicting),
        cmocka_unit_test(test_multiprocessing_evaluating),
        cmocka_unit_test(test_multithreading_evaluating),
        cmocka_unit_test(test_multiprocessing_fit_error),
        cmocka_unit_test(test_multithreading_fit_error),
        cmocka_unit_test(test_multiprocessing_evaluate_error),
        cmocka_unit_test(test_multithreading_evaluate_error),
        cmocka_unit_test(test_multiprocessing_predict_error),
        cmocka_unit_test(test_multithreading_predict_error),
        cmocka_unit_test(test_fit_generator),
        cmocka_unit_test(test_fit_generator_dynamic_size_sequence_with_workers),
        cmocka_unit_test(test_fit_generator_dynamic_size_sequence_main_thread),
        cmocka_unit_test(test_fit_generator_shape),
        cmocka_unit_test(test_validation_freq),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
