/* SPDX-License-Identifier: Apache-2.0 */
/* Worker processes that another program forks (leat/helper.h).  This test is its own helper program: leat starts it
 * with the word "helper" and a mode. */
#define _GNU_SOURCE /* getppid while signals are blocked */
#include "cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/source.h"
#include "leat/helper.h"

static const char *self;

enum { LENGTH = 23, MOST = 40000, REFUSED = 102 };

/* What the caller tells the helper program: the only thing that they share besides the feed. */
typedef struct plan {
    int64_t kill_at; /* the first attempt at this batch, in each pass, kills its worker; -1: none */
    int64_t salt;
    char counter[64]; /* a file: a worker was killed if it exists */
} plan;

static int64_t length_of(void *user) {
    (void)user;
    return LENGTH;
}

static leat_status make(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    const plan *p = user;
    batch->size = 1 + (int64_t)leat_rng_below(rng, MOST);
    leat_status status = leat_batch_reserve(batch, (size_t)batch->size, err);
    if (status != LEAT_OK) return status;
    unsigned char *data = batch->tensors[0].data;
    for (int64_t i = 0; i < batch->size; ++i) data[i] = (unsigned char)(leat_rng_u32(rng) + p->salt);
    if (index != p->kill_at || access(p->counter, F_OK) == 0) return LEAT_OK;
    fclose(fopen(p->counter, "w"));
    kill(getpid(), SIGKILL);
    return LEAT_OK;
}

static leat_status end_epoch(void *user, int64_t pass, leat_error *err) {
    (void)err;
    ((plan *)user)->salt = pass + 100;
    return LEAT_OK;
}

static leat_sequence sequence_of(plan *p) {
    leat_sequence sequence = leat_sequence_default();
    leat_error err = {0};
    sequence.user = p;
    sequence.length = length_of;
    sequence.get = make;
    sequence.spec.batch_size = (int64_t)1 << 30;
    if (leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, NULL, LEAT_U8, 0, NULL, &err) != LEAT_OK)
        abort();
    return sequence;
}

/* A leat_helper_make; `user` has room for a plan. */
static leat_status make_again(void *user, const leat_helper *helper, leat_sequence *sequences,
                              leat_error *err) {
    size_t bytes = 0;
    const void *data = leat_helper_data(helper, 0, &bytes);
    if (bytes != sizeof(plan)) return leat_error_set_text(err, LEAT_EUSER, "no plan");
    memcpy(user, data, bytes);
    if (((plan *)user)->salt == REFUSED) return leat_error_set_text(err, LEAT_EUSER, "this salt is refused");
    sequences[0] = sequence_of(user);
    return LEAT_OK;
}

static int serve(leat_helper *helper) {
    plan p;
    leat_error err = {0};
    leat_status status = leat_helper_serve(helper, make_again, &p, &err);
    leat_helper_close(&helper);
    return status == LEAT_OK ? 0 : 3;
}

/* Supervises workers that are programs of their own. */
static int supervise(leat_helper *helper, const char *mode) {
    leat_error err = {0};
    const char *command[] = {self, "worker", mode, NULL};
    leat_status status = leat_helper_supervise(helper, command, &err);
    leat_helper_close(&helper);
    return status == LEAT_OK ? 0 : 3;
}

/* The main function of a worker program. */
static int work(const char *mode, const char *word) {
    plan p;
    leat_error err = {0};
    if (strcmp(mode, "ends") == 0) return 5;
    if (strcmp(mode, "begins slowly") == 0) sleep(60);
    return leat_helper_work(word, make_again, &p, &err) == LEAT_OK ? 0 : 3;
}

/* The main function of the helper program. */
static int help(const char *mode, int descriptor) {
    leat_error err = {0};
    leat_helper *helper = NULL;
    if (strcmp(mode, "exits") == 0) return 7;
    if (strcmp(mode, "sleeps") == 0) pause();
    if (leat_helper_open(&helper, descriptor, &err) != LEAT_OK) return 1;
    if (strcmp(mode, "serves") == 0) return serve(helper);
    if (strncmp(mode, "spawn:", 6) == 0) return supervise(helper, mode + 6);
    size_t bytes = 0;
    const void *data = leat_helper_data(helper, 0, &bytes);
    plan plans[2] = {0};
    leat_sequence sequences[2];
    int count = leat_helper_feed_count(helper);
    for (int i = 0; i < count && i < 2; ++i) {
        data = leat_helper_data(helper, i, &bytes);
        if (bytes != sizeof *plans) return 2;
        memcpy(&plans[i], data, bytes);
        sequences[i] = sequence_of(&plans[i]);
        sequences[i].state = &plans[i].salt;
        sequences[i].state_bytes = strcmp(mode, "state") == 0 ? sizeof plans[i].salt : 0;
        if (!sequences[i].state_bytes) sequences[i].state = NULL;
    }
    if (strcmp(mode, "refuses") == 0) {
        leat_error why = {0};
        leat_error_set_text(&why, LEAT_EUSER, "the data set cannot be read");
        leat_helper_fail(helper, &why);
        leat_helper_close(&helper);
        return 0;
    }
    if (strcmp(mode, "other") == 0) sequences[0].get = NULL, sequences[0].next = NULL;
    leat_status status = leat_helper_run(helper, sequences, count, &err);
    leat_helper_close(&helper);
    return status == LEAT_OK ? 0 : 3;
}

static leat_feed_options options_for(const char *const *command, const plan *p) {
    leat_feed_options options = source_options((feed_mode){2, true});
    options.elastic = true;
    options.kept_batches = 2;
    options.helper_command = command;
    options.helper_data = p;
    options.helper_data_bytes = sizeof *p;
    return options;
}

#define COMMAND(mode) ((const char *const[]){self, "helper", (mode), NULL})

/* Takes batches and returns their digest: positions, shapes and bytes. */
static uint64_t digest_of(const leat_sequence *sequence, const leat_feed_options *options, int passes) {
    return source_stream(sequence, options, (int64_t)passes * LENGTH);
}

static plan new_plan(void) {
    plan p = {.kill_at = -1, .salt = 5};
    snprintf(p.counter, sizeof p.counter, "/tmp/leat-test-helper-%d", (int)getpid());
    unlink(p.counter);
    return p;
}

static void batches_are_the_same(void **state) {
    (void)state;
    plan p = new_plan();
    leat_sequence sequence = sequence_of(&p);
    leat_feed_options inline_options = source_options((feed_mode){0, false});
    inline_options.elastic = true;
    uint64_t expected = digest_of(&sequence, &inline_options, 3);
    resources before = resources_now();
    for (int workers = 1; workers <= 3; ++workers) {
        leat_feed_options options = options_for(COMMAND("runs"), &p);
        options.workers = workers;
        assert_true(digest_of(&sequence, &options, 3) == expected);
    }
    resources_check(before);
}

/* Workers that are programs of their own make the same batches, and see what on_epoch_end has changed. */
static void spawned_workers_make_the_same_batches(void **state) {
    (void)state;
    plan p = new_plan();
    leat_sequence sequence = sequence_of(&p);
    sequence.on_epoch_end = end_epoch;
    leat_feed_options inline_options = source_options((feed_mode){0, false});
    inline_options.elastic = true;
    uint64_t expected = digest_of(&sequence, &inline_options, 3);
    resources before = resources_now();
    for (int workers = 1; workers <= 3; ++workers) {
        p = new_plan();
        leat_feed_options options = options_for(COMMAND("spawn:"), &p);
        options.workers = workers;
        assert_true(digest_of(&sequence, &options, 3) == expected);
    }
    resources_check(before);
}

static void killed_workers_are_replaced_by(const char *mode) {
    plan p = new_plan();
    leat_sequence sequence = sequence_of(&p);
    const char *const *command = COMMAND(mode);
    leat_feed_options options = options_for(command, &p);
    uint64_t expected = digest_of(&sequence, &options, 2);
    p.kill_at = 11;
    leat_feed *feed = source_open(&sequence, &options);
    assert_true(source_digest(feed, 2 * LENGTH) == expected);
    assert_int_equal(leat_feed_stats_get(feed).worker_deaths, 1);
    leat_feed_close(&feed);
    unlink(p.counter);
}

static void killed_workers_are_replaced(void **state) {
    (void)state;
    killed_workers_are_replaced_by("runs");
    killed_workers_are_replaced_by("spawn:");
}

static void epochs_end(void **state) {
    (void)state;
    plan p = new_plan();
    leat_sequence sequence = sequence_of(&p);
    sequence.on_epoch_end = end_epoch;
    leat_feed_options options = source_options((feed_mode){0, false});
    options.elastic = true;
    uint64_t expected = digest_of(&sequence, &options, 4);
    p = new_plan();
    options =
        options_for(COMMAND("runs"), &p); /* without a state, the program is started again after each pass */
    assert_true(digest_of(&sequence, &options, 4) == expected);
    p = new_plan();
    sequence.state = &p.salt;
    sequence.state_bytes = sizeof p.salt;
    options = options_for(COMMAND("state"), &p);
    assert_true(digest_of(&sequence, &options, 4) == expected);
}

/* Returns the process of the helper program. */
static int child_of_this(void) {
    FILE *file = popen("ps --ppid $PPID -o pid=,args= | grep 'helper serves' | grep -v grep", "r");
    int pid = 0;
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    pclose(file);
    return pid;
}

/* A program that calls leat_helper_serve is kept from pass to pass. */
static void a_program_serves_several_passes(void **state) {
    (void)state;
    plan p = new_plan();
    leat_sequence sequence = sequence_of(&p);
    sequence.on_epoch_end = end_epoch;
    leat_feed_options options = source_options((feed_mode){0, false});
    options.elastic = true;
    uint64_t expected = digest_of(&sequence, &options, 2);
    resources before = resources_now();
    p = new_plan();
    options = options_for(COMMAND("serves"), &p);
    leat_feed *feed = source_open(&sequence, &options);
    const leat_batch *batch = NULL;
    leat_error err = {0};
    bool more = false;
    assert_int_equal(leat_feed_await(feed, &more, &err), LEAT_OK);
    int pid = child_of_this();
    assert_true(source_digest(feed, 2 * LENGTH) == expected);
    assert_int_equal(child_of_this(), pid);
    p.salt = 5;
    for (int i = 0; i < LENGTH; ++i) {
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
        leat_feed_release(feed);
    }
    assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EUSER); /* pass 3 has the salt that is refused */
    assert_non_null(strstr(err.message, "this salt is refused"));
    leat_feed_close(&feed);
    resources_check(before);
}

static void feeds_share_a_program(void **state) {
    (void)state;
    plan plans[2] = {new_plan(), new_plan()};
    const char *const *runs = COMMAND("runs"), *const *exits = COMMAND("exits");
    plans[1].salt = 77;
    leat_sequence sequences[2];
    leat_feed_options options[2];
    leat_feed_config configs[2] = {0};
    leat_feed *feeds[2];
    leat_error err = {0};
    uint64_t expected[2];
    for (int i = 0; i < 2; ++i) {
        sequences[i] = sequence_of(&plans[i]);
        options[i] = options_for(runs, &plans[i]);
        expected[i] = digest_of(&sequences[i], &options[i], 1);
        configs[i] = (leat_feed_config){.sequence = &sequences[i], .options = &options[i]};
    }
    assert_int_equal(leat_feed_open_together(feeds, configs, 2, &err), LEAT_OK);
    for (int i = 0; i < 2; ++i) assert_true(source_digest(feeds[i], LENGTH) == expected[i]);
    for (int i = 0; i < 2; ++i) leat_feed_close(&feeds[i]);
    options[1].helper_command = exits;
    assert_int_equal(leat_feed_open_together(feeds, configs, 2, &err), LEAT_EINVAL);
}

/* Opens a feed whose helper program fails, and expects an error whose message has a part. */
static void expect_failure(const char *const *command, leat_status status, const char *part) {
    plan p = new_plan();
    leat_sequence sequence = sequence_of(&p);
    leat_feed_options options = options_for(command, &p);
    leat_feed *feed = NULL;
    leat_error err = {0};
    const leat_batch *batch = NULL;
    leat_status seen = leat_feed_open(&feed, &sequence, &options, &err);
    if (seen == LEAT_OK) seen = leat_feed_get(feed, &batch, &err);
    assert_int_equal(seen, status);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
    leat_feed_close(&feed);
}

static void programs_that_fail(void **state) {
    (void)state;
    resources before = resources_now();
    expect_failure(COMMAND("exits"), LEAT_EWORKER, "exited with status 7");
    expect_failure(COMMAND("refuses"), LEAT_EUSER, "the data set cannot be read");
    expect_failure(COMMAND("other"), LEAT_EINVAL, "expected a sequence with the functions");
    expect_failure((const char *const[]){"/nonexistent/program", NULL}, LEAT_EIO, "/nonexistent/program");
    expect_failure((const char *const[]){NULL}, LEAT_EINVAL, "helper_command is empty");
    expect_failure(COMMAND("spawn:ends"), LEAT_EWORKER, "exited with status 5");
    resources_check(before);
}

/* A worker program that refuses its data, in the first pass or later, ends the feed with its error. */
static void spawned_workers_that_refuse(void **state) {
    (void)state;
    resources before = resources_now();
    plan p = new_plan();
    leat_sequence sequence = sequence_of(&p);
    sequence.on_epoch_end = end_epoch;
    leat_feed_options options = options_for(COMMAND("spawn:"), &p);
    leat_feed *feed = source_open(&sequence, &options);
    leat_error err = {0};
    leat_status status = LEAT_OK;
    const leat_batch *batch = NULL;
    int made = 0;
    while ((status = leat_feed_get(feed, &batch, &err)) == LEAT_OK && made < 10 * LENGTH) {
        ++made;
        leat_feed_release(feed);
    }
    assert_int_equal(status, LEAT_EUSER); /* pass 3 has the salt that is refused */
    assert_int_equal(made, 3 * LENGTH);
    assert_non_null(strstr(err.message, "this salt is refused"));
    leat_feed_close(&feed);
    resources_check(before);
}

/* A program that has not come to leat_helper_run yet does not delay closing. */
static void closing_does_not_wait_for_a_beginner(void **state) {
    (void)state;
    plan p = new_plan();
    leat_sequence sequence = sequence_of(&p);
    leat_feed_options options = options_for(COMMAND("sleeps"), &p);
    leat_feed *feed = source_open(&sequence, &options);
    leat_feed_close(&feed); /* a hang is a failure by the time limit */
    options = options_for(COMMAND("spawn:begins slowly"), &p);
    feed = source_open(&sequence, &options);
    usleep(200000); /* The helper has probably started its workers. */
    leat_feed_close(&feed);
}

static void wrong_descriptors_are_refused(void **state) {
    (void)state;
    leat_helper *helper = NULL;
    leat_error err = {0};
    assert_int_equal(leat_helper_open(&helper, -1, &err), LEAT_EINVAL);
    assert_int_equal(leat_helper_open(&helper, 0, &err), LEAT_EINVAL);
    FILE *file = tmpfile();
    for (int i = 0; i < 100000; ++i) fputc(i & 0xff, file);
    fflush(file);
    int copy = dup(fileno(file));
    assert_int_equal(leat_helper_open(&helper, copy, &err), LEAT_EINVAL);
    close(copy);
    fclose(file);
    assert_null(helper);
    assert_int_equal(leat_helper_feed_count(NULL), 0);
    assert_null(leat_helper_data(NULL, 0, NULL));
    leat_helper_close(&helper);
    leat_helper_close(NULL);
    leat_helper_fail(NULL, NULL);
    assert_int_equal(leat_helper_open(NULL, 0, &err), LEAT_EINVAL);
    assert_int_equal(leat_helper_run(NULL, NULL, 0, &err), LEAT_EINVAL);
    assert_int_equal(leat_helper_serve(NULL, NULL, NULL, &err), LEAT_EINVAL);
    assert_int_equal(leat_feed_set_helper_data(NULL, NULL, 0, &err), LEAT_EINVAL);
    assert_int_equal(leat_helper_supervise(NULL, NULL, &err), LEAT_EINVAL);
    const char *const words[] = {"", "0", "0,0,0", "0,0,0,x", "0,0,0,1,", "9999999,0,0,1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        assert_int_not_equal(leat_helper_work(words[i], make_again, &err, &err), LEAT_OK);
    assert_int_equal(leat_helper_work(NULL, make_again, &err, &err), LEAT_EINVAL);
    assert_int_equal(leat_helper_work("0,0,0,1", NULL, NULL, &err), LEAT_EINVAL);
}

int main(int argc, char **argv) {
    self = argv[0];
    if (argc == 4 && strcmp(argv[1], "helper") == 0) return help(argv[2], atoi(argv[3]));
    if (argc == 4 && strcmp(argv[1], "worker") == 0) return work(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_the_same),
        cmocka_unit_test(spawned_workers_make_the_same_batches),
        cmocka_unit_test(spawned_workers_that_refuse),
        cmocka_unit_test(killed_workers_are_replaced),
        cmocka_unit_test(epochs_end),
        cmocka_unit_test(a_program_serves_several_passes),
        cmocka_unit_test(feeds_share_a_program),
        cmocka_unit_test(programs_that_fail),
        cmocka_unit_test(closing_does_not_wait_for_a_beginner),
        cmocka_unit_test(wrong_descriptors_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
