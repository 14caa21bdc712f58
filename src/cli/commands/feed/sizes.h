/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of the sizes that pictures have before they are resized. */
#ifndef LEAT_CLI_COMMANDS_FEED_SIZES_H
#define LEAT_CLI_COMMANDS_FEED_SIZES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The smallest, the median and the largest of the heights or widths. */
typedef struct cli_range {
    int64_t least, median, most;
} cli_range;

typedef struct cli_sizes {
    int64_t count; /* pictures that were decoded; 0: nothing else is set */
    cli_range height, width;
    int64_t common_height, common_width, common_count; /* the most frequent size, the smaller one of two */
} cli_sizes;

/* Computes the statistics of sizes, which are sorted in place.
 * @param sizes  (samples, 2) Height and width of each picture; zeros: not decoded.  NULL: no statistics. */
cli_sizes cli_sizes_of(int64_t *sizes, int64_t samples);

/* Returns an object, or null without pictures. */
json_t *cli_sizes_json(const cli_sizes *sizes);
void cli_sizes_print(const cli_sizes *sizes);

#endif
