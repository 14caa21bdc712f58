/* SPDX-License-Identifier: Apache-2.0 */
/* Signal masks: of the threads that leat makes, and of a thread that writes a file.
 *
 * Masks of the threads that leat makes.  A thread inherits the mask of the thread that makes it, so each function
 * changes the calling thread's mask, and leati_mask_restore is called once the threads are there.
 *
 * Faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) are never blocked: the kernel kills a program whose thread
 * commits one while it is blocked, and a handler of the program does not run. */
#ifndef LEATI_BASE_OS_SIGNALS_H
#define LEATI_BASE_OS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Whether a signal says that the thread that receives it has committed a fault. */
bool leati_is_fault(int number);

/* For threads that compute and run no code of the program: blocks all signals but faults, so that a signal to the process
 * interrupts one of the program's own threads. */
void leati_mask_all_but_faults(sigset_t *before);

/* For threads that run code of the program: the caller's own mask with faults unblocked.  A program that such a thread
 * starts (posix_spawn, system, popen) inherits this mask. */
void leati_mask_no_faults(sigset_t *before);

void leati_mask_restore(const sigset_t *before);

/* A write beyond the limit of file sizes (RLIMIT_FSIZE) fails with EFBIG, and the kernel sends SIGXFSZ to the thread that
 * writes, which ends the program by default.  Between these two calls, in one thread, such a write only fails. */
typedef struct leati_size_signal {
    sigset_t before;
    bool pending; /* already before: that signal is the program's */
} leati_size_signal;
void leati_size_signal_hold(leati_size_signal *held);
/* errno is kept. */
void leati_size_signal_release(const leati_size_signal *held);

#endif
