/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that compute.  The caller works, too, and never waits for a thread that has not begun: where a core is taken by
 * others it does all by itself.  Between two calls the others spin for a moment, then sleep.  A pool has one caller at a
 * time.  A
 * forked child starts helpers of its own when it first uses the pool. */
#ifndef LEATI_BASE_THREADS_THREAD_POOL_H
#define LEATI_BASE_THREADS_THREAD_POOL_H

#include <stdint.h>

#include "leat/error.h"

/* Threads at most; more cores than this are left idle. */
#define LEATI_THREAD_POOL_MAX 1024

typedef struct leati_thread_pool leati_thread_pool;

/* One thread, the caller's, until more are asked for. */
leat_status leati_thread_pool_create(leati_thread_pool **out, leat_error *err);
void leati_thread_pool_destroy(leati_thread_pool **pool);

/* From now on at least so many threads, the caller among them.  LEAT_EINVAL: more than LEATI_THREAD_POOL_MAX; LEAT_EIO: the
 * system starts no more. */
leat_status leati_thread_pool_reserve(leati_thread_pool *pool, int threads, leat_error *err);

/* From now on at most so many take part, however many leati_thread_pool_share allows. */
void leati_thread_pool_limit(leati_thread_pool *pool, int threads);

/* Task `task`, by thread `member`: 0 is the caller; no two that work at once have the same. */
typedef void (*leati_thread_pool_work)(void *of, int64_t task, int member);

/* Calls work(of, i, ...) once for each i of [0, tasks) on at most `threads` threads; returns when all have been done.  The
 * caller begins with the first task, others with the last.  Without a pool (NULL) all is done on the caller's. */
void leati_thread_pool_share(leati_thread_pool *pool, int threads, int64_t tasks, leati_thread_pool_work work,
                             void *of);

#endif
