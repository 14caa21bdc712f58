/* SPDX-License-Identifier: Apache-2.0 */
/* Long trials of the feed, which run shortly in the tests and longer with tools/storm: workers killed at random
 * instants, a thousand passes that must not leak, and feeds closed in random states.
 *
 *     test_storm [kill KILLS | soak PASSES | stops STOPS]...  without arguments: a short trial of each */
#define _GNU_SOURCE /* kill, MAP_ANONYMOUS */
#include "cmocka_all.h"

#include <inttypes.h>
#include <pthread.h>
#include <sha2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "feed/procs.h"
#include "feed/source.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static uint64_t seed_of_the_storm = 20261121;

static uint64_t draw(uint64_t below) {
    seed_of_the_storm = seed_of_the_storm * 6364136223846793005u + 1442695040888963407u;
    return (seed_of_the_storm >> 33) % below;
}

/* Prints the progress, at most ten times a second. */
static void show(const char *what, int64_t done, int64_t all, int64_t batches) {
    static int64_t last;
    int64_t now = leati_now_ns();
    if (done < all && now - last < 100000000) return;
    last = now;
    fprintf(stderr, "\r%s: %" PRId64 " of %" PRId64 ", %" PRId64 " batches%s", what, done, all, batches,
            done < all ? "" : "\n");
}

static void hash_batch(SHA2_CTX *sha, const leat_feed *feed, const leat_batch *batch) {
    leat_feed_position at = leat_feed_position_get(feed);
    SHA256Update(sha, (const uint8_t *)&at, sizeof at);
    SHA256Update(sha, (const uint8_t *)&batch->size, sizeof batch->size);
    for (int t = 0; t < batch->tensor_count; ++t) {
        const leat_tensor *tensor = &batch->tensors[t];
        SHA256Update(sha, (const uint8_t *)tensor->shape, (size_t)tensor->rank * sizeof *tensor->shape);
        SHA256Update(sha, tensor->data, leat_tensor_bytes(tensor));
    }
}

static void hash_next(SHA2_CTX *sha, leat_feed *feed) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    hash_batch(sha, feed, batch);
    leat_feed_release(feed);
}

enum { marks = 65536 };

typedef struct kill_storm {
    source source;
    int64_t wanted;
    _Atomic int64_t kills;
    _Atomic int stop;
    _Atomic pid_t *began; /* shared between processes: processes that have made a batch, by pid % marks */
    pid_t killed[marks];  /* processes that were killed, by pid % marks */
    leat_status (*get)(void *, int64_t, leat_rng *, leat_batch *, leat_error *);
} kill_storm;

/* Threads that compute at the same time, like training does. */
static void *compute(void *argument) {
    kill_storm *k = argument;
    volatile double x = 1;
    while (!atomic_load_explicit(&k->stop, memory_order_relaxed))
        for (int i = 0; i < 1000; ++i) x = x * 1.0000001 + 1e-9;
    return NULL;
}

static bool has_made_a_batch(const kill_storm *k, pid_t pid) {
    return atomic_load(&k->began[pid % marks]) == pid;
}

static leat_status marking_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    kill_storm *k = user;
    pid_t self = getpid();
    leat_status status = k->get(&k->source, index, rng, batch, err);
    atomic_store(&k->began[self % marks], self);
    return status;
}

static int64_t marking_length(void *user) {
    return ((kill_storm *)user)->source.length;
}

/* Kills a random worker at random instants.  If a worker dies ten times in a row before its first batch, the stream
 * ends as documented, so workers without a batch are killed less often. */
static void *kill_workers(void *argument) {
    kill_storm *k = argument;
    pid_t helper = helper_of(getpid()), workers[most_children];
    uint64_t random = 7;
    while (atomic_load(&k->kills) < k->wanted && !atomic_load(&k->stop)) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        sleep_us((int64_t)(random >> 33) % 3000);
        int count = children_of(helper, workers);
        if (count == 0) continue;
        pid_t victim = workers[(random >> 20) % (uint64_t)count];
        if (!has_made_a_batch(k, victim) && (random >> 12) % 8 != 0) continue;
        if (k->killed[victim % marks] == victim) continue; /* the worker was killed already */
        k->killed[victim % marks] = victim;
        if (kill(victim, SIGKILL) == 0) atomic_fetch_add(&k->kills, 1);
    }
    return NULL;
}

static leat_sequence kill_storm_init(kill_storm *k, int64_t wanted) {
    *k = (kill_storm){.wanted = wanted};
    source_init(&k->source, 37, 8, 500);
    k->began =
        mmap(NULL, marks * sizeof *k->began, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(k->began, MAP_FAILED);
    leat_sequence sequence = source_sequence(&k->source);
    k->get = sequence.get;
    sequence.user = k;
    sequence.get = marking_get;
    sequence.length = marking_length;
    sequence.worker_init = NULL;
    sequence.worker_fini = NULL;
    return sequence;
}

/* Takes batches alternately from three feeds on one pool, like training with two validations, but more often. */
enum { feeds = 3 };

static void open_feeds(const leat_sequence *sequence, feed_mode mode, leat_feed **feed) {
    leat_feed_config plans[feeds];
    leat_feed_options all_options[feeds];
    for (int i = 0; i < feeds; ++i) {
        all_options[i] = source_options(mode);
        plans[i] = (leat_feed_config){.sequence = sequence, .options = &all_options[i]};
        all_options[i].seed = 20 + (uint64_t)i;
        all_options[i].shuffle = i == 1 ? LEAT_SHUFFLE_NONE : LEAT_SHUFFLE_BATCHES;
        all_options[i].max_queue_size = 4 + 6 * i;
        all_options[i].faults.max_deaths = 1000000;
    }
    leat_error err = {0};
    if (leat_feed_open_together(feed, plans, feeds, &err) != LEAT_OK) fail_msg("%s", err.message);
}

/* Checks that there were as many deaths as kills, except for the workers killed last, and no other faults. */
static void check_deaths(const kill_storm *k, leat_feed **feed, int workers) {
    int64_t deaths = 0;
    for (int i = 0; i < feeds; ++i) {
        leat_feed_stats stats = leat_feed_stats_get(feed[i]);
        deaths += stats.worker_deaths;
        assert_int_equal(stats.skips + stats.timeouts + stats.retries, 0);
    }
    if (deaths < k->wanted - workers || deaths > k->wanted)
        fail_msg("%" PRId64 " kills, but %" PRId64 " deaths", k->wanted, deaths);
}

static int64_t deliver_under_fire(kill_storm *k, const leat_sequence *sequence, SHA2_CTX *sha) {
    enum { workers = 4 };
    leat_feed *feed[feeds];
    open_feeds(sequence, (feed_mode){workers, true}, feed);
    pthread_t threads[3];
    assert_int_equal(pthread_create(&threads[0], NULL, kill_workers, k), 0);
    for (int i = 1; i < 3; ++i) assert_int_equal(pthread_create(&threads[i], NULL, compute, k), 0);
    int64_t batches = 0;
    while (atomic_load(&k->kills) < k->wanted || batches < 300) {
        hash_next(sha, feed[batches % feeds]);
        show("kills", atomic_load(&k->kills), k->wanted, ++batches);
    }
    show("kills", k->wanted, k->wanted, batches);
    atomic_store(&k->stop, 1);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    check_deaths(k, feed, workers);
    for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
    return batches;
}

static void storm_of_kills(int64_t kills) {
    static kill_storm k;
    leat_sequence sequence = kill_storm_init(&k, kills);
    resources before = resources_now();
    k.source.delay_us = 300;
    SHA2_CTX sha, plain;
    char seen[SHA256_DIGEST_STRING_LENGTH], expected[SHA256_DIGEST_STRING_LENGTH];
    SHA256Init(&sha);
    int64_t batches = deliver_under_fire(&k, &sequence, &sha);
    SHA256End(&sha, seen);
    resources_check(before);
    k.source.delay_us = 0;
    leat_feed *feed[feeds];
    open_feeds(&sequence, (feed_mode){0}, feed);
    SHA256Init(&plain);
    for (int64_t i = 0; i < batches; ++i) hash_next(&plain, feed[i % feeds]);
    SHA256End(&plain, expected);
    for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
    if (strcmp(seen, expected) != 0) fail_msg("SHA-256 is %s, expected %s", seen, expected);
    printf("%" PRId64 " kills in %" PRId64 " passes of %d feeds: SHA-256 %s, the same as in line\n", kills,
           batches / feeds / 37, feeds, seen);
    munmap(k.began, marks * sizeof *k.began);
    source_fini(&k.source);
}

static long resident_kib(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void take_passes(leat_feed *feed, int64_t passes, int64_t length, const char *what, int64_t all,
                        int64_t *done) {
    for (int64_t pass = 0; pass < passes; ++pass) {
        source_digest(feed, length);
        ++*done;
        show(what, *done, all, *done * length);
    }
}

/* Checks that nothing grows after the first tenth of the passes. */
static void soak(feed_mode mode, bool declares_state, int64_t passes) {
    enum { length = 9 };
    source s;
    source_init(&s, length, 8, 128);
    leat_sequence sequence = source_sequence_with_hook(&s, declares_state);
    resources before = resources_now();
    leat_feed_options options = source_options(mode);
    options.shuffle = LEAT_SHUFFLE_BATCHES;
    leat_feed *feed = source_open(&sequence, &options);
    const char *what = !mode.processes  ? "passes, threads"
                       : declares_state ? "passes, processes"
                                        : "passes, new processes each";
    int64_t done = 0;
    take_passes(feed, passes / 10 + 1, length, what, passes, &done);
    resources warm = resources_now();
    long resident = resident_kib();
    take_passes(feed, passes - done, length, what, passes, &done);
    resources_check(warm);
    long grown = resident_kib() - resident;
    if (!SANITIZED && grown > resident / 100 + 64) fail_msg("%ld KiB became %ld KiB more", resident, grown);
    assert_int_equal(atomic_load(&s.counts->hook_overtaken), 0);
    leat_feed_close(&feed);
    resources_check(before);
    printf("%" PRId64 " %s: %ld KiB resident, %+ld; %d threads, %d children, %d descriptors\n", passes, what,
           resident, grown, warm.threads, warm.children, warm.descriptors);
    source_fini(&s);
}

static void *stop_after(void *argument) {
    sleep_us((int64_t)(((uintptr_t)argument >> 4) % 5000));
    leat_feed_stop(argument);
    return NULL;
}

/* The states in which a feed may be closed. */
enum { UNTOUCHED, MIDWAY, IN_HAND, IN_HOOK, REPLACING, STOPPED_TWICE, FROM_A_THREAD, AFTER_ERROR, ENDINGS };

static void take_some(leat_feed *feed, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const leat_batch *batch = NULL;
        leat_error err = {0};
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) return;
        leat_feed_release(feed);
    }
}

static void reach(int ending, leat_feed *feed, feed_mode mode) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    pthread_t other;
    pid_t workers[most_children];
    switch (ending) {
    case UNTOUCHED: return;
    case MIDWAY: take_some(feed, 1 + (int64_t)draw(20)); return;
    case IN_HAND:
        take_some(feed, (int64_t)draw(9));
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        return;
    case REPLACING:
        take_some(feed, (int64_t)draw(9));
        if (mode.processes && mode.workers > 0)
            for (int i = children_of(helper_of(getpid()), workers) - 1; i >= 0; --i)
                kill(workers[i], SIGKILL);
        return;
    case STOPPED_TWICE:
        take_some(feed, (int64_t)draw(9));
        leat_feed_stop(feed);
        leat_feed_stop(feed);
        return;
    case AFTER_ERROR: take_some(feed, 1000); return;
    default: /* IN_HOOK, which takes 2 ms after every fifth batch, and FROM_A_THREAD */
        assert_int_equal(pthread_create(&other, NULL, stop_after, feed), 0);
        take_some(feed, INT64_MAX);
        pthread_join(other, NULL);
    }
}

static void random_end(int64_t number) {
    int ending = (int)draw(ENDINGS);
    feed_mode mode = {(int)draw(5), draw(2) == 0};
    source s;
    source_init(&s, ending == IN_HOOK ? 5 : 11, 3, 40);
    s.delay_us = (int)draw(3) * 400;
    if (ending == AFTER_ERROR) s.fail_at = 7;
    leat_sequence sequence = source_sequence(&s);
    if (ending == IN_HOOK || draw(3) == 0) sequence = source_sequence_with_hook(&s, draw(2) == 0);
    resources before = resources_now();
    leat_feed_options options = source_options(mode);
    options.max_queue_size = 1 + (int)draw(12);
    leat_feed *feed = source_open(&sequence, &options);
    sleep_us((int64_t)draw(3) * 700);
    reach(ending, feed, mode);
    if (draw(4) == 0) leat_feed_stop(feed);
    if (leat_feed_close(&feed) != 0) fail_msg("end %" PRId64 " left threads", number);
    resources_check(before);
    source_fini(&s);
}

static void storm_of_stops(int64_t stops) {
    for (int64_t i = 0; i < stops; ++i) {
        random_end(i);
        show("ends in random states", i + 1, stops, 0);
    }
    printf("%" PRId64 " ends in random states: nothing left\n", stops);
}

static int64_t kills_wanted, passes_wanted, stops_wanted;

static void kill_storm_changes_no_byte(void **state) {
    (void)state;
    storm_of_kills(kills_wanted);
}

static void soak_leaves_everything_constant(void **state) {
    (void)state;
    soak((feed_mode){2, false}, true, passes_wanted);
    soak((feed_mode){2, true}, true, passes_wanted);
    soak((feed_mode){2, true}, false, passes_wanted);
}

static void random_stops_leave_nothing(void **state) {
    (void)state;
    storm_of_stops(stops_wanted);
}

static const struct {
    const char *word;
    int64_t *wanted, briefly;
    struct CMUnitTest test;
} trials[] = {
    {"kill", &kills_wanted, 100, cmocka_unit_test(kill_storm_changes_no_byte)},
    {"soak", &passes_wanted, 60, cmocka_unit_test(soak_leaves_everything_constant)},
    {"stops", &stops_wanted, 50, cmocka_unit_test(random_stops_leave_nothing)},
};
enum { trial_count = sizeof trials / sizeof *trials };

static bool take_word(const char *word, const char *number) {
    for (int i = 0; i < trial_count; ++i)
        if (strcmp(word, trials[i].word) == 0) {
            *trials[i].wanted = number ? strtoll(number, NULL, 10) : 0;
            return *trials[i].wanted >= 1;
        }
    return false;
}

int main(int argc, char **argv) {
    if (argc == 1) alarm(280);
    for (int i = 0; argc == 1 && i < trial_count; ++i) *trials[i].wanted = trials[i].briefly;
    for (int i = 1; i < argc; i += 2)
        if (!take_word(argv[i], i + 1 < argc ? argv[i + 1] : NULL)) {
            fprintf(stderr, "usage: %s [kill KILLS | soak PASSES | stops STOPS]...\n", argv[0]);
            return 2;
        }
    struct CMUnitTest tests[trial_count];
    size_t count = 0;
    for (int i = 0; i < trial_count; ++i)
        if (*trials[i].wanted) tests[count++] = trials[i].test;
    return _cmocka_run_group_tests("storm", tests, count, NULL, NULL);
}
