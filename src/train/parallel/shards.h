/* SPDX-License-Identifier: Apache-2.0 */
/* An optimizer whose slots are spread over the ranks: each rank updates its share of the weights and keeps the slots of
 * this share; the others are not resident (decision 0704).  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_SHARDS_H
#define LEATI_TRAIN_PARALLEL_SHARDS_H

#include "dist/dist.h"
#include "nn/model/model.h"

typedef struct leati_shards {
    leat_dist
        *dist; /* borrowed, as the model; NULL: every rank has all slots, and the calls below do nothing */
    leat_model *model;
    leati_share *shares;          /* (ranks) */
    bool is_whole;                /* rank 0 has the newest values of all slots */
    leati_dist_request *requests; /* (ranks) */
    int begun;                    /* requests */
} leati_shards;

/* Returns the bytes of slots that this rank does not keep in steps. */
size_t leati_shards_absent_bytes(const leati_shards *shards);

/* Errors: LEAT_ENOMEM. */
leat_status leati_shards_init(leati_shards *shards, leat_dist *dist, leat_model *model, leat_error *err);
void leati_shards_fini(leati_shards *shards);

/* The following calls are made by all ranks together.  Errors: those of the communicator. */

/* At the start: gives each rank the slots of its share, which rank 0 has. */
leat_status leati_shards_spread(leati_shards *shards, leat_error *err);
/* Before an update: frees the memory of slots of other shares on rank 0, and returns the share of this rank. */
leati_share leati_shards_begin(leati_shards *shards);
/* After an update: gives all ranks all weights. */
leat_status leati_shards_join(leati_shards *shards, leat_error *err);
/* Gives rank 0 the slots of all shares, unless it has them: in front of what may save or show them. */
leat_status leati_shards_collect(leati_shards *shards, leat_error *err);

#endif
