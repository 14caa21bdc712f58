/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator with a limit, which replaces src/base/memory.c: a text that describes a model larger than the machine
 * is refused at once, as the real allocator would refuse it later. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define MOST_BYTES ((size_t)4 << 20)

void *leati_calloc(size_t count, size_t size) {
    size_t bytes = 0;
    if (!leati_mul_size(count, size, &bytes) || bytes > MOST_BYTES) return NULL;
    return calloc(count ? count : 1, size ? size : 1);
}

void *leati_calloc_aligned(size_t bytes) {
    size_t rounded = leati_align(bytes ? bytes : 1);
    void *memory = rounded > MOST_BYTES ? NULL : aligned_alloc(LEATI_ALIGNMENT, rounded);
    if (memory) memset(memory, 0, rounded);
    return memory;
}

void *leati_realloc(void *old, size_t count, size_t size) {
    size_t bytes = 0;
    if (!leati_mul_size(count, size, &bytes) || bytes > MOST_BYTES) return NULL;
    return realloc(old, bytes ? bytes : 1);
}

void leati_free(void *memory) {
    free(memory);
}
