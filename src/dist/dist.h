/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator: what the ranks of a run can do together (decision 0700).  All ranks make the same collective requests
 * in the same order.  Room: dist. */
#ifndef LEATI_DIST_DIST_H
#define LEATI_DIST_DIST_H

#include <stdatomic.h>
#include <sys/types.h>

#include "leat/dist.h"

typedef enum leati_dist_op {
    LEATI_DIST_ALL_REDUCE, /* replaces floats by their sums over all ranks; every rank gets the same bytes */
    /* Like ALL_REDUCE, but the floats travel as bfloat16: each value is rounded to nearest even, the rounded values are
     * added in f32 in the order of the ranks, and the sum is rounded again. */
    LEATI_DIST_ALL_REDUCE_BF16,
    LEATI_DIST_ALL_GATHER, /* concatenates the bytes of all ranks, in the order of the ranks */
    LEATI_DIST_BROADCAST,  /* copies the bytes of rank `peer` to all ranks */
    LEATI_DIST_SEND,       /* sends bytes to rank `peer`, which receives them */
    LEATI_DIST_RECEIVE,
    LEATI_DIST_BARRIER /* waits until every rank has made this request */
} leati_dist_op;

/* A request.  The caller owns it and its memory until leati_dist_wait has returned. */
typedef struct leati_dist_request {
    leati_dist_op op;
    int peer;
    void *data;
    size_t
        bytes; /* of `data`; for ALL_GATHER: the bytes of one rank, so that `data` has size times as many */
    const void *mine; /* ALL_GATHER: the bytes of this rank; NULL: they are in their place in `data` */
    /* The caller waits next, so no other thread is woken for the request. */
    bool is_awaited;
    /* Used by the communicator. */
    _Atomic bool done;
    int64_t begun_ns;
    int64_t
        busy_ns; /* time for which the request kept the communicator busy, waiting for other ranks included */
    struct leati_dist_request *next;
} leati_dist_request;

typedef struct leati_dist_class {
    /* Begins a request.  Requests are done one after the other, in their order. */
    void (*start)(leat_dist *dist, leati_dist_request *request);
    /* Waits until a request is done.  Errors: LEAT_EIO a rank has failed: its number, host and cause.  After a failure
     * all further requests fail alike. */
    leat_status (*wait)(leat_dist *dist, leati_dist_request *request, leat_error *err);
    bool (*is_broken)(const leat_dist *dist);
    void (*abort)(leat_dist *dist, int code);
    void (*close)(leat_dist *dist);
} leati_dist_class;

enum { LEATI_DIST_CORE_WORDS = 16 };

/* What the ranks know of each other. */
typedef struct leati_dist_peer {
    char host[64];
    char space[64]; /* the namespace of the process's number, so that equal host names do not mislead */
    char version[32];
    pid_t pid;
    uint64_t cores[LEATI_DIST_CORE_WORDS]; /* a bit for each core on which the process may run */
} leati_dist_peer;

/* Kinds of communicators begin with this struct. */
struct leat_dist {
    const leati_dist_class *class;
    int rank, size;
    leati_dist_peer *peers; /* (size), owned */
};

leat_status leati_dist_open_self(leat_dist **out, leat_error *err);
leat_status leati_dist_open_mpi(leat_dist **out, const leat_dist_options *options, leat_error *err);

/* Describes this process, and the cores of the calling thread. */
void leati_dist_describe(leati_dist_peer *out);

/* Returns the number of this rank among the ranks of its host, from 0. */
int leati_dist_place(const leat_dist *dist);

/* Requests that are started and waited for.  Errors: as in leati_dist_class.wait. */
leat_status leati_dist_all_reduce(leat_dist *dist, float *values, size_t count, leat_error *err);
leat_status leati_dist_all_reduce_bf16(leat_dist *dist, float *values, size_t count, leat_error *err);
leat_status leati_dist_all_gather(leat_dist *dist, const void *mine, size_t bytes, void *all,
                                  leat_error *err);
leat_status leati_dist_broadcast(leat_dist *dist, void *data, size_t bytes, int root, leat_error *err);
leat_status leati_dist_send(leat_dist *dist, const void *data, size_t bytes, int to, leat_error *err);
leat_status leati_dist_receive(leat_dist *dist, void *data, size_t bytes, int from, leat_error *err);
leat_status leati_dist_barrier(leat_dist *dist, leat_error *err);

#endif
