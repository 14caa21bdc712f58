/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by oneDNN: images stay (N, spatial..., C) in memory; weights are packed into the layout that the
 * primitive wants.  A fused normalisation is folded into them: with s = gamma / sqrt(variance + epsilon) per
 * filter, weights times s, and (bias - mean) s + beta for the bias.  Room: backends/onednn. */
#include <stdio.h>
#include <string.h>

#include "backends/onednn/ops.h"
#include "backends/onednn/parts.h"
#include "backends/onednn/window.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/fold_norm.h"

enum { SRC, WEIGHTS, WEIGHTS_ANY, WEIGHTS_HINT, BIAS, DST, SRC_BLOCKED, DST_BLOCKED, MDS };

/* A convolution or a part of one. */
typedef struct conv {
    leati_geometry g;
    int axes; /* of the images and windows that oneDNN is asked for */
    leati_dnnl_window w;
    leati_own_md md[MDS];
    leati_conv_mds any; /* what oneDNN is asked for; it may choose the layout of the weights */
    /* Types of the images; of the weights as the kernel receives them, and as the primitive wants them. */
    dnnl_data_type_t src, dst, weights_type, wanted_type;
    bool bias, blocked;
    dnnl_primitive_desc_t hint, pd;
} conv;

static leat_status make_mds(conv *c, leat_error *err) {
    static const dnnl_format_tag_t plain[] = {dnnl_wio, dnnl_hwio, dnnl_dhwio};
    static const dnnl_format_tag_t grouped[] = {dnnl_wigo, dnnl_hwigo, dnnl_dhwigo};
    const leati_geometry *g = &c->g;
    int spatial = c->axes, rank = 0;
    dnnl_dims_t dims, filters = {g->filters};
    if (g->groups > 1) dims[rank++] = g->groups;
    dims[rank++] = g->filters / g->groups;
    dims[rank++] = g->channels / g->groups;
    c->w = leati_dnnl_window_of(g, spatial);
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

static dnnl_status_t ask(conv *c, leati_session *s, dnnl_prop_kind_t prop) {
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
    c->axes = axes_of(&c->g, task->attrs->conv.window.spatial);
    return LEAT_OK;
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

static leat_status use_blocks(conv *c, leat_error *err) {
    const leati_geometry *g = &c->g;
    LEATI_DNNL_TRY(leati_blocked_image_md(&c->md[SRC_BLOCKED], c->axes, g->batch, g->channels, g->in),
                   "blocks");
    LEATI_DNNL_TRY(leati_blocked_image_md(&c->md[DST_BLOCKED], c->axes, g->batch, g->filters, g->out),
                   "blocks");
    c->any.src = leati_md_of(&c->md[SRC_BLOCKED]);
    c->any.dst = leati_md_of(&c->md[DST_BLOCKED]);
    c->blocked = true;
    destroy_descriptors(c);
    return LEAT_OK;
}

static void fini(conv *c) {
    destroy_descriptors(c);
    for (int i = 0; i < MDS; i++) leati_md_fini(&c->md[i]);
}

/* ---- Parts ---- */

/* An op, what its parts have in common, and the part that is being made. */
typedef struct divided {
    leati_session *s;
    const leati_task *task;
    leati_kernel *kernel;
    char *why;
    conv whole; /* without descriptors */
    leati_dnnl_parts parts;
    leati_dnnl_part part;
    conv first, other, *made; /* the first part; one of another geometry; the one that `part` is equal to */
    int weights, bias;        /* memories */
} divided;

/* Makes made->pd for made->any, or leaves it NULL where oneDNN is not suitable. */
typedef leat_status (*describe_part)(divided *d, leat_error *err);
/* Adds the calls of a part. */
typedef leat_status (*add_part)(divided *d, leat_error *err);

static leat_status accept(divided *d, dnnl_prop_kind_t prop, leat_error *err) {
    return leati_session_accept(ask(d->made, d->s, prop), &d->made->pd, d->why, err);
}

/* Return where an argument with the source, and one with the result, holds the pixels of the part. */
static leati_dnnl_place src_of(const divided *d, int arg) {
    size_t bytes = d->whole.src == dnnl_bf16 ? 2 : 4;
    return leati_dnnl_arg_at(arg, (size_t)(d->part.src * d->whole.g.channels) * bytes);
}

static leati_dnnl_place dst_of(const divided *d, int arg) {
    size_t bytes = d->whole.dst == dnnl_bf16 ? 2 : 4;
    return leati_dnnl_arg_at(arg, (size_t)(d->part.dst * d->whole.g.filters) * bytes);
}

/* Data of fold_norm(): where weights and bias are folded to, and from what. */
typedef struct fold {
    int64_t filters, count; /* elements of the weights */
    float epsilon;
    bool bias;
    int post; /* index of the first fused argument */
    int weights_memory, bias_memory;
} fold;

static void fold_norm(const leati_session *s, void *const *args, const leati_run *run, unsigned char *pack) {
    const fold *f = s->data;
    float *to = leati_session_at(s, f->weights_memory, args, run, pack);
    float *shift = leati_session_at(s, f->bias_memory, args, run, pack);
    leati_fold_norm(args + f->post, f->epsilon, args[1], f->bias ? args[2] : NULL, f->count / f->filters,
                    f->filters, to, shift);
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
static leat_status add_folded(divided *d, leat_error *err) {
    const conv *c = &d->first;
    leati_md plain = leati_md_of(&c->md[WEIGHTS]), wanted = leati_pd_md(c->pd, dnnl_query_weights_md);
    fold *f = leati_calloc(1, sizeof *f);
    if (!f) return leati_fail_memory(err, sizeof *f, "a convolution");
    d->s->data = f;
    d->s->before = fold_norm;
    *f = (fold){.filters = c->g.filters,
                .count = leati_desc_count(&d->task->inputs[1]),
                .epsilon = d->task->attrs->post.epsilon,
                .post = leati_op_inputs(d->task)};
    f->bias = f->post > 2 && d->task->inputs[2].rank >= 0;
    if (dnnl_memory_desc_equal(plain, wanted))
        LEATI_TRY(leati_session_pack(d->s, plain, &f->weights_memory, err));
    else
        LEATI_TRY(leati_session_scratch(d->s, d->kernel, plain, &f->weights_memory, err));
    LEATI_TRY(leati_session_pack(d->s, c->any.bias, &f->bias_memory, err));
    d->bias = f->bias_memory;
    return leati_session_packed(d->s, d->kernel, plain, f->weights_memory, wanted, &d->weights, err);
}

static leat_status add_plain(divided *d, leat_error *err) {
    const conv *c = &d->first;
    leati_md plain = leati_md_of(&c->md[WEIGHTS]), wanted = leati_pd_md(c->pd, dnnl_query_weights_md);
    int argument = 0;
    LEATI_TRY(leati_session_argument(d->s, plain, leati_dnnl_arg_at(1, 0), &argument, err));
    LEATI_TRY(leati_session_packed(d->s, d->kernel, plain, argument, wanted, &d->weights, err));
    return c->bias ? leati_session_argument(d->s, c->any.bias, leati_dnnl_arg_at(2, 0), &d->bias, err)
                   : LEAT_OK;
}

static leat_status add_weights(divided *d, leat_error *err) {
    leati_md wanted = leati_pd_md(d->first.pd, dnnl_query_weights_md);
    bool norm = d->task->attrs->post.kinds & LEATI_POST_NORM;
    LEATI_TRY(norm ? add_folded(d, err) : add_plain(d, err));
    leati_session_layout(d->kernel, d->task->op == LEATI_OP_CONV ? d->first.any.dst : d->first.any.src,
                         wanted);
    set_key(&d->first, d->task, d->kernel, wanted);
    return LEAT_OK;
}

/* Describes a part, unless it is like the part before it.  All parts read the weights in the layout that the first one
 * has chosen. */
static leat_status next_part(divided *d, int64_t index, describe_part describe, leat_error *err) {
    leati_dnnl_part before = d->part;
    d->part = leati_dnnl_part_at(&d->parts, index);
    if (index > 0 && leati_dnnl_parts_equal(&before, &d->part)) return LEAT_OK;
    d->made = index == 0 ? &d->first : &d->other;
    fini(d->made);
    *d->made = d->whole;
    d->made->g = d->part.g;
    LEATI_TRY(make_mds(d->made, err));
    if (index > 0 && d->task->op != LEATI_OP_CONV_BWD_WEIGHTS)
        d->made->any.weights = leati_pd_md(d->first.pd, dnnl_query_weights_md);
    return describe(d, err);
}

static leat_status add_parts(divided *d, describe_part describe, add_part add, leat_error *err) {
    for (int64_t i = 0; i < d->parts.count; i++) {
        LEATI_TRY(next_part(d, i, describe, err));
        d->s->indivisible = !d->made->pd && d->parts.count > 1;
        if (!d->made->pd) return LEAT_OK;
        if (i > 0) LEATI_TRY(leati_session_next_part(d->s, err));
        LEATI_TRY(add(d, err));
    }
    return LEAT_OK;
}

static leat_status divide(divided *d, bool rows, describe_part describe, add_part add, leat_error *err) {
    LEATI_TRY(read_task(&d->whole, d->task, err));
    d->parts = leati_dnnl_divide(&d->whole.g, d->s->sharing.parts, rows);
    leat_status status = add_parts(d, describe, add, err);
    fini(&d->first);
    fini(&d->other);
    return status;
}

/* ---- Forward ---- */

/* The convolution by patches of oneDNN 2.6 adds wrong elements of the addend.  It is what oneDNN has for windows whose
 * dilation exceeds the image.  Later versions were not checked, and are treated alike. */
static bool adds_wrongly(const divided *d) {
    return d->task->attrs->post.kinds & LEATI_POST_ADD && strstr(leati_dnnl_name(d->made->pd), "gemm");
}

static leat_status describe_forward(divided *d, leat_error *err) {
    bool fused = true;
    LEATI_TRY(leati_session_fuse(d->s, d->task, d->made->any.dst, &fused, d->why, err));
    if (!fused) return LEAT_OK;
    LEATI_TRY(accept(d, dnnl_forward_inference, err));
    if (!d->made->pd || !adds_wrongly(d)) return LEAT_OK;
    snprintf(d->why, LEATI_REASON_BYTES, "oneDNN's '%s' cannot add a tensor", leati_dnnl_name(d->made->pd));
    dnnl_primitive_desc_destroy(d->made->pd);
    d->made->pd = NULL;
    return LEAT_OK;
}

static leat_status add_forward(divided *d, leat_error *err) {
    const conv *c = d->made;
    int src, dst, count = c->bias ? 4 : 3;
    leati_dnnl_place to = dst_of(d, d->task->input_count);
    if (d->s->part_count == 1) LEATI_TRY(add_weights(d, err));
    LEATI_TRY(leati_session_argument(d->s, c->any.src, src_of(d, 0), &src, err));
    LEATI_TRY(leati_session_argument(d->s, c->any.dst, to, &dst, err));
    leati_dnnl_arg args[5] = {{DNNL_ARG_SRC, src},
                              {DNNL_ARG_WEIGHTS, d->weights},
                              {DNNL_ARG_DST, dst},
                              {DNNL_ARG_BIAS, d->bias}};
    LEATI_TRY(leati_session_addend(d->s, d->task, c->any.dst, to.offset, args, &count, err));
    return leati_session_call(d->s, d->kernel, c->pd, count, args, true, err);
}

static leat_status forward(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                           leat_error *err) {
    bool has_bias = leati_op_inputs(task) > 2 && task->inputs[2].rank >= 0;
    divided d = {.s = s, .task = task, .kernel = kernel, .why = why};
    d.whole.bias = has_bias || task->attrs->post.kinds & LEATI_POST_NORM;
    return divide(&d, true, describe_forward, add_forward, err);
}

/* ---- Gradients ---- */

static leat_status describe_bwd_data(divided *d, leat_error *err) {
    conv *c = d->made;
    if (!d->first.blocked) {
        LEATI_TRY(accept(d, dnnl_backward_data, err));
        if (c != &d->first || !c->pd || !blocks_pay(c)) return LEAT_OK;
    }
    LEATI_TRY(use_blocks(c, err));
    return accept(d, dnnl_backward_data, err);
}

static leat_status add_bwd_data(divided *d, leat_error *err) {
    const conv *c = d->made;
    int diff_dst, diff_src;
    leati_dnnl_place from = dst_of(d, 0), to = src_of(d, 2);
    leati_md plain_src = leati_md_of(&c->md[SRC]), plain_dst = leati_md_of(&c->md[DST]);
    if (d->s->part_count == 1) LEATI_TRY(add_weights(d, err));
    LEATI_TRY(leati_session_input(d->s, d->kernel, plain_dst, c->any.dst, from, &diff_dst, err));
    LEATI_TRY(leati_session_target(d->s, d->kernel, plain_src, c->any.src, to, &diff_src, err));
    const leati_dnnl_arg args[] = {{DNNL_ARG_DIFF_DST, diff_dst},
                                   {DNNL_ARG_WEIGHTS, d->weights},
                                   {DNNL_ARG_DIFF_SRC, diff_src}};
    LEATI_TRY(leati_session_call(d->s, d->kernel, c->pd, 3, args, true, err));
    return leati_session_output(d->s, d->kernel, plain_src, c->any.src, diff_src, to, err);
}

static leat_status bwd_data(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                            leat_error *err) {
    divided d = {.s = s, .task = task, .kernel = kernel, .why = why};
    return divide(&d, false, describe_bwd_data, add_bwd_data, err);
}

/* Data of add_sums(): the gradients of each part with respect to weights and bias, in the scratch. */
typedef struct sums {
    int64_t parts, count[2];    /* count: elements of each output; 0: nobody reads it */
    size_t offset[2], bytes[2]; /* of the first part's; from one part's to the next one's */
} sums;

/* Adds up the gradients of the parts, in their order. */
static void add_sums(const leati_session *s, void *const *args, const leati_run *run) {
    const sums *of = s->data;
    for (int output = 0; output < 2; output++) {
        const unsigned char *from = (const unsigned char *)run->scratch + of->offset[output];
        float *to = args[2 + output];
        for (int64_t part = 0; part < of->parts; part++) {
            const float *addend = (const float *)(const void *)(from + (size_t)part * of->bytes[output]);
            for (int64_t i = 0; i < of->count[output]; i++) to[i] = part == 0 ? addend[i] : to[i] + addend[i];
        }
    }
}

/* Reserves scratch for the gradients of all parts. */
static leat_status reserve_sums(divided *d, leat_error *err) {
    sums *of = d->s->data = leati_calloc(1, sizeof *of);
    if (!of) return leati_fail_memory(err, sizeof *of, "a convolution");
    d->s->after = add_sums;
    of->parts = d->parts.count;
    for (int output = 0; output < 2; output++) {
        if (d->task->unused >> output & 1u) continue;
        of->count[output] = leati_desc_count(&d->task->outputs[output]);
        of->offset[output] = d->kernel->scratch_bytes;
        of->bytes[output] = leati_align((size_t)of->count[output] * sizeof(float));
        d->kernel->scratch_bytes += (size_t)of->parts * of->bytes[output];
    }
    return LEAT_OK;
}

/* Returns where a part leaves a gradient: in the output, unless there are other parts. */
static leati_dnnl_place place_of(const divided *d, int output) {
    const sums *of = d->s->data;
    if (d->parts.count == 1) return leati_dnnl_arg_at(2 + output, 0);
    size_t before = (size_t)(d->s->part_count - 1) * of->bytes[output];
    return leati_dnnl_arg_at(LEATI_DNNL_SCRATCH, of->offset[output] + before);
}

static leat_status describe_bwd_weights(divided *d, leat_error *err) {
    return accept(d, dnnl_backward_weights, err);
}

static leat_status add_bwd_weights(divided *d, leat_error *err) {
    const conv *c = d->made;
    const bool wanted = !(d->task->unused & 1);
    int src, diff_dst, diff_weights, diff_bias = 0, count = c->bias ? 4 : 3;
    leati_md plain = leati_md_of(&c->md[WEIGHTS]), made = leati_pd_md(c->pd, dnnl_query_diff_weights_md);
    if (d->parts.count > 1 && d->s->part_count == 1) LEATI_TRY(reserve_sums(d, err));
    const leati_dnnl_place weights = place_of(d, 0);
    LEATI_TRY(leati_session_argument(d->s, c->any.src, src_of(d, 0), &src, err));
    LEATI_TRY(leati_session_argument(d->s, c->any.dst, dst_of(d, 1), &diff_dst, err));
    if (wanted)
        LEATI_TRY(leati_session_target(d->s, d->kernel, plain, made, weights, &diff_weights, err));
    else
        LEATI_TRY(leati_session_scratch(d->s, d->kernel, made, &diff_weights, err));
    if (c->bias) LEATI_TRY(leati_session_argument(d->s, c->any.bias, place_of(d, 1), &diff_bias, err));
    const leati_dnnl_arg args[] = {{DNNL_ARG_SRC, src},
                                   {DNNL_ARG_DIFF_DST, diff_dst},
                                   {DNNL_ARG_DIFF_WEIGHTS, diff_weights},
                                   {DNNL_ARG_DIFF_BIAS, diff_bias}};
    leati_session_layout(d->kernel, c->any.src, made);
    LEATI_TRY(leati_session_call(d->s, d->kernel, c->pd, count, args, true, err));
    return wanted ? leati_session_output(d->s, d->kernel, plain, made, diff_weights, weights, err) : LEAT_OK;
}

static leat_status bwd_weights(leati_session *s, const leati_task *task, leati_kernel *kernel, char *why,
                               leat_error *err) {
    divided d = {.s = s, .task = task, .kernel = kernel, .why = why};
    d.whole.bias = !(task->unused & 2);
    return divide(&d, false, describe_bwd_weights, add_bwd_weights, err);
}

/* Returns the operations of a convolution with this dst and weights (spatial..., channels / groups, filters).  Those of
 * a depthwise convolution count for several, since it does 20 to 30 GFLOP/s on a core that does 150 in products. */
static double operations_of(const leati_desc *dst, const leati_desc *weights) {
    double operations = 2 * (double)leati_desc_count(dst);
    if (weights->shape[weights->rank - 2] == 1) operations *= LEATI_DEPTHWISE_OPERATIONS;
    for (int i = 0; i + 1 < weights->rank; i++) operations *= (double)weights->shape[i];
    return operations;
}

/* True if weights (spatial..., channels, filters) have more than one tap. */
static bool has_taps(const leati_desc *weights) {
    int64_t taps = 1;
    for (int i = 0; i + 2 < weights->rank; i++) taps *= weights->shape[i];
    return taps > 1;
}

/* True if each thread computes the gradient of its samples with respect to all weights: where these are so few that the
 * sum of the gradients takes little of the time. */
static bool sums_pay(const leati_task *task) {
    int64_t images = leati_desc_count(&task->inputs[0]) + leati_desc_count(&task->inputs[1]);
    return task->inputs[0].shape[0] >= task->threads &&
           leati_desc_count(&task->outputs[0]) * task->threads <= images / 8;
}

leat_status leati_onednn_conv(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    /* weights that a normalisation is folded into are f32 */
    uint32_t weights = task->attrs->post.kinds & LEATI_POST_NORM ? 0 : 1u << 1;
    if (!leati_dnnl_takes(task, 1u, weights | 1u << task->input_count, why)) return LEAT_OK;
    double operations = operations_of(&task->outputs[0], &task->inputs[1]);
    return leati_session_prepare(task, leati_share_parts(task, operations), kernel, why, err, forward);
}

leat_status leati_onednn_conv_bwd_data(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    if (!leati_dnnl_takes(task, 1u | 1u << 2, 1u << 1, why)) return LEAT_OK;
    double operations = operations_of(&task->inputs[0], &task->inputs[1]);
    return leati_session_prepare(task, leati_share_parts(task, operations), kernel, why, err, bwd_data);
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
    double operations = operations_of(&task->inputs[1], &task->outputs[0]);
    leati_dnnl_sharing sharing =
        sums_pay(task) ? leati_share_parts(task, operations) : leati_share_sums(task, operations);
    return leati_session_prepare(task, sharing, kernel, why, err, bwd_weights);
}
