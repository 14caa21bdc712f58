/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a run, DIR of `leat fit --out DIR` (docs/formats/run-folder.md): its lock, and what may stand in it. */
#ifndef LEAT_CLI_RUN_FOLDER_H
#define LEAT_CLI_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "leat/file.h"

enum { CLI_PATH_BYTES = 4096 };

typedef struct cli_folder {
    const char *name;          /* the path as the user gave it, borrowed; for messages */
    char path[CLI_PATH_BYTES]; /* absolute; "" if the fit has no folder */
    leat_lock *lock;
    bool is_new; /* this call has created the folder */
} cli_folder;

/* Writes the path of a file in the folder to `out`. */
void cli_folder_path(char out[CLI_PATH_BYTES], const cli_folder *folder, const char *name);

/* Creates the folder and its parents unless it exists, locks it, and removes the unfinished files of a run that was
 * killed.  Returns an exit code after a message. */
int cli_folder_make(cli_folder *out, const char *path);
/* Like cli_folder_make(), but for a folder that exists. */
int cli_folder_open(cli_folder *out, const char *path);
/* Like cli_folder_open(), but does not lock the folder, and changes nothing: for a rank other than 0. */
int cli_folder_find(cli_folder *out, const char *path);
/* Unlocks the folder. */
void cli_folder_close(cli_folder *folder);

/* Returns the name of a file of another run in the folder; NULL: there is none. */
const char *cli_folder_find_run(const cli_folder *folder);
/* Removes all files of a run, run.json first.  Returns an exit code after a message. */
int cli_folder_remove_run(const cli_folder *folder);
/* Removes what a run that failed before its first step has left: its files, and the folder if this call has created
 * it.  Closes the folder. */
void cli_folder_abandon(cli_folder *folder);

#endif
