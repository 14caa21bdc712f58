/* SPDX-License-Identifier: Apache-2.0 */
/* A feed as its workers know it: where batches go, what makes them, and what may go wrong. */
#ifndef LEATI_FEED_RING_SERVICE_H
#define LEATI_FEED_RING_SERVICE_H

#include "feed/order/order.h"
#include "feed/ring/ring.h"

#define LEATI_MAX_QUEUE_SIZE (1 << 20)

typedef struct leati_service {
    leati_ring ring;
    leat_sequence sequence;
    leati_order_rule rule;
    leat_faults faults;
    int max_queue_size; /* as given, or as `memory` allows */
} leati_service;

static inline bool leati_service_is_generator(const leati_service *service) {
    return service->sequence.next != NULL;
}

/* Maps the ring: batches of the sequence's spec, at most max_queue_size (memory 0) or as many as fit `memory`, and one in
 * use; without workers one slot.  The sequence, the rule and max_queue_size are set.  Errors: LEAT_ESHAPE, LEAT_EINVAL,
 * LEAT_ENOMEM, LEAT_EIO. */
leat_status leati_service_map(leati_service *service, const leati_worker_table *table, size_t memory,
                              leat_error *err);
void leati_service_unmap(leati_service *service);

/* Makes sure that the slot's memory is there: where it cannot be had, an error instead of a SIGBUS at the first touch. */
leat_status leati_service_back(leati_service *service, leati_slot *slot, leat_error *err);

/* The number in the data of the sample at this place of the job's batch; -1 where the sequence does not tell. */
int64_t leati_service_sample(const leati_service *service, const leati_job *job, int64_t place);

/* Shares the ring with children that are forked from now on, or does not. */
void leati_service_inherit(const leati_service *service, bool inherit);

#endif
