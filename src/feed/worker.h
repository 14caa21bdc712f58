/* SPDX-License-Identifier: Apache-2.0 */
/* What every kind of worker does: claim, make, publish. */
#ifndef LEATI_FEED_WORKER_H
#define LEATI_FEED_WORKER_H

#include "feed/ring.h"

/* One worker's view.  A worker process has copies of its own of everything here. */
typedef struct leati_worker {
    leati_ring *ring;
    const leat_sequence *sequence;
    uint64_t seed;
    int number;
    uint32_t generation;    /* of the ring, when this worker was started */
    uint64_t state_version; /* of *sequence->state; a process follows the ring's */
} leati_worker;

/* Makes the slot's batch: its status, error, batch and get_ns.  Does not publish. */
void leati_worker_make(leati_worker *worker, leati_slot *slot);

/* Runs worker_init, then makes batches until the ring says leave, then worker_fini.
 *  Returns the error of worker_init. */
leat_status leati_worker_run(leati_worker *worker, leat_error *err);

/* worker_init with the context that its error carries, and worker_fini; both fine where the sequence has none. */
leat_status leati_worker_begin(const leati_worker *worker, leat_error *err);
void leati_worker_end(const leati_worker *worker);

#endif
