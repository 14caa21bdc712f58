/* SPDX-License-Identifier: Apache-2.0 */
/* Which sample of the data stands where in a batch, for messages. */
#ifndef LEATI_FEED_SAMPLE_H
#define LEATI_FEED_SAMPLE_H

#include "base/shared.h"
#include "leat/feed.h"

/* The number in the data of the sample at this place of the batch in use; -1 where it is not known: no batch is in use, or the
 * sequence has no get_samples, so that nothing says which samples a batch has. */
LEATI_SHARED int64_t leati_feed_sample(const leat_feed *feed, int64_t place);

#endif
