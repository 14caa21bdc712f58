/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate schedules of nn/optimizers/schedules as callbacks that set the learning rate before each step. */
#ifndef LEATI_TRAIN_CALLBACKS_SCHEDULE_H
#define LEATI_TRAIN_CALLBACKS_SCHEDULE_H

#include <jansson.h>

#include "leat/callback.h"

/* Creates the callback of the schedule with this class name and configuration, a JSON object.  The callback has no
 * state: the learning rate is a function of the optimizer's number of steps.  Errors: those of leati_schedule_create
 * and leati_callback_begin. */
leat_status leati_schedule_callback(leat_callback *out, size_t size, const char *name, const json_t *config,
                                    leat_error *err);

#endif
