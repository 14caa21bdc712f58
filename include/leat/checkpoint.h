/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a fit writes its whole state to files while it runs, and a later fit continues from the newest of
 * them with the same bytes as if it had never been interrupted.  docs/checkpoints.md has the guarantees;
 * docs/formats/checkpoint.md has the format of the files. */
#ifndef LEAT_CHECKPOINT_H
#define LEAT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The options of a fit's checkpoints (leat_fit_options.checkpoints).  A checkpoint is due when one of every_steps,
 *  every_ms and every_epochs says so, after an epoch in which ModelCheckpoint has replaced the best model
 *  (save_best_only), and always when the fit ends or is stopped.  A thread of its own writes it, from a copy that
 *  the fit makes between two steps; if the previous one is still being written, the next one waits, and the fit
 *  goes on. */
typedef struct leat_checkpoint_options {
    size_t size;          /* sizeof the struct, set by leat_checkpoint_options_init */
    const char *folder;   /* required: the folder of the files, which is created if it does not exist */
    int64_t every_steps;  /* number of training steps between checkpoints; 0 (default): not by steps */
    int64_t every_ms;     /* milliseconds between checkpoints; 0 (default): not by time */
    int64_t every_epochs; /* number of epochs between checkpoints; 0: not by epochs; default 1 */
    /* Continue from the newest checkpoint in the folder that is not damaged; if there is no checkpoint, begin.
     * false (default): a folder that has checkpoints is an error. */
    bool resume;
    int keep; /* number of checkpoints to keep, at least 1; default 2 */
} leat_checkpoint_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_checkpoint_options_init(leat_checkpoint_options *options, size_t size);
/** Returns the default options. */
static inline leat_checkpoint_options leat_checkpoint_options_default(void) {
    leat_checkpoint_options options;
    leat_checkpoint_options_init(&options, sizeof options);
    return options;
}

/** What a checkpoint says about its fit.  Later versions may add members at the end. */
typedef struct leat_checkpoint_info {
    int64_t epoch;   /* index of the epoch in which the fit continues, from 0 */
    int64_t step;    /* number of steps of this epoch that were done */
    int64_t steps;   /* number of steps of the fit that were done, in all epochs */
    bool ended;      /* the fit has ended: by its last epoch or by a callback */
    int damaged;     /* number of newer files that were skipped because they are damaged */
    char path[1024]; /* path of the file; "" if the path is longer */
} leat_checkpoint_info;

/** Finds the newest checkpoint in a folder that is not damaged.
 *  @param[out] out  Filled up to `size` bytes; zeroed on failure.
 *  @param size  sizeof *out.
 *  Errors: LEAT_ENOTFOUND there is no folder, or no checkpoint in it; LEAT_EFORMAT all checkpoints are damaged;
 *  LEAT_EIO; LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_checkpoint_find(const char *folder, leat_checkpoint_info *out,
                                                       size_t size, leat_error *err);

/** The state of one callback in a checkpoint: named values.  Opaque; valid during the call of save_state or
 *  load_state.  Threads: externally synchronised. */
typedef struct leat_state leat_state;

/** Adds a value, `bytes` bytes that are copied.
 *  @param name  A name that this callback has not added yet, without '/'.
 *  Errors: LEAT_EINVAL the name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_state_put(leat_state *state, const char *name, const void *data,
                                                 size_t bytes, leat_error *err);

/** Copies a value of exactly `bytes` bytes to *data.
 *  Errors: LEAT_ENOTFOUND there is no such value; LEAT_EFORMAT it has another size. */
LEAT_API LEAT_CHECKED leat_status leat_state_get(const leat_state *state, const char *name, void *data,
                                                 size_t bytes, leat_error *err);

/** Returns a view of a value, and the number of its bytes in *bytes; NULL, and 0 in *bytes, if there is no such
 *  value.  The memory is valid during the call of load_state. */
LEAT_API const void *leat_state_find(const leat_state *state, const char *name, size_t *bytes);

/** Adds the present size of a file that the callback appends to, 0 if there is no file.  The checkpoint becomes
 *  valid only after these bytes of the file are on the disk.
 *  Errors: LEAT_EINVAL the name; LEAT_EIO the file; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_state_put_file(leat_state *state, const char *name, const char *path,
                                                      leat_error *err);

/** Shortens a file to the size that it had at leat_state_put_file, so that the callback appends what follows.  A
 *  FIFO or a device is left as it is.
 *  Errors: LEAT_ENOTFOUND there is no such value, or the file is missing; LEAT_EIO the file is shorter, or cannot
 *  be written. */
LEAT_API LEAT_CHECKED leat_status leat_state_restore_file(const leat_state *state, const char *name,
                                                          const char *path, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
