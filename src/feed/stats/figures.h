/* SPDX-License-Identifier: Apache-2.0 */
/* What a feed measures while it delivers. */
#ifndef LEATI_FEED_STATS_FIGURES_H
#define LEATI_FEED_STATS_FIGURES_H

#include "feed/stats/histogram.h"
#include "feed/ring/ring.h"
#include "feed/stats/trace.h"

#define LEATI_DEPTHS 512

typedef struct leati_figures {
    int64_t opened_ns;
    int64_t batches, bytes, starved, wait_ns, get_ns, retries, skips;
    leati_histogram wait, get;
    leat_feed_making making;
    /* the queue's depth: every stride-th look, the stride doubled when the table is full */
    leat_feed_depth depths[LEATI_DEPTHS];
    int depth_count;
    int64_t stride, until_look;
    /* the trace's lanes */
    leat_trace *trace;
    const char *name;
    int wait_lane, depth_lane;
    int64_t taken_ns;
} leati_figures;

void leati_figures_init(leati_figures *figures, leat_trace *trace, const char *name, int64_t opened_ns);

/* The caller waited; the batch was there at once (waited_ns 0). */
void leati_figures_wait(leati_figures *figures, int64_t start_ns, int64_t waited_ns);

/* A good batch is delivered. */
void leati_figures_take(leati_figures *figures, const leati_ring *ring, const leati_slot *slot);

/* It is given back. */
void leati_figures_release(leati_figures *figures, const leati_ring *ring, const leati_slot *slot);

/* Whether the queue's depth is to be looked at now; and what was seen. */
static inline bool leati_figures_wants_depth(leati_figures *figures) {
    return --figures->until_look <= 0 || figures->trace;
}
void leati_figures_depth(leati_figures *figures, int ready);

#endif
