/* SPDX-License-Identifier: Apache-2.0 */
/* Keras's progress bar on standard error: redrawn in place on a terminal, one line per epoch elsewhere. */
#ifndef LEATI_TRAIN_PROGRESS_H
#define LEATI_TRAIN_PROGRESS_H

#include "leat/callback.h"

typedef struct leati_progress leati_progress;

/* verbose: 0 silent, 1 a bar, 2 a line per epoch. */
leat_status leati_progress_create(leati_progress **out, int verbose, leat_error *err);
void leati_progress_destroy(leati_progress **progress);

/* Callbacks that draw: of a fit (epochs), of an evaluation or a prediction (one bar).  They borrow progress. */
leat_callback leati_progress_callback(leati_progress *progress);
leat_callback leati_progress_test_callback(leati_progress *progress);
leat_callback leati_progress_predict_callback(leati_progress *progress);

#endif
