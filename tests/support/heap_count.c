/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces libc's malloc and related functions by functions that count and call libc's under their internal names. */
#include "support/heap_count.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

int64_t heap_calls(void) {
    return -1;
}

#else

extern void *__libc_malloc(size_t bytes);                     /* NOLINT(bugprone-reserved-identifier) */
extern void *__libc_calloc(size_t count, size_t size);        /* NOLINT(bugprone-reserved-identifier) */
extern void *__libc_realloc(void *old, size_t bytes);         /* NOLINT(bugprone-reserved-identifier) */
extern void *__libc_memalign(size_t alignment, size_t bytes); /* NOLINT(bugprone-reserved-identifier) */

static _Atomic int64_t calls;

int64_t heap_calls(void) {
    return atomic_load(&calls);
}

void *malloc(size_t bytes) {
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t size) {
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t bytes) {
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(old, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    atomic_fetch_add(&calls, 1);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    atomic_fetch_add(&calls, 1);
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}

#endif
