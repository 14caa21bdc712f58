/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the kernels that are loops over elements, rows or images.  Threads share a large loop in equal
 * ranges; a small loop stays on one thread, because waking another one would cost more than it saves. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_RANGES_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_RANGES_H

#include "backends/native/elementwise/jobs.h"
#include "backends/native/simd/isa.h"
#include "engine/backend.h"

typedef struct leati_range_state {
    leati_attrs attrs;
    leati_geometry geometry;
    leati_range_job job;
    leati_range range;
    int threads;
    int64_t count, unit; /* iterations; a thread's range is a multiple of unit */
    int inputs, reads; /* job.in[i] = args[i] for i < reads, job.out[i] = args[writes + i] for i < written */
    int writes, written;
    int read_last;      /* index of an argument after those that are written, job.in[reads]; 0: none */
    uint32_t bf16_args; /* bit i: argument i is bf16, converted piece by piece */
    leati_range draw;   /* DROPOUT with shared draws: computes `draws` factors */
    int64_t draws;
} leati_range_state;

/* Fills *kernel and a new state for the loop of the task's op.  The defaults, which the caller may change: count is
 * the number of elements of output 0, unit is 64, all inputs are read and output 0 is written.  The caller sets the
 * threads with leati_range_share(). */
leat_status leati_range_prepare(leati_range_state **out, const leati_task *task, leati_kernel *kernel,
                                leat_error *err);

/* For element-wise loops: notes which arguments are bf16.  Returns false, with the reason in `why`, where a bf16
 * argument cannot be converted piece by piece. */
bool leati_range_take_bf16(leati_range_state *s, const leati_task *task, char *why);

/* Returns the number of threads of which each has enough to do when a loop moves `bytes` bytes. */
int leati_range_threads(const leati_task *task, int64_t bytes);

/* Sets the number of threads to leati_range_threads. */
void leati_range_share(leati_range_state *s, const leati_task *task, int64_t bytes);

/* Returns the bytes of all inputs and outputs. */
int64_t leati_task_bytes(const leati_task *task);

/* Prepares an update by rows of a table (attrs.update.rows). */
leat_status leati_update_rows_prepare(const leati_task *task, leati_kernel *kernel, leat_error *err);

/* Reads and checks all indices of a table of `rows` rows. */
leat_status leati_read_indices(const leati_desc *indices, const void *data, int64_t rows, int64_t *out,
                               leat_error *err);

/* kernel->run of these loops. */
leat_status leati_range_run(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err);

#endif
