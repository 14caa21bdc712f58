/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a fit: one series per name, one value per epoch that had it; and how it went. */
#ifndef LEATI_TRAIN_HISTORY_HISTORY_H
#define LEATI_TRAIN_HISTORY_HISTORY_H

#include "leat/train.h"
#include "train/history/record.h"

/* Values of one name. */
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
/* The callback that records on_epoch_end; borrows history. */
leat_callback leati_history_callback(leat_history *history);

#endif
