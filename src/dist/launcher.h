/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher of this process (mpirun, srun) says in the environment.  Room: dist. */
#ifndef LEATI_DIST_LAUNCHER_H
#define LEATI_DIST_LAUNCHER_H

#include <stdbool.h>

#include "leat/error.h"

/* Returns the number of processes that the launcher has started together with this one; 0 if it does not say so. */
int leati_launcher_ranks(void);

/* Returns the number of this process among those that the launcher has started on this host, from 0; 0 if it does not
 * say so. */
int leati_launcher_place(void);

/* Returns true if the launcher connects the processes in the way that MPICH and its relatives expect. */
bool leati_launcher_is_mpich(void);

/* Returns the number of cores that the launcher grants each process; 0 if it does not say so. */
int leati_launcher_cores(void);

/* Errors: LEAT_EINVAL srun has started several processes that MPI cannot connect: --mpi=none. */
leat_status leati_launcher_check(leat_error *err);

/* Compares the number of ranks that MPI has connected with that of the launcher.  title: "MPICH".
 * Errors: LEAT_EINVAL MPI has connected no other process, since it is not the MPI of the launcher. */
leat_status leati_launcher_check_ranks(int ranks, const char *title, leat_error *err);

#endif
