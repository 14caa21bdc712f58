/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling by oneDNN.  Maximum pooling writes a workspace (which element was the maximum), so oneDNN computes the
 * gradient only where it computed the forward op.  Room: backends/onednn. */
#include <stdio.h>
#include <string.h>

#include "backends/onednn/ops.h"
#include "backends/onednn/window.h"
#include "base/error.h"

typedef struct pooling {
    leati_own_md src, dst;
    dnnl_primitive_desc_t hint, pd;
} pooling;

static leat_status make_pds(pooling *p, leati_session *s, const leati_task *task, bool backward,
                            bool keep_workspace, char *why, leat_error *err) {
    leati_geometry g;
    LEATI_TRY(leati_geometry_make(&g, &task->attrs->pooling.window, &task->inputs[0], err));
    leati_dnnl_window w = leati_dnnl_window_of(&g, task->attrs->pooling.window.spatial);
    LEATI_DNNL_TRY(leati_image_md(&p->src, w.spatial, g.batch, g.channels, g.in, dnnl_f32),
                   "image description");
    LEATI_DNNL_TRY(leati_image_md(&p->dst, w.spatial, g.batch, g.channels, g.out, dnnl_f32),
                   "image description");
    leati_conv_mds mds = {.src = leati_md_of(&p->src),
                          .dst = leati_md_of(&p->dst),
                          .strides = w.strides,
                          .dilates = w.dilates,
                          .pad_before = w.pad_before,
                          .pad_after = w.pad_after};
    dnnl_alg_kind_t alg =
        task->attrs->pooling.kind == LEATI_POOL_MAX ? dnnl_pooling_max : dnnl_pooling_avg_exclude_padding;
    dnnl_prop_kind_t prop = keep_workspace ? dnnl_forward_training : dnnl_forward_inference;
    dnnl_status_t status = leati_pd_pooling(&p->hint, s->engine, prop, alg, &mds, w.kernel, NULL, s->attr);
    LEATI_TRY(leati_session_accept(status, &p->hint, why, err));
    if (!backward || !p->hint) return LEAT_OK;
    status = leati_pd_pooling(&p->pd, s->engine, dnnl_backward_data, alg, &mds, w.kernel, p->hint, s->attr);
    return leati_session_accept(status, &p->pd, why, err);
}

static void fini(pooling *p) {
    if (p->pd) dnnl_primitive_desc_destroy(p->pd);
    if (p->hint) dnnl_primitive_desc_destroy(p->hint);
    leati_md_fini(&p->src);
    leati_md_fini(&p->dst);
}

static leat_status add_forward(pooling *p, leati_session *s, leati_kernel *kernel, bool keep_workspace,
                               leat_error *err) {
    int src, dst, workspace = 0, count = 2;
    leati_md workspace_md = leati_pd_md(p->hint, dnnl_query_workspace_md);
    LEATI_TRY(leati_session_argument(s, leati_md_of(&p->src), 0, &src, err));
    LEATI_TRY(leati_session_argument(s, leati_md_of(&p->dst), 1, &dst, err));
    if (keep_workspace && workspace_md && dnnl_memory_desc_get_size(workspace_md) > 0) {
        LEATI_TRY(leati_session_argument(s, workspace_md, 2, &workspace, err));
        kernel->output_bytes[1] = dnnl_memory_desc_get_size(workspace_md);
        count++;
    }
    const leati_dnnl_arg args[] = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, dst}, {DNNL_ARG_WORKSPACE, workspace}};
    leati_session_layout(kernel, leati_md_of(&p->src), NULL);
    return leati_session_call(s, kernel, p->hint, count, args, true, err);
}

static leat_status forward(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                           leat_error *err) {
    pooling p = {0};
    bool keep_workspace = task->attrs->pooling.kind == LEATI_POOL_MAX && !(task->unused & 2);
    leat_status status = make_pds(&p, s, task, false, keep_workspace, why, err);
    if (status == LEAT_OK && p.hint) status = add_forward(&p, s, kernel, keep_workspace, err);
    fini(&p);
    return status;
}

static leat_status add_backward(pooling *p, leati_session *s, leati_kernel *kernel, leat_error *err) {
    int diff_dst, diff_src, workspace = 0, count = 2;
    leati_md workspace_md = leati_pd_md(p->pd, dnnl_query_workspace_md);
    LEATI_TRY(leati_session_argument(s, leati_md_of(&p->dst), 2, &diff_dst, err));
    LEATI_TRY(leati_session_argument(s, leati_md_of(&p->src), 4, &diff_src, err));
    if (workspace_md && dnnl_memory_desc_get_size(workspace_md) > 0) {
        LEATI_TRY(leati_session_argument(s, workspace_md, 3, &workspace, err));
        count++;
    }
    const leati_dnnl_arg args[] = {{DNNL_ARG_DIFF_DST, diff_dst},
                                   {DNNL_ARG_DIFF_SRC, diff_src},
                                   {DNNL_ARG_WORKSPACE, workspace}};
    leati_session_layout(kernel, leati_md_of(&p->src), NULL);
    return leati_session_call(s, kernel, p->pd, count, args, true, err);
}

static leat_status backward(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                            leat_error *err) {
    pooling p = {0};
    bool maximum = task->attrs->pooling.kind == LEATI_POOL_MAX;
    if (maximum && (!task->forward || strncmp(task->forward->implementation, "onednn", 6) != 0)) {
        snprintf(why, LEATI_REASON_BYTES,
                 "another backend computed the forward pass, so there is no workspace");
        return LEAT_OK;
    }
    leat_status status = make_pds(&p, s, task, true, maximum, why, err);
    if (status == LEAT_OK && p.pd) status = add_backward(&p, s, kernel, err);
    fini(&p);
    return status;
}

leat_status leati_onednn_pooling(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    return leati_session_prepare(task, leati_threads_for(task, LEATI_MANY, false), kernel, why, err, forward);
}

leat_status leati_onednn_pooling_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    return leati_session_prepare(task, leati_threads_for(task, LEATI_MANY, false), kernel, why, err,
                                 backward);
}
