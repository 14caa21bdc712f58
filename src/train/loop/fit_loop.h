/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one fit: fit.c opens and closes it, epochs.c runs the epochs, validation.c runs the validation.
 * Room: train. */
#ifndef LEATI_TRAIN_LOOP_FIT_LOOP_H
#define LEATI_TRAIN_LOOP_FIT_LOOP_H

#include "base/os/clock.h"
#include "train/history/history.h"
#include "train/hooks/training.h"
#include "train/loop/fit_checkpoint.h"
#include "train/loop/fit_parallel.h"
#include "train/loop/runner.h"
#include "train/parallel/traces.h"

/* Where a feed is: its next batch, and the number of batches taken since the beginning of the fit, for a generator. */
typedef struct leati_fit_feed {
    leat_feed_position at;
    int64_t taken;
} leati_fit_feed;

/* Allocated on the heap, since the names in the logs make the struct large. */
struct leati_fit_loop {
    leat_training training;
    leat_model *model;
    const leat_fit_options *options; /* &read_options */
    leat_fit_options read_options;   /* the caller's options, copied into this version's struct */
    leat_sequence train_sequence, validation_sequence;
    leati_runner train, validation;
    leati_parallel parallel; /* with options->dist */
    leati_traces traces;     /* the same */
    leati_meter meter, validation_meter;
    leat_history *history;
    /* The logs of the current hooks: 9 KB each, too large for a small stack. */
    leat_logs run_logs, epoch_logs, step_logs;
    int64_t wall_ns;        /* wall time of the training steps of all finished epochs */
    int64_t steps_began_ns; /* the time when the training steps of the current epoch began; 0 outside them */
    /* The time when the feeds were open, and the core time used until then; 0 if unknown. */
    int64_t start_ns, start_cores_ns;
    int epoch_lane;    /* in options->trace */
    leati_cores cores; /* the cores at the start of the fit */
    bool validating;
    /* A hook has started the validation of a fit with checkpoints: a request to stop does not end it early, since a fit
     * cannot be suspended inside a hook. */
    bool validating_whole;
    /* A request to stop ended a validation early, so that its feed is in the middle of a pass. */
    bool validation_interrupted;
    bool validation_missed;     /* a request to stop ended or prevented the validation of the epoch */
    bool validation_ended;      /* the generator of validation data has ended */
    bool validation_end_logged; /* the log already says that the generator has ended */
    int64_t validated;          /* steps done in the current or last validation */
    leati_fit_position position;
    leati_fit_checkpoints checkpoints;
    bool steps_missed;         /* a request to stop ended an epoch before its last step */
    bool failed_between_steps; /* the failure that ends the fit came while it waited for a batch */
    bool resumed;              /* the fit continues from a checkpoint */
    /* Where the feed of training data was opened, and where the feed of validation data was when the last validation
     * began, or when it was opened. */
    leati_fit_feed train_start, validation_start;
    void *states_before; /* states of the layers when the last validation began; NULL: not needed */
};

/* Runs all epochs, from on_train_begin to on_train_end. */
leat_status leati_fit_run(leati_fit_loop *loop, leat_error *err);

/* Brings verdict and measurements of loop->history up to date.  `loop` is a leati_fit_loop. */
void leati_fit_measure(void *loop);

/* Implements leat_training's validate: runs one pass of the validation data, or validation_steps steps of a
 * generator. */
leat_status leati_fit_validate_in_hook(leat_training *training, leat_logs *logs, leat_error *err);
/* Validates after this epoch if validation is due, and adds val_* to the logs. */
leat_status leati_fit_validate_epoch(leati_fit_loop *loop, int64_t epoch, leat_logs *logs, leat_error *err);
/* Validates inside an epoch if position.validation_due says so.  The results go to the history's validations. */
leat_status leati_fit_validate_inside(leati_fit_loop *loop, leat_error *err);
/* Logs warnings about the last validation.  To be called after the progress bar has ended its line. */
void leati_fit_log_validation(leati_fit_loop *loop);

#endif
