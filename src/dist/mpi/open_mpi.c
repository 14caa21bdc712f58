/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI of Open MPI 4 and 5, libmpi.so.40: handles are addresses of objects of the library.  Room: dist. */
#include "base/error.h"
#include "dist/mpi/calls.h"

typedef void *handle;

#define IN_PLACE ((const void *)1)
#define IGNORED  NULL

#include "dist/mpi/calls_tmpl.h"

static leat_status find_constants(leati_mpi *mpi, leat_error *err) {
    static const char *const objects[] = {[WORLD] = "ompi_mpi_comm_world",
                                          [FLOAT] = "ompi_mpi_float",
                                          [BYTE] = "ompi_mpi_byte",
                                          [SUM] = "ompi_mpi_op_sum",
                                          [ERRORS_RETURN] = "ompi_mpi_errors_return"};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; ++i) {
        void *object = NULL;
        LEATI_TRY(leati_library_function(mpi->library, objects[i], &object, sizeof object, err));
        keep(&mpi->constants[i], object);
    }
    return LEAT_OK;
}

const leati_mpi_calls leati_mpi_open_mpi = LEATI_MPI_CALLS("openmpi", "Open MPI", "libmpi.so.40");
