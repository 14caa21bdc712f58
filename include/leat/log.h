/* SPDX-License-Identifier: Apache-2.0 */
/* The log: leat's messages for people.  The library itself prints no messages: it passes them to a log function
 * of the program, and drops them if there is none.  Progress bars are written by a callback
 * (leat_progbar_logger_create), and errors are values (leat/error.h). */
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include "leat/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The urgency of a message.  Later versions may add levels. */
typedef enum leat_log_level {
    LEAT_LOG_ERROR = 0, /**< something failed that no function can return, such as freeing a resource */
    LEAT_LOG_WARNING =
        1, /**< the call continues, but its result may not be the wanted one: bad batches were skipped */
    LEAT_LOG_INFO =
        /** information for a person at a terminal: the set-up of a fit, its verdict, texts of callbacks */
    2,
    LEAT_LOG_DEBUG =
        3 /**< the plan of each training step and prediction, if LEAT_VERBOSE=1 is in the environment */
} leat_log_level;

/** Receives a message.  `user` is the pointer that was given to leat_set_log.  `message` is UTF-8 text of one or
 *  more lines without a final line break, and is valid during the call. */
typedef void (*leat_log_function)(void *user, leat_log_level level, const char *message);

/** Sets the function that receives all messages of this process from now on.
 *  @param function  NULL (the initial value): messages are dropped.
 *  @param user  Passed to `function`.  leat keeps the pointer until the next call of leat_set_log.
 *
 *  A fit, an evaluation or a prediction sends messages only if its option `verbose` is not 0; a warning that it waits
 *  for a stopped worker process is always sent.
 *  Threads: call leat_set_log before other threads use leat, or while no other thread is inside a function of
 *  leat.  leat calls the log function on the thread that called leat, during that call; never on a worker of a
 *  feed, on a compute thread or in a signal handler.  If several threads call leat at the same time, the log
 *  function may run on several threads at the same time.  It may call functions of leat, but not with the objects
 *  of the call during which it runs.  A forked child has the log function of its parent. */
LEAT_API void leat_set_log(leat_log_function function, void *user);

/** A log function for leat_set_log: writes each message and a line break to standard error.  Control characters
 *  except line breaks and tabs, and bytes that are not UTF-8, are written as '?'.  `user` is ignored.
 *  The command `leat` calls leat_set_log(leat_log_to_stderr, NULL).  Threads: any. */
LEAT_API void leat_log_to_stderr(void *user, leat_log_level level, const char *message);

#ifdef __cplusplus
}
#endif
#endif
