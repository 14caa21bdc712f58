/* SPDX-License-Identifier: Apache-2.0 */
/* fit_generator: learning, determinism, epochs and steps, validation, weights of samples and classes, errors. */
#include "cmocka_all.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "train/support.h"

static double last(const leat_history *history, const char *name) {
    int count = 0;
    const double *values = leat_history_values(history, name, &count);
    assert_true(count > 0);
    return values[count - 1];
}

static int count_of(const leat_history *history, const char *name) {
    int count = 0;
    leat_history_values(history, name, &count);
    return count;
}

static void it_learns(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(200, 16);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(20);
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(count_of(history, "loss"), 20);
    assert_true(last(history, "accuracy") > 0.95);
    assert_true(last(history, "loss") < 0.4);
    assert_int_equal(data.hooked, 20);
    leat_verdict verdict = leat_history_verdict(history);
    assert_int_equal(verdict.steps, 20 * 13);
    assert_non_null(strstr(verdict.text, " A step takes "));
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static uint64_t weights_after(int workers, bool processes, uint64_t seed) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(100, 8);
    data.noisy = true;
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(2);
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.seed = seed;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    uint64_t hash = weights_hash(model);
    leat_model_destroy(&model);
    return hash;
}

static void weights_do_not_depend_on_threads(void **state) {
    (void)state;
    uint64_t inline_hash = weights_after(0, false, 7);
    assert_true(weights_after(1, false, 7) == inline_hash);
    assert_true(weights_after(2, false, 7) == inline_hash);
    assert_true(weights_after(4, false, 7) == inline_hash);
    assert_false(weights_after(0, false, 8) == inline_hash);
}

static void weights_do_not_depend_on_processes(void **state) {
    (void)state;
    uint64_t inline_hash = weights_after(0, false, 7);
    assert_true(weights_after(1, true, 7) == inline_hash);
    assert_true(weights_after(2, true, 7) == inline_hash);
    assert_true(weights_after(4, true, 7) == inline_hash);
}

static void epochs_start_where_initial_epoch_says(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(5);
    options.initial_epoch = 2;
    leat_history *history = NULL;
    char *json = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    expect_ok(leat_history_json(history, &json, &err), &err);
    assert_non_null(strstr(json, "\"epoch\": [2, 3, 4]"));
    leat_string_free(json);
    leat_history_destroy(&history);
    options.initial_epoch = 5;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(count_of(history, "loss"), 0);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void steps_per_epoch_runs_through_the_passes(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8); /* 5 batches per pass */
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(4);
    options.steps_per_epoch = 3;
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(leat_history_verdict(history).steps, 12);
    assert_int_equal(data.hooked, 2);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void validation_runs_when_asked(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), held_out = clusters_of(21, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_fit_options options = quiet_fit(4);
    options.validation = &validation;
    options.validation_freq = 2;
    leat_history *history = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(count_of(history, "loss"), 4);
    assert_int_equal(count_of(history, "val_loss"), 2);
    assert_int_equal(held_out.hooked, 2);
    leat_evaluate_options evaluate = leat_evaluate_options_default();
    leat_logs logs;
    double loss = 0;
    expect_ok(leat_model_evaluate_generator(model, &validation, &evaluate, &logs, &err), &err);
    assert_true(leat_logs_get(&logs, "loss", &loss));
    assert_true(loss == last(history, "val_loss"));
    leat_history_destroy(&history);
    int64_t after[] = {1, 4};
    options.validation_epochs = after;
    options.validation_epoch_count = 2;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(count_of(history, "val_accuracy"), 2);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

/* A sequence that notes the threads that make its batches. */
typedef struct noted {
    leat_sequence sequence;
    pthread_t caller;
    atomic_int by_caller, by_workers;
} noted;

static leat_status get_noted(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    noted *n = user;
    atomic_fetch_add(pthread_equal(pthread_self(), n->caller) ? &n->by_caller : &n->by_workers, 1);
    return n->sequence.get(n->sequence.user, index, rng, batch, err);
}

static int64_t noted_length(void *user) {
    const noted *n = user;
    return n->sequence.length(n->sequence.user);
}

static leat_sequence noted_sequence(noted *n, clusters *data) {
    leat_sequence sequence = leat_sequence_default();
    *n = (noted){.sequence = clusters_sequence(data), .caller = pthread_self()};
    sequence.user = n;
    sequence.spec = n->sequence.spec;
    sequence.length = noted_length;
    sequence.get = get_noted;
    return sequence;
}

static void validation_has_workers_of_its_own(void **state) {
    (void)state;
    static const struct {
        int workers, validation_workers;
        bool caller_trains, caller_validates;
    } cases[] = {{1, 0, false, false}, {0, 0, true, true}, {2, -1, false, true}, {0, 2, true, false}};
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), held_out = clusters_of(24, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        noted train, test;
        leat_sequence sequence = noted_sequence(&train, &data), validation = noted_sequence(&test, &held_out);
        leat_fit_options options = quiet_fit(2);
        options.validation = &validation;
        options.workers = cases[i].workers;
        options.validation_workers = cases[i].validation_workers;
        expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
        assert_int_equal(train.by_caller, cases[i].caller_trains ? 10 : 0);
        assert_int_equal(train.by_workers, cases[i].caller_trains ? 0 : 10);
        assert_int_equal(test.by_workers > 0, !cases[i].caller_validates);
        assert_int_equal(test.by_caller, cases[i].caller_validates ? 6 : 0);
        options.validation_workers = -2;
        assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "validation_workers: expected at least -1, received -2"));
    }
    leat_model_destroy(&model);
}

/* Keras 2.3.1 returned the loss of the last batch. */
static void evaluation_does_not_depend_on_the_batch_size(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(3);
    double first = 0;
    for (int64_t batch_size = 1; batch_size <= 9; ++batch_size) {
        clusters data = clusters_of(23, batch_size);
        leat_sequence sequence = clusters_sequence(&data);
        leat_evaluate_options options = leat_evaluate_options_default();
        leat_logs logs;
        double loss = 0;
        expect_ok(leat_model_evaluate_generator(model, &sequence, &options, &logs, &err), &err);
        assert_true(leat_logs_get(&logs, "loss", &loss));
        if (batch_size == 1) first = loss;
        assert_true(fabs(loss - first) < 1e-6);
    }
    leat_model_destroy(&model);
}

static void predictions_keep_the_order(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(3);
    clusters small = clusters_of(23, 4), whole = clusters_of(23, 23);
    leat_sequence in_batches = clusters_sequence(&small), at_once = clusters_sequence(&whole);
    leat_evaluate_options options = leat_evaluate_options_default();
    options.workers = 3;
    leat_predictions *a = NULL, *b = NULL;
    expect_ok(leat_model_predict_generator(model, &in_batches, &options, &a, &err), &err);
    expect_ok(leat_model_predict_generator(model, &at_once, &options, &b, &err), &err);
    leat_tensor x = leat_predictions_get(a, 0), y = leat_predictions_get(b, 0);
    assert_int_equal(leat_predictions_count(a), 1);
    assert_int_equal(x.shape[0], 23);
    assert_int_equal(x.shape[1], 3);
    for (int i = 0; i < 23 * 3; ++i) assert_true(fabsf(((float *)x.data)[i] - ((float *)y.data)[i]) < 1e-6f);
    leat_predictions_destroy(&a);
    leat_predictions_destroy(&b);
    leat_model_destroy(&model);
}

/* SGD on mean squared error by hand: w -= lr * 2/n * sum(weight * (w x - y) x). */
static void sample_and_class_weights_multiply(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_line(0.1);
    float x[] = {1, 2}, y[] = {1, 0}, w[] = {0.5F, 4};
    leat_array inputs = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 1}, x)};
    leat_array targets = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 1}, y)};
    leat_array weights = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){2}, w)};
    leat_arrays arrays = {&inputs, &targets, &weights, 1, 1, 1};
    leat_class_weight classes[] = {{0, 3}, {1, 2}};
    leat_fit_options options = quiet_fit(1);
    options.class_weight = classes;
    options.class_weight_count = 2;
    expect_ok(leat_model_fit(model, &arrays, 2, &options, NULL, &err), &err);
    float got = *(float *)leat_model_weight(model, 0).data;
    assert_true(fabsf(got - 0.1F * 2 / 2 * (0.5F * 2 * 1 * 1)) <
                1e-6f); /* the second sample's target is 0, and so is w x */
    options.class_weight_count = 1;
    assert_int_equal(leat_model_fit(model, &arrays, 2, &options, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "class 1 is missing"));
    leat_model_destroy(&model);
}

static void fit_on_arrays_shuffles_samples(void **state) {
    (void)state;
    leat_error err = {0};
    float x[32], y[32], slopes[2];
    for (int i = 0; i < 32; ++i) {
        x[i] = (float)i / 32;
        y[i] = 2 * x[i];
    }
    leat_array inputs = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){32}, x)};
    leat_array targets = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){32}, y)};
    leat_arrays arrays = {&inputs, &targets, NULL, 1, 1, 0};
    for (int shuffle = 0; shuffle < 2; ++shuffle) {
        leat_model *model = make_line(0.1);
        leat_fit_options options = quiet_fit(30);
        options.shuffle = shuffle ? LEAT_SHUFFLE_AUTO : LEAT_SHUFFLE_NONE;
        expect_ok(leat_model_fit(model, &arrays, 5, &options, NULL, &err), &err);
        slopes[shuffle] = *(float *)leat_model_weight(model, 0).data;
        assert_true(fabsf(slopes[shuffle] - 2) < 0.1f);
        leat_model_destroy(&model);
    }
    assert_false(slopes[0] == slopes[1]);
}

static void one_batch_at_a_time_is_the_same_as_fit(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *fitted = make_line(0.1), *stepped = make_line(0.1);
    float x[] = {1, 2, 3}, y[] = {2, 4, 7};
    leat_array inputs = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 1}, x)};
    leat_array targets = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 1}, y)};
    leat_arrays arrays = {&inputs, &targets, NULL, 1, 1, 0};
    leat_fit_options options = quiet_fit(4);
    leat_logs logs;
    double loss = 0;
    expect_ok(leat_model_fit(fitted, &arrays, 3, &options, NULL, &err), &err);
    for (int i = 0; i < 4; ++i) expect_ok(leat_model_train_on_batch(stepped, &arrays, &logs, &err), &err);
    assert_true(weights_hash(fitted) == weights_hash(stepped));
    expect_ok(leat_model_test_on_batch(stepped, &arrays, &logs, &err), &err);
    assert_true(leat_logs_get(&logs, "loss", &loss));
    float w = *(float *)leat_model_weight(stepped, 0).data;
    double want = 0;
    for (int i = 0; i < 3; ++i) want += pow((double)(w * x[i] - y[i]), 2) / 3;
    assert_true(fabs(loss - want) < 1e-5);
    leat_tensor output;
    expect_ok(leat_model_predict_on_batch(stepped, &arrays, &output, &err), &err);
    assert_true(fabsf(((float *)output.data)[2] - w * 3) < 1e-6f);
    leat_model_destroy(&fitted);
    leat_model_destroy(&stepped);
}

static void failures_say_where(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(2);
    options.shuffle = LEAT_SHUFFLE_NONE;
    data.fail_at = 3;
    leat_history *history = NULL;
    for (int workers = 0; workers < 3; ++workers) {
        options.workers = workers;
        assert_int_equal(leat_model_fit_generator(model, &sequence, &options, &history, &err), LEAT_EUSER);
        assert_string_equal(err.message, "epoch 1: batch 3 of pass 0: no data today");
        leat_history_destroy(&history);
    }
    leat_model *line = make_line(0.1);
    assert_int_equal(leat_model_fit_generator(line, &sequence, &options, NULL, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "expected samples of shape (1,), received (4,)"));
    leat_model_destroy(&line);
    clusters none = clusters_of(0, 8);
    leat_sequence empty = clusters_sequence(&none);
    assert_int_equal(leat_model_fit_generator(model, &empty, &options, NULL, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
}

static void sample_weights_reach_the_loss(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters plain = clusters_of(20, 20), half = clusters_of(20, 20);
    half.weighted = true;
    leat_sequence all = clusters_sequence(&plain), odd = clusters_sequence(&half);
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_logs a, b;
    double loss_all = 0, loss_odd = 0;
    expect_ok(leat_model_evaluate_generator(model, &all, &options, &a, &err), &err);
    expect_ok(leat_model_evaluate_generator(model, &odd, &options, &b, &err), &err);
    assert_true(leat_logs_get(&a, "loss", &loss_all) && leat_logs_get(&b, "loss", &loss_odd));
    assert_true(loss_odd < loss_all && loss_odd > 0);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns),
        cmocka_unit_test(weights_do_not_depend_on_threads),
        cmocka_unit_test(weights_do_not_depend_on_processes),
        cmocka_unit_test(epochs_start_where_initial_epoch_says),
        cmocka_unit_test(steps_per_epoch_runs_through_the_passes),
        cmocka_unit_test(validation_runs_when_asked),
        cmocka_unit_test(evaluation_does_not_depend_on_the_batch_size),
        cmocka_unit_test(predictions_keep_the_order),
        cmocka_unit_test(validation_has_workers_of_its_own),
        cmocka_unit_test(sample_and_class_weights_multiply),
        cmocka_unit_test(fit_on_arrays_shuffles_samples),
        cmocka_unit_test(one_batch_at_a_time_is_the_same_as_fit),
        cmocka_unit_test(failures_say_where),
        cmocka_unit_test(sample_weights_reach_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
