/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of memory.  Room: base. */
#define _GNU_SOURCE /* madvise */
#include "base/os/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void leati_pages_drop(void *memory, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)memory;
    const uintptr_t first = (start + page - 1) / page * page, end = (start + bytes) / page * page;
    if (end > first) (void)madvise((void *)first, end - first, MADV_DONTNEED);
}
