/* SPDX-License-Identifier: Apache-2.0 */
/* Whether training waited for data or for compute, in words. */
#ifndef LEATI_TRAIN_HISTORY_VERDICT_H
#define LEATI_TRAIN_HISTORY_VERDICT_H

#include "leat/train.h"

/* Whether get waited for something else than a core: while used_ns of core time went by, in elapsed_ns, cores were free, and
 * the workers inside get can have used less than half of one each. */
bool leati_verdict_get_waits(const leat_verdict *verdict, const leat_feed_stats *feed, int64_t used_ns,
                             int64_t elapsed_ns);

/* Writes verdict->text from its numbers and from those of the feed. */
void leati_verdict_explain(leat_verdict *verdict, const leat_feed_stats *feed);

#endif
