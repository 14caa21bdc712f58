/* SPDX-License-Identifier: Apache-2.0 */
/* Steps whose batch is cut into parts, which the ranks of a run compute: gradients, losses and metrics of the parts are
 * added up, and every rank makes the same update (decision 0702).  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_PARALLEL_H
#define LEATI_TRAIN_PARALLEL_PARALLEL_H

#include "dist/dist.h"
#include "leat/trace.h"
#include "train/parallel/buckets.h"
#include "train/parallel/exchanges.h"
#include "train/parallel/rows.h"
#include "train/parallel/shards.h"
#include "train/parallel/totals.h"
#include "train/parallel/tree.h"
#include "train/parallel/values.h"
#include "train/parallel/whole_metrics.h"
#include "train/step/binding.h"
#include "train/step/meter.h"
#include "train/step/predictions.h"
#include "train/step/trainer.h"

/* The number of parts of a batch of a deterministic model, whatever the number of ranks. */
enum { LEATI_PARALLEL_PARTS = 8 };

/* The times of a rank, in ns, summed over the training steps. */
typedef struct leati_rank_times {
    double data, compute; /* its wait for batches, and the computation of its parts */
    double
        late; /* the time by which it was later than the rank before it in the order of being ready: the other
                  * ranks waited that long for this rank */
} leati_rank_times;

typedef struct leati_parallel {
    leat_dist *dist; /* borrowed */
    leat_model *model;
    bool deterministic;
    int parts;      /* of each batch: LEATI_PARALLEL_PARTS, otherwise one for each rank */
    int first, end; /* the parts of this rank */
    int64_t width;  /* doubles of the measures of one part */
    /* Measures of the parts of this rank and of all ranks, each behind the head of the rank (parallel.c); then their
     * sums. */
    double *mine, *all, *sums;
    leati_rank_times *times; /* (ranks) */
    int64_t exposed_ns,
        busy_ns;         /* time of communication in training steps: not hidden behind compute, and all */
    leati_values values; /* what the ranks add up */
    leati_rows rows[LEATI_PROGRAM_MAX_OUTPUTS]; /* of a prediction, by output */
    leati_rows states;                          /* of stateful layers, by sample */
    leati_tree tree;                            /* sums of gradients, of a deterministic model */
    leati_buckets buckets;                      /* sums of gradients, of other models */
    leati_batch_totals totals;                  /* sums over the batch that its losses need */
    leati_whole_metrics whole;                  /* metrics that are computed from whole batches */
    leati_norms norms;                          /* which normalizations are synchronized */
    leati_exchanges exchanges;                  /* of synchronized normalizations */
    bool knows_exchanges, exchanges_in_steps;   /* after the first training step: its plan has exchanges */
    size_t written;           /* floats of values.moving, after the first training step of several ranks */
    leati_dist_request mixed; /* their sum over the ranks */
    bool knows_rows;          /* model->weights.has_rows is that of rows_version, the model's version */
    uint64_t rows_version;
    leati_dist_request row_sums; /* the sum of LEATI_SLAB_ROWS over the ranks */
    leati_shards shards;         /* the optimizer's slots, with options->shards */
    uint64_t *synced_version; /* borrowed: as leat_training has it; it follows the weights that shards join */
    bool *requested;          /* borrowed: leat_model_stop_training was called on a rank; set by each batch */
    leat_trace *trace;        /* of a fit, borrowed; NULL: none */
} leati_parallel;

/* A batch, and how to run its parts. */
typedef struct leati_parallel_batch {
    leati_trainer *trainer;
    leati_binding *binding;
    const leat_batch
        *batch;          /* the samples of the whole batch that this rank has: at least those of its parts */
    int64_t whole, from; /* samples of the whole batch; the place of this rank's first sample in it */
    leat_status taken; /* LEAT_OK, or why this rank has no batch, with the message in the `err` of the call */
    int threads;
    uint64_t seed;
    int64_t waited_ns; /* time for which this rank has waited for the batch */
    /* Says in the message of a failure which sample caused the failure, if that is known.  first: the sample of
     * `batch` with which the part begins. */
    leat_status (*name_sample)(const void *user, leat_status status, int64_t first, leat_error *err);
    const void *user;
} leati_parallel_batch;

/* Options of a fit for its ranks. */
typedef struct leati_parallel_options {
    bool joins_norms; /* all normalizations are synchronized, not only those with `synchronized` */
    bool bf16;        /* gradients travel as bfloat16 */
    bool shards;      /* the optimizer's slots are spread over the ranks */
} leati_parallel_options;

/* Checks that several ranks can run the model in this mode.  leati_parallel_fini also frees what a failure leaves.
 * Errors: LEAT_ENOTSUP the device "auto", a GPU with options->shards, or a deterministic model with more than
 * LEATI_PARALLEL_PARTS ranks or with options->bf16; LEAT_EIO the GPU failed; LEAT_ENOMEM. */
leat_status leati_parallel_init(leati_parallel *parallel, leat_dist *dist, leat_model *model, leati_mode mode,
                                const leati_parallel_options *options, leat_error *err);
void leati_parallel_fini(leati_parallel *parallel);

/* Computes the batch, and in train mode updates the weights.  All ranks return the
 * same.  parallel->sums and parallel->whole are then for leati_meter_add_sums.
 * Errors: those of the step, in the words of the first rank that failed; those of the communicator. */
leat_status leati_parallel_run(leati_parallel *parallel, const leati_parallel_batch *batch, leat_error *err);

/* Predicts the batch, and appends the predictions of all its samples on every rank.  Errors: as leati_parallel_run;
 * LEAT_ESHAPE the outputs have no sample for each sample of the inputs. */
leat_status leati_parallel_predict(leati_parallel *parallel, const leati_parallel_batch *batch,
                                   leat_predictions *predictions, leat_error *err);

/* Makes all ranks return the same: the failure of the first rank that failed, with the rank in front of the message.
 * dist NULL: one process, which returns `status`. */
leat_status leati_parallel_agree(leat_dist *dist, leat_status status, leat_error *err);
/* The same for a communicator.  *requested: this rank was asked to stop; then, whether any rank was. */
leat_status leati_parallel_agree_all(leat_dist *dist, leat_status status, bool *requested, leat_error *err);

#endif
