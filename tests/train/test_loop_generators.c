/* SPDX-License-Identifier: Apache-2.0 */
/* Data without a length: steps are required, ends are clean, validation continues where it ended. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "train/support.h"

static const struct worker_pool {
    int workers;
    bool processes;
} pools[] = {{0, false}, {1, false}, {3, false}, {1, true}, {3, true}};
enum { pool_count = sizeof pools / sizeof pools[0] };

static leat_fit_options generator_fit(int64_t epochs, int64_t steps, int pool) {
    leat_fit_options options = quiet_fit(epochs);
    options.steps_per_epoch = steps;
    options.workers = pools[pool].workers;
    options.use_multiprocessing = pools[pool].processes;
    return options;
}

static void steps_are_required(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), endless = clusters_of(40, 8);
    endless.infinite = true;
    leat_sequence plain = clusters_sequence(&data);
    leat_sequence wild[] = {clusters_generator(&data), clusters_sequence(&endless)};
    for (int i = 0; i < 2; ++i) {
        leat_fit_options options = quiet_fit(1);
        assert_int_equal(leat_model_fit_generator(model, &wild[i], &options, NULL, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "steps_per_epoch is needed: the training data is"));
        options.validation = &wild[i];
        assert_int_equal(leat_model_fit_generator(model, &plain, &options, NULL, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "validation_steps is needed: the validation data is"));
        leat_logs logs;
        leat_predictions *predictions = NULL;
        assert_int_equal(leat_model_evaluate_generator(model, &wild[i], NULL, &logs, &err), LEAT_EINVAL);
        assert_non_null(strstr(err.message, "steps is needed: the data is"));
        assert_int_equal(leat_model_predict_generator(model, &wild[i], NULL, &predictions, &err),
                         LEAT_EINVAL);
        assert_null(predictions);
    }
    leat_model_destroy(&model);
}

/* The generator yields the batches of the sequence, so training must have the same results. */
static void a_generator_trains_as_its_sequence_does(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(38, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(3);
    options.shuffle = LEAT_SHUFFLE_NONE;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    uint64_t wanted = weights_hash(model);
    leat_model_destroy(&model);
    for (int pool = 0; pool < pool_count; ++pool) {
        clusters again = clusters_of(38, 8);
        leat_sequence generator = clusters_generator(&again);
        journal seen;
        leat_callback watch = journal_callback(&seen);
        options = generator_fit(3, 5, pool);
        options.callbacks = (leat_callback *[]){&watch};
        options.callback_count = 1;
        model = make_classifier(1);
        expect_ok(leat_model_fit_generator(model, &generator, &options, NULL, &err), &err);
        assert_true(weights_hash(model) == wanted);
        assert_int_equal(seen.batch_count, 15);
        assert_int_equal(seen.steps[2], 5);
        if (!pools[pool].processes)
            assert_int_equal(again.given, 15); /* no more batches than the fit takes */
        leat_model_destroy(&model);
    }
}

/* A second fit continues at the generator's position, and gets no batch twice. */
static void a_generator_goes_on_from_fit_to_fit(void **state) {
    (void)state;
    leat_error err = {0};
    for (int pool = 0; pool < 3; ++pool) {
        uint64_t hashes[2];
        for (int parts = 1; parts <= 2; ++parts) {
            leat_model *model = make_classifier(1);
            clusters data = clusters_of(80, 8);
            leat_sequence generator = clusters_generator(&data);
            leat_fit_options options = generator_fit(4 / parts, 2, pool);
            expect_ok(leat_model_fit_generator(model, &generator, &options, NULL, &err), &err);
            if (parts == 2) {
                options.initial_epoch = 2;
                options.epochs = 4;
                expect_ok(leat_model_fit_generator(model, &generator, &options, NULL, &err), &err);
            }
            assert_int_equal(data.given, 8);
            hashes[parts - 1] = weights_hash(model);
            leat_model_destroy(&model);
        }
        assert_true(hashes[0] == hashes[1]);
    }
}

/* ---- ends ---- */

static void the_end_of_a_generator_ends_training(void **state) {
    (void)state;
    leat_error err = {0};
    for (int pool = 0; pool < pool_count; ++pool) {
        clusters data = clusters_of(80, 8), held_out = clusters_of(16, 8);
        data.ends_at = 7;
        leat_sequence generator = clusters_generator(&data), validation = clusters_sequence(&held_out);
        journal seen;
        leat_callback watch = journal_callback(&seen);
        leat_fit_options options = generator_fit(5, 5, pool);
        options.validation = &validation;
        options.callbacks = (leat_callback *[]){&watch};
        options.callback_count = 1;
        leat_model *model = make_classifier(1);
        leat_history *history = NULL;
        expect_ok(leat_model_fit_generator(model, &generator, &options, &history, &err), &err);
        assert_int_equal(seen.batch_count, 7);
        assert_int_equal(seen.epoch_count, 2);
        assert_int_equal(seen.steps[1], 5);
        assert_string_equal(seen.stop_reason, "the generator ended after 2 of 5 steps");
        assert_int_equal(series_count(history, "loss"), 2);
        assert_int_equal(series_count(history, "val_loss"), 2);
        assert_true(isfinite(series_at(history, "loss", 1)));
        leat_history_destroy(&history);
        leat_model_destroy(&model);
    }
}

static void an_end_between_epochs_begins_none(void **state) {
    (void)state;
    leat_error err = {0};
    for (int pool = 0; pool < pool_count; ++pool) {
        clusters data = clusters_of(80, 8);
        data.ends_at = 10;
        leat_sequence generator = clusters_generator(&data);
        journal seen;
        leat_callback watch = journal_callback(&seen);
        leat_fit_options options = generator_fit(5, 5, pool);
        options.callbacks = (leat_callback *[]){&watch};
        options.callback_count = 1;
        leat_model *model = make_classifier(1);
        leat_history *history = NULL;
        expect_ok(leat_model_fit_generator(model, &generator, &options, &history, &err), &err);
        assert_int_equal(seen.batch_count, 10);
        assert_int_equal(seen.epoch_count, 2);
        assert_string_equal(seen.stop_reason, "the generator ended after 0 of 5 steps");
        assert_int_equal(series_count(history, "loss"), 2);
        leat_history_destroy(&history);
        leat_model_destroy(&model);
    }
}

static void an_empty_generator_is_an_error(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    for (int pool = 0; pool < pool_count; ++pool) {
        clusters data = clusters_of(80, 8);
        data.ends_at = 0;
        leat_sequence generator = clusters_generator(&data);
        leat_fit_options options = generator_fit(5, 5, pool);
        assert_int_equal(leat_model_fit_generator(model, &generator, &options, NULL, &err), LEAT_EINVAL);
        assert_string_equal(err.message, "epoch 1: the generator gave no batch");
        leat_evaluate_options evaluate = leat_evaluate_options_default();
        evaluate.steps = 3;
        evaluate.workers = pools[pool].workers;
        evaluate.use_multiprocessing = pools[pool].processes;
        leat_logs logs;
        leat_predictions *predictions = NULL;
        assert_int_equal(leat_model_evaluate_generator(model, &generator, &evaluate, &logs, &err),
                         LEAT_EINVAL);
        assert_string_equal(err.message, "the generator gave no batch");
        assert_int_equal(logs.count, 0);
        assert_int_equal(leat_model_predict_generator(model, &generator, &evaluate, &predictions, &err),
                         LEAT_EINVAL);
        assert_null(predictions);
    }
    leat_model_destroy(&model);
}

static void what_there_was_is_evaluated_and_predicted(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(3);
    clusters three = clusters_of(24, 8);
    leat_sequence sequence = clusters_sequence(&three);
    leat_logs wanted, logs;
    double want = 0, got = 0;
    expect_ok(leat_model_evaluate_generator(model, &sequence, NULL, &wanted, &err), &err);
    assert_true(leat_logs_get(&wanted, "loss", &want));
    for (int pool = 0; pool < pool_count; ++pool) {
        clusters data = clusters_of(80, 8);
        data.ends_at = 3;
        leat_sequence generator = clusters_generator(&data);
        leat_evaluate_options options = leat_evaluate_options_default();
        leat_predictions *predictions = NULL;
        options.steps = 6;
        options.workers = pools[pool].workers;
        options.use_multiprocessing = pools[pool].processes;
        expect_ok(leat_model_evaluate_generator(model, &generator, &options, &logs, &err), &err);
        assert_true(leat_logs_get(&logs, "loss", &got) && fabs(got - want) < 1e-9);
        data.given = 0;
        expect_ok(leat_model_predict_generator(model, &generator, &options, &predictions, &err), &err);
        assert_int_equal(leat_predictions_get(predictions, 0).shape[0], 24);
        leat_predictions_destroy(&predictions);
    }
    leat_model_destroy(&model);
}

/* ---- validation ---- */

/* A model that does not learn, so that val_loss depends only on the data that it was measured on. */
static leat_model *make_frozen(void) {
    leat_model *model = make_classifier(3);
    leat_model_set_learning_rate(model, 0);
    return model;
}

static void validation_by_generator_goes_on_by_sequence_begins_anew(void **state) {
    (void)state;
    leat_error err = {0};
    for (int pool = 0; pool < pool_count; ++pool)
        for (int endless = 0; endless < 3; ++endless) {
            leat_model *model = make_frozen();
            clusters data = clusters_of(16, 8), held_out = clusters_of(48, 8);
            held_out.infinite = endless == 1;
            leat_sequence sequence = clusters_sequence(&data);
            leat_sequence validation =
                endless == 2 ? clusters_generator(&held_out) : clusters_sequence(&held_out);
            leat_fit_options options = quiet_fit(3);
            leat_history *history = NULL;
            options.workers = pools[pool].workers;
            options.use_multiprocessing = pools[pool].processes;
            options.validation = &validation;
            options.validation_steps = 2;
            expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
            bool same = series_at(history, "val_loss", 0) == series_at(history, "val_loss", 1);
            assert_int_equal(same, endless != 2);
            if (pools[pool].workers == 0 && endless == 2) assert_int_equal(held_out.given, 6);
            leat_history_destroy(&history);
            leat_model_destroy(&model);
        }
}

static leat_status count_call(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *err) {
    (void)training, (void)index, (void)logs, (void)err;
    ++*(int *)user;
    return LEAT_OK;
}

/* The generator ends during a validation, or between two validations. */
static void validation_ends_after(int64_t batches, int pool) {
    leat_error err = {0};
    int begins = 0;
    leat_model *model = make_classifier(3);
    clusters data = clusters_of(16, 8), held_out = clusters_of(48, 8);
    held_out.ends_at = batches;
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_generator(&held_out);
    leat_callback counts = {.size = sizeof(leat_callback), .user = &begins, .on_test_begin = count_call};
    leat_fit_options options = quiet_fit(4);
    leat_history *history = NULL;
    options.workers = pools[pool].workers;
    options.use_multiprocessing = pools[pool].processes;
    options.validation = &validation;
    options.validation_steps = 2;
    options.callbacks = (leat_callback *[]){&counts};
    options.callback_count = 1;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    assert_int_equal(series_count(history, "loss"), 4);
    assert_int_equal(series_count(history, "val_loss"), 2);
    assert_int_equal(begins, 2);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void a_validation_generator_may_end(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        validation_ends_after(3, pool); /* the second validation has one step */
        validation_ends_after(4, pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_required),
        cmocka_unit_test(a_generator_trains_as_its_sequence_does),
        cmocka_unit_test(a_generator_goes_on_from_fit_to_fit),
        cmocka_unit_test(the_end_of_a_generator_ends_training),
        cmocka_unit_test(an_end_between_epochs_begins_none),
        cmocka_unit_test(an_empty_generator_is_an_error),
        cmocka_unit_test(what_there_was_is_evaluated_and_predicted),
        cmocka_unit_test(validation_by_generator_goes_on_by_sequence_begins_anew),
        cmocka_unit_test(a_validation_generator_may_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
