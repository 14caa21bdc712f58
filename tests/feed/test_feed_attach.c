/* SPDX-License-Identifier: Apache-2.0 */
/* A host runtime must attach each thread before the thread runs the host's code; worker_init and worker_fini do this.
 * In each worker thread, worker_init comes before every other function of a sequence, and worker_fini after all of
 * them, as often as worker_init succeeded, however the feed ends. */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "feed/source.h"

enum { BATCHES = 6, WORKERS = 3, FEEDS = 2 };

/* How often this thread is attached. */
static _Thread_local int attached;
static pthread_key_t watch; /* its destructor sees the end of each thread */
static atomic_int detached_calls, attached_ends, ended_threads, inits;

typedef struct host {
    int number;       /* number of the sequence */
    bool init_fails;  /* worker_init fails in every worker */
    int64_t fails_at; /* get of this batch fails; -1: none */
    bool slow;        /* get takes longer than the deadline */
} host;

static void note_end(void *unused) {
    (void)unused;
    atomic_fetch_add(&ended_threads, 1);
    if (attached != 0) atomic_fetch_add(&attached_ends, 1);
}

static leat_status attach(void *user, int worker, leat_error *err) {
    const host *h = user;
    (void)worker;
    atomic_fetch_add(&inits, 1);
    pthread_setspecific(watch, &watch);
    if (h->init_fails) return leat_error_set(err, LEAT_EUSER, "cannot attach");
    ++attached;
    return LEAT_OK;
}

static void detach(void *user, int worker) {
    (void)user, (void)worker;
    if (attached == 0) atomic_fetch_add(&detached_calls, 1);
    --attached;
}

static leat_status get_attached(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                leat_error *err) {
    const host *h = user;
    (void)rng;
    if (attached == 0) atomic_fetch_add(&detached_calls, 1);
    if (h->slow) sleep_us(300000);
    *(int64_t *)batch->tensors[0].data = index;
    return index == h->fails_at ? leat_error_set(err, LEAT_EUSER, "no such data") : LEAT_OK;
}

static leat_status next_attached(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    return get_attached(user, 0, rng, batch, err);
}

static int64_t count_batches(void *user) {
    (void)user;
    return BATCHES;
}

static leat_sequence sequence_of(host *h, bool generator) {
    leat_sequence sequence = leat_sequence_default();
    sequence.user = h;
    sequence.spec.batch_size = 1;
    if (generator) sequence.next = next_attached;
    if (!generator) sequence.get = get_attached;
    if (!generator) sequence.length = count_batches;
    sequence.worker_init = attach;
    sequence.worker_fini = detach;
    leat_error err = {0};
    if (leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, NULL, LEAT_I64, 0, NULL, &err) != LEAT_OK)
        fail_msg("%s", err.message);
    return sequence;
}

/* Takes batches from all feeds alternately until one ends.  Returns the status of that feed. */
static leat_status take_until_end(leat_feed **feeds, int batches) {
    leat_status status = LEAT_OK;
    for (int b = 0; b < batches && status == LEAT_OK; ++b)
        for (int i = 0; i < FEEDS && status == LEAT_OK; ++i) {
            const leat_batch *batch = NULL;
            status = leat_feed_get(feeds[i], &batch, NULL);
            if (status == LEAT_OK) leat_feed_release(feeds[i]);
        }
    return status;
}

/* Opens a sequence and a generator together, since their worker threads serve both. */
static void run(host *hosts, int64_t deadline_ms, int batches, leat_status expected) {
    leat_sequence sequences[FEEDS];
    leat_feed_config plans[FEEDS] = {0};
    leat_feed_options all_options[FEEDS];
    leat_feed *feeds[FEEDS];
    leat_error err = {0};
    atomic_store(&inits, 0);
    atomic_store(&ended_threads, 0);
    for (int i = 0; i < FEEDS; ++i) {
        sequences[i] = sequence_of(&hosts[i], i == 1);
        all_options[i] = leat_feed_options_default();
        plans[i] = (leat_feed_config){.sequence = &sequences[i], .options = &all_options[i]};
        all_options[i].workers = WORKERS;
        all_options[i].faults.deadline_ms = deadline_ms;
    }
    if (leat_feed_open_together(feeds, plans, FEEDS, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_int_equal(take_until_end(feeds, batches), expected);
    for (int i = 0; i < FEEDS; ++i) leat_feed_close(&feeds[i]);
    for (int tries = 0; tries < 10000 && atomic_load(&ended_threads) < WORKERS; ++tries) sleep_us(1000);
    assert_int_equal(atomic_load(&ended_threads),
                     WORKERS); /* every thread was attached, or its worker_init has failed */
    assert_true(atomic_load(&inits) >= WORKERS);
    assert_int_equal(atomic_load(&detached_calls), 0);
    assert_int_equal(atomic_load(&attached_ends), 0);
}

static void each_thread_is_attached_while_it_runs_user_code(void **state) {
    (void)state;
    run((host[FEEDS]){{.fails_at = -1}, {.fails_at = -1}}, 0, 20, LEAT_OK);
}

static void a_failing_get_detaches_all(void **state) {
    (void)state;
    run((host[FEEDS]){{.fails_at = 3}, {.fails_at = -1}}, 0, 20, LEAT_EUSER);
}

/* The worker_init of the second sequence fails, so only the first sequence's worker_fini is called. */
static void a_failing_init_detaches_those_before_it(void **state) {
    (void)state;
    run((host[FEEDS]){{.fails_at = -1}, {.fails_at = -1, .init_fails = true}}, 0, 20, LEAT_EUSER);
}

/* The thread outlives its feed, and is detached when get returns. */
static void a_late_thread_is_detached_in_the_end(void **state) {
    (void)state;
    static host hosts[FEEDS] = {{.fails_at = -1, .slow = true}, {.fails_at = -1}};
    run(hosts, 50, 3, LEAT_ETIMEOUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_is_attached_while_it_runs_user_code),
        cmocka_unit_test(a_failing_get_detaches_all),
        cmocka_unit_test(a_failing_init_detaches_those_before_it),
        cmocka_unit_test(a_late_thread_is_detached_in_the_end),
    };
    if (pthread_key_create(&watch, note_end) != 0) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
