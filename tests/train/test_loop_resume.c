/* SPDX-License-Identifier: Apache-2.0 */
/* Position: fit to epoch 2 and on to epoch 4 has the same bytes as fit to epoch 4, for any kind of workers. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/support.h"

typedef struct plan {
    leat_shuffle shuffle;
    int64_t steps;
    int64_t grow;
    int workers;
    bool processes;
} plan;

static void fit_on(leat_model *model, clusters *data, const plan *p, int64_t first, int64_t last) {
    leat_error err = {0};
    leat_sequence sequence = clusters_sequence(data);
    leat_fit_options options = quiet_fit(last);
    options.initial_epoch = first;
    options.steps_per_epoch = p->steps;
    options.shuffle = p->shuffle;
    options.shuffle_window = 6;
    options.workers = p->workers;
    options.use_multiprocessing = p->processes;
    options.seed = 11;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
}

static clusters noisy_data(const plan *p) {
    clusters data = clusters_of(38, 8); /* 5 batches, the last one short */
    data.noisy = true;
    data.sampled = true;
    data.grow = p->grow;
    return data;
}

static uint64_t at_once(const plan *p) {
    leat_model *model = make_dropout_classifier(1);
    clusters data = noisy_data(p);
    fit_on(model, &data, p, 0, 4);
    uint64_t hash = weights_hash(model);
    leat_model_destroy(&model);
    return hash;
}

static uint64_t in_two(const plan *p, const plan *then) {
    leat_model *model = make_dropout_classifier(1);
    clusters data = noisy_data(p);
    fit_on(model, &data, p, 0, 2);
    fit_on(model, &data, then, 2, 4);
    uint64_t hash = weights_hash(model);
    leat_model_destroy(&model);
    return hash;
}

static const struct worker_pool {
    int workers;
    bool processes;
} pools[] = {{0, false}, {2, false}, {2, true}};
enum { pool_count = sizeof pools / sizeof pools[0] };

/* Trains with each worker pool alone, then resumes with another pool. */
static void check(plan p) {
    p.workers = 0;
    uint64_t whole = at_once(&p);
    for (int i = 0; i < pool_count; ++i) {
        plan first = p, then = p;
        first.workers = pools[i].workers;
        first.processes = pools[i].processes;
        then.workers = pools[(i + 1) % pool_count].workers;
        then.processes = pools[(i + 1) % pool_count].processes;
        assert_true(at_once(&first) == whole);
        assert_true(in_two(&first, &first) == whole);
        assert_true(in_two(&first, &then) == whole);
    }
}

static void epochs_that_are_passes(void **state) {
    (void)state;
    check((plan){.shuffle = LEAT_SHUFFLE_NONE});
    check((plan){.shuffle = LEAT_SHUFFLE_BATCHES});
    check((plan){.shuffle = LEAT_SHUFFLE_SAMPLES});
    check((plan){.shuffle = LEAT_SHUFFLE_WINDOW});
}

static void epochs_shorter_than_a_pass(void **state) {
    (void)state;
    check((plan){.shuffle = LEAT_SHUFFLE_NONE, .steps = 3});
    check((plan){.shuffle = LEAT_SHUFFLE_BATCHES, .steps = 3});
    check((plan){.shuffle = LEAT_SHUFFLE_SAMPLES, .steps = 3});
}

static void epochs_longer_than_a_pass(void **state) {
    (void)state;
    check((plan){.shuffle = LEAT_SHUFFLE_BATCHES, .steps = 7});
    check((plan){.shuffle = LEAT_SHUFFLE_SAMPLES, .steps = 7});
    check((plan){.shuffle = LEAT_SHUFFLE_SAMPLES, .steps = 5}); /* as long: epochs end with passes */
}

static void passes_that_grow(void **state) {
    (void)state;
    check((plan){.shuffle = LEAT_SHUFFLE_BATCHES, .grow = 9});
    check((plan){.shuffle = LEAT_SHUFFLE_SAMPLES, .grow = 9});
}

/* Epochs of 3 steps take the same stream of batches as epochs of 12 steps. */
static void an_epoch_is_a_cut_of_the_stream(void **state) {
    (void)state;
    uint64_t hashes[2];
    const int64_t steps[] = {3, 12}, epochs[] = {4, 1};
    for (int i = 0; i < 2; ++i) {
        leat_model *model = make_dropout_classifier(1);
        plan p = {.shuffle = LEAT_SHUFFLE_SAMPLES, .steps = steps[i], .workers = 2};
        clusters data = noisy_data(&p);
        fit_on(model, &data, &p, 0, epochs[i]);
        hashes[i] = weights_hash(model);
        assert_int_equal(data.hooked, 2);
        leat_model_destroy(&model);
    }
    assert_true(hashes[0] == hashes[1]);
}

static void shuffles_differ(void **state) {
    (void)state;
    uint64_t none = at_once(&(plan){.shuffle = LEAT_SHUFFLE_NONE});
    uint64_t batches = at_once(&(plan){.shuffle = LEAT_SHUFFLE_BATCHES});
    uint64_t samples = at_once(&(plan){.shuffle = LEAT_SHUFFLE_SAMPLES});
    uint64_t window = at_once(&(plan){.shuffle = LEAT_SHUFFLE_WINDOW});
    assert_true(at_once(&(plan){.shuffle = LEAT_SHUFFLE_AUTO}) == samples);
    assert_true(none != batches && batches != samples && samples != window && window != none);
}

static void an_infinite_sequence_goes_on(void **state) {
    (void)state;
    plan p = {.shuffle = LEAT_SHUFFLE_AUTO, .steps = 3};
    uint64_t hashes[2];
    for (int i = 0; i < 2; ++i) {
        leat_model *model = make_dropout_classifier(1);
        clusters data = noisy_data(&p);
        data.sampled = false;
        data.infinite = true;
        if (i) fit_on(model, &data, &p, 0, 2);
        fit_on(model, &data, &p, i ? 2 : 0, 4);
        hashes[i] = weights_hash(model);
        assert_int_equal(data.hooked, 0);
        leat_model_destroy(&model);
    }
    assert_true(hashes[0] == hashes[1]);
}

/* The second half needs only the contents of the file: weights, optimizer and step counter. */
static void a_loaded_model_goes_on(void **state) {
    (void)state;
    leat_error err = {0};
    char path[] = "/tmp/leat-resume-XXXXXX";
    close(mkstemp(path));
    plan p = {.shuffle = LEAT_SHUFFLE_SAMPLES, .workers = 2};
    uint64_t whole = at_once(&p);
    leat_model *model = make_dropout_classifier(1);
    clusters data = noisy_data(&p);
    fit_on(model, &data, &p, 0, 2);
    expect_ok(leat_model_save(model, path, true, &err), &err);
    leat_model_destroy(&model);
    expect_ok(leat_model_load(&model, path, &err), &err);
    data = noisy_data(&p); /* as in a new process; no hook changes it */
    fit_on(model, &data, &p, 2, 4);
    assert_true(weights_hash(model) == whole);
    leat_model_destroy(&model);
    unlink(path);
}

static void a_position_beyond_all_numbers_is_refused(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(INT64_MAX);
    options.initial_epoch = INT64_MAX / 2;
    options.steps_per_epoch = 3;
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "initial_epoch"));
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_that_are_passes),
        cmocka_unit_test(epochs_shorter_than_a_pass),
        cmocka_unit_test(epochs_longer_than_a_pass),
        cmocka_unit_test(passes_that_grow),
        cmocka_unit_test(an_epoch_is_a_cut_of_the_stream),
        cmocka_unit_test(shuffles_differ),
        cmocka_unit_test(a_loaded_model_goes_on),
        cmocka_unit_test(an_infinite_sequence_goes_on),
        cmocka_unit_test(a_position_beyond_all_numbers_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
