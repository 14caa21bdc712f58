/* SPDX-License-Identifier: Apache-2.0 */
/* The helper program of a feed: a program that leat_feed_open starts (leat_feed_options.helper_command), and that
 * forks the feed's worker processes.  The workers then descend from a program that has just begun, in place of the
 * caller's process, whose threads may hold locks at the moment of a fork.
 *
 *     int main(int argc, char **argv) {
 *         leat_helper *helper = NULL;
 *         if (leat_helper_open(&helper, atoi(argv[argc - 1]), &err) != LEAT_OK) return 1;
 *         leat_sequence sequence = read_sequence(leat_helper_data(helper, 0, &bytes), bytes);
 *         leat_status status = leat_helper_run(helper, &sequence, 1, &err);
 *         leat_helper_close(&helper);
 *         return status == LEAT_OK ? 0 : 1;
 *     }
 *
 * The program must load the same version of leat as the caller. */
#ifndef LEAT_HELPER_H
#define LEAT_HELPER_H

#include <stddef.h>

#include "leat/error.h"
#include "leat/sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The helper's side of the feeds that were opened together.  Opaque.  Threads: externally synchronised. */
typedef struct leat_helper leat_helper;

/** Connects a helper program with the feeds that started it.
 *  @param[out] out  Owned by the caller (leat_helper_close); NULL on failure.
 *  @param descriptor  The number in the last word of the program's command line.  The function closes the descriptor.
 *  Errors: LEAT_EINVAL it is not the descriptor of a feed, or the feed has another version of leat; LEAT_ESTOPPED the
 *  caller is gone; LEAT_ENOMEM; LEAT_EIO.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_helper_open(leat_helper **out, int descriptor, leat_error *err);

/** Returns the number of feeds; 0 for NULL. */
LEAT_API int leat_helper_feed_count(const leat_helper *helper);

/** Returns the bytes helper_data of the options of feed `feed`; NULL if it has none.  They belong to the helper.
 *  @param[out] bytes  Their number. */
LEAT_API const void *leat_helper_data(const leat_helper *helper, int feed, size_t *bytes);

/** Ends the feeds with an error, which leat_feed_get returns: the program cannot make their batches.
 *  @param why  The error. */
LEAT_API void leat_helper_fail(leat_helper *helper, const leat_error *why);

/** Forks the worker processes and replaces those that die, until the feeds are closed or their process is gone.
 *  @param sequences  leat_helper_feed_count() sequences with the same functions `get`, get_samples and `next`, and the
 *  same number of bytes of `state`, as those with which the feeds were opened.  Their specifications, `length`,
 *  `samples` and on_epoch_end are not used: those of the caller are.
 *  @param count  The number of sequences.
 *  Errors: LEAT_EINVAL the sequences are not those of the feeds; LEAT_ESTOPPED the caller is gone; LEAT_ENOMEM;
 *  LEAT_EIO.  The feeds then end with the error, too. */
LEAT_API LEAT_CHECKED leat_status leat_helper_run(leat_helper *helper, const leat_sequence *sequences,
                                                  int count, leat_error *err);

/** Makes the sequences of a helper program, from leat_helper_data.  The sequences of an earlier call are not used any
 *  more.
 *  @param[out] sequences  leat_helper_feed_count() sequences.
 *  Return LEAT_OK, or leat_error_set(err, LEAT_EUSER, ...). */
typedef leat_status (*leat_helper_make)(void *user, const leat_helper *helper, leat_sequence *sequences,
                                        leat_error *err);

/** Like leat_helper_run, but keeps the program when on_epoch_end has changed the data: the function then calls `make`
 *  again, with the data that leat_feed_set_helper_data has set, and forks new workers.
 *  Errors: as in leat_helper_run; the code and the message of `make`, with which the feeds end, too. */
LEAT_API LEAT_CHECKED leat_status leat_helper_serve(leat_helper *helper, leat_helper_make make, void *user,
                                                    leat_error *err);

/** Like leat_helper_serve, but each worker is a program of its own instead of a copy of this one, as for a host
 *  language whose libraries do not survive a fork.  The workers make the sequences, and make them again when
 *  on_epoch_end has changed the data.
 *  @param command  The words of the workers' command line, and NULL at the end.  One more word is added, which the
 *  program passes to leat_helper_work.
 *  Errors: LEAT_EINVAL `command` is NULL or empty; LEAT_ESTOPPED the caller is gone; LEAT_ENOMEM; LEAT_EIO.  The feeds
 *  then end with the error, too. */
LEAT_API LEAT_CHECKED leat_status leat_helper_supervise(leat_helper *helper, const char *const *command,
                                                        leat_error *err);

/** Makes batches, as a worker that leat_helper_supervise has started, until it must exit.
 *  @param word  The last word of the program's command line.
 *  @param make  Called once.
 *  Errors: LEAT_EINVAL `word` is not that of a worker, or the sequences are not those of the feeds; LEAT_ESTOPPED the
 *  helper is gone; LEAT_ENOMEM; LEAT_EIO; the code and the message of `make`.  The feeds then end with the error, too.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_helper_work(const char *word, leat_helper_make make, void *user,
                                                   leat_error *err);

/** Releases the helper's memory and sets *helper to NULL; NULL is fine. */
LEAT_API void leat_helper_close(leat_helper **helper);

#ifdef __cplusplus
}
#endif
#endif
