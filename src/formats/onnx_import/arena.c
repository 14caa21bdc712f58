/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed together.  Room: formats. */
#include "base/memory.h"
#include "formats/onnx_import/file.h"

typedef struct leati_arena_block {
    struct leati_arena_block *next;
    size_t used, bytes;
    _Alignas(16) unsigned char data[];
} leati_arena_block;

enum { LEAST_BLOCK = 1 << 16, ALIGNMENT = 16 };

static leati_arena_block *new_block(leati_arena *arena, size_t bytes) {
    if (bytes < LEAST_BLOCK) bytes = LEAST_BLOCK;
    leati_arena_block *block = leati_calloc(1, sizeof *block + bytes);
    if (!block) return NULL;
    block->bytes = bytes;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *leati_arena_get(leati_arena *arena, size_t count, size_t size) {
    size_t bytes;
    if (!leati_mul_size(count, size, &bytes) || bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (bytes > arena->most - arena->used) return NULL;
    leati_arena_block *block = arena->blocks;
    if (!block || block->bytes - block->used < bytes) block = new_block(arena, bytes);
    if (!block) return NULL;
    void *out = block->data + block->used;
    block->used += bytes;
    arena->used += bytes;
    return out;
}

void leati_arena_fini(leati_arena *arena) {
    while (arena->blocks) {
        leati_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        leati_free(block);
    }
    arena->used = 0;
}
