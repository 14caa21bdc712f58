/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated libraries share with the simulated driver. */
#ifndef LEAT_TESTS_CUDA_SIM_WORK_H
#define LEAT_TESTS_CUDA_SIM_WORK_H

#include <cuda.h>

#include <stdint.h>
#include <string.h>

#include <functional>

/* Adds work to a stream: it runs later, or is recorded.  what: for reports. */
CUresult sim_enqueue(CUstream stream, std::function<void()> item, const char *what = "a library's kernel");

/* Returns x as the tensor cores read it in TF32: with 10 bits of mantissa. */
static inline float sim_tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Lets the functions of a library fail on demand, once the table has them. */
struct leati_cuda_api;
void sim_guard_blas(struct leati_cuda_api *api);
void sim_guard_dnn(struct leati_cuda_api *api);

#endif
