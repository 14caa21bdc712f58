/* SPDX-License-Identifier: Apache-2.0 */
/* One batch, from the slot as it is found to the slot that may be trained from. */
#ifndef LEATI_FEED_RING_MAKE_H
#define LEATI_FEED_RING_MAKE_H

#include "feed/ring/service.h"

/* What a worker keeps for one feed between batches. */
typedef struct leati_maker {
    leati_service *service;
    uint64_t state_version;        /* of *sequence.state; a process follows the ring's */
    bool ended;                    /* the generator, if it is one */
    int64_t pass, samples;         /* that `permutation` is for; samples 0: for none yet */
    int64_t *numbers;              /* of a batch's samples; NULL where they are not shuffled */
    leati_permutation permutation; /* of samples */
} leati_maker;

/* Errors: LEAT_ENOMEM; nothing is left then. */
leat_status leati_maker_init(leati_maker *maker, leati_service *service, leat_error *err);
void leati_maker_fini(leati_maker *maker);

/* Makes the slot's batch: status, error, batch and times.  Does not publish. */
void leati_maker_make(leati_maker *maker, leati_slot *slot, int worker);

#endif
