/* SPDX-License-Identifier: Apache-2.0 */
/* A service: the part of a feed that its workers know.  It has the ring, the sequence, the order and the handling of
 * faults. */
#ifndef LEATI_FEED_RING_SERVICE_H
#define LEATI_FEED_RING_SERVICE_H

#include "feed/order/order.h"
#include "feed/ring/ring.h"

#define LEATI_MAX_QUEUE_SIZE (1 << 20)

/* The samples of a batch that a feed makes. */
typedef struct leati_extent {
    int64_t whole;        /* samples of the whole batch */
    int64_t first, count; /* in the whole batch */
} leati_extent;

typedef struct leati_service {
    leati_ring ring;
    leat_sequence sequence;          /* spec.batch_size is what a slot holds: the feed's parts of a batch */
    int64_t batch_size;              /* of whole batches */
    int parts, first_part, end_part; /* from the options; parts 0: whole batches */
    leati_order_rule rule;
    leat_faults faults;
    int max_queue_size;       /* from the options, or as many batches as options.memory holds */
    int kept_batches;         /* from the options */
    size_t max_worker_memory; /* from the options */
    const void *helper_data;  /* from the options */
    size_t helper_data_bytes;
} leati_service;

static inline bool leati_service_is_generator(const leati_service *service) {
    return service->sequence.next != NULL;
}

/* Maps the ring, with slots for batches of the sequence's specification: one for the batch in use and max_queue_size
 * more (options->memory 0), or as many as fit into options->memory; one slot without workers.  The sequence, the rule,
 * max_queue_size and kept_batches must be set.  Errors: LEAT_ESHAPE, LEAT_EINVAL, LEAT_ENOMEM, LEAT_EIO. */
leat_status leati_service_map(leati_service *service, const leati_worker_table *table,
                              const leat_feed_options *options, leat_error *err);
void leati_service_unmap(leati_service *service);

/* Sets the ring's pointers to the parts of its mapping. */
void leati_service_point(leati_service *service, unsigned char *memory, const leati_worker_table *table);

/* Allocates the memory pages of the first `bytes` bytes of a place, so that a lack of memory is an error instead of a
 * SIGBUS at the first access. */
leat_status leati_service_back(const leati_ring *ring, uint32_t place, size_t bytes, leat_error *err);

/* Returns the number of bytes of memory that the ring has. */
size_t leati_service_bytes(const leati_service *service);

/* Sets the parts and the sizes from the options and the sequence, which is set. */
void leati_service_cut(leati_service *service, const leat_feed_options *options);

/* Returns which samples of the job's batch are made; job->samples is known. */
leati_extent leati_service_extent(const leati_service *service, const leati_job *job);

/* Returns the number, in the data, of the sample at `place` of the job's batch; -1 if the sequence has no
 * get_samples. */
int64_t leati_service_sample(const leati_service *service, const leati_job *job, int64_t place);

/* Sets whether children that are forked from now on have the ring's mapping. */
void leati_service_inherit(const leati_service *service, bool inherit);

#endif
