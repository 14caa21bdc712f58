/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by oneDNN's matmul, which supports transposed operands without a copy and adds the bias.
 * Room: backends/onednn. */
#include <stdio.h>

#include "backends/onednn/ops.h"
#include "backends/onednn/parts.h"
#include "backends/onednn/session.h"
#include "base/error.h"

enum { A, B, B_WANTED, BIAS, DST, MDS };

/* What a part computes of a product of matrices: some matrices, or some rows or columns of each. */
typedef enum division { MATRICES, ROWS, COLUMNS, WHOLE } division;

typedef struct part {
    division division;
    leati_dnnl_range range;
    leati_own_md md[MDS];
    size_t offset[MDS]; /* of the operands, in bytes */
    dnnl_primitive_desc_t pd;
} part;

/* Describes the last two axes of an operand, behind one axis for all others if there are any.  `divided`: the axis of
 * which the part has a range; -1: none. */
static dnnl_status_t operand(part *p, int i, const leati_desc *desc, bool transposed, int divided) {
    int rank = desc->rank > 2 ? 3 : 2, rows = desc->rank - 2;
    dnnl_dims_t dims = {1}, strides;
    for (int axis = 0; axis < rows; axis++) dims[0] *= desc->shape[axis];
    dims[rank - 2] = desc->shape[rows + transposed];
    dims[rank - 1] = desc->shape[rows + !transposed];
    strides[0] = dims[rank - 2] * dims[rank - 1];
    strides[rank - 2] = transposed ? 1 : dims[rank - 1];
    strides[rank - 1] = transposed ? dims[rank - 2] : 1;
    p->offset[i] = 0;
    if (divided >= 0) {
        int64_t elements = p->range.begin * strides[divided];
        p->offset[i] = (size_t)elements * (leati_dnnl_type(desc) == dnnl_bf16 ? 2 : 4);
        dims[divided] = p->range.count;
    }
    return leati_md_init_by_strides(&p->md[i], rank, dims, leati_dnnl_type(desc), strides);
}

/* True if the weights are f32 and the rows bf16: then the product gets the weights as bf16, in a layout that it
 * chooses. */
static bool converts_weights(const leati_task *task) {
    return leati_dnnl_type(&task->inputs[0]) != leati_dnnl_type(&task->inputs[1]);
}

static bool has_bias(const leati_task *task) {
    return leati_op_inputs(task) > 2 && task->inputs[2].rank >= 0;
}

/* Describes operand b for the product to choose its layout. */
static dnnl_status_t wanted_operand(part *p) {
    leati_md_blocking b;
    if (!leati_md_blocking_of(leati_md_of(&p->md[B]), &b)) return dnnl_unimplemented;
    return leati_md_init_as(&p->md[B_WANTED], b.rank, b.dims, dnnl_bf16, dnnl_format_tag_any);
}

static leat_status make_mds(part *p, const leati_task *task, leat_error *err) {
    const leati_desc *dst = &task->outputs[0];
    const int rank = dst->rank > 2 ? 3 : 2, matrices = p->division == MATRICES ? 0 : -1,
              rows = p->division == ROWS ? rank - 2 : matrices,
              columns = p->division == COLUMNS ? rank - 1 : matrices;
    leati_desc bias = {.rank = dst->rank};
    for (int i = 0; i < bias.rank; i++) bias.shape[i] = 1;
    bias.shape[bias.rank - 1] = dst->shape[dst->rank - 1];
    LEATI_DNNL_TRY(operand(p, A, &task->inputs[0], task->attrs->matmul.transpose_a, rows),
                   "operand description");
    LEATI_DNNL_TRY(operand(p, B, &task->inputs[1], task->attrs->matmul.transpose_b, columns),
                   "operand description");
    if (converts_weights(task)) LEATI_DNNL_TRY(wanted_operand(p), "operand description");
    LEATI_DNNL_TRY(operand(p, BIAS, &bias, false, p->division == COLUMNS ? columns : -1), "bias description");
    LEATI_DNNL_TRY(operand(p, DST, dst, false, p->division == COLUMNS ? columns : rows),
                   "product description");
    return LEAT_OK;
}

/* Adds operand b in the layout that the primitives read. */
static leat_status add_weights(leati_session *s, const leati_task *task, leati_kernel *kernel, const part *p,
                               int *out, leat_error *err) {
    leati_md plain = leati_md_of(&p->md[B]), wanted = leati_pd_md(p->pd, dnnl_query_weights_md);
    int argument = 0;
    LEATI_TRY(leati_session_argument(s, plain, leati_dnnl_arg_at(1, p->offset[B]), &argument, err));
    *out = argument;
    if (!converts_weights(task)) return LEAT_OK;
    kernel->pack_inputs = 1u << 1;
    leati_session_layout(kernel, leati_md_of(&p->md[DST]), wanted);
    leati_md_blocking b;
    const void *layout_owner = leati_md_blocking_of(wanted, &b) ? NULL : kernel->state;
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "bf16 %s %p %lld %d", kernel->layout, layout_owner,
             (long long)task->outputs[0].shape[task->outputs[0].rank - 1], task->attrs->matmul.transpose_b);
    return leati_session_packed(s, kernel, plain, argument, wanted, out, err);
}

/* Adds the call of a part; `weights`: operand b of the parts before, which a part of the rows shares. */
static leat_status add_call(leati_session *s, const leati_task *task, leati_kernel *kernel, const part *p,
                            int *weights, leat_error *err) {
    int memory[MDS] = {0};
    bool bias = has_bias(task), first = s->part_count == 1;
    const leati_md dst = leati_md_of(&p->md[DST]);
    if (first || p->division != ROWS) LEATI_TRY(add_weights(s, task, kernel, p, weights, err));
    LEATI_TRY(leati_session_argument(s, leati_md_of(&p->md[A]), leati_dnnl_arg_at(0, p->offset[A]),
                                     &memory[A], err));
    if (bias)
        LEATI_TRY(leati_session_argument(s, leati_md_of(&p->md[BIAS]), leati_dnnl_arg_at(2, p->offset[BIAS]),
                                         &memory[BIAS], err));
    LEATI_TRY(leati_session_argument(s, dst, leati_dnnl_arg_at(task->input_count, p->offset[DST]),
                                     &memory[DST], err));
    leati_dnnl_arg args[5] = {{DNNL_ARG_SRC, memory[A]},
                              {DNNL_ARG_WEIGHTS, *weights},
                              {DNNL_ARG_DST, memory[DST]},
                              {DNNL_ARG_BIAS, memory[BIAS]}};
    int count = bias ? 4 : 3;
    LEATI_TRY(leati_session_addend(s, task, dst, p->offset[DST], args, &count, err));
    return leati_session_call(s, kernel, p->pd, count, args, true, err);
}

/* Makes p->pd; weights: the layout of converted weights that the first part has chosen, NULL for the first part. */
static leat_status make_pd(part *p, leati_session *s, const leati_task *task, leati_md weights, char *why,
                           leat_error *err) {
    bool fused = true;
    LEATI_TRY(make_mds(p, task, err));
    LEATI_TRY(leati_session_fuse(s, task, leati_md_of(&p->md[DST]), &fused, why, err));
    if (!fused) return LEAT_OK;
    if (!weights) weights = leati_md_of(&p->md[converts_weights(task) ? B_WANTED : B]);
    dnnl_status_t made =
        leati_pd_matmul(&p->pd, s->engine, leati_md_of(&p->md[A]), weights,
                        has_bias(task) ? leati_md_of(&p->md[BIAS]) : NULL, leati_md_of(&p->md[DST]), s->attr);
    return leati_session_accept(made, &p->pd, why, err);
}

static void fini(part *p) {
    if (p->pd) dnnl_primitive_desc_destroy(p->pd);
    for (int i = 0; i < MDS; i++) leati_md_fini(&p->md[i]);
}

/* Chooses what to divide.  A part of the rows reads all of operand b, so that a product of few rows is divided into
 * columns, unless the parts share converted weights. */
static division choose_division(const leati_task *task, int64_t parts, int64_t *size) {
    enum { FEW = 16 };
    const leati_desc *dst = &task->outputs[0];
    int64_t rows = dst->shape[dst->rank - 2], columns = dst->shape[dst->rank - 1], matrices = 1;
    for (int i = 0; i < dst->rank - 2; i++) matrices *= dst->shape[i];
    bool converts = converts_weights(task);
    division chosen = parts == 1                            ? WHOLE
                      : matrices >= parts && !converts      ? MATRICES
                      : rows >= FEW * parts                 ? ROWS
                      : columns >= FEW * parts && !converts ? COLUMNS
                      : rows >= parts                       ? ROWS
                                                            : WHOLE;
    *size = chosen == MATRICES ? matrices : chosen == ROWS ? rows : columns;
    return chosen;
}

static leat_status add_parts(leati_session *s, const leati_task *task, leati_kernel *kernel, part *first,
                             char *why, leat_error *err) {
    int64_t size, count = s->sharing.parts;
    int weights = 0;
    leat_status status = LEAT_OK;
    first->division = choose_division(task, count, &size);
    if (first->division == WHOLE) count = 1;
    for (int64_t i = 0; status == LEAT_OK && !s->indivisible && i < count; i++) {
        part other = {.division = first->division}, *p = i == 0 ? first : &other;
        p->range = leati_dnnl_range_of(size, count, i);
        leati_md chosen =
            i > 0 && converts_weights(task) ? leati_pd_md(first->pd, dnnl_query_weights_md) : NULL;
        status = make_pd(p, s, task, chosen, why, err);
        if (status == LEAT_OK && !p->pd) s->indivisible = count > 1;
        if (status == LEAT_OK && p->pd && i > 0) status = leati_session_next_part(s, err);
        if (status == LEAT_OK && p->pd) status = add_call(s, task, kernel, p, &weights, err);
        if (i > 0) fini(p);
    }
    return status;
}

static leat_status describe(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                            leat_error *err) {
    part first = {.division = WHOLE};
    leat_status status = add_parts(s, task, kernel, &first, why, err);
    fini(&first);
    return status;
}

leat_status leati_onednn_matmul(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    if (!leati_dnnl_takes(task, 1u, 1u << 1 | 1u << task->input_count, why)) return LEAT_OK;
    const leati_desc *a = &task->inputs[0], *dst = &task->outputs[0];
    double depth = (double)a->shape[a->rank - (task->attrs->matmul.transpose_a ? 2 : 1)];
    double operations = 2 * depth * (double)leati_desc_count(dst);
    /* with bf16 a second thread is worthwhile only from so many operations on */
    if (leati_dnnl_type(a) == dnnl_bf16) operations /= 8;
    return leati_session_prepare(task, leati_share_parts(task, operations), kernel, why, err, describe);
}
