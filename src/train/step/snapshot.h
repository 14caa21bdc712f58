/* SPDX-License-Identifier: Apache-2.0 */
/* Lets steps run on made-up data, to measure them, without changing the model.  Room: train. */
#ifndef LEATI_TRAIN_STEP_SNAPSHOT_H
#define LEATI_TRAIN_STEP_SNAPSHOT_H

#include "nn/network/network.h"

/* A copy of the memory that a run changes: weights and optimizer slots in a training step, and the states of
 * stateful layers. */
typedef struct leati_step_snapshot {
    void *copies[LEATI_SLAB_SCALARS];
    size_t bytes[LEATI_SLAB_SCALARS];
    int64_t iterations;
    leati_loss_scale scale; /* of a training step */
} leati_step_snapshot;

/* trains: the runs are training steps.  Errors: LEAT_ENOMEM. */
leat_status leati_step_snapshot_take(leati_step_snapshot *k, const leat_model *model, bool trains,
                                     leat_error *err);
void leati_step_snapshot_restore(const leati_step_snapshot *k, leat_model *model);
/* Accepts a zeroed snapshot. */
void leati_step_snapshot_fini(leati_step_snapshot *k);

/* Sorts `count` > 0 times and returns the median. */
int64_t leati_step_median(int64_t *times, int count);

#endif
