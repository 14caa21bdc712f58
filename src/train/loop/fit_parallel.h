/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a fit: they compare what they train, begin with the same weights, and learn what the hooks of rank 0 do.
 * All functions do nothing, and leati_fit_agree returns `status`, in a fit of one process.  Room: train. */
#ifndef LEATI_TRAIN_LOOP_FIT_PARALLEL_H
#define LEATI_TRAIN_LOOP_FIT_PARALLEL_H

#include "leat/train.h"

struct leati_fit_loop;

/* Makes all ranks return the same failure. */
leat_status leati_fit_agree(struct leati_fit_loop *loop, leat_status status, leat_error *err);
/* Errors: LEAT_EINVAL two ranks differ in the model, the data or an option, which the message names. */
leat_status leati_fit_meet(struct leati_fit_loop *loop, leat_error *err);
/* Copies the checkpoint that rank 0 has opened, if any, to all ranks. */
leat_status leati_fit_share_checkpoint(struct leati_fit_loop *loop, leat_error *err);
/* Copies weights and optimizer state of rank 0 to all ranks. */
leat_status leati_fit_share_weights(struct leati_fit_loop *loop, leat_error *err);

/* With an optimizer that is spread over the ranks: gives rank 0 all slots.  leati_fit_collect implements the member
 * collect of leat_training; leati_fit_collect_if does it if rank 0 saves a checkpoint, which it tells the others. */
leat_status leati_fit_collect(leat_training *training, leat_error *err);
leat_status leati_fit_collect_if(struct leati_fit_loop *loop, bool saves, leat_error *err);

#endif
