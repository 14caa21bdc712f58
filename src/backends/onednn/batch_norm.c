/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation by oneDNN, over the last axis: any source is (rows, 1, 1, channels) to it.
 * Layer: backends/onednn. */
#include <math.h>
#include <stdio.h>

#include "backends/onednn/ops.h"
#include "backends/onednn/session.h"
#include "base/error.h"

typedef struct norm {
    leati_own_md data, channel;
    dnnl_primitive_desc_t hint, pd;
} norm;

static leat_status make_pds(norm *n, leati_session *s, const leati_task *task, dnnl_prop_kind_t prop,
                            unsigned flags, bool backward, char *why, leat_error *err) {
    const leati_desc *src = &task->inputs[0];
    int64_t channels = src->shape[src->rank - 1];
    dnnl_dims_t dims = {leati_desc_count(src) / channels, channels, 1, 1}, channel = {channels};
    float epsilon = task->attrs->batch_norm.epsilon;
    LEATI_DNNL_TRY(leati_md_init(&n->data, 4, dims, dnnl_nhwc), "image description");
    LEATI_DNNL_TRY(leati_md_init(&n->channel, 1, channel, dnnl_a), "channel description");
    leati_md data = leati_md_of(&n->data);
    dnnl_status_t status =
        leati_pd_batch_norm(&n->hint, s->engine, prop, data, epsilon, flags, NULL, s->attr);
    LEATI_TRY(leati_session_accept(status, &n->hint, why, err));
    if (!backward || !n->hint) return LEAT_OK;
    status = leati_pd_batch_norm(&n->pd, s->engine, dnnl_backward, data, epsilon, flags, n->hint, s->attr);
    return leati_session_accept(status, &n->pd, why, err);
}

static void fini(norm *n) {
    if (n->pd) dnnl_primitive_desc_destroy(n->pd);
    if (n->hint) dnnl_primitive_desc_destroy(n->hint);
    leati_md_fini(&n->data);
    leati_md_fini(&n->channel);
}

/* Adds argument `arg` of the kernel as oneDNN's `as`. */
static leat_status bind(leati_session *s, leati_md md, int as, int arg, leati_dnnl_arg *args, int *count,
                        leat_error *err) {
    args[*count].arg = as;
    return leati_session_argument(s, md, arg, &args[(*count)++].memory, err);
}

static bool present(const leati_task *task, int input) {
    return input < task->input_count && task->inputs[input].rank >= 0;
}

static unsigned flags_of(const leati_task *task) {
    return (present(task, 1) ? (unsigned)dnnl_use_scale : 0u) |
           (present(task, 2) ? (unsigned)dnnl_use_shift : 0u) |
           (task->attrs->post.kinds ? (unsigned)dnnl_fuse_norm_relu : 0u);
}

/* The only function that oneDNN fuses here: max(x, 0). */
static bool fuses(const leati_task *task, char *why) {
    const leati_eltwise *f = &task->attrs->post.function;
    bool plain = f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0 && isinf(f->b);
    if (!task->attrs->post.kinds || plain) return true;
    snprintf(why, LEATI_REASON_BYTES, "not fused");
    return false;
}

static leat_status add_forward(norm *n, leati_session *s, const leati_task *task, leati_kernel *kernel,
                               int mean, int dst, leat_error *err) {
    leati_dnnl_arg args[LEATI_DNNL_ARGS];
    leati_md data = leati_md_of(&n->data), channel = leati_md_of(&n->channel);
    int count = 0;
    LEATI_TRY(bind(s, data, DNNL_ARG_SRC, 0, args, &count, err));
    LEATI_TRY(bind(s, data, DNNL_ARG_DST, dst, args, &count, err));
    LEATI_TRY(bind(s, channel, DNNL_ARG_MEAN, mean, args, &count, err));
    LEATI_TRY(bind(s, channel, DNNL_ARG_VARIANCE, mean + 1, args, &count, err));
    if (present(task, 1)) LEATI_TRY(bind(s, channel, DNNL_ARG_SCALE, 1, args, &count, err));
    if (present(task, 2)) LEATI_TRY(bind(s, channel, DNNL_ARG_SHIFT, 2, args, &count, err));
    leati_md workspace = leati_pd_md(n->hint, dnnl_query_workspace_md);
    if (workspace &&
        dnnl_memory_desc_get_size(workspace) > 0) { /* which elements were positive: the gradient */
        args[count].arg = DNNL_ARG_WORKSPACE;       /* of the function sees that from dst */
        LEATI_TRY(leati_session_scratch(s, kernel, workspace, &args[count++].memory, err));
    }
    leati_session_layout(kernel, data, NULL);
    return leati_session_call(s, kernel, n->hint, count, args, true, err);
}

static leat_status forward(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                           leat_error *err) {
    norm n = {0};
    int dst = task->input_count;
    leat_status status = make_pds(&n, s, task, dnnl_forward_training, flags_of(task), false, why, err);
    if (status == LEAT_OK && n.hint) status = add_forward(&n, s, task, kernel, dst + 1, dst, err);
    fini(&n);
    return status;
}

static leat_status apply(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                         leat_error *err) {
    norm n = {0};
    unsigned flags = flags_of(task) | (unsigned)dnnl_use_global_stats;
    leat_status status = make_pds(&n, s, task, dnnl_forward_inference, flags, false, why, err);
    if (status == LEAT_OK && n.hint) status = add_forward(&n, s, task, kernel, 3, 5, err);
    fini(&n);
    return status;
}

/* A memory of ones, made at every run from the means: 0 mean + 1. */
static leat_status add_ones(norm *n, leati_session *s, leati_kernel *kernel, int *out, leat_error *err) {
    leati_md channel = leati_md_of(&n->channel);
    dnnl_primitive_desc_t pd = NULL;
    leati_dnnl_arg args[2] = {{DNNL_ARG_SRC, 0}, {DNNL_ARG_DST, 0}};
    LEATI_TRY(leati_session_argument(s, channel, 2, &args[0].memory, err));
    LEATI_TRY(leati_session_scratch(s, kernel, channel, out, err));
    args[1].memory = *out;
    LEATI_DNNL_TRY(leati_pd_eltwise(&pd, s->engine, dnnl_eltwise_linear, channel, 0, 1, NULL, s->attr),
                   "description of ones");
    leat_status status = leati_session_call(s, kernel, pd, 2, args, false, err);
    dnnl_primitive_desc_destroy(pd);
    return status;
}

/* diff_gamma and diff_beta are always computed. */
static leat_status add_backward(norm *n, leati_session *s, leati_kernel *kernel, bool gamma,
                                leat_error *err) {
    leati_dnnl_arg args[LEATI_DNNL_ARGS];
    leati_md data = leati_md_of(&n->data), channel = leati_md_of(&n->channel);
    int count = 0, scale = 0;
    if (gamma)
        LEATI_TRY(leati_session_argument(s, channel, 1, &scale, err));
    else
        LEATI_TRY(add_ones(n, s, kernel, &scale, err));
    LEATI_TRY(bind(s, data, DNNL_ARG_SRC, 0, args, &count, err));
    args[count++] = (leati_dnnl_arg){DNNL_ARG_SCALE, scale};
    /* The shift's value matters to nobody here, but 2.6 wants to see one. */
    if (!LEATI_DNNL3) args[count++] = (leati_dnnl_arg){DNNL_ARG_SHIFT, scale};
    LEATI_TRY(bind(s, channel, DNNL_ARG_MEAN, 2, args, &count, err));
    LEATI_TRY(bind(s, channel, DNNL_ARG_VARIANCE, 3, args, &count, err));
    LEATI_TRY(bind(s, data, DNNL_ARG_DIFF_DST, 4, args, &count, err));
    LEATI_TRY(bind(s, data, DNNL_ARG_DIFF_SRC, 5, args, &count, err));
    LEATI_TRY(bind(s, channel, DNNL_ARG_DIFF_SCALE, 6, args, &count, err));
    LEATI_TRY(bind(s, channel, DNNL_ARG_DIFF_SHIFT, 7, args, &count, err));
    leati_session_layout(kernel, data, NULL);
    return leati_session_call(s, kernel, n->pd, count, args, true, err);
}

static leat_status backward(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                            leat_error *err) {
    norm n = {0};
    unsigned flags = (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift;
    leat_status status = make_pds(&n, s, task, dnnl_forward_training, flags, true, why, err);
    if (status == LEAT_OK && n.pd) status = add_backward(&n, s, kernel, present(task, 1), err);
    fini(&n);
    return status;
}

leat_status leati_onednn_batch_norm(const leati_task *task, leati_kernel *kernel, char *why,
                                    leat_error *err) {
    if (!fuses(task, why)) return LEAT_OK;
    return leati_session_prepare(task, leati_threads_for(task, LEATI_MANY, true), kernel, why, err, forward);
}

leat_status leati_onednn_batch_norm_apply(const leati_task *task, leati_kernel *kernel, char *why,
                                          leat_error *err) {
    if (!fuses(task, why)) return LEAT_OK;
    return leati_session_prepare(task, leati_threads_for(task, LEATI_MANY, false), kernel, why, err, apply);
}

leat_status leati_onednn_batch_norm_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                        leat_error *err) {
    return leati_session_prepare(task, leati_threads_for(task, LEATI_MANY, true), kernel, why, err, backward);
}
