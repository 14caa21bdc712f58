/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the simulated GPU (memory.h). */
#include "cuda/sim/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

const char *sim_doing;

namespace {

constexpr size_t alignment = 256;
constexpr unsigned char fresh = 0xff;

struct region {
    uintptr_t first, last, next;
};

region addresses;
/* By first page; the freed ones stay, because their addresses are not used again. */
std::map<uintptr_t, sim_allocation> allocations;
std::vector<const sim_allocation *> living[2];
std::map<uintptr_t, size_t> registered;
size_t used_bytes[2];
bool is_open;
struct sigaction handler_before;

size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

size_t page_size() {
    static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return bytes;
}

void *pointer(uintptr_t at) {
    return reinterpret_cast<void *>(at);
}

/* Reserves addresses, which cost no memory. */
void reserve() {
    for (size_t bytes = static_cast<size_t>(1) << 40; bytes > 0 && addresses.first == 0; bytes /= 2) {
        void *memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) continue;
        addresses.first = reinterpret_cast<uintptr_t>(memory);
        addresses.last = addresses.first + bytes;
        addresses.next = addresses.first + page_size();
    }
}

const sim_allocation *nearest(uintptr_t at) {
    const sim_allocation *best = nullptr;
    auto next = allocations.upper_bound(at);
    if (next != allocations.begin()) best = &std::prev(next)->second;
    /* The page before an allocation belongs to it if the allocation touches this page. */
    if (next != allocations.end() && next->second.at == next->second.pages &&
        at >= next->second.pages - page_size() && !(best && at < best->pages + best->page_bytes))
        best = &next->second;
    return best;
}

void describe_allocation(uintptr_t at, char *text, size_t bytes) {
    const sim_allocation *a = nearest(at);
    if (!a) {
        snprintf(text, bytes, "the address %#jx", static_cast<uintmax_t>(at));
        return;
    }
    snprintf(text, bytes, "byte %jd of allocation %ju, %s %zu bytes of %s",
             static_cast<intmax_t>(at) - static_cast<intmax_t>(a->at), static_cast<uintmax_t>(a->number),
             a->live ? "which has" : "which had, before it was freed,", a->bytes,
             a->kind == sim_on_device ? "device memory" : "pinned memory");
}

/* Runs on a stack of its own: the stack of a fiber may have overflowed. */
void on_fault(int, siginfo_t *info, void *) {
    uintptr_t at = reinterpret_cast<uintptr_t>(info->si_addr);
    char text[320] = "", thread[160] = "";
    bool known = at >= addresses.first && at < addresses.last;
    if (known)
        describe_allocation(at, text, sizeof text);
    else
        known = sim_describe_kernel_address(at, text, sizeof text);
    if (!known && sim_doing) snprintf(text, sizeof text, "the address %#jx", static_cast<uintmax_t>(at));
    if (known || sim_doing) {
        const sim_allocation *a = nearest(at);
        const char *whose = a && a->kind == sim_on_device && a->live && at >= a->at && at < a->at + a->bytes
                                ? "accessed device memory"
                                : "made an invalid access";
        if (sim_doing) sim_describe_thread(thread, sizeof thread);
        sim_report("%s%s %s: %s", sim_doing ? sim_doing : "the host", thread, whose, text);
    }
    sigaction(SIGSEGV, &handler_before,
              nullptr); /* The instruction fails again, and another handler sees it. */
}

/* A test program may set handlers of its own, so this is called again and again. */
void install_handler() {
    static char stack[65536];
    struct sigaction before, handler = {};
    if (sigaction(SIGSEGV, nullptr, &before) == 0 && (before.sa_flags & SA_SIGINFO) &&
        before.sa_sigaction == on_fault)
        return;
    stack_t alternate = {};
    sigaltstack(nullptr, &alternate);
    if (alternate.ss_flags & SS_DISABLE) {
        alternate.ss_sp = stack;
        alternate.ss_size = sizeof stack;
        alternate.ss_flags = 0;
        sigaltstack(&alternate, nullptr);
    }
    handler_before = before;
    handler.sa_sigaction = on_fault;
    handler.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &handler, nullptr);
}

void protect(const sim_allocation &a, int permission) {
    if (mprotect(pointer(a.pages), a.page_bytes, permission) != 0)
        sim_report("mprotect failed: %s", strerror(errno));
}

/* Checks the bytes next to an allocation, on the pages that it does not fill. */
void check_margin(const sim_allocation &a) {
    const unsigned char *first = static_cast<const unsigned char *>(pointer(a.at)), *last = first + a.bytes;
    const unsigned char *low =
        std::max(static_cast<const unsigned char *>(pointer(a.pages)), first - alignment);
    const unsigned char *high =
        std::min(static_cast<const unsigned char *>(pointer(a.pages + a.page_bytes)), last + alignment);
    const unsigned char *bad = nullptr;
    for (const unsigned char *p = low; p < first; ++p)
        if (*p != fresh) bad = p;
    for (const unsigned char *p = last; p < high && !bad; ++p)
        if (*p != fresh) bad = p;
    if (!bad) return;
    char text[320];
    describe_allocation(reinterpret_cast<uintptr_t>(bad), text, sizeof text);
    sim_report("%s wrote to %s", sim_doing ? sim_doing : "the host", text);
}

} // namespace

void sim_report(const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fflush(stdout);
    fprintf(stderr, "simulated GPU: %s\n", text);
    fflush(stderr);
    abort();
}

const sim_allocation *sim_allocate(sim_kind kind, size_t bytes) {
    static uint64_t count;
    if (addresses.first == 0) reserve();
    size_t page_bytes = round_up(bytes, page_size());
    if (kind == sim_on_device && page_bytes > sim_device_bytes - std::min(sim_device_bytes, used_bytes[kind]))
        return nullptr;
    if (page_bytes + 2 * page_size() > addresses.last - addresses.next) return nullptr;
    install_handler();
    sim_allocation a = {kind, ++count, addresses.next, bytes, addresses.next, page_bytes, true};
    if (a.number % 2) a.at += page_bytes - round_up(bytes, alignment);
    if (mprotect(pointer(a.pages), page_bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
    memset(pointer(a.pages), fresh, page_bytes);
    addresses.next += page_bytes + page_size();
    used_bytes[kind] += page_bytes;
    const sim_allocation *kept = &(allocations[a.pages] = a);
    living[kind].push_back(kept);
    if (kind == sim_on_device && !is_open) protect(a, PROT_NONE);
    return kept;
}

bool sim_free(sim_kind kind, uintptr_t at) {
    sim_allocation *a = const_cast<sim_allocation *>(sim_find(at, 1));
    if (!a || a->kind != kind || a->at != at) return false;
    if (kind == sim_pinned) check_margin(*a);
    a->live = false;
    used_bytes[kind] -= a->page_bytes;
    living[kind].erase(std::find(living[kind].begin(), living[kind].end(), a));
    mmap(pointer(a->pages), a->page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
    return true;
}

bool sim_register(uintptr_t at, size_t bytes) {
    if (bytes == 0 || (at >= addresses.first && at < addresses.last)) return false;
    auto next = registered.upper_bound(at);
    if (next != registered.end() && next->first < at + bytes) return false;
    if (next != registered.begin() && std::prev(next)->first + std::prev(next)->second > at) return false;
    registered[at] = bytes;
    return true;
}

bool sim_unregister(uintptr_t at) {
    return registered.erase(at) == 1;
}

const sim_allocation *sim_find(uintptr_t at, size_t bytes) {
    auto next = allocations.upper_bound(at);
    if (next == allocations.begin()) return nullptr;
    const sim_allocation *a = &std::prev(next)->second;
    return a->live && at >= a->at && at - a->at < a->bytes && bytes <= a->bytes - (at - a->at) ? a : nullptr;
}

bool sim_is_pinned(uintptr_t at, size_t bytes) {
    const sim_allocation *a = sim_find(at, bytes);
    if (a) return a->kind == sim_pinned;
    auto next = registered.upper_bound(at);
    if (next == registered.begin()) return false;
    auto range = std::prev(next);
    return at - range->first < range->second && bytes <= range->second - (at - range->first);
}

/* Two neighbours of 32 bits may look like a low address, where AddressSanitizer has memory; a small number before
 * padding, which is never set, may look like the address of the first bytes of a heap. */
bool sim_is_pageable(uintptr_t at) {
    constexpr uintptr_t lowest = 0x110000000000, highest = 0x7fffffffffff, small = 1 << 20;
    if (at < lowest || at > highest || (at >= addresses.first && at < addresses.last)) return false;
    if ((at & 0xffffffffu) < small || sim_is_pinned(at, 1)) return false;
    return msync(pointer(at / page_size() * page_size()), 1, MS_ASYNC) == 0;
}

size_t sim_bytes_in_use(sim_kind kind) {
    return used_bytes[kind];
}

size_t sim_allocation_count(sim_kind kind) {
    return living[kind].size();
}

void sim_open_memory(void) {
    install_handler();
    if (is_open) return;
    for (const sim_allocation *a : living[sim_on_device]) protect(*a, PROT_READ | PROT_WRITE);
    is_open = true;
}

void sim_close_memory(void) {
    install_handler();
    if (!is_open) return;
    for (const sim_allocation *a : living[sim_on_device]) protect(*a, PROT_NONE);
    is_open = false;
}

void sim_check_margins(void) {
    for (const auto &list : living)
        for (const sim_allocation *a : list) check_margin(*a);
}

std::string sim_save_memory(void) {
    std::string saved;
    for (const auto &list : living)
        for (const sim_allocation *a : list)
            saved.append(static_cast<const char *>(pointer(a->at)), a->bytes);
    return saved;
}

void sim_restore_memory(const std::string &saved) {
    const char *from = saved.data();
    for (const auto &list : living)
        for (const sim_allocation *a : list) {
            memcpy(pointer(a->at), from, a->bytes);
            from += a->bytes;
        }
}
