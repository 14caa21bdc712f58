/* SPDX-License-Identifier: Apache-2.0 */
/* The launchers' variables.  Room: dist. */
#include "dist/launcher.h"

#include <limits.h>
#include <stdlib.h>

#include "base/error.h"
#include "leat/dist.h"

/* Returns the positive number in a variable; 0 if there is none. */
static int number_in(const char *name) {
    const char *text = getenv(name);
    char *end = NULL;
    if (!text || !*text) return 0;
    const long value = strtol(text, &end, 10);
    return *end == '\0' && value > 0 && value < INT_MAX ? (int)value : 0;
}

/* srun numbers its processes; a batch script and its commands are process 0 of no such step. */
static int tasks_of_srun(void) {
    return getenv("SLURM_PROCID") ? number_in("SLURM_STEP_NUM_TASKS") : 0;
}

/* mpirun of Open MPI; mpiexec of MPICH, and srun with PMI-2; srun with PMIx. */
static bool has_mpi(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (getenv(names[i])) return true;
    return false;
}

bool leat_dist_is_launched(void) {
    return has_mpi() || tasks_of_srun() > 1;
}

/* mpirun may have been started by srun, so its variables come first. */
int leati_launcher_ranks(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (getenv(names[i])) return number_in(names[i]);
    return tasks_of_srun();
}

int leati_launcher_place(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (getenv(names[i])) return number_in(names[i]);
    return 0;
}

bool leati_launcher_is_mpich(void) {
    return !getenv("OMPI_COMM_WORLD_SIZE") && getenv("PMI_SIZE");
}

/* mpirun inside a job has its own way to divide the cores. */
int leati_launcher_cores(void) {
    return getenv("SLURM_PROCID") && !getenv("OMPI_COMM_WORLD_SIZE") ? number_in("SLURM_CPUS_PER_TASK") : 0;
}

leat_status leati_launcher_check(leat_error *err) {
    if (has_mpi() || tasks_of_srun() < 2) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "srun has started %d processes without a connection between them: start ranks of Open MPI by "
        "srun --mpi=pmix, those of MPICH by srun --mpi=pmi2, or train in each process alone (--dist "
        "none)",
        tasks_of_srun());
}

leat_status leati_launcher_check_ranks(int ranks, const char *title, leat_error *err) {
    const int expected = leati_launcher_ranks();
    if (ranks > 1 || expected < 2) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "the launcher has started %d processes, but %s connects this one with none of them: use the "
        "launcher of the same MPI (srun: --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH), or choose "
        "the MPI by LEAT_MPI=openmpi or mpich",
        expected, title);
}
