/* SPDX-License-Identifier: Apache-2.0 */
/* A golden case of a whole fit (tests/golden/keras-2.3.1/loops/), replayed: Keras's model, weights, data, arguments and
 * callbacks. */
#ifndef LEAT_TESTS_TRAIN_LOOP_CASE_H
#define LEAT_TESTS_TRAIN_LOOP_CASE_H

#include "leat/train.h"
#include "support/golden.h"

#define LOOP_MAX_BATCHES   16
#define LOOP_MAX_ARRAYS    4
#define LOOP_MAX_CALLBACKS 4
#define LOOP_MAX_LIST      16

/* Samples, and the batches in which Keras received them: batch i is samples starts[i] to starts[i + 1]. */
typedef struct loop_data {
    leat_array arrays[3][LOOP_MAX_ARRAYS]; /* indexed by leat_batch_part; in the memory of the case's file */
    int32_t counts[3];
    int64_t batches, starts[LOOP_MAX_BATCHES + 1];
} loop_data;

/* LearningRateScheduler's argument: a rate for each epoch, or a factor for the current rate. */
typedef struct loop_schedule {
    double rates[LOOP_MAX_LIST], factor;
} loop_schedule;

typedef struct loop_case {
    golden g;
    leat_model *model;
    loop_data train, held_out;
    leat_callback callbacks[LOOP_MAX_CALLBACKS], *hooks[LOOP_MAX_CALLBACKS];
    loop_schedule schedule;
    char csv_path[256]; /* where CSVLogger writes */
    leat_class_weight class_weights[LOOP_MAX_LIST];
    int64_t validation_epochs[LOOP_MAX_LIST];
    leat_sequence validation;
    leat_fit_options options;
    leat_history *history;
} loop_case;

/* Loads a case and trains its model with this number of workers; a failure fails the test. */
void loop_case_run(loop_case *c, const char *name, int workers);
void loop_case_close(loop_case *c);

/* Evaluates the validation data with the current weights: with evaluate if the case calls fit, otherwise with
 * evaluate_generator. */
void loop_case_evaluate(loop_case *c, leat_logs *logs);

/* Return true if the case has validation data, and if it calls fit_generator instead of fit. */
bool loop_case_validates(const loop_case *c);
bool loop_case_generates(const loop_case *c);

#endif
