/* SPDX-License-Identifier: Apache-2.0 */
/* Watching one value of the logs for the better. */
#ifndef LEATI_TRAIN_CALLBACKS_MONITOR_H
#define LEATI_TRAIN_CALLBACKS_MONITOR_H

#include "leat/callback.h"

typedef struct leati_monitor {
    char name[LEAT_LOG_NAME_BYTES];
    bool maximum; /* greater is better */
    double min_delta;
    double best;
} leati_monitor;

/* Errors: LEAT_EINVAL an empty or overlong name. */
leat_status leati_monitor_init(leati_monitor *monitor, const char *name, leat_monitor_mode mode,
                               double min_delta, leat_error *err);
void leati_monitor_reset(leati_monitor *monitor); /* forgets the best */
bool leati_monitor_better(const leati_monitor *monitor, double value);
/* The monitored value of these logs.  Where it is missing, says so with the names that are there (once per epoch, as
 * Keras warns) and returns false; an epoch without validation is not warned about when val_* is declared. */
bool leati_monitor_get(const leati_monitor *monitor, leat_training *training, const char *callback,
                       const leat_logs *logs, double *value);

#endif
