/* SPDX-License-Identifier: Apache-2.0 */
/* Writes checkpoints on a thread of its own, so that the fit goes on meanwhile.  Threads: one thread fills the
 * snapshot and calls these functions. */
#ifndef LEATI_CHECKPOINT_WRITER_H
#define LEATI_CHECKPOINT_WRITER_H

#include <stdbool.h>

#include "checkpoint/image.h"

typedef struct leati_writer leati_writer;

/* Starts the thread.  `folder` is copied; `keep` is the number of checkpoints to keep there.  Errors: LEAT_EIO the
 * thread cannot be created; LEAT_ENOMEM. */
leat_status leati_writer_create(leati_writer **out, const char *folder, int keep, leat_error *err);
/* Waits until the thread has written its checkpoint, and ends the thread. */
void leati_writer_destroy(leati_writer **writer);

/* Returns false while a checkpoint is being written: then the snapshot must not be changed. */
bool leati_writer_is_idle(leati_writer *writer);
/* Returns the snapshot to fill.  The writer must be idle. */
leati_snapshot *leati_writer_snapshot(leati_writer *writer);
/* Begins to write the snapshot as the checkpoint after `steps` steps. */
void leati_writer_begin(leati_writer *writer, int64_t steps);
/* Waits until the checkpoint is written. */
void leati_writer_wait(leati_writer *writer);

/* Returns the failure of the checkpoint that was written last, once; afterwards LEAT_OK.  The writer must be idle.
 * Errors: LEAT_EIO, LEAT_ENOMEM.  After a failure the checkpoints before it are still there. */
leat_status leati_writer_result(leati_writer *writer, leat_error *err);

#endif
