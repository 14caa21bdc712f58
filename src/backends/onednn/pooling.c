/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling by oneDNN.  Maximum pooling writes a workspace (which element was the maximum), so oneDNN computes the
 * gradient only where it computed the forward op.  Room: backends/onednn. */
#include <stdio.h>
#include <string.h>

#include "backends/onednn/ops.h"
#include "backends/onednn/parts.h"
#include "backends/onednn/window.h"
#include "base/error.h"

/* The descriptors of a part. */
typedef struct pooling {
    leati_own_md src, dst;
    dnnl_primitive_desc_t hint, pd; /* pd: of the gradient */
} pooling;

/* A pooling op, and the part that is being made. */
typedef struct divided {
    leati_session *s;
    const leati_task *task;
    leati_kernel *kernel;
    char *why;
    bool backward, workspace; /* workspace: the op writes it, or reads it */
    leati_geometry whole;
    leati_dnnl_parts parts;
    leati_dnnl_part part;
    pooling made;
} divided;

static void fini(pooling *p) {
    if (p->pd) dnnl_primitive_desc_destroy(p->pd);
    if (p->hint) dnnl_primitive_desc_destroy(p->hint);
    leati_md_fini(&p->src);
    leati_md_fini(&p->dst);
    *p = (pooling){0};
}

static leat_status make_pds(divided *d, leat_error *err) {
    pooling *p = &d->made;
    leati_session *s = d->s;
    const leati_geometry *g = &d->part.g;
    leati_dnnl_window w = leati_dnnl_window_of(g, d->task->attrs->pooling.window.spatial);
    LEATI_DNNL_TRY(leati_image_md(&p->src, w.spatial, g->batch, g->channels, g->in, dnnl_f32),
                   "image description");
    LEATI_DNNL_TRY(leati_image_md(&p->dst, w.spatial, g->batch, g->channels, g->out, dnnl_f32),
                   "image description");
    leati_conv_mds mds = {.src = leati_md_of(&p->src),
                          .dst = leati_md_of(&p->dst),
                          .strides = w.strides,
                          .dilates = w.dilates,
                          .pad_before = w.pad_before,
                          .pad_after = w.pad_after};
    dnnl_alg_kind_t alg =
        d->task->attrs->pooling.kind == LEATI_POOL_MAX ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
    dnnl_prop_kind_t prop = d->workspace ? dnnl_forward_training : dnnl_forward_inference;
    dnnl_status_t status = leati_pd_pooling(&p->hint, s->engine, prop, alg, &mds, w.kernel, NULL, s->attr);
    LEATI_TRY(leati_session_accept(status, &p->hint, d->why, err));
    if (!d->backward || !p->hint) return LEAT_OK;
    status = leati_pd_pooling(&p->pd, s->engine, dnnl_backward_data, alg, &mds, w.kernel, p->hint, s->attr);
    return leati_session_accept(status, &p->pd, d->why, err);
}

/* Adds the workspace, which says for each element of the result which one of its window was the maximum; the part's
 * begins where its result begins. */
static leat_status add_workspace(divided *d, dnnl_primitive_desc_t pd, int arg, leati_dnnl_arg *args,
                                 int *count, leat_error *err) {
    leati_md workspace = leati_pd_md(pd, dnnl_query_workspace_md);
    size_t bytes = workspace ? dnnl_memory_desc_get_size(workspace) : 0;
    if (!d->workspace || bytes == 0) return LEAT_OK;
    size_t of_pixel = bytes / (size_t)d->part.g.out_pixels;
    d->s->indivisible = d->parts.count > 1 && of_pixel * (size_t)d->part.g.out_pixels != bytes;
    if (!d->backward)
        d->kernel->output_bytes[1] = d->parts.count > 1 ? of_pixel * (size_t)d->whole.out_pixels : bytes;
    args[*count].arg = DNNL_ARG_WORKSPACE;
    return leati_session_argument(d->s, workspace, leati_dnnl_arg_at(arg, (size_t)d->part.dst * of_pixel),
                                  &args[(*count)++].memory, err);
}

static leat_status add_call(divided *d, leat_error *err) {
    const bool backward = d->backward;
    dnnl_primitive_desc_t pd = backward ? d->made.pd : d->made.hint;
    const size_t of_pixel = (size_t)d->whole.channels * sizeof(float);
    leati_dnnl_place src = leati_dnnl_arg_at(backward ? 4 : 0, (size_t)d->part.src * of_pixel),
                     dst = leati_dnnl_arg_at(backward ? 2 : 1, (size_t)d->part.dst * of_pixel);
    leati_dnnl_arg args[3] = {{backward ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, 0},
                              {backward ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST, 0}};
    int count = 2;
    LEATI_TRY(leati_session_argument(d->s, leati_md_of(&d->made.src), src, &args[0].memory, err));
    LEATI_TRY(leati_session_argument(d->s, leati_md_of(&d->made.dst), dst, &args[1].memory, err));
    LEATI_TRY(add_workspace(d, pd, backward ? 3 : 2, args, &count, err));
    leati_session_layout(d->kernel, leati_md_of(&d->made.src), NULL);
    return leati_session_call(d->s, d->kernel, pd, count, args, true, err);
}

/* Adds a part; makes its descriptors, unless it is like the part before it. */
static leat_status add_part(divided *d, int64_t index, leat_error *err) {
    leati_dnnl_part before = d->part;
    d->part = leati_dnnl_part_at(&d->parts, index);
    if (index == 0 || !leati_dnnl_parts_equal(&before, &d->part)) {
        fini(&d->made);
        LEATI_TRY(make_pds(d, err));
    }
    if (!(d->backward ? d->made.pd : d->made.hint)) {
        d->s->indivisible = d->parts.count > 1;
        return LEAT_OK;
    }
    if (index > 0) LEATI_TRY(leati_session_next_part(d->s, err));
    return add_call(d, err);
}

/* The parts of the gradient are ranges of samples, since windows of several rows of the result share rows of the
 * source. */
static leat_status divide(divided *d, leat_error *err) {
    leat_status status = LEAT_OK;
    LEATI_TRY(leati_geometry_make(&d->whole, &d->task->attrs->pooling.window, &d->task->inputs[0], err));
    d->parts = leati_dnnl_divide(&d->whole, d->s->sharing.parts, !d->backward);
    for (int64_t i = 0; status == LEAT_OK && !d->s->indivisible && i < d->parts.count; i++)
        status = add_part(d, i, err);
    fini(&d->made);
    return status;
}

static leat_status forward(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                           leat_error *err) {
    divided d = {.s = s, .task = task, .kernel = kernel, .why = why};
    d.workspace = task->attrs->pooling.kind == LEATI_POOL_MAX && !(task->unused & 2);
    return divide(&d, err);
}

static leat_status backward(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                            leat_error *err) {
    divided d = {.s = s, .task = task, .kernel = kernel, .why = why, .backward = true};
    d.workspace = task->attrs->pooling.kind == LEATI_POOL_MAX;
    if (d.workspace && (!task->forward || strncmp(task->forward->implementation, "onednn", 6) != 0)) {
        snprintf(why, LEATI_REASON_BYTES,
                 "another backend computed the forward pass, so there is no workspace");
        return LEAT_OK;
    }
    return divide(&d, err);
}

leat_status leati_onednn_pooling(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    return leati_session_prepare(task, leati_share_parts(task, LEATI_MANY), kernel, why, err, forward);
}

leat_status leati_onednn_pooling_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    return leati_session_prepare(task, leati_share_parts(task, LEATI_MANY), kernel, why, err, backward);
}
