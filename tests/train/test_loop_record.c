/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a fit: the verdict's sentences, points over time, JSON, and the trace. */
#include "cmocka_all.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/history/record.h"
#include "train/support.h"
#include "train/history/verdict.h"

/* ---- the verdict ---- */

/* A verdict, and what the feed measured. */
typedef struct judged {
    leat_verdict v;
    leat_feed_stats feed;
} judged;

/* 100 steps of 5 ms on 2 cores; the trainer waits `wait_ms` for each batch, which takes a worker `get_ms`. */
static judged verdict_of(double wait_ms, double get_ms, int workers) {
    judged j = {0};
    leat_verdict v = {.steps = 100,
                      .workers = workers,
                      .threads = 2,
                      .cores = 2,
                      .compute_ns = 500 * 1000000,
                      .data_wait_ns = (int64_t)(wait_ms * 100e6),
                      .get_mean_ns = (int64_t)(get_ms * 1e6)};
    v.wall_ns = v.compute_ns + v.data_wait_ns;
    j.v = v;
    j.feed.max_queue_size = 10;
    j.feed.get = (leat_percentiles){v.get_mean_ns, v.get_mean_ns, v.get_mean_ns, v.get_mean_ns};
    j.feed.wait.max = (int64_t)(wait_ms * 1e6);
    return j;
}

static void says(judged j, const char *words) {
    leati_verdict_explain(&j.v, &j.feed);
    if (!strstr(j.v.text, words)) fail_msg("'%s' does not say '%s'", j.v.text, words);
    assert_true(strlen(j.v.text) < sizeof j.v.text - 1);
}

static void verdicts_say_who_waits_and_what_helps(void **state) {
    (void)state;
    says(verdict_of(0.01, 4, 1),
         "Training waited 0 % of the time for data and 100 % for compute: it is bound "
         "by compute. A step takes 5.00 ms; get takes 4.00 ms, 4.00 ms at p90. More "
         "workers would not help: the batches are there in time.");
    says(verdict_of(3, 8, 1), "Training waited 38 % of the time for data");
    says(verdict_of(3, 8, 1), "About 2 workers would be enough.");
    says(verdict_of(7, 14, 1), "bound by data");
    says(verdict_of(7, 14, 1),
         "About 3 workers would be enough on a machine with as many cores; here cores are "
         "the limit: there are 2, and no more workers than that help.");
    says(verdict_of(7, 14, 2), "here cores are the limit: 2 serve 2 workers and 2 compute threads, so only a "
                               "cheaper batch helps.");
    says(verdict_of(4, 4, 0),
         "Batches are made between the steps: 1 worker would make them beside the steps.");
    says(verdict_of(3, 4, 2),
         "More workers would not help: the 2 could keep up, but share the 2 cores with 2 "
         "compute threads.");
    judged one_wait = verdict_of(3, 4, 2), uneven = verdict_of(3, 4, 2), slow = verdict_of(0, 1, 1);
    one_wait.feed.wait.max = 290 * 1000000;
    says(one_wait, "More workers would not help: most of it was one wait of 290.0 ms.");
    uneven.feed.get.p99 = 80 * 1000000;
    says(uneven, "on average they keep up, but get takes 80.00 ms at p99; a queue of more than 10 batches");
    slow.v.wall_ns *= 4;
    says(slow, "it is bound by callbacks");
    judged slow_disk = verdict_of(7, 14, 2), inline_disk = verdict_of(14, 14, 0);
    slow_disk.v.get_waits = inline_disk.v.get_waits = true;
    says(slow_disk,
         "About 3 workers would be enough. They may be more than the 2 cores: get mostly waits for "
         "something else, such as a disk.");
    says(inline_disk, "3 workers would make them beside the steps.");
    judged by_generator = verdict_of(7, 14, 1);
    by_generator.v.generator = true;
    says(by_generator,
         "More workers would not help: a generator has one owner. A sequence could be made by 3.");
    judged none = {0};
    says(none, "No step was run.");
}

/* 4 steps in 4 ms: most of that is the wait for the first batch, which no setting of the workers shortens. */
static void copies_to_a_device_are_judged(void **state) {
    (void)state;
    judged j = verdict_of(1, 1, 4);
    j.v.on_device = true;
    j.v.copy_wait_ns = 400 * 1000000;
    j.v.wall_ns += j.v.copy_wait_ns;
    leati_verdict_explain(&j.v, &j.feed);
    assert_non_null(
        strstr(j.v.text, "waited 10 % of the time for data, 40 % for copies to the GPU and 50 % for compute: "
                         "it is bound by compute."));
    assert_non_null(strstr(j.v.text, "A step takes 9.00 ms"));
    assert_non_null(strstr(j.v.text, "samples of a smaller type"));
    j.v.compute_ns = 100 * 1000000;
    j.v.wall_ns -= 400 * 1000000;
    j.v.workers = 0;
    leati_verdict_explain(&j.v, &j.feed);
    assert_non_null(strstr(j.v.text, "it is bound by copies to the GPU."));
    assert_non_null(strstr(j.v.text, "With workers the next batch would be copied while a step computes."));
    j.v.copy_wait_ns = 0;
    leati_verdict_explain(&j.v, &j.feed);
    assert_non_null(strstr(j.v.text, " 0 % for copies to the GPU"));
    assert_null(strstr(j.v.text, "smaller type"));
}

static void a_run_of_milliseconds_is_not_judged(void **state) {
    (void)state;
    judged j = verdict_of(7, 14, 1);
    j.v.steps = 4;
    j.v.compute_ns = 1000000;
    j.v.data_wait_ns = 3000000;
    j.v.wall_ns = 4000000;
    j.feed.skips = 1;
    says(j,
         "The run was too short to tell what limits it: 4 steps in 4.00 ms. A step takes 0.25 ms; get takes "
         "14.00 ms, 14.00 ms at p90. 1 bad batch was passed over.");
    j.v.steps = 1;
    j.v.wall_ns = 99999999;
    says(j, "too short to tell what limits it: 1 step in 100.00 ms.");
    j.v.wall_ns = 100000000;
    says(j, "it is bound by");
}

/* A second on 4 cores, compute 0.1 s of it, 3 workers inside get for 2.4 s in all. */
static void waiting_is_told_from_computing(void **state) {
    (void)state;
    judged j = {.v = {.cores = 4, .compute_ns = 100000000}, .feed = {.get_ns = 2400000000}};
    const int64_t second = 1000000000;
    assert_true(leati_verdict_get_waits(&j.v, &j.feed, second / 2, second));
    assert_false(leati_verdict_get_waits(&j.v, &j.feed, second * 5 / 2, second)); /* get computes */
    j.feed.get_ns = 9 * second;
    assert_false(leati_verdict_get_waits(&j.v, &j.feed, second * 39 / 10,
                                         second)); /* more workers than cores, none free */
    assert_false(leati_verdict_get_waits(&j.v, &j.feed, second / 20, second / 10)); /* too short to judge */
    j.feed.get_ns = second / 100;
    assert_false(leati_verdict_get_waits(&j.v, &j.feed, second / 2, second)); /* almost no time in get */
}

static void verdicts_say_what_went_wrong(void **state) {
    (void)state;
    judged j = verdict_of(0, 1, 1);
    leati_verdict_explain(&j.v, &j.feed);
    assert_null(strstr(j.v.text, "died"));
    j.feed.worker_deaths = 3;
    j.feed.timeouts = 1;
    j.feed.retries = 2;
    j.feed.skips = 1;
    says(j,
         "3 worker processes died and were replaced. 1 of them took too long and were killed. get was called "
         "again 2 times after it failed. 1 bad batch was passed over.");
}

/* ---- points over time ---- */

static void points_thin_out_evenly(void **state) {
    (void)state;
    leati_record *record = calloc(1, sizeof *record);
    leat_error err = {0};
    assert_non_null(record);
    expect_ok(leati_record_begin(record, 0, 1000, &err), &err);
    for (int64_t step = 0; step < 5000; ++step) {
        leati_record_step(record, 1000 + step * 10, 2, step);
        assert_in_range(record->point_count, 1, LEATI_RECORD_POINTS);
    }
    assert_int_equal(record->steps_per_point, 8);
    assert_int_equal(record->point_count, 5000 / 8);
    for (int i = 0; i < record->point_count; ++i) {
        const leati_record_point *point = &record->points[i];
        assert_int_equal(point->start_ns, i * 80);
        assert_int_equal(point->steps, 8);
        assert_int_equal(point->wait_ns, 16);
        assert_int_equal(point->compute_ns, 64 * i + 28);
    }
    leati_record_fini(record);
    free(record);
}

/* ---- JSON ---- */

static double number_at(json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) fail_msg("no number '%s'", key);
    return json_number_value(value);
}

static json_t *array_at(json_t *object, const char *key, size_t count) {
    json_t *value = json_object_get(object, key);
    assert_true(json_is_array(value));
    assert_int_equal(json_array_size(value), count);
    return value;
}

static void check_feed(json_t *feed, int workers) {
    static const char *const plain[] = {"starved", "wait_s", "get_s",      "deaths",        "timeouts",
                                        "retries", "skips",  "ring_bytes", "max_queue_size"};
    static const char *const spread[] = {"p50", "p90", "p99", "max"};
    assert_true(number_at(feed, "batches") == 600);
    assert_true(number_at(feed, "bytes") >= 600 * 28);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; ++i) assert_true(number_at(feed, plain[i]) >= 0);
    for (size_t i = 0; i < 4; ++i) {
        assert_true(number_at(json_object_get(feed, "wait_ms"), spread[i]) >= 0);
        assert_true(number_at(json_object_get(feed, "get_ms"), spread[i]) > 0);
    }
    json_t *pool = array_at(feed, "workers", (size_t)workers), *depth = json_object_get(feed, "depth");
    for (size_t i = 0; i < json_array_size(pool); ++i) {
        double busy = number_at(json_array_get(pool, i), "busy");
        assert_true(busy >= 0 && busy <= 1);
    }
    size_t moments = json_array_size(json_object_get(depth, "t_s"));
    assert_in_range(moments, 1, LEATI_RECORD_DEPTHS);
    array_at(depth, "ready", moments);
}

static void check_time(json_t *root, int workers) {
    json_t *timeline = json_object_get(root, "timeline");
    assert_true(number_at(timeline, "steps_per_point") == 1);
    json_t *times = array_at(timeline, "t_s", 600);
    array_at(timeline, "wait_ms", 600);
    array_at(timeline, "compute_ms", 600);
    for (size_t i = 1; i < 600; ++i)
        assert_true(json_number_value(json_array_get(times, i)) >
                    json_number_value(json_array_get(times, i - 1)));
    json_t *spans = array_at(json_object_get(root, "lanes"), "spans", LEATI_RECORD_SPANS);
    for (size_t i = 0; i < LEATI_RECORD_SPANS; ++i) {
        json_t *span = json_array_get(spans, i);
        assert_int_equal(json_array_size(span), 4);
        assert_in_range(json_integer_value(json_array_get(span, 0)), 0, workers ? workers - 1 : 0);
        assert_true(json_number_value(json_array_get(span, 1)) <= json_number_value(json_array_get(span, 2)));
        assert_int_equal(json_integer_value(json_array_get(span, 3)),
                         (int)(600 - LEATI_RECORD_SPANS + i) % 300);
    }
}

/* Adam: weights, gradients and two slots of at least 67 numbers. */
static void check_memory(json_t *verdict) {
    double model = number_at(verdict, "model_bytes"), activations = number_at(verdict, "activation_bytes");
    assert_true(model >= 4 * 67 * 4 && model < 1e5);
    assert_true(activations > 0 && activations < 1e6);
    assert_true(number_at(verdict, "peak_rss_bytes") > model + activations);
    assert_non_null(strstr(json_string_value(json_object_get(verdict, "text")), " Memory: "));
}

static void history_tells_all_in_json(void **state) {
    (void)state;
    leat_error err = {0};
    for (int workers = 0; workers <= 2; ++workers) {
        leat_model *model = make_classifier(1);
        clusters data = clusters_of(300, 1);
        leat_sequence sequence = clusters_sequence(&data);
        leat_fit_options options = quiet_fit(2);
        options.workers = workers;
        options.shuffle = LEAT_SHUFFLE_NONE;
        leat_history *history = NULL;
        char *text = NULL;
        expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
        expect_ok(leat_history_json(history, &text, &err), &err);
        json_t *root = json_loads(text, 0, NULL);
        assert_non_null(root);
        check_feed(json_object_get(root, "feed"), workers);
        check_memory(json_object_get(root, "verdict"));
        check_time(root, workers);
        json_decref(root);
        leat_string_free(text);
        leat_history_destroy(&history);
        leat_model_destroy(&model);
    }
}

static void a_history_without_a_step_is_whole(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(30, 1);
    leat_sequence sequence = clusters_sequence(&data);
    leat_fit_options options = quiet_fit(0);
    leat_history *history = NULL;
    char *text = NULL;
    expect_ok(leat_model_fit_generator(model, &sequence, &options, &history, &err), &err);
    expect_ok(leat_history_json(history, &text, &err), &err);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    array_at(json_object_get(root, "timeline"), "t_s", 0);
    array_at(json_object_get(root, "lanes"), "spans", 0);
    array_at(json_object_get(root, "feed"), "workers", 0);
    json_decref(root);
    leat_string_free(text);
    leat_history_destroy(&history);
    leat_model_destroy(&model);
}

/* ---- a trace ---- */

/* Counts the spans with this name: all, or only those without a batch or epoch. */
static int spans_of(json_t *events, const char *name, bool of_none) {
    int count = 0;
    size_t i = 0;
    json_t *event = NULL;
    json_array_foreach(events, i, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        const char *called = json_string_value(json_object_get(event, "name"));
        if (phase && called && strcmp(phase, "X") == 0 && strcmp(called, name) == 0 &&
            (!of_none || !json_object_get(json_object_get(event, "args"), "index")))
            ++count;
    }
    return count;
}

static void a_trace_has_the_loop_s_spans(void **state) {
    (void)state;
    leat_error err = {0};
    char path[] = "/tmp/leat-trace-XXXXXX";
    close(mkstemp(path));
    leat_model *model = make_classifier(1);
    clusters data = clusters_of(40, 8), held_out = clusters_of(16, 8);
    leat_sequence sequence = clusters_sequence(&data), validation = clusters_sequence(&held_out);
    leat_fit_options options = quiet_fit(3);
    options.workers = 2;
    options.validation = &validation;
    expect_ok(leat_trace_open(&options.trace, path, &err), &err);
    expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
    leat_evaluate_options evaluate = leat_evaluate_options_default();
    leat_logs logs;
    evaluate.trace = options.trace;
    expect_ok(leat_model_evaluate_generator(model, &validation, &evaluate, &logs, &err), &err);
    expect_ok(leat_trace_close(&options.trace, &err), &err);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");
    assert_int_equal(spans_of(events, "epoch", false), 3);
    assert_int_equal(spans_of(events, "validation", true), 3); /* the workers' spans have the feed's name */
    assert_int_equal(spans_of(events, "step", false), 3 * (5 + 2) + 2);
    assert_true(spans_of(events, "wait", false) <= 3 * (5 + 2) + 2); /* those of the feeds, once */
    json_decref(root);
    unlink(path);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_say_who_waits_and_what_helps),
        cmocka_unit_test(copies_to_a_device_are_judged),
        cmocka_unit_test(a_run_of_milliseconds_is_not_judged),
        cmocka_unit_test(waiting_is_told_from_computing),
        cmocka_unit_test(verdicts_say_what_went_wrong),
        cmocka_unit_test(points_thin_out_evenly),
        cmocka_unit_test(history_tells_all_in_json),
        cmocka_unit_test(a_history_without_a_step_is_whole),
        cmocka_unit_test(a_trace_has_the_loop_s_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
