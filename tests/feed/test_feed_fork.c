/* SPDX-License-Identifier: Apache-2.0 */
/* A process forks while a feed is open.  In the child, each function of that feed returns an error or a figure, and
 * changes nothing that the parent uses: the parent takes the same batches as without a child. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/source.h"
#include "leat/trace.h"

enum { LENGTH = 8, TAKEN = 3, LEFT = 30 };

static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};

static bool is_refused(leat_status status, const leat_error *err) {
    return status == LEAT_EINVAL && strstr(err->message, "forked");
}

/* Calls every function of the feed.  Returns the line of the first wrong result, or 0. */
static int call_everything(leat_feed *feed) {
    const leat_batch *batch = NULL;
    leat_feed_depth depths[4];
    bool more = true;
    leat_error err = {0};
    leat_feed_release(feed);
    if (!is_refused(leat_feed_get(feed, &batch, &err), &err) || batch) return __LINE__;
    err = (leat_error){0};
    if (!is_refused(leat_feed_await(feed, &more, &err), &err) || more) return __LINE__;
    err = (leat_error){0};
    if (!is_refused(leat_feed_end_pass(feed, &err), &err)) return __LINE__;
    if (leat_feed_position_get(feed).ordinal != TAKEN - 1) return __LINE__;
    if (leat_feed_next_position(feed).ordinal != TAKEN || leat_feed_length(feed) != LENGTH) return __LINE__;
    if (leat_feed_ready_count(feed) != 0 || leat_feed_worker_busy(feed, 0) > 0) return __LINE__;
    if (leat_feed_stats_get(feed).batches != TAKEN || leat_feed_depths(feed, depths, 4) > 4) return __LINE__;
    if (leat_feed_making_get(feed).worker < 0) return __LINE__;
    leat_feed_stop(feed);
    return leat_feed_close(&feed) != 0 || feed ? __LINE__ : 0;
}

/* Opens another feed in the child, in each mode. */
static int open_another(const leat_sequence *sequence, uint64_t expected) {
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
        const leat_feed_options options = source_options(modes[i]);
        if (source_stream(sequence, &options, LENGTH) != expected) return __LINE__;
    }
    return 0;
}

static void run_child(leat_feed *feed, leat_trace *trace, const leat_sequence *sequence, uint64_t expected) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        int line = call_everything(feed);
        if (line == 0 && leat_trace_close(&trace, NULL) != LEAT_OK) line = __LINE__;
        if (line == 0) line = open_another(sequence, expected);
        if (line) fprintf(stderr, "the child fails in line %d\n", line);
        _exit(line ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0) fail_msg("the child ended with status %x", (unsigned)status);
}

/* Checks that the trace is one array: events that a child had written would follow its end, or appear twice. */
static void check_trace(const char *path) {
    static char text[1 << 20];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    assert_true(text[0] == '[' && bytes > 3);
    assert_ptr_equal(strstr(text, "\n]\n"), text + bytes - 3);
    assert_null(strstr(text + 1, "["));
    unlink(path);
}

static void a_child_cannot_use_its_parents_feed(void **state) {
    (void)state;
    source s;
    char path[64];
    snprintf(path, sizeof path, "test_feed_fork_%d.json", (int)getpid());
    source_init(&s, LENGTH, 4, 5);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[TAKEN + LEFT], seen[LEFT];
    const leat_feed_options plain = source_options(modes[0]);
    uint64_t pass = source_stream(&sequence, &plain, LENGTH);
    leat_feed *alone = source_open(&sequence, &plain);
    assert_int_equal(source_record(alone, expected, TAKEN + LEFT, &(leat_error){0}), TAKEN + LEFT);
    leat_feed_close(&alone);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
        leat_trace *trace = NULL;
        leat_error err = {0};
        resources before = resources_now();
        assert_int_equal(leat_trace_open(&trace, path, &err), LEAT_OK);
        leat_feed_options options = source_options(modes[i]);
        options.trace = trace;
        leat_feed *feed = source_open(&sequence, &options);
        const leat_batch *batch = NULL;
        assert_int_equal(source_record(feed, seen, TAKEN - 1, &err), TAKEN - 1);
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
        run_child(feed, trace, &sequence, pass); /* while a batch is in use */
        leat_feed_release(feed);
        run_child(feed, trace, &sequence, pass);
        assert_int_equal(source_record(feed, seen, LEFT, &err), LEFT);
        source_compare(seen, expected + TAKEN, LEFT);
        assert_int_equal(leat_feed_stats_get(feed).worker_deaths, 0);
        assert_int_equal(leat_feed_close(&feed), 0);
        assert_int_equal(leat_trace_close(&trace, &err), LEAT_OK);
        resources_check(before);
        check_trace(path);
    }
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_cannot_use_its_parents_feed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
