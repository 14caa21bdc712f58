/* SPDX-License-Identifier: Apache-2.0 */
/* Copying what nobody is going to read soon. */
#ifndef LEATI_FEED_RING_COPY_H
#define LEATI_FEED_RING_COPY_H

#include <stddef.h>

/* Like memcpy, but past the caches where the machine can: a cache line that is written whole is not read first, and what
 * the trainer has in the caches stays there.  `to` is aligned to 64 bytes; the two do not overlap. */
void leati_copy_past_caches(void *to, const void *from, size_t bytes);

#endif
