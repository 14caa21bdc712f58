/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the threads of one block as fibers on the caller's thread (fibers.h).  A fiber runs one thread after the other
 * until one of them waits; so a kernel without barriers needs one fiber and no switch. */
#include "cuda/sim/fibers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <memory>
#include <string>
#include <vector>

#include "cuda/sim/chance.h"
#include "cuda/sim/memory.h"
#include "cuda/sim/switch.h"

struct sim_index {
    unsigned x, y, z;
};
sim_index threadIdx, blockIdx, blockDim, gridDim;

static sim_kernel *first_kernel;

static constexpr size_t always_allowed = 48 * 1024, most_shared = 227 * 1024;

sim_kernel::sim_kernel(const char *name, sim_entry entry, size_t bytes, const char *file, unsigned threads)
    : name(name), entry(entry), bytes(bytes), file(file), threads(threads), dynamic_shared(always_allowed),
      next(first_kernel) {
    first_kernel = this;
}

sim_kernel *sim_find_kernel(const char *name) {
    for (sim_kernel *kernel = first_kernel; kernel; kernel = kernel->next)
        if (strcmp(kernel->name, name) == 0) return kernel;
    return nullptr;
}

namespace {

enum state { ready, at_block_barrier, at_warp_barrier, at_exchange, done };
const char *const state_names[] = {"ready", "__syncthreads", "__syncwarp", "a shuffle", "the end"};

constexpr unsigned lanes = 32;
constexpr size_t stack_bytes = 128 * 1024, guard_bytes = 64 * 1024;

struct fiber {
    sim_context context;
    char *stack;
};

/* A thread of the block. */
struct thread {
    state at;
    fiber *on; /* NULL: not started */
    sim_index index;
    unsigned mask, from; /* of a warp function */
    uint64_t given, got;
};

/* Which of the threads that can run is the next one. */
enum order { by_chance, ascending, descending };

struct simulation {
    std::vector<thread> threads;
    std::vector<unsigned> able; /* threads that can run; the last one is the next one unless chance picks */
    std::vector<unsigned> alive_in_warp, waiting_in_warp;
    unsigned count, alive, waiting; /* in the block */
    unsigned current;
    order next;
    const sim_kernel *kernel; /* NULL: none runs */
    const void *parameter;
    size_t dynamic_bytes, static_bytes;
    std::vector<void *> seen; /* static shared variables of this block */
} sim;

std::vector<std::unique_ptr<fiber>> fibers;
std::vector<fiber *> idle;
sim_context scheduler;
char *shared_end; /* of the dynamic shared memory; pages without access follow */

[[noreturn]] void report(const char *what) {
    sim_report("kernel %s, block (%u, %u, %u): %s", sim.kernel->name, blockIdx.x, blockIdx.y, blockIdx.z,
               what);
}

char *map_with_guard(size_t bytes) {
    void *memory =
        mmap(nullptr, bytes + 2 * guard_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) sim_report("no memory for a stack");
    char *first = static_cast<char *>(memory) + guard_bytes;
    if (mprotect(first, bytes, PROT_READ | PROT_WRITE) != 0) sim_report("no memory for a stack");
    return first;
}

/* ---- Which thread runs ---- */

unsigned take_next() {
    size_t k = sim.able.size() - 1;
    if (sim.next == by_chance) k = sim_below(static_cast<uint32_t>(sim.able.size()));
    unsigned chosen = sim.able[k];
    sim.able[k] = sim.able.back();
    sim.able.pop_back();
    return chosen;
}

/* Makes the threads of [first, last) that wait there able to run, the next one at the end of the list. */
template <typename Condition> void release(unsigned first, unsigned last, Condition waits) {
    for (unsigned i = 0; i < last - first; ++i) {
        unsigned t = sim.next == descending ? first + i : last - 1 - i;
        if (!waits(t)) continue;
        sim.threads[t].at = ready;
        sim.able.push_back(t);
    }
}

void run_threads();

fiber *idle_fiber() {
    if (idle.empty()) {
        fibers.push_back(std::make_unique<fiber>());
        fiber *f = fibers.back().get();
        f->stack = map_with_guard(stack_bytes);
        sim_make_context(&f->context, f->stack, stack_bytes, run_threads);
        return f;
    }
    fiber *f = idle.back();
    idle.pop_back();
    return f;
}

/* Goes on with the next thread that can run, or with the scheduler if there is none. */
void switch_from(sim_context *self) {
    sim_context *to = &scheduler;
    if (!sim.able.empty()) {
        sim.current = take_next();
        thread &t = sim.threads[sim.current];
        threadIdx = t.index;
        if (!t.on) t.on = idle_fiber();
        to = &t.on->context;
    }
    if (to != self) sim_switch(self, to);
}

/* ---- Barriers ---- */

unsigned warp_end(unsigned first) {
    return first + lanes < sim.count ? first + lanes : sim.count;
}

/* Ends the warp function that lane `self` waits in if all lanes of its mask have arrived. */
void check_warp(unsigned self) {
    unsigned first = self / lanes * lanes, last = warp_end(first);
    const unsigned mask = sim.threads[self].mask;
    const state at = sim.threads[self].at;
    for (unsigned i = first; i < last; ++i) {
        const thread &t = sim.threads[i];
        if (t.at == done || !(mask >> (i - first) & 1u)) continue;
        if (t.at == at && t.mask == mask) continue;
        if (t.at == at_warp_barrier || t.at == at_exchange)
            report("lanes of a warp wait in different warp functions, or with different masks");
        return;
    }
    auto takes_part = [&](unsigned i) { return sim.threads[i].at == at && sim.threads[i].mask == mask; };
    for (unsigned i = first; i < last; ++i) {
        if (!takes_part(i)) continue;
        unsigned from = first + sim.threads[i].from;
        sim.threads[i].got =
            from < last && takes_part(from) ? sim.threads[from].given : ~static_cast<uint64_t>(0);
        --sim.waiting_in_warp[first / lanes];
    }
    release(first, last, takes_part);
}

void check_block() {
    if (sim.waiting == 0 || sim.waiting < sim.alive) return;
    sim.waiting = 0;
    release(0, sim.count, [](unsigned i) { return sim.threads[i].at == at_block_barrier; });
}

void wait_in_warp(state at, unsigned mask) {
    thread &t = sim.threads[sim.current];
    unsigned warp = sim.current / lanes;
    if (!(mask >> (sim.current % lanes) & 1u))
        report("a lane calls a warp function whose mask lacks the lane");
    t.at = at;
    t.mask = mask;
    ++sim.waiting_in_warp[warp];
    if (mask != 0xffffffffu || sim.waiting_in_warp[warp] == sim.alive_in_warp[warp]) check_warp(sim.current);
    switch_from(&t.on->context);
}

/* A thread has ended: those that wait for all others may go on. */
void finish() {
    unsigned self = sim.current, first = self / lanes * lanes;
    sim.threads[self].at = done;
    --sim.alive_in_warp[self / lanes];
    --sim.alive;
    if (sim.waiting_in_warp[self / lanes] > 0)
        for (unsigned i = first; i < warp_end(first); ++i)
            if (sim.threads[i].at == at_warp_barrier || sim.threads[i].at == at_exchange) check_warp(i);
    check_block();
}

/* What each fiber does. */
void run_threads() {
    sim_arrived(&sim.threads[sim.current].on->context);
    for (;;) {
        fiber *self = sim.threads[sim.current].on;
        sim.kernel->entry(sim.parameter);
        finish();
        idle.push_back(self);
        switch_from(&self->context);
    }
}

/* ---- Blocks ---- */

void report_stuck() {
    char text[256];
    int length = snprintf(text, sizeof text, "threads wait for ever:");
    state before = done;
    for (unsigned i = 0; i < sim.count && length < 180; ++i) {
        state at = sim.threads[i].at;
        if (at == before) continue;
        length += snprintf(text + length, sizeof text - static_cast<size_t>(length),
                           " from thread %u on at %s;", i, state_names[at]);
        before = at;
    }
    report(text);
}

order order_of_threads() {
    static const order some[] = {by_chance, by_chance, ascending, descending};
    return some[sim_below(4)];
}

void run_block(order next) {
    sim.next = next;
    sim.alive = sim.count;
    sim.waiting = 0;
    sim.static_bytes = 0;
    sim.seen.clear();
    sim.able.clear();
    for (unsigned i = 0; i < sim.count; ++i) {
        thread &t = sim.threads[i];
        t.at = done; /* until release() below */
        t.on = nullptr;
        t.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
    }
    for (unsigned first = 0; first < sim.count; first += lanes) {
        sim.alive_in_warp[first / lanes] = warp_end(first) - first;
        sim.waiting_in_warp[first / lanes] = 0;
    }
    release(0, sim.count, [](unsigned) { return true; });
    memset(shared_end - sim.dynamic_bytes, 0xff, sim.dynamic_bytes);
    switch_from(&scheduler);
    if (sim.alive > 0) report_stuck();
}

uint64_t common_divisor(uint64_t a, uint64_t b) {
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Runs all blocks, each once.  With `next` by_chance, chance picks the orders of the blocks and of their threads. */
void run_blocks(order next) {
    uint64_t count = static_cast<uint64_t>(gridDim.x) * gridDim.y * gridDim.z, stride = 1, first = 0;
    if (next == by_chance && count > 1) {
        first = sim_below(static_cast<uint32_t>(count));
        do stride = 1 + sim_below(static_cast<uint32_t>(count));
        while (common_divisor(stride, count) != 1);
    }
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t b = next == descending ? count - 1 - i : (first + i * stride) % count;
        blockIdx = {static_cast<unsigned>(b % gridDim.x), static_cast<unsigned>(b / gridDim.x % gridDim.y),
                    static_cast<unsigned>(b / gridDim.x / gridDim.y)};
        run_block(next == by_chance ? order_of_threads() : next);
    }
}

/* Runs the launch twice, in opposite orders, and compares what it has written.  Races between threads without a
 * barrier, and between blocks, give different results. */
void run_twice() {
    std::string before = sim_save_memory();
    run_blocks(ascending);
    std::string first = sim_save_memory();
    sim_restore_memory(before);
    run_blocks(descending);
    std::string second = sim_save_memory();
    if (first != second)
        sim_report("kernel %s has a race: its result depends on the order of its threads and blocks",
                   sim.kernel->name);
}

size_t aligned(size_t bytes) {
    return (bytes + 15) / 16 * 16;
}

} // namespace

void sim_launch(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3],
                size_t shared_bytes, const void *parameter) {
    static const bool twice = getenv("LEAT_SIM_TWICE") != nullptr;
    if (!shared_end) shared_end = map_with_guard(256 * 1024) + 256 * 1024;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    sim.count = block[0] * block[1] * block[2];
    sim.kernel = kernel;
    sim.parameter = parameter;
    sim.dynamic_bytes = aligned(shared_bytes);
    if (sim.threads.size() < sim.count) sim.threads.resize(sim.count);
    sim.alive_in_warp.resize((sim.threads.size() + lanes - 1) / lanes);
    sim.waiting_in_warp.resize(sim.alive_in_warp.size());
    if (twice)
        run_twice();
    else
        run_blocks(by_chance);
    sim.kernel = nullptr;
}

void sim_block_barrier(void) {
    thread &t = sim.threads[sim.current];
    t.at = at_block_barrier;
    ++sim.waiting;
    check_block();
    switch_from(&t.on->context);
}

void sim_warp_barrier(unsigned mask) {
    wait_in_warp(at_warp_barrier, mask);
}

uint64_t sim_exchange(uint64_t bits, unsigned from, unsigned mask) {
    thread &t = sim.threads[sim.current];
    t.given = bits;
    t.from = from;
    wait_in_warp(at_exchange, mask);
    return t.got;
}

void *sim_dynamic_shared(void) {
    return shared_end - sim.dynamic_bytes;
}

void sim_static_shared(void *variable, size_t bytes) {
    for (void *seen : sim.seen)
        if (seen == variable) return;
    sim.seen.push_back(variable);
    sim.static_bytes += aligned(bytes);
    memset(variable, 0xff, bytes);
    if (sim.static_bytes > always_allowed) report("its static shared memory has more than 48 KiB");
    size_t most = sim.kernel->dynamic_shared > always_allowed ? most_shared : always_allowed;
    if (sim.static_bytes + sim.dynamic_bytes > most)
        report("its static and dynamic shared memory are too large");
}

/* ---- Reports ---- */

bool sim_describe_kernel_address(uintptr_t at, char *text, size_t bytes) {
    uintptr_t end = reinterpret_cast<uintptr_t>(shared_end);
    if (sim.kernel && end && at >= end - 256 * 1024 - guard_bytes && at < end + guard_bytes) {
        snprintf(text, bytes, "byte %jd of %zu bytes of dynamic shared memory",
                 static_cast<intmax_t>(at) - static_cast<intmax_t>(end - sim.dynamic_bytes),
                 sim.dynamic_bytes);
        return true;
    }
    for (const auto &f : fibers) {
        uintptr_t first = reinterpret_cast<uintptr_t>(f->stack);
        if (at < first - guard_bytes || at >= first + stack_bytes + guard_bytes) continue;
        snprintf(text, bytes, "the stack of a thread has overflowed");
        return true;
    }
    return false;
}

void sim_describe_thread(char *text, size_t bytes) {
    if (sim.kernel)
        snprintf(text, bytes, ", block (%u, %u, %u), thread (%u, %u, %u),", blockIdx.x, blockIdx.y,
                 blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
}
