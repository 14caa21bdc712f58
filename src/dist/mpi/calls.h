/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of MPI that leat makes, independent of the implementation.  The library is found at run time, without its
 * headers: calls_tmpl.h is compiled once for the ABI of Open MPI and once for that of MPICH (decision 0701).
 * All functions but load return 0 or an error code of MPI.  Room: dist. */
#ifndef LEATI_DIST_MPI_CALLS_H
#define LEATI_DIST_MPI_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/library.h"

/* MPI_THREAD_SERIALIZED and MPI_THREAD_MULTIPLE in both ABIs. */
enum { LEATI_MPI_SERIALIZED = 2, LEATI_MPI_MULTIPLE = 3 };

typedef struct leati_mpi leati_mpi;

/* A handle of a request, in the form of the implementation; zeroed: none. */
typedef struct leati_mpi_request {
    uint64_t handle;
} leati_mpi_request;

typedef struct leati_mpi_calls {
    const char *name;  /* "openmpi" */
    const char *title; /* "Open MPI" */
    const char *file;  /* name of the library */
    /* Finds the functions in mpi->library.  Errors: LEAT_ENOTFOUND. */
    leat_status (*load)(leati_mpi *mpi, leat_error *err);
    int (*initialized)(leati_mpi *mpi, bool *yes, int *level);
    /* Asks for LEATI_MPI_SERIALIZED.  *level: what the library gives. */
    int (*init)(leati_mpi *mpi, int *level);
    /* Duplicates the communicator, and lets its errors be returned. */
    int (*connect)(leati_mpi *mpi, int *rank, int *size);
    int (*all_reduce)(leati_mpi *mpi, float *values, int count, leati_mpi_request *request);
    /* mine NULL: the bytes of this rank are in their place. */
    int (*all_gather)(leati_mpi *mpi, const void *mine, int bytes, void *all, leati_mpi_request *request);
    /* Gives rank r the block number r of `mine`, of `bytes` bytes, and gets the blocks for this rank. */
    int (*all_to_all)(leati_mpi *mpi, const void *mine, int bytes, void *all, leati_mpi_request *request);
    int (*broadcast)(leati_mpi *mpi, void *data, int bytes, int root, leati_mpi_request *request);
    int (*barrier)(leati_mpi *mpi, leati_mpi_request *request);
    int (*send)(leati_mpi *mpi, const void *data, int bytes, int to, int tag, leati_mpi_request *request);
    int (*receive)(leati_mpi *mpi, void *data, int bytes, int from, int tag, leati_mpi_request *request);
    int (*test)(leati_mpi *mpi, leati_mpi_request *request, bool *done);
    int (*abort)(leati_mpi *mpi, int code);
    int (*finalize)(leati_mpi *mpi);
    int (*disconnect)(leati_mpi *mpi); /* frees the duplicate; every rank makes this call */
    /* Writes the text of an error code. */
    void (*explain)(leati_mpi *mpi, int code, char *out, size_t bytes);
} leati_mpi_calls;

enum { LEATI_MPI_FUNCTIONS = 24 };

struct leati_mpi {
    const leati_mpi_calls *calls;
    leati_library *library;
    void *functions[LEATI_MPI_FUNCTIONS]; /* in the order of calls_tmpl.h */
    const void *parent;                   /* address of the handle to duplicate; NULL: MPI_COMM_WORLD */
    uint64_t comm;                        /* handle of the duplicate */
    uint64_t constants[5];                /* handles: world, float, byte, sum, errors are returned */
};

extern const leati_mpi_calls leati_mpi_open_mpi, leati_mpi_mpich;

#endif
