/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and joins worker threads.  They run the program's code, so they get the signal mask of the thread that opens
 * the feed; programs that `get` starts inherit this mask.  Room: feed. */
#include "feed/workers/threads.h"

#include <assert.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/os/signals.h"

void leati_name_worker(int number) {
    char name[16];
    snprintf(name, sizeof name, "leat-worker/%d", number);
    prctl(PR_SET_NAME, name);
}

static leati_worker_entry *entry_of(const leati_thread *thread) {
    return &thread->worker.work->table.workers[thread->worker.number];
}

static void *run(void *argument) {
    leati_thread *thread = argument;
    leati_threads *all = thread->all;
    leati_name_worker(thread->worker.number);
    leat_error err = {0};
    if (leati_worker_run(&thread->worker, &err) != LEAT_OK) leati_pool_work_fail(thread->worker.work, &err);
    atomic_store(&entry_of(thread)->phase, LEATI_WORKER_GONE);
    if (leati_threads_let_go(all)) all->release(all->owner);
    return NULL;
}

bool leati_threads_let_go(leati_threads *threads) {
    int before = atomic_fetch_sub(&threads->holders, 1);
    assert(before >= 1);
    return before == 1;
}

static leat_status start_one(leati_threads *threads, leati_pool_work *work, int number, leat_error *err) {
    leati_thread *thread = &threads->threads[number];
    LEATI_TRY(leati_worker_init(&thread->worker, work, number, err));
    thread->worker.generation = atomic_load(&work->table.shared->generation);
    thread->all = threads;
    atomic_fetch_add(&threads->holders, 1);
    int failed = pthread_create(&thread->id, NULL, run, thread);
    if (!failed) {
        ++threads->made;
        ++threads->count;
        return LEAT_OK;
    }
    atomic_fetch_sub(&threads->holders, 1);
    leati_worker_fini(&thread->worker);
    return leati_fail_errno(err, LEAT_EIO, failed, "cannot start worker thread %d of %d", number + 1,
                            work->table.count);
}

leat_status leati_threads_start(leati_threads *threads, leati_pool_work *work, leat_error *err) {
    size_t count = (size_t)work->table.count;
    threads->threads = leati_calloc(count, sizeof *threads->threads);
    if (!threads->threads) return leati_fail_memory(err, count * sizeof *threads->threads, "worker threads");
    sigset_t before;
    leati_mask_no_faults(&before);
    leat_status status = LEAT_OK;
    for (int i = 0; i < work->table.count && status == LEAT_OK; ++i)
        status = start_one(threads, work, i, err);
    leati_mask_restore(&before);
    if (status != LEAT_OK) {
        leati_worker_table_retire(&work->table);
        leati_threads_join(threads, -1);
        leati_threads_fini(threads);
    }
    return status;
}

static bool is_gone(const leati_thread *thread) {
    return atomic_load(&entry_of(thread)->phase) == LEATI_WORKER_GONE;
}

static void wait_for(const leati_thread *thread, int64_t until_ns) {
    while (!is_gone(thread) && leati_now_ns() < until_ns)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

int leati_threads_join(leati_threads *threads, int64_t patience_ns) {
    int64_t until_ns = leati_now_ns() + patience_ns;
    int left = 0;
    for (; threads->count > 0; --threads->count) {
        leati_thread *thread = &threads->threads[threads->count - 1];
        if (patience_ns >= 0) wait_for(thread, until_ns);
        if (patience_ns >= 0 && !is_gone(thread)) {
            pthread_detach(thread->id);
            ++left;
        } else {
            pthread_join(thread->id, NULL);
        }
    }
    return left;
}

void leati_threads_fini(leati_threads *threads) {
    for (int i = 0; i < threads->made; ++i) leati_worker_fini(&threads->threads[i].worker);
    threads->made = 0;
    leati_free(threads->threads);
    threads->threads = NULL;
}
