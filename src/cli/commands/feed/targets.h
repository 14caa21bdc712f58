/* SPDX-License-Identifier: Apache-2.0 */
/* What the first targets of samples are, for `leat feed check`: classes, or masks of segmentation.  Room: cli. */
#ifndef LEAT_CLI_COMMANDS_FEED_TARGETS_H
#define LEAT_CLI_COMMANDS_FEED_TARGETS_H

#include <jansson.h>

#include "cli/commands/feed/sample.h"

enum { CLI_MAX_CLASSES = 10000 };

typedef struct cli_targets {
    int64_t samples;
    int64_t classes[CLI_MAX_CLASSES]; /* the samples that have one class alone */
    int64_t ones[CLI_MAX_CLASSES]; /* the samples that have a one in this place of a row of zeros and ones */
    int64_t unclassed, bit_rows;   /* samples without one class; those with a row of zeros and ones */
    int64_t width;                 /* of these rows */
    int64_t pixels[256];           /* the pixels of masks that have each value */
    /* Set by cli_targets_end. */
    int64_t class_count;
    bool
        may_have_several; /* classes, as labels=multihot makes them: `classes` are then the samples that have each */
} cli_targets;

/* Counts the target of the sample that was read last. */
void cli_targets_note(cli_targets *targets, const cli_samples *samples);

/* Adds what another thread has counted. */
void cli_targets_add(cli_targets *targets, const cli_targets *more);

/* Decides which classes there are, when all samples were read. */
void cli_targets_end(cli_targets *targets, const cli_samples *samples);

/* Returns an array of objects with label, name and samples; and one of objects with value and pixels. */
json_t *cli_targets_classes(const cli_targets *targets, const cli_samples *samples);
json_t *cli_targets_masks(const cli_targets *targets);
void cli_targets_print(const cli_targets *targets, const cli_samples *samples);

#endif
