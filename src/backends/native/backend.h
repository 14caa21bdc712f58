/* SPDX-License-Identifier: Apache-2.0 */
/* leat's own kernels: where a library's are slow, or cost more than the work. */
#ifndef LEATI_BACKENDS_NATIVE_BACKEND_H
#define LEATI_BACKENDS_NATIVE_BACKEND_H

#include "engine/backend.h"

extern const leati_backend leati_backend_native;

#endif
