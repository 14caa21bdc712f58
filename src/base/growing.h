/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that callers fill and that later versions may extend (docs/decisions/0302): the caller's size is the first
 * member, and these functions translate between the caller's struct and this version's. */
#ifndef LEATI_BASE_GROWING_H
#define LEATI_BASE_GROWING_H

#include <stdbool.h>
#include <stddef.h>

#include "leat/error.h"

/* Descriptor of such a struct. */
typedef struct leati_growing {
    const char *name;     /* of the type, "leat_fit_options" */
    size_t size;          /* in this version */
    size_t least;         /* the smallest size that a caller may have */
    const void *defaults; /* a struct of `size` bytes; NULL: all members are zero */
} leati_growing;

/* LEATI_GROWING(leat_fit_options, epochs, &defaults): no caller may have a struct that ends before `epochs` does. */
#define LEATI_GROWING(type, member, presets)                                                                 \
    {                                                                                                        \
        .name = #type, .size = sizeof(type), .least = offsetof(type, member) + sizeof(((type *)0)->member),  \
        .defaults = (presets)                                                                                \
    }

/* Bytes by which a caller's struct may be larger than this version's.  A larger size is taken for uninitialised
 * memory. */
enum { LEATI_GROWING_MARGIN = 4096 };

/* Zeroes the caller's struct of `size` bytes, writes the defaults that fit, and sets its size.  out NULL, or a
 * size that no version can have: does nothing. */
void leati_growing_init(const leati_growing *type, void *out, size_t size);

/* Checks the size that *in names, and the members behind those that this version knows, which must be zero.
 * Errors: LEAT_EINVAL. */
leat_status leati_growing_check(const leati_growing *type, const void *in, leat_error *err);

/* Copies *in (NULL: the defaults) into *out, a struct of this version: members that the caller's struct does not
 * have get their defaults.  Pointers are copied, not what they point to.  Errors: those of leati_growing_check. */
leat_status leati_growing_read(const leati_growing *type, const void *in, void *out, leat_error *err);

/* Fails if a caller's struct of `size` bytes is too small, or too large, to be filled.  Errors: LEAT_EINVAL. */
leat_status leati_growing_fits(const leati_growing *type, size_t size, leat_error *err);

/* Copies *in, a struct of this version, into the caller's struct of `size` bytes, and sets the size there to
 * `size`.  Zeroes what is behind the members of this version.  A size that leati_growing_fits refuses: does
 * nothing. */
void leati_growing_write(const leati_growing *type, const void *in, void *out, size_t size);

/* Like leati_growing_write(), for a struct of results, which has no member for its size: copies what fits of
 * `bytes` bytes, and zeroes the rest.  in NULL: zeroes all of *out.  out NULL: does nothing. */
void leati_growing_report(const void *in, size_t bytes, void *out, size_t size);

/* Zeroes a caller's struct by the size that it names. */
void leati_growing_clear(const leati_growing *type, void *out);

#endif
