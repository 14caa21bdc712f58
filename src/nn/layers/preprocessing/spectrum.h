/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of short-time Fourier transforms. */
#ifndef LEATI_NN_LAYERS_PREPROCESSING_SPECTRUM_H
#define LEATI_NN_LAYERS_PREPROCESSING_SPECTRUM_H

#include <stdint.h>

#include "leat/error.h"

/* Fails for the name of a window that leat does not have.  Names: hann, hamming, blackman, boxcar; "" is no window. */
leat_status leati_window_check(const char *name, leat_error *err);

/* Returns element `index` of a window; `period` is the number of elements after which the cosine repeats. */
double leati_window_at(const char *name, int64_t index, int64_t period);

#endif
