/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one batch in a slot. */
#ifndef LEATI_FEED_RING_MAKE_H
#define LEATI_FEED_RING_MAKE_H

#include "feed/ring/service.h"

/* The data that a worker keeps for one feed between batches. */
typedef struct leati_maker {
    leati_service *service;
    uint64_t state_version; /* version of sequence.state in this process; it follows the ring's version */
    bool ended;             /* the generator has ended */
    int64_t pass, samples;  /* arguments of `permutation`; samples 0: `permutation` is not set yet */
    int64_t *numbers;       /* numbers of a batch's samples; NULL if samples are not shuffled */
    leati_permutation permutation; /* of the samples */
    size_t *entered; /* for each place of an elastic ring: the bytes that are in this process's page tables */
} leati_maker;

/* Errors: LEAT_ENOMEM; then nothing is left to free. */
leat_status leati_maker_init(leati_maker *maker, leati_service *service, leat_error *err);
void leati_maker_fini(leati_maker *maker);

/* Makes the batch of a claimed slot: sets its status, error, batch and times.  It does not publish the slot. */
void leati_maker_make(leati_maker *maker, leati_slot *slot, int worker);

#endif
