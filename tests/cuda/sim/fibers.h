/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the threads of one block as fibers.  The blocks of a launch, and the threads of a block between two barriers,
 * run in an order that chance picks.  Shared memory holds 0xff when a block begins. */
#ifndef LEAT_TESTS_CUDA_SIM_FIBERS_H
#define LEAT_TESTS_CUDA_SIM_FIBERS_H

#include <stddef.h>
#include <stdint.h>

typedef void (*sim_entry)(const void *parameter);

/* A kernel in the list of all kernels of the test program. */
struct sim_kernel {
    sim_kernel(const char *name, sim_entry entry, size_t bytes, const char *file = "",
               unsigned threads = 1024);
    const char *name;
    sim_entry entry;
    size_t bytes; /* of the parameter */
    const char *file;
    unsigned threads;      /* the most threads of a block */
    size_t dynamic_shared; /* the most dynamic shared memory of a block that was asked for */
    sim_kernel *next;
};
sim_kernel *sim_find_kernel(const char *name);

/* Runs all blocks of a launch, one after the other. */
void sim_launch(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3],
                size_t shared_bytes, const void *parameter);

/* For kernels, through kernel_language.h.  mask: the lanes that take part. */
void sim_block_barrier(void);
void sim_warp_barrier(unsigned mask = 0xffffffffu);
/* Gives `bits` to the other threads of the warp and returns those that lane `from` gave; all bits are set if that lane
 * takes no part. */
uint64_t sim_exchange(uint64_t bits, unsigned from, unsigned mask = 0xffffffffu);
void *sim_dynamic_shared(void);
/* Prepares a variable in shared memory when the first thread of a block reaches it. */
void sim_static_shared(void *variable, size_t bytes);

#endif
