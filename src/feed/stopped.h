/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out that the trainer waits for a process that is stopped (SIGSTOP): a worker, or the helper. */
#ifndef LEATI_FEED_STOPPED_H
#define LEATI_FEED_STOPPED_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/feed.h"

/* The member `stopped` of a feed.  Both times do not count time during which the trainer itself was stopped. */
typedef struct leati_stopped {
    int64_t waited_ns; /* how long the trainer has waited for the next batch */
    int64_t helper_ns; /* how long the helper has been stopped during that wait */
    bool told;         /* a warning was logged */
} leati_stopped;

/* Call it when the trainer begins to wait for a batch. */
void leati_stopped_begin(leati_stopped *stopped);

/* Call it after each sleep of a trainer that waits, if the workers are processes.  slept_ns is the length of the sleep.
 * Without a deadline, logs a warning once if the wait is long and a process is stopped; with a deadline, the helper
 * kills workers that are stopped.  Errors: LEAT_ETIMEOUT the helper is stopped for longer than the deadline. */
leat_status leati_stopped_check(leat_feed *feed, int64_t slept_ns, leat_error *err);

#endif
