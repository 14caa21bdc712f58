/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a fit: one series per name, one value per epoch that had it. */
#ifndef LEATI_TRAIN_HISTORY_H
#define LEATI_TRAIN_HISTORY_H

#include "leat/train.h"

leat_status leati_history_create(leat_history **out, leat_error *err);
leat_status leati_history_add(leat_history *history, int64_t epoch, const leat_logs *logs, leat_error *err);
void leati_history_set_verdict(leat_history *history, const leat_verdict *verdict);
/* The callback that records on_epoch_end; borrows history. */
leat_callback leati_history_callback(leat_history *history);

#endif
