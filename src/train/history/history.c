/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the logs of each epoch, and gives access to the history.  Room: train. */
#include "train/history/history.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "train/hooks/training.h"

leat_status leati_history_create(leat_history **out, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    return *out ? LEAT_OK : leati_fail_memory(err, sizeof **out, "the history");
}

static void free_series(leati_series_list *list) {
    for (int i = 0; i < list->count; ++i) {
        leati_free(list->items[i].positions);
        leati_free(list->items[i].values);
    }
}

void leat_history_destroy(leat_history **history) {
    if (!history || !*history) return;
    leat_history *h = *history;
    free_series(&h->series);
    free_series(&h->validations.series);
    leati_free(h->validations.epochs);
    leati_free(h->validations.steps);
    leati_free(h->epochs.numbers);
    leati_free(h->epochs.steps);
    json_decref(h->configuration);
    leati_record_fini(&h->record);
    leati_free(h);
    *history = NULL;
}

/* ---- Growing ---- */

/* Makes room for one more element in two arrays of the same capacity, whose elements have 8 bytes. */
static leat_status reserve(int count, int *capacity, void **first, void **second, leat_error *err) {
    if (count < *capacity) return LEAT_OK;
    void **const arrays[] = {first, second};
    int larger = *capacity ? 2 * *capacity : 16;
    for (int i = 0; i < 2; ++i) {
        void *array = leati_realloc(*arrays[i], (size_t)larger, sizeof(int64_t));
        if (!array) return leati_fail_memory(err, (size_t)larger * sizeof(int64_t), "the history");
        *arrays[i] = array;
    }
    *capacity = larger;
    return LEAT_OK;
}

leat_status leati_series_append(leati_series *s, int64_t position, double value, leat_error *err) {
    void *positions = s->positions, *values = s->values;
    leat_status status = reserve(s->count, &s->capacity, &positions, &values, err);
    s->positions = positions;
    s->values = values;
    if (status != LEAT_OK) return status;
    s->positions[s->count] = position;
    s->values[s->count++] = value;
    return LEAT_OK;
}

leat_status leati_epochs_append(leati_epochs *e, int64_t number, int64_t steps, leat_error *err) {
    void *numbers = e->numbers, *all_steps = e->steps;
    leat_status status = reserve(e->count, &e->capacity, &numbers, &all_steps, err);
    e->numbers = numbers;
    e->steps = all_steps;
    if (status != LEAT_OK) return status;
    e->numbers[e->count] = number;
    e->steps[e->count++] = steps;
    return LEAT_OK;
}

leat_status leati_validations_append(leati_validations *v, int64_t epoch, int64_t step, leat_error *err) {
    void *epochs = v->epochs, *steps = v->steps;
    leat_status status = reserve(v->count, &v->capacity, &epochs, &steps, err);
    v->epochs = epochs;
    v->steps = steps;
    if (status != LEAT_OK) return status;
    v->epochs[v->count] = epoch;
    v->steps[v->count++] = step;
    return LEAT_OK;
}

static const leati_series *find(const leati_series_list *list, const char *name) {
    for (int i = 0; i < list->count; ++i)
        if (strcmp(list->items[i].name, name) == 0) return &list->items[i];
    return NULL;
}

leati_series *leati_series_of(leati_series_list *list, const char *name) {
    for (int i = 0; i < list->count; ++i)
        if (strcmp(list->items[i].name, name) == 0) return &list->items[i];
    if (list->count == LEAT_MAX_LOGS) return NULL;
    leati_series *s = &list->items[list->count++];
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

static leat_status add_logs(leati_series_list *list, int64_t position, const leat_logs *logs,
                            leat_error *err) {
    for (int i = 0; i < logs->count; ++i) {
        leati_series *s = leati_series_of(list, logs->items[i].name);
        if (s) LEATI_TRY(leati_series_append(s, position, logs->items[i].value, err));
    }
    return LEAT_OK;
}

leat_status leati_history_add(leat_history *history, int64_t epoch, int64_t steps, const leat_logs *logs,
                              leat_error *err) {
    LEATI_TRY(leati_epochs_append(&history->epochs, epoch, steps, err));
    return add_logs(&history->series, epoch, logs, err);
}

leat_status leati_history_add_validation(leat_history *history, int64_t epoch, int64_t step,
                                         const leat_logs *logs, leat_error *err) {
    int64_t index = history->validations.count;
    LEATI_TRY(leati_validations_append(&history->validations, epoch, step, err));
    return add_logs(&history->validations.series, index, logs, err);
}

/* ---- The callback ---- */

static leat_status begin_epoch(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                               leat_error *err) {
    leati_history_progress *progress = &((leat_history *)user)->progress;
    (void)logs, (void)err;
    progress->epoch = epoch;
    progress->step = 0;
    progress->steps = leat_training_params_get(training)->steps;
    progress->logs.count = 0;
    return LEAT_OK;
}

/* Copies the items that are used only, since leat_logs takes 9 KB. */
static leat_status end_step(void *user, leat_training *training, int64_t step, leat_logs *logs,
                            leat_error *err) {
    leati_history_progress *progress = &((leat_history *)user)->progress;
    (void)training, (void)err;
    progress->step = step + 1;
    progress->logs.count = logs->count;
    memcpy(progress->logs.items, logs->items, (size_t)logs->count * sizeof *logs->items);
    return LEAT_OK;
}

static leat_status end_epoch(void *user, leat_training *training, int64_t epoch, leat_logs *logs,
                             leat_error *err) {
    return leati_history_add(user, epoch, leat_training_params_get(training)->steps, logs, err);
}

leat_callback leati_history_callback(leat_history *history) {
    return (leat_callback){.user = history,
                           .on_epoch_begin = begin_epoch,
                           .on_train_batch_end = end_step,
                           .on_epoch_end = end_epoch};
}

void leati_history_end(leat_history *history, leati_history_state state, const char *text) {
    history->state = state;
    history->measure = NULL;
    snprintf(history->state_text, sizeof history->state_text, "%s", text ? text : "");
}

/* ---- Access ---- */

const leat_history *leat_training_history(const leat_training *training) {
    leat_history *history = training ? training->run_history : NULL;
    if (history && history->measure) history->measure(history->loop);
    return history;
}

void leat_history_verdict_into(const leat_history *history, leat_verdict *out, size_t size) {
    leati_growing_report(history ? &history->verdict : NULL, sizeof *out, out, size);
}

void leat_history_feed_stats_into(const leat_history *history, leat_feed_stats *out, size_t size) {
    leati_growing_report(history ? &history->record.feed : NULL, sizeof *out, out, size);
}

int leat_history_count(const leat_history *history) {
    return history ? history->series.count : 0;
}

const char *leat_history_name(const leat_history *history, int index) {
    return !history || index < 0 || index >= history->series.count ? NULL : history->series.items[index].name;
}

const double *leat_history_values(const leat_history *history, const char *name, int *count) {
    if (count) *count = 0;
    if (!history || !name || !count) return NULL;
    const leati_series *s = find(&history->series, name);
    if (s) *count = s->count;
    return s ? s->values : NULL;
}

const int64_t *leat_history_epochs(const leat_history *history, const char *name, int *count) {
    if (count) *count = 0;
    if (!history || !name || !count) return NULL;
    const leati_series *s = find(&history->series, name);
    if (s) *count = s->count;
    return s ? s->positions : NULL;
}
