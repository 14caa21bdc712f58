/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, sizes and checked products: the part of memory.h that tests do not replace.  Room: base. */
#include "base/memory.h"

#include <string.h>

void *leati_memdup(const void *memory, size_t bytes) {
    void *copy = leati_calloc(1, bytes);
    if (copy && bytes) memcpy(copy, memory, bytes);
    return copy;
}

char *leati_strdup(const char *text) {
    return leati_memdup(text, strlen(text) + 1);
}

size_t leati_block_alignment(size_t bytes) {
    return bytes < (size_t)4 << 20 ? LEATI_ALIGNMENT : (size_t)2 << 20;
}

size_t leati_align(size_t bytes) {
    return bytes > SIZE_MAX - LEATI_ALIGNMENT
               ? SIZE_MAX
               : (bytes + LEATI_ALIGNMENT - 1) / LEATI_ALIGNMENT * LEATI_ALIGNMENT;
}

bool leati_mul_size(size_t a, size_t b, size_t *out) {
    if (b && a > SIZE_MAX / b) return false;
    *out = a * b;
    return true;
}

bool leati_mul_i64(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || (b && a > INT64_MAX / b)) return false;
    *out = a * b;
    return true;
}

static uint64_t magnitude(int64_t a) {
    return a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
}

int64_t leati_mul_saturated(int64_t a, int64_t b) {
    uint64_t x = magnitude(a), y = magnitude(b);
    bool negative = (a < 0) != (b < 0);
    if (y && x > INT64_MAX / y) return negative ? -INT64_MAX : INT64_MAX;
    return negative ? -(int64_t)(x * y) : (int64_t)(x * y);
}

int64_t leati_shape_count(int rank, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count = leati_mul_saturated(count, shape[i]);
    return count;
}

size_t leati_count_bytes(int64_t count, size_t bytes) {
    size_t product = 0;
    return leati_mul_size((size_t)count, bytes, &product) ? product : SIZE_MAX;
}
