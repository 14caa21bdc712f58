/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels of patches (patches.cu).  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_PATCHES_H
#define LEATI_BACKENDS_CUDA_KERNELS_PATCHES_H

#include "backends/cuda/kernels/window.h"

/* patches: (windows, batch, taps * channels) */
typedef struct leati_cuda_patches_args {
    leati_cuda_window_shape shape;
    leati_cuda_array image, patches;
} leati_cuda_patches_args;

#endif
