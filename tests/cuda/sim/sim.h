/* SPDX-License-Identifier: Apache-2.0 */
/* What tests may ask of the simulated GPU.
 *
 * Environment: LEAT_SIM_GPUS=NUMBER is the number of GPUs, 1 to 8.  LEAT_SIM_NCCL=none: NCCL is missing.
 * LEAT_SIM_SEED=NUMBER seeds the choices.  LEAT_SIM_FAIL=FUNCTION:N[:KIND] lets the N-th call of a driver function
 * fail; KIND is memory (the default), unknown, or launch, after which all calls fail.  LEAT_SIM_TWICE=1 runs each
 * kernel in two opposite orders of its threads and blocks, and ends the process if the results differ. */
#ifndef LEAT_TESTS_CUDA_SIM_SIM_H
#define LEAT_TESTS_CUDA_SIM_SIM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/sim/chance.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lets the n-th of the next calls of a driver function fail, "cuMemAlloc" for example, with `result`.  NULL: of all
 * functions together.  n == 0: nothing fails any more, and a context that has failed works again.
 * CUDA_ERROR_LAUNCH_FAILED stands for a kernel that has crashed: pending work is dropped, and all further calls
 * fail. */
void sim_fail_at(const char *function, int64_t n, CUresult result);
/* Returns true if the failure has happened; then *function is the name of the function that failed. */
bool sim_failed(const char **function);
/* Returns the number of calls of a driver function since the last sim_fail_at.  NULL: of all functions. */
int64_t sim_calls(const char *function);

/* Lets each copy of at least `bytes` from the host to the device take `ns`; 0: as long as it takes. */
void sim_slow_copies(size_t bytes, int64_t ns);

/* The names of the driver's functions, from 0 on; NULL at the end. */
const char *sim_function_name(int index);

/* Returns what the process holds: allocations on the device and of pinned memory, streams, events, graphs, modules, and
 * references to the context. */
size_t sim_live(void);

/* Finds a kernel in any file of the test program. */
CUfunction sim_function(const char *name);

#ifdef __cplusplus
}
#endif

#endif
