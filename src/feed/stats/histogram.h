/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, counted in bins that grow with them: eight to each power of two, so that a percentile is known to 6 %. */
#ifndef LEATI_FEED_STATS_HISTOGRAM_H
#define LEATI_FEED_STATS_HISTOGRAM_H

#include "leat/feed.h"

#define LEATI_HISTOGRAM_BINS 488 /* of 63 bits: 16, and 8 for each power of two from 16 on */

typedef struct leati_histogram {
    int64_t count, max;
    uint32_t bins[LEATI_HISTOGRAM_BINS];
} leati_histogram;

/* ns >= 0. */
void leati_histogram_add(leati_histogram *histogram, int64_t ns);

/* All zero where nothing was added. */
leat_percentiles leati_histogram_percentiles(const leati_histogram *histogram);

#endif
