/* SPDX-License-Identifier: Apache-2.0 */
/* The op table, the names of functions, and tensor descriptions.  Room: engine. */
#include "engine/op_semantics/op.h"

#include <assert.h>
#include <string.h>
#include "base/memory.h"
#include "engine/ops/types.h"
#include "tensor/bfloat16.h"

const leati_op_descriptor *leati_op_descriptor_of(leati_op op) {
    static const leati_op_descriptor *const descriptors[LEATI_OP_COUNT] = {
#define DESCRIPTOR(upper, lower) [LEATI_OP_##upper] = &leati_op_##lower,
        LEATI_OP_LIST(DESCRIPTOR)
#undef DESCRIPTOR
    };
    assert((unsigned)op < LEATI_OP_COUNT);
    return descriptors[op];
}

const char *leati_function_name(leati_function function) {
    static const char *const names[LEATI_FN_COUNT] = {
#define NAME(upper, lower, formula, dst) [LEATI_FN_##upper] = #lower,
        LEATI_FUNCTION_LIST(NAME)
#undef NAME
    };
    return names[function];
}

bool leati_function_uses_dst(leati_function function) {
    static const bool from_dst[LEATI_FN_COUNT] = {
#define FROM_DST(upper, lower, formula, dst) [LEATI_FN_##upper] = dst,
        LEATI_FUNCTION_LIST(FROM_DST)
#undef FROM_DST
    };
    return from_dst[function];
}

bool leati_eltwise_uses_dst(const leati_eltwise *eltwise) {
    if (eltwise->function == LEATI_FN_RELU) return eltwise->a >= 0 && eltwise->c == 0 && eltwise->b > 0;
    if (eltwise->function == LEATI_FN_ELU) return eltwise->a >= 0;
    return leati_function_uses_dst(eltwise->function);
}

size_t leati_dtype_bytes(leat_dtype dtype) {
    return dtype == LEATI_BF16 ? sizeof(uint16_t) : leat_dtype_bytes(dtype);
}

const char *leati_dtype_name(leat_dtype dtype) {
    return dtype == LEATI_BF16 ? "bfloat16" : leat_dtype_name(dtype);
}

int64_t leati_desc_count(const leati_desc *desc) {
    return leati_shape_count(desc->rank, desc->shape);
}

size_t leati_desc_bytes(const leati_desc *desc) {
    return leati_count_bytes(leati_desc_count(desc), leati_dtype_bytes(desc->dtype));
}

leati_desc leati_desc_make(leat_dtype dtype, int rank, const int64_t *shape) {
    leati_desc desc = {.dtype = dtype, .rank = rank};
    if (rank > 0 && rank <= LEAT_MAX_RANK) memcpy(desc.shape, shape, (size_t)rank * sizeof *shape);
    return desc;
}

bool leati_desc_same_shape(const leati_desc *a, const leati_desc *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; ++i)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}
