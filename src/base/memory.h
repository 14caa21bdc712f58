/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator: all heap memory of leat comes from these functions.  Tests link another memory.c, which counts
 * allocations and makes some of them fail. */
#ifndef LEATI_BASE_MEMORY_H
#define LEATI_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Alignment of tensors in bytes: a cache line, and the widest vector register. */
#define LEATI_ALIGNMENT ((size_t)64)

/* Returns zeroed memory for count elements; NULL if there is not enough memory or count * size overflows.  A large
 * block takes memory only where it is written. */
void *leati_calloc(size_t count, size_t size);

/* Returns the alignment of a block: LEATI_ALIGNMENT, or the size of a huge page for one of some megabytes. */
size_t leati_block_alignment(size_t bytes);

/* Returns zeroed memory that is aligned to LEATI_ALIGNMENT, in huge pages where it has some megabytes; NULL if there is
 * not enough. */
void *leati_calloc_aligned(size_t bytes);

/* Resizes a block to count elements; new elements are not zeroed.  Returns NULL on failure; the old block is then
 * still valid. */
void *leati_realloc(void *old, size_t count, size_t size);

/* Frees memory that any of the above functions returned.  NULL is allowed. */
void leati_free(void *memory);

char *leati_strdup(const char *text);
void *leati_memdup(const void *memory, size_t bytes);

/* Rounds up to a multiple of LEATI_ALIGNMENT; returns SIZE_MAX on overflow, and no allocation of that size
 * succeeds. */
size_t leati_align(size_t bytes);

/* Computes *out = a * b; returns false if the product does not fit. */
bool leati_mul_size(size_t a, size_t b, size_t *out);
bool leati_mul_i64(int64_t a, int64_t b, int64_t *out);

/* Returns the product, or on overflow INT64_MAX or -INT64_MAX: as a number of elements, more than any memory
 * holds. */
int64_t leati_mul_saturated(int64_t a, int64_t b);

/* Returns the product of a shape's dimensions as leati_mul_saturated does; 1 for rank 0. */
int64_t leati_shape_count(int rank, const int64_t *shape);

/* Returns count * bytes; SIZE_MAX on overflow, and no allocation of that size succeeds. */
size_t leati_count_bytes(int64_t count, size_t bytes);

#endif
