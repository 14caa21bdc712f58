/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate schedules of keras.optimizers.schedules, as callbacks that set the learning rate before each
 * step. */
#ifndef LEATI_TRAIN_CALLBACKS_SCHEDULE_H
#define LEATI_TRAIN_CALLBACKS_SCHEDULE_H

#include <jansson.h>

#include "leat/callback.h"

/* Returns a class name of keras.optimizers.schedules: index from 0; NULL at the end. */
const char *leati_schedule_name_at(int index);

/* Creates the callback of the schedule with this class name and configuration, a JSON object.  The callback has no
 * state: the learning rate is a function of the optimizer's number of steps.  Errors: LEAT_ENOTFOUND the name;
 * LEAT_EINVAL an argument; LEAT_ENOTSUP an unknown argument; LEAT_ENOMEM; those of leati_callback_begin. */
leat_status leati_schedule_create(leat_callback *out, size_t size, const char *name, const json_t *config,
                                  leat_error *err);

#endif
