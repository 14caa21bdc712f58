/* SPDX-License-Identifier: Apache-2.0 */
/* All that one fit holds.  fit.c opens and closes it, epochs.c runs it, validation.c is its other half. */
#ifndef LEATI_TRAIN_LOOP_FIT_LOOP_H
#define LEATI_TRAIN_LOOP_FIT_LOOP_H

#include "base/os/clock.h"
#include "train/history/history.h"
#include "train/hooks/training.h"
#include "train/loop/runner.h"

/* On the heap: the logs' names make it large. */
typedef struct leati_fit_loop {
    leat_training training;
    leat_model *model;
    const leat_fit_options *options; /* &read_options */
    leat_fit_options read_options;   /* copies of what the caller gave, in this version's structs */
    leat_sequence train_sequence, validation_sequence;
    leati_runner train, validation;
    leati_meter meter, validation_meter;
    leat_history *history;
    leat_logs run_logs, epoch_logs,
        step_logs; /* of the hooks in hand: 9 KB each, too large for a small stack */
    int64_t steps; /* of the epoch in hand */
    int64_t wall_ns;
    int64_t begun_ns,
        begun_cores_ns; /* when the first step could begin, and core time in use until then; 0: not known */
    int epoch_lane;     /* of options->trace */
    leati_cores cores;  /* when it began */
    bool validating;
    bool validation_cut; /* a request to stop ended a validation early: its feed is in the middle of a pass */
    bool validation_over; /* its generator has ended */
    bool validation_told; /* and that was said */
    int64_t validated;    /* steps of the validation in hand or last */
} leati_fit_loop;

/* From on_train_begin to on_train_end. */
leat_status leati_fit_run(leati_fit_loop *loop, leat_error *err);

/* leat_training's validate: the validation data once, or validation_steps of its generator. */
leat_status leati_fit_validate(leat_training *training, leat_logs *logs, leat_error *err);
/* Validation after this epoch, if it is due: val_* in logs. */
leat_status leati_fit_validate_epoch(leati_fit_loop *loop, int64_t epoch, leat_logs *logs, leat_error *err);
/* What there is to say of it, once the progress bar is out of the way. */
void leati_fit_tell_validation(leati_fit_loop *loop);

#endif
