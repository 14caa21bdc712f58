/* SPDX-License-Identifier: Apache-2.0 */
/* Opens communicators, and has the functions that all kinds of communicators share.  Room: dist. */
#include "dist/dist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "leat/version.h"

static const leat_dist_options defaults = {.timeout_ms = 10000};
static const leati_growing options_type = LEATI_GROWING(leat_dist_options, kind, &defaults);

void leat_dist_options_init(leat_dist_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* The launchers' variables: mpirun of Open MPI; mpiexec of MPICH, and srun with PMI-2; srun with PMIx. */
bool leat_dist_is_launched(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (getenv(names[i])) return true;
    return false;
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
    return is_mpi ? leati_dist_open_mpi(out, &options, err) : leati_dist_open_self(out, err);
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

void leati_dist_describe(leati_dist_peer *out) {
    *out = (leati_dist_peer){.pid = getpid()};
    if (gethostname(out->host, sizeof out->host - 1) != 0) snprintf(out->host, sizeof out->host, "unknown");
    if (readlink("/proc/self/ns/pid", out->space, sizeof out->space - 1) < 0) out->space[0] = '\0';
    snprintf(out->version, sizeof out->version, "%s", leat_version());
}

/* ---- Requests that are waited for ---- */

static leat_status make(leat_dist *dist, leati_dist_request *request, leat_error *err) {
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
