/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a convolution with respect to its weights and bias, as matrix products: the source pixels under a
 * tap, transposed, times the gradient of the destination.  Where Winograd's algorithm fits there is one product per
 * element of Winograd's tiles instead of one per tap.  Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    GROUP = 64,                /* channels at most that are the rows of one product */
    PIXELS = 256,              /* pixels that each thread packs and gathers at a time, in its L2 cache */
    MAX_LINE_CHANNELS = 32,    /* channels of source lines at most that are used without gathering */
    MIN_LINE_ROWS = 3,         /* taps of a line times channels at least */
    MIN_COLUMNS = 128,         /* columns from which gathering the left operand is worthwhile */
    MAX_COLUMNS = 512,         /* columns at most that stay in the L2 cache with the left operand */
    TAPS_SUMS = 80 * 1024,     /* floats of sums at most of each share of the pixels */
    SHARE_PIXELS = 4 * PIXELS, /* pixels of a share at least */
    TILES = 256,               /* tiles at a time, where their elements take no more than MAX_BYTES */
    THREAD_TILES = 1728,   /* tiles times elements at a time where each thread has its own, in its L2 cache */
    CHUNK = 8,             /* tiles, or channels, of a task */
    SHARES = 8,            /* shares at most of all tiles or pixels; each share has its own sums */
    SHARE_ELEMENTS = 4096, /* tiles times elements of a share at least */
    SHARE_OF_LINES = 1024, /* the same for windows of one axis */
    SHARE_SUMS = 4096,     /* Winograd: with more channels times filters there is only one share */
    LINE = 16,             /* floats of a cache line */
    STEP = 8,              /* filters whose bias gradients are summed together; divides the filters */
    WEIGHTS_COST = 32 /* leati_winograd_size: finishing the sums of one element costs as much as 32 tiles */
};
#define MAX_BYTES ((int64_t)16 << 20)

typedef struct weights_state {
    leati_geometry g;
    const leati_native_isa *isa;
    int threads;
    bool bf16;              /* source and gradient are bf16 */
    int64_t groups, group;  /* groups of channels; channels of a group at most */
    int64_t parts;          /* column ranges */
    int64_t columns;        /* taps: columns of a column range at most */
    int64_t strips;         /* taps: ranges of (taps, groups) */
    int64_t bunch;          /* taps: taps at most that are the rows of one product, if there is one group */
    int64_t lines;          /* taps: lines of the destination at a time; 0: pixels, not lines, are gathered */
    int64_t line;           /* taps: floats of a source line with its padding */
    int64_t tiles;          /* Winograd: tiles of a block */
    int64_t size, elements; /* Winograd: side of a tile in pixels, and its elements */
    int64_t shares;         /* shares of all tiles or pixels, each with its own sums */
    int64_t buffer;         /* floats of a block of tiles, or of a thread's two operands */
} weights_state;

/* The columns from `from` to `to` - 1. */
typedef struct columns {
    int64_t from, to;
} columns;

static int64_t panels_of(const weights_state *s) {
    return leati_ceil_div(s->g.filters, s->isa->panel);
}

static columns columns_of(const weights_state *s, int64_t part, int64_t parts) {
    int64_t panels = panels_of(s), panel = s->isa->panel, to = panels * (part + 1) / parts * panel;
    return (columns){panels * part / parts * panel, to < s->g.filters ? to : s->g.filters};
}

static int64_t width_of(const weights_state *s, int64_t group) {
    int64_t left = s->g.channels - group * s->group;
    return left < s->group ? left : s->group;
}

/* ---- Tap by tap ---- */

typedef struct taps_run {
    const weights_state *s;
    const void *src, *diff_dst;
    float *diff_weights, *diff_bias; /* diff_bias may be NULL */
    float *sums, *buffers; /* sums: weights and bias of each share but the first; buffers: of the threads */
} taps_run;

/* Returns the floats of one share's sums. */
static int64_t sums_of_taps(const weights_state *s) {
    return (s->g.taps * s->g.channels + 1) * s->g.filters;
}

/* Adds what the pixels first to first + count - 1 give to a range of (taps, groups) and of columns; `begins`:
 * overwrites instead of adding. */
static void add_pixels(const taps_run *r, int64_t strip, columns c, int64_t first, int64_t count, bool begins,
                       float *buffer) {
    const weights_state *s = r->s;
    const leati_geometry *g = &s->g;
    float *left = buffer + PIXELS * s->columns;
    int64_t all = g->taps * s->groups, width = c.to - c.from;
    float *bias = strip == 0 && r->diff_bias ? r->diff_bias + c.from : NULL;
    int64_t at = first * g->filters + c.from, floats = count * s->isa->panel;
    const leati_conv_image image = {g, r->src, s->bf16 ? s->isa->bf16_to_f32 : NULL};
    if (s->bf16)
        s->isa->pack_bf16_columns((const uint16_t *)r->diff_dst + at, g->filters, count, 0, width, buffer,
                                  floats, bias);
    else
        s->isa->pack_columns((const float *)r->diff_dst + at, g->filters, count, 0, width, buffer, floats,
                             bias);
    const int64_t end = all * (strip + 1) / s->strips;
    for (int64_t i = all * strip / s->strips, n; i < end; i += n) {
        int64_t tap = i / s->groups, group = i % s->groups, channels = width_of(s, group);
        n = end - i < s->bunch ? end - i : s->bunch;
        leati_product p = {.a = left,
                           .a_row = 1,
                           .a_depth = s->bunch * s->group + LINE,
                           .b = buffer,
                           .b_panel = floats,
                           .c =
                               r->diff_weights + (tap * g->channels + group * s->group) * g->filters + c.from,
                           .c_row = g->filters,
                           .rows = n * channels,
                           .columns = width,
                           .depth = count,
                           .addend_row = g->filters};
        p.addend = begins ? NULL : p.c;
        for (int64_t k = 0; k < n; k++)
            leati_conv_gather(&image, tap + k, first, count, group * s->group, channels, left + k * channels,
                              p.a_depth);
        s->isa->product(&p);
    }
}

/* Copies the source line under line `window` of the window, for one line of the destination, with its padding. */
static void copy_line(const taps_run *r, int64_t line, int64_t window, float *to) {
    const weights_state *s = r->s;
    const leati_geometry *g = &s->g;
    int64_t y = line % g->out[1] * g->stride[1] + window % g->kernel[1] * g->dilation[1] - g->pad_before[1];
    int64_t z = line / g->out[1] % g->out[0] * g->stride[0] + window / g->kernel[1] * g->dilation[0] -
                g->pad_before[0];
    int64_t width = s->line / g->channels, before = g->pad_before[2] < width ? g->pad_before[2] : width;
    int64_t last = before + g->in[2] < width ? before + g->in[2] : width;
    if (y < 0 || y >= g->in[1] || z < 0 || z >= g->in[0]) last = before = 0;
    int64_t pixel = ((line / g->out[1] / g->out[0] * g->in[0] + z) * g->in[1] + y) * g->in[2];
    memset(to, 0, (size_t)(before * g->channels) * sizeof *to);
    if (last > before)
        memcpy(to + before * g->channels, (const float *)r->src + pixel * g->channels,
               (size_t)((last - before) * g->channels) * sizeof *to);
    memset(to + last * g->channels, 0, (size_t)((width - last) * g->channels) * sizeof *to);
}

/* Like add_pixels(), for whole lines of the destination.  The channels of all taps of a line of the window are
 * neighbours in the source, so that they are the rows of one product, and nothing is gathered. */
static void add_lines(const taps_run *r, int64_t strip, columns c, int64_t first, int64_t count, bool begins,
                      float *buffer) {
    const weights_state *s = r->s;
    const leati_geometry *g = &s->g;
    float *left = buffer + s->lines * g->out[2] * s->columns;
    int64_t windows = g->kernel[0] * g->kernel[1], rows = g->kernel[2] * g->channels, width = c.to - c.from;
    int64_t pixels = count * g->out[2], floats = pixels * s->isa->panel;
    float *bias = strip == 0 && r->diff_bias ? r->diff_bias + c.from : NULL;
    s->isa->pack_columns((const float *)r->diff_dst + first * g->out[2] * g->filters + c.from, g->filters,
                         pixels, 0, width, buffer, floats, bias);
    for (int64_t i = windows * strip / s->strips; i < windows * (strip + 1) / s->strips; i++) {
        for (int64_t k = 0; k < count; k++) copy_line(r, first + k, i, left + k * s->line);
        leati_product p = {.a = left,
                           .a_row = 1,
                           .a_depth = g->stride[2] * g->channels,
                           .parts = count,
                           .a_part = s->line,
                           .b = buffer,
                           .b_panel = floats,
                           .c = r->diff_weights + i * rows * g->filters + c.from,
                           .c_row = g->filters,
                           .rows = rows,
                           .columns = width,
                           .depth = g->out[2],
                           .addend_row = g->filters};
        p.addend = begins ? NULL : p.c;
        s->isa->product(&p);
    }
}

/* One task: a share of the pixels (or lines), a column range and a range of (taps, groups). */
static void add_taps(void *of, int64_t task, int member) {
    taps_run r = *(const taps_run *)of;
    const weights_state *s = r.s;
    int64_t strip = task % s->strips, share = task / s->strips / s->parts;
    int64_t units = s->lines > 0 ? s->g.out_pixels / s->g.out[2] : s->g.out_pixels;
    columns c = columns_of(s, task / s->strips % s->parts, s->parts);
    if (share > 0) {
        r.diff_weights = r.sums + (share - 1) * sums_of_taps(s);
        if (r.diff_bias) r.diff_bias = r.diff_weights + sums_of_taps(s) - s->g.filters;
    }
    if (r.diff_bias && strip == 0) memset(r.diff_bias + c.from, 0, (size_t)(c.to - c.from) * sizeof(float));
    int64_t first = units * share / s->shares, last = units * (share + 1) / s->shares;
    int64_t chunks = leati_ceil_div(last - first, s->lines > 0 ? s->lines : PIXELS);
    for (int64_t i = 0; i < chunks; i++) {
        int64_t from = first + (last - first) * i / chunks, to = first + (last - first) * (i + 1) / chunks;
        (s->lines > 0 ? add_lines : add_pixels)(&r, strip, c, from, to - from, i == 0,
                                                r.buffers + member * s->buffer);
    }
}

/* Adds `count` arrays, which are `distance` floats apart, to `to`. */
static void add_sums(float *to, const float *from, int64_t floats, int64_t count, int64_t distance) {
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < floats; i++) to[i] += from[k * distance + i];
}

static void finish_taps(void *of, int64_t channel, int member) {
    const taps_run *r = of;
    const weights_state *s = r->s;
    (void)member;
    for (int64_t tap = 0; tap < s->g.taps; tap++) {
        int64_t at = (tap * s->g.channels + channel) * s->g.filters;
        add_sums(r->diff_weights + at, r->sums + at, s->g.filters, s->shares - 1, sums_of_taps(s));
    }
}

static leat_status run_taps(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const weights_state *s = kernel->state;
    const leati_geometry *g = &s->g;
    taps_run r = {.s = s,
                  .src = args[0],
                  .diff_dst = args[1],
                  .diff_weights = args[2],
                  .diff_bias = args[3],
                  .sums = run->scratch};
    (void)err;
    r.buffers = r.sums + (s->shares - 1) * sums_of_taps(s);
    leati_thread_pool_share(run->pool, s->threads, s->shares * s->parts * s->strips, add_taps, &r);
    if (s->shares == 1) return LEAT_OK;
    leati_thread_pool_share(run->pool, s->threads, g->channels, finish_taps, &r);
    if (r.diff_bias)
        add_sums(r.diff_bias, r.sums + sums_of_taps(s) - g->filters, g->filters, s->shares - 1,
                 sums_of_taps(s));
    return LEAT_OK;
}

/* ---- Winograd ---- */

/* A block of tiles and its transformed images. */
typedef struct tile_block {
    const weights_state *s;
    leati_winograd src, diff;
    float *sums, *diff_weights, *diff_bias;
    int64_t begin, first, count; /* begin: first tile of the first block; first, count: tiles of this block */
} tile_block;

/* Sets where the transformed source and gradient of a block lie. */
static void set_buffers(tile_block *p, float *buffer) {
    p->src.transformed = buffer;
    p->diff.transformed = buffer + p->s->elements * p->src.element_stride;
}

static int64_t sums_of(const weights_state *s) {
    return s->elements * s->g.channels * s->g.filters;
}

/* Scratch: zeros, sums, the sums of the bias, blocks of tiles. */
static tile_block tile_block_of(const weights_state *s, void *const *args, float *scratch) {
    const leati_geometry *g = &s->g;
    int64_t max_width = g->channels > g->filters ? g->channels : g->filters;
    tile_block p = {.s = s,
                    .sums = scratch + leati_conv_line(max_width),
                    .diff_weights = args[2],
                    .diff_bias = args[3]};
    p.src = (leati_winograd){.g = g,
                             .size = s->size,
                             .image = args[0],
                             .zeros = scratch,
                             .bf16 = s->bf16,
                             .group = s->group,
                             .group_stride = s->tiles * s->group,
                             .element_stride = s->groups * s->tiles * s->group + LINE};
    p.diff = (leati_winograd){.g = g,
                              .size = s->size,
                              .image = args[1],
                              .zeros = scratch,
                              .bf16 = s->bf16,
                              .group = s->isa->panel,
                              .group_stride = s->tiles * s->isa->panel,
                              .element_stride = s->tiles * panels_of(s) * s->isa->panel + LINE};
    set_buffers(&p, p.sums + s->shares * (sums_of(s) + g->filters));
    memset(scratch, 0, (size_t)max_width * sizeof *scratch);
    if (p.diff_bias) memset(p.diff_bias, 0, (size_t)g->filters * sizeof(float));
    return p;
}

/* Transforms CHUNK tiles. */
static void transform_tiles(void *of, int64_t task, int member) {
    const tile_block *p = of;
    leati_winograd src = p->src, diff = p->diff;
    int64_t from = task * CHUNK, to = from + CHUNK < p->count ? from + CHUNK : p->count;
    (void)member;
    src.first = diff.first = p->first + from;
    src.last = diff.last = p->first + to;
    src.transformed += from * src.group;
    diff.transformed += from * diff.group;
    p->s->isa->winograd_source(&src);
    p->s->isa->winograd_diff(&diff);
}

/* sum += STEP elements of the gradient. */
static void add_step(const tile_block *p, int64_t at, float *sum) {
    const uint16_t *bf16 = (const uint16_t *)p->diff.image + at;
    const float *wide = (const float *)p->diff.image + at;
    if (p->s->bf16)
        for (int l = 0; l < STEP; l++) sum[l] += leati_bfloat16_to_float(bf16[l]);
    else
        for (int l = 0; l < STEP; l++) sum[l] += wide[l];
}

/* Adds the block's pixels to the gradient with respect to the bias, for some filters, where the threads share a block:
 * otherwise the tiles' transform adds them. */
static void add_bias(const tile_block *p, columns c) {
    const leati_geometry *g = &p->s->g;
    int64_t size = p->s->size, height = leati_winograd_height(g, size);
    int64_t across = leati_winograd_tiles_along(g, 2, size), down = leati_winograd_tiles_along(g, 1, height);
    for (int64_t j = c.from; j < c.to; j += STEP) {
        float sum[STEP] = {0};
        for (int64_t tile = p->first; tile < p->first + p->count; tile++) {
            int64_t y = leati_winograd_first(g, 1, height, tile / across % down),
                    bottom = y + height * g->dilation[1];
            int64_t x = leati_winograd_first(g, 2, size, tile % across), right = x + size * g->dilation[2];
            for (; y < bottom && y < g->out[1]; y += g->dilation[1]) {
                int64_t row = (tile / across / down * g->out[1] + y) * g->out[2];
                for (int64_t at = x; at < right && at < g->out[2]; at += g->dilation[2])
                    add_step(p, (row + at) * g->filters + j, sum);
            }
        }
        for (int l = 0; l < STEP; l++) p->diff_bias[j + l] += sum[l];
    }
}

/* One task: an element of the tiles, a group of channels and a column range. */
static void add_tiles(void *of, int64_t task, int member) {
    const tile_block *p = of;
    const weights_state *s = p->s;
    const leati_geometry *g = &s->g;
    int64_t group = task / s->parts % s->groups, element = task / s->parts / s->groups;
    columns c = columns_of(s, task % s->parts, s->parts);
    (void)member;
    leati_product product = {.a = p->src.transformed + element * p->src.element_stride +
                                  group * p->src.group_stride,
                             .a_row = 1,
                             .a_depth = s->group,
                             .b = p->diff.transformed + element * p->diff.element_stride + c.from * s->tiles,
                             .b_panel = p->diff.group_stride,
                             .c = p->sums + (element * g->channels + group * s->group) * g->filters + c.from,
                             .c_row = g->filters,
                             .rows = width_of(s, group),
                             .columns = c.to - c.from,
                             .depth = p->count,
                             .addend_row = g->filters};
    product.addend = p->first == p->begin ? NULL : product.c;
    s->isa->product(&product);
    if (p->diff_bias && !p->diff.sums && element == 0 && group == 0) add_bias(p, c);
}

/* Adds tiles p.first to last - 1, block by block. */
static void add_blocks(tile_block p, int64_t last, leati_thread_pool *pool) {
    const weights_state *s = p.s;
    for (p.begin = p.first; p.first < last; p.first += s->tiles) {
        p.count = last - p.first < s->tiles ? last - p.first : s->tiles;
        leati_thread_pool_share(pool, s->threads, leati_ceil_div(p.count, CHUNK), transform_tiles, &p);
        leati_thread_pool_share(pool, s->threads, s->elements * s->groups * s->parts, add_tiles, &p);
    }
}

/* Adds all blocks of one share of the tiles into the share's own sums. */
static void add_share(void *of, int64_t share, int member) {
    tile_block p = *(const tile_block *)of;
    const weights_state *s = p.s;
    int64_t all = leati_winograd_tiles(&s->g, s->size);
    set_buffers(&p, p.src.transformed + member * s->buffer);
    if (p.diff_bias) {
        p.diff_bias = p.sums + s->shares * sums_of(s) + share * s->g.filters;
        memset(p.diff_bias, 0, (size_t)s->g.filters * sizeof(float));
        p.diff.sums = p.diff_bias;
    }
    p.sums += share * sums_of(s);
    p.first = all * share / s->shares;
    add_blocks(p, all * (share + 1) / s->shares, NULL);
}

static void finish_weights(void *of, int64_t task, int member) {
    const tile_block *p = of;
    const weights_state *s = p->s;
    int64_t channels = s->g.channels, filters = s->g.filters, from = task * CHUNK, to = from + CHUNK;
    (void)member;
    if (to > channels) to = channels;
    for (int64_t element = 0; element < s->elements; element++) {
        float *sums = p->sums + (element * channels + from) * filters;
        add_sums(sums, sums + sums_of(s), (to - from) * filters, s->shares - 1, sums_of(s));
    }
    s->isa->winograd_weights_back(&(leati_winograd_weights){.size = s->size,
                                                            .elements = s->elements,
                                                            .taps = s->g.taps,
                                                            .depth = channels,
                                                            .columns = filters,
                                                            .first = from,
                                                            .last = to,
                                                            .weights = p->diff_weights,
                                                            .packed = p->sums});
}

static leat_status run_winograd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const weights_state *s = kernel->state;
    const leati_geometry *g = &s->g;
    tile_block p = tile_block_of(s, args, run->scratch);
    (void)err;
    if (s->shares > 1)
        leati_thread_pool_share(run->pool, s->threads, s->shares, add_share, &p);
    else
        add_blocks(p, leati_winograd_tiles(g, s->size), run->pool);
    leati_thread_pool_share(run->pool, s->threads, leati_ceil_div(g->channels, CHUNK), finish_weights, &p);
    if (s->shares > 1 && p.diff_bias) {
        const float *biases = p.sums + s->shares * sums_of(s);
        for (int64_t i = 0; i < s->shares * g->filters; i++) p.diff_bias[i % g->filters] += biases[i];
    }
    return LEAT_OK;
}

/* ---- Preparation ---- */

static void share(weights_state *s, int64_t products) {
    int64_t wanted = s->threads > 1 ? 2 * s->threads : 1, panels = panels_of(s);
    s->group = s->g.channels < GROUP ? s->g.channels : GROUP;
    s->groups = leati_ceil_div(s->g.channels, s->group);
    s->parts = leati_ceil_div(wanted, products * s->groups);
    if (s->parts > panels) s->parts = panels;
}

static void use_winograd(weights_state *s, leati_kernel *kernel) {
    const leati_geometry *g = &s->g;
    s->size = leati_winograd_size(g, WEIGHTS_COST);
    s->elements = leati_winograd_elements(g, s->size);
    int64_t bytes = s->elements * (g->channels + g->filters) * (int64_t)sizeof(float),
            all = leati_winograd_tiles(g, s->size);
    int64_t max_width = g->channels > g->filters ? g->channels : g->filters;
    int64_t least = leati_winograd_is_line(g) ? SHARE_OF_LINES : SHARE_ELEMENTS;
    share(s, s->elements);
    s->shares = g->channels * g->filters <= SHARE_SUMS ? all * s->elements / least : 1;
    s->shares = s->shares > SHARES ? SHARES : s->shares > 0 ? s->shares : 1;
    s->tiles = s->shares > 1               ? THREAD_TILES / s->elements
               : MAX_BYTES / bytes < TILES ? MAX_BYTES / bytes
                                           : TILES;
    if (s->tiles < 32) s->tiles = 32;
    all = leati_ceil_div(all, s->shares);
    s->tiles = leati_ceil_div(all, leati_ceil_div(all, s->tiles));
    int64_t width = s->groups * s->group + panels_of(s) * s->isa->panel;
    s->buffer = s->elements * (s->tiles * width + 2 * (int64_t)LINE);
    int64_t floats = (int64_t)leati_conv_line(max_width) + s->shares * (sums_of(s) + g->filters) +
                     (s->shares > 1 ? s->threads : 1) * s->buffer;
    kernel->scratch_bytes = (size_t)floats * sizeof(float);
    kernel->run = run_winograd;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s%s",
             leati_winograd_name(g, s->size), s->isa->name);
}

/* Divides the work into shares of the pixels where the sums are small, so that no two threads read the same pixels;
 * else into column ranges, and into ranges of (taps, groups) where columns would be too few to make gathering the
 * left operand worthwhile. */
static void share_taps(weights_state *s) {
    const leati_geometry *g = &s->g;
    int64_t wanted = s->threads > 1 ? 2 * s->threads : 1, panel = s->isa->panel, panels = panels_of(s);
    share(s, 1);
    s->shares = sums_of_taps(s) <= TAPS_SUMS ? g->out_pixels / SHARE_PIXELS : 1;
    s->shares = s->shares > SHARES ? SHARES : s->shares > 0 ? s->shares : 1;
    wanted = leati_ceil_div(wanted, s->shares);
    s->parts = g->filters / MIN_COLUMNS < wanted ? g->filters / MIN_COLUMNS : wanted;
    if (s->parts < leati_ceil_div(g->filters, MAX_COLUMNS))
        s->parts = leati_ceil_div(g->filters, MAX_COLUMNS);
    s->strips = leati_ceil_div(wanted, s->parts);
    int64_t units = s->lines > 0 ? g->kernel[0] * g->kernel[1] : g->taps * s->groups;
    if (s->strips > units) s->strips = units;
    if (s->parts * s->strips < wanted) s->parts = leati_ceil_div(wanted, s->strips);
    if (s->parts > panels) s->parts = panels;
    s->columns = leati_ceil_div(panels, s->parts) * panel;
}

/* Returns true if lines of the source can be used as they are: a window's line has several taps of few channels. */
static bool has_lines(const leati_geometry *g) {
    return g->dilation[2] == 1 && g->kernel[2] > 1 && g->out[2] <= PIXELS &&
           g->channels <= MAX_LINE_CHANNELS && g->channels * g->kernel[2] >= MIN_LINE_ROWS;
}

static void choose_lines(weights_state *s) {
    const leati_geometry *g = &s->g;
    if (s->bf16 || !has_lines(g)) return;
    s->lines = PIXELS / g->out[2];
    s->line = ((g->out[2] - 1) * g->stride[2] + g->kernel[2]) * g->channels;
}

static void use_taps(weights_state *s, leati_kernel *kernel) {
    choose_lines(s);
    share_taps(s);
    s->bunch = s->groups == 1 && GROUP / s->group > 1 ? GROUP / s->group : 1;
    s->buffer = s->lines > 0 ? s->lines * (s->g.out[2] * s->columns + s->line)
                             : PIXELS * (s->columns + s->bunch * s->group + LINE);
    s->buffer = (int64_t)leati_conv_line(s->buffer);
    kernel->scratch_bytes =
        (size_t)((s->shares - 1) * sums_of_taps(s) + s->threads * s->buffer) * sizeof(float);
    kernel->run = run_taps;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", s->isa->name);
}

/* Returns why the task is declined, or NULL.  prefer_onednn: leave to oneDNN what oneDNN does faster. */
static const char *reason_against(const leati_geometry *g, const leati_native_isa *isa, uint32_t unused,
                                  bool winograd, bool prefer_onednn) {
    /* Winograd's products may end with one vector of a panel. */
    bool fills = g->filters % (winograd ? isa->lanes : isa->panel) == 0 && g->filters % STEP == 0;
    if (unused & 1) return "only the gradient with respect to the bias is needed";
    if (g->groups > 1) return "a grouped convolution";
    if (!fills) return "filters that do not fill whole vectors";
    if (prefer_onednn && g->channels < 4 && !has_lines(g)) return "fewer than 4 channels";
    bool square = g->kernel[1] > 1 && g->kernel[2] > 1 && !leati_conv_has_steps(g) && !has_lines(g);
    if (prefer_onednn && !winograd && isa->lanes >= 16 && (square || g->in[0] > 1))
        return "a window that oneDNN has a kernel for";
    if (g->out_pixels == 0) return "an empty tensor";
    return NULL;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, bool winograd, char *why,
                           leat_error *err) {
    const leati_native_isa *isa = leati_native_isa_of();
    leati_geometry g;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const char *reason =
        reason_against(&g, isa, task->unused, winograd, LEATI_NATIVE_PREFERS_ONEDNN && !task->measured);
    bool bf16 = leati_conv_is_bf16(&task->inputs[0]);
    if (leati_conv_is_bf16(&task->inputs[1]) != bf16) reason = "an unsupported mix of bfloat16 and float32";
    if (!reason && winograd && !leati_winograd_fits(&g, isa->lanes, g.channels))
        reason = "the window is not 3x3, 3 or 5 with stride 1";
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    weights_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a convolution's gradient");
    *s = (weights_state){.g = g, .isa = isa, .bf16 = bf16};
    s->threads = leati_worthwhile_threads(task, 2.0 * (double)g.out_pixels * (double)g.taps *
                                                    (double)g.channels * (double)g.filters);
    kernel->state = s;
    kernel->destroy = leati_free;
    if (winograd)
        use_winograd(s, kernel);
    else
        use_taps(s, kernel);
    return LEAT_OK;
}

leat_status leati_native_conv_bwd_weights_winograd(const leati_task *task, leati_kernel *kernel, char *why,
                                                   leat_error *err) {
    return prepare(task, kernel, true, why, err);
}

leat_status leati_native_conv_bwd_weights_product(const leati_task *task, leati_kernel *kernel, char *why,
                                                  leat_error *err) {
    return prepare(task, kernel, false, why, err);
}
