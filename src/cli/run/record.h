/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a run, DIR/run.json: the options with which a fit was started, so that `leat fit --resume DIR` needs no
 * other argument (docs/formats/run-folder.md). */
#ifndef LEAT_CLI_RUN_RECORD_H
#define LEAT_CLI_RUN_RECORD_H

#include <jansson.h>

#include "cli/options/table.h"

/* A record that was read. */
typedef struct cli_record {
    json_t *json;            /* the texts of the other members */
    char **words;            /* the words of the command line, to which `arguments` points; ends with NULL */
    cli_arguments arguments; /* as given when the run was started */
    const char *directory;   /* the working directory in which it was started */
    const char *start;       /* name in the run's folder of the copy of the model that the run began with */
} cli_record;

/* Writes folder/run.json; `before` is the record that it replaces, NULL: none.  start: the name of the copy of the
 * model.  Returns an exit code after a message. */
int cli_record_write(const char *folder, const cli_arguments *arguments, const char *start,
                     const cli_record *before);

/* Reads folder/run.json.  Returns an exit code after a message. */
int cli_record_read(cli_record *out, const char *folder);
void cli_record_free(cli_record *record);

/* Checks that the files of the data are those that the record describes.  Returns an exit code after a message. */
int cli_record_check_data(const cli_record *record);

/* Adds the options that were given beside --resume to those of the record.  Returns CLI_USAGE after a message if one of
 * them would change the result. */
int cli_record_merge(const cli_record *record, const cli_arguments *given, cli_arguments *out);

#endif
