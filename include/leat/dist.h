/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes that train one model together: a communicator, which connects them.  The processes are the ranks
 * 0 to size - 1 and are started by a launcher such as mpirun.  leat_fit_options.dist gives a communicator to a fit;
 * docs/distributed.md describes what the fit then does. */
#ifndef LEAT_DIST_H
#define LEAT_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The connection of this process with the other ranks.  Opaque.  Threads: externally synchronized. */
typedef struct leat_dist leat_dist;

/** The kinds of communicators. */
typedef enum leat_dist_kind {
    LEAT_DIST_AUTO, /**< MPI if a launcher of MPI has started this process, otherwise one process */
    LEAT_DIST_SELF, /**< one process, without MPI */
    LEAT_DIST_MPI   /**< MPI */
} leat_dist_kind;

/** Options of leat_dist_open. */
typedef struct leat_dist_options {
    size_t size;         /* sizeof the struct, set by leat_dist_options_init */
    leat_dist_kind kind; /* default LEAT_DIST_AUTO */
    int unused;          /* 0; the struct has no padding in it */
    /* The MPI library: "openmpi", "mpich", or the path of a library with the ABI of one of them.  NULL (default): the
     * value of LEAT_MPI in the environment, otherwise the library of the launcher. */
    const char *library;
    /* A rank that does not answer for this time is given up, and all ranks get an error; default 10000 ms. */
    int64_t timeout_ms;
    /* The address of an MPI_Comm, whose ranks train together; NULL (default): MPI_COMM_WORLD.  The program has then
     * initialized MPI with MPI_THREAD_MULTIPLE.  leat uses a duplicate of it. */
    const void *communicator;
} leat_dist_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_dist_options_init(leat_dist_options *options, size_t size);
/** Returns the default options. */
static inline leat_dist_options leat_dist_options_default(void) {
    leat_dist_options options;
    leat_dist_options_init(&options, sizeof options);
    return options;
}

/** Returns true if a launcher (mpirun, srun) has started this process as a rank of MPI, or srun has started several
 *  processes, by the launcher's variables in the environment.  Threads: any. */
LEAT_API bool leat_dist_is_launched(void);

/** Connects this process with the other ranks.  All ranks must make this call.  With MPI, a thread of leat and the
 *  threads that wait for other ranks make the calls of MPI, one at a time.  leat initializes MPI, and finalizes MPI at
 *  leat_dist_close, unless the program has initialized MPI itself, with MPI_THREAD_MULTIPLE.  A process in which leat
 *  has finalized MPI cannot open another communicator.
 *  @param options  NULL: the defaults.
 *  @param[out] out  New communicator, owned by the caller (leat_dist_close); NULL on failure.
 *  Errors: LEAT_EINVAL an option, or the launcher's processes cannot be connected by this MPI; LEAT_ENOTFOUND the MPI
 *  library is not installed; LEAT_ENOTSUP the ranks run different versions of leat, the program has initialized MPI
 *  with another level, or MPI was built without support for threads; LEAT_EIO MPI failed; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_dist_open(leat_dist **out, const leat_dist_options *options,
                                                 leat_error *err);

/** Return the number of this process, from 0, and the number of all processes; 0 if `dist` is NULL. */
LEAT_API int leat_dist_rank(const leat_dist *dist);
LEAT_API int leat_dist_size(const leat_dist *dist);

/** Returns the name of the host of a rank; NULL if there is no such rank.  The text belongs to the communicator and is
 *  valid until leat_dist_close. */
LEAT_API const char *leat_dist_host(const leat_dist *dist, int rank);

/** Returns the number of cores on which the process of a rank may run: those to which the launcher has bound it, or all
 *  cores of its host.  0 if there is no such rank. */
LEAT_API int leat_dist_cores(const leat_dist *dist, int rank);
/** Returns the number of ranks, this one included, that may run on one of these cores; 0 if there is no such rank.  By
 *  default a fit uses so many compute threads that the ranks do not compete for cores. */
LEAT_API int leat_dist_sharers(const leat_dist *dist, int rank);

/** Returns true if the communicator has failed: a rank has ended or does not answer, or MPI has failed; false if `dist`
 *  is NULL. */
LEAT_API bool leat_dist_is_broken(const leat_dist *dist);

/** Ends all ranks, for use after an error that the other ranks do not know.  The launcher ends the other processes;
 *  the call takes at most two seconds, and this process should then exit.
 *  @param code  The exit code of the run.  Threads: the thread that uses the communicator. */
LEAT_API void leat_dist_abort(leat_dist *dist, int code);

/** Waits until all ranks make this call, disconnects, and sets *dist to NULL; NULL is fine.  After a failure of the
 *  communicator the ranks do not wait for each other, and MPI is not finalized. */
LEAT_API void leat_dist_close(leat_dist **dist);

#ifdef __cplusplus
}
#endif
#endif
