/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator, on top of libc's.  Room: base. */
#define _GNU_SOURCE /* madvise */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    return aligned_alloc(LEATI_ALIGNMENT, *rounded);
}

#define HUGE_FROM ((size_t)4 << 20)

/* Asks the kernel for huge pages if a block has some megabytes: a few page faults then map what thousands would, and
 * the processor finds more of the addresses in its TLB. */
static void ask_for_huge_pages(void *memory, size_t bytes) {
    if (!memory || bytes < HUGE_FROM) return;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)memory + page - 1) / page * page, end = (uintptr_t)memory + bytes;
    (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
}

void *leati_calloc_aligned(size_t bytes) {
    size_t rounded = 0;
    void *memory = alloc_aligned(bytes, &rounded);
    ask_for_huge_pages(memory, rounded);
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
