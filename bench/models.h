/* SPDX-License-Identifier: Apache-2.0 */
/* The models that bench_step, bench_predict and bench_ranks measure. */
#ifndef LEAT_BENCH_MODELS_H
#define LEAT_BENCH_MODELS_H

#include "leat/leat.h"

/* A sample of a model's only input, and what its targets are. */
typedef struct bench_sample {
    int64_t shape[4];
    int rank;
    int64_t words;    /* the input is int32_t, below this number; 0: it is float */
    bool labels;      /* targets are numbers of classes; otherwise they are like the outputs */
    const char *loss; /* what the caller wants for a file that has no loss; NULL: categorical_crossentropy */
} bench_sample;

/* Makes and compiles a model with one input and one output, for Adam, or that of a file, whose name contains a dot: as
 * the file says, which then has a sparse crossentropy, or for SGD with momentum.  metrics may be NULL.  The caller owns
 * the model.
 *     empty      4 numbers passed through
 *     least      4 numbers to 4
 *     mlp        64-128-128-4
 *     cnn        28x28x1: conv32, conv64, pool, dense 128, 10
 *     lstm, gru, rnn, bilstm   64 steps of 8 features, 64 units (bilstm: twice), 4 outputs
 *     convlstm   8 pictures of 32x32x4, 16 filters 3x3
 *     conv1d     128 steps of 16 features, two conv64 of 5, max
 *     embedding  64 words of 100,000, 64 numbers each, their mean */
leat_status bench_model(leat_model **model, const char *name, const char *metrics, bench_sample *sample,
                        leat_error *err);

/* Returns numbers from 0 to 1, which the caller frees; NULL without memory. */
float *bench_random_numbers(size_t count);

/* Returns `count` numbers or words for samples of the input, which the caller frees; NULL without memory. */
void *bench_random_inputs(const bench_sample *sample, size_t count);

/* Returns the time in ns: that of the clock on the wall, or the CPU time of the process. */
double bench_now_ns(bool cpu);

/* Returns the largest memory of the process so far, in MiB. */
double bench_peak_mib(void);

#endif
