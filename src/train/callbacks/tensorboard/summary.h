/* SPDX-License-Identifier: Apache-2.0 */
/* Events of scalars and histograms, in the form in which current TensorFlow writes them.  Room: train. */
#ifndef LEATI_TRAIN_TENSORBOARD_SUMMARY_H
#define LEATI_TRAIN_TENSORBOARD_SUMMARY_H

#include "train/callbacks/tensorboard/event_file.h"

/* Writes a number, which is rounded to float32, as tf.summary.scalar does.  Errors: those of leati_event_end. */
leat_status leati_event_scalar(leati_event_file *file, const char *tag, double value, int64_t step,
                               leat_error *err);

/* Writes the distribution of numbers in 30 buckets, as tf.summary.histogram does; NaN and infinite numbers are not
 * counted.  Errors: those of leati_event_end. */
leat_status leati_event_histogram(leati_event_file *file, const char *tag, const float *values, int64_t count,
                                  int64_t step, leat_error *err);

/* A bucket of a histogram: the numbers from `left` to `right`. */
typedef struct leati_bucket {
    double left, right, count;
} leati_bucket;

/* Counts the finite numbers in 30 buckets of equal width between their minimum and their maximum.  As in TensorFlow,
 * equal numbers are all in the last bucket, and without numbers all buckets are zeros. */
enum { LEATI_BUCKETS = 30 };
void leati_histogram(leati_bucket out[LEATI_BUCKETS], const float *values, int64_t count);

#endif
