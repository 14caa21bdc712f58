/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict: says in words if training waited for data or for compute.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_VERDICT_H
#define LEATI_TRAIN_HISTORY_VERDICT_H

#include "leat/train.h"

/* Returns true if `get` mostly waited for something else than a core, such as a disk.  used_ns is the core time
 * that all processes used within elapsed_ns: cores must have been free, and the workers in `get` must have
 * computed for less than half of their time. */
bool leati_verdict_get_waits(const leat_verdict *verdict, const leat_feed_stats *feed, int64_t used_ns,
                             int64_t elapsed_ns);

/* Writes verdict->text from the numbers of the verdict and of the feed. */
void leati_verdict_explain(leat_verdict *verdict, const leat_feed_stats *feed);

/* Adds to verdict->text what its numbers say of several ranks.  data_bound: the latest rank waited for its batches
 * longer than for its computation. */
void leati_verdict_explain_ranks(leat_verdict *verdict, const char *latest_host, bool data_bound);

#endif
