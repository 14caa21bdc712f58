/* SPDX-License-Identifier: Apache-2.0 */
/* Public functions that return the position and the statistics of a feed.  Room: feed. */
#include "base/os/clock.h"
#include "base/error.h"
#include "base/growing.h"
#include "feed/sample.h"
#include "feed/stream.h"

leat_feed_position leat_feed_position_get(const leat_feed *feed) {
    return feed ? feed->position : (leat_feed_position){0};
}

leat_feed_position leat_feed_next_position(const leat_feed *feed) {
    return feed ? feed->next : (leat_feed_position){0};
}

leat_status leat_feed_position_get_into(const leat_feed *feed, leat_feed_position *out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_feed_position){0};
    LEATI_GIVEN(feed, err);
    *out = leat_feed_position_get(feed);
    return LEAT_OK;
}

leat_status leat_feed_next_position_into(const leat_feed *feed, leat_feed_position *out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_feed_position){0};
    LEATI_GIVEN(feed, err);
    *out = leat_feed_next_position(feed);
    return LEAT_OK;
}

int64_t leat_feed_length(const leat_feed *feed) {
    if (!feed) return 0;
    return feed->length;
}

leat_feed_making leat_feed_making_get(const leat_feed *feed) {
    return feed ? feed->figures.making : (leat_feed_making){0};
}

leat_status leat_feed_making_get_into(const leat_feed *feed, leat_feed_making *out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_feed_making){0};
    LEATI_GIVEN(feed, err);
    *out = leat_feed_making_get(feed);
    return LEAT_OK;
}

int leat_feed_ready_count(const leat_feed *feed) {
    if (!feed) return 0;
    int ready = 0;
    if (leati_feed_is_inline(feed) || leati_group_is_inherited(feed->group)) return 0;
    for (uint64_t ticket = feed->delivered; ticket < feed->issued; ++ticket, ++ready)
        if (atomic_load(&leati_ring_slot(&feed->service.ring, ticket)->state) != LEATI_SLOT_READY) break;
    return ready;
}

static leat_feed_stats stats_of(const leat_feed *feed) {
    const leati_figures *figures = &feed->figures;
    const leati_ring *ring = &feed->service.ring;
    bool here = !leati_group_is_inherited(feed->group);
    return (leat_feed_stats){.batches = figures->batches,
                             .bytes = figures->bytes,
                             .starved = figures->starved,
                             .wait_ns = figures->wait_ns,
                             .wait = leati_histogram_percentiles(&figures->wait),
                             .get_ns = figures->get_ns,
                             .get = leati_histogram_percentiles(&figures->get),
                             .worker_deaths = here ? atomic_load(&ring->shared->deaths) : 0,
                             .timeouts = here ? atomic_load(&ring->shared->timeouts) : 0,
                             .retries = figures->retries,
                             .skips = figures->skips,
                             .ring_bytes =
                                 here || !ring->elastic ? (int64_t)leati_service_bytes(&feed->service) : 0,
                             .max_queue_size = feed->service.max_queue_size,
                             .workers = leati_feed_is_inline(feed) ? 0 : ring->table->count,
                             .replaced = here ? atomic_load(&ring->shared->replaced) : 0,
                             .samples_left_out = figures->left_out};
}

void leat_feed_stats_get_into(const leat_feed *feed, leat_feed_stats *out, size_t size) {
    const leat_feed_stats stats = feed ? stats_of(feed) : (leat_feed_stats){0};
    leati_growing_report(&stats, sizeof stats, out, size);
}

double leat_feed_worker_busy(const leat_feed *feed, int worker) {
    if (!feed) return 0;
    const leati_worker_table *table = feed->service.ring.table;
    int64_t open_ns = leati_now_ns() - feed->figures.opened_ns;
    if (worker < 0 || worker >= table->count || open_ns <= 0 || leati_group_is_inherited(feed->group))
        return 0;
    double share =
        (double)atomic_load_explicit(&table->workers[worker].busy_ns, memory_order_relaxed) / (double)open_ns;
    return share < 1 ? share : 1;
}

int leat_feed_depths(const leat_feed *feed, leat_feed_depth *out, int capacity) {
    if (!feed || !out) return 0;
    const leati_figures *figures = &feed->figures;
    int count = figures->depth_count < capacity ? figures->depth_count : capacity;
    for (int i = 0; i < count; ++i)
        out[i] = figures->depths[(int64_t)i * figures->depth_count / (count > 0 ? count : 1)];
    return count;
}

int64_t leat_feed_whole(const leat_feed *feed, int64_t *first) {
    if (first) *first = 0;
    if (!feed || !feed->in_use) return 0;
    if (feed->service.parts == 0) return feed->in_use->batch.size;
    const leati_extent extent = leati_service_extent(&feed->service, &feed->in_use->job);
    if (first) *first = extent.first;
    return extent.whole;
}

int64_t leati_feed_sample(const leat_feed *feed, int64_t place) {
    return feed->in_use ? leati_service_sample(&feed->service, &feed->in_use->job, place) : -1;
}
