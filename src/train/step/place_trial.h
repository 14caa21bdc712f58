/* SPDX-License-Identifier: Apache-2.0 */
/* A trial of whole iterations for the device "auto".  Where the batches of a fit need predictions of the model that it
 * trains, the time of a step alone decides nothing: the batch may take longer than the step, and its predictions need
 * the cores that a step on the CPU takes.  So the first iterations run in both places in turns, and the place with the
 * shorter iterations stays.  Room: train. */
#ifndef LEATI_TRAIN_STEP_PLACE_TRIAL_H
#define LEATI_TRAIN_STEP_PLACE_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

/* Turns: device, host, host, device, so that what changes steadily over the trial counts for both alike. */
enum { LEATI_TRIAL_TURNS = 4, LEATI_TRIAL_STEPS = 16 };

typedef struct leati_place_trial {
    bool decided, on_host; /* on_host: of the next step, also after the decision */
    int turn;
    int64_t left_out; /* the next steps that are not counted */
    int64_t steps;    /* counted in this turn */
    int64_t ns;       /* of these steps */
    double mean_ns[LEATI_TRIAL_TURNS];
} leati_place_trial;

/* Begins the trial of a zeroed struct.  The first steps of each turn are not counted: as many as the queue of batches
 * holds, because it holds what was made beside the steps before. */
void leati_place_trial_begin(leati_place_trial *trial, int64_t queue);
/* Goes on in another fit, whose first step waits until the workers have started, and is not counted. */
void leati_place_trial_go_on(leati_place_trial *trial);

/* Adds the time of an iteration: the wait for its batch and the step.  Returns true when it decides. */
bool leati_place_trial_add(leati_place_trial *trial, int64_t queue, int64_t ns);

/* Returns the mean time of an iteration in one place; both turns must be over. */
double leati_place_trial_mean(const leati_place_trial *trial, bool on_host);

#endif
