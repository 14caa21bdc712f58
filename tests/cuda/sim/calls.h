/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the functions of NVIDIA's libraries: they are counted, and one of them fails on demand (sim.h). */
#ifndef LEAT_TESTS_CUDA_SIM_CALLS_H
#define LEAT_TESTS_CUDA_SIM_CALLS_H

#include <mutex>

#include "backends/cuda/driver/api.h"

enum sim_function_number {
#define SIM_NUMBER(name) number_##name,
    LEATI_CUDA_DRIVER_FUNCTIONS(SIM_NUMBER) LEATI_CUDA_BLAS_FUNCTIONS(SIM_NUMBER)
        LEATI_CUDA_DNN_FUNCTIONS(SIM_NUMBER)
#undef SIM_NUMBER
            sim_function_count
};

/* Held during each call: threads with devices of their own call at the same time. */
std::recursive_mutex &sim_mutex();

/* Counts a call, and returns true if it must fail with sim_failure(). */
bool sim_call_fails(sim_function_number f);
CUresult sim_failure(void);
/* What all calls return after a kernel has crashed; CUDA_SUCCESS before. */
CUresult sim_broken(void);
void sim_repair(void);
bool sim_is_error_text(sim_function_number f);

#endif
