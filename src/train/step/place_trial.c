/* SPDX-License-Identifier: Apache-2.0 */
/* Decides by the times of iterations where the steps of a fit run.  Room: train. */
#include "train/step/place_trial.h"

/* A turn lasts at least so long, since the time of one iteration varies. */
enum { least_ns = 50000000 };

static const bool turn_is_on_host[LEATI_TRIAL_TURNS] = {false, true, true, false};

static void begin_turn(leati_place_trial *trial, int64_t queue) {
    trial->on_host = turn_is_on_host[trial->turn];
    trial->steps = trial->ns = 0;
    trial->left_out = queue + 1; /* the first step in a place also copies the weights there */
}

void leati_place_trial_begin(leati_place_trial *trial, int64_t queue) {
    begin_turn(trial, queue);
}

void leati_place_trial_go_on(leati_place_trial *trial) {
    if (trial->left_out < 1) trial->left_out = 1;
}

double leati_place_trial_mean(const leati_place_trial *trial, bool on_host) {
    double sum = 0;
    for (int i = 0; i < LEATI_TRIAL_TURNS; ++i)
        if (turn_is_on_host[i] == on_host) sum += trial->mean_ns[i];
    return 2 * sum / LEATI_TRIAL_TURNS;
}

bool leati_place_trial_add(leati_place_trial *trial, int64_t queue, int64_t ns) {
    if (trial->decided) return false;
    if (trial->left_out > 0) {
        --trial->left_out;
        return false;
    }
    ++trial->steps;
    trial->ns += ns;
    if (trial->steps < LEATI_TRIAL_STEPS || trial->ns < least_ns) return false;
    trial->mean_ns[trial->turn] = (double)trial->ns / (double)trial->steps;
    if (++trial->turn < LEATI_TRIAL_TURNS) {
        begin_turn(trial, queue);
        return false;
    }
    trial->decided = true;
    trial->on_host = leati_place_trial_mean(trial, true) <= leati_place_trial_mean(trial, false);
    return true;
}
