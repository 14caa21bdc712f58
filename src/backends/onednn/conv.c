/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by oneDNN: images stay (N, spatial..., C) in memory; weights are packed into the layout that the
 * primitive wants.  A fused normalisation is folded into them: with s = gamma / sqrt(variance + epsilon) per
 * filter, weights times s, and (bias - mean) s + beta for the bias.  Room: backends/onednn. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/onednn/ops.h"
#include "backends/onednn/window.h"
#include "base/error.h"
#include "base/memory.h"

enum { SRC, WEIGHTS, WEIGHTS_ANY, WEIGHTS_HINT, BIAS, DST, SRC_BLOCKED, DST_BLOCKED, MDS };

typedef struct conv {
    leati_geometry g;
    leati_dnnl_window w;
    leati_own_md md[MDS];
    leati_conv_mds any; /* what oneDNN is asked for; it may choose the layout of the weights */
    /* Types of the images; of the weights as the kernel receives them, and as the primitive wants them. */
    dnnl_data_type_t src, dst, weights_type, wanted_type;
    bool bias;
    dnnl_primitive_desc_t hint, pd;
} conv;

static leat_status make_mds(conv *c, leat_error *err) {
    static const dnnl_format_tag_t plain[] = {dnnl_wio, dnnl_hwio, dnnl_dhwio};
    static const dnnl_format_tag_t grouped[] = {dnnl_wigo, dnnl_hwigo, dnnl_dhwigo};
    const leati_geometry *g = &c->g;
    int spatial = c->w.spatial, rank = 0;
    dnnl_dims_t dims, filters = {g->filters};
    if (g->groups > 1) dims[rank++] = g->groups;
    dims[rank++] = g->filters / g->groups;
    dims[rank++] = g->channels / g->groups;
    for (int i = 0; i < spatial; i++) dims[rank++] = c->w.kernel[i];
    dnnl_format_tag_t tag = g->groups > 1 ? grouped[spatial - 1] : plain[spatial - 1];
    LEATI_DNNL_TRY(leati_image_md(&c->md[SRC], spatial, g->batch, g->channels, g->in, c->src),
                   "image description");
    LEATI_DNNL_TRY(leati_image_md(&c->md[DST], spatial, g->batch, g->filters, g->out, c->dst),
                   "image description");
    LEATI_DNNL_TRY(leati_md_init_as(&c->md[WEIGHTS], rank, dims, c->weights_type, tag),
                   "weights description");
    LEATI_DNNL_TRY(leati_md_init_as(&c->md[WEIGHTS_ANY], rank, dims, c->wanted_type, dnnl_format_tag_any),
                   "weights description");
    LEATI_DNNL_TRY(leati_md_init_as(&c->md[WEIGHTS_HINT], rank, dims, c->src, dnnl_format_tag_any),
                   "weights description");
    LEATI_DNNL_TRY(leati_md_init(&c->md[BIAS], 1, filters, dnnl_a), "bias description");
    c->any = (leati_conv_mds){.src = leati_md_of(&c->md[SRC]),
                              .weights = leati_md_of(&c->md[WEIGHTS_ANY]),
                              .bias = c->bias ? leati_md_of(&c->md[BIAS]) : NULL,
                              .dst = leati_md_of(&c->md[DST]),
                              .strides = c->w.strides,
                              .dilates = c->w.dilates,
                              .pad_before = c->w.pad_before,
                              .pad_after = c->w.pad_after};
    return LEAT_OK;
}

static dnnl_status_t describe(conv *c, leati_session *s, dnnl_prop_kind_t prop) {
    dnnl_status_t status = dnnl_success;
    leati_conv_mds hint = c->any;
    hint.weights = leati_md_of(&c->md[WEIGHTS_HINT]);
    if (prop == dnnl_backward_data || prop == dnnl_backward_weights)
        status = leati_pd_conv(&c->hint, s->engine, dnnl_forward_training, &hint, NULL, s->attr);
    return status == dnnl_success ? leati_pd_conv(&c->pd, s->engine, prop, &c->any, c->hint, s->attr)
                                  : status;
}

static void destroy_descriptors(conv *c) {
    if (c->pd) dnnl_primitive_desc_destroy(c->pd);
    if (c->hint) dnnl_primitive_desc_destroy(c->hint);
    c->pd = c->hint = NULL;
}

/* Returns the number of spatial axes for oneDNN.  oneDNN 2.6 has a fast depthwise convolution only for images, so a
 * sequence becomes an image of one row.  (512x64, 16 samples, window of 5: 2.6 ms as a sequence on one Zen 3 core.) */
static int axes_of(const leati_geometry *g, int spatial) {
    return spatial == 1 && g->groups > 1 ? 2 : spatial;
}

/* Products of bf16 are summed in f32; the gradient with respect to the weights stays f32. */
static void read_types(conv *c, const leati_task *task) {
    bool data = task->op == LEATI_OP_CONV_BWD_DATA, weights = task->op == LEATI_OP_CONV_BWD_WEIGHTS;
    c->src = leati_dnnl_type(data ? &task->outputs[0] : &task->inputs[0]);
    c->dst = leati_dnnl_type(data ? &task->inputs[0] : weights ? &task->inputs[1] : &task->outputs[0]);
    c->weights_type = leati_dnnl_type(weights ? &task->outputs[0] : &task->inputs[1]);
    c->wanted_type = weights ? c->weights_type : data ? c->dst : c->src;
}

static leat_status read_task(conv *c, const leati_task *task, leat_error *err) {
    read_types(c, task);
    LEATI_TRY(leati_conv_geometry(&c->g, task->op, task->attrs, task->inputs, err));
    c->w = leati_dnnl_window_of(&c->g, axes_of(&c->g, task->attrs->conv.window.spatial));
    return make_mds(c, err);
}

/* Makes the descriptor of a gradient; c->pd stays NULL where oneDNN is not suitable. */
static leat_status make_pd(conv *c, leati_session *s, const leati_task *task, dnnl_prop_kind_t prop,
                           char *why, leat_error *err) {
    LEATI_TRY(read_task(c, task, err));
    return leati_session_accept(describe(c, s, prop), &c->pd, why, err);
}

/* True if the gradient with respect to the source is faster in blocks of eight channels.  On a CPU with AVX2 but no
 * AVX-512 it takes 20.3 ms from plain images and 17.2 from blocks, reorders included (26x26x32 to 24x24x64, 64
 * images, one Zen 3 core).  With few products per element blocks do not pay; nor do they for the gradient with
 * respect to the weights (24.5 and 23.5 ms). */
static bool blocks_pay(const conv *c) {
    const leati_geometry *g = &c->g;
    return strcmp(leati_dnnl_name(c->pd), "jit:avx2") == 0 && g->groups == 1 && g->channels % 8 == 0 &&
           g->filters % 8 == 0 && g->taps * g->filters >= 128 && g->taps * g->channels >= 128;
}

static leat_status use_blocks(conv *c, leati_session *s, char *why, leat_error *err) {
    const leati_geometry *g = &c->g;
    int spatial = c->w.spatial;
    LEATI_DNNL_TRY(leati_blocked_image_md(&c->md[SRC_BLOCKED], spatial, g->batch, g->channels, g->in),
                   "blocks");
    LEATI_DNNL_TRY(leati_blocked_image_md(&c->md[DST_BLOCKED], spatial, g->batch, g->filters, g->out),
                   "blocks");
    c->any.src = leati_md_of(&c->md[SRC_BLOCKED]);
    c->any.dst = leati_md_of(&c->md[DST_BLOCKED]);
    destroy_descriptors(c);
    return leati_session_accept(describe(c, s, dnnl_backward_data), &c->pd, why, err);
}

static void fini(conv *c) {
    destroy_descriptors(c);
    for (int i = 0; i < MDS; i++) leati_md_fini(&c->md[i]);
}

/* Data of fold_norm(): where weights and bias are folded to, and from what. */
typedef struct fold {
    int64_t filters, count; /* elements of the weights */
    float epsilon;
    bool bias;
    int post; /* index of the first fused argument */
    int weights_memory, bias_memory;
} fold;

static void fold_norm(const leati_session *s, const leati_kernel *kernel, void *const *args,
                      const leati_run *run, unsigned char *pack) {
    const fold *f = s->before_data;
    const float *weights = args[1], *bias = f->bias ? args[2] : NULL,
                *gamma = args[f->post + LEATI_POST_GAMMA];
    const float *beta = args[f->post + LEATI_POST_BETA], *mean = args[f->post + LEATI_POST_MEAN];
    const float *variance = args[f->post + LEATI_POST_VARIANCE];
    float *to = leati_session_at(s, f->weights_memory, args, run, pack);
    float *shift = leati_session_at(s, f->bias_memory, args, run, pack);
    (void)kernel;
    for (int64_t o = 0; o < f->filters; o++) { /* the scales are stored first where the bias will be */
        double scale = (gamma ? (double)gamma[o] : 1) / sqrt((double)variance[o] + (double)f->epsilon);
        shift[o] = (float)scale;
    }
    for (int64_t row = 0; row < f->count; row += f->filters)
        for (int64_t o = 0; o < f->filters; o++) to[row + o] = weights[row + o] * shift[o];
    for (int64_t o = 0; o < f->filters; o++) {
        double before = (bias ? (double)bias[o] : 0) - (double)mean[o];
        shift[o] = (float)(before * (double)shift[o] + (beta ? (double)beta[o] : 0));
    }
}

/* Sets the key of the packed weights: two kernels with equal keys pack the same weights alike. */
static void set_key(const conv *c, const leati_task *task, leati_kernel *kernel, leati_md wanted) {
    leati_md_blocking b;
    bool norm = task->attrs->post.kinds & LEATI_POST_NORM;
    const void *layout_owner = leati_md_blocking_of(wanted, &b) ? NULL : kernel->state;
    const char *layout = strstr(kernel->layout, "weights");
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "%s%s %p %lldx%lld/%lld%s%.9g", layout ? layout : "",
             c->wanted_type == dnnl_bf16 ? " bf16" : "", layout_owner, (long long)c->g.channels,
             (long long)c->g.filters, (long long)c->g.groups, norm ? " norm " : " ",
             (double)(norm ? task->attrs->post.epsilon : 0));
    kernel->pack_inputs = 1u << 1;
    if (!norm) return;
    for (int i = 2; i <= leati_op_inputs(task) + LEATI_POST_VARIANCE; i++) kernel->pack_inputs |= 1u << i;
}

/* Adds the folded weights and bias, in the layouts that the primitive reads. */
static leat_status add_folded(conv *c, leati_session *s, const leati_task *task, leati_kernel *kernel,
                              int *weights, int *bias, leat_error *err) {
    leati_md plain = leati_md_of(&c->md[WEIGHTS]), wanted = leati_pd_md(c->pd, dnnl_query_weights_md);
    fold *f = leati_calloc(1, sizeof *f);
    if (!f) return leati_fail_memory(err, sizeof *f, "a convolution");
    s->before_data = f;
    s->before = fold_norm;
    *f = (fold){.filters = c->g.filters,
                .count = leati_desc_count(&task->inputs[1]),
                .epsilon = task->attrs->post.epsilon,
                .post = leati_op_inputs(task)};
    f->bias = f->post > 2 && task->inputs[2].rank >= 0;
    if (dnnl_memory_desc_equal(plain, wanted))
        LEATI_TRY(leati_session_pack(s, plain, &f->weights_memory, err));
    else
        LEATI_TRY(leati_session_scratch(s, kernel, plain, &f->weights_memory, err));
    LEATI_TRY(leati_session_pack(s, c->any.bias, &f->bias_memory, err));
    *bias = f->bias_memory;
    return leati_session_packed(s, kernel, plain, f->weights_memory, wanted, weights, err);
}

static leat_status add_plain(conv *c, leati_session *s, leati_kernel *kernel, int *weights, int *bias,
                             leat_error *err) {
    leati_md plain = leati_md_of(&c->md[WEIGHTS]), wanted = leati_pd_md(c->pd, dnnl_query_weights_md);
    int argument = 0;
    LEATI_TRY(leati_session_argument(s, plain, 1, &argument, err));
    LEATI_TRY(leati_session_packed(s, kernel, plain, argument, wanted, weights, err));
    return c->bias ? leati_session_argument(s, c->any.bias, 2, bias, err) : LEAT_OK;
}

static leat_status add_forward(conv *c, leati_session *s, const leati_task *task, leati_kernel *kernel,
                               leat_error *err) {
    int src, weights, bias = 0, dst, count = c->bias ? 4 : 3;
    bool norm = task->attrs->post.kinds & LEATI_POST_NORM;
    LEATI_TRY(leati_session_argument(s, c->any.src, 0, &src, err));
    LEATI_TRY(norm ? add_folded(c, s, task, kernel, &weights, &bias, err)
                   : add_plain(c, s, kernel, &weights, &bias, err));
    LEATI_TRY(leati_session_argument(s, c->any.dst, task->input_count, &dst, err));
    leati_dnnl_arg args[5] = {{DNNL_ARG_SRC, src},
                              {DNNL_ARG_WEIGHTS, weights},
                              {DNNL_ARG_DST, dst},
                              {DNNL_ARG_BIAS, bias}};
    LEATI_TRY(leati_session_addend(s, task, c->any.dst, args, &count, err));
    leati_session_layout(kernel, c->any.dst, leati_pd_md(c->pd, dnnl_query_weights_md));
    set_key(c, task, kernel, leati_pd_md(c->pd, dnnl_query_weights_md));
    return leati_session_call(s, kernel, c->pd, count, args, true, err);
}

static leat_status forward(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                           leat_error *err) {
    bool has_bias = leati_op_inputs(task) > 2 && task->inputs[2].rank >= 0, fused = true;
    conv c = {.bias = has_bias || task->attrs->post.kinds & LEATI_POST_NORM};
    leat_status status = read_task(&c, task, err);
    if (status == LEAT_OK) status = leati_session_fuse(s, task, c.any.dst, &fused, why, err);
    if (status == LEAT_OK && fused)
        status = leati_session_accept(describe(&c, s, dnnl_forward_inference), &c.pd, why, err);
    if (status == LEAT_OK && c.pd) status = add_forward(&c, s, task, kernel, err);
    fini(&c);
    return status;
}

static leat_status add_bwd_data(conv *c, leati_session *s, const leati_task *task, leati_kernel *kernel,
                                leat_error *err) {
    int diff_dst, weights, none = 0, diff_src;
    leati_md plain_src = leati_md_of(&c->md[SRC]), plain_dst = leati_md_of(&c->md[DST]);
    LEATI_TRY(leati_session_input(s, kernel, plain_dst, c->any.dst, 0, &diff_dst, err));
    LEATI_TRY(add_plain(c, s, kernel, &weights, &none, err));
    LEATI_TRY(leati_session_target(s, kernel, plain_src, c->any.src, 2, &diff_src, err));
    const leati_dnnl_arg args[] = {{DNNL_ARG_DIFF_DST, diff_dst},
                                   {DNNL_ARG_WEIGHTS, weights},
                                   {DNNL_ARG_DIFF_SRC, diff_src}};
    leati_session_layout(kernel, c->any.src, leati_pd_md(c->pd, dnnl_query_weights_md));
    set_key(c, task, kernel, leati_pd_md(c->pd, dnnl_query_weights_md));
    LEATI_TRY(leati_session_call(s, kernel, c->pd, 3, args, true, err));
    return leati_session_output(s, kernel, plain_src, c->any.src, diff_src, 2, err);
}

static leat_status bwd_data(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                            leat_error *err) {
    conv c = {.bias = false};
    leat_status status = make_pd(&c, s, task, dnnl_backward_data, why, err);
    if (status == LEAT_OK && c.pd && blocks_pay(&c)) status = use_blocks(&c, s, why, err);
    if (status == LEAT_OK && c.pd) status = add_bwd_data(&c, s, task, kernel, err);
    fini(&c);
    return status;
}

static leat_status add_bwd_weights(conv *c, leati_session *s, const leati_task *task, leati_kernel *kernel,
                                   leat_error *err) {
    int src, diff_dst, diff_weights, diff_bias = 0, count = 3;
    leati_md plain = leati_md_of(&c->md[WEIGHTS]), made = leati_pd_md(c->pd, dnnl_query_diff_weights_md);
    LEATI_TRY(leati_session_argument(s, c->any.src, 0, &src, err));
    LEATI_TRY(leati_session_argument(s, c->any.dst, 1, &diff_dst, err));
    if (task->unused & 1)
        LEATI_TRY(leati_session_scratch(s, kernel, made, &diff_weights, err));
    else
        LEATI_TRY(leati_session_target(s, kernel, plain, made, 2, &diff_weights, err));
    if (c->bias) {
        LEATI_TRY(leati_session_argument(s, c->any.bias, 3, &diff_bias, err));
        count++;
    }
    const leati_dnnl_arg args[] = {{DNNL_ARG_SRC, src},
                                   {DNNL_ARG_DIFF_DST, diff_dst},
                                   {DNNL_ARG_DIFF_WEIGHTS, diff_weights},
                                   {DNNL_ARG_DIFF_BIAS, diff_bias}};
    leati_session_layout(kernel, c->any.src, made);
    LEATI_TRY(leati_session_call(s, kernel, c->pd, count, args, true, err));
    if (task->unused & 1) return LEAT_OK;
    return leati_session_output(s, kernel, plain, made, diff_weights, 2, err);
}

static leat_status bwd_weights(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                               leat_error *err) {
    conv c = {.bias = !(task->unused & 2)};
    leat_status status = make_pd(&c, s, task, dnnl_backward_weights, why, err);
    if (status == LEAT_OK && c.pd) status = add_bwd_weights(&c, s, task, kernel, err);
    fini(&c);
    return status;
}

/* Returns the threads for a convolution with this dst and weights (spatial..., channels / groups, filters). */
static int threads_for(const leati_task *task, const leati_desc *dst, const leati_desc *weights, bool sums) {
    double operations = 2 * (double)leati_desc_count(dst);
    for (int i = 0; i + 1 < weights->rank; i++) operations *= (double)weights->shape[i];
    return leati_threads_for(task, operations, sums);
}

/* True if weights (spatial..., channels, filters) have more than one tap. */
static bool has_taps(const leati_desc *weights) {
    int64_t taps = 1;
    for (int i = 0; i + 2 < weights->rank; i++) taps *= weights->shape[i];
    return taps > 1;
}

leat_status leati_onednn_conv(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    /* weights that a normalisation is folded into are f32 */
    uint32_t weights = task->attrs->post.kinds & LEATI_POST_NORM ? 0 : 1u << 1;
    if (!leati_dnnl_takes(task, 1u, weights | 1u << task->input_count, why)) return LEAT_OK;
    int threads = threads_for(task, &task->outputs[0], &task->inputs[1], false);
    return leati_session_prepare(task, threads, kernel, why, err, forward);
}

leat_status leati_onednn_conv_bwd_data(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    if (!leati_dnnl_takes(task, 1u | 1u << 2, 1u << 1, why)) return LEAT_OK;
    int threads = threads_for(task, &task->inputs[0], &task->inputs[1], false);
    return leati_session_prepare(task, threads, kernel, why, err, bwd_data);
}

leat_status leati_onednn_conv_bwd_weights(const leati_task *task, leati_kernel *kernel, char *why,
                                          leat_error *err) {
    if (!leati_dnnl_takes(task, 3u, 0, why)) return LEAT_OK;
    if (leati_dnnl_type(&task->inputs[0]) == dnnl_bf16 && has_taps(&task->outputs[0])) {
        snprintf(
            why, LEATI_REASON_BYTES,
            "oneDNN is slow at this gradient in bfloat16"); /* 8x14x14x256, 3x3: 62 ms, 8 in f32 (Zen 4) */
        return LEAT_OK;
    }
    int threads = threads_for(task, &task->inputs[1], &task->outputs[0], true);
    return leati_session_prepare(task, threads, kernel, why, err, bwd_weights);
}
