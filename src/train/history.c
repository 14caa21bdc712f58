/* SPDX-License-Identifier: Apache-2.0 */
/* History, and its JSON.  Layer: train. */
#include "train/history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"

typedef struct series {
    char name[LEAT_LOG_NAME_BYTES];
    int count, capacity;
    double *values;
} series;

struct leat_history {
    int count;
    series items[LEAT_MAX_LOGS];
    series epochs;
    leat_verdict verdict;
};

leat_status leati_history_create(leat_history **out, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    return *out ? LEAT_OK : leati_fail_memory(err, sizeof **out, "the history");
}

void leat_history_destroy(leat_history **history) {
    if (!history || !*history) return;
    for (int i = 0; i < (*history)->count; ++i) leati_free((*history)->items[i].values);
    leati_free((*history)->epochs.values);
    leati_free(*history);
    *history = NULL;
}

static leat_status append(series *s, double value, leat_error *err) {
    if (s->count == s->capacity) {
        int capacity = s->capacity ? 2 * s->capacity : 16;
        double *values = leati_realloc(s->values, (size_t)capacity, sizeof *values);
        if (!values) return leati_fail_memory(err, (size_t)capacity * sizeof *values, "the history");
        s->values = values;
        s->capacity = capacity;
    }
    s->values[s->count++] = value;
    return LEAT_OK;
}

static series *find(leat_history *history, const char *name) {
    for (int i = 0; i < history->count; ++i)
        if (strcmp(history->items[i].name, name) == 0) return &history->items[i];
    if (history->count == LEAT_MAX_LOGS) return NULL;
    series *s = &history->items[history->count++];
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

leat_status leati_history_add(leat_history *history, int64_t epoch, const leat_logs *logs, leat_error *err) {
    LEATI_TRY(append(&history->epochs, (double)epoch, err));
    for (int i = 0; i < logs->count; ++i) {
        series *s = find(history, logs->items[i].name);
        if (s) LEATI_TRY(append(s, logs->items[i].value, err));
    }
    return LEAT_OK;
}

static leat_status record(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                          leat_error *err) {
    (void)training;
    return leati_history_add(user, epoch, logs, err);
}

leat_callback leati_history_callback(leat_history *history) {
    return (leat_callback){.user = history, .on_epoch_end = record};
}

void leati_history_set_verdict(leat_history *history, const leat_verdict *verdict) {
    history->verdict = *verdict;
}

leat_verdict leat_history_verdict(const leat_history *history) {
    return history->verdict;
}

int leat_history_count(const leat_history *history) {
    return history->count;
}

const char *leat_history_name(const leat_history *history, int index) {
    return index < 0 || index >= history->count ? NULL : history->items[index].name;
}

const double *leat_history_values(const leat_history *history, const char *name, int *count) {
    for (int i = 0; i < history->count; ++i)
        if (strcmp(history->items[i].name, name) == 0) {
            *count = history->items[i].count;
            return history->items[i].values;
        }
    *count = 0;
    return NULL;
}

/* JSON knows no NaN: null stands for what is not finite. */
static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *verdict_json(const leat_verdict *v) {
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:i, s:b, s:i, s:i, s:s}", "steps", (json_int_t)v->steps,
                     "wall_s", (double)v->wall_ns / 1e9, "data_wait_s", (double)v->data_wait_ns / 1e9,
                     "compute_s", (double)v->compute_ns / 1e9, "get_mean_ms", (double)v->get_mean_ns / 1e6,
                     "workers", v->workers, "use_multiprocessing", v->use_multiprocessing, "threads",
                     v->threads, "cores", v->cores, "text", v->text);
}

static json_t *series_json(const series *s, bool whole) {
    json_t *values = json_array();
    bool complete = values != NULL;
    for (int i = 0; complete && i < s->count; ++i)
        complete = json_array_append_new(values, whole ? json_integer((json_int_t)s->values[i])
                                                       : number(s->values[i])) == 0;
    if (complete) return values;
    json_decref(values);
    return NULL;
}

/* NULL without memory. */
static json_t *build_json(const leat_history *history) {
    json_t *root = json_object(), *all = json_object();
    bool complete = root && all;
    for (int i = 0; complete && i < history->count; ++i)
        complete =
            json_object_set_new(all, history->items[i].name, series_json(&history->items[i], false)) == 0;
    complete = complete && json_object_set_new(root, "epoch", series_json(&history->epochs, true)) == 0 &&
               json_object_set(root, "history", all) == 0 &&
               json_object_set_new(root, "verdict", verdict_json(&history->verdict)) == 0;
    json_decref(all);
    if (complete) return root;
    json_decref(root);
    return NULL;
}

leat_status leat_history_json(const leat_history *history, char **out, leat_error *err) {
    *out = NULL;
    json_t *root = build_json(history);
    if (!root) return leati_fail_memory(err, 0, "the history's JSON");
    leat_status status = leati_json_write(root, out, err);
    json_decref(root);
    return status;
}
