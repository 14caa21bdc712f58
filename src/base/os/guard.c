/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of SIGBUS, and the table of mappings that it looks at.  Layer: base.
 *
 * A signal's disposition belongs to the process, and a handler has no argument: so the table and the handler before this one
 * are static.  The handler takes no lock.  An entry's sequence number is odd while the entry changes, and the handler passes
 * over an entry whose number is odd or changes meanwhile: that cannot be the mapping that its thread is reading. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "base/os/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_GUARDS = 1024 };

struct leati_guard {
    atomic_bool taken;
    _Atomic uint32_t sequence;
    _Atomic uintptr_t begin, end; /* of the pages; 0: none */
    _Atomic uintptr_t hit;        /* the lowest page that was missing; 0: none was */
};

static leati_guard guards[MOST_GUARDS];
static atomic_bool installed;
static struct sigaction before; /* constant once the handler is installed */

size_t leati_page_bytes(void) {
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (size_t)bytes : 4096;
}

/* ---- The handler ---- */

static leati_guard *find(uintptr_t address) {
    for (int i = 0; i < MOST_GUARDS; ++i) {
        leati_guard *guard = &guards[i];
        uint32_t sequence = atomic_load(&guard->sequence);
        uintptr_t begin = atomic_load(&guard->begin), end = atomic_load(&guard->end);
        bool changing = sequence % 2 == 1 || atomic_load(&guard->sequence) != sequence;
        if (!changing && address >= begin && address < end) return guard;
    }
    return NULL;
}

/* Puts zeros in the place of the page and all behind it, which a file that was shortened has not either. */
static bool fill(leati_guard *guard, uintptr_t address) {
    uintptr_t from = address - address % leati_page_bytes(), hit = atomic_load(&guard->hit);
    void *zeros = mmap((void *)from, atomic_load(&guard->end) - from, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) return false;
    while ((hit == 0 || from < hit) && !atomic_compare_exchange_weak(&guard->hit, &hit, from)) continue;
    return true;
}

/* As if this handler were not there.  By default a fault ends the program when its instruction is repeated, a signal that was
 * sent when it is sent again: it is blocked until this handler returns. */
static void hand_over(int number, siginfo_t *info, void *context) {
    bool sent = info->si_code <= 0;
    bool by_default = before.sa_handler == SIG_DFL || (before.sa_handler == SIG_IGN && !sent);
    if (before.sa_handler == SIG_IGN && sent) return;
    if (by_default || (before.sa_flags & (int)SA_RESETHAND)) signal(number, SIG_DFL);
    if (by_default && sent)
        raise(number);
    else if (!by_default && (before.sa_flags & SA_SIGINFO))
        before.sa_sigaction(number, info, context);
    else if (!by_default)
        before.sa_handler(number);
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    int kept = errno;
    leati_guard *guard = info->si_code == BUS_ADRERR ? find((uintptr_t)info->si_addr) : NULL;
    if (!guard || !fill(guard, (uintptr_t)info->si_addr)) hand_over(number, info, context);
    errno = kept;
}

/* Runs on the alternate stack where the thread has one, as Go and crash reporters want it. */
static void install(void) {
    if (atomic_exchange(&installed, true) || sigaction(SIGBUS, NULL, &before) != 0) return;
    struct sigaction action = {.sa_sigaction = on_bus_error,
                               .sa_mask = before.sa_mask,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & SA_RESTART)};
    sigaction(SIGBUS, &action, NULL);
}

/* ---- The table ---- */

static void change(leati_guard *guard, uintptr_t begin, uintptr_t end) {
    atomic_fetch_add(&guard->sequence, 1);
    atomic_store(&guard->begin, begin);
    atomic_store(&guard->end, end);
    atomic_store(&guard->hit, 0);
    atomic_fetch_add(&guard->sequence, 1);
}

leati_guard *leati_guard_begin(const void *data, size_t bytes) {
    size_t page = leati_page_bytes();
    install();
    for (int i = 0; i < MOST_GUARDS; ++i) {
        if (atomic_exchange(&guards[i].taken, true)) continue;
        change(&guards[i], (uintptr_t)data, (uintptr_t)data + (bytes + page - 1) / page * page);
        return &guards[i];
    }
    return NULL;
}

void leati_guard_end(leati_guard *guard) {
    if (!guard) return;
    change(guard, 0, 0);
    atomic_store(&guard->taken, false);
}

bool leati_guard_was_hit(const leati_guard *guard, size_t *offset) {
    uintptr_t hit = atomic_load(&guard->hit);
    *offset = hit ? hit - atomic_load(&guard->begin) : 0;
    return hit != 0;
}
