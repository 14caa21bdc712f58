/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the monitored value in the logs and compares it with the best value.  Room: train. */
#include "train/callbacks/monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "train/hooks/training.h"

leat_status leati_monitor_init(leati_monitor *monitor, const char *name, leat_monitor_mode mode,
                               double min_delta, leat_error *err) {
    if (!name || !name[0] || strlen(name) >= sizeof monitor->name)
        return leati_fail(err, LEAT_EINVAL, "monitor: expected a name of 1 to %d bytes",
                          LEAT_LOG_NAME_BYTES - 1);
    if ((int)mode < LEAT_MONITOR_AUTO || (int)mode > LEAT_MONITOR_MAX)
        return leati_fail(err, LEAT_EINVAL, "mode: expected LEAT_MONITOR_AUTO, _MIN or _MAX, received %d",
                          (int)mode);
    snprintf(monitor->name, sizeof monitor->name, "%s", name);
    monitor->maximum = mode == LEAT_MONITOR_MAX || (mode == LEAT_MONITOR_AUTO && strstr(name, "acc"));
    monitor->min_delta = fabs(min_delta);
    leati_monitor_reset(monitor);
    return LEAT_OK;
}

void leati_monitor_reset(leati_monitor *monitor) {
    monitor->best = monitor->maximum ? -INFINITY : INFINITY;
}

bool leati_monitor_better(const leati_monitor *monitor, double value) {
    return monitor->maximum ? value - monitor->min_delta > monitor->best
                            : value + monitor->min_delta < monitor->best;
}

static bool declared(const leat_training_params *params, const char *name) {
    for (int i = 0; i < params->metric_count; ++i)
        if (strcmp(params->metrics[i], name) == 0) return true;
    return false;
}

bool leati_monitor_get(const leati_monitor *monitor, leat_training *training, const char *callback,
                       const leat_logs *logs, double *value) {
    if (leat_logs_get(logs, monitor->name, value)) return true;
    if (declared(leat_training_params_get(training), monitor->name)) return false;
    leati_text names = {0};
    for (int i = 0; i < logs->count; ++i) leati_text_add(&names, " %s", logs->items[i].name);
    leati_training_log(training, LEAT_LOG_WARNING, "%s: '%s' is not among the logs:%s", callback,
                       monitor->name, names.failed || !names.data ? "" : names.data);
    leati_text_fini(&names);
    return false;
}

leat_status leati_monitor_save(const leati_monitor *monitor, leat_state *state, leat_error *err) {
    return leat_state_put(state, "best", &monitor->best, sizeof monitor->best, err);
}

leat_status leati_monitor_load(leati_monitor *monitor, const leat_state *state, leat_error *err) {
    return leat_state_get(state, "best", &monitor->best, sizeof monitor->best, err);
}
