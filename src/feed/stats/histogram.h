/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations with eight bins for each power of two, so that percentiles have an error of at most 6 %. */
#ifndef LEATI_FEED_STATS_HISTOGRAM_H
#define LEATI_FEED_STATS_HISTOGRAM_H

#include "leat/feed.h"

#define LEATI_HISTOGRAM_BINS 488 /* 16 for 0 to 15, and 8 for each power of two from 2^4 to 2^62 */

typedef struct leati_histogram {
    int64_t count, max;
    uint32_t bins[LEATI_HISTOGRAM_BINS];
} leati_histogram;

/* Counts a duration; a negative one counts as 0. */
void leati_histogram_add(leati_histogram *histogram, int64_t ns);

/* Returns the percentiles; all are 0 if the histogram is empty. */
leat_percentiles leati_histogram_percentiles(const leati_histogram *histogram);

#endif
