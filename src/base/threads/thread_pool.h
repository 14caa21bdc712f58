/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool with which backends compute.  The calling thread works, too, and waits only for tasks that another
 * thread has begun; if the other cores are busy, it does all tasks itself.  Between two calls the pool threads spin
 * for a short time, then sleep.  Only one thread at a time may use a pool.  A forked child starts pool threads of its
 * own when it first uses the pool. */
#ifndef LEATI_BASE_THREADS_THREAD_POOL_H
#define LEATI_BASE_THREADS_THREAD_POOL_H

#include <stdint.h>

#include "leat/error.h"

/* The largest number of threads of a pool. */
#define LEATI_THREAD_POOL_MAX 1024

typedef struct leati_thread_pool leati_thread_pool;

/* Creates a pool without threads: until leati_thread_pool_reserve only the caller works. */
leat_status leati_thread_pool_create(leati_thread_pool **out, leat_error *err);
void leati_thread_pool_destroy(leati_thread_pool **pool);

/* Starts threads until there are at least `threads`, including the caller.  Errors: LEAT_EINVAL more than
 * LEATI_THREAD_POOL_MAX; LEAT_EIO the system refuses to start a thread; LEAT_ENOMEM. */
leat_status leati_thread_pool_reserve(leati_thread_pool *pool, int threads, leat_error *err);

/* Limits the number of threads that take part in later calls of leati_thread_pool_share, whatever they ask for. */
void leati_thread_pool_limit(leati_thread_pool *pool, int threads);

/* Does one task.  `member` is the number of the thread: 0 is the caller, and two threads that work at the same time
 * have different numbers. */
typedef void (*leati_thread_pool_work)(void *context, int64_t task, int member);

/* Calls work(of, i, member) once for each i in [0, tasks), on at most `threads` threads, and returns when all tasks
 * are done.  The caller starts from the first task, the other threads from the last.  If pool is NULL, the caller
 * does all tasks. */
void leati_thread_pool_share(leati_thread_pool *pool, int threads, int64_t tasks, leati_thread_pool_work work,
                             void *context);

#endif
