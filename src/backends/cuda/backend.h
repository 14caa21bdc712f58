/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: kernels for NVIDIA's GPUs, for plans with a device that leati_cuda_open made. */
#ifndef LEATI_BACKENDS_CUDA_BACKEND_H
#define LEATI_BACKENDS_CUDA_BACKEND_H

#include "engine/backend.h"

extern const leati_backend leati_backend_cuda;

/* Opens a queue on GPU `ordinal`.  Errors: LEAT_ENOTSUP there is no driver, no such GPU, or the GPU is too old; the
 * message says what is missing. */
leat_status leati_cuda_open(int ordinal, leati_device **out, leat_error *err);
/* Opens a queue on GPU `place` modulo the number of GPUs.  Errors: as leati_cuda_open. */
leat_status leati_cuda_open_any(int place, leati_device **out, leat_error *err);

/* For tests: who computes convolutions (leati_cuda_conv_way); 0: the fastest. */
void leati_cuda_set_conv_way(leati_device *device, int way);

#endif
