/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the simulated GPU, and the host's pinned memory.  Each allocation has pages of its own between two
 * pages without access; it touches either the page before or, as far as the alignment allows, the page behind.
 *
 * The host cannot access the GPU's memory: its pages have no permission, except while work of the GPU runs.  Freed
 * memory keeps its addresses without permission, and fresh memory is filled with 0xff.  An access that the GPU does not
 * allow ends the process with a report that names the allocation and the kernel. */
#ifndef LEAT_TESTS_CUDA_SIM_MEMORY_H
#define LEAT_TESTS_CUDA_SIM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <string>

enum sim_kind { sim_on_device, sim_pinned };

struct sim_allocation {
    sim_kind kind;
    uint64_t number; /* 1, 2, ...: the order of the allocations */
    uintptr_t at;    /* aligned to 256 bytes */
    size_t bytes;
    uintptr_t pages;
    size_t page_bytes;
    bool live;
};

/* Returns NULL if the GPU has not so much memory. */
const sim_allocation *sim_allocate(sim_kind kind, size_t bytes);
/* Returns false if no such allocation begins at `at`. */
bool sim_free(sim_kind kind, uintptr_t at);
/* Marks the host's pageable memory as pinned, and undoes it.  Return false if that cannot be. */
bool sim_register(uintptr_t at, size_t bytes);
bool sim_unregister(uintptr_t at);

/* Returns the living allocation that contains all bytes from `at` on; NULL if there is none. */
const sim_allocation *sim_find(uintptr_t at, size_t bytes);
bool sim_is_pinned(uintptr_t at, size_t bytes);
/* Returns true for an address of the host's memory that the GPU cannot access. */
bool sim_is_pageable(uintptr_t at);

size_t sim_bytes_in_use(sim_kind kind);
size_t sim_allocation_count(sim_kind kind);
constexpr size_t sim_device_bytes = static_cast<size_t>(4) << 30;

/* The GPU whose context the calling thread uses; -1: none (driver.cc). */
int sim_current_gpu(void);

/* Let the work that runs now access the GPU's memory, and end this. */
void sim_open_memory(void);
void sim_close_memory(void);

/* The work that runs now, for reports: "kernel leati_cuda_copy".  NULL: none. */
extern const char *sim_doing;

/* Ends the process if the work that has run has written beside an allocation. */
void sim_check_margins(void);

/* The contents of the GPU's memory and of pinned memory. */
std::string sim_save_memory(void);
void sim_restore_memory(const std::string &saved);

/* Describes a memory access of the kernel in progress, in fibers.cc: an address in a stack of a fiber or behind the
 * shared memory.  Returns false if the address is something else. */
bool sim_describe_kernel_address(uintptr_t at, char *text, size_t bytes);
/* Adds the block and the thread of the kernel in progress to a text. */
void sim_describe_thread(char *text, size_t bytes);

/* Prints "simulated GPU: ..." and ends the process. */
[[noreturn]] void sim_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
