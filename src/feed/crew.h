/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of one feed, threads or processes: start them, miss them, send them home. */
#ifndef LEATI_FEED_CREW_H
#define LEATI_FEED_CREW_H

#include <sys/types.h>

#include "feed/helper.h"
#include "feed/threads.h"

typedef struct leati_crew {
    leati_ring *ring;
    const leat_sequence *sequence; /* the feed's copy */
    uint64_t seed;
    leati_thread *threads; /* ring->worker_count of them, of which */
    int thread_count;      /* these run */
    leati_helper helper;
} leati_crew;

/* Starts ring->worker_count workers of the ring's present generation.  Errors: LEAT_EIO, LEAT_ENOMEM; nothing runs then.
 *  Without workers (count 0) there is nothing to do, here and below. */
leat_status leati_crew_start(leati_crew *crew, leat_error *err);

/* Whether all workers can still come back.  Errors: LEAT_EWORKER when the helper process is gone. */
leat_status leati_crew_check(leati_crew *crew, leat_error *err);

/* Sends the workers home after the batches in hand and waits until nothing of them is left. */
void leati_crew_dismiss(leati_crew *crew);

/* Frees what a dismissed crew holds. */
void leati_crew_fini(leati_crew *crew);

#endif
