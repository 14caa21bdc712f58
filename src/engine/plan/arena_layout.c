/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the offsets of memory blocks with known lifetimes.  Room: engine. */
#include <assert.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/plan_private.h"

static int compare_size(const void *a, const void *b) {
    const leati_block *x = *(const leati_block *const *)a, *y = *(const leati_block *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y; /* so that the order is the same on every machine */
}

/* Returns the offset of the smallest gap that holds `block`, between the blocks that live at the same time; if there is
 * none, their end.  `placed` is sorted by offset. */
static size_t best_gap(leati_block *const *placed, int32_t count, const leati_block *block) {
    size_t top = 0, best = SIZE_MAX, best_size = SIZE_MAX;
    for (int32_t i = 0; i < count; ++i) {
        const leati_block *other = placed[i];
        if (other->first > block->last || block->first > other->last) continue;
        if (other->offset > top && other->offset - top >= block->bytes && other->offset - top < best_size) {
            best = top;
            best_size = other->offset - top;
        }
        if (other->offset + other->bytes > top) top = other->offset + other->bytes;
    }
    return best != SIZE_MAX ? best : top;
}

static size_t place_in_order(leati_block **order, leati_block **placed, int32_t count) {
    size_t end = 0;
    for (int32_t i = 0; i < count; ++i) {
        leati_block *block = order[i];
        block->offset = best_gap(placed, i, block);
        if (block->offset + block->bytes > end) end = block->offset + block->bytes;
        int32_t at = i;
        for (; at > 0 && placed[at - 1]->offset > block->offset; --at) placed[at] = placed[at - 1];
        placed[at] = block;
    }
    return end;
}

/* Returns the largest sum of the bytes of blocks that live at one moment; `alive` has moments + 1 zeros. */
static size_t peak_bytes(const leati_block *blocks, int32_t count, int32_t moments, int64_t *alive) {
    int64_t now = 0, most = 0;
    for (int32_t i = 0; i < count; ++i) {
        alive[blocks[i].first] += (int64_t)blocks[i].bytes;
        alive[blocks[i].last + 1] -= (int64_t)blocks[i].bytes;
    }
    for (int32_t moment = 0; moment < moments; ++moment) {
        now += alive[moment];
        if (now > most) most = now;
    }
    return (size_t)most;
}

#ifndef NDEBUG
/* Returns true if each block is aligned and inside the arena, and no two blocks that live at the same time overlap. */
static bool is_valid_layout(const leati_block *blocks, int32_t count, size_t arena_bytes) {
    for (int32_t i = 0; i < count; ++i) {
        const leati_block *a = &blocks[i];
        if (a->offset % LEATI_ALIGNMENT != 0 || a->offset + a->bytes > arena_bytes) return false;
        for (int32_t j = 0; j < i; ++j) {
            const leati_block *b = &blocks[j];
            bool same_time = a->first <= b->last && b->first <= a->last;
            if (same_time && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
                return false;
        }
    }
    return true;
}
#endif

leat_status leati_arena_lay_out(leati_block *blocks, int32_t count, int32_t moments, size_t *arena_bytes,
                                size_t *bound, leat_error *err) {
    leati_block **order = leati_calloc((size_t)count + 1, sizeof *order);
    leati_block **placed = leati_calloc((size_t)count + 1, sizeof *placed);
    int64_t *alive = leati_calloc((size_t)moments + 1, sizeof *alive);
    leat_status status = LEAT_OK;
    if (order && placed && alive) {
        for (int32_t i = 0; i < count; ++i) order[i] = &blocks[i];
        qsort(order, (size_t)count, sizeof *order, compare_size);
        *arena_bytes = place_in_order(order, placed, count);
        *bound = peak_bytes(blocks, count, moments, alive);
        assert(*bound <= *arena_bytes);
        assert(is_valid_layout(blocks, count, *arena_bytes));
    } else {
        status = leati_fail(err, LEAT_ENOMEM, "no memory to lay out %d blocks", count);
    }
    leati_free(order);
    leati_free(placed);
    leati_free(alive);
    return status;
}
