/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the history as JSON, in the format of docs/formats/history.md.  Room: train. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "json/json.h"
#include "train/history/configuration.h"
#include "train/history/history.h"
#include "train/history/json_text.h"

/* JSON has no NaN and no infinity: null replaces a number that is not finite. */
static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *seconds(int64_t ns) {
    return json_real((double)ns / 1e9);
}

/* add and append take ownership of the value.  They return false if memory is lacking, also when an argument is NULL
 * because its own allocation failed. */
static bool add(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, value) == 0;
}
static bool append(json_t *array, json_t *value) {
    return json_array_append_new(array, value) == 0;
}

/* Returns the value if it is complete; otherwise releases it and returns NULL. */
static json_t *if_complete(bool complete, json_t *value) {
    if (complete) return value;
    json_decref(value);
    return NULL;
}

static json_t *ranks_json(const leat_verdict *v) {
    return json_pack("{s:i, s:f, s:f, s:i, s:f}", "count", v->ranks, "communication_s",
                     (double)v->communication_ns / 1e9, "exposed_s", (double)v->exposed_ns / 1e9,
                     "latest_rank", v->latest_rank, "late_s", (double)v->late_ns / 1e9);
}

static json_t *verdict_json(const leat_verdict *v) {
    json_t *json =
        json_pack("{s:I, s:f, s:f, s:f, s:f, s:i, s:b, s:b, s:i, s:i, s:I, s:I, s:I, s:s}", "steps",
                  (json_int_t)v->steps, "wall_s", (double)v->wall_ns / 1e9, "data_wait_s",
                  (double)v->data_wait_ns / 1e9, "compute_s", (double)v->compute_ns / 1e9, "get_mean_ms",
                  (double)v->get_mean_ns / 1e6, "workers", v->workers, "use_multiprocessing",
                  v->use_multiprocessing, "get_waits", v->get_waits, "threads", v->threads, "cores", v->cores,
                  "peak_rss_bytes", (json_int_t)v->peak_rss_bytes, "model_bytes", (json_int_t)v->model_bytes,
                  "activation_bytes", (json_int_t)v->activation_bytes, "text", v->text);
    if (json && v->on_device && !add(json, "copy_wait_s", seconds(v->copy_wait_ns))) {
        json_decref(json);
        return NULL;
    }
    if (v->ranks < 2 || !json) return json;
    return if_complete(json_object_set_new(json, "ranks", ranks_json(v)) == 0, json);
}

/* ---- epochs, series, validations ---- */

static json_t *integers_json(const int64_t *values, int count) {
    json_t *array = json_array();
    bool complete = array != NULL;
    for (int i = 0; complete && i < count; ++i) complete = append(array, json_integer((json_int_t)values[i]));
    return if_complete(complete, array);
}

static json_t *series_json(const leati_series *s) {
    json_t *values = json_array();
    bool complete = values != NULL;
    for (int i = 0; complete && i < s->count; ++i) complete = append(values, number(s->values[i]));
    return if_complete(complete, values);
}

static json_t *all_series_json(const leati_series_list *list) {
    json_t *all = json_object();
    bool complete = all != NULL;
    for (int i = 0; complete && i < list->count; ++i)
        complete = leati_json_add(all, list->items[i].name, series_json(&list->items[i]));
    return if_complete(complete, all);
}

/* The epochs of those series that do not have a value in each epoch. */
static json_t *epochs_of_json(const leat_history *history) {
    json_t *all = json_object();
    bool complete = all != NULL;
    for (int i = 0; complete && i < history->series.count; ++i) {
        const leati_series *s = &history->series.items[i];
        if (s->count != history->epochs.count)
            complete = leati_json_add(all, s->name, integers_json(s->positions, s->count));
    }
    return if_complete(complete, all);
}

/* A series of validations as an array of `count` numbers: null for a validation without a value. */
static json_t *sparse_series_json(const leati_series *s, int count) {
    json_t *values = json_array();
    bool complete = values != NULL;
    for (int i = 0, next = 0; complete && i < count; ++i) {
        bool has_value = next < s->count && s->positions[next] == i;
        complete = append(values, has_value ? number(s->values[next]) : json_null());
        next += has_value;
    }
    return if_complete(complete, values);
}

static json_t *validations_json(const leati_validations *validations) {
    json_t *root = json_object(), *values = json_object();
    bool complete = root && values;
    for (int i = 0; complete && i < validations->series.count; ++i) {
        const leati_series *s = &validations->series.items[i];
        complete = leati_json_add(values, s->name, sparse_series_json(s, validations->count));
    }
    complete = complete && add(root, "epoch", integers_json(validations->epochs, validations->count)) &&
               add(root, "step", integers_json(validations->steps, validations->count));
    complete = add(root, "values", values) && complete;
    return if_complete(complete, root);
}

/* ---- the state of the fit ---- */

static json_t *progress_json(const leati_history_progress *progress) {
    json_t *logs = json_object();
    bool complete = logs != NULL;
    for (int i = 0; complete && i < progress->logs.count; ++i) {
        const leat_log *item = &progress->logs.items[i];
        if (strcmp(item->name, "batch") != 0 && strcmp(item->name, "size") != 0)
            complete = leati_json_add(logs, item->name, number(item->value));
    }
    json_t *root = json_pack("{s:I, s:I, s:I, s:I}", "epoch", (json_int_t)progress->epoch, "epochs",
                             (json_int_t)progress->epochs, "step", (json_int_t)progress->step, "steps",
                             (json_int_t)progress->steps);
    complete = add(root, "logs", logs) && complete;
    return if_complete(complete, root);
}

static bool add_state(json_t *root, const leat_history *history) {
    static const char *const names[] = {"running", "ended", "interrupted", "failed"};
    if (!add(root, "state", json_string(names[history->state]))) return false;
    if (history->state_text[0] && !add(root, "state_text", leati_json_text(history->state_text)))
        return false;
    return history->state != LEATI_HISTORY_RUNNING ||
           add(root, "progress", progress_json(&history->progress));
}

/* ---- the feed ---- */

static json_t *percentiles_json(const leat_percentiles *p) {
    return json_pack("{s:f, s:f, s:f, s:f}", "p50", (double)p->p50 / 1e6, "p90", (double)p->p90 / 1e6, "p99",
                     (double)p->p99 / 1e6, "max", (double)p->max / 1e6);
}

static json_t *workers_json(const leati_record *record) {
    json_t *workers = json_array();
    bool complete = workers != NULL;
    for (int i = 0; complete && i < record->workers; ++i)
        complete = append(workers, json_pack("{s:f}", "busy", record->busy[i]));
    return if_complete(complete, workers);
}

static json_t *depth_json(const leati_record *record) {
    json_t *depth = json_object(), *times = json_array(), *ready = json_array();
    bool complete = depth && times && ready;
    for (int i = 0; complete && i < record->depth_count; ++i)
        complete = append(times, seconds(record->depths[i].time_ns)) &&
                   append(ready, json_integer(record->depths[i].ready));
    complete = add(depth, "t_s", times) && complete;
    complete = add(depth, "ready", ready) && complete;
    return if_complete(complete, depth);
}

static json_t *feed_json(const leati_record *record) {
    const leat_feed_stats *s = &record->feed;
    json_t *feed = json_pack("{s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "batches",
                             (json_int_t)s->batches, "bytes", (json_int_t)s->bytes, "starved",
                             (json_int_t)s->starved, "wait_s", (double)s->wait_ns / 1e9, "get_s",
                             (double)s->get_ns / 1e9, "deaths", (json_int_t)s->worker_deaths, "timeouts",
                             (json_int_t)s->timeouts, "retries", (json_int_t)s->retries, "skips",
                             (json_int_t)s->skips, "samples_left_out", (json_int_t)s->samples_left_out,
                             "ring_bytes", (json_int_t)s->ring_bytes, "max_queue_size", s->max_queue_size);
    bool complete = feed && add(feed, "wait_ms", percentiles_json(&s->wait)) &&
                    add(feed, "get_ms", percentiles_json(&s->get)) &&
                    add(feed, "workers", workers_json(record)) && add(feed, "depth", depth_json(record));
    return if_complete(complete, feed);
}

/* ---- steps and batches over time ---- */

static json_t *timeline_json(const leati_record *record) {
    json_t *times = json_array(), *waits = json_array(), *computes = json_array();
    bool complete = times && waits && computes;
    for (int i = 0; complete && i < record->point_count; ++i) {
        const leati_record_point *point = &record->points[i];
        double steps = (double)point->steps;
        complete = append(times, seconds(point->start_ns)) &&
                   append(waits, json_real((double)point->wait_ns / steps / 1e6)) &&
                   append(computes, json_real((double)point->compute_ns / steps / 1e6));
    }
    json_t *timeline = json_pack("{s:I}", "steps_per_point", (json_int_t)record->steps_per_point);
    complete = add(timeline, "t_s", times) && complete;
    complete = add(timeline, "wait_ms", waits) && complete;
    complete = add(timeline, "compute_ms", computes) && complete;
    return if_complete(complete, timeline);
}

static json_t *lanes_json(const leati_record *record) {
    json_t *lanes = json_object(), *spans = json_array();
    bool complete = lanes && spans;
    int64_t first = record->span_count > LEATI_RECORD_SPANS ? record->span_count - LEATI_RECORD_SPANS : 0;
    for (int64_t n = first; complete && n < record->span_count; ++n) {
        const leati_record_span *span = &record->spans[n % LEATI_RECORD_SPANS];
        complete = append(spans, json_pack("[i, f, f, I]", (int)span->worker, (double)span->start_ns / 1e9,
                                           (double)span->end_ns / 1e9, (json_int_t)span->index));
    }
    complete = add(lanes, "spans", spans) && complete;
    return if_complete(complete, lanes);
}

leat_status leat_history_json(const leat_history *history, char **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(history, err);
    json_t *root = json_object();
    bool complete = root && add_state(root, history);
    if (complete && history->configuration)
        complete = add(root, "configuration", leati_configuration_json(history->configuration));
    complete = complete &&
               add(root, "epoch", integers_json(history->epochs.numbers, history->epochs.count)) &&
               add(root, "steps", integers_json(history->epochs.steps, history->epochs.count)) &&
               add(root, "history", all_series_json(&history->series)) &&
               add(root, "epochs_of", epochs_of_json(history));
    if (complete && history->validations.count > 0)
        complete = add(root, "validations", validations_json(&history->validations));
    complete = complete && add(root, "verdict", verdict_json(&history->verdict)) &&
               add(root, "feed", feed_json(&history->record)) &&
               add(root, "timeline", timeline_json(&history->record)) &&
               add(root, "lanes", lanes_json(&history->record));
    leat_status status =
        complete ? leati_json_write(root, out, err) : leati_fail_memory(err, 0, "the history's JSON");
    json_decref(root);
    return status;
}
