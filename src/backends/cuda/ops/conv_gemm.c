/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions in f32 arithmetic as products of matrices, by the kernels of kernels/conv_gemm.cuh.  They serve f32
 * without TF32, and of bf16 images with a few channels and small convolutions.  Room: backends/cuda. */
#include <assert.h>
#include <stdio.h>

#include "backends/cuda/ops/conv_state.h"
#include "base/error.h"
#include "base/memory.h"

/* One size of tiles; the names are the ends of the kernels' names. */
typedef struct variant {
    const char *name;
    int rows, columns, threads;
    int resident;      /* blocks that a multiprocessor holds at a time */
    double efficiency; /* of its multiplications, once there are enough warps */
} variant;

/* Four neighbours are read at once; or one of src and four of the others; or always one. */
static const variant vectors[] = {
    {"128x128", 128, 128, 256, 2, 1.00},
    {"128x64", 128, 64, 128, 4, 0.97},
    {"128x32", 128, 32, 128, 4, 0.85},
    {"64x64", 64, 64, 128, 5, 0.85},
    {0},
};
static const variant vectors_weights[] = {
    {"128x128", 128, 128, 256, 2, 1.00},
    {"128x64", 128, 64, 128, 3, 0.97},
    {"128x32", 128, 32, 128, 4, 0.85},
    {"64x64", 64, 64, 128, 4, 0.85},
    {0},
};
/* Images and weights of bf16, whose products are small. */
static const variant halves[] = {
    {"128x64", 128, 64, 128, 4, 0.97},
    {"128x32", 128, 32, 128, 4, 0.85},
    {"64x64", 64, 64, 128, 5, 0.85},
    {0},
};
static const variant halves_weights[] = {
    {"128x64", 128, 64, 128, 3, 0.97},
    {"128x32", 128, 32, 128, 4, 0.85},
    {"64x64", 64, 64, 128, 4, 0.85},
    {0},
};
static const variant few[] = {
    {"128x64", 128, 64, 128, 3, 0.8},
    {"128x32", 128, 32, 128, 4, 0.7},
    {0},
};
static const variant few_weights[] = {
    {"64x64", 64, 64, 128, 4, 0.7},
    {"64x32", 64, 32, 64, 8, 0.7},
    {0},
};
static const variant any[] = {{"64x64", 64, 64, 128, 4, 0.6}, {0}};

static int64_t up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Returns the cycles of a multiprocessor for so many tiles.  Few warps do not hide the latencies. */
static double cycles_for(const leati_cuda *cuda, const variant *v, double tiles, double depth) {
    const double products_per_cycle = 128, warps_half = 3;
    double most = tiles / cuda->multiprocessors, each = (double)(int64_t)most;
    if (each < most) each += 1;
    double resident = each < v->resident ? each : v->resident, warps = resident * v->threads / 32;
    return each * v->rows * v->columns * depth / products_per_cycle / v->efficiency *
           (1 + warps_half / warps);
}

/* ---- What is served ---- */

static bool fits(int64_t n) {
    return n > 0 && n < (int64_t)1 << 30;
}

/* The most products of a convolution of bf16 whose arithmetic is f32.  On an H100, convolutions of up to 0.7e9 products
 * took 55 to 68 us in f32, where cuDNN in bf16 needed 103 to 146 us; with 16 times as many products the whole model
 * was faster in bf16.  The limit between these, and the kernels for bf16 themselves, have not been measured. */
static const double most_half_products = 1e9;

/* Returns the sizes of tiles among which to choose; NULL: the kernels do not serve the task, or, unless they are asked
 * for, others are usually faster. */
static const variant *variants_for(const leati_task *task, const leati_cuda_conv_state *s, bool asked,
                                   const char **end) {
    const leati_geometry *g = &s->g;
    bool weights = s->op == LEATI_OP_CONV_BWD_WEIGHTS, data = s->op == LEATI_OP_CONV_BWD_DATA;
    bool bf16 = leati_cuda_is_bf16(&task->inputs[0]);
    leat_dtype type = task->inputs[0].dtype;
    int64_t in_pixels = g->batch * g->in[0] * g->in[1] * g->in[2];
    if (task->inputs[1].dtype != type || (!weights && task->outputs[0].dtype != type)) return NULL;
    if (g->groups != 1 || !fits(in_pixels) || !fits(g->out_pixels)) return NULL;
    if (!fits(g->taps * g->channels * g->filters)) return NULL;
    if (g->stride[0] * g->stride[1] * g->stride[2] > LEATI_CUDA_CONV_GEMM_CLASSES && data) return NULL;
    bool whole = g->channels % 4 == 0 && g->filters % 4 == 0, quads = !data && g->filters % 4 == 0;
    double products = (double)(g->taps * g->channels) * (double)(g->out_pixels * g->filters);
    *end = "bf16";
    if (bf16 && whole && g->channels >= 8 && (asked || products <= most_half_products))
        return weights ? halves_weights : halves;
    *end = bf16 ? "bf16_few" : quads ? "f32_few" : "f32_any";
    if (bf16 || s->cuda->device.tf32) {
        if (g->channels >= (bf16 ? 8 : 4) || !quads || (!asked && weights && products > 2e9)) return NULL;
        return weights ? few_weights : few;
    }
    if (!whole) return quads ? (weights ? few_weights : few) : any;
    *end = "f32";
    return weights ? vectors_weights : vectors;
}

static leat_status find(leati_cuda_conv_state *s, const char *op, const variant *v, const char *end,
                        leati_kernel *kernel, leat_error *err) {
    char name[64];
    snprintf(name, sizeof name, "leati_cuda_conv_gemm_%s_%s_%s", op, v->name, end);
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda gemm %s", v->name);
    s->gemm_needs_alignment = v != any;
    return leati_cuda_conv_find(s, name, &s->gemm, err);
}

/* ---- Pixels of the result ---- */

static void describe_forward(leati_cuda_conv_gemm *a, const leati_geometry *g) {
    leati_cuda_conv_gemm_class *q = &a->classes[0];
    a->class_count = 1;
    a->channels = (int32_t)g->channels;
    a->columns = (int32_t)g->filters;
    q->rows = (int32_t)g->out_pixels;
    for (int i = 0; i < 3; ++i) {
        a->src_size[i] = (int32_t)g->in[i];
        a->dst_size[i] = q->size[i] = (int32_t)g->out[i];
        a->move[i] = (int32_t)g->stride[i];
        a->offset[i] = (int32_t)g->dilation[i];
        a->kernel[i] = q->taps[i] = (int32_t)g->kernel[i];
        a->dst_step[i] = a->tap_step[i] = 1;
        q->base[i] = (int32_t)-g->pad_before[i];
    }
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Describes an axis of the pixels of src whose distance from the first position of a window leaves `rest` when it is
 * divided by the stride. */
static void describe_axis(leati_cuda_conv_gemm_class *q, const leati_cuda_conv_gemm *a,
                          const leati_geometry *g, int i, int64_t rest) {
    int64_t stride = g->stride[i], first = ((rest - g->pad_before[i]) % stride + stride) % stride, tap = 0;
    while (tap < g->kernel[i] && tap * g->dilation[i] % stride != rest) ++tap;
    q->first[i] = (int32_t)first;
    q->size[i] = first < g->in[i] ? (int32_t)up(g->in[i] - first, stride) : 0;
    q->tap[i] = (int32_t)tap;
    q->taps[i] = (int32_t)up(g->kernel[i] - tap, a->tap_step[i]);
    q->base[i] = (int32_t)((first + g->pad_before[i] - tap * g->dilation[i]) / stride);
    if (q->taps[i] == 0) q->base[i] = 0;
}

static void describe_data(leati_cuda_conv_gemm *a, const leati_geometry *g) {
    a->channels = (int32_t)g->filters;
    a->columns = (int32_t)g->channels;
    for (int i = 0; i < 3; ++i) {
        int64_t divisor = common_divisor(g->stride[i], g->dilation[i]);
        a->src_size[i] = (int32_t)g->out[i];
        a->dst_size[i] = (int32_t)g->in[i];
        a->move[i] = 1;
        a->offset[i] = (int32_t)(-g->dilation[i] / divisor);
        a->kernel[i] = (int32_t)g->kernel[i];
        a->dst_step[i] = (int32_t)g->stride[i];
        a->tap_step[i] = (int32_t)(g->stride[i] / divisor);
    }
    for (int64_t r = 0; r < g->stride[0] * g->stride[1] * g->stride[2]; ++r) {
        leati_cuda_conv_gemm_class *q = &a->classes[a->class_count];
        describe_axis(q, a, g, 0, r / (g->stride[1] * g->stride[2]));
        describe_axis(q, a, g, 1, r / g->stride[2] % g->stride[1]);
        describe_axis(q, a, g, 2, r % g->stride[2]);
        q->rows = (int32_t)g->batch * q->size[0] * q->size[1] * q->size[2];
        if (q->rows > 0) ++a->class_count;
    }
}

/* Returns the number of tiles of rows; numbers the first one of each class. */
static int32_t number_tiles(leati_cuda_conv_gemm *a, int rows) {
    int32_t tiles = 0;
    for (int i = 0; i < a->class_count; ++i) {
        a->classes[i].tile = tiles;
        tiles += (int32_t)up(a->classes[i].rows, rows);
    }
    return tiles;
}

/* Returns the products of a column, as many rows deep as they are on average. */
static double mean_depth(const leati_cuda_conv_gemm *a) {
    double products = 0, rows = 0;
    for (int i = 0; i < a->class_count; ++i) {
        const leati_cuda_conv_gemm_class *q = &a->classes[i];
        products += (double)q->rows * q->taps[0] * q->taps[1] * q->taps[2] * a->channels;
        rows += q->rows;
    }
    return products / rows;
}

static leat_status run_pixels(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const leati_cuda_conv_state *s = kernel->state;
    leati_cuda_conv_gemm a = s->pixels;
    a.src.data = args[0];
    a.weights.data = args[1];
    a.dst.data = args[s->inputs];
    if (s->op == LEATI_OP_CONV) leati_cuda_conv_fill_post(&a.post, s, args);
    bool aligned =
        leati_cuda_is_aligned(args[0]) && leati_cuda_is_aligned(args[1]) && leati_cuda_is_aligned(a.dst.data);
    if (s->gemm_needs_alignment && !aligned) return leati_cuda_conv_run_direct(kernel, args, run, err);
    return leati_cuda_launch(s->cuda, s->gemm, &s->gemm_grid, &a, err);
}

static leat_status prepare_pixels(const leati_task *task, leati_cuda_conv_state *s, leati_kernel *kernel,
                                  const variant *among, const char *end, leat_error *err) {
    const variant *best = NULL;
    double least = 0;
    bool forward = s->op == LEATI_OP_CONV;
    leati_cuda_conv_gemm *a = &s->pixels;
    *a = (leati_cuda_conv_gemm){.src = leati_cuda_array_of(&task->inputs[0]),
                                .weights = leati_cuda_array_of(&task->inputs[1]),
                                .dst = leati_cuda_array_of(&task->outputs[0]),
                                .post = leati_cuda_conv_describe_post(task)};
    if (forward)
        describe_forward(a, &s->g);
    else
        describe_data(a, &s->g);
    for (const variant *v = among; v->name; ++v) {
        double tiles = (double)number_tiles(a, v->rows) * (double)up(a->columns, v->columns);
        double cycles = cycles_for(s->cuda, v, tiles, mean_depth(a));
        if (best && cycles >= least) continue;
        best = v;
        least = cycles;
    }
    assert(best);
    a->tiles_n = (int32_t)up(a->columns, best->columns);
    s->gemm_grid = (leati_cuda_grid){.x = (unsigned)(number_tiles(a, best->rows) * a->tiles_n),
                                     .threads = (unsigned)best->threads};
    LEATI_TRY(find(s, forward ? "forward" : "data", best, end, kernel, err));
    kernel->run = run_pixels;
    return LEAT_OK;
}

/* ---- Gradient with respect to the weights ---- */

static int64_t items_of(const leati_geometry *g) {
    return g->taps * g->channels * g->filters + g->filters;
}

static leat_status run_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const leati_cuda_conv_state *s = kernel->state;
    leati_cuda_conv_gemm_weights a = s->gemm_weights;
    if (!leati_cuda_is_aligned(args[0]) || !leati_cuda_is_aligned(args[1]))
        return leati_cuda_conv_run_direct_weights(kernel, args, run, err);
    a.src.data = args[0];
    a.diff_dst.data = args[1];
    a.diff_weights.data = args[2];
    a.diff_bias.data = args[3];
    a.partial = run->scratch;
    LEATI_TRY(leati_cuda_launch(s->cuda, s->gemm, &s->gemm_grid, &a, err));
    return a.splits > 1 ? leati_cuda_conv_sum_weights(kernel, args, run, a.splits, err) : LEAT_OK;
}

/* Chooses the tile and the number of ranges of pixels.  The sums of the ranges are written and read once more. */
static const variant *choose_ranges(const leati_cuda_conv_state *s, const variant *among, int64_t *splits) {
    enum { least_chunks = 8, most_splits = 512 };
    const double bytes_per_cycle = 1200, cycles_of_launch = 3000, cycles_of_split = 1500;
    const leati_geometry *g = &s->g;
    const variant *best = NULL;
    double least = 0;
    int64_t most = up(g->out_pixels, (int64_t)LEATI_CUDA_CONV_GEMM_CHUNK * least_chunks);
    if (most > most_splits) most = most_splits;
    for (const variant *v = among; v->name; ++v) {
        int64_t tiles = up(g->taps * g->channels, v->rows) * up(g->filters, v->columns),
                held = (int64_t)s->cuda->multiprocessors * v->resident;
        for (int64_t n = 1; n <= most; ++n) {
            double depth =
                (double)up(up(g->out_pixels, n), LEATI_CUDA_CONV_GEMM_CHUNK) * LEATI_CUDA_CONV_GEMM_CHUNK;
            double cycles = cycles_for(s->cuda, v, (double)(tiles * n), depth);
            cycles += cycles_of_split * (double)up(tiles * n, held);
            if (n > 1) cycles += cycles_of_launch + (double)(n * items_of(g)) * 8 / bytes_per_cycle;
            if (best && cycles >= least) continue;
            best = v;
            least = cycles;
            *splits = n;
        }
    }
    return best;
}

static leat_status prepare_weights(const leati_task *task, leati_cuda_conv_state *s, leati_kernel *kernel,
                                   const variant *among, const char *end, leat_error *err) {
    const leati_geometry *g = &s->g;
    int64_t splits = 1;
    const variant *best = choose_ranges(s, among, &splits);
    int64_t pixels = up(up(g->out_pixels, splits), LEATI_CUDA_CONV_GEMM_CHUNK) * LEATI_CUDA_CONV_GEMM_CHUNK;
    splits = up(g->out_pixels, pixels);
    s->gemm_weights = (leati_cuda_conv_gemm_weights){.shape = leati_cuda_shape_of(g),
                                                     .src = leati_cuda_array_of(&task->inputs[0]),
                                                     .diff_dst = leati_cuda_array_of(&task->inputs[1]),
                                                     .diff_weights = leati_cuda_array_of(&task->outputs[0]),
                                                     .diff_bias = leati_cuda_array_of(&task->outputs[1]),
                                                     .splits = (int32_t)splits,
                                                     .split_pixels = (int32_t)pixels,
                                                     .tiles_n = (int32_t)up(g->filters, best->columns)};
    int64_t tiles = up(g->taps * g->channels, best->rows) * s->gemm_weights.tiles_n;
    s->gemm_grid =
        (leati_cuda_grid){.x = (unsigned)tiles, .y = (unsigned)splits, .threads = (unsigned)best->threads};
    size_t bytes = splits > 1 ? leati_count_bytes(items_of(g) * splits, sizeof(float)) : 0;
    if (kernel->scratch_bytes < bytes) kernel->scratch_bytes = bytes;
    LEATI_TRY(find(s, "weights", best, end, kernel, err));
    kernel->run = run_weights;
    return LEAT_OK;
}

leat_status leati_cuda_conv_prepare_gemm(const leati_task *task, leati_cuda_conv_state *s,
                                         leati_kernel *kernel, bool asked, leat_error *err) {
    const char *end = NULL;
    const variant *among = variants_for(task, s, asked, &end);
    s->as_chosen = among != NULL;
    if (!among) return LEAT_OK;
    return s->op == LEATI_OP_CONV_BWD_WEIGHTS ? prepare_weights(task, s, kernel, among, end, err)
                                              : prepare_pixels(task, s, kernel, among, end, err);
}
