/* SPDX-License-Identifier: Apache-2.0 */
/* Signal masks: of the threads that leat starts, and of a thread that writes a file.
 *
 * A thread inherits the mask of the thread that creates it.  So the leati_mask functions change the calling thread's
 * mask, and the caller restores it with leati_mask_restore when it has created the threads.
 *
 * Faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) are never blocked: if a thread causes a fault while that
 * signal is blocked, the kernel kills the program without calling the program's handler. */
#ifndef LEATI_BASE_OS_SIGNALS_H
#define LEATI_BASE_OS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Returns true if the signal is one of the faults above. */
bool leati_is_fault(int number);

/* For threads that compute and call no code of the program: blocks all signals except faults, so that a signal to the
 * process is handled by one of the program's own threads.  *before receives the previous mask. */
void leati_mask_all_but_faults(sigset_t *before);

/* For threads that call code of the program: unblocks faults and leaves the rest of the caller's mask, since a
 * program that such a thread starts (posix_spawn, system, popen) inherits the mask.  *before receives the previous
 * mask. */
void leati_mask_no_faults(sigset_t *before);

void leati_mask_restore(const sigset_t *before);

/* When a thread writes beyond the limit of file sizes (RLIMIT_FSIZE), the write fails with EFBIG and the kernel also
 * sends SIGXFSZ, which by default ends the program.  Between the two calls below, in one thread, the write only
 * fails. */
typedef struct leati_size_signal {
    sigset_t before;
    bool pending; /* SIGXFSZ was pending before: that signal is left for the program */
} leati_size_signal;
void leati_size_signal_hold(leati_size_signal *held);

/* Does not change errno. */
void leati_size_signal_release(const leati_size_signal *held);

#endif
