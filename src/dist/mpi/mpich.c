/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI of MPICH 3 and 4, libmpich.so.12, which Intel MPI, MVAPICH2 and others share (the MPICH ABI Compatibility
 * Initiative): handles are numbers.  Room: dist. */
#include <stdint.h>

#include "base/error.h"
#include "dist/mpi/calls.h"

typedef int handle;

#define IN_PLACE ((const void *)-1)
#define IGNORED  ((void *)1)

#include "dist/mpi/calls_tmpl.h"

static leat_status find_constants(leati_mpi *mpi, leat_error *err) {
    static const int numbers[] = {[WORLD] = 0x44000000,
                                  [FLOAT] = 0x4c00040a,
                                  [BYTE] = 0x4c00010d,
                                  [SUM] = 0x58000003,
                                  [ERRORS_RETURN] = 0x54000001};
    (void)err;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) keep(&mpi->constants[i], numbers[i]);
    return LEAT_OK;
}

const leati_mpi_calls leati_mpi_mpich = LEATI_MPI_CALLS("mpich", "MPICH", "libmpich.so.12");
