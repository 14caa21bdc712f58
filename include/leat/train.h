/* SPDX-License-Identifier: Apache-2.0 */
/* Training, evaluation and prediction: fit_generator, evaluate_generator and predict_generator of Keras 2.3.1,
 * their forms for arrays, and the calls for one batch.  docs/differences-from-keras.md lists deliberate
 * differences. */
#ifndef LEAT_TRAIN_H
#define LEAT_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/callback.h"
#include "leat/checkpoint.h"
#include "leat/dist.h"
#include "leat/error.h"
#include "leat/feed.h"
#include "leat/model.h"
#include "leat/sequence.h"
#include "leat/source.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The verdict of a fit: the time for which training waited for data, and the time that it computed.  Times are
 *  in ns, summed over the steps of all epochs.  Later versions may add members at the end. */
typedef struct leat_verdict {
    int64_t steps;            /* number of training steps */
    int64_t wall_ns;          /* wall time of the steps: data, compute and callbacks, but not validation */
    int64_t data_wait_ns;     /* time for which the trainer waited for batches */
    int64_t compute_ns;       /* time of the steps themselves, without copy_wait_ns */
    int64_t get_mean_ns;      /* mean time of a worker for one batch */
    int workers;              /* number of workers */
    bool use_multiprocessing; /* true if workers were processes */
    bool generator;           /* true if the data was a generator, which has a single worker */
    /* true if get spent most of its time waiting for something other than a core, such as a disk */
    bool get_waits;
    int threads; /* number of compute threads */
    /* number of cores that this process may use, by its affinity and the quota of its control group */
    int cores;
    /* Memory in bytes: the peak of the process (getrusage's ru_maxrss, without worker processes); the part of it
     * for the model with its gradients and the optimizer's state; the part for activations and the memory of
     * kernels. */
    int64_t peak_rss_bytes, model_bytes, activation_bytes;
    /* The verdict in words, a few sentences.  If all steps together took less than 100 ms, the text says that
     * there is no verdict. */
    char text[768];
    /* The number of ranks, 0 for one process.  With several ranks, times in ns of this fit: communication_ns of the
     * sums of gradients; exposed_ns of communication that made the steps longer, since it was not hidden behind
     * compute; late_ns of the waits of the other ranks for `latest_rank`, for which they waited longest. */
    int ranks, latest_rank;
    int64_t communication_ns, exposed_ns, late_ns;
    bool on_device; /* true if the model computes on a GPU, or chooses by "auto" */
    int64_t
        copy_wait_ns; /* time for which the GPU waited in the steps for copies of batches of 64 KiB or more */
} leat_verdict;

/** Returns the number of values that training and evaluation report (model.metrics_names): "loss", then for
 *  several outputs the loss of each ("y_loss"), then the metrics, in Keras's order.  0 if the model is not
 *  compiled. */
LEAT_API int leat_model_metric_count(const leat_model *model);

/** Gives the name of value number `index` of model.metrics_names.
 *  @param[out] out  Room for LEAT_LOG_NAME_BYTES bytes; "" on failure.  Errors: LEAT_EINVAL the index is out of
 *  range. */
LEAT_API LEAT_CHECKED leat_status leat_model_metric_name(const leat_model *model, int index, char *out,
                                                         leat_error *err);

/** The history of a fit, like keras.callbacks.History.  Opaque.  Threads: immutable; destroy it when no thread
 *  uses it. */
typedef struct leat_history leat_history;

/** The number of series, and the name of a series ("loss", "accuracy", "val_loss", "lr", ...), in the order of
 *  their first appearance.  A name belongs to the history and is valid until leat_history_destroy. */
LEAT_API int leat_history_count(const leat_history *history);
LEAT_API const char *leat_history_name(const leat_history *history, int index);

/** Returns the values of the series with this name, *count numbers; NULL, and 0 in *count, if there is no such
 *  series.  The memory belongs to the history and is valid until leat_history_destroy.  As in Keras, an epoch
 *  without validation adds no value to val_*. */
LEAT_API const double *leat_history_values(const leat_history *history, const char *name, int *count);

/** Returns the epochs, from 0, to which the values of leat_history_values belong, *count numbers; NULL, and 0 in
 *  *count, if there is no such series.  The memory belongs to the history and is valid until leat_history_destroy. */
LEAT_API const int64_t *leat_history_epochs(const leat_history *history, const char *name, int *count);

/** Gives the history as JSON, {"state": ..., "configuration": {...}, "epoch": [...], "history": {"loss": [...], ...},
 *  "verdict": {...}, "feed": {...}, "timeline": {...}, "lanes": {...}}, which docs/formats/history.md describes.
 *  @param[out] out  A string for leat_string_free; NULL on failure.  Errors: LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_history_json(const leat_history *history, char **out, leat_error *err);

/** Fills the `size` bytes of *out with the verdict on the whole training, and with zeros for members that this
 *  version of leat does not know.
 *  @param size  sizeof *out. */
LEAT_API void leat_history_verdict_into(const leat_history *history, leat_verdict *out, size_t size);
/** Like leat_history_verdict_into, but returns the verdict by value. */
static inline leat_verdict leat_history_verdict(const leat_history *history) {
    leat_verdict verdict;
    leat_history_verdict_into(history, &verdict, sizeof verdict);
    return verdict;
}

/** Fills the `size` bytes of *out with the measurements of the feed of the training data: percentiles of waiting
 *  and of get, and the numbers of failures.
 *  @param size  sizeof *out. */
LEAT_API void leat_history_feed_stats_into(const leat_history *history, leat_feed_stats *out, size_t size);
/** Like leat_history_feed_stats_into, but returns the measurements by value. */
static inline leat_feed_stats leat_history_feed_stats(const leat_history *history) {
    leat_feed_stats stats;
    leat_history_feed_stats_into(history, &stats, sizeof stats);
    return stats;
}

/** Returns the history so far of the fit that calls a hook, with its verdict and measurements up to now; NULL if an
 *  evaluation or a prediction calls the hook.  The epoch that has just ended is added after on_epoch_end of all
 *  callbacks.  The history belongs to the fit and is valid during the call of the hook.
 *  Threads: the thread that calls the hook. */
LEAT_API const leat_history *leat_training_history(const leat_training *training);

/** Destroys a history and sets *history to NULL; NULL is fine. */
LEAT_API void leat_history_destroy(leat_history **history);

/** The weight of a class in the training loss.  Frozen, since callers pass C arrays of this struct. */
typedef struct leat_class_weight {
    int64_t class_index; /* number of the class, from 0 */
    double weight;       /* factor of the loss of its samples */
} leat_class_weight;

/** The weights of the classes of one output of a model, like an entry of Keras 2.3.1's class_weight={'name': {...}}.
 *  Frozen, since callers pass C arrays of this struct. */
typedef struct leat_output_class_weight {
    const char *output;               /* name of the output (leat_model_output_name) */
    const leat_class_weight *weights; /* `count` weights, as in leat_fit_options.class_weight */
    int count;
    int unused; /* 0; the struct has no padding at its end */
} leat_output_class_weight;

/** The arguments of fit_generator, with Keras's names and defaults.  All pointers are borrowed for the call. */
typedef struct leat_fit_options {
    size_t size;    /* sizeof the struct, set by leat_fit_options_init */
    int64_t epochs; /* the number of the last epoch, not of epochs; default 1 */
    /* The number of the first epoch, from 0; default 0.  The stream of a sequence then continues where epoch
     * initial_epoch - 1 with the same seed ended; a generator continues from its current position. */
    int64_t initial_epoch;
    /* 0 (default): an epoch is a pass; its length is read again after each pass.  Otherwise an epoch has this
     * number of steps, and passes may end within epochs.  Required for generators and infinite sequences. */
    int64_t steps_per_epoch;
    /* 1 (default): a progress bar; 2: one line per epoch (leat_progbar_logger_create); both also send messages to
     * the log (leat/log.h).  0: neither. */
    int verbose;
    /* called in this order, after the progress bar; default NULL: none */
    leat_callback *const *callbacks;
    int callback_count;
    /* The validation data; NULL (default): none.  It has a feed of its own.  Each validation begins at index 0 of
     * a sequence; a generator continues from its current position. */
    const leat_sequence *validation;
    /* batches of a validation; 0 (default): the sequence's length.  Required for generators and infinite
     * sequences */
    int64_t validation_steps;
    int64_t validation_freq; /* number of epochs between validations; default 1 */
    /* instead of validation_freq: validate after these epochs, counted from 1; default NULL */
    const int64_t *validation_epochs;
    int validation_epoch_count;
    /* Weights of classes; NULL (default): none.  Requires a model with one output (output_class_weights is for
     * several), whose targets are class numbers or one-hot, of rank 1 or 2.  Lists each class of the data once, with a
     * finite weight, and no class that the output does not have.  A class that is not listed is an error as in Keras
     * 2.3.1; with the arithmetic of current Keras its weight is 1. */
    const leat_class_weight *class_weight;
    int class_weight_count;
    int max_queue_size; /* batches made ahead of the one in use; default 10 */
    /* bytes for the batches of each feed, instead of max_queue_size; 0 (default): use max_queue_size */
    size_t feed_memory;
    int workers; /* number of workers; 0: the caller makes batches between the steps; default 1 */
    bool use_multiprocessing; /* default false */
    /* compute threads; 0 (default): all cores, since workers sleep while the ring is full */
    int threads;
    leat_shuffle shuffle;   /* default LEAT_SHUFFLE_AUTO; validation data is never shuffled */
    int64_t shuffle_window; /* for LEAT_SHUFFLE_WINDOW and LEAT_SHUFFLE_BLOCKS, as in leat_feed_options */
    uint64_t seed;          /* seed of shuffling, of the batches' random numbers, and of dropout; default 0 */
    leat_faults faults;     /* limits for failures; default: a bad batch ends training */
    leat_trace *trace;      /* default NULL: none */
    /* Checkpoints of the whole fit, from which a later fit continues; default NULL: none.  A request to stop
     * (leat_model_stop_training) then suspends the fit: it writes a checkpoint, and on_epoch_end is not called for
     * the unfinished epoch. */
    const leat_checkpoint_options *checkpoints;
    /* number of training steps between validations inside epochs, besides those at the ends of epochs; 0 (default):
     * none.  Their results are a part of the history of their own, which leat_history_json writes. */
    int64_t validation_every;
    /* Weights of classes by output; NULL (default): none.  Outputs that are not listed have none.  Instead of
     * class_weight. */
    const leat_output_class_weight *output_class_weights;
    int output_class_weight_count;
    /* number of workers of the validation data; 0 (default): as for the training data; -1: none, the caller makes its
     * batches */
    int validation_workers;
    /* Several processes train together (leat/dist.h, docs/distributed.md); default NULL: this process alone.  Each rank
     * calls fit with the same model, data and options, and computes its share of each batch.  Callbacks, messages and
     * checkpoints belong to rank 0; all ranks end with the same weights and history. */
    leat_dist *dist;
    /* 1: with several ranks, every BatchNormalization computes the statistics of the whole batch, as with
     * `synchronized` in Keras 3; 0 (default): only layers with `synchronized` do */
    int sync_batch_norm;
    int bf16_gradients; /* 1: gradients travel between ranks as bfloat16, in half of the bytes; default 0 */
    /* 1: with several ranks, each rank keeps the optimizer's slots for its share of the weights only, and updates this
     * share; the numbers are the same.  Rank 0 has all slots for checkpoints, for hooks that are not of batches, and
     * after fit; the other ranks do not.  Default 0.  (64 bits, because the struct has no padding at its end.) */
    int64_t shard_optimizer;
} leat_fit_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_fit_options_init(leat_fit_options *options, size_t size);
/** Returns the default options. */
static inline leat_fit_options leat_fit_options_default(void) {
    leat_fit_options options;
    leat_fit_options_init(&options, sizeof options);
    return options;
}

/** Trains the model on a sequence, like model.fit_generator.  The model must be compiled.
 *  @param options  NULL: the defaults.
 *  @param[out] history  NULL allowed; owned by the caller (leat_history_destroy).  Set whenever an epoch was finished,
 *  even on failure.
 *
 *  If a generator ends before its steps, training ends with the current epoch without an error;
 *  leat_training_stop_reason says why.  After a failure the model has the weights of the last complete step.
 *  After LEAT_ETIMEOUT the message may say that worker threads are still in `get`: the sequence and the model
 *  must exist until these calls return.
 *  Errors: LEAT_EINVAL an option, the model is not compiled, or a generator gives no batch; LEAT_ESHAPE the
 *  batches of the sequence do not fit the model; the errors of the sequence, of callbacks and of the feed, with
 *  the epoch and the batch in front of the message; LEAT_ENOMEM.
 *  Threads: a call on the model; any thread may call leat_model_stop_training meanwhile. */
LEAT_API LEAT_CHECKED leat_status leat_model_fit_generator(leat_model *model, const leat_sequence *sequence,
                                                           const leat_fit_options *options,
                                                           leat_history **history, leat_error *err);

/** Checks that the model can be trained on batches of this specification, without making a batch: what
 *  leat_model_fit_generator checks first.
 *  Errors: LEAT_EINVAL the model is not compiled, or the data has too few or too many tensors, or only some with the
 *  model's names; LEAT_ESHAPE the shape of samples; LEAT_EDTYPE; LEAT_ENOTSUP.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_check_data(const leat_model *model, const leat_batch_spec *spec,
                                                        leat_error *err);

/** Trains the model on arrays in memory, like model.fit(x, y, sample_weight, batch_size), and shuffles the samples.
 *  @param batch_size  0: the batch size of the model's input, or 32 if the input has none.  A stateful model
 *  (leat_model_reset_states) accepts only batches of its input's batch size.
 *  @param options  NULL: the defaults.
 *  @param[out] history  NULL allowed; as in leat_model_fit_generator.
 *  Errors: as in leat_model_fit_generator and leat_arrays_open.  Threads: as in leat_model_fit_generator. */
LEAT_API LEAT_CHECKED leat_status leat_model_fit(leat_model *model, const leat_arrays *arrays,
                                                 int64_t batch_size, const leat_fit_options *options,
                                                 leat_history **history, leat_error *err);

/** The arguments of evaluate_generator and predict_generator.  All pointers are borrowed for the call. */
typedef struct leat_evaluate_options {
    size_t size; /* sizeof the struct, set by leat_evaluate_options_init */
    /* number of batches; 0 (default): the sequence's length.  Required for generators and infinite sequences */
    int64_t steps;
    int verbose; /* as in leat_fit_options; default 0 */
    /* called in this order, after the progress bar; default NULL: none */
    leat_callback *const *callbacks;
    int callback_count;
    int max_queue_size;       /* batches made ahead of the one in use; default 10 */
    size_t feed_memory;       /* as in leat_fit_options */
    int workers;              /* number of workers; 0: the caller makes batches; default 1 */
    bool use_multiprocessing; /* default false */
    int threads;              /* as in leat_fit_options */
    uint64_t seed;            /* seed of the batches' random numbers; default 0 */
    /* limits for failures; default: a bad batch is an error.  The results do not contain skipped batches */
    leat_faults faults;
    leat_trace *trace; /* default NULL: none */
    /* Several processes compute together, as in leat_fit_options; default NULL: this process alone.  Each rank
     * computes a part of each batch, and all ranks return the whole result.  Callbacks are called on rank 0. */
    leat_dist *dist;
} leat_evaluate_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_evaluate_options_init(leat_evaluate_options *options, size_t size);
/** Returns the default options. */
static inline leat_evaluate_options leat_evaluate_options_default(void) {
    leat_evaluate_options options;
    leat_evaluate_options_init(&options, sizeof options);
    return options;
}

/** Compute the loss and metrics over all samples of a sequence, like model.evaluate_generator, or of arrays, like
 *  model.evaluate.  If a generator ends early, the result is for the samples that it gave.
 *  `batch_size` is as in leat_model_fit.
 *  @param options  NULL: the defaults.
 *  @param[out] logs  The results, with the names of History; empty on failure.
 *  Errors: as in leat_model_fit_generator; LEAT_ESTOPPED after leat_model_stop_training.  Threads: a call on the
 *  model. */
LEAT_API LEAT_CHECKED leat_status leat_model_evaluate_generator(leat_model *model,
                                                                const leat_sequence *sequence,
                                                                const leat_evaluate_options *options,
                                                                leat_logs *logs, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_evaluate(leat_model *model, const leat_arrays *arrays,
                                                      int64_t batch_size,
                                                      const leat_evaluate_options *options, leat_logs *logs,
                                                      leat_error *err);

/** Predictions: one tensor for each output of the model, with the samples along the first dimension, in the order
 *  of the data.  Opaque.  Predictions remain valid after the model is destroyed.  Threads: immutable; destroy them
 *  when no thread uses them. */
typedef struct leat_predictions leat_predictions;

/** Returns the number of tensors: one for each output of the model. */
LEAT_API int leat_predictions_count(const leat_predictions *predictions);

/** Returns a view of the predictions of an output.  The memory is valid until leat_predictions_destroy.  If the
 *  index is out of range, the view is zeroed. */
LEAT_API leat_tensor leat_predictions_get(const leat_predictions *predictions, int output);
/** Like leat_predictions_get, but writes through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL the
 *  index. */
LEAT_API LEAT_CHECKED leat_status leat_predictions_get_into(const leat_predictions *predictions, int output,
                                                            leat_tensor *out, leat_error *err);

/** Destroys predictions and sets *predictions to NULL; NULL is fine. */
LEAT_API void leat_predictions_destroy(leat_predictions **predictions);

/** Predict for a sequence, like model.predict_generator, or for arrays, like model.predict.  Targets and sample
 *  weights are ignored.  `batch_size` is as in leat_model_fit.
 *  @param options  NULL: the defaults.
 *  @param[out] out  New predictions, owned by the caller (leat_predictions_destroy); NULL on failure.
 *  Errors: as in leat_model_evaluate_generator; LEAT_ESHAPE the predictions of batches differ in shape.
 *  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_predict_generator(leat_model *model,
                                                               const leat_sequence *sequence,
                                                               const leat_evaluate_options *options,
                                                               leat_predictions **out, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_predict(leat_model *model, const leat_arrays *arrays,
                                                     int64_t batch_size, const leat_evaluate_options *options,
                                                     leat_predictions **out, leat_error *err);

/** Like leat_model_predict and leat_model_predict_generator, but write the predictions into the caller's memory.
 *  @param outputs  One tensor for each output of the model: float32, with the samples along the first dimension.
 *  On input shape[0] is the number of samples that there is room for; on success it becomes the number of
 *  predicted samples.  The other dimensions are those of the prediction.  If `data` is NULL, this output is not
 *  written.
 *  Errors: as in the functions without _into; LEAT_EINVAL outputs is NULL; LEAT_EDTYPE, LEAT_ESHAPE the memory
 *  has another type or shape, or no room for all samples.  After a failure the shapes are unchanged and the
 *  content of the memory is unspecified.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_predict_into(leat_model *model, const leat_arrays *arrays,
                                                          int64_t batch_size,
                                                          const leat_evaluate_options *options,
                                                          leat_tensor *outputs, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_predict_generator_into(leat_model *model,
                                                                    const leat_sequence *sequence,
                                                                    const leat_evaluate_options *options,
                                                                    leat_tensor *outputs, leat_error *err);

/** Train or evaluate on one batch, which has all samples of the arrays, like model.train_on_batch and
 *  model.test_on_batch.  Arrays that are not contiguous or not aligned are copied first, into memory that belongs
 *  to the model.
 *  @param[out] logs  NULL allowed; the loss and metrics of this batch.
 *  Errors: LEAT_EINVAL the model is not compiled, an array is missing, or a target is out of range; LEAT_ESHAPE
 *  the arrays do not fit the model; LEAT_EDTYPE unknown data type; LEAT_ENOTSUP an op is not supported;
 *  LEAT_ENOMEM; those that a layer reports for its input.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_train_on_batch(leat_model *model, const leat_arrays *arrays,
                                                            leat_logs *logs, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_test_on_batch(leat_model *model, const leat_arrays *arrays,
                                                           leat_logs *logs, leat_error *err);

/** The arguments of leat_model_train_on_batch_using and leat_model_test_on_batch_using.  All pointers are borrowed for
 *  the call. */
typedef struct leat_on_batch_options {
    size_t size; /* sizeof the struct, set by leat_on_batch_options_init */
    /* As in leat_fit_options; leat_model_test_on_batch_using does not accept weights of classes, like Keras. */
    const leat_class_weight *class_weight;
    const leat_output_class_weight *output_class_weights;
    int class_weight_count;
    int output_class_weight_count;
    /* true (default): after this call the metrics begin anew.  false: the next call continues them, as in Keras 2.3.1:
     * metrics accumulate over the calls since the last reset, `loss` is that of the batch, and the losses of several
     * outputs are means over batches.  With the arithmetic of current Keras all losses are means over the samples.
     * leat_model_fit, leat_model_evaluate, compiling and leat_model_reset_metrics begin anew, too. */
    bool reset_metrics;
    int unused; /* 0; the struct has no padding at its end */
} leat_on_batch_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_on_batch_options_init(leat_on_batch_options *options, size_t size);
/** Returns the default options. */
static inline leat_on_batch_options leat_on_batch_options_default(void) {
    leat_on_batch_options options;
    leat_on_batch_options_init(&options, sizeof options);
    return options;
}

/** Like leat_model_train_on_batch and leat_model_test_on_batch, but with options.
 *  @param options  NULL: the defaults.
 *  Errors: as in leat_model_train_on_batch, and LEAT_EINVAL an option.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_train_on_batch_using(leat_model *model,
                                                                  const leat_arrays *arrays,
                                                                  const leat_on_batch_options *options,
                                                                  leat_logs *logs, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_test_on_batch_using(leat_model *model, const leat_arrays *arrays,
                                                                 const leat_on_batch_options *options,
                                                                 leat_logs *logs, leat_error *err);

/** Sets the metrics that calls with leat_on_batch_options.reset_metrics false have accumulated to their beginning, like
 *  model.reset_metrics(). */
LEAT_API void leat_model_reset_metrics(leat_model *model);

/** Predicts for one batch, like model.predict_on_batch.  Targets and sample weights are ignored.
 *  @param[out] outputs  Room for one tensor for each output of the model; receives views.  Their memory belongs to
 *  the model and is valid until the next call that computes with the model, compiles, changes or destroys it.  If
 *  an output of the model is one of its inputs, the view shows the caller's array.
 *  Errors: as in leat_model_train_on_batch, but the model need not be compiled.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_predict_on_batch(leat_model *model, const leat_arrays *arrays,
                                                              leat_tensor *outputs, leat_error *err);
/** Like leat_model_predict_on_batch, but writes into the caller's memory: `outputs` as in leat_model_predict_into.
 *  Errors: as in leat_model_predict_on_batch and leat_model_predict_into.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_predict_on_batch_into(leat_model *model,
                                                                   const leat_arrays *arrays,
                                                                   leat_tensor *outputs, leat_error *err);

/** Chooses where the model computes: "cpu", "cuda" or "cuda:<number>" (an NVIDIA GPU; "cuda" is the first one, and the
 *  processes that mpirun or srun has started on a host take its GPUs in turn), or "auto".
 *  The initial value is "cpu", unless the environment has another one in LEAT_DEVICE.  On a GPU, weights,
 *  gradients, the optimizer's state and activations are in the GPU's memory, and each batch is copied there.  With
 *  "auto", leat measures each kind of step (training, test or prediction, by batch size) on the CPU and on the first
 *  GPU when that step is needed first, uses the faster place, and logs both times (LEAT_LOG_INFO); without a GPU it
 *  logs why.  Predictors stay on the CPU.  The results differ from the CPU's by rounding.  While the caller has a view
 *  of the weights (leat_model_weight), they are copied before and after each step.
 *  Errors: LEAT_EINVAL the name is not one of these; LEAT_ENOTSUP this build, or this machine, does not have the
 *  device: the message says which library or driver is missing; LEAT_ENOMEM; LEAT_EIO the GPU failed.  The model then
 *  stays where it was.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_set_device(leat_model *model, const char *name, leat_error *err);

/** Returns where the model computes: "cpu", "auto" or "cuda:<number>"; "cpu" before the first call that needs a device.
 *  NULL if `model` is NULL.  The text belongs to the model and is valid until the next leat_model_set_device. */
LEAT_API const char *leat_model_device(const leat_model *model);

/** Sets the number of compute threads of the functions for one batch; initially all cores. */
LEAT_API void leat_model_set_threads(leat_model *model, int threads);

/** Switches gradient checkpointing on or off (Chen et al., "Training deep nets with sublinear memory cost",
 *  2016); initially off.  With it a training step keeps only some activations and computes the others again when
 *  gradients need them: it uses less memory, takes up to one more forward pass of time, and gives the same
 *  numbers.  leat_model_plan_summary shows the memory.  Do not call it during a fit. */
LEAT_API void leat_model_set_gradient_checkpointing(leat_model *model, bool on);

/** Switches deterministic computation on or off; initially off.  With it results are the same bytes for any
 *  number of compute threads: ops split their work into a fixed number of parts, and ops that oneDNN splits by
 *  threads run on one thread.  It holds for one kind of processor and one version of leat and of oneDNN.
 *  Existing predictors keep the setting that they were created with.  Do not call it during a fit. */
LEAT_API void leat_model_set_deterministic(leat_model *model, bool on);

/** Allows TF32 on a GPU, or forbids it; initially forbidden.  With it dense products and convolutions of float32 that
 *  cuBLASLt and cuDNN compute read their numbers with 10 bits of mantissa instead of 23, so that the tensor cores
 *  multiply them: faster, with relative errors of about 5e-4 in each product.  Sums, weights and all other ops stay
 *  float32.  It has no effect on the CPU, on layers that compute in bfloat16, and on a GPU before Ampere, for which
 *  the log says so (LEAT_LOG_WARNING).  Results stay the same bytes in each run.  Do not call it during a fit. */
LEAT_API void leat_model_set_tf32(leat_model *model, bool on);

/** Switches folding of BatchNormalization on or off; initially on.  With it predictions and evaluations merge a
 *  BatchNormalization that follows a convolution, whose output nothing else reads, into the weights and bias of
 *  the convolution, once for each version of the weights.  This rounds the weights once more, by about 1e-7 of
 *  each.  Existing predictors keep the setting that they were created with.  Do not call it during a fit. */
LEAT_API void leat_model_set_folding(leat_model *model, bool on);

/** The way in which leat chooses the kernel and the number of threads for a large matrix product or a convolution. */
typedef enum leat_tuning {
    LEAT_TUNE_OFF,   /**< by fixed rules: a function of the CPU and the shapes */
    LEAT_TUNE_KNOWN, /**< the fastest one by the tuning cache, otherwise by fixed rules */
    /** like LEAT_TUNE_KNOWN, but shapes that are not in the tuning cache are measured when a batch with them
     *  begins: for 50 ms for each op or two runs of each candidate, 10 s for all */
    LEAT_TUNE_MEASURE
} leat_tuning;

/** Sets the tuning; initially LEAT_TUNE_OFF.  The tuning cache is in the folder $LEAT_CACHE_DIR (nowhere if this
 *  is empty), $XDG_CACHE_HOME/leat or ~/.cache/leat, by CPU, versions, threads and shapes.  Tuning changes
 *  results by rounding at most.  A deterministic model is never tuned.  Existing predictors keep the setting that
 *  they were created with.  Do not call it during a fit. */
LEAT_API void leat_model_set_tuning(leat_model *model, leat_tuning tuning);

/** Receives the progress of a long operation: `share` grows from 0 at its beginning to 1 at its end. */
typedef void (*leat_progress)(void *user, double share);

/** Sets the function that leat calls while it measures kernels (LEAT_TUNE_MEASURE) or ops
 *  (leat_model_plan_summary with `time`), on the thread that measures.  Existing predictors keep the function
 *  that they were created with.  Do not call it during a fit.
 *  @param watch  NULL (initial): none.
 *  @param user  Passed to `watch`; borrowed until the next call of this function. */
LEAT_API void leat_model_set_measuring_progress(leat_model *model, leat_progress watch, void *user);

/** Options of leat_model_plan_summary. */
typedef struct leat_plan_options {
    size_t size;        /* sizeof the struct, set by leat_plan_options_init */
    int64_t batch_size; /* samples of the batch; default 32 */
    /* the size used for each None in an input's shape, except the batch size; default 32 */
    int64_t unknown;
    /* true: a training step, for which the model must be compiled; false (default): a prediction */
    bool train;
    bool time;   /* true: each op is measured on random data, and the model is unchanged; default false */
    bool json;   /* true: JSON; false (default): a table for people */
    int threads; /* compute threads; 0 (default): all cores */
} leat_plan_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_plan_options_init(leat_plan_options *options, size_t size);
/** Returns the default options. */
static inline leat_plan_options leat_plan_options_default(void) {
    leat_plan_options options;
    leat_plan_options_init(&options, sizeof options);
    return options;
}

/** Describes how a prediction or a training step is computed: for each op its layer, its shapes, its
 *  implementation and memory layout, bytes, copies between layouts and, with the option `time`, its share of the
 *  time.
 *  @param options  NULL: the defaults.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL the model is not compiled, or an option; LEAT_ENOTSUP an op has no implementation;
 *  LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_plan_summary(leat_model *model, const leat_plan_options *options,
                                                          char **out, leat_error *err);

/** Asks a running fit, evaluation or prediction to stop after the current batch.  A fit then ends in order:
 *  on_train_end is called and the history is kept; an epoch whose validation was stopped has no val_* values.  An
 *  evaluation or a prediction returns LEAT_ESTOPPED.  If none is running, the function does nothing.
 *  Threads: any thread and any signal handler. */
LEAT_API void leat_model_stop_training(leat_model *model);

#ifdef __cplusplus
}
#endif
#endif
