/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a fit: for each name a series with one value per epoch that logged the name, the verdict, and the
 * measurements.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_HISTORY_H
#define LEATI_TRAIN_HISTORY_HISTORY_H

#include "leat/train.h"
#include "train/history/record.h"

/* The values of one name. */
typedef struct leati_series {
    char name[LEAT_LOG_NAME_BYTES];
    int count, capacity;
    double *values;
} leati_series;

struct leat_history {
    int count;
    leati_series items[LEAT_MAX_LOGS];
    leati_series epochs;
    leat_verdict verdict;
    leati_record record;
};

leat_status leati_history_create(leat_history **out, leat_error *err);
leat_status leati_history_add(leat_history *history, int64_t epoch, const leat_logs *logs, leat_error *err);
/* Returns a callback whose on_epoch_end adds the logs to history, which it borrows. */
leat_callback leati_history_callback(leat_history *history);

leat_status leati_history_save(const leat_history *history, leat_state *state, leat_error *err);
leat_status leati_history_load(leat_history *history, const leat_state *state, leat_error *err);
leat_status leati_history_add_validation(leat_history *history, int64_t epoch, int64_t step,
                                         const leat_logs *logs, leat_error *err);
#endif
