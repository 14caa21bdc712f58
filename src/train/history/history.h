/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a fit: for each name a series with one value per epoch that logged the name, the validations inside
 * epochs, the configuration, the verdict, and the measurements.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_HISTORY_H
#define LEATI_TRAIN_HISTORY_HISTORY_H

#include <jansson.h>

#include "leat/train.h"
#include "train/history/record.h"

/* The values of one name, each with its position: the number of the epoch or, in leati_validations, the index of the
 * validation.  Positions grow. */
typedef struct leati_series {
    char name[LEAT_LOG_NAME_BYTES];
    int count, capacity;
    int64_t *positions;
    double *values;
} leati_series;

/* Series in the order in which their names appeared. */
typedef struct leati_series_list {
    int count;
    leati_series items[LEAT_MAX_LOGS];
} leati_series_list;

/* The finished epochs: their numbers, from 0, and their numbers of steps. */
typedef struct leati_epochs {
    int count, capacity;
    int64_t *numbers, *steps;
} leati_epochs;

/* The validations inside epochs: for each the number of its epoch, and the number of training steps of the whole fit
 * that were done before it. */
typedef struct leati_validations {
    int count, capacity;
    int64_t *epochs, *steps;
    leati_series_list series;
} leati_validations;

typedef enum leati_history_state {
    LEATI_HISTORY_RUNNING,
    LEATI_HISTORY_ENDED,       /* by its last epoch, by a callback, or by the end of a generator */
    LEATI_HISTORY_INTERRUPTED, /* by a request to stop */
    LEATI_HISTORY_FAILED
} leati_history_state;

/* The position of a fit that is running. */
typedef struct leati_history_progress {
    int64_t epoch, epochs; /* index of the current epoch, and the number of the last one */
    int64_t step, steps;   /* number of finished steps of the current epoch, and of all its steps */
    leat_logs logs;        /* logs of the last step; without items before the first step of an epoch */
} leati_history_progress;

struct leat_history {
    leati_series_list series;
    leati_epochs epochs;
    leati_validations validations;
    json_t *configuration; /* NULL: none; see leati_history_configure */
    leati_history_state state;
    char state_text[LEAT_ERROR_MESSAGE_BYTES]; /* why the fit stopped or failed; "": nothing to say */
    leati_history_progress progress;
    leat_verdict verdict;
    leati_record record;
    /* Brings verdict and record up to date while the fit runs; NULL before and after that. */
    void (*measure)(void *loop);
    void *loop;
};

leat_status leati_history_create(leat_history **out, leat_error *err);
/* Stores the configuration of the fit: docs/formats/history.md describes its JSON.
 * Errors: LEAT_ENOMEM. */
leat_status leati_history_configure(leat_history *history, const leat_model *model,
                                    const leat_sequence *sequence, const leat_fit_options *options,
                                    leat_error *err);
/* Adds the logs of a finished epoch with this number of steps. */
leat_status leati_history_add(leat_history *history, int64_t epoch, int64_t steps, const leat_logs *logs,
                              leat_error *err);
/* Adds the results of a validation inside an epoch.
 * step: the number of training steps of the whole fit that were done before the validation; logs: the results, with
 * val_ in front of their names.  Errors: LEAT_ENOMEM. */
leat_status leati_history_add_validation(leat_history *history, int64_t epoch, int64_t step,
                                         const leat_logs *logs, leat_error *err);
/* Sets the state of a fit that has ended.  The text is copied. */
void leati_history_end(leat_history *history, leati_history_state state, const char *text);
/* Returns a callback that adds the logs of epochs to history, which it borrows, and keeps its progress. */
leat_callback leati_history_callback(leat_history *history);

/* Adds what a resumed fit needs to a checkpoint: epochs, series, validations, the timeline, and sums of the verdict and
 * of the feed.  Errors: those of leat_state_put. */
leat_status leati_history_save(const leat_history *history, leat_state *state, leat_error *err);
/* Replaces the history of a fit that has run no step by that of a checkpoint.  Works before and after
 * leati_record_begin.  Errors: LEAT_ENOTFOUND, LEAT_EFORMAT what leati_history_save wrote is missing or
 * damaged; LEAT_ENOMEM. */
leat_status leati_history_load(leat_history *history, const leat_state *state, leat_error *err);

/* Append to arrays of the history, for leati_history_load.  Errors: LEAT_ENOMEM. */
leat_status leati_series_append(leati_series *series, int64_t position, double value, leat_error *err);
leat_status leati_epochs_append(leati_epochs *epochs, int64_t number, int64_t steps, leat_error *err);
leat_status leati_validations_append(leati_validations *validations, int64_t epoch, int64_t step,
                                     leat_error *err);
/* Returns the series of this name, which is added if it is new; NULL if there are LEAT_MAX_LOGS others. */
leati_series *leati_series_of(leati_series_list *list, const char *name);

#endif
