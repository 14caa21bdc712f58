/* SPDX-License-Identifier: Apache-2.0 */
/* keras.optimizers.schedules: learning rates that are functions of the optimizer's number of steps. */
#ifndef LEATI_NN_OPTIMIZERS_SCHEDULES_SCHEDULE_H
#define LEATI_NN_OPTIMIZERS_SCHEDULES_SCHEDULE_H

#include <stdint.h>

#include <jansson.h>

#include "leat/error.h"

typedef struct leati_schedule leati_schedule;

/* Returns a class name of keras.optimizers.schedules: index from 0; NULL at the end. */
const char *leati_schedule_name_at(int index);

/* Creates the schedule of a class from its configuration, a JSON object.  Errors: LEAT_ENOTFOUND the name; LEAT_EINVAL
 * an argument; LEAT_ENOTSUP an unknown argument; LEAT_ENOMEM. */
leat_status leati_schedule_create(leati_schedule **out, const char *name, const json_t *config,
                                  leat_error *err);
/* Like leati_schedule_create(), from {"class_name": ..., "config": ...}. */
leat_status leati_schedule_read(leati_schedule **out, const json_t *value, leat_error *err);
/* Writes {"class_name": ..., "config": ...} (new reference). */
leat_status leati_schedule_write(const leati_schedule *schedule, json_t **out, leat_error *err);
void leati_schedule_destroy(leati_schedule **schedule);

/* Returns the learning rate of step number `step`, from 0; not finite where the formula is not. */
double leati_schedule_rate(const leati_schedule *schedule, int64_t step);
const char *leati_schedule_name(const leati_schedule *schedule);

#endif
