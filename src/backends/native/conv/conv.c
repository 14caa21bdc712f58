/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, and their gradients with respect to the source, as matrix products: one row per pixel of the
 * destination, which holds the source pixels under the window there, times packed weights.  For windows of one
 * pixel the rows are the source itself; otherwise a block of rows is gathered into the cache.  Bias, addition and
 * function are fused into the product.  Room: backends/native. */
#include "backends/native/conv/conv.h"

#include <stdio.h>
#include <string.h>

#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/fold_norm.h"

enum {
    ROWS = 96,            /* rows of a block, which stays in the L2 cache */
    DEPTH = 512,          /* depth of a part of a panel of weights, which stays in the L1 cache */
    FEW_CHANNELS = 8,     /* products of fewer channels are bound by their reads and writes */
    FEW_FILTERS = 4,      /* at most (few_filters_tmpl.h) */
    LANES_PER_FILTER = 4, /* at least, of a vector */
    SUMS = 8,             /* blocks of rows at most with sums of a gradient with respect to the weights */
    SUM_ROWS = 16         /* rows at least of such a block */
};

/* ---- Weights ---- */

/* Transposes (taps, channels, filters) of the forward convolution to (taps, filters, channels), last tap first: one
 * stripe of channels of one tap. */
static void transpose_stripe(void *of, int64_t task, int member) {
    const leati_conv_packing *p = of;
    const leati_conv_state *s = p->s;
    int64_t channels = s->g.filters, filters = s->g.channels, lanes = s->isa->lanes;
    int64_t stripes = channels / lanes, tap = task / stripes, c = task % stripes * lanes;
    const float *from = p->weights + (tap * channels + c) * filters;
    float *transposed = p->packed + (s->g.taps - 1 - tap) * channels * filters + c;
    (void)member;
    for (int64_t f = 0; f < filters; f += lanes)
        s->isa->transpose_square(transposed + f * channels, channels, from + f, filters);
}

/* Returns the floats of the weights that packing changes before it packs them. */
static size_t changed_floats(const leati_conv_state *s) {
    const leati_geometry *g = &s->g;
    return s->norm || s->transposed ? leati_conv_line(g->taps * g->channels / g->groups * g->filters) : 0;
}

leati_conv_run leati_conv_start(const leati_conv_state *s, const leati_kernel *kernel, void *const *args,
                                const leati_run *run, leati_thread_pool_work pack, int64_t tasks) {
    float *changed = run->scratch, *packed = run->pack;
    size_t weights = changed_floats(s);
    size_t folded = s->norm ? leati_conv_line(s->g.filters) : 0;
    if (!packed)
        packed = (float *)run->scratch + (kernel->scratch_bytes - kernel->pack_bytes) / sizeof(float);
    if (!run->pack || !run->packed) {
        if (s->norm)
            leati_fold_norm(args + s->post, s->epsilon, args[1], s->bias >= 0 ? args[s->bias] : NULL,
                            s->g.taps * s->g.channels / s->g.groups, s->g.filters, changed, packed);
        leati_conv_packing p = {.s = s, .weights = args[1], .packed = changed};
        if (s->transposed)
            leati_thread_pool_share(run->pool, s->threads, s->g.taps * (s->g.filters / s->isa->lanes),
                                    transpose_stripe, &p);
        if (s->norm || s->transposed) p.weights = changed;
        p.packed = packed + folded;
        leati_thread_pool_share(run->pool, s->threads, tasks, pack, &p);
    }
    bool adds = s->post >= 0 && args[s->post + LEATI_POST_ADDEND];
    return (leati_conv_run){.s = s,
                            .src = args[0],
                            .bias = s->norm        ? packed
                                    : s->bias >= 0 ? args[s->bias]
                                                   : NULL,
                            .addend = adds ? args[s->post + LEATI_POST_ADDEND] : NULL,
                            .packed = packed + folded,
                            .dst = args[s->dst],
                            .buffers = changed + weights};
}

/* ---- What all have in common ---- */

void leati_conv_transpose_geometry(leati_geometry *g) {
    leati_geometry f = *g;
    g->channels = f.filters;
    g->filters = f.channels;
    g->out_pixels = f.batch;
    for (int i = 0; i < 3; i++) {
        g->in[i] = f.out[i];
        g->out[i] = f.in[i];
        g->pad_before[i] = (f.kernel[i] - 1) * f.dilation[i] - f.pad_before[i];
        g->pad_after[i] = (f.kernel[i] - 1) * f.dilation[i] - f.pad_after[i];
        g->out_pixels *= g->out[i];
    }
}

bool leati_conv_has_steps(const leati_geometry *g) {
    return g->stride[0] > 1 || g->stride[1] > 1 || g->stride[2] > 1;
}

bool leati_conv_is_dense(const leati_geometry *g) {
    return leati_conv_is_flat(g) && g->out_pixels <= LEATI_CONV_FEW_PIXELS;
}

static bool has_padding(const leati_geometry *g) {
    for (int i = 0; i < 3; i++)
        if (g->pad_before[i] != 0 || g->pad_after[i] != 0) return true;
    return false;
}

bool leati_conv_are_few(int64_t filters, int64_t lanes) {
    return filters <= FEW_FILTERS && filters * LANES_PER_FILTER <= lanes;
}

bool leati_conv_has_gaps(const leati_geometry *g) {
    return g->dilation[0] > 1 || g->dilation[1] > 1 || g->dilation[2] > 1;
}

bool leati_conv_is_flat(const leati_geometry *g) {
    return g->taps == 1 && !has_padding(g) && !leati_conv_has_steps(g);
}

/* Products have any number of filters; Winograd's may end with one of a panel's two vectors.  Gradients transpose the
 * weights by squares of whole vectors. */
static bool fills_vectors(const leati_geometry *g, const leati_native_isa *isa, bool transposed,
                          bool winograd) {
    if (winograd) return g->filters % isa->lanes == 0;
    return !transposed || g->filters % isa->panel == 0;
}

static int64_t panels_of(const leati_conv_state *s) {
    return leati_ceil_div(s->g.filters, s->isa->panel);
}

/* Returns why the task is declined, or NULL.  prefer_onednn: leave to oneDNN what oneDNN does faster. */
static const char *reason_against(const leati_geometry *g, const leati_native_isa *isa, bool transposed,
                                  bool winograd, bool prefer_onednn) {
    if (g->groups > 1) return "a grouped convolution";
    if (!fills_vectors(g, isa, transposed, winograd) || (transposed && g->channels % isa->lanes))
        return "channels or filters that do not fill whole vectors";
    if (prefer_onednn && g->taps * g->channels < (leati_conv_is_flat(g) ? FEW_CHANNELS : 32))
        return "too few channels and taps";
    /* oneDNN 2.6 has kernels for dilated windows only with AVX-512. */
    bool in_onednn = isa->lanes > 8 || (isa->lanes == 8 && !leati_conv_has_gaps(g));
    if (prefer_onednn && !winograd && g->taps > 1 && in_onednn)
        return "a window that oneDNN has a kernel for";
    if (g->out_pixels == 0) return "an empty tensor";
    if (transposed && leati_conv_has_steps(g) && (g->taps > 1 || has_padding(g)))
        return "a gradient of a convolution with strides";
    return NULL;
}

/* True if source, destination and addend are bf16 and all other tensors f32, or all tensors are f32. */
static bool fits(const leati_task *task) {
    bool bf16 = leati_conv_is_bf16(&task->inputs[0]);
    int addend = task->attrs->post.kinds & LEATI_POST_ADD ? leati_op_inputs(task) + LEATI_POST_ADDEND : 0;
    for (int i = 0; i < task->input_count; i++)
        if (leati_conv_is_bf16(&task->inputs[i]) != (bf16 && (i == 0 || i == addend))) return false;
    return leati_conv_is_bf16(&task->outputs[0]) == bf16;
}

leat_status leati_conv_make(leati_conv_state **out, const leati_task *task, const leati_geometry *g,
                            double operations, leati_kernel *kernel, leat_error *err) {
    leati_conv_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a convolution");
    bool transposed = task->op == LEATI_OP_CONV_BWD_DATA;
    int op_inputs = leati_op_inputs(task);
    uint32_t kinds = task->attrs->post.kinds;
    *s = (leati_conv_state){.g = *g, .isa = leati_native_isa_of(), .transposed = transposed};
    s->bias = !transposed && op_inputs > 2 && task->inputs[2].rank >= 0 ? 2 : -1;
    s->post = task->input_count > op_inputs ? op_inputs : -1;
    s->dst = task->input_count;
    s->norm = kinds & LEATI_POST_NORM;
    s->bf16 = leati_conv_is_bf16(&task->inputs[0]);
    s->has_f = kinds & LEATI_POST_FUNCTION;
    s->f = task->attrs->post.function;
    s->epsilon = task->attrs->post.epsilon;
    s->threads = leati_worthwhile_threads(task, operations);
    kernel->state = s;
    kernel->destroy = leati_free;
    *out = s;
    return LEAT_OK;
}

leat_status leati_conv_begin(leati_conv_state **out, const leati_task *task, bool winograd,
                             leati_kernel *kernel, char *why, leat_error *err) {
    const leati_native_isa *isa = leati_native_isa_of();
    bool transposed = task->op == LEATI_OP_CONV_BWD_DATA;
    leati_geometry g;
    *out = NULL;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    int64_t sums = g.out_pixels;
    if (transposed) leati_conv_transpose_geometry(&g);
    bool prefer_onednn = LEATI_NATIVE_PREFERS_ONEDNN && !task->measured && !leati_conv_is_dense(&g);
    const char *reason = fits(task) ? reason_against(&g, isa, transposed, winograd, prefer_onednn)
                                    : "an unsupported mix of bfloat16 and float32";
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    double operations = 2.0 * (double)sums * (double)g.taps * (double)g.channels * (double)g.filters;
    return leati_conv_make(out, task, &g, operations, kernel, err);
}

/* Returns the fewest blocks of at most max_rows rows that give, with `parts` ranges of columns, two tasks or more to
 * each thread, and as many to each. */
static int64_t blocks_for(const leati_conv_state *s, int64_t parts, int64_t max_rows) {
    int64_t wanted = s->threads > 1 ? 2 * s->threads : 1;
    int64_t blocks = leati_ceil_div(s->rows, max_rows), enough = leati_ceil_div(wanted, parts);
    if (blocks < enough) blocks = enough;
    while (blocks < 8 * s->threads && blocks * parts % s->threads != 0) blocks++;
    return blocks < s->rows ? blocks : s->rows;
}

void leati_conv_share(leati_conv_state *s, int64_t rows, int64_t max_rows, int64_t unit) {
    int64_t units = leati_ceil_div(s->g.filters, unit), least = INT64_MAX, blocks = 1;
    s->rows = rows;
    s->unit = unit;
    for (int64_t parts = 1; parts <= 2 * s->threads && parts <= units; parts++) {
        int64_t now = blocks_for(s, parts, max_rows), cost = now * s->g.filters + parts * rows;
        if (cost >= least) continue;
        least = cost;
        blocks = now;
        s->parts = parts;
    }
    s->block = leati_ceil_div(rows, blocks);
    s->blocks = leati_ceil_div(rows, s->block);
}

leati_conv_area leati_conv_area_of(const leati_conv_state *s, int64_t task) {
    int64_t part = task / s->blocks, units = leati_ceil_div(s->g.filters, s->unit);
    int64_t to = units * (part + 1) / s->parts * s->unit;
    leati_conv_area area = {.first = task % s->blocks * s->block, .from = units * part / s->parts * s->unit};
    area.rows = s->rows - area.first < s->block ? s->rows - area.first : s->block;
    area.columns = (to < s->g.filters ? to : s->g.filters) - area.from;
    return area;
}

void leati_conv_share_sums(leati_conv_state *s) {
    s->rows = s->g.batch * s->g.out[0] * s->g.out[1];
    s->blocks = s->rows / SUM_ROWS;
    s->blocks = s->blocks > SUMS ? SUMS : s->blocks > 0 ? s->blocks : 1;
}

leati_conv_rows leati_conv_rows_of(const leati_conv_run *r, int64_t task) {
    const leati_conv_state *s = r->s;
    const leati_conv_area area = leati_conv_area_of(s, task);
    return (leati_conv_rows){.g = &s->g,
                             .src = r->src,
                             .packed = r->packed,
                             .bias = r->bias,
                             .addend = r->addend,
                             .f = s->has_f ? &s->f : NULL,
                             .dst = r->dst,
                             .first_row = area.first,
                             .last_row = area.first + area.rows,
                             .first_filter = area.from,
                             .last_filter = area.from + area.columns};
}

void leati_conv_memory(leati_conv_state *s, leati_kernel *kernel, const char *algorithm, size_t floats) {
    size_t weights = changed_floats(s);
    s->buffer = leati_conv_line((int64_t)s->buffer);
    kernel->pack_bytes =
        (leati_conv_line((int64_t)floats) + (s->norm ? leati_conv_line(s->g.filters) : 0)) * sizeof(float);
    kernel->scratch_bytes = (weights + s->buffer * (size_t)s->threads) * sizeof(float) + kernel->pack_bytes;
    kernel->pack_inputs = 1u << 1;
    for (int i = 2; s->norm && i <= s->post + LEATI_POST_VARIANCE; i++) kernel->pack_inputs |= 1u << i;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s%s", algorithm, s->isa->name);
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "native %s%s%s %lldx%lld%s%.9g", algorithm,
             s->isa->name, s->transposed ? " transposed" : "", (long long)s->g.channels,
             (long long)s->g.filters, s->norm ? " norm " : " ", (double)(s->norm ? s->epsilon : 0));
    if (s->size)
        snprintf(kernel->layout, sizeof kernel->layout, "nhwc weights %d x panels of %d columns",
                 (int)leati_winograd_elements(&s->g, s->size), (int)s->isa->panel);
    else
        snprintf(kernel->layout, sizeof kernel->layout, "nhwc weights panels of %d columns",
                 (int)s->isa->panel);
}

/* Copies `width` channels from element `at` of the image on, as f32. */
static void copy_channels(const leati_conv_image *image, int64_t at, int64_t width, float *to) {
    if (image->bf16_to_f32)
        image->bf16_to_f32((const uint16_t *)image->elements + at, to, width);
    else
        memcpy(to, (const float *)image->elements + at, (size_t)width * sizeof *to);
}

void leati_conv_gather(const leati_conv_image *image, int64_t tap, int64_t first, int64_t count, int64_t from,
                       int64_t width, float *to, int64_t to_row) {
    const leati_geometry *g = image->g;
    int64_t at[3], shift[3], rest = first;
    for (int i = 2; i >= 0; i--) {
        at[i] = rest % g->out[i];
        rest /= g->out[i];
        shift[i] = tap % g->kernel[i] * g->dilation[i] - g->pad_before[i];
        tap /= g->kernel[i];
    }
    if (leati_conv_is_flat(g)) {
        for (from += first * g->channels; count > 0; count--, to += to_row, from += g->channels)
            copy_channels(image, from, width, to);
        return;
    }
    for (; count > 0; count--, to += to_row) {
        int64_t pixel = rest;
        bool inside = true;
        for (int i = 0; i < 3; i++) {
            int64_t element = at[i] * g->stride[i] + shift[i];
            inside = inside && element >= 0 && element < g->in[i];
            pixel = pixel * g->in[i] + element;
        }
        if (inside)
            copy_channels(image, pixel * g->channels + from, width, to);
        else
            memset(to, 0, (size_t)width * sizeof *to);
        for (int i = 2; i >= 0 && ++at[i] == g->out[i]; i--) {
            at[i] = 0;
            if (i == 0) rest++;
        }
    }
}

/* ---- Products ---- */

static void pack(void *of, int64_t task, int member) {
    const leati_conv_packing *p = of;
    const leati_conv_state *s = p->s;
    int64_t rows = s->g.taps * s->g.channels, panel = s->isa->panel, last = (task + 1) * panel;
    (void)member;
    if (last > s->g.filters) last = s->g.filters;
    s->isa->pack_columns(p->weights, s->g.filters, rows, task * panel, last, p->packed, rows * panel, NULL);
}

/* Returns the pixel of the destination that row `row` of the product gives, for a gradient with strides. */
static int64_t strided_pixel(const leati_geometry *g, int64_t row) {
    int64_t at[3];
    for (int i = 2; i >= 0; i--) {
        at[i] = row % g->in[i] * g->stride[i];
        row /= g->in[i];
    }
    return ((row * g->out[0] + at[0]) * g->out[1] + at[1]) * g->out[2] + at[2];
}

/* True if the products go to the thread's scratch first, and are then moved to the destination. */
static bool uses_buffer(const leati_conv_state *s) {
    return s->strided_dst || s->bf16;
}

/* Sets the addend of a block's products, columns `from` on; converts it to f32 where it is bf16. */
static void set_addend(const leati_conv_run *r, leati_product *p, int64_t first, int64_t from) {
    const leati_conv_state *s = r->s;
    int64_t at = first * s->g.filters + from;
    p->addend_row = s->bf16 ? p->c_row : s->g.filters;
    if (!r->addend) return;
    p->addend = s->bf16 ? p->c : (const float *)r->addend + at;
    for (int64_t i = 0; s->bf16 && i < p->rows; i++)
        s->isa->bf16_to_f32((const uint16_t *)r->addend + at + i * s->g.filters, p->c + i * p->c_row,
                            p->columns);
}

static void move_products(const leati_conv_run *r, const leati_product *p, int64_t first, int64_t from) {
    const leati_conv_state *s = r->s;
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t pixel = s->strided_dst ? strided_pixel(&s->g, first + i) : first + i,
                at = pixel * s->g.filters + from;
        const float *products = p->c + i * p->c_row;
        if (s->bf16)
            s->isa->f32_to_bf16(products, (uint16_t *)r->dst + at, p->columns);
        else
            memcpy((float *)r->dst + at, products, (size_t)p->columns * sizeof(float));
    }
}

/* Sets p's left operand: the source itself where possible, else the pixels under the windows, gathered into
 * `gathered`. */
static void gather_rows(const leati_conv_run *r, leati_product *p, int64_t first, float *gathered) {
    const leati_conv_state *s = r->s;
    const leati_geometry *g = &s->g;
    const leati_conv_image image = {g, r->src, s->bf16 ? s->isa->bf16_to_f32 : NULL};
    bool in_place = s->strided_dst || leati_conv_is_flat(g);
    int64_t depth = g->taps * g->channels;
    p->a_depth = 1;
    p->a_row = in_place && !s->bf16 ? depth : depth + 16;
    p->a = in_place && !s->bf16 ? (const float *)r->src + first * depth : gathered;
    for (int64_t tap = 0; !in_place && tap < g->taps; tap++)
        leati_conv_gather(&image, tap, first, p->rows, 0, g->channels, gathered + tap * g->channels,
                          p->a_row);
    for (int64_t i = 0; in_place && s->bf16 && i < p->rows; i++)
        s->isa->bf16_to_f32((const uint16_t *)r->src + (first + i) * depth, gathered + i * p->a_row, depth);
}

/* Computes the columns from `from` on of the rows first to first + p->rows - 1, whose left operand and result are
 * set. */
static void multiply(const leati_conv_run *r, leati_product *p, int64_t first, int64_t from) {
    const leati_conv_state *s = r->s;
    int64_t panel = s->isa->panel, depth = s->g.taps * s->g.channels, chunks = leati_ceil_div(depth, DEPTH);
    const float *a = p->a, *b = r->packed + from * depth;
    p->b_panel = depth * panel;
    p->bias = r->bias ? r->bias + from : NULL;
    set_addend(r, p, first, from);
    for (int64_t i = 0; i < chunks; i++) {
        int64_t k = depth * i / chunks;
        p->a = a + k;
        p->b = b + k * panel;
        p->depth = depth * (i + 1) / chunks - k;
        p->f = s->has_f && i == chunks - 1 ? &s->f : NULL;
        s->isa->product(p);
        p->addend = p->c;
        p->addend_row = p->c_row;
        p->bias = NULL;
    }
}

static void compute(void *of, int64_t task, int member) {
    const leati_conv_run *r = of;
    const leati_conv_state *s = r->s;
    const leati_geometry *g = &s->g;
    float *products = r->buffers + (size_t)member * s->buffer,
          *gathered = products + (uses_buffer(s) ? s->block * g->filters : 0);
    leati_conv_area area = leati_conv_area_of(s, task);
    int64_t first = area.first, from = area.from;
    leati_product p = {.rows = area.rows, .columns = area.columns};
    p.c = uses_buffer(s) ? products : (float *)r->dst + first * g->filters + from;
    p.c_row = uses_buffer(s) ? p.columns : g->filters;
    gather_rows(r, &p, first, gathered);
    multiply(r, &p, first, from);
    if (uses_buffer(s)) move_products(r, &p, first, from);
}

void leati_conv_products(const leati_conv_run *r, const leati_conv_area *area, const float *a,
                         int64_t a_row) {
    int64_t filters = r->s->g.filters;
    leati_product p = {.a = a,
                       .a_row = a_row,
                       .a_depth = 1,
                       .c = (float *)r->dst + area->first * filters + area->from,
                       .c_row = filters,
                       .rows = area->rows,
                       .columns = area->columns};
    multiply(r, &p, area->first, area->from);
}

/* Sets one line of pixels of a gradient with strides to 0. */
static void clear(void *of, int64_t task, int member) {
    const leati_conv_run *r = of;
    size_t row = (size_t)(r->s->g.out[2] * r->s->g.filters) * (r->s->bf16 ? sizeof(uint16_t) : sizeof(float));
    (void)member;
    memset((unsigned char *)r->dst + (size_t)task * row, 0, row);
}

leati_conv_run leati_conv_products_start(const leati_kernel *kernel, void *const *args,
                                         const leati_run *run) {
    const leati_conv_state *s = kernel->state;
    return leati_conv_start(s, kernel, args, run, pack, panels_of(s));
}

static leat_status run_products(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const leati_conv_state *s = kernel->state;
    leati_conv_run r = leati_conv_products_start(kernel, args, run);
    (void)err;
    if (s->strided_dst)
        leati_thread_pool_share(run->pool, s->threads, s->g.batch * s->g.out[0] * s->g.out[1], clear, &r);
    leati_thread_pool_share(run->pool, s->threads, s->blocks * s->parts, compute, &r);
    return LEAT_OK;
}

leat_status leati_native_conv_product(const leati_task *task, leati_kernel *kernel, char *why,
                                      leat_error *err) {
    leati_conv_state *s = NULL;
    LEATI_TRY(leati_conv_begin(&s, task, false, kernel, why, err));
    if (!s) return LEAT_OK;
    const leati_geometry *g = &s->g;
    int64_t depth = g->taps * g->channels;
    s->strided_dst = s->transposed && leati_conv_has_steps(g);
    leati_conv_share(s, s->strided_dst ? g->batch * g->in[0] * g->in[1] * g->in[2] : g->out_pixels, ROWS,
                     s->isa->panel);
    if (uses_buffer(s)) s->buffer = (size_t)(s->block * g->filters);
    if (s->bf16 || (!s->strided_dst && !leati_conv_is_flat(g)))
        s->buffer += (size_t)(s->block * (depth + 16));
    leati_conv_memory(s, kernel, "", (size_t)(depth * panels_of(s) * s->isa->panel));
    kernel->run = run_products;
    return LEAT_OK;
}
