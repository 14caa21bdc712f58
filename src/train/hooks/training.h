/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a run of training, evaluation or prediction, and the functions that call its callbacks.
 * Room: train. */
#ifndef LEATI_TRAIN_HOOKS_TRAINING_H
#define LEATI_TRAIN_HOOKS_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/state.h"
#include "leat/log.h"
#include "leat/train.h"

typedef enum leati_hook {
#define LEATI_HOOK_ENUM(name) LEATI_HOOK_##name,
    LEAT_HOOK_LIST(LEATI_HOOK_ENUM)
#undef LEATI_HOOK_ENUM
} leati_hook;

/* Three entries of leat_logs are left for batch, size and lr. */
#define LEATI_MAX_NAMES (LEAT_MAX_LOGS - 3)

struct leat_training {
    leat_model *model;
    leat_training_params params;
    char names[LEATI_MAX_NAMES][LEAT_LOG_NAME_BYTES]; /* params.metrics points here */
    const char *name_list[LEATI_MAX_NAMES];
    bool stop;
    bool stopped_on_request; /* leat_model_stop_training stopped the run, no callback */
    char stop_reason[128];
    bool improved; /* ModelCheckpoint has replaced the best model, and no checkpoint has begun since */
    leat_callback progress, history; /* leat's own callbacks: progress is called first, history last */
    leat_callback *callbacks; /* copies of the caller's callbacks, called between progress and history */
    int callback_count;
    leat_status (*validate)(leat_training *training, leat_logs *logs,
                            leat_error *err); /* NULL if there is no validation data */
    void *loop;                               /* the loop that validate and collect work on */
    leat_dist *dist; /* the ranks, borrowed (train/hooks/sync.h); NULL: one process */
    /* With dist: gives rank 0 all slots of a spread optimizer, before a callback may read them. */
    leat_status (*collect)(leat_training *training, leat_error *err);
    uint32_t called; /* with dist: the hooks that callbacks of rank 0 have, a bit for each leati_hook */
    uint64_t synced_version; /* with dist: the version of the weights of rank 0 after the last hook */
    uint64_t synced_states;  /* the same of the states of layers (states_version of the model) */
    bool
        requested; /* with dist: leat_model_stop_training was called on a rank before the last batch or hook */
    leat_history *run_history; /* of a fit, which owns it; NULL in an evaluation or a prediction */
};

/* Mark the start and the end of a run.  Only the outermost run clears a request to stop when it begins, so that an
 * evaluation inside a hook does not clear a request that was made to the fit. */
void leati_training_enter(leat_training *training);
void leati_training_leave(leat_training *training);

/* Copies the caller's callbacks.  leati_training_fini frees the copies, also after a failure.  Errors: those of
 * leati_check_list and of leati_callback_read; LEAT_EINVAL a callback is NULL; LEAT_ENOMEM. */
leat_status leati_training_set_callbacks(leat_training *training, leat_callback *const *callbacks, int count,
                                         leat_error *err);
/* Sets params.verbose, and creates the progress bar unless verbose is 0.  leati_training_fini frees the progress bar.
 * Errors: LEAT_ENOMEM. */
leat_status leati_training_set_verbose(leat_training *training, int verbose, leat_error *err);
void leati_training_fini(leat_training *training);

/* Sends a message to the log, unless verbose is 0. */
void leati_training_log(const leat_training *training, leat_log_level level, const char *format, ...)
    LEAT_PRINTF(3, 4);

/* Declares the names of the values that the run will log: loss and metrics of the compiled model and, with
 * do_validation, each name again with val_ in front.  Errors: LEAT_ENOTSUP more names than leat_logs has entries. */
leat_status leati_training_name(leat_training *training, bool do_validation, leat_error *err);

/* With several ranks: learns from rank 0 which hooks its callbacks have, so that no message is sent after the others.
 * Every rank makes this call once.  Errors: those of the communicator. */
leat_status leati_training_meet(leat_training *training, leat_error *err);
/* Calls one hook of all callbacks in order, and returns at the first failure. */
leat_status leati_training_call(leat_training *training, leati_hook hook, int64_t index, leat_logs *logs,
                                leat_error *err);
/* Calls the hook at the begin of a batch; with several ranks, also on a rank that has no batch because of a failure,
 * `taken`, which it will tell with the results of the batch. */
leat_status leati_training_begin_batch(leat_training *training, leati_hook hook, leat_status taken,
                                       int64_t index, leat_logs *logs, leat_error *err);

/* Save and load the states of the caller's callbacks.  Errors of loading: LEAT_EINVAL the checkpoint was written with
 * another number of callbacks; those of the callbacks, with the callback's number in front. */
leat_status leati_training_save_callbacks(leat_training *training, leati_snapshot *snapshot, leat_error *err);
leat_status leati_training_load_callbacks(leat_training *training, const leati_image *image, leat_error *err);

/* Calls on_epoch_begin of the progress bar alone, for an epoch that is resumed in its middle. */
leat_status leati_training_show_epoch(leat_training *training, int64_t epoch, leat_logs *logs,
                                      leat_error *err);

/* Returns true if a callback or leat_model_stop_training has asked the run to stop. */
bool leati_training_should_stop(leat_training *training);
/* Returns true if leat_model_stop_training has asked the run to stop. */
bool leati_training_is_requested(const leat_training *training);

#endif
