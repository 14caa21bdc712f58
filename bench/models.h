/* SPDX-License-Identifier: Apache-2.0 */
/* The models that bench_step and bench_ranks train. */
#ifndef LEAT_BENCH_MODELS_H
#define LEAT_BENCH_MODELS_H

#include "leat/leat.h"

/* Makes and compiles a model with one input and one output: mlp, lstm, cnn or least, for Adam, or that of a file, whose
 * name contains a dot, for SGD with momentum.  shape (at least 4 numbers) and *rank describe one sample of the input.
 * metrics may be NULL.  The caller owns the model. */
leat_status bench_model(leat_model **model, const char *name, const char *metrics, int64_t *shape, int *rank,
                        leat_error *err);

/* Returns numbers from 0 to 1, which the caller frees; NULL without memory. */
float *bench_random_numbers(size_t count);

#endif
