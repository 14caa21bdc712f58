/* SPDX-License-Identifier: Apache-2.0 */
/* The measurements of a fit: the times of its steps, the times in which workers made the last batches, and the feed's
 * statistics.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_RECORD_H
#define LEATI_TRAIN_HISTORY_RECORD_H

#include <stdbool.h>
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

/* Sums of the fits that a resumed fit continues. */
typedef struct leati_record_sums {
    int64_t elapsed_ns; /* time from the opening of the feed to the checkpoint */
    int64_t steps, wall_ns, data_wait_ns, compute_ns; /* of the verdict */
    int64_t batches, bytes, starved, wait_ns, get_ns; /* of the feed, as the four below */
    int64_t worker_deaths, timeouts, retries, skips;
} leati_record_sums;

/* All times but origin_ns are in ns since the feed was opened.  A resumed fit continues the clock of the earlier
 * fit. */
typedef struct leati_record {
    /* The time when the feed was opened, less earlier.elapsed_ns, on the clock of leati_now_ns. */
    int64_t origin_ns;
    bool begun;                /* leati_record_begin was called, so that origin_ns is known */
    leati_record_sums earlier; /* zero if the fit was not resumed */
    int64_t earlier_left_out;  /* samples_left_out of the feeds of earlier fits */
    int64_t earlier_copies_ns; /* copy_wait_ns of the verdicts of earlier fits */
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
/* Continues the record of an earlier fit, before or after leati_record_begin, but before the first step. */
void leati_record_continue(leati_record *record, const leati_record_sums *earlier);
/* Returns the time since the feed was opened, and 0 before that, both with the time of earlier fits added. */
int64_t leati_record_elapsed(const leati_record *record);
/* Records the feed's statistics, with the sums of earlier fits added: percentiles, depths and the workers' shares are
 * those of this fit. */
void leati_record_end(leati_record *record, const leat_feed *feed);

#endif
