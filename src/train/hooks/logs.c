/* SPDX-License-Identifier: Apache-2.0 */
/* leat_logs: a list of named numbers.  Room: train. */
#include "leat/callback.h"

#include <stdio.h>
#include <string.h>

bool leat_logs_get(const leat_logs *logs, const char *name, double *value) {
    if (!logs || !name || !value) return false;
    for (int i = 0; i < logs->count; ++i)
        if (strcmp(logs->items[i].name, name) == 0) {
            *value = logs->items[i].value;
            return true;
        }
    return false;
}

void leat_logs_set(leat_logs *logs, const char *name, double value) {
    if (!logs || !name) return;
    for (int i = 0; i < logs->count; ++i)
        if (strcmp(logs->items[i].name, name) == 0) {
            logs->items[i].value = value;
            return;
        }
    if (logs->count == LEAT_MAX_LOGS) return;
    leat_log *item = &logs->items[logs->count++];
    snprintf(item->name, sizeof item->name, "%s", name);
    item->value = value;
}
