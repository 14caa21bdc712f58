/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `leat fit` for TensorBoard.  Room: cli. */
#include "cli/options/tensorboard_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/parse.h"
#include "cli/text/say.h"

static int read_update_freq(const char *text, int64_t *out) {
    char *end = NULL;
    if (strcmp(text, "epoch") == 0) return CLI_SUCCESS;
    errno = 0;
    *out = strcmp(text, "batch") == 0 ? 1 : *text >= '1' && *text <= '9' ? strtoll(text, &end, 10) : 0;
    if (*out > 0 && errno == 0 && (!end || !*end)) return CLI_SUCCESS;
    cli_say("leat fit: --update-freq '%s': expected epoch, batch, or a number of batches of at least 1\n"
            "try: leat fit --help\n",
            text);
    return CLI_USAGE;
}

int cli_tensorboard_options(const cli_arguments *arguments, leat_tensorboard_options *out) {
    const char *update_freq = arguments->text[CLI_UPDATE_FREQ];
    *out = leat_tensorboard_options_default();
    out->log_dir = arguments->text[CLI_TENSORBOARD];
    out->histogram_freq = cli_number(arguments, CLI_HISTOGRAM_FREQ, 0);
    if (!out->log_dir && update_freq) return cli_needs("fit", "--update-freq", "--tensorboard");
    if (!out->log_dir && arguments->text[CLI_HISTOGRAM_FREQ])
        return cli_needs("fit", "--histogram-freq", "--tensorboard");
    return update_freq ? read_update_freq(update_freq, &out->update_freq) : CLI_SUCCESS;
}
