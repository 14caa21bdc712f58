/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints of a fit: when one is due, and its writing.  fit_state.h has what it contains.  Room: train. */
#ifndef LEATI_TRAIN_LOOP_FIT_CHECKPOINT_H
#define LEATI_TRAIN_LOOP_FIT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/image.h"
#include "checkpoint/writer.h"
#include "leat/checkpoint.h"
#include "leat/file.h"

typedef struct leati_fit_loop leati_fit_loop;

/* Where a fit is, between two of its steps. */
typedef struct leati_fit_position {
    int64_t epoch;       /* index of the current epoch */
    int64_t step;        /* number of steps of this epoch that were done */
    int64_t steps;       /* number of steps that were done in all epochs */
    bool begun;          /* on_epoch_begin was called for this epoch */
    int64_t epoch_steps; /* number of steps that this epoch has, if it has begun */
    bool suspended;      /* a request to stop ended the fit before its last step */
    bool ended;          /* no further step will be done: by the last epoch, or by a callback */
    bool validation_due; /* a validation inside the epoch is due before the next step */
} leati_fit_position;

typedef struct leati_fit_checkpoints {
    leat_checkpoint_options options; /* folder NULL: the fit has no checkpoints */
    leat_lock *lock;                 /* of the folder; NULL: none, or the file system has no locks */
    leati_writer *writer;
    int64_t started_ns; /* time when it was begun, or when the fit began */
    bool due;           /* a checkpoint is due, but the one before is still being written */
    /* The checkpoint that the fit continues from, until everything was loaded; image.map.data NULL: none. */
    leati_image image;
    char *path;
} leati_fit_checkpoints;

/* Reads the options, locks and cleans the folder, and opens the checkpoint to continue from.  Does nothing without the
 * option checkpoints.  Errors: LEAT_EINVAL the folder has checkpoints, and resume is not set; LEAT_EBUSY another fit
 * writes to the folder; those of the folder. */
leat_status leati_fit_checkpoints_open(leati_fit_loop *loop, leat_error *err);
void leati_fit_checkpoints_close(leati_fit_loop *loop);

/* Begins a checkpoint if one is due after a step, or at the end of an epoch. */
leat_status leati_fit_checkpoint_step(leati_fit_loop *loop, leat_error *err);
leat_status leati_fit_checkpoint_epoch(leati_fit_loop *loop, leat_error *err);
/* Writes the last checkpoint of a fit that has ended or is being suspended, and waits until it is written.  If the fit
 * has ended, a failure of writing is only a warning in the log. */
leat_status leati_fit_checkpoint_last(leati_fit_loop *loop, leat_error *err);

#endif
