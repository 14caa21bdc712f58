/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of docs/promises.md about training, with the numbers of that document. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "train/support.h"

static const struct worker_pool {
    int workers;
    bool processes;
} pools[] = {{0, false}, {1, false}, {2, false}, {2, true}};
enum { pool_count = sizeof pools / sizeof pools[0] };

/* A fit on clusters with one of the worker pools, and a journal. */
typedef struct rig {
    leat_model *model;
    clusters data, held_out;
    leat_sequence sequence, validation;
    journal seen;
    leat_callback watch;
    leat_callback *callbacks[2]; /* the journal's callback, and one other */
    leat_fit_options options;
    leat_history *history;
    leat_error err;
} rig;

static void rig_init(rig *r, int pool, int64_t samples, int64_t epochs) {
    *r = (rig){.model = make_classifier(1), .data = clusters_of(samples, 8), .held_out = clusters_of(40, 8)};
    r->sequence = clusters_sequence(&r->data);
    r->validation = clusters_sequence(&r->held_out);
    r->watch = journal_callback(&r->seen);
    r->callbacks[0] = &r->watch;
    r->options = quiet_fit(epochs);
    r->options.workers = pools[pool].workers;
    r->options.use_multiprocessing = pools[pool].processes;
    r->options.callbacks = r->callbacks;
    r->options.callback_count = 1;
}

static void also(rig *r, leat_callback *callback) {
    r->callbacks[1] = callback;
    r->options.callback_count = 2;
}

static leat_status rig_fit(rig *r) {
    return leat_model_fit_generator(r->model, &r->sequence, &r->options, &r->history, &r->err);
}

static void rig_must_fit(rig *r) {
    expect_ok(rig_fit(r), &r->err);
}

static void rig_fini(rig *r) {
    leat_history_destroy(&r->history);
    leat_model_destroy(&r->model);
}

/* ---- hangs and shutdown ---- */

static leat_status break_down(void *user, leat_training *training, int64_t index, leat_logs *logs,
                              leat_error *err) {
    (void)training, (void)logs;
    return index == *(int *)user ? leat_error_set(err, LEAT_EUSER, "it broke") : LEAT_OK;
}

static void promise_02_an_error_in_any_hook_reaches_the_caller(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        rig r;
        rig_init(&r, pool, 40, 4);
        r.data.fail_pass = 1; /* on_epoch_end of the sequence fails */
        assert_int_equal(rig_fit(&r), LEAT_EUSER);
        assert_non_null(strstr(r.err.message, "epoch 2: "));
        assert_non_null(strstr(r.err.message, "on_epoch_end"));
        assert_non_null(strstr(r.err.message, "the hook broke"));
        assert_int_equal(series_count(r.history, "loss"), 2);
        rig_fini(&r);

        rig_init(&r, pool, 40, 4);
        r.data.grow = -40; /* the second pass is empty */
        assert_int_equal(rig_fit(&r), LEAT_EINVAL);
        rig_fini(&r);

        rig_init(&r, pool, 40, 4);
        r.data.fail_at = 3;
        assert_int_equal(rig_fit(&r), LEAT_EUSER);
        assert_non_null(strstr(r.err.message, "epoch 1: batch 3 of pass 0: no data today"));
        rig_fini(&r);

        int third = 2;
        leat_callback broken = {.size = sizeof(leat_callback),
                                .user = &third,
                                .on_train_batch_begin = break_down};
        rig_init(&r, pool, 40, 4);
        also(&r, &broken);
        assert_int_equal(rig_fit(&r), LEAT_EUSER);
        assert_string_equal(r.err.message, "epoch 1: on_train_batch_begin 2: it broke");
        rig_fini(&r);
    }
}

static leat_status stop_at_batch_4(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                                   leat_error *err) {
    (void)user, (void)logs, (void)err;
    if (batch == 4) leat_training_stop(training, "seen enough");
    return LEAT_OK;
}

static void promise_10_validation_never_clears_a_stop(void **state) {
    (void)state;
    leat_callback stops = {.size = sizeof(leat_callback),
                           .on_train_batch_end = stop_at_batch_4}; /* the last batch of the epoch */
    for (int pool = 0; pool < pool_count; ++pool) {
        rig r;
        rig_init(&r, pool, 40, 5);
        also(&r, &stops);
        r.options.validation = &r.validation;
        rig_must_fit(&r);
        assert_int_equal(r.seen.epoch_count, 1);
        assert_int_equal(r.seen.test_count, 1);
        assert_true(r.seen.has_val[0]);
        rig_fini(&r);
    }
}

static void promise_11_epochs_end_whoever_takes_the_last_batch(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool)
        for (int64_t steps = 0; steps <= 5;
             steps += 5) { /* 0: the sequence's length; 5: the same number of steps */
            rig r;
            rig_init(&r, pool, 40, 3);
            r.options.steps_per_epoch = steps;
            rig_must_fit(&r);
            assert_int_equal(r.seen.batch_count, 15);
            assert_int_equal(r.data.hooked, 3);
            rig_fini(&r);
        }
}

/* ---- order ---- */

static uint64_t shuffled(int pool, leat_shuffle shuffle) {
    rig r;
    rig_init(&r, pool, 40, 3);
    r.options.shuffle = shuffle;
    r.options.steps_per_epoch = 3;
    rig_must_fit(&r);
    uint64_t hash = weights_hash(r.model);
    rig_fini(&r);
    return hash;
}

static void promise_19_shuffle_counts_with_steps_per_epoch(void **state) {
    (void)state;
    uint64_t in_order = shuffled(0, LEAT_SHUFFLE_NONE), mixed = shuffled(0, LEAT_SHUFFLE_BATCHES);
    assert_true(in_order != mixed);
    for (int pool = 1; pool < pool_count; ++pool) {
        assert_true(shuffled(pool, LEAT_SHUFFLE_NONE) == in_order);
        assert_true(shuffled(pool, LEAT_SHUFFLE_BATCHES) == mixed);
    }
}

static void promise_21_a_finite_generator_ends_the_epoch_cleanly(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        rig r;
        rig_init(&r, pool, 40, 4);
        r.data.ends_at = 8;
        r.sequence = clusters_generator(&r.data);
        r.options.steps_per_epoch = 5;
        rig_must_fit(&r);
        assert_int_equal(r.seen.batch_count, 8);
        assert_string_equal(r.seen.stop_reason, "the generator ended after 3 of 5 steps");
        assert_int_equal(leat_history_feed_stats(r.history).batches, 8);
        rig_fini(&r);
    }
}

/* ---- passes and epochs ---- */

/* The number of steps that were done at each call of the sequence's on_epoch_end. */
typedef struct moments {
    const journal *seen;
    int at[16];
    int64_t passes[16];
    int count;
} moments;

static leat_status note_moment(void *user, int64_t pass, leat_error *err) {
    moments *m = user;
    (void)err;
    m->at[m->count] = m->seen->batch_count;
    m->passes[m->count++] = pass;
    return LEAT_OK;
}

static int64_t moments_length(void *user) {
    (void)user;
    return 10;
}

static leat_status moments_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user, (void)rng, (void)err;
    memset(batch->tensors[0].data, 0, leat_tensor_bytes(&batch->tensors[0]));
    memset(batch->tensors[1].data, 0, leat_tensor_bytes(&batch->tensors[1]));
    *(float *)batch->tensors[0].data = (float)index;
    return LEAT_OK;
}

static void promise_23_on_epoch_end_belongs_to_the_pass(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        rig r;
        rig_init(&r, pool, 80, 5);
        moments m = {.seen = &r.seen};
        r.sequence.user = &m;
        r.sequence.length = moments_length;
        r.sequence.get = moments_get;
        r.sequence.on_epoch_end = note_moment;
        r.sequence.state = NULL;
        r.sequence.state_bytes = 0;
        r.options.steps_per_epoch = 4;
        rig_must_fit(&r);
        assert_int_equal(m.count, 2); /* 5 epochs of 4 steps are 2 passes of 10 batches */
        assert_int_equal(m.at[0], 10);
        assert_int_equal(m.at[1], 20);
        assert_int_equal(m.passes[0], 0);
        assert_int_equal(m.passes[1], 1);
        rig_fini(&r);
    }
}

static void promise_25_on_epoch_end_comes_once_a_pass(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool)
        for (int64_t epochs = 1; epochs <= 4; ++epochs) {
            rig r;
            rig_init(&r, pool, 40, epochs);
            rig_must_fit(&r);
            assert_int_equal(r.data.hooked, epochs);
            rig_fini(&r);
        }
}

static void promise_26_and_of_validation_data_once_a_validation(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool)
        for (int64_t steps = 0; steps <= 7;
             steps += 7) { /* also with more steps than the sequence has batches */
            rig r;
            rig_init(&r, pool, 40, 4);
            r.options.validation = &r.validation;
            r.options.validation_steps = steps;
            r.options.validation_freq = 2;
            rig_must_fit(&r);
            assert_int_equal(r.held_out.hooked, 2);
            rig_fini(&r);
        }
}

static void promise_27_the_length_is_read_anew(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        rig r;
        rig_init(&r, pool, 40, 4);
        r.data.grow = 8;
        rig_must_fit(&r);
        for (int epoch = 0; epoch < 4; ++epoch) assert_int_equal(r.seen.steps[epoch], 5 + epoch);
        assert_int_equal(r.seen.batch_count, 5 + 6 + 7 + 8);
        rig_fini(&r);
    }
}

static void promise_29_validation_starts_at_index_0(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool)
        for (int64_t steps = 1; steps <= 9; steps += 4) { /* below the length, equal, beyond */
            rig r;
            rig_init(&r, pool, 40, 4);
            leat_model_set_learning_rate(r.model, 0);
            r.options.validation = &r.validation;
            r.options.validation_steps = steps;
            rig_must_fit(&r);
            for (int epoch = 1; epoch < 4; ++epoch)
                assert_true(series_at(r.history, "val_loss", epoch) == series_at(r.history, "val_loss", 0));
            rig_fini(&r);
        }
}

static void promise_31_steps_are_a_continuous_stream(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        uint64_t hashes[2];
        for (int cut = 0; cut < 2; ++cut) {
            rig r;
            rig_init(&r, pool, 40, cut ? 7 : 1);
            r.options.steps_per_epoch = cut ? 3 : 21;
            rig_must_fit(&r);
            assert_int_equal(r.seen.batch_count, 21);
            hashes[cut] = weights_hash(r.model);
            rig_fini(&r);
        }
        assert_true(hashes[0] == hashes[1]);
    }
}

/* ---- bad batches ---- */

static void promise_37_a_skipped_batch_shortens_the_epoch(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        rig r;
        rig_init(&r, pool, 40, 3);
        r.data.skip_at = 2;
        r.held_out.skip_at = 4;
        r.options.validation = &r.validation;
        rig_must_fit(&r);
        assert_int_equal(r.seen.batch_count, 3 * 4);
        assert_int_equal(r.seen.steps[1], 5);
        assert_int_equal(r.data.hooked, 3);
        assert_int_equal(series_count(r.history, "val_loss"), 3);
        assert_int_equal(leat_history_feed_stats(r.history).skips, 3);
        rig_fini(&r);

        rig_init(&r, pool, 40, 3);
        r.data.fail_at = 0; /* the policy skips a batch that fails */
        r.options.shuffle = LEAT_SHUFFLE_NONE;
        r.options.faults.bad_batch = LEAT_BAD_BATCH_SKIP;
        r.options.steps_per_epoch = 4; /* 12 steps take batches of 3 passes, each of which lacks one batch */
        rig_must_fit(&r);
        assert_int_equal(r.seen.batch_count, 12);
        assert_int_equal(r.data.hooked, 3);
        assert_int_equal(leat_history_feed_stats(r.history).skips, 3);
        assert_non_null(strstr(leat_history_verdict(r.history).text, "3 bad batches were passed over"));
        rig_fini(&r);
    }
}

static void promise_38_an_empty_batch_is_the_same_error_everywhere(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        rig r;
        rig_init(&r, pool, 40, 1);
        r.data.empty_at = 1;
        assert_int_equal(rig_fit(&r), LEAT_ESHAPE);
        const char *words = "batch 1 of pass 0: get set a size of 0 samples";
        assert_non_null(strstr(r.err.message, words));
        leat_evaluate_options options = leat_evaluate_options_default();
        options.workers = pools[pool].workers;
        options.use_multiprocessing = pools[pool].processes;
        leat_logs logs;
        leat_predictions *predictions = NULL;
        assert_int_equal(leat_model_evaluate_generator(r.model, &r.sequence, &options, &logs, &r.err),
                         LEAT_ESHAPE);
        assert_non_null(strstr(r.err.message, words));
        assert_int_equal(leat_model_predict_generator(r.model, &r.sequence, &options, &predictions, &r.err),
                         LEAT_ESHAPE);
        assert_non_null(strstr(r.err.message, words));
        rig_fini(&r);
    }
}

/* ---- numbers ---- */

static void promise_39_val_loss_is_the_mean_over_all_samples(void **state) {
    (void)state;
    for (int pool = 0; pool < pool_count; ++pool) {
        double first = 0;
        for (int64_t batch_size = 1; batch_size <= 9; batch_size += 4) {
            rig r;
            rig_init(&r, pool, 40, 1);
            leat_model_set_learning_rate(r.model, 0);
            r.held_out = clusters_of(23, batch_size);
            r.validation = clusters_sequence(&r.held_out);
            r.options.validation = &r.validation;
            rig_must_fit(&r);
            double loss = series_at(r.history, "val_loss", 0);
            if (batch_size == 1) first = loss;
            assert_true(fabs(loss - first) < 1e-6);
            rig_fini(&r);
        }
    }
}

/* Batches of 2 and 1 samples with weights 1, 3, 5 and errors 1, 4, 9: ((1 + 12) / 2 * 2 + 45 * 1) / 3. */
static void promise_40_the_weighted_loss_is_that_of_its_batches(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_line(0);
    float x[] = {1, 1, 1}, y[] = {1, 2, 3}, w[] = {1, 3, 5};
    leat_array inputs = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 1}, x)};
    leat_array targets = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 1}, y)};
    leat_array weights = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){3}, w)};
    leat_arrays arrays = {&inputs, &targets, &weights, 1, 1, 1};
    leat_fit_options options = quiet_fit(1);
    leat_history *history = NULL;
    options.shuffle = LEAT_SHUFFLE_NONE;
    expect_ok(leat_model_fit(model, &arrays, 2, &options, &history, &err), &err);
    assert_true(fabs(series_at(history, "loss", 0) - (13.0 + 45.0) / 3) < 1e-5);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void promise_41_an_epoch_without_validation_has_no_val(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 1, 40, 5);
    r.options.validation = &r.validation;
    r.options.validation_freq = 2;
    rig_must_fit(&r);
    const bool wanted[] = {false, true, false, true, false};
    for (int epoch = 0; epoch < 5; ++epoch) assert_int_equal(r.seen.has_val[epoch], wanted[epoch]);
    assert_int_equal(series_count(r.history, "val_loss"), 2);
    rig_fini(&r);
}

static void promise_44_the_reason_of_a_stop_is_told_at_the_end(void **state) {
    (void)state;
    leat_callback stops = {.size = sizeof(leat_callback), .on_train_batch_end = stop_at_batch_4}, nan;
    rig r;
    rig_init(&r, 1, 80, 5);
    also(&r, &stops);
    rig_must_fit(&r);
    assert_string_equal(r.seen.stop_reason, "seen enough");
    rig_fini(&r);

    rig_init(&r, 1, 80, 5);
    expect_ok(leat_terminate_on_nan_create(&nan, sizeof nan, &r.err), &r.err);
    also(&r, &nan);
    r.data.nan_at = 3;
    rig_must_fit(&r);
    assert_non_null(strstr(r.seen.stop_reason, "loss"));
    rig_fini(&r);
    leat_callback_destroy(&nan);

    rig_init(&r, 1, 80, 2);
    rig_must_fit(&r);
    assert_string_equal(r.seen.stop_reason, "");
    rig_fini(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promise_02_an_error_in_any_hook_reaches_the_caller),
        cmocka_unit_test(promise_10_validation_never_clears_a_stop),
        cmocka_unit_test(promise_11_epochs_end_whoever_takes_the_last_batch),
        cmocka_unit_test(promise_19_shuffle_counts_with_steps_per_epoch),
        cmocka_unit_test(promise_21_a_finite_generator_ends_the_epoch_cleanly),
        cmocka_unit_test(promise_23_on_epoch_end_belongs_to_the_pass),
        cmocka_unit_test(promise_25_on_epoch_end_comes_once_a_pass),
        cmocka_unit_test(promise_26_and_of_validation_data_once_a_validation),
        cmocka_unit_test(promise_27_the_length_is_read_anew),
        cmocka_unit_test(promise_29_validation_starts_at_index_0),
        cmocka_unit_test(promise_31_steps_are_a_continuous_stream),
        cmocka_unit_test(promise_37_a_skipped_batch_shortens_the_epoch),
        cmocka_unit_test(promise_38_an_empty_batch_is_the_same_error_everywhere),
        cmocka_unit_test(promise_39_val_loss_is_the_mean_over_all_samples),
        cmocka_unit_test(promise_40_the_weighted_loss_is_that_of_its_batches),
        cmocka_unit_test(promise_41_an_epoch_without_validation_has_no_val),
        cmocka_unit_test(promise_44_the_reason_of_a_stop_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
