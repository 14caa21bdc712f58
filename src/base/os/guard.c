/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of SIGBUS, and the table of guarded mappings.  Room: base.
 *
 * The table and the previous handler are static, since a signal handler belongs to the process and has no argument of
 * its own.  The handler takes no lock.  The sequence number of an entry is odd while the entry changes; the handler
 * skips an entry whose number is odd or changes meanwhile, since that entry cannot be the mapping that the handler's
 * thread is reading. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "base/os/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_GUARDS = 1024 };

struct leati_guard {
    atomic_bool taken;
    _Atomic uint32_t sequence;
    _Atomic uintptr_t begin, end; /* addresses of the mapping's pages; 0: no mapping */
    _Atomic uintptr_t hit;        /* address of the lowest missing page that was read; 0: none */
};

static leati_guard guards[MAX_GUARDS];
static atomic_bool installed;
static struct sigaction previous; /* the previous handler; constant once ours is installed */

size_t leati_page_bytes(void) {
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (size_t)bytes : 4096;
}

/* ---- The handler ---- */

static leati_guard *find_guard(uintptr_t address) {
    for (int i = 0; i < MAX_GUARDS; ++i) {
        leati_guard *guard = &guards[i];
        uint32_t sequence = atomic_load(&guard->sequence);
        uintptr_t begin = atomic_load(&guard->begin), end = atomic_load(&guard->end);
        bool changing = sequence % 2 == 1 || atomic_load(&guard->sequence) != sequence;
        if (!changing && address >= begin && address < end) return guard;
    }
    return NULL;
}

/* Maps zeros over the page and all pages after it, which a shortened file no longer has either. */
static bool map_zeros(leati_guard *guard, uintptr_t address) {
    uintptr_t from = address - address % leati_page_bytes(), hit = atomic_load(&guard->hit);
    void *zeros = mmap((void *)from, atomic_load(&guard->end) - from, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) return false;
    while ((hit == 0 || from < hit) && !atomic_compare_exchange_weak(&guard->hit, &hit, from)) continue;
    return true;
}

/* Does what would happen without our handler.  If that is the default action, which ends the program: a fault recurs
 * when the instruction is repeated; a signal that a process sent is sent again, and arrives when this handler
 * returns. */
static void call_previous_handler(int number, siginfo_t *info, void *context) {
    bool sent = info->si_code <= 0;
    bool by_default = previous.sa_handler == SIG_DFL || (previous.sa_handler == SIG_IGN && !sent);
    if (previous.sa_handler == SIG_IGN && sent) return;
    if (by_default || (previous.sa_flags & (int)SA_RESETHAND)) signal(number, SIG_DFL);
    if (by_default && sent)
        raise(number);
    else if (!by_default && (previous.sa_flags & SA_SIGINFO))
        previous.sa_sigaction(number, info, context);
    else if (!by_default)
        previous.sa_handler(number);
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    int saved_errno = errno;
    leati_guard *guard = info->si_code == BUS_ADRERR ? find_guard((uintptr_t)info->si_addr) : NULL;
    if (!guard || !map_zeros(guard, (uintptr_t)info->si_addr)) call_previous_handler(number, info, context);
    errno = saved_errno;
}

/* SA_ONSTACK: the handler runs on the thread's alternate stack if there is one, as Go and crash reporters require. */
static void install(void) {
    if (atomic_exchange(&installed, true) || sigaction(SIGBUS, NULL, &previous) != 0) return;
    struct sigaction action = {.sa_sigaction = on_bus_error,
                               .sa_mask = previous.sa_mask,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | (previous.sa_flags & SA_RESTART)};
    sigaction(SIGBUS, &action, NULL);
}

/* ---- The table ---- */

static void set_range(leati_guard *guard, uintptr_t begin, uintptr_t end) {
    atomic_fetch_add(&guard->sequence, 1);
    atomic_store(&guard->begin, begin);
    atomic_store(&guard->end, end);
    atomic_store(&guard->hit, 0);
    atomic_fetch_add(&guard->sequence, 1);
}

leati_guard *leati_guard_begin(const void *data, size_t bytes) {
    size_t page = leati_page_bytes();
    install();
    for (int i = 0; i < MAX_GUARDS; ++i) {
        if (atomic_exchange(&guards[i].taken, true)) continue;
        set_range(&guards[i], (uintptr_t)data, (uintptr_t)data + (bytes + page - 1) / page * page);
        return &guards[i];
    }
    return NULL;
}

void leati_guard_end(leati_guard *guard) {
    if (!guard) return;
    set_range(guard, 0, 0);
    atomic_store(&guard->taken, false);
}

bool leati_guard_was_hit(const leati_guard *guard, size_t *offset) {
    uintptr_t hit = atomic_load(&guard->hit);
    *offset = hit ? hit - atomic_load(&guard->begin) : 0;
    return hit != 0;
}
