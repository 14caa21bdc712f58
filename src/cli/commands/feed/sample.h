/* SPDX-License-Identifier: Apache-2.0 */
/* Single samples of a source, for the commands that look at data. */
#ifndef LEAT_CLI_COMMANDS_FEED_SAMPLE_H
#define LEAT_CLI_COMMANDS_FEED_SAMPLE_H

#include <jansson.h>
#include <stdint.h>

#include "cli/run/session.h"

/* A source and memory for one sample of it. */
typedef struct cli_samples {
    leat_sequence *data;
    leat_batch batch;
    void *memory[LEAT_BATCH_MAX_TENSORS];
    json_t *files; /* what leat_source_files says, for the names of classes; NULL: nothing */
} cli_samples;

/* Opens the SPEC as session->data, in batches of one sample.  Prints a message on failure and returns an exit code; a
 * source that has neither access by sample nor batches of one is refused.  cli_samples_close may be called
 * after a failure. */
int cli_samples_open(cli_samples *out, cli_session *session, const char *spec);
void cli_samples_close(cli_samples *samples);

/* Gives another thread access to the source that was opened: memory for a sample of its own.  `from` stays open until
 * cli_samples_close was called for *out.  Prints a message on failure and returns an exit code. */
int cli_samples_share(cli_samples *out, const cli_samples *from, const char *command);

int64_t cli_samples_count(const cli_samples *samples);

/* Reads a sample into samples->batch.
 * @param is_plain  As it is without augmentation, if it has one. */
leat_status cli_samples_read(cli_samples *samples, int64_t number, bool is_plain, leat_error *err);

/* Returns where a sample comes from, such as the path of its file, for leat_string_free; NULL: it has no name. */
char *cli_samples_name(const cli_samples *samples, int64_t number);

/* Returns the class that the first target of the current sample names: an integer, or the place of the 1 in a one-hot
 * row; -1: none. */
int64_t cli_samples_class(const cli_samples *samples);

/* Returns the name of a class; NULL: it has none. */
const char *cli_samples_class_name(const cli_samples *samples, int64_t number);

#endif
