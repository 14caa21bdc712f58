/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks: structs of functions that training calls between its steps, and Keras's built-in callbacks. */
#ifndef LEAT_CALLBACK_H
#define LEAT_CALLBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/checkpoint.h"
#include "leat/error.h"
#include "leat/model.h"
#include "leat/sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of values in a leat_logs, and the size in bytes of a name, including the final zero byte. */
#define LEAT_MAX_LOGS       64
#define LEAT_LOG_NAME_BYTES 128

/** A named number, such as the loss, a metric or the learning rate ("lr").  Frozen. */
typedef struct leat_log {
    char name[LEAT_LOG_NAME_BYTES];
    double value;
} leat_log;
/** Named numbers, in the order in which they were added.  Plain data without heap memory.  Frozen. */
typedef struct leat_logs {
    int32_t count;
    leat_log items[LEAT_MAX_LOGS];
} leat_logs;

/** Gives the value with this name in *value.  Returns false, and leaves *value unchanged, if there is no such name.
 *  Threads: any. */
LEAT_API bool leat_logs_get(const leat_logs *logs, const char *name, double *value);
/** Sets the value with this name, or adds it.  A name that is too long is cut; a value beyond LEAT_MAX_LOGS is
 *  dropped. */
LEAT_API void leat_logs_set(leat_logs *logs, const char *name, double value);

/** The training, evaluation or prediction that calls a hook.  Opaque; valid during the call of the hook.
 *  Threads: externally synchronised: use it only on the thread that calls the hook. */
typedef struct leat_training leat_training;

/** Keras's callback.params.  Later versions may add members at the end. */
typedef struct leat_training_params {
    size_t size;        /* bytes of the members that the library has filled in */
    int64_t epochs;     /* number of the last epoch */
    int64_t steps;      /* steps of the current epoch */
    int64_t samples;    /* samples of an epoch, if known (arrays); otherwise 0 */
    int64_t batch_size; /* samples of a full batch */
    int verbose;        /* the option verbose */
    bool do_validation; /* true if training has validation data */
    /* true if the fit continues from a checkpoint: load_state follows on_train_begin, and a callback that writes a
     * file must keep what is there */
    bool resumed;
    /* number of names in `metrics`: loss and metrics, then the same with val_ in front if there is
     * validation */
    int metric_count;
    const char *const *metrics; /* names of the values in logs */
} leat_training_params;

/** Return the parameters of the training, and its model.  Both are borrowed and valid during the call of the hook. */
LEAT_API const leat_training_params *leat_training_params_get(const leat_training *training);
LEAT_API leat_model *leat_training_model(const leat_training *training);
/** Stops the training after the current batch, like model.stop_training = True.
 *  @param reason  A text for people, copied; NULL: "stopped".  If training is already stopping, the first reason
 *  is kept. */
LEAT_API void leat_training_stop(leat_training *training, const char *reason);
/** Returns the reason why training stops or stopped; NULL if it was not stopped. */
LEAT_API const char *leat_training_stop_reason(const leat_training *training);
/** Evaluates the validation data now, with the current weights.
 *  @param[out] logs  The loss and the metrics, without val_ in front of the names.
 *  Errors: LEAT_EINVAL the training has no validation data, or the caller is a hook of this validation; those of
 *  leat_model_evaluate_generator. */
LEAT_API LEAT_CHECKED leat_status leat_training_validate(leat_training *training, leat_logs *logs,
                                                         leat_error *err);
/** Sends a text for people to the log (leat/log.h) at level LEAT_LOG_INFO, without line breaks at its beginning
 *  and end; does nothing if the option verbose is 0.  A text of more than 2047 bytes is cut. */
LEAT_API void leat_training_write(leat_training *training, const char *format, ...) LEAT_PRINTF(2, 3);
/** Like leat_training_write, but with a finished text.  It is for languages that cannot call a function with `...`.
 *  text NULL: does nothing. */
LEAT_API void leat_training_write_text(leat_training *training, const char *text);

/** A hook of a callback.  It runs on the thread that called fit, evaluate or predict.  A failure ends training
 *  with the hook's error; the name of the hook and the index are put in front of its message.
 *  @param user  leat_callback.user.
 *  @param index  Number of the epoch or of the batch, from 0; 0 in other hooks.
 *  @param logs  At the end of a batch: batch, size, and the loss and metrics over the epoch so far.  At the end of
 *  an epoch: the loss, metrics, val_*, and values that callbacks before this one have added. */
typedef leat_status (*leat_hook)(void *user, leat_training *training, int64_t index, leat_logs *logs,
                                 leat_error *err);

/** Saves or loads the state of a callback, on the thread that called fit.  save_state runs between two steps, so it
 *  should be quick; load_state runs after on_train_begin if the fit continues from a checkpoint.  If that was written
 *  in the middle of an epoch, on_epoch_begin is not called for this epoch again.  A failure ends training. */
typedef leat_status (*leat_state_hook)(void *user, leat_training *training, leat_state *state,
                                       leat_error *err);

/** All hooks.  A hook that is NULL is not called, so that leat_callback serves as keras.callbacks.LambdaCallback.
 *  Later versions may add hooks at the end. */
#define LEAT_HOOK_LIST(X)                                                                                    \
    X(on_train_begin)                                                                                        \
    X(on_train_end)                                                                                          \
    X(on_epoch_begin)                                                                                        \
    X(on_epoch_end)                                                                                          \
    X(on_train_batch_begin)                                                                                  \
    X(on_train_batch_end)                                                                                    \
    X(on_test_begin)                                                                                         \
    X(on_test_end)                                                                                           \
    X(on_test_batch_begin)                                                                                   \
    X(on_test_batch_end)                                                                                     \
    X(on_predict_begin)                                                                                      \
    X(on_predict_end)                                                                                        \
    X(on_predict_batch_begin)                                                                                \
    X(on_predict_batch_end)

/** A callback: the functions that training calls, and the pointer that each of them receives.  Initialize it by
 *  leat_callback_default() or leat_callback_init(), or set its size:
 *  `{.size = sizeof(leat_callback), .on_epoch_end = f}`.  leat_callback_destroy frees what the callback owns.
 *  Threads: externally synchronised; hooks run on the thread that called fit, evaluate or predict. */
typedef struct leat_callback {
    size_t size;                 /* sizeof(leat_callback), set by leat_callback_init */
    void *user;                  /* passed to all functions */
    void (*destroy)(void *user); /* frees *user; called by leat_callback_destroy; may be NULL */
    /* Save and load what the callback has learnt during the fit.  NULL: nothing, so that after a resume the callback
     * begins as in a new fit. */
    leat_state_hook save_state, load_state;
#define LEAT_HOOK_MEMBER(name) leat_hook name;
    LEAT_HOOK_LIST(LEAT_HOOK_MEMBER)
#undef LEAT_HOOK_MEMBER
} leat_callback;

/** Zeroes the `size` bytes of *callback and sets callback->size.
 *  @param size  sizeof *callback.
 *  Threads: any. */
LEAT_API void leat_callback_init(leat_callback *callback, size_t size);
/** Returns a callback without hooks. */
static inline leat_callback leat_callback_default(void) {
    leat_callback callback;
    leat_callback_init(&callback, sizeof callback);
    return callback;
}

/** Calls the callback's `destroy` and zeroes the struct.  NULL and zeroed structs are allowed. */
LEAT_API void leat_callback_destroy(leat_callback *callback);

/* The functions that follow create a callback in *out.  `size` is sizeof *out.  The caller owns the callback
 * (leat_callback_destroy); it is zeroed on failure. */

/** The meaning of "better" for a monitored value. */
typedef enum leat_monitor_mode {
    LEAT_MONITOR_AUTO = 0, /* maximum if the name contains "acc", otherwise minimum */
    LEAT_MONITOR_MIN = 1,
    LEAT_MONITOR_MAX = 2
} leat_monitor_mode;

/** Options of keras.callbacks.ModelCheckpoint, which saves the model after epochs.  Files are replaced atomically. */
typedef struct leat_model_checkpoint_options {
    size_t size; /* sizeof the struct, set by leat_model_checkpoint_options_init */
    /* required; may contain {epoch:02d} (from 1) and any value of the logs, such as {val_loss:.2f}; {{ and }} are
     * braces */
    const char *filepath;
    const char *monitor; /* name of the value in the logs; default "val_loss" */
    /* save_best_only: save only if the monitored value has improved; save_weights_only: save the weights, not the whole
     * model.  Default false. */
    bool save_best_only, save_weights_only;
    leat_monitor_mode mode; /* default LEAT_MONITOR_AUTO */
    int verbose;            /* 1: a message for each file; default 0 */
    int64_t period;         /* number of epochs between files; default 1 */
} leat_model_checkpoint_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_model_checkpoint_options_init(leat_model_checkpoint_options *options, size_t size);
/** Returns the default options. */
static inline leat_model_checkpoint_options leat_model_checkpoint_options_default(void) {
    leat_model_checkpoint_options options;
    leat_model_checkpoint_options_init(&options, sizeof options);
    return options;
}
/** Creates keras.callbacks.ModelCheckpoint.
 *  @param options  Borrowed for the call; texts are copied.
 *  Errors: LEAT_EINVAL an option, or filepath is missing; LEAT_ENOMEM.  A failure of saving ends training. */
LEAT_API LEAT_CHECKED leat_status leat_model_checkpoint_create(leat_callback *out, size_t size,
                                                               const leat_model_checkpoint_options *options,
                                                               leat_error *err);

/** Options of keras.callbacks.EarlyStopping, which stops training when a value no longer improves. */
typedef struct leat_early_stopping_options {
    size_t size;               /* sizeof the struct, set by leat_early_stopping_options_init */
    const char *monitor;       /* name of the value in the logs; default "val_loss" */
    double min_delta;          /* smaller changes are no improvement; default 0 */
    int64_t patience;          /* epochs without improvement before training stops; default 0 */
    leat_monitor_mode mode;    /* default LEAT_MONITOR_AUTO */
    double baseline;           /* a value that must be improved on; default NAN: none */
    bool restore_best_weights; /* when it stops training, restore the best weights; default false */
    int verbose;               /* 1: a message when training stops; default 0 */
} leat_early_stopping_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_early_stopping_options_init(leat_early_stopping_options *options, size_t size);
/** Returns the default options. */
static inline leat_early_stopping_options leat_early_stopping_options_default(void) {
    leat_early_stopping_options options;
    leat_early_stopping_options_init(&options, sizeof options);
    return options;
}
/** Creates keras.callbacks.EarlyStopping.
 *  @param options  Borrowed for the call; texts are copied.
 *  Errors: LEAT_EINVAL an option; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_early_stopping_create(leat_callback *out, size_t size,
                                                             const leat_early_stopping_options *options,
                                                             leat_error *err);

/** Options of keras.callbacks.ReduceLROnPlateau, which reduces the learning rate when a value no longer improves. */
typedef struct leat_reduce_lr_options {
    size_t size;            /* sizeof the struct, set by leat_reduce_lr_options_init */
    const char *monitor;    /* name of the value in the logs; default "val_loss" */
    double factor;          /* factor of each reduction, between 0 and 1; default 0.1 */
    int64_t patience;       /* epochs without improvement before a reduction; default 10 */
    leat_monitor_mode mode; /* default LEAT_MONITOR_AUTO */
    int verbose;            /* 1: a message for each reduction; default 0 */
    double min_delta;       /* smaller changes are no improvement; default 1e-4 */
    int64_t cooldown;       /* epochs after a reduction that do not count for patience; default 0 */
    double min_lr;          /* lower bound of the learning rate; default 0 */
} leat_reduce_lr_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_reduce_lr_options_init(leat_reduce_lr_options *options, size_t size);
/** Returns the default options. */
static inline leat_reduce_lr_options leat_reduce_lr_options_default(void) {
    leat_reduce_lr_options options;
    leat_reduce_lr_options_init(&options, sizeof options);
    return options;
}
/** Creates keras.callbacks.ReduceLROnPlateau.
 *  @param options  Borrowed for the call; texts are copied.
 *  Errors: LEAT_EINVAL an option; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_reduce_lr_on_plateau_create(leat_callback *out, size_t size,
                                                                   const leat_reduce_lr_options *options,
                                                                   leat_error *err);

/** A schedule for leat_learning_rate_scheduler_create.
 *  @param learning_rate  The current learning rate.
 *  @return The learning rate for epoch number `epoch` (from 0). */
typedef double (*leat_schedule)(void *user, int64_t epoch, double learning_rate);
/** Creates keras.callbacks.LearningRateScheduler, which sets the learning rate to
 *  schedule(user, epoch, current learning rate) at the beginning of each epoch.
 *  @param user  Passed to `schedule`; must outlive the callback.
 *  @param verbose  1: a message for each epoch; 0: none.
 *  Errors: LEAT_EINVAL size; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_learning_rate_scheduler_create(leat_callback *out, size_t size,
                                                                      leat_schedule schedule, void *user,
                                                                      int verbose, leat_error *err);

/** Creates keras.callbacks.CSVLogger, which writes one line per epoch.  The columns are fixed before the first
 *  epoch; they include val_* if training validates, with NA in an epoch without validation.  The file is written
 *  in place, line by line; it may be a FIFO or a character device.  A name that contains the separator, a quote or
 *  a line break is quoted as by Python's csv module.
 *  @param separator  At most 7 bytes are used; separator NULL: ",".
 *  @param append  True: lines are added to an existing file, with the columns of its header.  on_train_begin fails
 *  with LEAT_EINVAL if a metric of the training has no column, and with LEAT_EFORMAT if the file has no header.
 *  Another value without a column is not written, and a warning names it; a column without a value gets NA.
 *  Errors: LEAT_EINVAL size, or separator is ""; LEAT_ENOMEM.  If writing fails, training ends with that error. */
LEAT_API LEAT_CHECKED leat_status leat_csv_logger_create(leat_callback *out, size_t size, const char *path,
                                                         const char *separator, bool append, leat_error *err);

/** Options of keras.callbacks.TensorBoard, which writes event files for TensorBoard. */
typedef struct leat_tensorboard_options {
    size_t size; /* sizeof the struct, set by leat_tensorboard_options_init */
    /* required: the folder for the runs `train` and `validation`, which is created if it does not exist */
    const char *log_dir;
    int64_t histogram_freq; /* number of epochs between histograms of the weights; default 0: no histograms */
    bool write_graph;       /* write the graph of the layers; default true */
    /* write steps per second as a scalar, by epoch and by update_freq; default false */
    bool write_steps_per_second;
    /* 0 (default): scalars by epoch, Keras's "epoch"; 1: also by batch, Keras's "batch"; N: also after every N
     * batches */
    int64_t update_freq;
    /* NULL (default): each fit writes new files.  Otherwise a text without '/' that becomes a part of the files' names:
     * a fit replaces the files with these names, unless it continues from a checkpoint */
    const char *run_id;
} leat_tensorboard_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_tensorboard_options_init(leat_tensorboard_options *options, size_t size);
/** Returns the default options. */
static inline leat_tensorboard_options leat_tensorboard_options_default(void) {
    leat_tensorboard_options options;
    leat_tensorboard_options_init(&options, sizeof options);
    return options;
}
/** Creates keras.callbacks.TensorBoard.  Each fit writes an event file for training and one for validation,
 *  with the names of values that tf.keras uses (docs/formats/tensorboard.md); a fit that continues from a
 *  checkpoint goes on in the files of the checkpoint.  Scalars by batch and of each validation are numbered by
 *  the optimizer's iterations, so that they continue when a saved model is trained further.  The callback also
 *  serves evaluations.  The files are written at the end of each epoch, and at least every two minutes.
 *  @param options  Borrowed for the call; texts are copied.
 *  Errors: LEAT_EINVAL an option, or log_dir is missing; LEAT_ENOMEM.  If writing fails, training ends with that
 *  error. */
LEAT_API LEAT_CHECKED leat_status leat_tensorboard_create(leat_callback *out, size_t size,
                                                          const leat_tensorboard_options *options,
                                                          leat_error *err);

/** Creates keras.callbacks.ProgbarLogger, the progress bar of a fit, an evaluation or a prediction, on standard
 *  error.  On a terminal the bar is redrawn in place and fits in the terminal's width; elsewhere it is written once
 *  per epoch.  The option verbose of a fit, an evaluation or a prediction adds this callback before those of the
 *  caller, so a program needs it only if that option is 0.  If a failure interrupts a bar, its line is ended when the
 *  callback is destroyed.
 *  @param verbose  1: a bar; 2: one line per epoch.
 *  Errors: LEAT_EINVAL verbose is neither 1 nor 2, or size; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_progbar_logger_create(leat_callback *out, size_t size, int verbose,
                                                             leat_error *err);

/** Creates keras.callbacks.TerminateOnNaN, which stops training after a batch whose loss is not finite.
 *  Errors: LEAT_EINVAL size. */
LEAT_API LEAT_CHECKED leat_status leat_terminate_on_nan_create(leat_callback *out, size_t size,
                                                               leat_error *err);

/** Creates the callback that a text describes.  The classes and their arguments are Keras's: CSVLogger,
 *  EarlyStopping, ModelCheckpoint, ReduceLROnPlateau, TensorBoard and TerminateOnNaN, and the schedules CosineDecay,
 *  CosineDecayRestarts, ExponentialDecay, InverseTimeDecay, PiecewiseConstantDecay and PolynomialDecay of
 *  keras.optimizers.schedules.  A schedule sets the learning rate before each step, as a function of the number of
 *  steps that the optimizer has done.
 *  @param text  A call with named arguments, "EarlyStopping(patience=3, restore_best_weights=True)", or JSON,
 *  {"class_name": "EarlyStopping", "config": {"patience": 3}}.
 *  Errors: LEAT_EINVAL the text, or an argument; LEAT_EFORMAT the JSON; LEAT_ENOTFOUND there is no such class;
 *  LEAT_ENOTSUP there is no such argument (both with the nearest known name); LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_callback_from_text(leat_callback *out, size_t size, const char *text,
                                                          leat_error *err);

/** Options of keras.callbacks.RemoteMonitor, which sends the logs of each epoch to a server. */
typedef struct leat_remote_monitor_options {
    size_t size;                /* sizeof the struct, set by leat_remote_monitor_options_init */
    const char *root;           /* beginning of the URL; default "http://localhost:9000" */
    const char *path;           /* end of the URL; default "/publish/epoch/end/" */
    const char *field;          /* name of the form's field that contains the JSON text; default "data" */
    const char *const *headers; /* header_count lines such as "Authorization: Bearer 1234"; default none */
    int header_count;           /* default 0 */
    bool send_as_json;          /* send the JSON text itself, not a form; default false */
} leat_remote_monitor_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_remote_monitor_options_init(leat_remote_monitor_options *options, size_t size);
/** Returns the default options. */
static inline leat_remote_monitor_options leat_remote_monitor_options_default(void) {
    leat_remote_monitor_options options;
    leat_remote_monitor_options_init(&options, sizeof options);
    return options;
}
/** Creates keras.callbacks.RemoteMonitor.  At the end of each epoch it sends a JSON object by HTTP POST: "epoch" (from
 *  0) and the logs; a value that is not finite is null.  A thread of its own sends the messages, so that training never
 *  waits for the server.  If the server does not accept a message (2 s to connect, 5 s altogether, an HTTP status of
 *  300 or more), the message is lost, training continues, and the log receives one warning until a message arrives
 *  again.  At most 8 messages wait; then the oldest one is lost.  leat_callback_destroy waits at most 5 s for messages
 *  that are still to be sent.
 *
 *  libcurl (libcurl.so.4) is loaded at the first use; leat is not linked with it.
 *  @param options  Borrowed for the call; texts are copied.
 *  Errors: LEAT_EINVAL an option; LEAT_ENOTSUP libcurl is not installed; LEAT_EIO a thread cannot be started;
 *  LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_remote_monitor_create(leat_callback *out, size_t size,
                                                             const leat_remote_monitor_options *options,
                                                             leat_error *err);

/** Options of leat_open_metrics_create. */
typedef struct leat_open_metrics_options {
    size_t size;      /* sizeof the struct, set by leat_open_metrics_options_init */
    const char *path; /* required: the file; the textfile collector of node_exporter reads names in .prom */
    const char *const *labels; /* label_count texts "name=value", labels of all values; default none */
    int label_count;           /* default 0 */
    int64_t every_ms;          /* milliseconds between two writes during an epoch; 0: none; default 10000 */
} leat_open_metrics_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_open_metrics_options_init(leat_open_metrics_options *options, size_t size);
/** Returns the default options. */
static inline leat_open_metrics_options leat_open_metrics_options_default(void) {
    leat_open_metrics_options options;
    leat_open_metrics_options_init(&options, sizeof options);
    return options;
}
/** Creates a callback that writes the state of a fit to a text file in the format of OpenMetrics 1.0, for Prometheus
 *  and other monitoring systems; docs/monitoring.md lists the values.  The file is replaced atomically when training
 *  begins and ends, at the end of each epoch, and every options->every_ms during an epoch.  If the file cannot be
 *  written at the beginning, training fails; later the log receives one warning, and training continues.
 *  @param options  Borrowed for the call; texts are copied.
 *  Errors: LEAT_EINVAL an option, path is missing, or a label is not "name=value" with a name of letters, digits and
 *  '_'; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_open_metrics_create(leat_callback *out, size_t size,
                                                           const leat_open_metrics_options *options,
                                                           leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
