/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a fit between two steps, everything that its next byte depends on: saved to a checkpoint and loaded from
 * one.  Room: train. */
#ifndef LEATI_TRAIN_LOOP_FIT_STATE_H
#define LEATI_TRAIN_LOOP_FIT_STATE_H

#include "train/loop/fit_loop.h"

/* Empties the snapshot and saves the state of the fit to it. */
leat_status leati_fit_state_save(leati_fit_loop *loop, leati_snapshot *snapshot, leat_error *err);

/* Returns where the feed of a runner is. */
leati_fit_feed leati_fit_feed_of(const leati_runner *runner);

/* The functions that follow do nothing if the fit does not continue from a checkpoint. */

/* Loads the position, the model, the history and the sums of the epoch, and the states of the sequences and where
 * their feeds continue; called before the feeds are opened.  Errors: LEAT_EINVAL an option, the model or the data
 * differ from those of the checkpoint. */
leat_status leati_fit_state_load(leati_fit_loop *loop, leat_error *err);

/* Takes and drops the batches of generators that were delivered before the checkpoint; called after the feeds were
 * opened. */
leat_status leati_fit_state_skip(leati_fit_loop *loop, leat_error *err);

/* Loads the states of the callbacks and closes the checkpoint; called after on_train_begin. */
leat_status leati_fit_state_load_callbacks(leati_fit_loop *loop, leat_error *err);

#endif
