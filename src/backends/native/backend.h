/* SPDX-License-Identifier: Apache-2.0 */
/* The native backend: leat's own kernels, for ops where a library's kernels are slow or where calling a library
 * costs more than the work. */
#ifndef LEATI_BACKENDS_NATIVE_BACKEND_H
#define LEATI_BACKENDS_NATIVE_BACKEND_H

#include "engine/backend.h"

extern const leati_backend leati_backend_native;

#endif
