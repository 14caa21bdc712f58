/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that a rank has ended or hangs.  Each rank sends a message (a beat) to the next rank four times a second and
 * expects one of the rank before it; on one host it also looks whether that rank's process still exists.  A launcher
 * that is killed may leave its ranks behind: they end, too.  One thread at a time calls these functions.
 * Room: dist. */
#ifndef LEATI_DIST_MPI_WATCH_H
#define LEATI_DIST_MPI_WATCH_H

#include "dist/dist.h"
#include "dist/mpi/calls.h"
#include "dist/siblings.h"

typedef struct leati_watch {
    leati_mpi *mpi;
    const leati_dist_peer *peers;
    int rank, size, before; /* before: the rank that this rank watches */
    int pidfd;              /* of the watched process; -1: none */
    const leati_siblings *siblings;
    int64_t timeout_ns, looked_ns, heard_ns, said_ns;
    leati_mpi_request said, heard;
    bool is_saying, is_listening;
    bool before_ended; /* the watched rank has said that it ends */
    unsigned char said_beat, heard_beat;
} leati_watch;

/* Begins to watch; with one rank, does nothing.  `mpi`, `dist` and `siblings` are borrowed. */
void leati_watch_begin(leati_watch *watch, leati_mpi *mpi, const leat_dist *dist,
                       const leati_siblings *siblings, int64_t timeout_ms);
/* Sends and receives beats; to be called at least every 100 ms, and cheap.  Errors: LEAT_EIO the watched rank has
 * ended or has not answered in time, or the launcher has ended. */
leat_status leati_watch_look(leati_watch *watch, leat_error *err);
/* Tells the next rank that this rank ends, and waits until the watched rank has said so.  Every rank makes this call.
 * Errors: as in leati_watch_look. */
leat_status leati_watch_end(leati_watch *watch, leat_error *err);
/* Frees the descriptor of the watched process. */
void leati_watch_fini(leati_watch *watch);

#endif
