/* SPDX-License-Identifier: Apache-2.0 */
/* Makes GNU's OpenMP runtime spin less: it hardly spins while it has more threads than there are cores, so a thread
 * is started that enters a parallel region and then sleeps for ever.  Other runtimes are not affected.
 * Room: backends/onednn. */
#include "backends/onednn/openmp.h"

#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include "base/os/fork.h"
#include "base/os/signals.h"

int leati_openmp_enter(int threads) {
    int previous = omp_get_max_threads();
    if (previous != threads) omp_set_num_threads(threads);
    return previous;
}

void leati_openmp_leave(int previous) {
    if (omp_get_max_threads() != previous) omp_set_num_threads(previous);
}

static void *sleep_with_another(void *unused) {
    int entered = 0;
#pragma omp parallel num_threads(2) reduction(+ : entered)
    ++entered;
    for (;;) pause();
    return unused;
}

static void start_sleeper(void) {
    sigset_t previous;
    pthread_t thread;
    leati_mask_all_but_faults(&previous);
    if (pthread_create(&thread, NULL, sleep_with_another, NULL) == 0) pthread_detach(thread);
    leati_mask_restore(&previous);
}

void leati_openmp_sleep_soon(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_sleeper);
}

static void end_threads(void) {
    omp_pause_resource_all(omp_pause_hard);
}

__attribute__((constructor)) static void end_threads_before_forks(void) {
    leati_fork_ends_threads(end_threads);
}
