/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that compute.  The caller works, too, and never waits for a thread that has not begun: where a core is taken by
 * others it does all by itself.  Between two calls the others spin for a moment, then sleep.  A team has one caller at a
 * time.  A
 * forked child starts helpers of its own when it first uses the team. */
#ifndef LEATI_BASE_THREAD_POOL_H
#define LEATI_BASE_THREAD_POOL_H

#include <stdint.h>

#include "leat/error.h"

/* Threads at most; more cores than this are left idle. */
#define LEATI_TEAM_MOST 1024

typedef struct leati_team leati_team;

/* One thread, the caller's, until more are asked for. */
leat_status leati_team_create(leati_team **out, leat_error *err);
void leati_team_destroy(leati_team **team);

/* From now on at least so many threads, the caller among them.  LEAT_EINVAL: more than LEATI_TEAM_MOST; LEAT_EIO: the
 * system starts no more. */
leat_status leati_team_reserve(leati_team *team, int threads, leat_error *err);

/* From now on at most so many take part, however many leati_team_share allows. */
void leati_team_limit(leati_team *team, int threads);

/* Task `task`, by thread `member`: 0 is the caller; no two that work at once have the same. */
typedef void (*leati_team_work)(void *of, int64_t task, int member);

/* Calls work(of, i, ...) once for each i of [0, tasks) on at most `threads` threads; returns when all have been done.  The
 * caller begins with the first task, others with the last.  Without a team (NULL) all is done on the caller's. */
void leati_team_share(leati_team *team, int threads, int64_t tasks, leati_team_work work, void *of);

#endif
