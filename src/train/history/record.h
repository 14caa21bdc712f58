/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of a fit: the times of its steps, the times in which workers made the last batches, and the feed's
 * statistics.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_RECORD_H
#define LEATI_TRAIN_HISTORY_RECORD_H

#include <stdint.h>

#include "leat/feed.h"

enum { LEATI_RECORD_POINTS = 1024, LEATI_RECORD_SPANS = 256, LEATI_RECORD_DEPTHS = 512 };

/* The measurements of record->steps_per_point successive steps; the last point may have fewer. */
typedef struct leati_record_point {
    int64_t start_ns, wait_ns, compute_ns, steps; /* wait_ns and compute_ns are sums over the steps */
} leati_record_point;

/* The time in which a worker made a batch. */
typedef struct leati_record_span {
    int64_t index, start_ns, end_ns;
    int32_t worker;
} leati_record_span;

/* All times but origin_ns are in ns since the feed was opened. */
typedef struct leati_record {
    int64_t origin_ns; /* the time when the feed was opened, on the clock of leati_now_ns */
    leat_feed_stats feed;
    int32_t point_count, depth_count;
    int64_t steps_per_point;
    /* All spans so far; the last LEATI_RECORD_SPANS are kept, span n at spans[n % LEATI_RECORD_SPANS]. */
    int64_t span_count;
    double *busy; /* (workers): leat_feed_worker_busy */
    int32_t workers;
    leati_record_point points[LEATI_RECORD_POINTS];
    leati_record_span spans[LEATI_RECORD_SPANS];
    leat_feed_depth depths[LEATI_RECORD_DEPTHS];
} leati_record;

/* Initializes a zeroed record for a feed with `workers` workers.  Errors: LEAT_ENOMEM. */
leat_status leati_record_begin(leati_record *record, int workers, int64_t origin_ns, leat_error *err);
void leati_record_fini(leati_record *record);

/* Records a step that asked for its batch at start_ns (on the clock of leati_now_ns).  Does not allocate, and
 * makes no system call. */
void leati_record_step(leati_record *record, int64_t start_ns, int64_t wait_ns, int64_t compute_ns);
/* Records when, and by which worker, the batch that the feed delivered last was made. */
void leati_record_batch(leati_record *record, const leat_feed *feed);
/* Records the feed's statistics at the end of the fit. */
void leati_record_end(leati_record *record, const leat_feed *feed);

#endif
