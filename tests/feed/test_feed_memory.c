/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation of a feed's life fails, for every n and in every mode; and none is made while it delivers. */
#include "cmocka_all.h"

#include <string.h>

#include "feed/source.h"
#include "support/memory_failing.h"

static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};

static leat_status life(const leat_sequence *sequence, feed_mode mode, int batches, leat_error *err) {
    leat_feed_options options = source_options(mode);
    options.shuffle = LEAT_SHUFFLE_BATCHES;
    leat_feed *feed = NULL;
    leat_status status = leat_feed_open(&feed, sequence, &options, err);
    for (int i = 0; i < batches && status == LEAT_OK; ++i) {
        const leat_batch *batch = NULL;
        status = leat_feed_get(feed, &batch, err);
        leat_feed_release(feed);
    }
    leat_feed_close(&feed);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m)
        for (int declares_state = 0; declares_state < 2; ++declares_state) {
            leat_sequence sequence = source_sequence_with_hook(&s, declares_state);
            int64_t failures = 0, live = memory_live();
            for (bool more = true; more;) {
                resources before = resources_now();
                s.state.pass = 0;
                memory_fail_at(failures + 1);
                leat_error err = {0};
                leat_status status = life(&sequence, modes[m], 13, &err);
                more = memory_failed();
                assert_int_equal(status, more ? LEAT_ENOMEM : LEAT_OK);
                if (more) assert_non_null(strstr(err.message, "no memory for"));
                assert_int_equal(memory_live(), live);
                resources_check(before);
                failures += more;
            }
            assert_true(failures >= 1);
        }
    memory_fail_at(0);
    source_fini(&s);
}

static void delivery_allocates_nothing(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    leat_sequence sequence = source_sequence_with_hook(&s, true);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m) {
        leat_feed_options options = source_options(modes[m]);
        leat_feed *feed = source_open(&sequence, &options);
        memory_fail_at(0);
        source_digest(feed, 40);
        assert_int_equal(memory_calls(), 0);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(delivery_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
