/* SPDX-License-Identifier: Apache-2.0 */
/* The only door to the heap.  Tests link another memory.c behind this header, to count and to refuse. */
#ifndef LEATI_BASE_MEMORY_H
#define LEATI_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEATI_ALIGNMENT ((size_t)64) /* of tensors: a cache line, and the widest vector */

/* Zeroed memory for count elements; NULL when there is none, or when count * size overflows. */
void *leati_calloc(size_t count, size_t size);

/* Zeroed, LEATI_ALIGNMENT-aligned memory. */
void *leati_calloc_aligned(size_t bytes);

/* Grows or shrinks to count elements; new elements are not zeroed.  The old block stays valid on NULL. */
void *leati_realloc(void *old, size_t count, size_t size);

/* Frees what any of the above returned; NULL is fine. */
void leati_free(void *memory);

char *leati_strdup(const char *text);
void *leati_memdup(const void *memory, size_t bytes);

/* Rounds up to the alignment; SIZE_MAX on overflow, which no allocation can serve. */
size_t leati_align(size_t bytes);

/* *out = a * b; false when that does not fit. */
bool leati_mul_size(size_t a, size_t b, size_t *out);
bool leati_mul_i64(int64_t a, int64_t b, int64_t *out);

/* The product, or the nearest number that fits: for counts of elements, which no memory can then hold. */
int64_t leati_mul_saturated(int64_t a, int64_t b);
/* The product of a shape, likewise; 1 for rank 0. */
int64_t leati_shape_count(int rank, const int64_t *shape);
/* count * bytes; SIZE_MAX where that does not fit, which no allocation can serve. */
size_t leati_count_bytes(int64_t count, size_t bytes);

#endif
