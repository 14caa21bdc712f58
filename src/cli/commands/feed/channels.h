/* SPDX-License-Identifier: Apache-2.0 */
/* The mean and the standard deviation of each channel of pictures, for `leat feed check`.  Room: cli. */
#ifndef LEAT_CLI_COMMANDS_FEED_CHANNELS_H
#define LEAT_CLI_COMMANDS_FEED_CHANNELS_H

#include <jansson.h>

#include "leat/sequence.h"

enum { CLI_MAX_CHANNELS = 4 };

typedef struct cli_channels {
    int64_t count;                                          /* 0: the first input is no picture */
    double sum[CLI_MAX_CHANNELS], square[CLI_MAX_CHANNELS]; /* of all values of a channel */
    double values;                                          /* of each channel */
} cli_channels;

/* Returns sums of nothing; with channels if the first input is pictures of bytes or float32. */
cli_channels cli_channels_of(const leat_batch_spec *spec);
/* Adds the values of a picture. */
void cli_channels_note(cli_channels *channels, const leat_tensor *picture);
/* Adds the sums of other pictures. */
void cli_channels_add(cli_channels *channels, const cli_channels *more);
/* Returns arrays with a number for each channel; they are empty without channels or pictures. */
json_t *cli_channels_means(const cli_channels *channels);
json_t *cli_channels_deviations(const cli_channels *channels);
/* Prints both for people. */
void cli_channels_print(const cli_channels *channels);

#endif
