/* SPDX-License-Identifier: Apache-2.0 */
/* A copy for data that nobody will read soon. */
#ifndef LEATI_FEED_RING_COPY_H
#define LEATI_FEED_RING_COPY_H

#include <stddef.h>

/* Like memcpy, but on x86-64 the copy does not go through the caches: the destination is not read before it is written,
 * and the trainer's data stays in the caches.  `to` is aligned to 64 bytes; the two ranges do not overlap. */
void leati_copy_past_caches(void *to, const void *from, size_t bytes);

#endif
