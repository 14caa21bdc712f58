/* SPDX-License-Identifier: Apache-2.0 */
/* Signal masks.  Room: base. */
#include "base/os/signals.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
enum { fault_count = sizeof faults / sizeof *faults };

bool leati_is_fault(int number) {
    for (size_t i = 0; i < fault_count; ++i)
        if (faults[i] == number) return true;
    return false;
}

void leati_mask_all_but_faults(sigset_t *before) {
    sigset_t mask;
    sigfillset(&mask);
    for (size_t i = 0; i < fault_count; ++i) sigdelset(&mask, faults[i]);
    pthread_sigmask(SIG_SETMASK, &mask, before);
}

void leati_mask_no_faults(sigset_t *before) {
    sigset_t mask;
    sigemptyset(&mask);
    for (size_t i = 0; i < fault_count; ++i) sigaddset(&mask, faults[i]);
    pthread_sigmask(SIG_UNBLOCK, &mask, before);
}

void leati_mask_restore(const sigset_t *before) {
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

void leati_size_signal_hold(leati_size_signal *held) {
    sigset_t size, pending;
    sigemptyset(&size);
    sigaddset(&size, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &size, &held->before);
    held->pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

void leati_size_signal_release(const leati_size_signal *held) {
    int number = errno;
    sigset_t size;
    sigemptyset(&size);
    sigaddset(&size, SIGXFSZ);
    const struct timespec now = {0};
    while (!held->pending && sigtimedwait(&size, NULL, &now) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = number;
}
