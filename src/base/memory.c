/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator, on top of libc's.  Room: base. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pages.h"

void *leati_calloc(size_t count, size_t size) {
    return calloc(count ? count : 1, size ? size : 1);
}

/* Returns true if the machine has less memory than `bytes`.  Linux may promise such a block all the same, and then
 * kills the process that zeroes it. */
static bool is_more_than_all(size_t bytes) {
    const size_t always = (size_t)64 << 20;
    long pages = bytes > always ? sysconf(_SC_PHYS_PAGES) : -1, size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 && bytes / (size_t)size > (size_t)pages;
}

/* Returns memory that is not zeroed, and its size in *rounded. */
static void *alloc_aligned(size_t bytes, size_t *rounded) {
    *rounded = leati_align(bytes ? bytes : 1);
    if (*rounded == SIZE_MAX || is_more_than_all(*rounded)) return NULL;
    void *memory = NULL;
    return posix_memalign(&memory, leati_block_alignment(*rounded), *rounded) == 0 ? memory : NULL;
}

void *leati_calloc_aligned(size_t bytes) {
    size_t rounded = 0;
    void *memory = alloc_aligned(bytes, &rounded);
    if (memory && leati_block_alignment(rounded) > LEATI_ALIGNMENT) {
        leati_pages_prefer_huge(memory, rounded);
        leati_pages_populate(memory, rounded);
    }
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
