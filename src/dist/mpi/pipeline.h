/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of a communicator as calls of MPI that do not wait.  Requests are cut into pieces, of which several are
 * under way, also those of several requests: so the next pieces hide the latency of the first ones.  The pieces begin
 * in one order, which is that of the requests, and end in it.
 * One thread at a time calls these functions (decision 0700).  Room: dist. */
#ifndef LEATI_DIST_MPI_PIPELINE_H
#define LEATI_DIST_MPI_PIPELINE_H

#include "dist/dist.h"
#include "dist/mpi/calls.h"
#include "dist/mpi/sums.h"

enum { LEATI_PIPELINE_PIECES = 16 };

/* A piece that is under way. */
typedef struct leati_piece {
    leati_mpi_request mpi;
    leati_dist_request *request;
    size_t offset, bytes; /* of the data of the request */
    const char *call;     /* the function of MPI, for messages */
    bool is_last;         /* of its request */
    leati_sum *sum;       /* NULL: `mpi` stands for the piece */
    bool is_done;         /* but pieces before it are not */
    bool gathers;         /* of a sum in bfloat16: the second of its two calls is under way */
} leati_piece;

typedef struct leati_pipeline {
    leati_mpi *mpi;
    int size;      /* ranks */
    bool has_sums; /* `sums` can be used: otherwise MPI makes them */
    leati_sums sums;
    leati_dist_request *next, *last; /* a list of the requests that have pieces to begin */
    size_t offset;                   /* of the next piece of `next` */
    leati_piece pieces[LEATI_PIPELINE_PIECES];
    unsigned first, count; /* pieces under way: the oldest one, and their number */
    int64_t freed_ns;      /* when the last request was done */
    uint16_t *halves;      /* for sums in bfloat16; NULL: none yet */
    size_t half_count;     /* elements of `halves` */
} leati_pipeline;

/* The ranks are known.  `mpi` is borrowed. */
void leati_pipeline_init(leati_pipeline *pipeline, leati_mpi *mpi, int rank, int size);
void leati_pipeline_fini(leati_pipeline *pipeline);

/* Appends a request to those that have not begun. */
void leati_pipeline_append(leati_pipeline *pipeline, leati_dist_request *request);

/* Begins pieces while there is room, and ends those that are done.  A request is `done` after its last piece.
 * *moved: something has begun or ended.  *finished: number of requests that are done now.
 * Errors: LEAT_EIO MPI fails; LEAT_ENOTSUP too many bytes for MPI; LEAT_ENOMEM.  After a failure the requests are left
 * as they are, and MPI may still use their memory. */
leat_status leati_pipeline_advance(leati_pipeline *pipeline, bool *moved, int *finished, leat_error *err);

/* After a failure: gives all requests up, which are then `done`. */
void leati_pipeline_drop(leati_pipeline *pipeline);

#endif
