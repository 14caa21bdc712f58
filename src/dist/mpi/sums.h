/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of floats over all ranks, by messages between pairs of ranks.  MPI has such sums itself, but those that do not
 * wait, which leat needs, take up to twice the time of those that wait (decision 0707).
 *
 * The number of ranks is a product of factors.  In a stage, `factor` ranks whose numbers differ by multiples of
 * `stride` form a group.  In a small sum, the ranks of a group send each other all their values and add them.  In a
 * large sum, each gets one part of the values from the others and adds up this part only; the next stage shares out
 * this part.  After the last stage each rank has the sum of one part over all ranks, and the stages are passed in the
 * reverse order to gather the parts.  The first stages, which have most bytes, are between neighbours, which are often
 * on one host.
 * Room: dist. */
#ifndef LEATI_DIST_MPI_SUMS_H
#define LEATI_DIST_MPI_SUMS_H

#include "dist/mpi/calls.h"

enum {
    LEATI_SUMS_STAGES = 32,
    LEATI_SUMS_FACTOR = 13, /* the largest one */
    LEATI_SUMS_SLOTS = 4    /* sums under way at the same time */
};

typedef struct leati_sum_range {
    size_t from, end; /* floats */
} leati_sum_range;

/* A sum that is under way. */
typedef struct leati_sum {
    float *values; /* borrowed */
    size_t count;
    bool is_small;
    int stage;                                     /* large sums: the stages, then the stages in reverse */
    leati_sum_range ranges[LEATI_SUMS_STAGES + 1]; /* large sums: the values that a stage shares out */
    leati_mpi_request messages[2 * LEATI_SUMS_FACTOR]; /* of the stage; the first `open` ones are not done */
    int open;
} leati_sum;

typedef struct leati_sums {
    leati_mpi *mpi;
    int rank, stages;
    int factors[LEATI_SUMS_STAGES], strides[LEATI_SUMS_STAGES];
    uint64_t
        begun; /* sums in all; sum number i uses slot i modulo LEATI_SUMS_SLOTS, and its memory and tags */
    leati_sum slots[LEATI_SUMS_SLOTS];
    float *received[LEATI_SUMS_SLOTS]; /* each has room for what the other ranks of a group send */
} leati_sums;

/* The most floats of one sum. */
size_t leati_sums_most(void);

/* Divides the ranks into groups.  Returns false if their number has a prime factor above LEATI_SUMS_FACTOR: then no sum
 * can be made.  `mpi` is borrowed. */
bool leati_sums_init(leati_sums *sums, leati_mpi *mpi, int rank, int size);
void leati_sums_fini(leati_sums *sums);

/* Begins the sum of 1 to leati_sums_most() floats in place.  All ranks begin the same sums in the same order, and at
 * most LEATI_SUMS_SLOTS are under way.  *code: that of MPI, 0 if it has not failed.
 * Errors: LEAT_ENOMEM; LEAT_EIO MPI fails, see *code. */
leat_status leati_sum_begin(leati_sums *sums, float *values, size_t count, leati_sum **out, int *code,
                            leat_error *err);
/* Passes on to the next stage if the messages of this one are done; returns a code of MPI. */
int leati_sum_advance(leati_sums *sums, leati_sum *sum, bool *moved, bool *done);

#endif
