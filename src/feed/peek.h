/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a device copy the next batch while the step on the batch before still runs. */
#ifndef LEATI_FEED_PEEK_H
#define LEATI_FEED_PEEK_H

#include "base/shared.h"
#include "leat/feed.h"

/* Returns the batch that the next leat_feed_get will return, if it is ready and in the same pass; otherwise NULL.  Does
 * not wait and changes nothing.  The batch stays as it is until it is released. */
LEATI_SHARED const leat_batch *leati_feed_peek(const leat_feed *feed);

/* Gives the memory in which all batches of the feed are. */
LEATI_SHARED void leati_feed_memory(const leat_feed *feed, void **memory, size_t *bytes);

#endif
