/* SPDX-License-Identifier: Apache-2.0 */
/* Converts NumPy's codes and byte orders.  Room: data. */
#include "data/element.h"

#include <stdint.h>
#include <string.h>

static const struct {
    const char *code;
    leat_dtype dtype;
} codes[] = {{"f2", LEAT_F16}, {"f4", LEAT_F32}, {"f8", LEAT_F64}, {"b1", LEAT_BOOL},
             {"u1", LEAT_U8},  {"u2", LEAT_U16}, {"u4", LEAT_U32}, {"u8", LEAT_U64},
             {"i1", LEAT_I8},  {"i2", LEAT_I16}, {"i4", LEAT_I32}, {"i8", LEAT_I64}};

enum { code_count = sizeof codes / sizeof *codes };

bool leati_little_endian(void) {
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 1;
}

bool leati_dtype_of_code(leat_dtype *out, const char *code) {
    for (size_t i = 0; i < code_count; ++i) {
        if (strcmp(codes[i].code, code) != 0) continue;
        *out = codes[i].dtype;
        return true;
    }
    return false;
}

const char *leati_dtype_code(leat_dtype dtype) {
    for (size_t i = 0; i < code_count; ++i)
        if (codes[i].dtype == dtype) return codes[i].code;
    return "";
}

void leati_swap_bytes(void *data, size_t element_bytes, size_t count) {
    unsigned char *at = data;
    for (size_t i = 0; i < count; ++i, at += element_bytes)
        for (size_t low = 0, high = element_bytes - 1; low < high; ++low, --high) {
            const unsigned char kept = at[low];
            at[low] = at[high];
            at[high] = kept;
        }
}
