/* SPDX-License-Identifier: Apache-2.0 */
/* Opens communicators, and has the functions that all kinds of communicators share.  Room: dist. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "dist/dist.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "dist/launcher.h"
#include "leat/version.h"

static const leat_dist_options defaults = {.timeout_ms = 10000};
static const leati_growing options_type = LEATI_GROWING(leat_dist_options, kind, &defaults);

void leat_dist_options_init(leat_dist_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

static leat_status check_options(const leat_dist_options *options, leat_error *err) {
    if ((int)options->kind < LEAT_DIST_AUTO || (int)options->kind > LEAT_DIST_MPI)
        return leati_fail(err, LEAT_EINVAL, "kind: expected a leat_dist_kind, received %d",
                          (int)options->kind);
    if (options->timeout_ms < 1000)
        return leati_fail(err, LEAT_EINVAL, "timeout_ms: expected at least 1000, received %lld",
                          (long long)options->timeout_ms);
    return LEAT_OK;
}

leat_status leat_dist_open(leat_dist **out, const leat_dist_options *caller, leat_error *err) {
    leat_dist_options options;
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_TRY(leati_growing_read(&options_type, caller, &options, err));
    LEATI_TRY(check_options(&options, err));
    bool is_mpi =
        options.kind == LEAT_DIST_MPI || (options.kind == LEAT_DIST_AUTO && leat_dist_is_launched());
    if (!is_mpi) return leati_dist_open_self(out, err);
    if (!options.communicator) LEATI_TRY(leati_launcher_check(err));
    return leati_dist_open_mpi(out, &options, err);
}

int leat_dist_rank(const leat_dist *dist) {
    return dist ? dist->rank : 0;
}

int leat_dist_size(const leat_dist *dist) {
    return dist ? dist->size : 0;
}

const char *leat_dist_host(const leat_dist *dist, int rank) {
    return dist && rank >= 0 && rank < dist->size ? dist->peers[rank].host : NULL;
}

int leat_dist_cores(const leat_dist *dist, int rank) {
    int cores = 0;
    if (!leat_dist_host(dist, rank)) return 0;
    for (int i = 0; i < LEATI_DIST_CORE_WORDS; ++i) cores += __builtin_popcountll(dist->peers[rank].cores[i]);
    return cores;
}

static bool share_cores(const leati_dist_peer *a, const leati_dist_peer *b) {
    if (strcmp(a->host, b->host) != 0) return false;
    for (int i = 0; i < LEATI_DIST_CORE_WORDS; ++i)
        if (a->cores[i] & b->cores[i]) return true;
    return false;
}

int leat_dist_sharers(const leat_dist *dist, int rank) {
    int sharers = 0;
    if (!leat_dist_host(dist, rank)) return 0;
    for (int i = 0; i < dist->size; ++i)
        sharers += i == rank || share_cores(&dist->peers[i], &dist->peers[rank]);
    return sharers;
}

bool leat_dist_is_broken(const leat_dist *dist) {
    return dist && dist->class->is_broken(dist);
}

void leat_dist_abort(leat_dist *dist, int code) {
    if (dist) dist->class->abort(dist, code);
}

void leat_dist_close(leat_dist **dist) {
    if (!dist || !*dist) return;
    (*dist)->class->close(*dist);
    *dist = NULL;
}

/* Writes one bit for each core on which this thread may run. */
static void describe_cores(uint64_t out[LEATI_DIST_CORE_WORDS]) {
    cpu_set_t mask;
    memset(out, 0, (size_t)LEATI_DIST_CORE_WORDS * sizeof *out);
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) CPU_ZERO(&mask);
    for (int i = 0; i < CPU_SETSIZE && i < 64 * LEATI_DIST_CORE_WORDS; ++i)
        if (CPU_ISSET((size_t)i, &mask)) out[i / 64] |= UINT64_C(1) << (i % 64);
}

void leati_dist_describe(leati_dist_peer *out) {
    *out = (leati_dist_peer){.pid = getpid()};
    if (gethostname(out->host, sizeof out->host - 1) != 0) snprintf(out->host, sizeof out->host, "unknown");
    if (readlink("/proc/self/ns/pid", out->space, sizeof out->space - 1) < 0) out->space[0] = '\0';
    snprintf(out->version, sizeof out->version, "%s", leat_version());
    describe_cores(out->cores);
}

int leati_dist_place(const leat_dist *dist) {
    const leati_dist_peer *mine = &dist->peers[dist->rank];
    int place = 0;
    for (int i = 0; i < dist->rank; ++i) place += strcmp(dist->peers[i].host, mine->host) == 0;
    return place;
}

/* ---- Requests that are waited for ---- */

static leat_status make(leat_dist *dist, leati_dist_request *request, leat_error *err) {
    request->is_awaited = true;
    dist->class->start(dist, request);
    return dist->class->wait(dist, request, err);
}

leat_status leati_dist_all_reduce(leat_dist *dist, float *values, size_t count, leat_error *err) {
    leati_dist_request request = {.op = LEATI_DIST_ALL_REDUCE,
                                  .data = values,
                                  .bytes = count * sizeof *values};
    return make(dist, &request, err);
}

leat_status leati_dist_all_reduce_bf16(leat_dist *dist, float *values, size_t count, leat_error *err) {
    leati_dist_request request = {.op = LEATI_DIST_ALL_REDUCE_BF16,
                                  .data = values,
                                  .bytes = count * sizeof *values};
    return make(dist, &request, err);
}

leat_status leati_dist_all_gather(leat_dist *dist, const void *mine, size_t bytes, void *all,
                                  leat_error *err) {
    leati_dist_request request = {.op = LEATI_DIST_ALL_GATHER, .data = all, .bytes = bytes, .mine = mine};
    return make(dist, &request, err);
}

leat_status leati_dist_broadcast(leat_dist *dist, void *data, size_t bytes, int root, leat_error *err) {
    leati_dist_request request = {.op = LEATI_DIST_BROADCAST, .data = data, .bytes = bytes, .peer = root};
    return make(dist, &request, err);
}

leat_status leati_dist_send(leat_dist *dist, const void *data, size_t bytes, int to, leat_error *err) {
    leati_dist_request request = {.op = LEATI_DIST_SEND, .data = (void *)data, .bytes = bytes, .peer = to};
    return make(dist, &request, err);
}

leat_status leati_dist_receive(leat_dist *dist, void *data, size_t bytes, int from, leat_error *err) {
    leati_dist_request request = {.op = LEATI_DIST_RECEIVE, .data = data, .bytes = bytes, .peer = from};
    return make(dist, &request, err);
}

leat_status leati_dist_barrier(leat_dist *dist, leat_error *err) {
    leati_dist_request request = {.op = LEATI_DIST_BARRIER};
    return make(dist, &request, err);
}
