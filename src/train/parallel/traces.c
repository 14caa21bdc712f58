/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the clocks of the ranks, and moves their traces to rank 0.  Room: train. */
#include "train/parallel/traces.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "train/parallel/parallel.h"

enum { QUESTIONS = 8 };

/* Rank 0 asks a rank for its time some times.  The question with the fastest answer tells the most: the other clock
 * was read between the question and the answer, about in the middle. */
static leat_status ask_time(leat_dist *dist, int rank, int64_t *at_ns, int64_t *offset_ns, leat_error *err) {
    int64_t best = INT64_MAX;
    for (int i = 0; i < QUESTIONS; ++i) {
        int64_t theirs = 0;
        const int64_t asked = leati_now_ns();
        LEATI_TRY(leati_dist_send(dist, &asked, sizeof asked, rank, err));
        LEATI_TRY(leati_dist_receive(dist, &theirs, sizeof theirs, rank, err));
        const int64_t answered = leati_now_ns();
        if (answered - asked >= best) continue;
        best = answered - asked;
        *at_ns = theirs;
        *offset_ns = asked + best / 2 - theirs;
    }
    return LEAT_OK;
}

static leat_status answer_times(leat_dist *dist, leat_error *err) {
    for (int i = 0; i < QUESTIONS; ++i) {
        int64_t asked = 0;
        LEATI_TRY(leati_dist_receive(dist, &asked, sizeof asked, 0, err));
        const int64_t now = leati_now_ns();
        LEATI_TRY(leati_dist_send(dist, &now, sizeof now, 0, err));
    }
    return LEAT_OK;
}

/* Compares the clocks; point: 0 for the beginning, 1 for the end. */
static leat_status compare_clocks(leati_traces *traces, leat_dist *dist, int point, leat_error *err) {
    if (dist->rank > 0) return answer_times(dist, err);
    for (int rank = 1; rank < dist->size; ++rank) {
        leati_trace_clock *clock = &traces->clocks[rank];
        LEATI_TRY(ask_time(dist, rank, &clock->at_ns[point], &clock->offset_ns[point], err));
    }
    return LEAT_OK;
}

leat_status leati_traces_begin(leati_traces *traces, leat_dist *dist, leat_trace *trace, leat_error *err) {
    *traces = (leati_traces){0};
    if (!dist || dist->size < 2) return LEAT_OK;
    const size_t ranks = (size_t)dist->size;
    char ready = trace && leati_trace_set_rank(trace, dist->rank, dist->peers[dist->rank].host);
    char *all = leati_calloc(ranks, 1);
    if (dist->rank == 0) traces->clocks = leati_calloc(ranks, sizeof *traces->clocks);
    leat_status status = LEAT_OK;
    if (!all || (dist->rank == 0 && !traces->clocks))
        status = leati_fail_memory(err, ranks * sizeof *traces->clocks, "the clocks of the ranks");
    status = leati_parallel_agree(dist, status, err);
    if (status == LEAT_OK) status = leati_dist_all_gather(dist, &ready, 1, all, err);
    traces->merge = status == LEAT_OK && all;
    for (size_t i = 0; traces->merge && i < ranks; ++i) traces->merge = all[i] != 0;
    leati_free(all);
    return traces->merge ? compare_clocks(traces, dist, 0, err) : status;
}

/* What a rank sends before its events. */
typedef struct head {
    int64_t bytes, origin_ns;
} head;

static leat_status send_events(leat_dist *dist, const head *h, const char *text, leat_error *err) {
    LEATI_TRY(leati_dist_send(dist, h, sizeof *h, 0, err));
    return h->bytes ? leati_dist_send(dist, text, (size_t)h->bytes, 0, err) : LEAT_OK;
}

/* Without memory for the events of a rank the fit fails, since that rank is already sending. */
static leat_status add_events(const leati_traces *traces, leat_dist *dist, int rank, leat_trace *trace,
                              leat_error *err) {
    head h = {0};
    LEATI_TRY(leati_dist_receive(dist, &h, sizeof h, rank, err));
    if (h.bytes == 0) return LEAT_OK;
    char *text = leati_calloc(1, (size_t)h.bytes);
    if (!text) return leati_fail_memory(err, (size_t)h.bytes, "the events of a rank");
    leat_status status = leati_dist_receive(dist, text, (size_t)h.bytes, rank, err);
    if (status == LEAT_OK) leati_trace_add(trace, text, (size_t)h.bytes, h.origin_ns, &traces->clocks[rank]);
    leati_free(text);
    return status;
}

leat_status leati_traces_merge(leati_traces *traces, leat_dist *dist, leat_trace *trace, leat_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    head h = {0};
    leat_status status = LEAT_OK;
    if (!traces->merge) return LEAT_OK;
    LEATI_TRY(compare_clocks(traces, dist, 1, err));
    if (dist->rank > 0) status = leati_trace_read(trace, &text, &bytes, &h.origin_ns, err);
    status = leati_parallel_agree(dist, status, err);
    h.bytes = (int64_t)bytes;
    if (status == LEAT_OK && dist->rank > 0) status = send_events(dist, &h, text, err);
    for (int rank = 1; status == LEAT_OK && dist->rank == 0 && rank < dist->size; ++rank)
        status = add_events(traces, dist, rank, trace, err);
    leati_free(text);
    return status;
}

void leati_traces_fini(leati_traces *traces) {
    leati_free(traces->clocks);
    *traces = (leati_traces){0};
}
