/* SPDX-License-Identifier: Apache-2.0 */
/* A check of options that are lists.  Room: train. */
#ifndef LEATI_TRAIN_STEP_CHECK_H
#define LEATI_TRAIN_STEP_CHECK_H

#include "leat/error.h"

/* Checks an option that is a list with its length in `name`_count.  Errors: LEAT_EINVAL if count is negative, or
 * if count is positive and list is NULL. */
leat_status leati_check_list(const void *list, int count, const char *name, leat_error *err);

#endif
