/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of --tensorboard, --remote-monitor and --open-metrics.  Room: cli. */
#include "cli/run/monitors.h"

#include "cli/options/tensorboard_options.h"

static leat_status add_remote_monitor(const char *root, leat_callback *callback, leat_error *err) {
    leat_remote_monitor_options options = leat_remote_monitor_options_default();
    options.root = root;
    return leat_remote_monitor_create(callback, sizeof *callback, &options, err);
}

static leat_status add_open_metrics(const char *path, leat_callback *callback, leat_error *err) {
    leat_open_metrics_options options = leat_open_metrics_options_default();
    options.path = path;
    return leat_open_metrics_create(callback, sizeof *callback, &options, err);
}

leat_status cli_add_monitors(const cli_arguments *arguments, leat_callback *callbacks, int *count,
                             leat_error *err) {
    const char *root = arguments->text[CLI_REMOTE_MONITOR], *path = arguments->text[CLI_OPEN_METRICS];
    leat_tensorboard_options tensorboard;
    leat_status status = LEAT_OK;
    if (cli_tensorboard_options(arguments, &tensorboard) == CLI_SUCCESS && tensorboard.log_dir)
        status = leat_tensorboard_create(&callbacks[(*count)++], sizeof *callbacks, &tensorboard, err);
    if (root && status == LEAT_OK) status = add_remote_monitor(root, &callbacks[(*count)++], err);
    if (path && status == LEAT_OK) status = add_open_metrics(path, &callbacks[(*count)++], err);
    return status;
}
