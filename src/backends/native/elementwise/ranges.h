/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that are loops over elements, rows or images: what their kernels have in common.  Large ones are shared by threads in
 * equal stretches; small ones stay on one, where waking another would cost more than it brings. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_RANGES_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_RANGES_H

#include "backends/native/simd/isa.h"
#include "engine/backend.h"

typedef struct leati_range_state {
    leati_attrs attrs;
    leati_geometry geometry;
    leati_range_job job;
    leati_range range;
    int threads;
    int64_t count, unit; /* elements; stretches are multiples of unit */
    int inputs, reads;   /* args[0 .. reads - 1] are in, the others from `writes` on out */
    int writes, written;
    uint32_t narrow;  /* bit i: argument i is bf16, which passes through pieces of f32 */
    leati_range draw; /* DROPOUT with shared draws: makes so many factors */
    int64_t draws;
} leati_range_state;

/* Fills *kernel with a state for the loop of the task's op: count, elements of output 0, in stretches of 64; reads all
 * inputs, writes output 0; threads not yet said. */
leat_status leati_range_prepare(leati_range_state **out, const leati_task *task, leati_kernel *kernel,
                                leat_error *err);

/* For loops over elements: notes which arguments are bf16.  false, with the reason, where one is neither that nor f32. */
bool leati_range_take_bf16(leati_range_state *s, const leati_task *task, char *why);

/* As many threads as have enough to do, when so many bytes must be moved. */
void leati_range_share(leati_range_state *s, const leati_task *task, int64_t bytes);

/* Of all inputs and outputs. */
int64_t leati_task_bytes(const leati_task *task);

/* kernel->run: arguments in[i] = args[i] for i < reads, out[i] = args[writes + i] for i < written. */
leat_status leati_range_run(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err);

#endif
