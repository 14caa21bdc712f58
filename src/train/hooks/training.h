/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of training, evaluation or prediction has in hand, and how it calls its callbacks. */
#ifndef LEATI_TRAIN_HOOKS_TRAINING_H
#define LEATI_TRAIN_HOOKS_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/log.h"
#include "leat/train.h"

typedef enum leati_hook {
#define LEATI_HOOK_ENUM(name) LEATI_HOOK_##name,
    LEAT_HOOK_LIST(LEATI_HOOK_ENUM)
#undef LEATI_HOOK_ENUM
} leati_hook;

/* batch, size and lr need places too. */
#define LEATI_MAX_NAMES (LEAT_MAX_LOGS - 3)

struct leat_training {
    leat_model *model;
    leat_training_params params;
    char names[LEATI_MAX_NAMES][LEAT_LOG_NAME_BYTES]; /* params.metrics points here */
    const char *name_list[LEATI_MAX_NAMES];
    bool stop;
    char stop_reason[128];
    leat_callback progress, history; /* leat's own, first and last */
    leat_callback *callbacks;        /* copies of the caller's, in between */
    int callback_count;
    leat_status (*validate)(leat_training *training, leat_logs *logs,
                            leat_error *err); /* NULL: no validation data */
    void *loop;                               /* of validate */
};

/* A run begins and ends.  A request to stop is for the outermost: an evaluation in a hook does not forget it. */
void leati_training_enter(leat_training *training);
void leati_training_leave(leat_training *training);

/* Copies the caller's callbacks.  For leati_training_fini, also after a failure.  Errors: those of leati_check_list and of
 * leati_callback_read; LEAT_EINVAL a callback is NULL; LEAT_ENOMEM. */
leat_status leati_training_set_callbacks(leat_training *training, leat_callback *const *callbacks, int count,
                                         leat_error *err);
/* Sets params.verbose, and makes the progress bar unless verbose is 0.  For leati_training_fini.  Errors: LEAT_ENOMEM. */
leat_status leati_training_set_verbose(leat_training *training, int verbose, leat_error *err);
void leati_training_fini(leat_training *training);

/* Sends a message to the log, unless verbose is 0. */
void leati_training_tell(const leat_training *training, leat_log_level level, const char *format, ...)
    LEAT_PRINTF(3, 4);

/* Names of the logs to come: loss and metrics of the compiled model, and val_* of them.
 * Errors: LEAT_ENOTSUP more than leat_logs holds. */
leat_status leati_training_name(leat_training *training, bool do_validation, leat_error *err);

/* Calls a hook on all callbacks in order; ends at the first failure. */
leat_status leati_training_call(leat_training *training, leati_hook hook, int64_t index, leat_logs *logs,
                                leat_error *err);

/* Whether a callback or leat_model_stop_training asked for the end. */
bool leati_training_should_stop(leat_training *training);
/* Whether leat_model_stop_training did. */
bool leati_training_is_requested(const leat_training *training);

#endif
