/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and their gradients.  Depthwise ones, and those with few products per element, are computed by kernels
 * of kernels/conv.cu; pointwise ones are matrix products; cuDNN computes the others, from packed weights and, where
 * its symmetric padding or its tensor cores ask for it, from a copy of the source with more pixels or channels. Room:
 * backends/cuda. */
#include <math.h>
#include <stdio.h>

#include "backends/cuda/ops/conv_state.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"

static void destroy(void *state) {
    leati_cuda_conv_state *s = state;
    leati_cuda_dnn_conv_fini(&s->dnn, s->cuda);
    if (s->product.destroy) s->product.destroy(s->product.state);
    leati_free(s);
}

static size_t reserve(size_t *total, size_t bytes) {
    size_t at = *total;
    *total += leati_device_align(bytes);
    return at;
}

/* ---- cuDNN ---- */

/* Computes the convolution that cuDNN is asked for.  Its padding is symmetric, so what one side has more becomes part
 * of the source; and its tensor cores want channels and filters by eights (bf16) or fours. */
static void pad_geometry(leati_cuda_conv_state *s) {
    leati_geometry *p = &s->padded;
    *p = s->g;
    for (int i = 0; i < 3; ++i) {
        int64_t reach = (p->kernel[i] - 1) * p->dilation[i] + 1, before = p->pad_before[i];
        if ((p->in[i] + 2 * before - reach) / p->stride[i] + 1 == p->out[i] &&
            p->in[i] + 2 * before >= reach) {
            p->pad_after[i] = before;
            continue;
        }
        int64_t after = (p->out[i] - 1) * p->stride[i] + reach - p->in[i] - before;
        if (after < 0) after = 0;
        int64_t both = before < after ? before : after;
        p->in[i] += before + after - 2 * both;
        p->pad_before[i] = p->pad_after[i] = both;
    }
    int64_t unit = s->bf16 ? 8 : s->cuda->device.tf32 ? 4 : 1;
    if (p->groups > 1) return;
    p->channels = (p->channels + unit - 1) / unit * unit;
    p->filters = (p->filters + unit - 1) / unit * unit;
}

/* Returns true if 2 x 2 pixels may become one. */
static bool is_foldable(const leati_cuda_conv_state *s) {
    const leati_geometry *g = &s->g;
    bool flat = g->in[0] == 1 && g->out[0] == 1 && g->kernel[0] == 1 && g->pad_before[0] == 0;
    return flat && g->groups == 1 && g->channels <= 4 && g->stride[1] == 2 && g->stride[2] == 2 &&
           g->dilation[1] == 1 && g->dilation[2] == 1 && s->op != LEATI_OP_CONV_BWD_DATA &&
           (s->bf16 || s->cuda->device.tf32);
}

/* Computes the convolution that cuDNN is asked for then: of stride 1, without padding. */
static void fold_geometry(leati_cuda_conv_state *s) {
    leati_geometry *p = &s->padded;
    *p = s->g;
    p->taps = 1;
    for (int i = 0; i < 3; ++i) {
        if (i > 0) {
            p->kernel[i] = (p->kernel[i] + 1) / 2;
            p->stride[i] = 1;
            p->in[i] = p->out[i] + p->kernel[i] - 1;
        }
        p->pad_before[i] = p->pad_after[i] = 0;
        p->taps *= p->kernel[i];
    }
    p->channels = (4 * p->channels + 7) / 8 * 8;
    p->filters = (p->filters + 7) / 8 * 8;
}

static size_t image_bytes(const leati_cuda_conv_state *s, const int64_t *size, int64_t channels) {
    return (size_t)(s->g.batch * size[0] * size[1] * size[2] * channels) * (s->bf16 ? 2 : 4);
}

/* Describes the copies between the op's tensors and cuDNN's. */
static void describe_frames(leati_cuda_conv_state *s, const leati_desc *src, const leati_desc *dst) {
    const leati_geometry *g = &s->g, *p = &s->padded;
    bool larger = false;
    s->src_frame = (leati_cuda_conv_frame){.from = leati_cuda_array_of(src),
                                           .to.bf16 = s->bf16,
                                           .pixels = g->batch * p->in[0] * p->in[1] * p->in[2],
                                           .from_channels = (int32_t)g->channels,
                                           .to_channels = (int32_t)p->channels};
    s->dst_frame = (leati_cuda_conv_frame){.from = leati_cuda_array_of(dst),
                                           .to.bf16 = s->bf16,
                                           .pixels = g->out_pixels,
                                           .from_channels = (int32_t)g->filters,
                                           .to_channels = (int32_t)p->filters};
    s->src_frame.folded = s->folded;
    for (int i = 0; i < 3; ++i) {
        s->src_frame.from_size[i] = (int32_t)g->in[i];
        s->src_frame.to_size[i] = (int32_t)p->in[i];
        s->src_frame.before[i] = (int32_t)(g->pad_before[i] - p->pad_before[i]);
        s->dst_frame.from_size[i] = s->dst_frame.to_size[i] = (int32_t)g->out[i];
        larger = larger || p->in[i] != g->in[i];
    }
    s->frames_src = larger || p->channels != g->channels || leati_cuda_is_bf16(src) != s->bf16;
    s->frames_dst = p->filters != g->filters || leati_cuda_is_bf16(dst) != s->bf16;
    if (!s->planes) return;
    s->planes = !s->frames_src && !s->frames_dst && !s->bf16; /* the copies do not do both */
    s->frames_src = s->frames_dst = true;
}

static leati_cuda_conv_frame reversed(const leati_cuda_conv_state *s, const leati_cuda_conv_frame *frame) {
    leati_cuda_conv_frame out = *frame;
    out.from.bf16 = frame->to.bf16;
    out.to.bf16 = frame->from.bf16;
    out.from_channels = frame->to_channels;
    out.to_channels = frame->from_channels;
    out.pixels = s->g.batch;
    for (int i = 0; i < 3; ++i) {
        out.from_size[i] = frame->to_size[i];
        out.to_size[i] = frame->from_size[i];
        out.before[i] = -frame->before[i];
        out.pixels *= out.to_size[i];
    }
    return out;
}

static leat_status run_frame(const leati_cuda_conv_state *s, const leati_cuda_conv_frame *frame, void *from,
                             void *to, leat_error *err) {
    leati_cuda_conv_frame a = *frame;
    a.from.data = from;
    a.to.data = to;
    int unit = a.from.bf16 ? 8 : 4;
    bool vectors = a.from.bf16 == a.to.bf16 && a.from_channels % unit == 0 && a.to_channels % unit == 0 &&
                   leati_cuda_is_aligned(from) && leati_cuda_is_aligned(to);
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, a.pixels * a.to_channels / (vectors ? unit : 1));
    CUfunction function = !vectors ? s->frame : s->frame_vectors;
    return leati_cuda_launch(s->cuda, function, &grid, &a, err);
}

static unsigned tiles_of(int64_t rows, int64_t columns) {
    return (unsigned)((rows + LEATI_CUDA_CONV_TILE - 1) / LEATI_CUDA_CONV_TILE *
                      ((columns + LEATI_CUDA_CONV_TILE - 1) / LEATI_CUDA_CONV_TILE));
}

/* Transposes images of f32 between NHWC and NCHW; what follows a product is applied to the elements on the way back. */
static leat_status run_transpose(const leati_cuda_conv_state *s, leati_cuda_conv_planes *a,
                                 const int64_t *size, int64_t channels, bool back, leat_error *err) {
    int64_t pixels = size[0] * size[1] * size[2];
    a->batch = s->g.batch;
    a->rows = (int32_t)(back ? channels : pixels);
    a->columns = (int32_t)(back ? pixels : channels);
    leati_cuda_grid grid = {.x = (unsigned)a->batch * tiles_of(a->rows, a->columns), .threads = 256};
    return leati_cuda_launch(s->cuda, s->transpose, &grid, a, err);
}

/* Gives cuDNN its copy of a tensor. */
static leat_status enter(const leati_cuda_conv_state *s, bool dst, void *from, void *to, leat_error *err) {
    leati_cuda_conv_planes a = {.from.data = from, .to.data = to};
    if (s->folded && !dst) {
        leati_cuda_conv_frame fold = s->src_frame;
        fold.from.data = from;
        fold.to.data = to;
        leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, fold.pixels * fold.to_channels / 8);
        return leati_cuda_launch(s->cuda, s->fold, &grid, &fold, err);
    }
    if (!s->planes) return run_frame(s, dst ? &s->dst_frame : &s->src_frame, from, to, err);
    return run_transpose(s, &a, dst ? s->g.out : s->g.in, dst ? s->g.filters : s->g.channels, false, err);
}

/* Takes src back. */
static leat_status leave(const leati_cuda_conv_state *s, void *from, void *to, leat_error *err) {
    leati_cuda_conv_planes a = {.from.data = from, .to.data = to};
    leati_cuda_conv_frame back = reversed(s, &s->src_frame);
    if (!s->planes) return run_frame(s, &back, from, to, err);
    return run_transpose(s, &a, s->g.in, s->g.channels, true, err);
}

/* Returns where the packed weights are, after packing them if they are not. */
static leat_status pack_weights(const leati_kernel *kernel, void *weights, const leati_run *run, void **out,
                                leat_error *err) {
    const leati_cuda_conv_state *s = kernel->state;
    unsigned char *scratch = run->scratch;
    leati_cuda_conv_packing a = s->packing;
    *out = run->pack ? run->pack : scratch + kernel->scratch_bytes - kernel->pack_bytes;
    if (run->packed) return LEAT_OK;
    a.from.data = weights;
    a.to.data = *out;
    leati_cuda_grid grid = {.x = tiles_of((int64_t)a.taps * a.packed_channels, a.packed_filters),
                            .threads = 256};
    return leati_cuda_launch(s->cuda, s->pack, &grid, &a, err);
}

/* biased: the product includes the bias. */
static leat_status run_finish(const leati_cuda_conv_state *s, void *const *args, void *product, bool biased,
                              leat_error *err) {
    leati_cuda_conv_finish a = s->finishing;
    a.src.data = product;
    a.dst.data = args[s->inputs];
    leati_cuda_conv_fill_post(&a.post, s, args);
    if (biased) a.post.bias.data = NULL;
    leati_cuda_conv_planes back = {.from = a.src, .to = a.dst, .post = a.post};
    if (s->planes) return run_transpose(s, &back, s->g.out, s->g.filters, true, err);
    int unit = a.dst.bf16 ? 8 : 4;
    bool vectors = a.src.bf16 == a.dst.bf16 && a.filters % unit == 0 && a.src_filters % unit == 0 &&
                   leati_cuda_is_aligned(a.src.data) && leati_cuda_is_aligned(a.dst.data);
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, a.pixels * a.filters / (vectors ? unit : 1));
    return leati_cuda_launch(s->cuda, vectors ? s->finish_vectors : s->finish, &grid, &a, err);
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    leati_cuda_conv_state *s = kernel->state;
    unsigned char *scratch = run->scratch;
    void *dst = args[s->inputs];
    const void *bias = s->own_inputs > 2 ? args[2] : NULL;
    leati_cuda_dnn_data data = {.x = args[0], .y = dst, .workspace = scratch + s->workspace_offset};
    bool fused = false;
    if (s->frames_src) {
        data.x = scratch + s->src_offset;
        LEATI_TRY(enter(s, false, args[0], data.x, err));
    }
    if (s->frames_dst) data.y = scratch + s->dst_offset;
    if (s->bias_in_dnn) {
        data.bias = bias;
        data.relu = s->is_relu;
    }
    LEATI_TRY(pack_weights(kernel, args[1], run, &data.w, err));
    if (leati_cuda_dnn_conv_run(&s->dnn, s->cuda, &data, &fused, NULL) != LEAT_OK)
        return leati_cuda_conv_run_direct(kernel, args, run, err);
    bool done = fused ? !s->finishes : !s->finishes && !s->is_relu && !bias;
    return done ? LEAT_OK : run_finish(s, args, data.y, fused, err);
}

static leat_status run_backward_data(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                     leat_error *err) {
    leati_cuda_conv_state *s = kernel->state;
    unsigned char *scratch = run->scratch;
    leati_cuda_dnn_data data = {.x = args[2], .y = args[0], .workspace = scratch + s->workspace_offset};
    bool fused;
    if (s->frames_dst) {
        data.y = scratch + s->dst_offset;
        LEATI_TRY(enter(s, true, args[0], data.y, err));
    }
    if (s->frames_src) data.x = scratch + s->src_offset;
    LEATI_TRY(pack_weights(kernel, args[1], run, &data.w, err));
    if (leati_cuda_dnn_conv_run(&s->dnn, s->cuda, &data, &fused, NULL) != LEAT_OK)
        return leati_cuda_conv_run_direct(kernel, args, run, err);
    return s->frames_src ? leave(s, data.x, args[2], err) : LEAT_OK;
}

/* Adds up the columns of diff_dst, and turns the packed gradient back. */
static leat_status run_unpack(const leati_cuda_conv_state *s, void *const *args, const leati_run *run,
                              bool unpacks, leat_error *err) {
    unsigned char *scratch = run->scratch;
    leati_cuda_conv_packing a = s->packing;
    leati_cuda_conv_column_sums sums = s->column_sums;
    leati_cuda_grid grid = {.threads = 256};
    a.from.data = scratch + s->packed_offset;
    a.to.data = args[2];
    a.diff_bias.data = args[3];
    a.partial = sums.partial = (float *)(void *)(scratch + s->partial_offset);
    if (args[3]) {
        sums.src.data = args[1];
        grid.x = (unsigned)((s->g.filters + LEATI_CUDA_CONV_TILE - 1) / LEATI_CUDA_CONV_TILE);
        leati_cuda_grid all = {.x = grid.x, .y = (unsigned)sums.splits, .threads = 256};
        LEATI_TRY(leati_cuda_launch(s->cuda, s->columns, &all, &sums, err));
    }
    a.tiles = unpacks ? (int32_t)tiles_of((int64_t)a.taps * a.packed_channels, a.filters) : 0;
    grid.x += (unsigned)a.tiles;
    return grid.x ? leati_cuda_launch(s->cuda, s->unpack, &grid, &a, err) : LEAT_OK;
}

static leat_status run_backward_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                        leat_error *err) {
    leati_cuda_conv_state *s = kernel->state;
    unsigned char *scratch = run->scratch;
    leati_cuda_dnn_data data = {.x = args[0],
                                .y = args[1],
                                .w = scratch + s->packed_offset,
                                .workspace = scratch + s->workspace_offset};
    bool fused;
    if (!args[2]) return run_unpack(s, args, run, false, err);
    if (s->frames_src) {
        data.x = scratch + s->src_offset;
        LEATI_TRY(enter(s, false, args[0], data.x, err));
    }
    if (s->frames_dst) {
        data.y = scratch + s->dst_offset;
        LEATI_TRY(enter(s, true, args[1], data.y, err));
    }
    if (leati_cuda_dnn_conv_run(&s->dnn, s->cuda, &data, &fused, NULL) != LEAT_OK)
        return leati_cuda_conv_run_direct_weights(kernel, args, run, err);
    return run_unpack(s, args, run, true, err);
}

static leat_status find_dnn_kernels(leati_cuda_conv_state *s, bool dst_bf16, leat_error *err) {
    LEATI_TRY(leati_cuda_conv_find(s, "leati_cuda_conv_frame_any", &s->frame, err));
    LEATI_TRY(leati_cuda_conv_find(s, s->bf16 ? "leati_cuda_conv_frame_bf16" : "leati_cuda_conv_frame_f32",
                                   &s->frame_vectors, err));
    LEATI_TRY(leati_cuda_conv_find(s, "leati_cuda_conv_fold", &s->fold, err));
    LEATI_TRY(leati_cuda_conv_find(s, "leati_cuda_conv_transpose", &s->transpose, err));
    LEATI_TRY(leati_cuda_conv_find(s, "leati_cuda_conv_pack", &s->pack, err));
    LEATI_TRY(leati_cuda_conv_find(s, "leati_cuda_conv_unpack", &s->unpack, err));
    LEATI_TRY(leati_cuda_conv_find(s, "leati_cuda_conv_finish_any", &s->finish, err));
    LEATI_TRY(leati_cuda_conv_find(s, dst_bf16 ? "leati_cuda_conv_finish_bf16" : "leati_cuda_conv_finish_f32",
                                   &s->finish_vectors, err));
    return leati_cuda_conv_find(s, dst_bf16 ? "leati_cuda_conv_columns_bf16" : "leati_cuda_conv_columns_f32",
                                &s->columns, err);
}

static void describe_packing(leati_cuda_conv_state *s, const leati_desc *weights) {
    s->packing = (leati_cuda_conv_packing){.taps = (int32_t)s->padded.taps,
                                           .folded = s->folded,
                                           .kernel = {(int32_t)s->g.kernel[1], (int32_t)s->g.kernel[2]},
                                           .packed_across = (int32_t)s->padded.kernel[2],
                                           .planes = s->planes,
                                           .channels = (int32_t)(s->g.channels / s->g.groups),
                                           .filters = (int32_t)s->g.filters,
                                           .packed_channels = (int32_t)(s->padded.channels / s->g.groups),
                                           .packed_filters = (int32_t)s->padded.filters};
    bool forward = s->op != LEATI_OP_CONV_BWD_WEIGHTS;
    s->packing.from = forward ? leati_cuda_array_of(weights) : (leati_cuda_array){.bf16 = s->bf16};
    s->packing.to = forward ? (leati_cuda_array){.bf16 = s->bf16} : leati_cuda_array_of(weights);
}

/* Describes the gradient with respect to the bias. */
static void describe_columns(leati_cuda_conv_state *s, const leati_task *task, leati_kernel *kernel) {
    enum { blocks_per_multiprocessor = 8, pixels_at_least = 64, most_splits = 256 };
    int64_t across = (s->g.filters + 31) / 32;
    int64_t splits = (int64_t)s->cuda->multiprocessors * blocks_per_multiprocessor / (across + 1) + 1;
    if (splits > s->g.out_pixels / pixels_at_least + 1) splits = s->g.out_pixels / pixels_at_least + 1;
    if (splits > most_splits) splits = most_splits;
    s->column_sums = (leati_cuda_conv_column_sums){.src = leati_cuda_array_of(&task->inputs[1]),
                                                   .pixels = s->g.out_pixels,
                                                   .filters = (int32_t)s->g.filters,
                                                   .splits = (int32_t)splits};
    s->packing.diff_bias = leati_cuda_array_of(&task->outputs[1]);
    s->packing.splits = (int32_t)splits;
    s->partial_offset = reserve(&kernel->scratch_bytes, (size_t)(splits * s->g.filters) * sizeof(float));
}

static bool is_plain_relu(const leati_eltwise *f) {
    return f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0 && isinf(f->b);
}

/* Decides who computes what follows the product.  cuDNN adds a bias before it rounds the result, so bf16 gains from
 * it even if a function follows. */
static void describe_finish(leati_cuda_conv_state *s, const leati_task *task) {
    uint32_t kinds = task->attrs->post.kinds;
    bool relu = kinds == LEATI_POST_FUNCTION && is_plain_relu(&task->attrs->post.function);
    bool has_bias = s->own_inputs > 2 && task->inputs[2].rank >= 0;
    s->is_relu = relu && !s->frames_dst;
    s->finishes = s->frames_dst || (kinds != 0 && !relu);
    s->bias_in_dnn = has_bias && !s->frames_dst && (s->bf16 || !s->finishes) &&
                     leati_cuda_is_bf16(&task->inputs[2]) == s->bf16;
    s->finishing = (leati_cuda_conv_finish){.src.bf16 = s->bf16,
                                            .dst = leati_cuda_array_of(&task->outputs[0]),
                                            .post = leati_cuda_conv_describe_post(task),
                                            .pixels = s->g.out_pixels,
                                            .filters = (int32_t)s->g.filters,
                                            .src_filters = (int32_t)s->padded.filters};
}

/* Leaves the kernel as it is if cuDNN does not serve the convolution.  Otherwise the kernel of leat's own remains for
 * the case that cuDNN refuses the convolution when it shall run. */
static leat_status prepare_dnn(const leati_task *task, leati_cuda_conv_state *s, leati_kernel *kernel,
                               leati_cuda_conv_choice choice, char *why, leat_error *err) {
    const leati_desc *in = task->inputs, *out = task->outputs;
    const leati_desc *src = s->op == LEATI_OP_CONV_BWD_DATA ? &out[0] : &in[0];
    const leati_desc *dst = s->op == LEATI_OP_CONV            ? &out[0]
                            : s->op == LEATI_OP_CONV_BWD_DATA ? &in[0]
                                                              : &in[1];
    const leati_desc *weights = s->op == LEATI_OP_CONV_BWD_WEIGHTS ? &out[0] : &in[1];
    s->bf16 =
        leati_cuda_is_bf16(&in[0]) || (s->op == LEATI_OP_CONV_BWD_WEIGHTS && leati_cuda_is_bf16(&in[1]));
    s->planes = choice.way == LEATI_CUDA_CONV_PLANES;
    s->folded = choice.way == LEATI_CUDA_CONV_FOLDED;
    if (s->folded && !is_foldable(s)) return LEAT_OK;
    if (s->folded)
        fold_geometry(s);
    else
        pad_geometry(s);
    describe_frames(s, src, dst);
    if (choice.way == LEATI_CUDA_CONV_PLANES && !s->planes) return LEAT_OK;
    const leati_cuda_dnn_request request = {s->op, &s->padded, s->bf16, s->planes, choice.algorithm};
    LEATI_TRY(leati_cuda_dnn_conv_init(&s->dnn, s->cuda, &request, why, err));
    if (s->dnn.count == 0) return LEAT_OK;
    s->as_chosen = true;
    LEATI_TRY(find_dnn_kernels(s, leati_cuda_is_bf16(dst), err));
    describe_packing(s, weights);
    size_t packed_bytes =
        (size_t)(s->padded.taps * s->packing.packed_channels * s->packing.packed_filters) * (s->bf16 ? 2 : 4);
    size_t *total = &kernel->scratch_bytes, direct_bytes = *total;
    *total = 0;
    if (s->frames_src) s->src_offset = reserve(total, image_bytes(s, s->padded.in, s->padded.channels));
    if (s->frames_dst) s->dst_offset = reserve(total, image_bytes(s, s->padded.out, s->padded.filters));
    s->workspace_offset = reserve(total, s->dnn.workspace_bytes);
    if (s->op == LEATI_OP_CONV_BWD_WEIGHTS) {
        describe_columns(s, task, kernel);
        s->packed_offset = reserve(total, packed_bytes);
        if (*total < direct_bytes) *total = direct_bytes;
        kernel->run = run_backward_weights;
    } else {
        reserve(&kernel->pack_bytes, packed_bytes);
        reserve(total, packed_bytes);
        kernel->pack_inputs = 1u << 1;
        kernel->pack_reorders = 1;
        kernel->pack_reorder_bytes = packed_bytes;
        snprintf(kernel->pack_key, sizeof kernel->pack_key, "cuda conv%s %d %d %d",
                 s->planes   ? " nchw"
                 : s->folded ? " folded"
                 : s->bf16   ? " bf16"
                             : "",
                 s->packing.packed_filters, s->packing.taps, s->packing.packed_channels);
        kernel->run = s->op == LEATI_OP_CONV ? run_forward : run_backward_data;
    }
    if (s->op == LEATI_OP_CONV) describe_finish(s, task);
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda cudnn %s%s",
             s->planes       ? "nchw "
             : s->folded     ? "folded "
             : s->frames_src ? "framed "
                             : "",
             leati_cuda_dnn_conv_algorithm(&s->dnn));
    return LEAT_OK;
}

/* ---- Pointwise convolutions ---- */

static bool is_pointwise(const leati_geometry *g) {
    bool unit = g->taps == 1 && g->groups == 1;
    for (int i = 0; i < 3; ++i)
        unit = unit && g->stride[i] == 1 && g->in[i] == g->out[i] && g->pad_before[i] == 0;
    return unit;
}

/* Returns desc as a matrix of the last axis and all others. */
static leati_desc as_matrix(const leati_desc *desc) {
    if (desc->rank < 2) return *desc;
    int64_t columns = desc->shape[desc->rank - 1], rows = 1;
    for (int i = 0; i + 1 < desc->rank; ++i) rows *= desc->shape[i];
    leati_desc out = {.dtype = desc->dtype, .rank = 2, .shape = {rows, columns}};
    return out;
}

/* Asks for a matrix product that computes the same from the same arguments. */
static leat_status prepare_product(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_desc inputs[LEATI_MAX_INPUTS], output = as_matrix(&task->outputs[0]);
    leati_attrs attrs = {.matmul = {.transpose_a = task->op == LEATI_OP_CONV_BWD_WEIGHTS,
                                    .transpose_b = task->op == LEATI_OP_CONV_BWD_DATA},
                         .post = task->attrs->post};
    leati_task product = *task;
    for (int i = 0; i < task->input_count; ++i) inputs[i] = as_matrix(&task->inputs[i]);
    product.op = LEATI_OP_MATMUL;
    product.attrs = &attrs;
    product.inputs = inputs;
    product.outputs = &output;
    product.output_count = 1;
    product.unused = 0;
    product.forward = NULL;
    if (attrs.post.kinds & LEATI_POST_NORM) return LEAT_OK;
    return leati_cuda_matmul(&product, kernel, why, err);
}

static leat_status run_product_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                       leat_error *err) {
    const leati_cuda_conv_state *s = kernel->state;
    leati_run inner = *run;
    inner.scratch = (unsigned char *)run->scratch + s->src_offset;
    inner.pack = NULL;
    inner.packed = false;
    if (args[2]) LEATI_TRY(s->product.run(&s->product, args, &inner, err));
    return run_unpack(s, args, run, false, err);
}

static leat_status prepare_product_weights(const leati_task *task, leati_cuda_conv_state *s,
                                           leati_kernel *kernel, char *why, leat_error *err) {
    LEATI_TRY(prepare_product(task, &s->product, why, err));
    if (!s->product.run) {
        if (s->product.destroy) s->product.destroy(s->product.state);
        s->product = (leati_kernel){0};
        return LEAT_OK;
    }
    s->padded = s->g;
    LEATI_TRY(find_dnn_kernels(s, leati_cuda_is_bf16(&task->inputs[1]), err));
    describe_packing(s, &task->outputs[0]);
    describe_columns(s, task, kernel);
    s->src_offset = reserve(&kernel->scratch_bytes, s->product.scratch_bytes);
    snprintf(kernel->implementation, sizeof kernel->implementation, "%s", s->product.implementation);
    kernel->run = run_product_weights;
    return LEAT_OK;
}

/* ---- Choice ---- */

/* Returns true if there are too few products per element for cuDNN's kernels to be worth what stands around them. */
static bool is_small(const leati_geometry *g, double most) {
    const int64_t each = g->taps * (g->channels / g->groups);
    return each <= 32 && (double)each * (double)(g->out_pixels * g->filters) <= most;
}

leat_status leati_cuda_conv_prepare(const leati_task *task, leati_kernel *kernel,
                                    leati_cuda_conv_choice choice, char *why, leat_error *err) {
    leati_cuda_conv_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a convolution");
    kernel->state = s;
    kernel->destroy = destroy;
    s->cuda = leati_cuda_of(task->device);
    s->op = task->op;
    s->inputs = task->input_count;
    s->own_inputs = leati_op_inputs(task);
    LEATI_TRY(leati_conv_geometry(&s->g, task->op, task->attrs, task->inputs, err));
    bool weights = task->op == LEATI_OP_CONV_BWD_WEIGHTS;
    bool empty = s->g.batch == 0 || s->g.channels == 0 || s->g.filters == 0;
    double most = weights ? 1e8 : 1e9; /* products */
    bool small = task->op != LEATI_OP_CONV_BWD_DATA && is_small(&s->g, most);
    LEATI_TRY(weights ? leati_cuda_conv_prepare_direct_weights(task, s, kernel, err)
                      : leati_cuda_conv_prepare_direct(task, s, kernel, err));
    if (empty || leati_cuda_conv_is_depthwise(&s->g)) return LEAT_OK;
    bool rules = choice.way == LEATI_CUDA_CONV_RULES, gemm = choice.way == LEATI_CUDA_CONV_GEMM;
    if (rules || gemm) LEATI_TRY(leati_cuda_conv_prepare_gemm(task, s, kernel, gemm, err));
    if (s->as_chosen || gemm || (rules && small)) return LEAT_OK;
    return prepare_dnn(task, s, kernel, choice, why, err);
}

/* Prepares the gradient with respect to the weights of a pointwise convolution; leaves kernel->run NULL if there is no
 * matrix product for it. */
static leat_status prepare_pointwise_weights(const leati_task *task, leati_kernel *kernel,
                                             const leati_geometry *g, char *why, leat_error *err) {
    leati_cuda_conv_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a convolution");
    kernel->state = s;
    kernel->destroy = destroy;
    s->cuda = leati_cuda_of(task->device);
    s->op = task->op;
    s->inputs = task->input_count;
    s->own_inputs = leati_op_inputs(task);
    s->g = *g;
    return prepare_product_weights(task, s, kernel, why, err);
}

/* Prepares a matrix product where one will do. */
static leat_status prepare_any(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_geometry g;
    leati_cuda_conv_choice choice;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    bool empty = g.batch == 0 || g.channels == 0 || g.filters == 0;
    if (is_pointwise(&g) && !empty) {
        leati_kernel product = {0};
        leat_status status = task->op == LEATI_OP_CONV_BWD_WEIGHTS
                                 ? prepare_pointwise_weights(task, &product, &g, why, err)
                                 : prepare_product(task, &product, why, err);
        if (status == LEAT_OK && product.run) {
            *kernel = product;
            return LEAT_OK;
        }
        if (product.destroy) product.destroy(product.state);
        LEATI_TRY(status);
    }
    LEATI_TRY(leati_cuda_conv_choose(task, &g, &choice, err));
    return leati_cuda_conv_prepare(task, kernel, choice, why, err);
}

LEATI_CUDA_PREPARE(conv) {
    return prepare_any(task, kernel, why, err);
}

LEATI_CUDA_PREPARE(conv_bwd_data) {
    return prepare_any(task, kernel, why, err);
}

LEATI_CUDA_PREPARE(conv_bwd_weights) {
    return prepare_any(task, kernel, why, err);
}
