/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL of a single row, which is what predicting one sample comes to: a library's call costs more than the product.
 * Layer: backends/native. */
#include <stdio.h>

#include "backends/native/isa.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"

#define MOST_BYTES                                                                                           \
    1048576 /* of the matrix: beyond a cache's size, threads that share the memory's work are faster */

typedef struct matvec_state {
    leati_matvec_job job;
    leati_eltwise f;
    void (*matvec)(const leati_matvec_job *job);
} matvec_state;

static leat_status run_matvec(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const matvec_state *s = kernel->state;
    leati_matvec_job job = s->job;
    (void)run, (void)err;
    job.a = args[0];
    job.b = args[1];
    job.bias = args[2];
    job.dst = args[3];
    s->matvec(&job);
    return LEAT_OK;
}

leat_status leati_native_matmul(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    const leati_desc *a = &task->inputs[0], *b = &task->inputs[1];
    if (task->outputs[0].shape[0] != 1 || leati_desc_bytes(b) > MOST_BYTES) {
        snprintf(why, LEATI_REASON_BYTES, "not one row times a matrix of at most 1 MiB");
        return LEAT_OK;
    }
    const leati_native_isa *isa = leati_native_isa_of();
    matvec_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a product");
    s->matvec = isa->matvec;
    s->job.k = leati_desc_count(a);
    s->job.n = task->outputs[0].shape[1];
    s->job.transposed = task->attrs->matmul.transpose_b;
    if (task->attrs->post.present) {
        s->f = task->attrs->post.function;
        s->job.f = &s->f;
    }
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_matvec;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", isa->name);
    return LEAT_OK;
}
