/* SPDX-License-Identifier: Apache-2.0 */
/* Delays the completion of each request until an emulated network would have finished it: requests pass one after the
 * other, and each takes the time of the messages of its algorithm.  The real communicator does the work beneath. */
#include "emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/os/clock.h"

enum { OUTSTANDING = 2 * BENCH_BUCKETS };

typedef struct entry {
    leati_dist_request *request; /* NULL: the entry is free */
    int64_t due_ns;
} entry;

typedef struct emulated {
    leat_dist base;
    leat_dist *inner; /* owned */
    bench_network network;
    int64_t free_ns; /* when the network has finished all requests that were started */
    entry entries[OUTSTANDING];
    /* With bulk: the sums of this step that have not begun, and the one sum that stands for them. */
    leati_dist_request *held[BENCH_BUCKETS];
    int held_count;
    /* The profile of the current step. */
    int64_t started_ns[BENCH_BUCKETS], computed_ns;
    size_t bytes[BENCH_BUCKETS];
    int sums, waited;
    bench_profile profile;
} emulated;

double bench_sum_seconds(const bench_network *n, int ranks, double bytes) {
    if (n->bytes_per_s <= 0 || ranks < 2) return 0;
    const double turns = ceil(log2(ranks)), ring = 2.0 * (ranks - 1);
    const double doubling = turns * (n->latency_s + bytes / n->bytes_per_s);
    return fmin(doubling, ring * (n->latency_s + bytes / ranks / n->bytes_per_s));
}

static double seconds_of(const emulated *e, const leati_dist_request *request) {
    const bench_network *n = &e->network;
    if (n->bytes_per_s <= 0) return 0;
    const double bytes = (double)request->bytes, turns = ceil(log2(e->base.size));
    switch (request->op) {
    case LEATI_DIST_ALL_REDUCE: return bench_sum_seconds(n, e->base.size, bytes);
    case LEATI_DIST_ALL_REDUCE_BF16: return bench_sum_seconds(n, e->base.size, bytes / 2);
    case LEATI_DIST_ALL_GATHER: return turns * n->latency_s + (e->base.size - 1) * bytes / n->bytes_per_s;
    case LEATI_DIST_BROADCAST: return turns * (n->latency_s + bytes / n->bytes_per_s);
    case LEATI_DIST_RECEIVE: return n->latency_s + bytes / n->bytes_per_s;
    case LEATI_DIST_BARRIER: return turns * n->latency_s;
    default: return 0;
    }
}

static void pass_on(emulated *e, leati_dist_request *request) {
    const int64_t now = leati_now_ns(), begin = now > e->free_ns ? now : e->free_ns;
    e->free_ns = begin + (int64_t)(seconds_of(e, request) * 1e9);
    for (int i = 0; i < OUTSTANDING; ++i) {
        if (e->entries[i].request) continue;
        e->entries[i] = (entry){request, e->free_ns};
        break;
    }
    e->inner->class->start(e->inner, request);
}

/* Notes the start of a sum of gradients, or the end of computing, which gathering the measures shows. */
static void note_start(emulated *e, const leati_dist_request *request) {
    if (request->op == LEATI_DIST_ALL_REDUCE && e->computed_ns == 0 && e->sums < BENCH_BUCKETS) {
        e->bytes[e->sums] = request->bytes;
        e->started_ns[e->sums++] = leati_now_ns();
    } else if (request->op == LEATI_DIST_ALL_GATHER && e->sums > 0 && e->computed_ns == 0) {
        e->computed_ns = leati_now_ns();
    }
}

static void note_end(emulated *e, const leati_dist_request *request) {
    if (request->op != LEATI_DIST_ALL_REDUCE || ++e->waited < e->sums) return;
    bench_profile *p = &e->profile;
    if (e->computed_ns > 0) {
        ++p->steps;
        p->buckets = e->sums;
        p->tail_ns += (double)(leati_now_ns() - e->computed_ns);
        for (int i = 0; i < e->sums; ++i) {
            p->bytes[i] = e->bytes[i];
            p->lead_ns[i] += (double)(e->computed_ns - e->started_ns[i]);
        }
    }
    e->sums = e->waited = 0;
    e->computed_ns = 0;
}

static void start(leat_dist *dist, leati_dist_request *request) {
    emulated *e = (emulated *)dist;
    note_start(e, request);
    if (!e->network.bulk || request->op != LEATI_DIST_ALL_REDUCE || e->held_count == BENCH_BUCKETS) {
        pass_on(e, request);
        return;
    }
    request->done = false;
    e->held[e->held_count++] = request;
}

static leat_status wait_for(emulated *e, leati_dist_request *request, leat_error *err) {
    leat_status status = e->inner->class->wait(e->inner, request, err);
    int64_t due = 0, now = leati_now_ns();
    for (int i = 0; i < OUTSTANDING; ++i) {
        if (e->entries[i].request != request) continue;
        due = e->entries[i].due_ns;
        e->entries[i].request = NULL;
        break;
    }
    if (e->free_ns < now) e->free_ns = now;
    if (due > now) {
        const struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return status;
}

/* Makes one sum of the sums that are held: buckets lie one before the other, the last ones first. */
static leat_status sum_held(emulated *e, leat_error *err) {
    leati_dist_request whole = {.op = LEATI_DIST_ALL_REDUCE};
    for (int i = 0; i < e->held_count; ++i) whole.bytes += e->held[i]->bytes;
    whole.data = e->held[e->held_count - 1]->data;
    pass_on(e, &whole);
    leat_status status = wait_for(e, &whole, err);
    for (int i = 0; i < e->held_count; ++i) {
        e->held[i]->done = true;
        e->held[i]->busy_ns = i == 0 ? whole.busy_ns : 0;
    }
    e->held_count = 0;
    return status;
}

static leat_status wait(leat_dist *dist, leati_dist_request *request, leat_error *err) {
    emulated *e = (emulated *)dist;
    leat_status status = LEAT_OK;
    bool held = false;
    for (int i = 0; i < e->held_count; ++i) held = held || e->held[i] == request;
    if (held)
        status = sum_held(e, err);
    else if (!request->done || !e->network.bulk || request->op != LEATI_DIST_ALL_REDUCE)
        status = wait_for(e, request, err);
    note_end(e, request);
    return status;
}

static bool is_broken(const leat_dist *dist) {
    return leat_dist_is_broken(((const emulated *)dist)->inner);
}

static void abort_run(leat_dist *dist, int code) {
    leat_dist_abort(((emulated *)dist)->inner, code);
}

static void close_emulated(leat_dist *dist) {
    leat_dist_close(&((emulated *)dist)->inner);
    free(dist);
}

leat_status bench_emulate(leat_dist **dist, const bench_network *network, leat_error *err) {
    static const leati_dist_class class = {start, wait, is_broken, abort_run, close_emulated};
    emulated *e = calloc(1, sizeof *e);
    if (!e) return leati_fail(err, LEAT_ENOMEM, "no memory for a communicator");
    e->base = (leat_dist){&class, (*dist)->rank, (*dist)->size, (*dist)->peers};
    e->inner = *dist;
    e->network = *network;
    *dist = &e->base;
    return LEAT_OK;
}

void bench_profile_reset(leat_dist *dist) {
    ((emulated *)dist)->profile = (bench_profile){0};
}

const bench_profile *bench_profile_of(const leat_dist *dist) {
    return &((const emulated *)dist)->profile;
}
