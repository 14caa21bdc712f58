/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks: functions that training calls between its steps, and Keras's ready-made ones. */
#ifndef LEAT_CALLBACK_H
#define LEAT_CALLBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/model.h"
#include "leat/sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Bounds of leat_logs: its numbers, and the bytes of a name with its final 0. */
#define LEAT_MAX_LOGS       64
#define LEAT_LOG_NAME_BYTES 128

/** Named numbers: loss, metrics, lr.  Plain data, no heap.  Frozen. */
typedef struct leat_log {
    char name[LEAT_LOG_NAME_BYTES];
    double value;
} leat_log;
/** Named numbers in the order in which they were set.  Frozen. */
typedef struct leat_logs {
    int32_t count;
    leat_log items[LEAT_MAX_LOGS];
} leat_logs;

/** A value by name; false where there is none, and *value is left alone.  Threads: any. */
LEAT_API bool leat_logs_get(const leat_logs *logs, const char *name, double *value);
/** Sets or adds a value; a name that is too long is cut, a 65th name is dropped. */
LEAT_API void leat_logs_set(leat_logs *logs, const char *name, double value);

/** The training that a hook is called from.  Valid during the call. */
typedef struct leat_training leat_training;

/** Keras's callback.params. */
typedef struct leat_training_params {
    size_t size; /* bytes of the members that the library has filled in */
    int64_t epochs;
    int64_t steps;      /* of the epoch in hand */
    int64_t samples;    /* in all steps of an epoch, where known (arrays); 0 otherwise */
    int64_t batch_size; /* of a full batch */
    int verbose;
    bool do_validation;
    int metric_count; /* names that logs will hold: loss, metrics, then val_* of them */
    const char *const *metrics;
} leat_training_params;

/** The training's parameters and its model, borrowed.  Valid during the hook's call. */
LEAT_API const leat_training_params *leat_training_params_get(const leat_training *training);
LEAT_API leat_model *leat_training_model(const leat_training *training);
/** model.stop_training = True, with the reason in words (kept for on_train_end). */
LEAT_API void leat_training_stop(leat_training *training, const char *reason);
/** Why training stops or stopped; NULL where it ran to its end. */
LEAT_API const char *leat_training_stop_reason(const leat_training *training);
/** Runs the validation again, now: the loss and metrics of the validation data, without val_ in front.
 *  Errors: LEAT_EINVAL training has no validation data. */
LEAT_API LEAT_CHECKED leat_status leat_training_validate(leat_training *training, leat_logs *logs,
                                                         leat_error *err);
/** Sends a text for people to the log (leat/log.h) at level LEAT_LOG_INFO, without the line breaks at its beginning and its
 *  end; nothing when verbose is 0.  A text of more than 2047 bytes is cut. */
LEAT_API void leat_training_write(leat_training *training, const char *format, ...) LEAT_PRINTF(2, 3);
/** leat_training_write with a finished text, for languages that cannot call a function with `...`.  text NULL: nothing. */
LEAT_API void leat_training_write_text(leat_training *training, const char *text);

/** A hook.  index is the epoch (from 0) or the batch (from 0), 0 elsewhere.  logs of a batch's end: batch, size, and
 *  loss and metrics over the epoch so far; of an epoch's end: loss, metrics, val_*, and what callbacks before this one added.  A failure ends training
 *  with that error, the hook's name and index in front. */
typedef leat_status (*leat_hook)(void *user, leat_training *training, int64_t index, leat_logs *logs,
                                 leat_error *err);

/** Every hook that training knows; NULL where a callback has none.  Later versions may add hooks at the end.  keras.callbacks.LambdaCallback is this struct. */
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

/** Functions that training calls, and the pointer that each is given.  A hook that is NULL is not called.  Start from
 *  leat_callback_default() or leat_callback_init(), or set the size: `{.size = sizeof(leat_callback), .on_epoch_end = f}`.
 *  leat_callback_destroy frees what the callback owns. */
typedef struct leat_callback {
    size_t size; /* sizeof(leat_callback) */
    void *user;
    void (*destroy)(void *user); /* called by leat_callback_destroy; may be NULL */
#define LEAT_HOOK_MEMBER(name) leat_hook name;
    LEAT_HOOK_LIST(LEAT_HOOK_MEMBER)
#undef LEAT_HOOK_MEMBER
} leat_callback;

/** Zeroes the `size` bytes of *callback and sets callback->size.
 *  @param size  sizeof *callback.
 *  Threads: any. */
LEAT_API void leat_callback_init(leat_callback *callback, size_t size);
/** A callback without hooks, by value. */
static inline leat_callback leat_callback_default(void) {
    leat_callback callback;
    leat_callback_init(&callback, sizeof callback);
    return callback;
}

/** Calls destroy and zeroes the struct.  NULL and zeroed structs are fine. */
LEAT_API void leat_callback_destroy(leat_callback *callback);

/* The functions that follow fill *out, whose size is `size`: sizeof *out. */

/** What "better" means for a monitored value. */
typedef enum leat_monitor_mode {
    LEAT_MONITOR_AUTO = 0, /* max where the name holds "acc", min otherwise */
    LEAT_MONITOR_MIN = 1,
    LEAT_MONITOR_MAX = 2
} leat_monitor_mode;

/** keras.callbacks.ModelCheckpoint: writes the model after epochs.  filepath may hold {epoch:02d} (from 1) and any log,
 *  {val_loss:.2f}.  Files are replaced atomically. */
typedef struct leat_model_checkpoint_options {
    size_t size;          /* sizeof the struct, set by leat_model_checkpoint_options_init */
    const char *filepath; /* required */
    const char *monitor;  /* default "val_loss" */
    bool save_best_only, save_weights_only;
    leat_monitor_mode mode;
    int verbose;
    int64_t period; /* default 1 */
} leat_model_checkpoint_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_model_checkpoint_options_init(leat_model_checkpoint_options *options, size_t size);
/** The defaults by value. */
static inline leat_model_checkpoint_options leat_model_checkpoint_options_default(void) {
    leat_model_checkpoint_options options;
    leat_model_checkpoint_options_init(&options, sizeof options);
    return options;
}
LEAT_API LEAT_CHECKED leat_status leat_model_checkpoint_create(leat_callback *out, size_t size,
                                                               const leat_model_checkpoint_options *options,
                                                               leat_error *err);

/** keras.callbacks.EarlyStopping.  baseline NAN: none. */
typedef struct leat_early_stopping_options {
    size_t size;         /* sizeof the struct, set by leat_early_stopping_options_init */
    const char *monitor; /* default "val_loss" */
    double min_delta;
    int64_t patience;
    leat_monitor_mode mode;
    double baseline; /* default NAN */
    bool restore_best_weights;
    int verbose;
} leat_early_stopping_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_early_stopping_options_init(leat_early_stopping_options *options, size_t size);
/** The defaults by value. */
static inline leat_early_stopping_options leat_early_stopping_options_default(void) {
    leat_early_stopping_options options;
    leat_early_stopping_options_init(&options, sizeof options);
    return options;
}
LEAT_API LEAT_CHECKED leat_status leat_early_stopping_create(leat_callback *out, size_t size,
                                                             const leat_early_stopping_options *options,
                                                             leat_error *err);

/** keras.callbacks.ReduceLROnPlateau. */
typedef struct leat_reduce_lr_options {
    size_t size;         /* sizeof the struct, set by leat_reduce_lr_options_init */
    const char *monitor; /* default "val_loss" */
    double factor;       /* default 0.1, below 1 */
    int64_t patience;    /* default 10 */
    leat_monitor_mode mode;
    int verbose;
    double min_delta; /* default 1e-4 */
    int64_t cooldown;
    double min_lr;
} leat_reduce_lr_options;
/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_reduce_lr_options_init(leat_reduce_lr_options *options, size_t size);
/** The defaults by value. */
static inline leat_reduce_lr_options leat_reduce_lr_options_default(void) {
    leat_reduce_lr_options options;
    leat_reduce_lr_options_init(&options, sizeof options);
    return options;
}
LEAT_API LEAT_CHECKED leat_status leat_reduce_lr_on_plateau_create(leat_callback *out, size_t size,
                                                                   const leat_reduce_lr_options *options,
                                                                   leat_error *err);

/** keras.callbacks.LearningRateScheduler: learning rate = schedule(user, epoch, learning rate now). */
typedef double (*leat_schedule)(void *user, int64_t epoch, double learning_rate);
LEAT_API LEAT_CHECKED leat_status leat_learning_rate_scheduler_create(leat_callback *out, size_t size,
                                                                      leat_schedule schedule, void *user,
                                                                      int verbose, leat_error *err);

/** keras.callbacks.CSVLogger: one line per epoch; columns are fixed before the first (val_* included where training
 *  validates, NA in an epoch without).  separator NULL: ",".  The file is written in place, line by line; it may be a FIFO or
 *  a character device. */
LEAT_API LEAT_CHECKED leat_status leat_csv_logger_create(leat_callback *out, size_t size, const char *path,
                                                         const char *separator, bool append, leat_error *err);

/** keras.callbacks.ProgbarLogger: the progress bar of a fit, an evaluation or a prediction, on standard error.  On a terminal the bar
 *  is redrawn in place, elsewhere it is written once an epoch.  The option verbose of a fit, an evaluation or a prediction adds
 *  this callback in front of the caller's, so it is needed only where that option is 0.  A bar that a failure has cut ends its line
 *  when the callback is destroyed.
 *  @param verbose  1: a bar; 2: a line per epoch.  Errors: LEAT_EINVAL another number; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_progbar_logger_create(leat_callback *out, size_t size, int verbose,
                                                             leat_error *err);

/** keras.callbacks.TerminateOnNaN: stops after a batch whose loss is not finite. */
LEAT_API LEAT_CHECKED leat_status leat_terminate_on_nan_create(leat_callback *out, size_t size,
                                                               leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
