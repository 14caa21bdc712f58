/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and traces the batches that a feed delivers.  Room: feed. */
#include "feed/stats/figures.h"

#include <stdio.h>

#include "base/os/clock.h"

void leati_figures_init(leati_figures *figures, leat_trace *trace, const char *name, int64_t opened_ns) {
    figures->opened_ns = opened_ns;
    figures->stride = 1;
    figures->trace = trace;
    figures->name = name ? name : "feed";
    if (!trace) return;
    figures->wait_lane = leati_trace_lane(trace, figures->name, "wait");
    figures->depth_lane = leati_trace_lane(trace, figures->name, "batches ready");
}

void leati_figures_wait(leati_figures *figures, int64_t start_ns, int64_t waited_ns) {
    leati_histogram_add(&figures->wait, waited_ns);
    if (waited_ns == 0) return;
    ++figures->starved;
    figures->wait_ns += waited_ns;
    leati_trace_span(figures->trace, figures->wait_lane, "wait", start_ns, start_ns + waited_ns, -1, -1);
}

static int slot_lane(const leati_figures *figures, const leati_ring *ring, const leati_slot *slot) {
    char name[32];
    snprintf(name, sizeof name, "slot %d", (int)(slot - ring->slots));
    return leati_trace_lane(figures->trace, figures->name, name);
}

static void trace_take(leati_figures *figures, const leati_ring *ring, const leati_slot *slot) {
    char worker[32];
    const leat_feed_position *at = &slot->job.position;
    int64_t started_ns = slot->ended_ns - slot->get_ns;
    snprintf(worker, sizeof worker, "leat-worker/%d", (int)slot->worker);
    int worker_lane = leati_trace_lane(figures->trace, "workers", worker);
    int lane = slot_lane(figures, ring, slot);
    figures->taken_ns = leati_now_ns();
    leati_trace_span(figures->trace, worker_lane, figures->name, started_ns, slot->ended_ns, at->pass,
                     at->index);
    if (slot->deaths + slot->timeouts > 0)
        leati_trace_instant(figures->trace, worker_lane, "made again after a worker's death", started_ns);
    leati_trace_span(figures->trace, lane, "made", started_ns, slot->ended_ns, at->pass, at->index);
    leati_trace_span(figures->trace, lane, "ready", slot->ended_ns, figures->taken_ns, at->pass, at->index);
}

void leati_figures_take(leati_figures *figures, const leati_ring *ring, const leati_slot *slot) {
    ++figures->batches;
    for (int i = 0; i < slot->batch.tensor_count; ++i)
        figures->bytes += (int64_t)leat_tensor_bytes(&slot->batch.tensors[i]);
    figures->get_ns += slot->get_ns;
    figures->retries += slot->retries;
    leati_histogram_add(&figures->get, slot->get_ns);
    figures->making = (leat_feed_making){.worker = slot->worker,
                                         .start_ns = slot->ended_ns - slot->get_ns - figures->opened_ns,
                                         .end_ns = slot->ended_ns - figures->opened_ns};
    if (figures->trace) trace_take(figures, ring, slot);
}

void leati_figures_release(leati_figures *figures, const leati_ring *ring, const leati_slot *slot) {
    if (!figures->trace) return;
    const leat_feed_position *at = &slot->job.position;
    leati_trace_span(figures->trace, slot_lane(figures, ring, slot), "in use", figures->taken_ns,
                     leati_now_ns(), at->pass, at->index);
}

/* Drops every second entry, and doubles the stride. */
static void thin_out(leati_figures *figures) {
    for (int i = 0; i < LEATI_DEPTHS / 2; ++i) figures->depths[i] = figures->depths[2 * i];
    figures->depth_count = LEATI_DEPTHS / 2;
    figures->stride *= 2;
}

void leati_figures_depth(leati_figures *figures, int ready) {
    int64_t now = leati_now_ns();
    leati_trace_count(figures->trace, figures->depth_lane, "batches ready", now, ready);
    if (figures->until_look > 0) return;
    if (figures->depth_count == LEATI_DEPTHS) thin_out(figures);
    figures->depths[figures->depth_count++] =
        (leat_feed_depth){.time_ns = now - figures->opened_ns, .ready = (int32_t)ready};
    figures->until_look = figures->stride;
}
