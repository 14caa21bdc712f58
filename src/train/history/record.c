/* SPDX-License-Identifier: Apache-2.0 */
/* Records the measurements of a fit in fixed memory.  Room: train. */
#include "train/history/record.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"

leat_status leati_record_begin(leati_record *record, int workers, int64_t origin_ns, leat_error *err) {
    record->origin_ns = origin_ns - record->earlier.elapsed_ns;
    record->begun = true;
    if (workers == 0) return LEAT_OK;
    record->busy = leati_calloc((size_t)workers, sizeof *record->busy);
    if (!record->busy)
        return leati_fail_memory(err, (size_t)workers * sizeof *record->busy, "the workers' figures");
    record->workers = workers;
    return LEAT_OK;
}

void leati_record_fini(leati_record *record) {
    leati_free(record->busy);
    record->busy = NULL;
    record->workers = 0;
}

/* Merges each two adjacent points into one, so that the points cover a run of any length evenly. */
static void merge_points(leati_record *record) {
    for (int i = 0; i < LEATI_RECORD_POINTS / 2; ++i) {
        leati_record_point a = record->points[2 * i], b = record->points[2 * i + 1];
        record->points[i] = (leati_record_point){a.start_ns, a.wait_ns + b.wait_ns,
                                                 a.compute_ns + b.compute_ns, a.steps + b.steps};
    }
    record->point_count = LEATI_RECORD_POINTS / 2;
    record->steps_per_point *= 2;
}

void leati_record_step(leati_record *record, int64_t start_ns, int64_t wait_ns, int64_t compute_ns) {
    if (record->point_count == 0) record->steps_per_point = 1;
    leati_record_point *point = &record->points[record->point_count ? record->point_count - 1 : 0];
    if (record->point_count == 0 || point->steps == record->steps_per_point) {
        if (record->point_count == LEATI_RECORD_POINTS) merge_points(record);
        point = &record->points[record->point_count++];
        *point = (leati_record_point){.start_ns = start_ns - record->origin_ns};
    }
    point->wait_ns += wait_ns;
    point->compute_ns += compute_ns;
    ++point->steps;
}

void leati_record_batch(leati_record *record, const leat_feed *feed) {
    leat_feed_making making = leat_feed_making_get(feed);
    int64_t earlier = record->earlier.elapsed_ns;
    record->spans[record->span_count++ % LEATI_RECORD_SPANS] =
        (leati_record_span){leat_feed_position_get(feed).index, earlier + making.start_ns,
                            earlier + making.end_ns, making.worker};
}

static void add_earlier(leat_feed_stats *feed, const leati_record *record) {
    const leati_record_sums *earlier = &record->earlier;
    feed->samples_left_out += record->earlier_left_out;
    feed->batches += earlier->batches;
    feed->bytes += earlier->bytes;
    feed->starved += earlier->starved;
    feed->wait_ns += earlier->wait_ns;
    feed->get_ns += earlier->get_ns;
    feed->worker_deaths += earlier->worker_deaths;
    feed->timeouts += earlier->timeouts;
    feed->retries += earlier->retries;
    feed->skips += earlier->skips;
}

void leati_record_continue(leati_record *record, const leati_record_sums *earlier) {
    record->earlier = *earlier;
    if (record->begun) record->origin_ns -= earlier->elapsed_ns;
    record->feed = (leat_feed_stats){0};
    add_earlier(&record->feed, record);
}

int64_t leati_record_elapsed(const leati_record *record) {
    return record->begun ? leati_now_ns() - record->origin_ns : record->earlier.elapsed_ns;
}

void leati_record_end(leati_record *record, const leat_feed *feed) {
    record->feed = leat_feed_stats_get(feed);
    add_earlier(&record->feed, record);
    record->depth_count = leat_feed_depths(feed, record->depths, LEATI_RECORD_DEPTHS);
    for (int i = 0; i < record->depth_count; ++i) record->depths[i].time_ns += record->earlier.elapsed_ns;
    for (int i = 0; i < record->workers; ++i) record->busy[i] = leat_feed_worker_busy(feed, i);
}
