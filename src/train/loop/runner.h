/* SPDX-License-Identifier: Apache-2.0 */
/* A feed joined to a trainer: take a batch, run the step, give the slot back.  Training, validation, evaluation and
 * prediction are loops around it. */
#ifndef LEATI_TRAIN_LOOP_RUNNER_H
#define LEATI_TRAIN_LOOP_RUNNER_H

#include "leat/feed.h"
#include "train/loop/fixed_length.h"
#include "train/step/binding.h"
#include "train/step/meter.h"
#include "train/step/trainer.h"

/* What a loop counts by. */
typedef enum leati_pace {
    LEATI_PACE_PASS,     /* the batches of a pass: as many as it turns out to have */
    LEATI_PACE_STREAM,   /* steps, through the ends of passes */
    LEATI_PACE_GENERATOR /* steps of a generator, which may end before */
} leati_pace;

typedef struct leati_runner {
    leati_trainer *trainer;
    leati_binding binding;
    leati_fixed_length *round; /* NULL: the sequence as it is */
    leat_sequence sequence;    /* what the feed sees */
    leat_feed_options options; /* of the feed */
    leat_feed_config plan;     /* of that sequence, with these options */
    leati_pace pace;
    leat_feed *feed;
    const leat_batch *batch; /* in hand between take and run */
    int64_t size;            /* samples of the batch taken last */
    int threads;
    uint64_t seed;
    int lane; /* of options.trace */
    int64_t asked_ns, waited_ns,
        computed_ns; /* of the step in hand: when it asked for its batch, how long it waited,
                                                * how long it computed */
    int64_t wait_ns, compute_ns, steps, skips; /* since opened; skips: told of by leati_runner_skips */
} leati_runner;

typedef struct leati_runner_options {
    leati_mode mode;
    leati_pace pace;   /* PASS or STREAM; a generator is recognised */
    int64_t steps;     /* with PASS: passes of that many batches; 0: the sequence's own */
    const char *lanes; /* of the trace: the group of the loop's lane */
    const char *lane;
    const leat_class_weight *class_weight;
    int class_weight_count;
    int threads;
    leat_feed_options feed;
    leat_feed_position at;
} leati_runner_options;

/* Joins model and sequence, and plans the feed.  For leati_runner_close, also after a failure. */
leat_status leati_runner_plan(leati_runner *runner, leat_model *model, const leat_sequence *sequence,
                              const leati_runner_options *options, leat_error *err);
/* Opens the feeds of what was planned, together. */
leat_status leati_runner_open(leati_runner *const *runners, int count, leat_error *err);
/* Closes what was opened together.  Returns how many worker threads are still in `get` (leat_feed_close): their sequence,
 * and what it is seen through, must live. */
int leati_runner_close(leati_runner *const *runners, int count);
/* Puts in front of a failure's message that there are such threads, if there are. */
leat_status leati_tell_stuck(leat_status status, int stuck, leat_error *err);

/* Waits until it is known whether there is a batch for this loop: none at the end of a pass or a generator. */
leat_status leati_runner_await(leati_runner *runner, bool *more, leat_error *err);
/* The next batch, if there is one: afterwards runner->size says how large it is. */
leat_status leati_runner_take(leati_runner *runner, bool *more, leat_error *err);
/* The step on the batch in hand, whose slot goes back to the workers.  *step: what ran, for its outputs. */
leat_status leati_runner_run(leati_runner *runner, const leati_compiled_step **step, leat_error *err);

/* Batches passed over since the last call. */
int64_t leati_runner_skips(leati_runner *runner);

/* The sequence of arrays in memory; batch_size 0: that of the model's input, or Keras's 32.  For leati_arrays_close. */
leat_status leati_arrays_sequence(leat_sequence *out, const leat_model *model, const leat_arrays *arrays,
                                  int64_t batch_size, leat_error *err);
/* Destroys it; with threads still in `get`, when the model is destroyed. */
void leati_arrays_close(leat_sequence *sequence, leat_model *model, int stuck);

/* LEAT_EINVAL where steps is 0 and the sequence has no end: `option` names what is missing, `data` the sequence. */
leat_status leati_require_steps(const leat_sequence *sequence, int64_t steps, const char *option,
                                const char *data, leat_error *err);

/* Compute threads when the caller names none: all cores, since workers sleep while the ring is full. */
int leati_threads_or_default(int threads);

#endif
