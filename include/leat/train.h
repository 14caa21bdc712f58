/* SPDX-License-Identifier: Apache-2.0 */
/* Training, evaluation and prediction: Keras 2.3.1's fit_generator, evaluate_generator, predict_generator, their array
 * forms, and the calls for one batch.  docs/differences-from-keras.md says where leat is right and Keras was not. */
#ifndef LEAT_TRAIN_H
#define LEAT_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/callback.h"
#include "leat/error.h"
#include "leat/feed.h"
#include "leat/model.h"
#include "leat/sequence.h"
#include "leat/source.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether training waited for data or for compute.  Times in ns, over the steps of all epochs.  Later versions may add
 *  members at the end. */
typedef struct leat_verdict {
    int64_t steps;
    int64_t wall_ns;      /* of the training steps: data, compute, callbacks; validation is not in it */
    int64_t data_wait_ns; /* the trainer waited for a batch */
    int64_t compute_ns;   /* the step itself */
    int64_t get_mean_ns;  /* a worker's time for one batch */
    int workers;
    bool use_multiprocessing;
    bool generator; /* the data was one, which a single worker owns */
    bool get_waits; /* get waited for something else than a core, a disk say, most of its time */
    int threads;    /* that computed */
    int cores;      /* that this process may use: by affinity and by the quota of its control group */
    /* Memory in bytes: the most that the process had (getrusage's ru_maxrss; worker processes are not in it), and of it the
     * model with its gradients and the optimizer's state, and activations with what kernels need besides. */
    int64_t peak_rss_bytes, model_bytes, activation_bytes;
    /* The verdict in words, a few sentences.  Steps that took less than 100 ms in all are not judged: the text says so. */
    char text[768];
} leat_verdict;

/** model.metrics_names: the names of the values that training and evaluation report, in Keras's order: "loss", with several
 *  outputs the loss of each ("y_loss"), then the metrics.  The count is 0 for a model that is not compiled. */
LEAT_API int leat_model_metric_count(const leat_model *model);

/** One of these names.
 *  @param[out] out  Room for LEAT_LOG_NAME_BYTES bytes; "" on failure.  Errors: LEAT_EINVAL the index. */
LEAT_API LEAT_CHECKED leat_status leat_model_metric_name(const leat_model *model, int index, char *out,
                                                         leat_error *err);

/** What fit returns: keras.callbacks.History.  Opaque, immutable once returned. */
typedef struct leat_history leat_history;

/** What these functions return as a pointer belongs to the history, until leat_history_destroy.
 *  Names of the series ("loss", "accuracy", "val_loss", "lr", ...), in the order of their first appearance. */
LEAT_API int leat_history_count(const leat_history *history);
LEAT_API const char *leat_history_name(const leat_history *history, int index);

/** A series by name: *count values, borrowed; NULL and 0 where there is none.  An epoch without validation adds no value
 *  to val_*, as in Keras. */
LEAT_API const double *leat_history_values(const leat_history *history, const char *name, int *count);

/** {"epoch": [...], "history": {"loss": [...], ...}, "verdict": {...}, "feed": {...}, "timeline": {...}, "lanes": {...}}, as
 *  docs/formats/history.md has it: a string for leat_string_free. */
LEAT_API LEAT_CHECKED leat_status leat_history_json(const leat_history *history, char **out, leat_error *err);

/** Fills the `size` bytes of *out with the verdict on the whole training, and with zeros where this version of leat has no
 *  such member.
 *  @param size  sizeof *out. */
LEAT_API void leat_history_verdict_into(const leat_history *history, leat_verdict *out, size_t size);
/** leat_history_verdict_into by value. */
static inline leat_verdict leat_history_verdict(const leat_history *history) {
    leat_verdict verdict;
    leat_history_verdict_into(history, &verdict, sizeof verdict);
    return verdict;
}

/** Fills the `size` bytes of *out with what the feed of the training data measured: how waiting and get were spread, and what
 *  went wrong.
 *  @param size  sizeof *out. */
LEAT_API void leat_history_feed_stats_into(const leat_history *history, leat_feed_stats *out, size_t size);
/** leat_history_feed_stats_into by value. */
static inline leat_feed_stats leat_history_feed_stats(const leat_history *history) {
    leat_feed_stats stats;
    leat_history_feed_stats_into(history, &stats, sizeof stats);
    return stats;
}

/** NULL is fine; sets *history to NULL. */
LEAT_API void leat_history_destroy(leat_history **history);

/** The weight of a class in the training loss.  Frozen, since weights are given as an array. */
typedef struct leat_class_weight {
    int64_t class_index;
    double weight;
} leat_class_weight;

/** The arguments of fit_generator, with Keras's names and defaults.  What points somewhere is borrowed for the call. */
typedef struct leat_fit_options {
    size_t size;    /* sizeof the struct, set by leat_fit_options_init */
    int64_t epochs; /* default 1: the number of the last epoch, not how many */
    /* Default 0.  Epoch k goes on in the stream where epoch k - 1 of the same seed ended; a generator where it stands. */
    int64_t initial_epoch;
    /* 0 (default): an epoch is a pass, its length read anew after each.  Otherwise the stream goes on through the ends of
     * passes.  Required for generators and infinite sequences. */
    int64_t steps_per_epoch;
    /* Default 1: a progress bar; 2: a line per epoch (leat_progbar_logger_create); both send messages to the log (leat/log.h).
     * 0: neither. */
    int verbose;
    leat_callback *const *callbacks; /* called after the progress bar's, in order */
    int callback_count;
    /* NULL (default): none.  Has a feed of its own.  A sequence starts at index 0 at each validation, a generator goes on
     * where it was. */
    const leat_sequence *validation;
    int64_t validation_steps; /* 0 (default): the sequence's length.  Required where steps_per_epoch is */
    int64_t validation_freq;  /* default 1: every so many epochs */
    const int64_t *validation_epochs; /* instead of validation_freq: after these epochs (counted from 1) */
    int validation_epoch_count;
    /* NULL: none.  Needs one output with classes.  Lists each class of the data once, with a finite weight, and no class that
     * the output does not have. */
    const leat_class_weight *class_weight;
    int class_weight_count;
    int max_queue_size; /* default 10 */
    size_t feed_memory; /* bytes for each feed's batches, instead of max_queue_size; 0 (default): no limit */
    int workers;        /* default 1; 0: batches are made between the steps */
    bool use_multiprocessing; /* default false */
    int threads; /* to compute with; 0 (default): all cores, since workers sleep while the ring is full */
    leat_shuffle shuffle;   /* default LEAT_SHUFFLE_AUTO; validation is never shuffled */
    int64_t shuffle_window; /* of LEAT_SHUFFLE_WINDOW */
    uint64_t seed;          /* default 0: of shuffling, of the batches' random numbers, of dropout */
    leat_faults faults;     /* default: a bad batch ends training */
    leat_trace *trace;      /* default NULL: none */
} leat_fit_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_fit_options_init(leat_fit_options *options, size_t size);
/** The defaults by value. */
static inline leat_fit_options leat_fit_options_default(void) {
    leat_fit_options options;
    leat_fit_options_init(&options, sizeof options);
    return options;
}

/** model.fit_generator.  The model must be compiled.  options NULL: the defaults.
 *  @param[out] history  NULL allowed; for leat_history_destroy.  Set whenever an epoch was finished, also on failure.
 *  A generator that ends before its steps ends training, with the epoch in hand: no error, the reason is in
 *  leat_training_stop_reason.
 *  Errors: LEAT_EINVAL an option, a model that is not compiled, a generator without any batch; LEAT_ESHAPE a sequence
 *  whose batches do not fit the model; what the sequence, a callback or the feed reports, with epoch and batch in front.
 *  After a failure the model holds the weights of the last finished step.  After LEAT_ETIMEOUT the message may say that
 *  worker threads are still in `get`: sequence and model must live until they return.
 *  Threads: externally synchronised per model; leat_model_stop_training from any thread. */
LEAT_API LEAT_CHECKED leat_status leat_model_fit_generator(leat_model *model, const leat_sequence *sequence,
                                                           const leat_fit_options *options,
                                                           leat_history **history, leat_error *err);

/** model.fit(x, y, sample_weight, batch_size): arrays in memory, samples shuffled.  batch_size 0: that of the model's
 *  input, or 32.  options NULL: the defaults.  A stateful model (leat_model_reset_states) takes batches of that size alone.
 *  @param[out] history  NULL allowed; as in leat_model_fit_generator.
 *  Errors, threads: as leat_model_fit_generator. */
LEAT_API LEAT_CHECKED leat_status leat_model_fit(leat_model *model, const leat_arrays *arrays,
                                                 int64_t batch_size, const leat_fit_options *options,
                                                 leat_history **history, leat_error *err);

/** The arguments of evaluate_generator and predict_generator. */
typedef struct leat_evaluate_options {
    size_t size;   /* sizeof the struct, set by leat_evaluate_options_init */
    int64_t steps; /* 0 (default): the sequence's length.  Required for generators and infinite sequences */
    int verbose;   /* as in leat_fit_options; default 0 */
    leat_callback *const *callbacks;
    int callback_count;
    int max_queue_size;       /* default 10 */
    size_t feed_memory;       /* as in leat_fit_options */
    int workers;              /* default 1 */
    bool use_multiprocessing; /* default false */
    int threads;              /* as in leat_fit_options */
    uint64_t seed;            /* default 0 */
    leat_faults faults; /* default: a bad batch is an error; one passed over is missing from the results */
    leat_trace *trace;  /* default NULL: none */
} leat_evaluate_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_evaluate_options_init(leat_evaluate_options *options, size_t size);
/** The defaults by value. */
static inline leat_evaluate_options leat_evaluate_options_default(void) {
    leat_evaluate_options options;
    leat_evaluate_options_init(&options, sizeof options);
    return options;
}

/** model.evaluate_generator: loss and metrics, exact over all samples, in logs (names as in History; empty on failure).
 *  options NULL: the defaults.  A generator that ends early: over what there was.
 *  @param[out] logs  In the caller's memory.
 *  Errors: as leat_model_fit_generator; LEAT_ESTOPPED after leat_model_stop_training. */
LEAT_API LEAT_CHECKED leat_status leat_model_evaluate_generator(leat_model *model,
                                                                const leat_sequence *sequence,
                                                                const leat_evaluate_options *options,
                                                                leat_logs *logs, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_evaluate(leat_model *model, const leat_arrays *arrays,
                                                      int64_t batch_size,
                                                      const leat_evaluate_options *options, leat_logs *logs,
                                                      leat_error *err);

/** Predictions: one tensor per output of the model, samples along the first axis, in the order of the data.  The memory of the
 *  tensors belongs to the predictions, until leat_predictions_destroy; it does not depend on the model. */
typedef struct leat_predictions leat_predictions;
LEAT_API int leat_predictions_count(const leat_predictions *predictions);
LEAT_API leat_tensor leat_predictions_get(const leat_predictions *predictions, int output);
/** leat_predictions_get through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL the index. */
LEAT_API LEAT_CHECKED leat_status leat_predictions_get_into(const leat_predictions *predictions, int output,
                                                            leat_tensor *out, leat_error *err);
LEAT_API void leat_predictions_destroy(leat_predictions **predictions);

/** model.predict_generator.  Targets and sample weights of the sequence are ignored.  options NULL: the defaults.
 *  @param[out] out  For leat_predictions_destroy; NULL on failure.  Errors: as leat_model_evaluate_generator; LEAT_ESHAPE
 *  batches whose predictions differ in shape. */
LEAT_API LEAT_CHECKED leat_status leat_model_predict_generator(leat_model *model,
                                                               const leat_sequence *sequence,
                                                               const leat_evaluate_options *options,
                                                               leat_predictions **out, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_predict(leat_model *model, const leat_arrays *arrays,
                                                     int64_t batch_size, const leat_evaluate_options *options,
                                                     leat_predictions **out, leat_error *err);

/** leat_model_predict and leat_model_predict_generator into the caller's memory; the result is not allocated.
 *  @param outputs  One tensor per output of the model: float32, with the samples along the first axis.  shape[0] is the number
 *  of samples that there is room for, and becomes the number of samples that were predicted; the other dimensions are those
 *  of the prediction.  data NULL: this output is not wanted.
 *  Errors: as the forms without _into; LEAT_EINVAL outputs is NULL; LEAT_EDTYPE, LEAT_ESHAPE memory of another type or
 *  shape, or for too few samples.  After a failure, shapes are unchanged and the memory's content is unspecified.
 *  Threads: externally synchronised per model. */
LEAT_API LEAT_CHECKED leat_status leat_model_predict_into(leat_model *model, const leat_arrays *arrays,
                                                          int64_t batch_size,
                                                          const leat_evaluate_options *options,
                                                          leat_tensor *outputs, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_predict_generator_into(leat_model *model,
                                                                    const leat_sequence *sequence,
                                                                    const leat_evaluate_options *options,
                                                                    leat_tensor *outputs, leat_error *err);

/** One step on one batch: all samples of the arrays.  Arrays that are not contiguous and aligned are copied first, into memory
 *  that the model keeps.  logs (NULL allowed) receives this batch's loss and metrics. */
LEAT_API LEAT_CHECKED leat_status leat_model_train_on_batch(leat_model *model, const leat_arrays *arrays,
                                                            leat_logs *logs, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_test_on_batch(leat_model *model, const leat_arrays *arrays,
                                                           leat_logs *logs, leat_error *err);

/** outputs[i] (one per output of the model) receives a view.  Its memory belongs to the model and is valid until the next call
 *  that computes with the model, compiles, changes or destroys it.  Where an output of the model is an input, the view is of
 *  the caller's own array. */
LEAT_API LEAT_CHECKED leat_status leat_model_predict_on_batch(leat_model *model, const leat_arrays *arrays,
                                                              leat_tensor *outputs, leat_error *err);
/** The same into the caller's memory: outputs and errors as in leat_model_predict_into. */
LEAT_API LEAT_CHECKED leat_status leat_model_predict_on_batch_into(leat_model *model,
                                                                   const leat_arrays *arrays,
                                                                   leat_tensor *outputs, leat_error *err);

/** Compute threads of the calls for one batch, from now on; default: all cores. */
LEAT_API void leat_model_set_threads(leat_model *model, int threads);

/** Gradient checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016), off at first: a training
 *  step keeps some activations and computes the rest again where gradients need them.  Less memory, up to one more forward
 *  pass of time, the same numbers.  leat_model_plan_summary tells of the memory.  Not while a fit runs. */
LEAT_API void leat_model_set_gradient_checkpointing(leat_model *model, bool on);

/** The same bytes for any number of compute threads, off at first: work is cut into a fixed number of parts, whoever does
 *  them, and what oneDNN cuts by threads runs on one.  Holds on one kind of processor with one version of leat and of oneDNN.
 *  Predictors are as it was when they were made.  Not while a fit runs. */
LEAT_API void leat_model_set_deterministic(leat_model *model, bool on);

/** Folding, on at first: a prediction or an evaluation makes each BatchNormalization behind a convolution, where nothing else
 *  reads that, part of the convolution's weights and bias, once for each version of the weights.  That rounds the weights
 *  once more, by 1e-7 of each.  Off: every BatchNormalization is computed by itself, on the convolution's output.
 *  Predictors are as it was when they were made.  Not while a fit runs. */
LEAT_API void leat_model_set_folding(leat_model *model, bool on);

/** Which kernel, with how many threads, serves a large product of matrices or a convolution. */
typedef enum leat_tuning {
    LEAT_TUNE_OFF,   /**< the one that rules say: a function of the CPU and the shapes */
    LEAT_TUNE_KNOWN, /**< the one that was fastest when it was measured on such a machine, where it was */
    LEAT_TUNE_MEASURE /**< the same, and what is not known is measured where a batch of new shapes begins: 50 ms for
                           each op or two runs of each candidate, 10 s for all */
} leat_tuning;

/** LEAT_TUNE_OFF at first.  What was measured is kept in $LEAT_CACHE_DIR (nowhere where that is empty), $XDG_CACHE_HOME/leat or
 *  ~/.cache/leat, by CPU, versions, threads and shapes.  Results differ by rounding at most; those of a deterministic model,
 *  which is never tuned, not at all.  Predictors are as it was when they were made.  Not while a fit runs. */
LEAT_API void leat_model_set_tuning(leat_model *model, leat_tuning tuning);

/** How far something is that keeps its caller waiting for seconds: `share` grows from 0, at its beginning, to 1, at its end. */
typedef void (*leat_progress)(void *user, double share);

/** While kernels are measured (LEAT_TUNE_MEASURE), or ops (leat_model_plan_summary with `time`), calls watch(user, ...) on the
 *  thread that measures.  NULL, as at first: nobody watches.  `user` is borrowed until another takes its place.  Predictors
 *  are as it was when they were made.  Not while a fit runs. */
LEAT_API void leat_model_set_measuring_progress(leat_model *model, leat_progress watch, void *user);

/** What leat_model_plan_summary tells of. */
typedef struct leat_plan_options {
    size_t size;        /* sizeof the struct, set by leat_plan_options_init */
    int64_t batch_size; /* default 32 */
    int64_t unknown;    /* default 32: what counts for a None of an input's shape beside the batch */
    bool train; /* default false: a prediction; true: a training step, for which the model must be compiled */
    bool time; /* default false; true: measures each op on made-up data.  The model is as before afterwards */
    bool json; /* default false: a table for people */
    int threads; /* to compute with; 0 (default): all cores */
} leat_plan_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_plan_options_init(leat_plan_options *options, size_t size);
/** The defaults by value. */
static inline leat_plan_options leat_plan_options_default(void) {
    leat_plan_options options;
    leat_plan_options_init(&options, sizeof options);
    return options;
}

/** How a prediction or a training step is computed: for each op the layer that it comes from, shapes, which
 *  implementation serves it in which layout, bytes, copies between layouts, with `time` its share of the time.
 *  options NULL: the defaults.  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_EINVAL a model that is not compiled, an option; LEAT_ENOTSUP an op that nothing serves; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_plan_summary(leat_model *model, const leat_plan_options *options,
                                                          char **out, leat_error *err);

/** Asks a running fit, evaluate or predict to end after the batch in hand, with everything in order (on_train_end runs,
 *  History is kept, an epoch whose validation it ends has no val_*; evaluate and predict return LEAT_ESTOPPED).  Without
 *  one running it does nothing.  Safe in a signal handler and from any thread. */
LEAT_API void leat_model_stop_training(leat_model *model);

#ifdef __cplusplus
}
#endif
#endif
