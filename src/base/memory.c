/* SPDX-License-Identifier: Apache-2.0 */
/* Heap memory from libc.  Layer: base. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void *leati_calloc(size_t count, size_t size) {
    return calloc(count ? count : 1, size ? size : 1);
}

void *leati_calloc_aligned(size_t bytes) {
    size_t rounded = leati_align(bytes ? bytes : 1);
    void *memory = rounded == SIZE_MAX ? NULL : aligned_alloc(LEATI_ALIGNMENT, rounded);
    if (memory) memset(memory, 0, rounded);
    return memory;
}

void *leati_realloc(void *old, size_t count, size_t size) {
    size_t bytes = 0;
    if (!leati_mul_size(count, size, &bytes)) return NULL;
    return realloc(old, bytes ? bytes : 1);
}

void leati_free(void *memory) {
    free(memory);
}
