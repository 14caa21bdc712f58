/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor watches one value of the logs, and says if the value has improved.  Room: train. */
#ifndef LEATI_TRAIN_CALLBACKS_MONITOR_H
#define LEATI_TRAIN_CALLBACKS_MONITOR_H

#include "checkpoint/state.h"
#include "leat/callback.h"

typedef struct leati_monitor {
    char name[LEAT_LOG_NAME_BYTES];
    bool maximum; /* true if greater values are better */
    double min_delta;
    double best;
} leati_monitor;

/* Errors: LEAT_EINVAL an empty or overlong name. */
leat_status leati_monitor_init(leati_monitor *monitor, const char *name, leat_monitor_mode mode,
                               double min_delta, leat_error *err);
void leati_monitor_reset(leati_monitor *monitor); /* clears the best value */
bool leati_monitor_better(const leati_monitor *monitor, double value);
/* Gets the monitored value from the logs.  If the logs lack the value, logs a warning with the names that the logs
 * have (once per epoch, like Keras) and returns false.  There is no warning if training declares the name: val_*
 * is missing in an epoch without validation. */
bool leati_monitor_get(const leati_monitor *monitor, leat_training *training, const char *callback,
                       const leat_logs *logs, double *value);

/* Save and load the best value.  Errors: those of leat_state_put and leat_state_get. */
leat_status leati_monitor_save(const leati_monitor *monitor, leat_state *state, leat_error *err);
leat_status leati_monitor_load(leati_monitor *monitor, const leat_state *state, leat_error *err);

#endif
