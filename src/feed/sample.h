/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the sample of the data at a place of a batch, for messages. */
#ifndef LEATI_FEED_SAMPLE_H
#define LEATI_FEED_SAMPLE_H

#include "base/shared.h"
#include "leat/feed.h"

/* Returns the number, in the data, of the sample at `place` of the batch in use; -1 if it is not known, because no
 * batch is in use or the sequence has no get_samples. */
LEATI_SHARED int64_t leati_feed_sample(const leat_feed *feed, int64_t place);

#endif
