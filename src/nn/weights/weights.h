/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a model.  All weights are in one block of memory, a slab; the gradients and each slot of the optimizer
 * have a slab of the same layout.  Trainable weights come first, so that an update is one operation over the first
 * trainable_bytes.  nn/network/layout.c gives each weight its place. */
#ifndef LEATI_NN_WEIGHTS_WEIGHTS_H
#define LEATI_NN_WEIGHTS_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/graph/graph.h"
#include "leat/error.h"
#include "leat/sequence.h"
#include "nn/constraints/constraint.h"
#include "nn/initializers/initializer.h"
#include "nn/regularizers/regularizer.h"

/* One weight of a layer. */
typedef struct leati_weight {
    char name[LEAT_NAME_BYTES]; /* "kernel"; the name in files is "<layer>/kernel:0" */
    leati_desc desc;
    bool trainable; /* false for a weight that is never trained, like a moving average */
    const leati_initializer *initializer; /* borrowed from the layer's configuration, or a constant */
    leati_regularizer regularizer;
    leati_constraint constraint;
    size_t offset_bytes; /* in the slab of weights */
    int32_t entry;       /* index into leati_weights.entries */
    bool placed;         /* the slab holds the value of this weight */
} leati_weight;

/* The copy of a model's slabs in the memory of a device, on which plans of the device work.  Whoever makes the copy
 * (train/step/mirror.h) sets weights->mirror to it. */
typedef struct leati_mirror {
    bool ahead[LEATI_SLAB_COUNT];  /* the device has newer values than the host */
    bool behind[LEATI_SLAB_COUNT]; /* the host has newer values than the device */
    /* Copies a slab to the host's memory.  A failure is kept: the next step reports it, and leati_weights_fetch. */
    void (*fetch)(struct leati_mirror *mirror, leati_slab slab);
    leat_status status; /* the first failure of fetch that no step has reported */
    leat_error err;
} leati_mirror;

/* The slabs of a model.  Each weight is 64-byte aligned; trainable weights come first.  Only the outermost model owns
 * slabs; the offsets of the weights of nested models point into the same slabs. */
typedef struct leati_weights {
    size_t bytes, trainable_bytes;
    bool *lent;        /* the caller has a view of the weights, and may write through the view at any time */
    bool *states_lent; /* the same for the states: the element behind that of the weights */
    void *slab[LEATI_SLAB_COUNT];   /* host memory: leati_weights_slab returns it with the newest values */
    void *blocks[LEATI_SLAB_COUNT]; /* the allocations in which gradients and the optimizer's slots lie */
    leati_mirror *mirror;           /* borrowed; NULL: no device has a copy */
    size_t state_bytes;
    /* Per trainable weight: its gradient is a list of rows that the update reads; NULL: not known, or none is.  Their
     * sums are in LEATI_SLAB_ROWS if parts of a batch are computed (leati_optimizer_lower_rows). */
    bool *has_rows;
    size_t row_bytes; /* of LEATI_SLAB_ROWS */
    /* The optimizer's slots are spread over the ranks of a fit, and this rank does not have all of them. */
    bool are_slots_spread;
    int32_t count; /* all weights, in Keras's order of model.weights: trainable ones, then the others */
    leati_weight **entries;  /* borrowed from the layers */
    const char **names;      /* "dense_1/kernel:0", owned */
    int32_t trainable_count; /* the number of trainable weights, which are the first entries */
    int32_t *order; /* model.get_weights(): indices into entries, layer by layer, as `trainable` says now */
} leati_weights;

/* Frees everything and zeroes *weights. */
void leati_weights_fini(leati_weights *weights);

/* Returns the host's memory of a slab, NULL if there is none, after copying newer values from the device.  After
 * writing to it, the caller calls leati_weights_changed. */
void *leati_weights_slab(const leati_weights *weights, leati_slab slab);
void leati_weights_changed(const leati_weights *weights, leati_slab slab);
/* Copies newer values of all slabs from the device, before something writes them to a file or offers them to others.
 * Errors: LEAT_EIO the device has failed, now or before, so that the host's values are old. */
leat_status leati_weights_fetch(const leati_weights *weights, leat_error *err);

/* Allocates zeroed slabs for gradients, slots and scalars, in place of the previous ones. */
leat_status leati_weights_train(leati_weights *weights, int slot_count, int scalar_count, leat_error *err);

/* Allocates LEATI_SLAB_ROWS, zeroed, in place of the previous one, which leati_weights_train frees; 0 bytes: frees it.
 * `has_rows` is owned from now on, also after a failure.  Errors: LEAT_ENOMEM. */
leat_status leati_weights_set_rows(leati_weights *weights, bool *has_rows, size_t bytes, leat_error *err);

/* Makes the optimizer's slots and, if `gradients`, the gradients resident, before a step that writes all of them. */
void leati_weights_populate(const leati_weights *weights, bool gradients);

/* Checks that this process has all slots of the optimizer.  Errors: LEAT_ENOTSUP they are spread over ranks. */
leat_status leati_weights_check_slots(const leati_weights *weights, leat_error *err);

/* Frees what training needs: all slabs but those of weights and states. */
void leati_weights_untrain(leati_weights *weights);

/* Bytes of all slabs but the scalars. */
size_t leati_weights_slab_bytes(const leati_weights *weights);

#endif
