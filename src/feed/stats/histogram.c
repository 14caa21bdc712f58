/* SPDX-License-Identifier: Apache-2.0 */
/* Counts durations in bins whose width is at most 1/8 of their value.  Room: feed. */
#include "feed/stats/histogram.h"

/* Returns the bin of a duration.  A bin has all durations with the same highest four bits: (8 .. 15) << shift.  Up to
 * 15 ns each duration has its own bin. */
static int bin_of(int64_t ns) {
    int shift = 0;
    for (int step = 32; step > 0; step /= 2)
        if (ns >> (shift + step - 1) >= 16) shift += step;
    return 8 * shift + (int)(ns >> shift);
}

/* Returns the value that stands for a bin: its relative distance from both ends of the bin is the same, at most
 * 1/17. */
static int64_t value_of(int bin) {
    if (bin < 16) return bin;
    int shift = bin / 8 - 1;
    int64_t head = bin % 8 + 8, width = (int64_t)1 << shift;
    return (head << shift) + width * head / (2 * head + 1);
}

void leati_histogram_add(leati_histogram *histogram, int64_t ns) {
    if (ns < 0) ns = 0;
    uint32_t *bin = &histogram->bins[bin_of(ns)];
    *bin += *bin < UINT32_MAX;
    ++histogram->count;
    if (ns > histogram->max) histogram->max = ns;
}

/* Returns the smallest value that at least `percent` of the durations do not exceed. */
static int64_t percentile(const leati_histogram *histogram, int64_t total, int percent) {
    int64_t rank = total / 100 * percent + (total % 100 * percent + 99) / 100, seen = 0;
    int bin = 0;
    while (bin < LEATI_HISTOGRAM_BINS - 1 && (seen += histogram->bins[bin]) < rank) ++bin;
    int64_t value = value_of(bin);
    return value < histogram->max ? value : histogram->max;
}

leat_percentiles leati_histogram_percentiles(const leati_histogram *histogram) {
    int64_t total = 0; /* may be less than `count`, because a bin stops at UINT32_MAX */
    for (int i = 0; i < LEATI_HISTOGRAM_BINS; ++i) total += histogram->bins[i];
    if (total == 0) return (leat_percentiles){0};
    return (leat_percentiles){
        .p50 = percentile(histogram, total, 50),
        .p90 = percentile(histogram, total, 90),
        .p99 = percentile(histogram, total, 99),
        .max = histogram->max,
    };
}
