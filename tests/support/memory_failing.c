/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces src/base/memory.c by functions that count allocations and can fail. */
#include "support/memory_failing.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static _Atomic int64_t calls, fail_at, live;
static _Atomic bool failed;

void memory_fail_at(int64_t n) {
    atomic_store(&calls, 0);
    atomic_store(&failed, false);
    atomic_store(&fail_at, n);
}

bool memory_failed(void) {
    return atomic_load(&failed);
}

int64_t memory_calls(void) {
    return atomic_load(&calls);
}

int64_t memory_live(void) {
    return atomic_load(&live);
}

static bool refused(void) {
    int64_t at = atomic_load(&fail_at);
    if (atomic_fetch_add(&calls, 1) + 1 != at) return false;
    atomic_store(&failed, true);
    return true;
}

static void *counted(void *memory) {
    if (memory) atomic_fetch_add(&live, 1);
    return memory;
}

void *leati_calloc(size_t count, size_t size) {
    return refused() ? NULL : counted(calloc(count ? count : 1, size ? size : 1));
}

void *leati_calloc_aligned(size_t bytes) {
    size_t rounded = leati_align(bytes ? bytes : 1);
    void *memory = refused() || rounded == SIZE_MAX ? NULL : aligned_alloc(LEATI_ALIGNMENT, rounded);
    if (memory) memset(memory, 0, rounded);
    return counted(memory);
}

void *leati_realloc(void *old, size_t count, size_t size) {
    size_t bytes = 0;
    if (refused() || !leati_mul_size(count, size, &bytes)) return NULL;
    void *memory = realloc(old, bytes ? bytes : 1);
    return old ? memory : counted(memory);
}

void leati_free(void *memory) {
    if (memory) atomic_fetch_sub(&live, 1);
    free(memory);
}
