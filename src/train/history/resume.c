/* SPDX-License-Identifier: Apache-2.0 */
/* Saves the history to a checkpoint and loads it, so that a resumed fit continues the history.  All values have the
 * byte order of the machine, like the rest of a checkpoint.  Room: train. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/history/history.h"

enum { name_bytes = 48, word = sizeof(int64_t) };
_Static_assert(sizeof(double) == word, "a series is written as words");

/* ---- Saving ---- */

/* Adds a value: a text in `head_bytes` bytes, then two arrays of `count` words each.  The text, even if it is empty,
 * makes sure that no value has 0 bytes. */
static leat_status put_arrays(leat_state *state, const char *key, const char *head, size_t head_bytes,
                              int count, const void *first, const void *second, leat_error *err) {
    size_t array_bytes = (size_t)count * word, bytes = head_bytes + 2 * array_bytes;
    char *data = leati_calloc(bytes, 1);
    if (!data) return leati_fail_memory(err, bytes, "the history in a checkpoint");
    snprintf(data, head_bytes, "%s", head);
    if (count > 0) {
        memcpy(data + head_bytes, first, array_bytes);
        memcpy(data + head_bytes + array_bytes, second, array_bytes);
    }
    leat_status status = leat_state_put(state, key, data, bytes, err);
    leati_free(data);
    return status;
}

/* Adds the series of a list as the values "PREFIX.0", "PREFIX.1", ...: their names may have any bytes. */
static leat_status put_list(leat_state *state, const char *prefix, const leati_series_list *list,
                            leat_error *err) {
    for (int i = 0; i < list->count; ++i) {
        const leati_series *s = &list->items[i];
        char key[name_bytes];
        snprintf(key, sizeof key, "%s.%d", prefix, i);
        LEATI_TRY(put_arrays(state, key, s->name, sizeof s->name, s->count, s->positions, s->values, err));
    }
    return LEAT_OK;
}

static leati_record_sums sums_of(const leat_history *history) {
    const leat_verdict *v = &history->verdict;
    const leat_feed_stats *feed = &history->record.feed;
    return (leati_record_sums){.elapsed_ns = leati_record_elapsed(&history->record),
                               .steps = v->steps,
                               .wall_ns = v->wall_ns,
                               .data_wait_ns = v->data_wait_ns,
                               .compute_ns = v->compute_ns,
                               .batches = feed->batches,
                               .bytes = feed->bytes,
                               .starved = feed->starved,
                               .wait_ns = feed->wait_ns,
                               .get_ns = feed->get_ns,
                               .worker_deaths = feed->worker_deaths,
                               .timeouts = feed->timeouts,
                               .retries = feed->retries,
                               .skips = feed->skips};
}

/* Writes the points as words, each with its four members. */
static leat_status put_timeline(leat_state *state, const leati_record *record, leat_error *err) {
    _Static_assert(sizeof(leati_record_point) == 4 * word, "a point is four words");
    LEATI_TRY(leat_state_put(state, "steps_per_point", &record->steps_per_point, word, err));
    return leat_state_put(state, "points", record->points,
                          (size_t)record->point_count * sizeof *record->points, err);
}

leat_status leati_history_save(const leat_history *history, leat_state *state, leat_error *err) {
    const leati_epochs *epochs = &history->epochs;
    const leati_validations *validations = &history->validations;
    if (history->measure) history->measure(history->loop);
    leati_record_sums sums = sums_of(history);
    LEATI_TRY(put_arrays(state, "epochs", "", word, epochs->count, epochs->numbers, epochs->steps, err));
    LEATI_TRY(put_list(state, "series", &history->series, err));
    LEATI_TRY(put_arrays(state, "validations", "", word, validations->count, validations->epochs,
                         validations->steps, err));
    LEATI_TRY(put_list(state, "validation_series", &validations->series, err));
    LEATI_TRY(leat_state_put(state, "sums", &sums, sizeof sums, err));
    LEATI_TRY(leat_state_put(state, "samples_left_out", &history->record.feed.samples_left_out, word, err));
    LEATI_TRY(leat_state_put(state, "copy_wait_ns", &history->verdict.copy_wait_ns, word, err));
    return put_timeline(state, &history->record, err);
}

/* ---- Loading ---- */

/* Two arrays of a checkpoint: views, which may not be aligned. */
typedef struct arrays {
    const char *head, *first, *second; /* head: NULL if there is no such value */
    int count;
} arrays;

static leat_status find_arrays(const leat_state *state, const char *key, size_t head_bytes, arrays *out,
                               leat_error *err) {
    size_t bytes = 0;
    const char *data = leat_state_find(state, key, &bytes);
    *out = (arrays){0};
    if (!data) return LEAT_OK;
    size_t rest = bytes - head_bytes;
    if (bytes < head_bytes || rest % (2 * word) != 0 || rest / (2 * word) > INT32_MAX / 2 ||
        !memchr(data, 0, head_bytes))
        return leati_fail(err, LEAT_EFORMAT,
                          "the history in the checkpoint is damaged: '%s' has %zu bytes, expected %zu for a "
                          "name and a multiple of %d",
                          key, bytes, head_bytes, 2 * word);
    *out = (arrays){data, data + head_bytes, data + head_bytes + rest / 2, (int)(rest / (2 * word))};
    return LEAT_OK;
}

static leat_status require_arrays(const leat_state *state, const char *key, arrays *out, leat_error *err) {
    LEATI_TRY(find_arrays(state, key, word, out, err));
    if (out->head) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTFOUND, "the history in the checkpoint has no value '%s'", key);
}

static int64_t word_at(const char *array, int index) {
    int64_t value;
    memcpy(&value, array + (size_t)index * word, word);
    return value;
}

static double real_at(const char *array, int index) {
    double value;
    memcpy(&value, array + (size_t)index * word, word);
    return value;
}

static leat_status load_list(leati_series_list *list, const leat_state *state, const char *prefix,
                             leat_error *err) {
    for (int i = 0; i < LEAT_MAX_LOGS; ++i) {
        char key[name_bytes];
        arrays found;
        snprintf(key, sizeof key, "%s.%d", prefix, i);
        LEATI_TRY(find_arrays(state, key, LEAT_LOG_NAME_BYTES, &found, err));
        if (!found.head) break;
        leati_series *s = leati_series_of(list, found.head);
        for (int k = 0; s && k < found.count; ++k)
            LEATI_TRY(leati_series_append(s, word_at(found.first, k), real_at(found.second, k), err));
    }
    return LEAT_OK;
}

static leat_status load_epochs(leat_history *history, const leat_state *state, leat_error *err) {
    arrays found;
    LEATI_TRY(require_arrays(state, "epochs", &found, err));
    for (int i = 0; i < found.count; ++i)
        LEATI_TRY(
            leati_epochs_append(&history->epochs, word_at(found.first, i), word_at(found.second, i), err));
    return load_list(&history->series, state, "series", err);
}

static leat_status load_validations(leati_validations *validations, const leat_state *state,
                                    leat_error *err) {
    arrays found;
    LEATI_TRY(require_arrays(state, "validations", &found, err));
    for (int i = 0; i < found.count; ++i)
        LEATI_TRY(
            leati_validations_append(validations, word_at(found.first, i), word_at(found.second, i), err));
    LEATI_TRY(load_list(&validations->series, state, "validation_series", err));
    for (int i = 0; i < validations->series.count; ++i) {
        const leati_series *s = &validations->series.items[i];
        for (int k = 0; k < s->count; ++k)
            if (s->positions[k] < 0 || s->positions[k] >= validations->count)
                return leati_fail(
                    err, LEAT_EFORMAT,
                    "the history in the checkpoint is damaged: it has %d validations and a result of "
                    "validation %" PRId64,
                    validations->count, s->positions[k]);
    }
    return LEAT_OK;
}

static leat_status load_timeline(leati_record *record, const leat_state *state, leat_error *err) {
    size_t bytes = 0;
    int64_t steps_per_point = 0;
    const void *points = leat_state_find(state, "points", &bytes);
    LEATI_TRY(leat_state_get(state, "steps_per_point", &steps_per_point, word, err));
    if (bytes % sizeof *record->points != 0 || bytes > sizeof record->points ||
        (bytes > 0 && steps_per_point < 1))
        return leati_fail(err, LEAT_EFORMAT,
                          "the history in the checkpoint is damaged: 'points' has %zu bytes", bytes);
    if (points) memcpy(record->points, points, bytes);
    record->point_count = (int32_t)(bytes / sizeof *record->points);
    record->steps_per_point = steps_per_point;
    for (int i = 0; i < record->point_count; ++i)
        if (record->points[i].steps < 1)
            return leati_fail(
                err, LEAT_EFORMAT,
                "the history in the checkpoint is damaged: point %d of the timeline has %" PRId64 " steps", i,
                record->points[i].steps);
    return LEAT_OK;
}

/* Returns a sum over the earlier fits; 0 in a checkpoint of a leat that did not have it. */
static int64_t find_sum(const leat_state *state, const char *key) {
    int64_t count = 0;
    size_t bytes = 0;
    const void *data = leat_state_find(state, key, &bytes);
    if (data && bytes == sizeof count) memcpy(&count, data, sizeof count);
    return count;
}

leat_status leati_history_load(leat_history *history, const leat_state *state, leat_error *err) {
    leati_record_sums sums;
    LEATI_TRY(leat_state_get(state, "sums", &sums, sizeof sums, err));
    LEATI_TRY(load_epochs(history, state, err));
    LEATI_TRY(load_validations(&history->validations, state, err));
    LEATI_TRY(load_timeline(&history->record, state, err));
    history->record.earlier_left_out = find_sum(state, "samples_left_out");
    history->record.earlier_copies_ns = find_sum(state, "copy_wait_ns");
    leati_record_continue(&history->record, &sums);
    history->verdict.steps = sums.steps;
    history->verdict.wall_ns = sums.wall_ns;
    history->verdict.data_wait_ns = sums.data_wait_ns;
    history->verdict.compute_ns = sums.compute_ns;
    history->verdict.copy_wait_ns = history->record.earlier_copies_ns;
    return LEAT_OK;
}
