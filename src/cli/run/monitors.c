/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of --tensorboard, --remote-monitor and --open-metrics.  Room: cli. */
#include "cli/run/monitors.h"

#include <inttypes.h>
#include <stdio.h>

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

/* Creates TensorBoard.  The event files of a run with a folder are named by its path, so that a run which is
 * overwritten, or which was killed before its first checkpoint and begins anew, replaces its old files. */
static leat_status add_tensorboard(leat_tensorboard_options *options, const char *folder,
                                   leat_callback *callback, leat_error *err) {
    char run_id[32];
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = folder; c && *c; ++c) hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    snprintf(run_id, sizeof run_id, "%016" PRIx64, hash);
    if (folder) options->run_id = run_id;
    return leat_tensorboard_create(callback, sizeof *callback, options, err);
}

leat_status cli_add_monitors(const cli_arguments *arguments, const char *folder, leat_callback *callbacks,
                             int *count, leat_error *err) {
    const char *root = arguments->text[CLI_REMOTE_MONITOR], *path = arguments->text[CLI_OPEN_METRICS];
    leat_tensorboard_options tensorboard;
    leat_status status = LEAT_OK;
    if (cli_tensorboard_options(arguments, &tensorboard) == CLI_SUCCESS && tensorboard.log_dir)
        status = add_tensorboard(&tensorboard, folder, &callbacks[(*count)++], err);
    if (root && status == LEAT_OK) status = add_remote_monitor(root, &callbacks[(*count)++], err);
    if (path && status == LEAT_OK) status = add_open_metrics(path, &callbacks[(*count)++], err);
    return status;
}
