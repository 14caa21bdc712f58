/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a fit's checkpoints.  Room: cli. */
#include "cli/options/checkpoint_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/parse.h"
#include "cli/text/say.h"

/* Reads a number and a unit: "500" steps, "30s", "10m", "2h". */
static bool read_interval(const char *text, leat_checkpoint_options *out) {
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}};
    char *end = NULL;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (errno != 0 || value < 1 || value > INT32_MAX) return false;
    if (!*end) {
        out->every_steps = value;
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; ++i)
        if (*end == units[i].unit && !end[1]) {
            out->every_ms = value * units[i].ms;
            return true;
        }
    return false;
}

int cli_checkpoint_options(const cli_arguments *arguments, leat_checkpoint_options *out) {
    const char *text = arguments->text[CLI_CHECKPOINT_EVERY];
    *out = leat_checkpoint_options_default();
    out->keep = (int)cli_number(arguments, CLI_KEEP_CHECKPOINTS, out->keep);
    if (!text || strcmp(text, "epoch") == 0) return CLI_SUCCESS;
    out->every_epochs = 0;
    if (read_interval(text, out)) return CLI_SUCCESS;
    cli_say(
        "leat fit: --checkpoint-every '%s': expected a number of steps such as 500, a time such as 30s, 10m "
        "or 2h, or epoch\ntry: leat fit --help\n",
        text);
    return CLI_USAGE;
}
