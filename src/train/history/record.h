/* SPDX-License-Identifier: Apache-2.0 */
/* What a fit measured of itself: steps over time, the last batches as the workers made them, the feed's figures. */
#ifndef LEATI_TRAIN_HISTORY_RECORD_H
#define LEATI_TRAIN_HISTORY_RECORD_H

#include <stdint.h>

#include "leat/feed.h"

enum { LEATI_RECORD_POINTS = 1024, LEATI_RECORD_SPANS = 256, LEATI_RECORD_DEPTHS = 512 };

/* A run of steps: of record->steps_per_point, but for the last. */
typedef struct leati_record_point {
    int64_t start_ns, wait_ns, compute_ns, steps; /* waiting and computing are sums */
} leati_record_point;

/* A batch being made. */
typedef struct leati_record_span {
    int64_t index, start_ns, end_ns;
    int32_t worker;
} leati_record_span;

/* Times are in ns since the feed was opened. */
typedef struct leati_record {
    int64_t origin_ns; /* when that was, by leati_now_ns */
    leat_feed_stats feed;
    int32_t point_count, depth_count;
    int64_t steps_per_point;
    int64_t
        span_count; /* ever seen; the last LEATI_RECORD_SPANS are kept, number n at n % LEATI_RECORD_SPANS */
    double *busy;   /* (workers) */
    int32_t workers;
    leati_record_point points[LEATI_RECORD_POINTS];
    leati_record_span spans[LEATI_RECORD_SPANS];
    leat_feed_depth depths[LEATI_RECORD_DEPTHS];
} leati_record;

/* A zeroed record becomes one of a feed with so many workers.  Errors: LEAT_ENOMEM. */
leat_status leati_record_begin(leati_record *record, int workers, int64_t origin_ns, leat_error *err);
void leati_record_fini(leati_record *record);

/* A step that asked for its batch at start_ns (by leati_now_ns): no allocation, no call of the system. */
void leati_record_step(leati_record *record, int64_t start_ns, int64_t wait_ns, int64_t compute_ns);
/* The batch that the feed delivered last. */
void leati_record_batch(leati_record *record, const leat_feed *feed);
/* What the feed says at the end. */
void leati_record_end(leati_record *record, const leat_feed *feed);

#endif
