/* SPDX-License-Identifier: Apache-2.0 */
/* What the model of the protocol (tests/feed/model) found wrong in the code, where the code itself can show it. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "leat/feed.h"

/* Shared with the workers: how often a generator was called, and how many of its processes end in their call. */
typedef struct calls {
    _Atomic int next, kills_left;
} calls;

static leat_status next_or_die(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    calls *shared = user;
    (void)rng;
    (void)batch;
    (void)err;
    if (atomic_fetch_add(&shared->next, 1) >= 1 && atomic_fetch_sub(&shared->kills_left, 1) > 0)
        kill(getpid(), SIGKILL);
    return LEAT_OK;
}

static int64_t four(void *user) {
    (void)user;
    return 4;
}

static leat_status get_index(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user;
    (void)rng;
    (void)err;
    *(float *)batch->tensors[0].data = (float)index;
    return LEAT_OK;
}

static leat_sequence sequence_of_numbers(void) {
    leat_sequence sequence = leat_sequence_default();
    leat_batch_spec *spec = &sequence.spec;
    spec->batch_size = 1;
    assert_int_equal(leat_batch_spec_add(spec, LEAT_PART_INPUT, "x", LEAT_F32, 0, NULL, NULL), LEAT_OK);
    return sequence;
}

/* The replacement of a generator's dead worker serves the other feeds.  It found a batch of the generator claimed by its
 * number, and called the generator, which had begun anew in it, although that feed had failed. */
static void generator_is_not_called_by_a_replacement(void **state) {
    (void)state;
    calls *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    atomic_store(&shared->kills_left, 100);
    leat_sequence numbers = sequence_of_numbers(), generator = sequence_of_numbers();
    numbers.length = four;
    numbers.get = get_index;
    generator.next = next_or_die;
    generator.user = shared;
    leat_feed_options options = leat_feed_options_default();
    options.use_multiprocessing = true;
    options.passes = 1;
    leat_feed_plan plans[2] = {{.sequence = &generator, .options = options},
                               {.sequence = &numbers, .options = options}};
    leat_feed *feeds[2] = {NULL, NULL};
    leat_error err = {0};
    assert_int_equal(leat_feed_open_together(feeds, plans, 2, &err), LEAT_OK);
    for (int i = 0; i < 4; ++i) {
        const leat_batch *batch = NULL;
        assert_int_equal(leat_feed_get(feeds[1], &batch, &err), LEAT_OK);
        assert_int_equal((int)*(const float *)batch->tensors[0].data, i);
        leat_feed_release(feeds[1]);
    }
    const leat_batch *batch = NULL;
    assert_int_equal(leat_feed_get(feeds[0], &batch, &err), LEAT_OK); /* made before the death */
    leat_feed_release(feeds[0]);
    assert_int_equal(leat_feed_get(feeds[0], &batch, &err), LEAT_EWORKER);
    assert_int_equal(atomic_load(&shared->next), 2);
    assert_int_equal(leat_feed_stats_get(feeds[0]).worker_deaths, 1);
    leat_feed_close(&feeds[0]);
    leat_feed_close(&feeds[1]);
    munmap(shared, sizeof *shared);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generator_is_not_called_by_a_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
