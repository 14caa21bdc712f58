/* SPDX-License-Identifier: Apache-2.0 */
/* Delays the completion of each request until an emulated network would have finished it: the bytes of requests pass
 * one after the other; a request also waits for the latencies of the messages of its algorithm, while the bytes of the
 * next one pass.  The real communicator does the work beneath. */
#include "emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/os/clock.h"
#include "dist/mpi/sums.h"

enum { OUTSTANDING = 2 * BENCH_BUCKETS };

typedef struct entry {
    leati_dist_request *request; /* NULL: the entry is free */
    int64_t due_ns;
} entry;

typedef struct emulated {
    leat_dist base;
    leat_dist *inner; /* owned */
    bench_network network;
    int64_t free_ns; /* when the bytes of all requests that were started have passed */
    int64_t due_ns;  /* when all of these requests are done */
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

/* What a request takes of the network: the time of its bytes, and the time that it waits for messages. */
typedef struct cost {
    double busy_s, latency_s;
} cost;

/* The stages of leat's sums, and their messages in units of the values (src/dist/mpi/sums.c): each rank of a stage
 * sends a small sum to the others of its group. */
static int stages_of(int ranks, double *sent) {
    static const int factors[] = {4, 2, 3, 5, 7, 11, 13};
    int stages = 0;
    *sent = 0;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; ++i)
        for (; ranks % factors[i] == 0; ranks /= factors[i], ++stages) *sent += factors[i] - 1;
    return stages;
}

/* A large sum has pieces, of which a few are under way at once: if the latency is long, the network waits for them. */
static cost sum_by_leat(const bench_network *n, int ranks, double bytes) {
    const double piece = (double)leati_sums_most() * sizeof(float), small = 32768;
    double sent = 0;
    const int stages = stages_of(ranks, &sent);
    if (bytes <= small) return (cost){sent * bytes / n->bytes_per_s, stages * n->latency_s};
    const double one = fmin(piece, bytes), share = 2.0 * (ranks - 1) / ranks / n->bytes_per_s,
                 whole = 2 * stages * n->latency_s + share * one, /* the time of one piece alone */
        busy = fmax(share * one, whole / LEATI_SUMS_SLOTS);
    return (cost){busy * bytes / one, whole - busy};
}

/* One sum by the better one of a ring and of recursive doubling. */
static cost sum_in_bulk(const bench_network *n, int ranks, double bytes) {
    const double turns = ceil(log2(ranks)), ring = 2.0 * (ranks - 1);
    const cost doubling = {turns * bytes / n->bytes_per_s, turns * n->latency_s},
               round = {ring * bytes / ranks / n->bytes_per_s, ring * n->latency_s};
    return doubling.busy_s + doubling.latency_s < round.busy_s + round.latency_s ? doubling : round;
}

static cost cost_of(const emulated *e, const leati_dist_request *request) {
    const bench_network *n = &e->network;
    if (n->bytes_per_s <= 0) return (cost){0};
    const int ranks = e->base.size;
    const double bytes = (double)request->bytes, turns = ceil(log2(ranks));
    switch (request->op) {
    case LEATI_DIST_ALL_REDUCE: return n->bulk ? sum_in_bulk(n, ranks, bytes) : sum_by_leat(n, ranks, bytes);
    case LEATI_DIST_ALL_REDUCE_BF16: return sum_in_bulk(n, ranks, bytes / 2);
    case LEATI_DIST_ALL_GATHER: return (cost){(ranks - 1) * bytes / n->bytes_per_s, turns * n->latency_s};
    case LEATI_DIST_BROADCAST: return (cost){turns * bytes / n->bytes_per_s, turns * n->latency_s};
    case LEATI_DIST_RECEIVE: return (cost){bytes / n->bytes_per_s, n->latency_s};
    case LEATI_DIST_BARRIER: return (cost){0, turns * n->latency_s};
    default: return (cost){0};
    }
}

/* Requests end in the order in which they were started. */
static void pass_on(emulated *e, leati_dist_request *request) {
    const int64_t now = leati_now_ns(), begin = now > e->free_ns ? now : e->free_ns;
    const cost found = cost_of(e, request);
    e->free_ns = begin + (int64_t)(found.busy_s * 1e9);
    const int64_t due = e->free_ns + (int64_t)(found.latency_s * 1e9);
    if (due > e->due_ns) e->due_ns = due;
    for (int i = 0; i < OUTSTANDING; ++i) {
        if (e->entries[i].request) continue;
        e->entries[i] = (entry){request, e->due_ns};
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

/* Only sums that are neighbours in memory are one sum together: not that of the moving averages. */
static bool may_hold(const emulated *e, const leati_dist_request *request) {
    if (!e->network.bulk || request->op != LEATI_DIST_ALL_REDUCE || e->held_count == BENCH_BUCKETS)
        return false;
    return e->held_count == 0 || (char *)request->data + request->bytes == e->held[e->held_count - 1]->data;
}

static void start(leat_dist *dist, leati_dist_request *request) {
    emulated *e = (emulated *)dist;
    note_start(e, request);
    if (!may_hold(e, request)) {
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

/* Returns false if the request was done as a part of one sum in bulk. */
static bool is_entered(const emulated *e, const leati_dist_request *request) {
    for (int i = 0; i < OUTSTANDING; ++i)
        if (e->entries[i].request == request) return true;
    return false;
}

static leat_status wait(leat_dist *dist, leati_dist_request *request, leat_error *err) {
    emulated *e = (emulated *)dist;
    leat_status status = LEAT_OK;
    bool held = false;
    for (int i = 0; i < e->held_count; ++i) held = held || e->held[i] == request;
    if (held)
        status = sum_held(e, err);
    else if (!request->done || is_entered(e, request))
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
