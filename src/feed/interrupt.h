/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a request to stop end a wait for a batch, for a fit that must write a checkpoint soon. */
#ifndef LEATI_FEED_INTERRUPT_H
#define LEATI_FEED_INTERRUPT_H

#include <stdatomic.h>

#include "base/shared.h"
#include "leat/feed.h"

/* From now on leat_feed_get and leat_feed_await fail with LEAT_ESTOPPED if they have to wait while *flag is true; the
 * flag is looked at every 50 ms.  The feed's position stays before the batch that was waited for, but the stream is
 * ended.  The flag is borrowed until the feed is closed. */
LEATI_SHARED void leati_feed_interrupt_by(leat_feed *feed, const atomic_bool *flag);

#endif
