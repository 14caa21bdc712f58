/* SPDX-License-Identifier: Apache-2.0 */
/* Small models and data for the tests of training. */
#ifndef LEAT_TESTS_TRAIN_SUPPORT_H
#define LEAT_TESTS_TRAIN_SUPPORT_H

#include "leat/train.h"

/* Dense(8, tanh) and Dense(3, softmax) on 4 inputs, compiled with Adam(0.01), categorical crossentropy and accuracy;
 * weights from this seed. */
leat_model *make_classifier(uint64_t seed);

/* Dense(1) without bias on 1 input, its weight 0, compiled with SGD(lr) and mean squared error. */
leat_model *make_line(double lr);

/* Points in three clusters, one-hot labels: `samples` of them, the last batch short.  The points of sample i are the same
 * whatever the batch size. */
typedef struct clusters {
    int64_t samples, batch_size;
    int64_t fail_at; /* batch whose get fails; -1: none */
    int64_t nan_at;  /* batch that holds a NaN; -1: none */
    bool weighted;   /* sample weights too */
    bool noisy;      /* adds noise from the batch's rng */
    int64_t hooked;  /* on_epoch_end calls */
} clusters;

clusters clusters_of(int64_t samples, int64_t batch_size);
leat_sequence clusters_sequence(clusters *data);

/* Hash of all weights. */
uint64_t weights_hash(const leat_model *model);

#endif
