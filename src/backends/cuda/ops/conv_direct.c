/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that kernels of kernels/conv.cu compute as a whole: depthwise ones, small ones, and those that cuDNN
 * does not serve.  Room: backends/cuda. */
#include <stdio.h>

#include "backends/cuda/ops/conv_state.h"
#include "backends/cuda/ops/program.h"
#include "base/error.h"

leat_status leati_cuda_conv_find(leati_cuda_conv_state *s, const char *name, CUfunction *out,
                                 leat_error *err) {
    return leati_cuda_kernel(s->cuda, LEATI_CUDA_conv, name, 0, out, err);
}

/* ---- What follows the product ---- */

leati_cuda_conv_post leati_cuda_conv_describe_post(const leati_task *task) {
    const leati_attrs *attrs = task->attrs;
    int own = leati_op_inputs(task);
    leati_cuda_conv_post post = {.epsilon = attrs->post.epsilon};
    if (own > 2 && task->inputs[2].rank >= 0) post.bias = leati_cuda_array_of(&task->inputs[2]);
    if (task->input_count > own) {
        post.gamma = leati_cuda_array_of(&task->inputs[own + LEATI_POST_GAMMA]);
        post.beta = leati_cuda_array_of(&task->inputs[own + LEATI_POST_BETA]);
        post.mean = leati_cuda_array_of(&task->inputs[own + LEATI_POST_MEAN]);
        post.variance = leati_cuda_array_of(&task->inputs[own + LEATI_POST_VARIANCE]);
        post.addend = leati_cuda_array_of(&task->inputs[own + LEATI_POST_ADDEND]);
    }
    if (attrs->post.kinds & LEATI_POST_FUNCTION) {
        post.has_function = true;
        post.function = leati_cuda_function_of(&attrs->post.function);
    }
    return post;
}

void leati_cuda_conv_fill_post(leati_cuda_conv_post *post, const leati_cuda_conv_state *s,
                               void *const *args) {
    if (s->own_inputs > 2) post->bias.data = args[2];
    if (s->inputs == s->own_inputs) return;
    void *const *more = args + s->own_inputs;
    post->gamma.data = more[LEATI_POST_GAMMA];
    post->beta.data = more[LEATI_POST_BETA];
    post->mean.data = more[LEATI_POST_MEAN];
    post->variance.data = more[LEATI_POST_VARIANCE];
    post->addend.data = more[LEATI_POST_ADDEND];
}

/* ---- Kernels that compute the whole convolution ---- */

enum { vector_bytes = 16 };

/* Returns true if src, weights and dst have one type, whose vectors divide `count`. */
static bool has_vectors(const leati_task *task, int64_t count) {
    const leati_desc *dst = &task->outputs[0];
    int64_t elements = vector_bytes / (int64_t)leati_dtype_bytes(dst->dtype);
    return task->inputs[0].dtype == dst->dtype && task->inputs[1].dtype == dst->dtype &&
           count % elements == 0;
}

leat_status leati_cuda_conv_run_direct(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                       leat_error *err) {
    const leati_cuda_conv_state *s = kernel->state;
    leati_cuda_conv_direct a = s->direct;
    (void)run;
    a.src.data = args[0];
    a.weights.data = args[1];
    a.dst.data = args[s->inputs];
    bool forward = s->op == LEATI_OP_CONV;
    if (forward) leati_cuda_conv_fill_post(&a.post, s, args);
    int64_t count = forward ? s->g.out_pixels * s->g.filters : a.shape.in_pixels * s->g.channels;
    if (count == 0) return LEAT_OK;
    bool vectors = s->by_vectors && leati_cuda_is_aligned(args[0]) && leati_cuda_is_aligned(args[1]) &&
                   leati_cuda_is_aligned(a.dst.data);
    if (vectors) count = (count + s->elements - 1) / s->elements;
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, count);
    return leati_cuda_launch(s->cuda, vectors ? s->vectors : s->scalars, &grid, &a, err);
}

bool leati_cuda_conv_is_depthwise(const leati_geometry *g) {
    return g->groups > 1 && g->groups == g->channels;
}

leat_status leati_cuda_conv_prepare_direct(const leati_task *task, leati_cuda_conv_state *s,
                                           leati_kernel *kernel, leat_error *err) {
    bool same = s->g.groups == s->g.channels && s->g.channels == s->g.filters;
    bool forward = s->op == LEATI_OP_CONV, bf16 = leati_cuda_is_bf16(&task->outputs[0]);
    const char *vectors;
    s->direct = (leati_cuda_conv_direct){.shape = leati_cuda_shape_of(&s->g),
                                         .src = leati_cuda_array_of(&task->inputs[0]),
                                         .weights = leati_cuda_array_of(&task->inputs[1]),
                                         .dst = leati_cuda_array_of(&task->outputs[0]),
                                         .post = leati_cuda_conv_describe_post(task)};
    s->by_vectors = has_vectors(task, same ? s->g.channels : s->g.filters / s->g.groups);
    if (same && forward)
        vectors = bf16 ? "leati_cuda_conv_forward_depthwise_bf16" : "leati_cuda_conv_forward_depthwise_f32";
    else if (forward)
        vectors = bf16 ? "leati_cuda_conv_forward_bf16" : "leati_cuda_conv_forward_f32";
    else if (same)
        vectors = bf16 ? "leati_cuda_conv_bwd_data_depthwise_bf16" : "leati_cuda_conv_bwd_data_depthwise_f32";
    else
        vectors = bf16 ? "leati_cuda_conv_bwd_data_bf16" : "leati_cuda_conv_bwd_data_f32";
    s->elements = forward ? 16 : !same ? 1 : bf16 ? 8 : 4;
    if (s->by_vectors) LEATI_TRY(leati_cuda_conv_find(s, vectors, &s->vectors, err));
    LEATI_TRY(leati_cuda_conv_find(s,
                                   forward ? "leati_cuda_conv_forward_any" : "leati_cuda_conv_bwd_data_any",
                                   &s->scalars, err));
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda %s",
             leati_cuda_conv_is_depthwise(&s->g) ? "depthwise" : "direct");
    kernel->run = leati_cuda_conv_run_direct;
    return LEAT_OK;
}

leat_status leati_cuda_conv_sum_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                        int splits, leat_error *err) {
    const leati_cuda_conv_state *s = kernel->state;
    leati_cuda_conv_weights a = s->weights;
    a.diff_weights.data = args[2];
    a.diff_bias.data = args[3];
    a.partial = run->scratch;
    a.splits = splits;
    int64_t items = s->g.taps * (s->g.channels / s->g.groups) * s->g.filters + s->g.filters;
    leati_cuda_grid grid = {.x = (unsigned)((items + LEATI_CUDA_CONV_TILE - 1) / LEATI_CUDA_CONV_TILE),
                            .threads = 256};
    return leati_cuda_launch(s->cuda, s->sum, &grid, &a, err);
}

leat_status leati_cuda_conv_run_direct_weights(const leati_kernel *kernel, void *const *args,
                                               const leati_run *run, leat_error *err) {
    const leati_cuda_conv_state *s = kernel->state;
    leati_cuda_conv_weights a = s->weights;
    a.src.data = args[0];
    a.diff_dst.data = args[1];
    a.diff_weights.data = args[2];
    a.diff_bias.data = args[3];
    a.partial = run->scratch;
    int64_t items = s->g.taps * (s->g.channels / s->g.groups) * s->g.filters + s->g.filters;
    if (items == 0) return LEAT_OK;
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, items);
    if (s->by_lines) grid.x = (unsigned)((s->g.filters + s->line_filters - 1) / s->line_filters);
    grid.y = (unsigned)a.splits;
    LEATI_TRY(leati_cuda_launch(s->cuda, s->weights_kernel, &grid, &a, err));
    return leati_cuda_conv_sum_weights(kernel, args, run, a.splits, err);
}

/* Finds the kernel and the number of ranges of pixels. */
static leat_status choose_weights_kernel(const leati_task *task, leati_cuda_conv_state *s, int64_t *splits,
                                         leat_error *err) {
    enum { threads_wanted = 2048, pixels_at_least = 32, lines_at_least = 8, most_splits = 512 };
    const leati_geometry *g = &s->g;
    bool same_type = task->inputs[0].dtype == task->inputs[1].dtype,
         bf16 = leati_cuda_is_bf16(&task->inputs[0]);
    bool square = g->kernel[1] == g->kernel[2] && (g->kernel[1] == 3 || g->kernel[1] == 5);
    int64_t items = g->taps * (g->channels / g->groups) * g->filters + g->filters, most;
    char name[64];
    snprintf(name, sizeof name, "leati_cuda_conv_bwd_weights_%s", !same_type ? "any" : bf16 ? "bf16" : "f32");
    s->line_filters = LEATI_CUDA_CONV_TILE * (bf16 ? 2 : 1);
    s->by_lines = same_type && square && g->groups == g->channels && g->channels == g->filters &&
                  g->in[0] == 1 && g->kernel[0] == 1 && g->out[0] == 1 && (!bf16 || g->channels % 2 == 0);
    if (s->by_lines) {
        snprintf(name, sizeof name, "leati_cuda_conv_bwd_weights_%dx%d_%s", (int)g->kernel[1],
                 (int)g->kernel[2], bf16 ? "bf16" : "f32");
        items = (g->filters + s->line_filters - 1) / s->line_filters * 256;
        most = g->batch * g->out[1] / lines_at_least + 1;
    } else {
        most = g->out_pixels / pixels_at_least + 1;
    }
    *splits = (int64_t)s->cuda->multiprocessors * threads_wanted / (items + 1) + 1;
    if (*splits > most) *splits = most;
    if (*splits > most_splits) *splits = most_splits;
    return leati_cuda_conv_find(s, name, &s->weights_kernel, err);
}

leat_status leati_cuda_conv_prepare_direct_weights(const leati_task *task, leati_cuda_conv_state *s,
                                                   leati_kernel *kernel, leat_error *err) {
    int64_t splits;
    LEATI_TRY(choose_weights_kernel(task, s, &splits, err));
    LEATI_TRY(leati_cuda_conv_find(s, "leati_cuda_conv_bwd_weights_sum", &s->sum, err));
    s->weights = (leati_cuda_conv_weights){.shape = leati_cuda_shape_of(&s->g),
                                           .src = leati_cuda_array_of(&task->inputs[0]),
                                           .diff_dst = leati_cuda_array_of(&task->inputs[1]),
                                           .diff_weights = leati_cuda_array_of(&task->outputs[0]),
                                           .diff_bias = leati_cuda_array_of(&task->outputs[1]),
                                           .splits = (int32_t)splits};
    int64_t items = s->g.taps * (s->g.channels / s->g.groups) * s->g.filters + s->g.filters;
    size_t bytes = (size_t)(items * splits) * sizeof(float);
    if (kernel->scratch_bytes < bytes) kernel->scratch_bytes = bytes;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda %s",
             leati_cuda_conv_is_depthwise(&s->g) ? "depthwise" : "direct");
    kernel->run = leati_cuda_conv_run_direct_weights;
    return LEAT_OK;
}
