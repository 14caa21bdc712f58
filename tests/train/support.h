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

/* Like make_classifier, with dropout between the two layers. */
leat_model *make_dropout_classifier(uint64_t seed);

/* Points in three clusters, one-hot labels: `samples` of them, the last batch short.  The points of sample i are
 * the same whatever the batch size.  A batch number is -1 for none. */
typedef struct clusters {
    int64_t samples, batch_size;
    int64_t fail_at;   /* the batch whose get fails */
    int64_t skip_at;   /* the batch for which get returns LEAT_ESKIPPED */
    int64_t empty_at;  /* the batch whose get sets no sample */
    int64_t nan_at;    /* the batch with a NaN */
    bool weighted;     /* true to add sample weights */
    bool noisy;        /* adds noise from the batch's rng */
    bool infinite;     /* has no length */
    bool sampled;      /* true if get_samples is provided */
    int64_t grow;      /* samples that each on_epoch_end adds */
    int64_t fail_pass; /* the pass whose on_epoch_end fails; -1: none */
    int64_t hooked;    /* number of calls of on_epoch_end */
    int64_t ends_at;   /* for a generator: number of its batches; -1 without end */
    int64_t given;     /* batches that the generator has given */
} clusters;

clusters clusters_of(int64_t samples, int64_t batch_size);
leat_sequence clusters_sequence(clusters *data);
/* The same data from a generator, which starts again after the last batch. */
leat_sequence clusters_generator(clusters *data);

/* The calls that a callback received. */
typedef struct journal {
    int epoch_count, batch_count, test_count; /* epochs begun, batches trained, validations */
    int64_t epochs[64], steps[64];            /* for each epoch: its number, and params->steps */
    int64_t batches[512];
    bool has_val[64];      /* val_loss among the logs at the end of epoch i */
    char stop_reason[128]; /* at on_train_end; "" if training was not stopped */
} journal;
leat_callback journal_callback(journal *all);

/* Options without text output and with one compute thread. */
leat_fit_options quiet_fit(int64_t epochs);
leat_fit_options quiet_fit_with(int64_t epochs, leat_callback *const *callbacks, int count);
void expect_ok(leat_status status, const leat_error *err);
int series_count(const leat_history *history, const char *name);
double series_at(const leat_history *history, const char *name, int index);

/* Hash of all weights. */
uint64_t weights_hash(const leat_model *model);

#endif
