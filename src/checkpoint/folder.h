/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a fit's checkpoints: one file for each, "step-000000000500.leat", named by the number of steps that
 * were done. */
#ifndef LEATI_CHECKPOINT_FOLDER_H
#define LEATI_CHECKPOINT_FOLDER_H

#include "checkpoint/image.h"
#include "leat/checkpoint.h"

/* Copies the caller's options into a struct of this version and checks them.  Errors: LEAT_EINVAL. */
leat_status leati_checkpoint_options_read(const leat_checkpoint_options *in, leat_checkpoint_options *out,
                                          leat_error *err);

/* The numbers of steps of all checkpoints in a folder, in ascending order.  For leati_free. */
typedef struct leati_checkpoint_list {
    int64_t *steps;
    size_t count;
} leati_checkpoint_list;

/* Lists a folder; a folder that does not exist has no checkpoints.  Errors: LEAT_EIO, LEAT_ENOMEM. */
leat_status leati_checkpoint_list_read(leati_checkpoint_list *out, const char *folder, leat_error *err);

/* Gives the path of a checkpoint, for leati_free.  Errors: LEAT_ENOMEM. */
leat_status leati_checkpoint_path(char **out, const char *folder, int64_t steps, leat_error *err);

/* Creates the folder, whose parent must exist, unless it exists already.  Errors: LEAT_EIO. */
leat_status leati_checkpoint_folder_make(const char *folder, leat_error *err);

/* Opens the newest checkpoint that is not damaged.
 * @param[out] damaged  The number of newer files that are damaged; a warning for each goes to the log.
 * @param[out] path  For leati_free; NULL on failure.
 * Errors: LEAT_ENOTFOUND there is none; LEAT_EFORMAT all are damaged; LEAT_EIO; LEAT_ENOMEM. */
leat_status leati_checkpoint_open_newest(leati_image *out, const char *folder, char **path, int *damaged,
                                         leat_error *err);

/* Removes the checkpoints after `steps` steps. */
leat_status leati_checkpoint_remove_after(const char *folder, int64_t steps, leat_error *err);
/* Removes the oldest checkpoints until `keep` are left. */
leat_status leati_checkpoint_prune(const char *folder, int keep, leat_error *err);

#endif
