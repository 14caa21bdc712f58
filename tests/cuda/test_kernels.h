/* SPDX-License-Identifier: Apache-2.0 */
/* The parameter of the kernels in test_kernels.cc.  The tests of the simulated GPU launch them, some of them with a
 * mistake that the simulation has to find. */
#ifndef LEAT_TESTS_CUDA_TEST_KERNELS_H
#define LEAT_TESTS_CUDA_TEST_KERNELS_H

#include <stdint.h>

typedef struct test_args {
    const float *from;
    float *to;
    int64_t count;
    const uint64_t *clock;
    float scale;
    int32_t unused;
} test_args;

#endif
