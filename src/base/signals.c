/* SPDX-License-Identifier: Apache-2.0 */
/* Signal masks.  Layer: base. */
#include "base/signals.h"

#include <stddef.h>

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
