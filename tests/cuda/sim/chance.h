/* SPDX-License-Identifier: Apache-2.0 */
/* The choices of the simulated GPU: random numbers with a fixed seed, or with the seed LEAT_SIM_SEED. */
#ifndef LEAT_TESTS_CUDA_SIM_CHANCE_H
#define LEAT_TESTS_CUDA_SIM_CHANCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void sim_seed(uint64_t seed);

/* Returns a number from 0 to n - 1; n >= 1. */
uint32_t sim_below(uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
