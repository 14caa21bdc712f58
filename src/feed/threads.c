/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads: all signals are the caller's business, so they block every one.  Layer: feed. */
#include "feed/threads.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/error.h"

void leati_name_worker(int number) {
    char name[16];
    snprintf(name, sizeof name, "leat-worker/%d", number);
    prctl(PR_SET_NAME, name);
}

static void *run(void *argument) {
    leati_thread *thread = argument;
    leati_name_worker(thread->worker.number);
    leat_error err = {0};
    if (leati_worker_run(&thread->worker, &err) != LEAT_OK) leati_ring_fail(thread->worker.ring, &err);
    return NULL;
}

leat_status leati_threads_start(leati_thread *threads, int count, int *started, leat_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = 0;
    for (*started = 0; *started < count && !failed; *started += !failed)
        failed = pthread_create(&threads[*started].id, NULL, run, &threads[*started]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) return LEAT_OK;
    return leati_fail_errno(err, LEAT_EIO, failed, "cannot start worker thread %d of %d", *started + 1,
                            count);
}

void leati_threads_join(leati_thread *threads, int *started) {
    for (; *started > 0; --*started) pthread_join(threads[*started - 1].id, NULL);
}
