/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that steps take from the training data: means and standard deviations of channels, and the matrix of
 * zca_whitening.  The steps that need them stand next to each other, so that one pass over the data is enough. */
#ifndef LEATI_IMAGE_AUGMENT_STATISTICS_H
#define LEATI_IMAGE_AUGMENT_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "leat/picture.h"

enum { LEATI_WHITENING_MOST_VALUES = 4096 };

/* Is told the share that is done, from 0 to 1. */
typedef struct leati_share_report {
    void (*call)(void *user, double share); /* NULL: nobody is told */
    void *user;
} leati_share_report;

/* Sets augment->first_statistic.  Errors: LEAT_EINVAL the order of the steps that take statistics. */
leat_status leati_statistics_check(leat_augment *augment, leat_error *err);

/* Returns true if numbers are missing that have to be computed of the training data. */
bool leati_statistics_missing(const leat_augment *augment);
bool leati_statistics_whitens(const leat_augment *augment);

/* Returns the number of values, and of channels, of the pictures for leati_moments_add. */
int64_t leati_statistics_values(const leat_augment *augment);
int64_t leati_statistics_channels(const leat_augment *augment);

/* Writes what the numbers depend on, besides the pictures: their size, and the steps before. */
void leati_statistics_key(const leat_augment *augment, leati_text *out);

/* The sums of the channels of one picture. */
typedef struct leati_channel_sums {
    double sum[4], square[4];
} leati_channel_sums;

/* Computes the sums of a picture, (height, width, channels). */
leati_channel_sums leati_channel_sums_of(const float *picture, int64_t values, int64_t channels);

/* Sums over the pictures of a data set. */
typedef struct leati_moments {
    int64_t values, channels, samples;
    leati_channel_sums channel;
    double *sums;     /* (values), if there is whitening */
    double *products; /* (values, values), the lower triangle, if there is whitening */
} leati_moments;

leat_status leati_moments_init(leati_moments *out, const leat_augment *augment, leat_error *err);
void leati_moments_fini(leati_moments *moments);

/* Adds row `i` of the products, of `count` pictures; the rows may be added by different threads. */
void leati_moments_add_row(leati_moments *moments, int64_t i, const float *pictures, int64_t count);

/* The results: what a file of statistics has. */
typedef struct leati_statistics {
    double mean[4], std[4]; /* of the channels; the standard deviations as they are before the division */
    float *whitening;       /* (values, values), for leati_free; NULL: none */
} leati_statistics;

/* Computes the statistics from the sums.  Errors: LEAT_ENOMEM; LEAT_EINVAL there is no sample. */
leat_status leati_statistics_compute(leati_statistics *out, const leat_augment *augment,
                                     const leati_moments *moments, const leati_share_report *report,
                                     leat_error *err);

/* Gives the steps the numbers that they lack; takes `whitening`. */
void leati_statistics_set(leat_augment *augment, leati_statistics *statistics);

/* Replaces a symmetric matrix, of which the lower triangle is read, by (matrix + epsilon)^(-1/2) as float32.
 * @param[in,out] matrix  (n, n), overwritten.
 * @param[out] out  (n, n).
 * Errors: LEAT_ENOMEM. */
leat_status leati_whitening_compute(double *matrix, int64_t n, double epsilon, float *out,
                                    const leati_share_report *report, leat_error *err);

#endif
