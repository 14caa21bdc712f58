/* SPDX-License-Identifier: Apache-2.0 */
/* A check of options that are lists.  Room: train. */
#include "train/step/check.h"

#include "base/error.h"

leat_status leati_check_list(const void *list, int count, const char *name, leat_error *err) {
    if (count < 0)
        return leati_fail(err, LEAT_EINVAL, "%s_count: expected at least 0, received %d", name, count);
    if (count > 0 && !list)
        return leati_fail(err, LEAT_EINVAL, "%s_count: expected 0 for a list that is NULL, received %d", name,
                          count);
    return LEAT_OK;
}
