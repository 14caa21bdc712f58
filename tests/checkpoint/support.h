/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for the tests of checkpoints. */
#ifndef LEAT_TESTS_CHECKPOINT_SUPPORT_H
#define LEAT_TESTS_CHECKPOINT_SUPPORT_H

#include "checkpoint/folder.h"

extern char folder[];

void expect_ok(leat_status status, const leat_error *err);

/* Removes all files in the folder. */
void empty_folder(void);

/* Writes a file with this name and text into the folder. */
void write_text(const char *name, const char *text);

/* Fills the snapshot with the state of a fit after `steps` steps. */
void fill(leati_snapshot *snapshot, int64_t steps);

/* Writes the checkpoint after `steps` steps. */
void write_checkpoint(int64_t steps);

/* Checks that the folder has exactly the checkpoints after these numbers of steps. */
void expect_steps(const int64_t *steps, size_t count);

int make_folder(void **state);
int remove_folder(void **state);

#endif
