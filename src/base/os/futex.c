/* SPDX-License-Identifier: Apache-2.0 */
/* Linux's futex system call.  Room: base. */
#define _GNU_SOURCE /* syscall */
#include "base/os/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int operation(int op, bool shared) {
    return shared ? op : op | FUTEX_PRIVATE_FLAG;
}

void leati_futex_wait(leati_futex *word, uint32_t seen, int64_t timeout_ns, bool shared) {
    struct timespec timeout = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    syscall(SYS_futex, word, operation(FUTEX_WAIT, shared), seen, timeout_ns < 0 ? NULL : &timeout, NULL, 0);
}

void leati_futex_wake(leati_futex *word, int count, bool shared) {
    int saved = errno;
    syscall(SYS_futex, word, operation(FUTEX_WAKE, shared), count, NULL, NULL, 0);
    errno = saved;
}

void leati_spin_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}
