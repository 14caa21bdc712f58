/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by oneDNN's matmul, which supports transposed operands without a copy and adds the bias.
 * Room: backends/onednn. */
#include <stdio.h>

#include "backends/onednn/ops.h"
#include "backends/onednn/session.h"
#include "base/error.h"

enum { A, B, B_WANTED, BIAS, DST, MDS };

/* Describes the last two axes of an operand, behind one axis for all others if there are any. */
static dnnl_status_t operand(leati_own_md *md, const leati_desc *desc, bool transposed) {
    int rank = desc->rank > 2 ? 3 : 2, rows = desc->rank - 2;
    dnnl_dims_t dims = {1};
    for (int i = 0; i < rows; i++) dims[0] *= desc->shape[i];
    dims[rank - 2] = desc->shape[rows + transposed];
    dims[rank - 1] = desc->shape[rows + !transposed];
    dnnl_format_tag_t tag = rank == 2 ? dnnl_ab : dnnl_abc;
    if (transposed) tag = rank == 2 ? dnnl_ba : dnnl_acb;
    return leati_md_init_as(md, rank, dims, leati_dnnl_type(desc), tag);
}

/* True if the weights are f32 and the rows bf16: then the product gets the weights as bf16, in a layout that it
 * chooses. */
static bool converts_weights(const leati_task *task) {
    return leati_dnnl_type(&task->inputs[0]) != leati_dnnl_type(&task->inputs[1]);
}

static dnnl_status_t wanted_operand(leati_own_md *md, const leati_desc *desc, bool transposed) {
    leati_own_md plain = {0};
    leati_md_blocking b;
    dnnl_status_t status = operand(&plain, desc, transposed);
    if (status == dnnl_success && leati_md_blocking_of(leati_md_of(&plain), &b))
        status = leati_md_init_as(md, b.rank, b.dims, dnnl_bf16, dnnl_format_tag_any);
    leati_md_fini(&plain);
    return status;
}

static leat_status make_mds(leati_own_md *md, const leati_task *task, leat_error *err) {
    const leati_desc *dst = &task->outputs[0];
    leati_desc bias = {.rank = dst->rank};
    for (int i = 0; i < bias.rank; i++) bias.shape[i] = 1;
    bias.shape[bias.rank - 1] = dst->shape[dst->rank - 1];
    LEATI_DNNL_TRY(operand(&md[A], &task->inputs[0], task->attrs->matmul.transpose_a), "operand description");
    LEATI_DNNL_TRY(operand(&md[B], &task->inputs[1], task->attrs->matmul.transpose_b), "operand description");
    if (converts_weights(task))
        LEATI_DNNL_TRY(wanted_operand(&md[B_WANTED], &task->inputs[1], task->attrs->matmul.transpose_b),
                       "operand description");
    LEATI_DNNL_TRY(operand(&md[BIAS], &bias, false), "bias description");
    LEATI_DNNL_TRY(operand(&md[DST], dst, false), "product description");
    return LEAT_OK;
}

/* Adds operand b in the layout that the primitive reads. */
static leat_status add_weights(leati_session *s, const leati_task *task, leati_kernel *kernel,
                               leati_own_md *md, dnnl_primitive_desc_t pd, int *out, leat_error *err) {
    leati_md plain = leati_md_of(&md[B]), wanted = leati_pd_md(pd, dnnl_query_weights_md);
    int argument = 0;
    LEATI_TRY(leati_session_argument(s, plain, 1, &argument, err));
    *out = argument;
    if (!converts_weights(task)) return LEAT_OK;
    kernel->pack_inputs = 1u << 1;
    leati_session_layout(kernel, leati_md_of(&md[DST]), wanted);
    leati_md_blocking b;
    const void *layout_owner = leati_md_blocking_of(wanted, &b) ? NULL : kernel->state;
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "bf16 %s %p %lld %d", kernel->layout, layout_owner,
             (long long)task->outputs[0].shape[task->outputs[0].rank - 1], task->attrs->matmul.transpose_b);
    return leati_session_packed(s, kernel, plain, argument, wanted, out, err);
}

static leat_status add_call(leati_session *s, const leati_task *task, leati_kernel *kernel, leati_own_md *md,
                            dnnl_primitive_desc_t pd, bool bias, leat_error *err) {
    int memory[MDS] = {0};
    LEATI_TRY(leati_session_argument(s, leati_md_of(&md[A]), 0, &memory[A], err));
    LEATI_TRY(add_weights(s, task, kernel, md, pd, &memory[B], err));
    if (bias) LEATI_TRY(leati_session_argument(s, leati_md_of(&md[BIAS]), 2, &memory[BIAS], err));
    LEATI_TRY(leati_session_argument(s, leati_md_of(&md[DST]), task->input_count, &memory[DST], err));
    leati_dnnl_arg args[5] = {{DNNL_ARG_SRC, memory[A]},
                              {DNNL_ARG_WEIGHTS, memory[B]},
                              {DNNL_ARG_DST, memory[DST]},
                              {DNNL_ARG_BIAS, memory[BIAS]}};
    int count = bias ? 4 : 3;
    LEATI_TRY(leati_session_addend(s, task, leati_md_of(&md[DST]), args, &count, err));
    return leati_session_call(s, kernel, pd, count, args, true, err);
}

static leat_status describe(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                            leat_error *err) {
    leati_own_md md[MDS] = {0};
    dnnl_primitive_desc_t pd = NULL;
    bool bias = leati_op_inputs(task) > 2 && task->inputs[2].rank >= 0;
    bool fused = true;
    leat_status status = make_mds(md, task, err);
    if (status == LEAT_OK) status = leati_session_fuse(s, task, leati_md_of(&md[DST]), &fused, why, err);
    if (status == LEAT_OK && fused) {
        dnnl_status_t made =
            leati_pd_matmul(&pd, s->engine, leati_md_of(&md[A]),
                            leati_md_of(&md[converts_weights(task) ? B_WANTED : B]),
                            bias ? leati_md_of(&md[BIAS]) : NULL, leati_md_of(&md[DST]), s->attr);
        status = leati_session_accept(made, &pd, why, err);
    }
    if (status == LEAT_OK && pd) status = add_call(s, task, kernel, md, pd, bias, err);
    if (pd) dnnl_primitive_desc_destroy(pd);
    for (int i = 0; i < MDS; i++) leati_md_fini(&md[i]);
    return status;
}

leat_status leati_onednn_matmul(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    if (!leati_dnnl_takes(task, 1u, 1u << 1 | 1u << task->input_count, why)) return LEAT_OK;
    const leati_desc *a = &task->inputs[0], *dst = &task->outputs[0];
    double depth = (double)a->shape[a->rank - (task->attrs->matmul.transpose_a ? 2 : 1)];
    double operations = 2 * depth * (double)leati_desc_count(dst);
    /* with bf16 a second thread is worthwhile only from so many operations on */
    if (leati_dnnl_type(a) == dnnl_bf16) operations /= 8;
    int threads = leati_threads_for(task, operations, true);
    return leati_session_prepare(task, threads, kernel, why, err, describe);
}
