/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks add up in a step: gradients, sums over the rows of gradients, and the weights that the forward pass
 * writes, such as moving averages.  Sums are made in the host's memory.  On the host that is the memory of the slabs
 * themselves; with a GPU it is pinned memory, to which the values are copied and from which the sums are copied back.
 * GPUs that form a group add up gradients and rows in their own memories (decision 0708).  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_VALUES_H
#define LEATI_TRAIN_PARALLEL_VALUES_H

#include "dist/dist.h"
#include "engine/device_group.h"
#include "train/step/trainer.h"

typedef struct leati_values {
    leat_model *model;      /* borrowed */
    leati_trainer *trainer; /* borrowed */
    leati_device *device;   /* borrowed; NULL: the host computes */
    float *gradients;       /* host memory of the sums; NULL in a group */
    float *rows;            /* NULL: no gradient is a list of rows */
    float *moving; /* the written weights, one behind the other, times the share of a part; then their sums */
    float *before; /* the written weights before the step; on the device if there is one */
    size_t rows_bytes;    /* of pinned memory */
    size_t written_bytes; /* of `moving` and `before` */
    bool in_group;        /* the devices add up gradients and rows */
    bool stamped;         /* the step has sums of the group, between time stamps 0 and 1 */
    char note[256];       /* with a device, after leati_values_join: who adds up, for people */
} leati_values;

/* Makes room for the values of a model that trains.  leati_values_fini also frees what a failure leaves.
 * Errors: LEAT_ENOMEM; LEAT_EIO the device failed. */
leat_status leati_values_init(leati_values *values, leat_model *model, leati_trainer *trainer,
                              leat_error *err);
void leati_values_fini(leati_values *values);

/* Lets the devices of all ranks form a group, if it is wanted and they can; otherwise `note` says why not.  All ranks
 * make this call.  Errors: those of the communicator. */
leat_status leati_values_join(leati_values *values, leat_dist *dist, bool wanted, leat_error *err);

/* Must be called after LEATI_SLAB_ROWS has got another size. */
leat_status leati_values_resize_rows(leati_values *values, leat_error *err);

/* Prepares a step whose first part has this plan: remembers the weights that it will write, and zeroes `moving`.
 * Returns their number. */
leat_status leati_values_begin(leati_values *values, const leati_plan *plan, size_t *written,
                               leat_error *err);
/* Gives the written weights the values that they had before the step. */
leat_status leati_values_restore(const leati_values *values, const leati_plan *plan, leat_error *err);

/* Runs the gradients of a part on the device, and copies the values to the host's memory. */
leat_status leati_values_run(const leati_values *values, const leati_compiled_step *step,
                             const void *const *pointers, uint64_t seed, leat_error *err);
/* For a rank without samples: gradients and rows become 0. */
leat_status leati_values_clear(const leati_values *values, leat_error *err);
/* With a group: adds the sums of gradients and rows to the device's queue, in front of the update. */
leat_status leati_values_sum(leati_values *values, leat_error *err);
/* After the step: returns the ns of these sums, waiting for other ranks included; 0: there were none. */
int64_t leati_values_summed_ns(leati_values *values);
/* After a failure of the step: ends the sums of the group, since not all ranks may make them. */
void leati_values_give_up(leati_values *values);

/* After a part has run: sets `to` to the written weights times the share of the part. */
void leati_values_weigh(const leati_values *values, const leati_plan *plan, float share, float *to);

/* Gives the model the sums, after which the update may run.  plan: that of leati_values_begin; `written`: the written
 * weights get their sums, too. */
leat_status leati_values_put(const leati_values *values, const leati_plan *plan, bool written,
                             leat_error *err);

#endif
