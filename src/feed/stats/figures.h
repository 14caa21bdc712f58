/* SPDX-License-Identifier: Apache-2.0 */
/* The figures that a feed measures while it delivers batches. */
#ifndef LEATI_FEED_STATS_FIGURES_H
#define LEATI_FEED_STATS_FIGURES_H

#include "feed/stats/histogram.h"
#include "feed/ring/ring.h"
#include "feed/stats/trace.h"

#define LEATI_DEPTHS 512

typedef struct leati_figures {
    int64_t opened_ns;
    int64_t batches, bytes, starved, wait_ns, get_ns, retries, skips, left_out;
    leati_histogram wait, get;
    leat_feed_making making;
    /* The depth of the queue at every stride-th delivery; the stride is doubled when the table is full. */
    leat_feed_depth depths[LEATI_DEPTHS];
    int depth_count;
    int64_t stride, until_look;
    /* The trace and its lanes. */
    leat_trace *trace;
    const char *name;
    int wait_lane, depth_lane;
    int64_t taken_ns;
} leati_figures;

void leati_figures_init(leati_figures *figures, leat_trace *trace, const char *name, int64_t opened_ns);

/* Counts a wait of the caller; waited_ns is 0 if the batch was ready at once. */
void leati_figures_wait(leati_figures *figures, int64_t start_ns, int64_t waited_ns);

/* Counts a good batch that is delivered. */
void leati_figures_take(leati_figures *figures, const leati_ring *ring, const leati_slot *slot);

/* Traces that the caller has released the batch. */
void leati_figures_release(leati_figures *figures, const leati_ring *ring, const leati_slot *slot);

/* Returns true if the caller must measure the depth of the queue now and call leati_figures_depth. */
static inline bool leati_figures_wants_depth(leati_figures *figures) {
    return --figures->until_look <= 0 || figures->trace;
}
/* Records the depth of the queue. */
void leati_figures_depth(leati_figures *figures, int ready);

#endif
