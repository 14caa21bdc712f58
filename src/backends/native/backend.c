/* SPDX-License-Identifier: Apache-2.0 */
/* The table of leat's own kernels.  Layer: backends/native. */
#include "backends/native/backend.h"

#include "backends/native/ops.h"

static const leati_implementation implementations[] = {
#define IMPLEMENTATION(upper, lower) {LEATI_OP_##upper, leati_native_##lower},
    LEATI_NATIVE_LIST(IMPLEMENTATION)
#undef IMPLEMENTATION
};

const leati_backend leati_backend_native = {
    .name = "native",
    .implementations = implementations,
    .fuses = true,
    .count = sizeof implementations / sizeof implementations[0],
};
