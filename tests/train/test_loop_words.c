/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a loop while it runs, below the progress bar, and its errors that add to the feed's message. */
#define _XOPEN_SOURCE 700 /* posix_openpt */
#include "cmocka_all.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "leat/log.h"
#include "train/support.h"

/* ---- standard error, caught ---- */

typedef struct catcher {
    FILE *file;
    int saved;
    char text[8192];
} catcher;

static void catch_begin(catcher *c) {
    c->file = tmpfile();
    assert_non_null(c->file);
    fflush(stderr);
    c->saved = dup(STDERR_FILENO);
    assert_true(dup2(fileno(c->file), STDERR_FILENO) >= 0);
}

static void catch_end(catcher *c) {
    fflush(stderr);
    dup2(c->saved, STDERR_FILENO);
    close(c->saved);
    rewind(c->file);
    c->text[fread(c->text, 1, sizeof c->text - 1, c->file)] = '\0';
    fclose(c->file);
}

static void has(const catcher *c, const char *words) {
    if (!strstr(c->text, words)) fail_msg("'%s' does not say '%s'", c->text, words);
}

static void fit_aloud(catcher *c, const leat_sequence *sequence, const leat_sequence *validation,
                      int64_t steps, int64_t validation_steps) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_fit_options options = quiet_fit(2);
    options.verbose = 1;
    options.steps_per_epoch = steps;
    options.validation = validation;
    options.validation_steps = validation_steps;
    catch_begin(c);
    leat_status status = leat_model_fit_generator(model, sequence, &options, NULL, &err);
    catch_end(c);
    expect_ok(status, &err);
    leat_model_destroy(&model);
}

static void batches_passed_over_are_told(void **state) {
    (void)state;
    catcher c;
    clusters data = clusters_of(40, 8), held_out = clusters_of(24, 8);
    data.skip_at = 1;
    held_out.skip_at = 2;
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    fit_aloud(&c, &sequence, &validation, 0, 0);
    has(&c, "leat: epoch 1 passed over 1 bad batch: 4 of 5 steps were made\n");
    has(&c, "leat: epoch 2 passed over 1 bad batch: 4 of 5 steps were made\n");
    has(&c, "leat: validation passed over 1 bad batch\n");
    has(&c, "\n4/5 [=======================>......]"); /* the bar shows the real number of steps */
    has(&c, "2 bad batches were passed over.");
}

static void ends_of_generators_are_told(void **state) {
    (void)state;
    catcher c;
    clusters data = clusters_of(40, 8), held_out = clusters_of(24, 8);
    data.ends_at = 8;
    held_out.ends_at = 3;
    leat_sequence sequence = clusters_generator(&data), validation = clusters_generator(&held_out);
    fit_aloud(&c, &sequence, &validation, 5, 2);
    has(&c, "leat: epoch 2: the generator ended after 3 of 5 steps\n");
    has(&c, "leat: validation: the generator ended after 1 of 2 steps\n");
}

static void an_evaluation_tells_the_same(void **state) {
    (void)state;
    leat_error err = {0};
    catcher c;
    leat_model *model = make_classifier(1);
    leat_logs logs;
    leat_predictions *predictions = NULL;
    clusters data = clusters_of(40, 8), short_data = clusters_of(40, 8);
    data.fail_at = 2;
    short_data.ends_at = 3;
    leat_sequence sequence = clusters_sequence(&data), generator = clusters_generator(&short_data);
    leat_evaluate_options options = leat_evaluate_options_default();
    options.verbose = 1;
    options.faults.bad_batch = LEAT_BAD_BATCH_SKIP;
    catch_begin(&c);
    leat_status status = leat_model_evaluate_generator(model, &sequence, &options, &logs, &err);
    catch_end(&c);
    expect_ok(status, &err);
    has(&c, "leat: evaluation passed over 1 bad batch: 4 of 5 steps were made\n");
    options.steps = 4;
    catch_begin(&c);
    status = leat_model_predict_generator(model, &generator, &options, &predictions, &err);
    catch_end(&c);
    expect_ok(status, &err);
    has(&c, "leat: prediction: the generator ended after 3 of 4 steps\n");
    leat_predictions_destroy(&predictions);
    leat_model_destroy(&model);
}

/* ---- the log ---- */

typedef struct heard {
    int counts[LEAT_LOG_DEBUG + 1];
    char text[8192];
} heard;

static void hear(void *user, leat_log_level level, const char *message) {
    heard *h = user;
    const size_t used = strlen(h->text);
    assert_true(message[0] != '\n' && message[0] != '\0' && message[strlen(message) - 1] != '\n');
    ++h->counts[level];
    snprintf(h->text + used, sizeof h->text - used, "[%d] %s\n", (int)level, message);
}

static void fit_with_a_bad_batch(catcher *c, int verbose, leat_callback *const *callbacks, int count) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), held_out = clusters_of(24, 8);
    data.skip_at = 1;
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_fit_options options = quiet_fit_with(1, callbacks, count);
    options.verbose = verbose;
    options.validation = &validation;
    catch_begin(c);
    leat_status status = leat_model_fit_generator(model, &sequence, &options, NULL, &err);
    catch_end(c);
    expect_ok(status, &err);
    leat_model_destroy(&model);
}

static void without_a_log_there_is_the_bar_alone(void **state) {
    (void)state;
    catcher c;
    leat_set_log(NULL, NULL);
    fit_with_a_bad_batch(&c, 0, NULL, 0);
    assert_string_equal(c.text, "");
    fit_with_a_bad_batch(&c, 1, NULL, 0);
    has(&c, "Epoch 1/1\n4/5 [");
    assert_null(strstr(c.text, "worker"));
    assert_null(strstr(c.text, "bad batch"));
    assert_null(strstr(c.text, "A step takes"));
    leat_set_log(leat_log_to_stderr, NULL);
}

static void messages_have_levels(void **state) {
    (void)state;
    catcher c;
    static heard h;
    leat_set_log(hear, &h);
    fit_with_a_bad_batch(&c, 0, NULL, 0);
    assert_string_equal(h.text, "");
    fit_with_a_bad_batch(&c, 2, NULL, 0);
    leat_set_log(leat_log_to_stderr, NULL);
    assert_null(strstr(c.text, "bad batch"));
    assert_int_equal(h.counts[LEAT_LOG_INFO], 2);
    assert_int_equal(h.counts[LEAT_LOG_WARNING], 1);
    assert_non_null(strstr(h.text, "[2] leat: 1 worker thread"));
    assert_non_null(strstr(h.text, "[1] leat: epoch 1 passed over 1 bad batch: 4 of 5 steps were made\n"));
    assert_non_null(strstr(h.text, "A step takes"));
}

/* The bar is a callback like any other: a fit with verbose = 0 has the one that the caller gives.  It draws no
 * validation. */
static void the_bar_is_a_callback(void **state) {
    (void)state;
    catcher c;
    leat_error err = {0};
    leat_callback bar, *callbacks[] = {&bar};
    assert_int_equal(leat_progbar_logger_create(&bar, sizeof bar, 0, &err), LEAT_EINVAL);
    assert_int_equal(leat_progbar_logger_create(&bar, sizeof bar, 3, &err), LEAT_EINVAL);
    expect_ok(leat_progbar_logger_create(&bar, sizeof bar, 1, &err), &err);
    fit_with_a_bad_batch(&c, 0, callbacks, 1);
    has(&c, "Epoch 1/1\n4/5 [");
    assert_null(strstr(c.text, "3/3"));
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(24, 8);
    leat_sequence sequence = clusters_sequence(&data);
    leat_evaluate_options options = leat_evaluate_options_default();
    leat_logs logs;
    options.callbacks = callbacks;
    options.callback_count = 1;
    catch_begin(&c);
    leat_status status = leat_model_evaluate_generator(model, &sequence, &options, &logs, &err);
    catch_end(&c);
    expect_ok(status, &err);
    has(&c, "3/3 [==============================]");
    leat_callback_destroy(&bar);
    leat_model_destroy(&model);
}

/* ---- errors ---- */

/* After a failure the log has no verdict, but the history has the verdict on the steps before. */
static void a_failed_fit_writes_no_verdict(void **state) {
    (void)state;
    catcher c;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_history *history = NULL;
    clusters data = clusters_of(40, 8);
    data.fail_at = 3;
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(1);
    options.verbose = 2;
    options.shuffle = LEAT_SHUFFLE_NONE;
    catch_begin(&c);
    leat_status status = leat_model_fit_generator(model, &sequence, &options, &history, &err);
    catch_end(&c);
    assert_int_not_equal(status, LEAT_OK);
    has(&c, "Epoch 1/1");
    assert_null(strstr(c.text, "A step takes"));
    assert_int_equal(leat_history_verdict(history).steps, 3);
    assert_non_null(strstr(leat_history_verdict(history).text, "A step takes"));
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

static void errors_say_which_data(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), none = clusters_of(0, 8), wrong = clusters_of(24, 8);
    leat_sequence sequence = clusters_sequence(&data), empty = clusters_sequence(&none);
    leat_sequence odd = clusters_sequence(&wrong);
    odd.spec.tensors[0].shape[0] = 5;
    leat_fit_options options = quiet_fit(1);
    options.validation = &odd;
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "validation data: "));
    options.validation = &empty;
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_EINVAL);
    if (!strstr(err.message, "validation")) fail_msg("%s", err.message);
    options.validation = NULL;
    options.shuffle = LEAT_SHUFFLE_SAMPLES; /* this sequence has no get_samples */
    assert_int_equal(leat_model_fit_generator(model, &sequence, &options, NULL, &err), LEAT_ENOTSUP);
    leat_model_destroy(&model);
}

/* On a terminal, the line of the bar has ended before the error is printed. */
static void a_bar_that_a_failure_cuts_ends_its_line(void **state) {
    (void)state;
    char text[4096] = "";
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8);
    data.fail_at = 3;
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(1);
    options.verbose = 1;
    options.shuffle = LEAT_SHUFFLE_NONE;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDERR_FILENO);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) LEAT_SKIP("no pseudo-terminal");
    int screen = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(screen >= 0);
    fflush(stderr);
    dup2(screen, STDERR_FILENO);
    leat_status status = leat_model_fit_generator(model, &sequence, &options, NULL, &err);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(screen); /* Once nobody has the screen open, what it showed is read up to its end. */
    ssize_t length = 0, got = 1;
    for (; got > 0; length += got > 0 ? got : 0)
        got = read(terminal, text + length, sizeof text - 1 - (size_t)length);
    close(terminal);
    close(saved);
    assert_int_not_equal(status, LEAT_OK);
    assert_true(length > 2);
    if (!strstr(text, "1/5 [") || text[length - 1] != '\n') fail_msg("'%s'", text);
    leat_model_destroy(&model);
}

/* A sequence whose second batch hangs until the test sets go_on. */
typedef struct hanging {
    clusters data;
    leat_sequence inner;
    atomic_bool go_on;
    atomic_int inside;
} hanging;

static void nap(void) {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static int64_t hanging_length(void *user) {
    const hanging *self = user;
    return self->inner.length(self->inner.user);
}

static leat_status hanging_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    hanging *self = user;
    atomic_fetch_add(&self->inside, 1);
    while (index == 1 && !atomic_load(&self->go_on)) nap();
    leat_status status = self->inner.get(self->inner.user, index, rng, batch, err);
    atomic_fetch_sub(&self->inside, 1);
    return status;
}

/* As training data, as validation data, and as validation data seen through validation_steps. */
static void a_thread_that_hangs_is_told_of(void **state) {
    (void)state;
    for (int part = 0; part < 3; ++part) {
        leat_error err = {0};
        leat_model *model = make_classifier(1);
        clusters plain = clusters_of(24, 8);
        static hanging slow; /* static, since the stuck thread may live longer than this test */
        slow = (hanging){.data = clusters_of(24, 8)};
        slow.inner = clusters_sequence(&slow.data);
        leat_sequence sequence = clusters_sequence(&plain), hung = slow.inner;
        hung.user = &slow;
        hung.length = hanging_length;
        hung.get = hanging_get;
        hung.on_epoch_end = NULL;
        hung.state = NULL;
        hung.state_bytes = 0;
        leat_fit_options options = quiet_fit(1);
        options.faults.deadline_ms = 100;
        options.workers = 2;
        options.validation = part ? &hung : NULL;
        options.validation_steps = part == 2 ? 5 : 0;
        assert_int_equal(leat_model_fit_generator(model, part ? &sequence : &hung, &options, NULL, &err),
                         LEAT_ETIMEOUT);
        if (!strstr(err.message, "still in get: do not free the sequence's data or the model"))
            fail_msg("%s", err.message);
        atomic_store(&slow.go_on, true);
        while (atomic_load(&slow.inside) > 0) nap();
        leat_model_destroy(&model);
    }
}

/* ---- the verdict on a fit with trouble ---- */

/* The worker dies at its third batch, but only once: a file marks that it has died. */
typedef struct mortal {
    clusters data;
    leat_sequence inner;
    char marker[64];
} mortal;

static int64_t mortal_length(void *user) {
    const mortal *self = user;
    return self->inner.length(self->inner.user);
}

static leat_status mortal_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const mortal *self = user;
    if (index == 2 && unlink(self->marker) == 0) raise(SIGKILL);
    return self->inner.get(self->inner.user, index, rng, batch, err);
}

static uint64_t fit_mortal(mortal *self, int workers, leat_verdict *verdict, leat_feed_stats *feed) {
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    leat_history *history = NULL;
    leat_sequence sequence = self->inner;
    sequence.user = self;
    sequence.length = mortal_length;
    sequence.get = mortal_get;
    sequence.on_epoch_end = NULL;
    sequence.state = NULL;
    sequence.state_bytes = 0;
    leat_fit_options options = quiet_fit(2);
    options.workers = workers;
    options.use_multiprocessing = true;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    *verdict = leat_history_verdict(history);
    *feed = leat_history_feed_stats(history);
    uint64_t hash = weights_hash(model);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
    return hash;
}

static void a_worker_s_death_changes_nothing_but_the_verdict(void **state) {
    (void)state;
    mortal self = {.data = clusters_of(40, 8), .marker = "/tmp/leat-mortal-XXXXXX"};
    leat_verdict verdict;
    leat_feed_stats feed;
    self.data.noisy = true;
    self.inner = clusters_sequence(&self.data);
    uint64_t wanted = fit_mortal(&self, 0, &verdict, &feed); /* without the marker file */
    close(mkstemp(self.marker));
    assert_true(fit_mortal(&self, 2, &verdict, &feed) == wanted);
    assert_int_equal(feed.worker_deaths, 1);
    assert_non_null(strstr(verdict.text, "1 worker process died and was replaced."));
    assert_true(access(self.marker, F_OK) != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_passed_over_are_told),
        cmocka_unit_test(ends_of_generators_are_told),
        cmocka_unit_test(an_evaluation_tells_the_same),
        cmocka_unit_test(without_a_log_there_is_the_bar_alone),
        cmocka_unit_test(messages_have_levels),
        cmocka_unit_test(the_bar_is_a_callback),
        cmocka_unit_test(a_failed_fit_writes_no_verdict),
        cmocka_unit_test(a_bar_that_a_failure_cuts_ends_its_line),
        cmocka_unit_test(errors_say_which_data),
        cmocka_unit_test(a_thread_that_hangs_is_told_of),
        cmocka_unit_test(a_worker_s_death_changes_nothing_but_the_verdict),
    };
    leat_set_log(leat_log_to_stderr, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
