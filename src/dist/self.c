/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator of one process.  Room: dist. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "dist/dist.h"
#include "tensor/bfloat16.h"

typedef struct self_dist {
    leat_dist base;
    leati_dist_peer peer;
} self_dist;

static void start(leat_dist *dist, leati_dist_request *request) {
    (void)dist;
    if (request->op == LEATI_DIST_ALL_GATHER && request->mine && request->bytes > 0)
        memcpy(request->data, request->mine, request->bytes);
    if (request->op == LEATI_DIST_ALL_REDUCE_BF16) {
        float *values = request->data;
        for (size_t i = 0; i < request->bytes / sizeof *values; ++i)
            values[i] = leati_bfloat16_to_float(leati_bfloat16_of_float(values[i]));
    }
    request->done = true;
}

static leat_status wait(leat_dist *dist, leati_dist_request *request, leat_error *err) {
    (void)dist;
    if (request->op != LEATI_DIST_SEND && request->op != LEATI_DIST_RECEIVE) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "one process has no other rank to exchange data with");
}

static bool is_broken(const leat_dist *dist) {
    (void)dist;
    return false;
}

static void abort_run(leat_dist *dist, int code) {
    (void)dist;
    (void)code;
}

static void close_self(leat_dist *dist) {
    leati_free(dist);
}

static const leati_dist_class class = {start, wait, is_broken, abort_run, close_self};

leat_status leati_dist_open_self(leat_dist **out, leat_error *err) {
    self_dist *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "a communicator");
    self->base = (leat_dist){.class = &class, .size = 1, .peers = &self->peer};
    leati_dist_describe(&self->peer);
    *out = &self->base;
    return LEAT_OK;
}
