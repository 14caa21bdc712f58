/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of memory.  Room: base. */
#define _GNU_SOURCE /* madvise */
#include "base/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The number of MADV_POPULATE_WRITE, which older headers do not name. */
enum { POPULATE_WRITE = 23 };

/* Advice is all that this is: memory serves as well without it. */
static void advise(void *memory, size_t bytes, int advice) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)memory;
    const uintptr_t first = (start + page - 1) / page * page, end = (start + bytes) / page * page;
    if (end > first) (void)madvise((void *)first, end - first, advice);
}

void leati_pages_drop(void *memory, size_t bytes) {
    advise(memory, bytes, MADV_DONTNEED);
}

void leati_pages_populate(void *memory, size_t bytes) {
    advise(memory, bytes, POPULATE_WRITE);
}

void leati_pages_prefer_huge(void *memory, size_t bytes) {
    advise(memory, bytes, MADV_HUGEPAGE);
}
