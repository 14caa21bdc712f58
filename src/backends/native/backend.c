/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the native backend: which of leat's own kernels serves which op.  Room: backends/native. */
#include "backends/native/backend.h"

#include <stdio.h>

#include "backends/native/simd/isa.h"
#include "backends/native/ops.h"

static const leati_implementation implementations[] = {
#define FUSES(op)                                                                                            \
    ((op) == LEATI_OP_CONV || (op) == LEATI_OP_MATMUL                                                        \
         ? LEATI_POST_NORM | LEATI_POST_ADD | LEATI_POST_FUNCTION                                            \
     : (op) == LEATI_OP_BATCH_NORM || (op) == LEATI_OP_BATCH_NORM_APPLY                                      \
         ? LEATI_POST_ADD | LEATI_POST_FUNCTION                                                              \
     : (op) == LEATI_OP_BINARY ? LEATI_POST_FUNCTION                                                         \
                               : 0)
#define BF16_TOO(upper, lower) {LEATI_OP_##upper, leati_native_##lower, FUSES(LEATI_OP_##upper), true},
#define F32_ONLY(upper, lower) {LEATI_OP_##upper, leati_native_##lower, FUSES(LEATI_OP_##upper), false},
    LEATI_NATIVE_BF16_LIST(BF16_TOO) LEATI_NATIVE_LIST(F32_ONLY)
#undef F32_ONLY
#undef BF16_TOO
#undef FUSES
};

static leat_status prepare_group(const leati_group *group, leati_kernel *kernel, char *why, leat_error *err) {
    switch (group->members[0].op) {
    case LEATI_OP_SOFTMAX_XENT: return leati_native_scaled_xent(group, kernel, why, err);
    case LEATI_OP_CONV: return leati_native_separable(group, kernel, why, err);
    default: return leati_native_dense_group(group, kernel, why, err);
    }
}

static void name_version(char *out, size_t bytes) {
    snprintf(out, bytes, "%s", leati_native_isa_of()->name);
}

const leati_backend leati_backend_native = {
    .name = "native",
    .implementations = implementations,
    .count = sizeof implementations / sizeof implementations[0],
    .name_version = name_version,
    .prepare_group = prepare_group,
};
