/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the logs of each epoch, and gives access to the history.  Room: train. */
#include "train/history/history.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"

leat_status leati_history_create(leat_history **out, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    return *out ? LEAT_OK : leati_fail_memory(err, sizeof **out, "the history");
}

void leat_history_destroy(leat_history **history) {
    if (!history || !*history) return;
    for (int i = 0; i < (*history)->count; ++i) leati_free((*history)->items[i].values);
    leati_free((*history)->epochs.values);
    leati_record_fini(&(*history)->record);
    leati_free(*history);
    *history = NULL;
}

static leat_status append(leati_series *s, double value, leat_error *err) {
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

static leati_series *find(leat_history *history, const char *name) {
    for (int i = 0; i < history->count; ++i)
        if (strcmp(history->items[i].name, name) == 0) return &history->items[i];
    if (history->count == LEAT_MAX_LOGS) return NULL;
    leati_series *s = &history->items[history->count++];
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

leat_status leati_history_add(leat_history *history, int64_t epoch, const leat_logs *logs, leat_error *err) {
    LEATI_TRY(append(&history->epochs, (double)epoch, err));
    for (int i = 0; i < logs->count; ++i) {
        leati_series *s = find(history, logs->items[i].name);
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

void leat_history_verdict_into(const leat_history *history, leat_verdict *out, size_t size) {
    leati_growing_report(history ? &history->verdict : NULL, sizeof *out, out, size);
}

void leat_history_feed_stats_into(const leat_history *history, leat_feed_stats *out, size_t size) {
    leati_growing_report(history ? &history->record.feed : NULL, sizeof *out, out, size);
}

int leat_history_count(const leat_history *history) {
    return history ? history->count : 0;
}

const char *leat_history_name(const leat_history *history, int index) {
    return !history || index < 0 || index >= history->count ? NULL : history->items[index].name;
}

const double *leat_history_values(const leat_history *history, const char *name, int *count) {
    if (count) *count = 0;
    if (!history || !name || !count) return NULL;
    for (int i = 0; i < history->count; ++i)
        if (strcmp(history->items[i].name, name) == 0) {
            *count = history->items[i].count;
            return history->items[i].values;
        }
    return NULL;
}
