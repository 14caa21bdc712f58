/* SPDX-License-Identifier: Apache-2.0 */
/* A runner joins a feed and a trainer: it takes a batch, runs a step on the batch, and releases the batch's slot.
 * The loops of training, validation, evaluation and prediction call it.  Room: train. */
#ifndef LEATI_TRAIN_LOOP_RUNNER_H
#define LEATI_TRAIN_LOOP_RUNNER_H

#include "leat/feed.h"
#include "train/loop/fixed_length.h"
#include "train/parallel/parallel.h"
#include "train/step/binding.h"
#include "train/step/meter.h"
#include "train/step/trainer.h"

/* Decides when a loop of steps ends. */
typedef enum leati_pace {
    LEATI_PACE_PASS,     /* at the end of a pass of the sequence */
    LEATI_PACE_STREAM,   /* after a number of steps, across the ends of passes */
    LEATI_PACE_GENERATOR /* after a number of steps of a generator, or when the generator ends */
} leati_pace;

typedef struct leati_runner {
    leati_trainer *trainer;
    leati_binding binding;
    leati_parallel *parallel;         /* borrowed; NULL: this process computes whole batches alone */
    leati_fixed_length *fixed_length; /* owned; NULL if passes have the sequence's own length */
    leat_sequence sequence;           /* the sequence that the feed reads */
    leat_feed_options options;        /* options of the feed */
    leat_feed_config config;          /* `sequence` with `options` */
    leati_pace pace;
    leat_feed *feed;
    const leat_batch *batch; /* the current batch, between leati_runner_take and leati_runner_run */
    int64_t size;            /* samples in the batch taken last, those of other ranks included */
    int64_t from;            /* the place in this batch of the first sample that this rank has */
    leat_status failed; /* of the last leati_runner_take on this rank, which another rank may not know yet */
    /* On a device: the batch whose copy to the device began during the step before; NULL: none. */
    const leat_batch *staged;
    void *pinned;      /* the feed's memory, if the device reads it directly */
    bool tries_places; /* training alone: leati_trainer_try_places */
    int threads;
    uint64_t seed;
    int lane; /* in options.trace */
    /* On a device, in options.trace: lanes of the device's computing and copying, and when a step was watched last. */
    int compute_lane, copy_lane;
    int64_t watched_ns;
    bool is_watched; /* the current step is */
    /* The current step: when it asked for its batch, how long it waited for the batch, how long the device waited for
     * the copy of the batch, and how long the rest of the step took. */
    int64_t asked_ns, waited_ns, copied_ns, computed_ns;
    /* Sums since the feed was opened; skips: the skipped batches that leati_runner_skips has returned. */
    int64_t wait_ns, copy_ns, compute_ns, steps, skips;
    int64_t taken; /* batches taken since the beginning of the fit, also by a run that was interrupted */
} leati_runner;

typedef struct leati_runner_options {
    leati_mode mode;
    leati_pace pace;   /* PASS or STREAM; for a generator the runner sets GENERATOR */
    int64_t steps;     /* with PASS: batches per pass; 0: the sequence's own length */
    const char *lanes; /* group of the loop's lane in the trace */
    const char *lane;
    leati_class_weights class_weights;
    leati_parallel *parallel; /* borrowed; NULL: none */
    int threads;
    leat_feed_options feed;
    leat_feed_position at;
} leati_runner_options;

/* Binds the sequence to the model, and prepares the feed's configuration.  leati_runner_close frees the runner,
 * also after a failure. */
leat_status leati_runner_prepare(leati_runner *runner, leat_model *model, const leat_sequence *sequence,
                                 const leati_runner_options *options, leat_error *err);
/* Opens the feeds of the prepared runners together, so that they share their workers. */
leat_status leati_runner_open(leati_runner *const *runners, int count, leat_error *err);
/* Closes the runners that were opened together.  Returns the number of worker threads that are still in `get`
 * (leat_feed_close): their sequence must not be freed, and leati_trainer_keep keeps a leati_fixed_length around
 * it. */
int leati_runner_close(leati_runner *const *runners, int count);
/* If stuck is positive, prefixes the failure's message with the number of worker threads that are still in `get`. */
leat_status leati_prefix_stuck(leat_status status, int stuck, leat_error *err);

/* Waits until it is known if this loop has another batch; *more is false at the end of a pass or of a generator. */
leat_status leati_runner_await(leati_runner *runner, bool *more, leat_error *err);
/* Takes the next batch if there is one, and sets runner->size to the number of its samples. */
leat_status leati_runner_take(leati_runner *runner, bool *more, leat_error *err);
/* Runs the step on the current batch, and releases the batch's slot to the workers.  *step is the compiled step
 * that ran, from which the caller reads the outputs; NULL if several ranks have computed the batch. */
leat_status leati_runner_run(leati_runner *runner, const leati_compiled_step **step, leat_error *err);
/* Like leati_runner_run, for a prediction by several ranks: appends the predictions of the batch. */
leat_status leati_runner_predict(leati_runner *runner, leat_predictions *predictions, leat_error *err);
/* Adds the loss and metrics of the batch that was run last to the meter.  Errors: those of leati_meter_add. */
leat_status leati_runner_measure(const leati_runner *runner, leati_meter *meter, const leat_model *model,
                                 const leati_compiled_step *step, leat_error *err);

/* Returns the number of bad batches that the feed has skipped since the last call. */
int64_t leati_runner_skips(leati_runner *runner);

/* Opens a sequence over arrays in memory, for leati_arrays_close.  If batch_size is 0, the batch size is that of
 * the model's first input, or Keras's default 32. */
leat_status leati_arrays_sequence(leat_sequence *out, const leat_model *model, const leat_arrays *arrays,
                                  int64_t batch_size, leat_error *err);
/* Destroys the sequence; if stuck threads are still in `get`, the sequence is destroyed together with the model. */
void leati_arrays_close(leat_sequence *sequence, leat_model *model, int stuck);

/* Fails with LEAT_EINVAL if steps is 0 and the sequence has no end.  For the message, `option` is the name of the
 * missing option and `data` that of the sequence. */
leat_status leati_require_steps(const leat_sequence *sequence, int64_t steps, const char *option,
                                const char *data, leat_error *err);

/* Returns `threads`, or if it is 0 the number of all cores: workers need no core of their own, since they sleep
 * while the ring is full. */
int leati_threads_or_default(int threads);
/* Returns the number of compute threads of this rank: `threads`, or if it is 0, the cores of this rank divided by the
 * ranks that share them. */
int leati_rank_threads(const leat_dist *dist, int threads);

#endif
