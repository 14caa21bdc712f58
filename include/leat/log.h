/* SPDX-License-Identifier: Apache-2.0 */
/* Where leat's messages go.  The library itself prints nothing: without a log function messages are dropped.  Progress bars are a
 * callback's affair (leat_progbar_logger_create), and errors are values (leat/error.h). */
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include "leat/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How urgent a message is.  Later versions may add levels. */
typedef enum leat_log_level {
    LEAT_LOG_ERROR = 0, /**< something failed that no function can return, such as freeing a resource */
    LEAT_LOG_WARNING =
        1, /**< the call goes on, but its result may not be what was wanted: bad batches were skipped */
    LEAT_LOG_INFO =
        2, /**< what a person at a terminal wants to see: the set-up of a fit, its verdict, texts of callbacks */
    LEAT_LOG_DEBUG =
        3 /**< with LEAT_VERBOSE=1 in the environment: the plan of each training step and prediction */
} leat_log_level;

/** Receives a message: UTF-8, of one or more lines, without a line break at its end; valid during the call. */
typedef void (*leat_log_function)(void *user, leat_log_level level, const char *message);

/** Sends all messages of this process to function(user, ...), from now on; function NULL, as at first: nowhere.  `user` is
 *  borrowed until another takes its place.  Messages of a fit, an evaluation or a prediction come only where its option
 *  verbose is not 0.
 *  Threads: call it before other threads use leat, or while no other thread is in a function of leat.  The log function is
 *  called on the thread that called leat, during that call: never on a worker of a feed, on a compute thread or in a signal
 *  handler.  Several threads that call leat at the same time call it at the same time.  It may call functions of leat, but not
 *  with the objects of the call that it is called from.  A forked child has the log function of its parent. */
LEAT_API void leat_set_log(leat_log_function function, void *user);

/** A log function: writes each message and a line break to standard error.  user is ignored: leat_set_log(leat_log_to_stderr,
 *  NULL) is what the command `leat` does.  Threads: any. */
LEAT_API void leat_log_to_stderr(void *user, leat_log_level level, const char *message);

#ifdef __cplusplus
}
#endif
#endif
