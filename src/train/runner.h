/* SPDX-License-Identifier: Apache-2.0 */
/* A feed joined to a trainer: take a batch, run the step, give the slot back.  Training, validation, evaluation and
 * prediction are loops around it. */
#ifndef LEATI_TRAIN_RUNNER_H
#define LEATI_TRAIN_RUNNER_H

#include "leat/feed.h"
#include "train/binding.h"
#include "train/meter.h"
#include "train/trainer.h"

/* A sequence seen through a fixed number of steps: each pass is steps long, starts at index 0, and goes round where the
 * sequence is shorter. */
typedef struct leati_window_sequence {
    const leat_sequence *inner;
    int64_t steps;
} leati_window_sequence;

typedef struct leati_runner {
    leati_trainer *trainer;
    leati_binding binding;
    leati_window_sequence window;
    leat_feed *feed;
    const leat_batch *batch; /* in hand between take and give */
    int64_t size;            /* samples of the batch taken last */
    int threads;
    uint64_t seed;
    int64_t wait_ns, compute_ns, steps; /* since opened */
} leati_runner;

typedef struct leati_runner_options {
    leati_mode mode;
    int64_t steps; /* > 0: passes of that many batches; 0: the sequence's own */
    const leat_class_weight *class_weight;
    int class_weight_count;
    int threads;
    leat_feed_options feed;
} leati_runner_options;

leat_status leati_runner_open(leati_runner *runner, leat_model *model, const leat_sequence *sequence,
                              const leati_runner_options *options, leat_error *err);
void leati_runner_close(leati_runner *runner);

/* The next batch: afterwards runner->size says how large it is. */
leat_status leati_runner_take(leati_runner *runner, leat_error *err);
/* The step on the batch in hand, whose slot goes back to the workers.  *step: what ran, for its outputs. */
leat_status leati_runner_run(leati_runner *runner, const leati_compiled_step **step, leat_error *err);

/* The sequence of arrays in memory; batch_size 0: Keras's 32.  For leat_sequence_destroy. */
leat_status leati_arrays_sequence(leat_sequence *out, const leat_arrays *arrays, int64_t batch_size,
                                  leat_error *err);

/* Compute threads when the caller names none: all cores, since workers sleep while the ring is full. */
int leati_threads_or_default(int threads);

#endif
