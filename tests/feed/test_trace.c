/* SPDX-License-Identifier: Apache-2.0 */
/* Traces are read back as JSON: lanes, spans, escaping, and files that cannot be written or end early. */
#include "cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/memory.h"
#include "base/os/clock.h"
#include "feed/stats/trace.h"
#include "support/memory_failing.h"

static char path[] = "/tmp/leat-trace-XXXXXX";

static int enter(void **state) {
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int leave(void **state) {
    (void)state;
    return unlink(path);
}

static leat_trace *begin(void) {
    leat_trace *trace = NULL;
    leat_error err = {0};
    if (leat_trace_open(&trace, path, &err) != LEAT_OK) fail_msg("%s", err.message);
    return trace;
}

/* Closes the trace and reads its file. */
static json_t *end(leat_trace *trace) {
    leat_error err = {0};
    json_error_t wrong;
    if (leat_trace_close(&trace, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_null(trace);
    json_t *events = json_load_file(path, 0, &wrong);
    if (!events) fail_msg("line %d: %s", wrong.line, wrong.text);
    assert_true(json_is_array(events));
    return events;
}

static const char *text(const json_t *event, const char *key) {
    const char *value = json_string_value(json_object_get(event, key));
    return value ? value : "";
}

static int number(const json_t *event, const char *key) {
    return (int)json_integer_value(json_object_get(event, key));
}

static double real(const json_t *event, const char *key) {
    const json_t *value = json_object_get(event, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void assert_near(double value, double expected, double tolerance) {
    if (value - expected > tolerance || expected - value > tolerance)
        fail_msg("%.9g, expected %.9g", value, expected);
}

/* Returns the n-th event of a phase. */
static const json_t *event_at(const json_t *events, const char *phase, int n) {
    for (size_t i = 0; i < json_array_size(events); ++i)
        if (strcmp(text(json_array_get(events, i), "ph"), phase) == 0 && n-- == 0)
            return json_array_get(events, i);
    return NULL;
}

static const json_t *event_of(const json_t *events, const char *phase, int n) {
    const json_t *event = event_at(events, phase, n);
    assert_non_null(event);
    return event;
}

/* Returns the metadata event of a process, or of a thread in it (thread < 0: of the process). */
static const json_t *about(const json_t *events, const char *what, int process, int thread) {
    const json_t *event;
    for (int n = 0; (event = event_at(events, "M", n)); ++n)
        if (strcmp(text(event, "name"), what) == 0 && number(event, "pid") == process &&
            (thread < 0 || number(event, "tid") == thread))
            return json_object_get(event, "args");
    fail_msg("no %s of %d, %d", what, process, thread);
    return NULL;
}

static void an_empty_trace_is_an_empty_array(void **state) {
    (void)state;
    json_t *events = end(begin());
    assert_int_equal(json_array_size(events), 0);
    json_decref(events);
}

static void lanes_of_a_group_are_threads_of_a_process(void **state) {
    (void)state;
    leat_trace *trace = begin();
    int64_t now = leati_now_ns();
    int a = leati_trace_lane(trace, "training feed", "leat-worker/0");
    int b = leati_trace_lane(trace, "training feed", "leat-worker/1");
    int c = leati_trace_lane(trace, "validation feed", "leat-worker/0");
    assert_true(a >= 0 && b >= 0 && c >= 0 && a != b && b != c && a != c);
    assert_int_equal(leati_trace_lane(trace, "training feed", "leat-worker/1"), b);
    int lanes[] = {a, b, c};
    for (int i = 0; i < 3; ++i) leati_trace_span(trace, lanes[i], "get", now, now + 1, 0, i);
    json_t *events = end(trace);
    int process[3], thread[3];
    for (int i = 0; i < 3; ++i) {
        process[i] = number(event_of(events, "X", i), "pid");
        thread[i] = number(event_of(events, "X", i), "tid");
    }
    assert_true(process[0] == process[1] && process[1] != process[2]);
    assert_true(thread[0] != thread[1] && thread[1] != thread[2] && thread[0] != thread[2]);
    assert_string_equal(text(about(events, "process_name", process[0], -1), "name"), "training feed");
    assert_string_equal(text(about(events, "process_name", process[2], -1), "name"), "validation feed");
    assert_string_equal(text(about(events, "thread_name", process[1], thread[1]), "name"), "leat-worker/1");
    assert_true(number(about(events, "thread_sort_index", process[0], thread[0]), "sort_index") <
                number(about(events, "thread_sort_index", process[1], thread[1]), "sort_index"));
    assert_true(number(about(events, "process_sort_index", process[0], -1), "sort_index") <
                number(about(events, "process_sort_index", process[2], -1), "sort_index"));
    int said = 0;
    while (event_at(events, "M", said)) ++said;
    assert_int_equal(said, 2 * 2 + 2 * 3); /* each metadata event appears once */
    json_decref(events);
}

static void spans_keep_their_times_and_their_nesting(void **state) {
    (void)state;
    leat_trace *trace = begin();
    int lane = leati_trace_lane(trace, "g", "l");
    int64_t start = leati_now_ns() + 1000000;
    leati_trace_span(trace, lane, "step", start, start + 5000123, 2, 7);
    leati_trace_span(trace, lane, "wait", start + 1001, start + 2002, -1, 0);
    leati_trace_span(trace, lane, "compute", start + 2002, start + 5000123, 3, -1);
    leati_trace_instant(trace, lane, "death", start + 3);
    leati_trace_count(trace, lane, "ready", start + 4, -12);
    json_t *events = end(trace);
    const json_t *step = event_of(events, "X", 0), *wait = event_of(events, "X", 1);
    const json_t *compute = event_of(events, "X", 2);
    assert_string_equal(text(step, "name"), "step");
    double begun = real(step, "ts");
    assert_true(begun > 999 && begun < 60e6);
    assert_near(real(step, "dur"), 5000.123, 1e-9);
    assert_near(real(wait, "ts") - begun, 1.001, 1e-6);
    assert_near(real(wait, "dur"), 1.001, 1e-9);
    assert_near(real(compute, "ts") + real(compute, "dur"), begun + 5000.123, 1e-6);
    assert_int_equal(number(json_object_get(step, "args"), "pass"), 2);
    assert_int_equal(number(json_object_get(step, "args"), "index"), 7);
    assert_null(json_object_get(json_object_get(wait, "args"), "pass"));
    assert_non_null(json_object_get(json_object_get(wait, "args"), "index"));
    assert_null(json_object_get(json_object_get(compute, "args"), "index"));
    assert_near(real(event_of(events, "i", 0), "ts") - begun, 0.003, 1e-6);
    assert_string_equal(text(event_of(events, "i", 0), "s"), "t");
    assert_string_equal(text(event_of(events, "C", 0), "name"), "ready");
    assert_int_equal(number(json_object_get(event_of(events, "C", 0), "args"), ""), -12);
    json_decref(events);
}

static void what_was_before_the_trace_begins_with_it(void **state) {
    (void)state;
    leat_trace *trace = begin();
    int lane = leati_trace_lane(trace, "g", "l");
    leati_trace_span(trace, lane, "old", 5, 6, 0, 0);
    leati_trace_span(trace, lane, "backwards", leati_now_ns(), 0, 0, 0);
    leati_trace_instant(trace, lane, "old", 5);
    json_t *events = end(trace);
    assert_near(real(event_of(events, "X", 0), "ts"), 0, 0);
    assert_near(real(event_of(events, "X", 0), "dur"), 0, 0);
    assert_near(real(event_of(events, "X", 1), "dur"), 0, 0);
    assert_near(real(event_of(events, "i", 0), "ts"), 0, 0);
    json_decref(events);
}

static void names_are_any_bytes(void **state) {
    (void)state;
    static const struct {
        const char *name, *read;
    } cases[] = {
        {"a \"b\" \\ /", "a \"b\" \\ /"},
        {"line\nfeed\ttab\x01", "line\nfeed\ttab\x01"},
        {"Gr\xc3\xb6\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80",
         "Gr\xc3\xb6\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xff\xc0\xaf|\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* half a surrogate pair */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* beyond U+10FFFF */
        {"</script>%s%n", "</script>%s%n"},
        {"", ""},
    };
    leat_trace *trace = begin();
    int count = sizeof cases / sizeof *cases;
    for (int i = 0; i < count; ++i) {
        int lane = leati_trace_lane(trace, cases[i].name, cases[i].name);
        leati_trace_span(trace, lane, cases[i].name, 0, 1, 0, 0);
        leati_trace_count(trace, lane, cases[i].name, 0, 1);
    }
    json_t *events = end(trace);
    for (int i = 0; i < count; ++i) {
        const json_t *span = event_of(events, "X", i);
        assert_string_equal(text(span, "name"), cases[i].read);
        assert_string_equal(text(about(events, "process_name", number(span, "pid"), -1), "name"),
                            cases[i].read);
        assert_string_equal(text(about(events, "thread_name", number(span, "pid"), number(span, "tid")),
                                 "name"),
                            cases[i].read);
        assert_string_equal(text(event_of(events, "C", i), "name"), cases[i].read);
    }
    json_decref(events);
}

static void long_names_are_cut_between_characters(void **state) {
    (void)state;
    char name[1001];
    for (int i = 0; i < 1000; i += 2) memcpy(name + i, "\xc3\xb6", 3); /* characters of two bytes */
    leat_trace *trace = begin();
    memmove(name + 1, name, 999); /* now the characters begin at odd positions */
    name[0] = 'x';
    name[999] = '\0';
    int lane = leati_trace_lane(trace, name, name);
    leati_trace_span(trace, lane, name, 0, 1, 0, 0);
    json_t *events = end(trace);
    size_t length = strlen(text(event_of(events, "X", 0), "name"));
    assert_true(length >= 200 && length < 1000 && length % 2 == 1);
    json_decref(events);
}

/* The events exceed the buffer many times. */
static void many_events_arrive_whole_and_in_order(void **state) {
    (void)state;
    enum { count = 20000 };
    leat_trace *trace = begin();
    int lane = leati_trace_lane(trace, "g", "l");
    for (int i = 0; i < count; ++i) leati_trace_span(trace, lane, "get", i, i + 1, i / 100, i);
    json_t *events = end(trace);
    assert_int_equal(json_array_size(events), count + 4);
    for (int i = 0; i < count; ++i)
        assert_int_equal(number(json_object_get(json_array_get(events, (size_t)i + 4), "args"), "index"), i);
    json_decref(events);
}

/* A killed program leaves an array without its end; with the end, the file is JSON. */
static void a_killed_programs_trace_opens(void **state) {
    (void)state;
    enum { count = 5000 };
    pid_t child = fork();
    if (child == 0) {
        leat_trace *trace = begin();
        int lane = leati_trace_lane(trace, "g", "l");
        for (int i = 0; i < count; ++i) leati_trace_span(trace, lane, "get", i, i + 1, 0, i);
        _exit(0);
    }
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fputs("]", file);
    fclose(file);
    json_t *events = json_load_file(path, 0, NULL);
    assert_non_null(events);
    assert_true(json_array_size(events) > 1000 && json_array_size(events) < count);
    json_decref(events);
}

/* The child has a copy of the buffer, and must not write it. */
static void a_forked_process_writes_nothing(void **state) {
    (void)state;
    leat_trace *trace = begin();
    int lane = leati_trace_lane(trace, "g", "l");
    leati_trace_span(trace, lane, "once", 0, 1, 0, 0);
    pid_t child = fork();
    if (child == 0) exit(0); /* exit flushes the buffers of stdio */
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    json_t *events = end(trace);
    assert_int_equal(json_array_size(events), 5);
    json_decref(events);
}

static void a_full_disk_is_told_at_the_end(void **state) {
    (void)state;
    leat_trace *trace = NULL;
    leat_error err = {0};
    assert_int_equal(leat_trace_open(&trace, "/dev/full", &err), LEAT_OK);
    int lane = leati_trace_lane(trace, "g", "l");
    for (int i = 0; i < 10000; ++i) leati_trace_span(trace, lane, "get", i, i + 1, 0, i);
    assert_int_equal(leati_trace_lane(trace, "g", "another"), -1);
    assert_int_equal(leat_trace_close(&trace, &err), LEAT_EIO);
    assert_null(trace);
    assert_non_null(strstr(err.message, "/dev/full"));
    assert_int_equal(err.origin_code, ENOSPC);
    assert_int_equal(leat_trace_open(&trace, "/dev/full", NULL), LEAT_OK);
    assert_int_equal(leat_trace_close(&trace, NULL),
                     LEAT_EIO); /* only the end of the array could not be written */
}

static void a_file_that_cannot_be_made_is_told_at_once(void **state) {
    (void)state;
    leat_trace *trace = (leat_trace *)path;
    leat_error err = {0};
    assert_int_equal(leat_trace_open(&trace, "/nowhere/at/all.json", &err), LEAT_EIO);
    assert_null(trace);
    assert_non_null(strstr(err.message, "/nowhere/at/all.json"));
}

static void no_trace_takes_everything(void **state) {
    (void)state;
    leat_trace *trace = NULL;
    assert_int_equal(leati_trace_lane(NULL, "g", "l"), -1);
    leati_trace_span(NULL, 0, "x", 0, 1, 0, 0);
    leati_trace_instant(NULL, 0, "x", 0);
    leati_trace_count(NULL, 0, "x", 0, 1);
    assert_int_equal(leat_trace_close(&trace, NULL), LEAT_OK);
    assert_int_equal(leat_trace_close(NULL, NULL), LEAT_OK);
    trace = begin(); /* a trace ignores a lane number that it did not return */
    leati_trace_span(trace, -1, "x", 0, 1, 0, 0);
    leati_trace_instant(trace, 0, "x", 0);
    leati_trace_count(trace, 7, "x", 0, 1);
    json_t *events = end(trace);
    assert_int_equal(json_array_size(events), 0);
    json_decref(events);
}

/* Whichever allocation fails, the file is complete JSON, and closing reports the failure. */
/* The other process began its clock 5 s before this one, and its clock gains 1 part in 1000. */
static void events_of_a_rank_get_the_clock_of_the_first(void **state) {
    (void)state;
    char other_path[] = "/tmp/leat-trace-XXXXXX", *text_of_other = NULL;
    size_t bytes = 0;
    int64_t origin = 0;
    leat_error err = {0};
    leat_trace *other = NULL, *trace = begin();
    const int64_t now = leati_now_ns(), start = now + 1000000000;
    const leati_trace_clock clock = {{start, start + 1000000000}, {-500000000, -501000000}};
    int fd = mkstemp(other_path);
    assert_true(fd >= 0);
    close(fd);
    if (leat_trace_open(&other, other_path, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_true(leati_trace_set_rank(trace, 0, "a") && leati_trace_set_rank(other, 2, "b"));
    leati_trace_span(trace, leati_trace_lane(trace, "g", "l"), "here", start, start, 0, 0);
    int lane = leati_trace_lane(other, "g", "l");
    assert_false(leati_trace_set_rank(other, 3, "b"));
    leati_trace_span(other, lane, "first", start, start + 2000, 0, 0);
    leati_trace_instant(other, lane, "last", start + 1000000000);
    assert_int_equal(leati_trace_read(other, &text_of_other, &bytes, &origin, &err), LEAT_OK);
    leati_trace_add(trace, text_of_other, bytes, origin, &clock);
    leati_free(text_of_other);
    assert_int_equal(leati_trace_read(other, &text_of_other, &bytes, &origin, &err), LEAT_OK);
    assert_int_equal(bytes, 0); /* events are given once */
    leati_free(text_of_other);
    assert_int_equal(leat_trace_close(&other, &err), LEAT_OK);
    unlink(other_path);
    json_t *events = end(trace);
    const json_t *here = event_of(events, "X", 0), *first = event_of(events, "X", 1);
    assert_near(real(first, "ts"), real(here, "ts") - 500000, 0.01);
    assert_near(real(first, "dur"), 2, 1e-9);
    assert_near(real(event_of(events, "i", 0), "ts"), real(here, "ts") + 499000, 0.01);
    assert_int_not_equal(number(here, "pid"), number(first, "pid"));
    assert_string_equal(text(about(events, "process_name", number(here, "pid"), -1), "name"),
                        "rank 0 (a): g");
    assert_string_equal(text(about(events, "process_name", number(first, "pid"), -1), "name"),
                        "rank 2 (b): g");
    json_decref(events);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    int64_t live = memory_live();
    bool more = true;
    for (int64_t n = 1; more; ++n) {
        leat_trace *trace = NULL;
        leat_error err = {0};
        memory_fail_at(n);
        leat_status status = leat_trace_open(&trace, path, &err);
        if (status == LEAT_OK) {
            for (int i = 0; i < 20; ++i) {
                char name[] = {(char)('a' + i), '\0'};
                leati_trace_span(trace, leati_trace_lane(trace, "g", name), "get", 0, 1, 0, i);
            }
            status = leat_trace_close(&trace, &err);
            json_t *events = json_load_file(path, 0, NULL);
            assert_non_null(events);
            json_decref(events);
        }
        more = memory_failed();
        assert_int_equal(status, more ? LEAT_ENOMEM : LEAT_OK);
        if (more) assert_non_null(strstr(err.message, "no memory for"));
        assert_null(trace);
        assert_int_equal(memory_live(), live);
        assert_true(!more || n < 100);
        if (!more) assert_true(n > 40);
    }
    memory_fail_at(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_trace_is_an_empty_array),
        cmocka_unit_test(lanes_of_a_group_are_threads_of_a_process),
        cmocka_unit_test(spans_keep_their_times_and_their_nesting),
        cmocka_unit_test(what_was_before_the_trace_begins_with_it),
        cmocka_unit_test(names_are_any_bytes),
        cmocka_unit_test(long_names_are_cut_between_characters),
        cmocka_unit_test(many_events_arrive_whole_and_in_order),
        cmocka_unit_test(a_killed_programs_trace_opens),
        cmocka_unit_test(a_forked_process_writes_nothing),
        cmocka_unit_test(a_full_disk_is_told_at_the_end),
        cmocka_unit_test(a_file_that_cannot_be_made_is_told_at_once),
        cmocka_unit_test(no_trace_takes_everything),
        cmocka_unit_test(events_of_a_rank_get_the_clock_of_the_first),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
