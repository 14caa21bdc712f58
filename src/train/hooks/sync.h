/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of a run of several ranks are called on rank 0; the other ranks learn what they have done.  Room: train. */
#ifndef LEATI_TRAIN_HOOKS_SYNC_H
#define LEATI_TRAIN_HOOKS_SYNC_H

#include "dist/dist.h"
#include "nn/program/program.h"
#include "train/hooks/training.h"

/* With several ranks: tells all ranks, after a hook, what the hooks of rank 0 have done: stopping, the learning rate
 * and changed weights; `status` is that of the hooks. */
leat_status leati_training_sync(leat_training *training, leat_status status, leat_error *err);

/* The same after a hook of a batch, when only rank 0 has something to tell, by one message of rank 0. */
leat_status leati_training_follow(leat_training *training, leat_status status, leat_error *err);

/* Replaces the first `bytes` bytes of a slab of the model by those of rank 0.  Errors: those of the communicator. */
leat_status leati_share_slab(leat_dist *dist, leat_model *model, leati_slab slab, size_t bytes,
                             leat_error *err);

#endif
