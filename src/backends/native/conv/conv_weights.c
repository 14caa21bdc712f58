/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a convolution by its weights and bias, as products of matrices: what lies under a tap at each pixel,
 * transposed, times the gradient of the destination; for 3x3 windows with stride 1 at the places of Winograd's
 * tiles instead of 9 taps, tile by tile (product.h).  Layer: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    GROUP = 64,                /* channels of a product's rows */
    PIXELS = 256,              /* packed and gathered at a time by each thread, for its second cache */
    WIDE = 128,                /* columns that are worth gathering the left side for */
    WIDEST = 512,              /* that stay in the second cache with it */
    TAPS_SUMS = 80 * 1024,     /* floats that each share of the pixels may have for itself */
    SHARE_PIXELS = 4 * PIXELS, /* that a share has at least */
    TILES = 256,               /* at a time, where their numbers take no more than MOST_BYTES */
    NEAR = 1728, /* places times tiles at a time where a thread has them for itself, in its second cache */
    CHUNK = 8,
    SHARES = 8,           /* of all tiles or pixels, each with sums of its own */
    SHARE_NUMBERS = 4096, /* places times tiles in each at least */
    SHARE_SUMS = 4096,    /* channels times filters at most */
    LINE = 16,
    STEP = 8,         /* filters, of which a panel has a multiple */
    WEIGHTS_COST = 32 /* of the sums of a place, in tiles */
};
#define MOST_BYTES ((int64_t)16 << 20)

typedef struct weights_state {
    leati_geometry g;
    const leati_native_isa *isa;
    int threads;
    bool narrow;           /* source and gradient are bf16 */
    int64_t groups, group; /* of channels: how many, how many channels each has at most */
    int64_t parts;         /* of columns */
    int64_t columns;       /* Taps: that a part has at most */
    int64_t strips;        /* Taps: of taps and groups */
    int64_t tiles;         /* Winograd: at a time */
    int64_t size, places;  /* Winograd: a tile's pixels to a side, and its numbers */
    int64_t shares;        /* of all tiles or pixels, each with sums of its own */
    int64_t buffer;        /* floats of a block of tiles, or of a thread's columns and left side */
} weights_state;

/* The columns of part `part`. */
typedef struct columns {
    int64_t from, to;
} columns;

static columns columns_of(const weights_state *s, int64_t part, int64_t parts) {
    int64_t panels = s->g.filters / s->isa->panel;
    return (columns){panels * part / parts * s->isa->panel, panels * (part + 1) / parts * s->isa->panel};
}

static int64_t width_of(const weights_state *s, int64_t group) {
    int64_t left = s->g.channels - group * s->group;
    return left < s->group ? left : s->group;
}

/* ---- Tap by tap ---- */

typedef struct taps_run {
    const weights_state *s;
    const void *src, *diff_dst;
    float *diff_weights, *diff_bias; /* the latter may be NULL */
    float *sums, *buffers;           /* of all shares but the first; weights and bias of each */
} taps_run;

/* Floats of a share's sums. */
static int64_t sums_of_taps(const weights_state *s) {
    return (s->g.taps * s->g.channels + 1) * s->g.filters;
}

/* What the pixels first to first + count - 1 add to a strip of taps and channels, and some columns. */
static void add_pixels(const taps_run *r, int64_t strip, columns c, int64_t first, int64_t count, bool begins,
                       float *buffer) {
    const weights_state *s = r->s;
    const leati_geometry *g = &s->g;
    float *left = buffer + PIXELS * s->columns;
    int64_t all = g->taps * s->groups, width = c.to - c.from;
    float *bias = strip == 0 && r->diff_bias ? r->diff_bias + c.from : NULL;
    int64_t at = first * g->filters + c.from, floats = count * s->isa->panel;
    const leati_conv_image image = {g, r->src, s->narrow ? s->isa->widen : NULL};
    if (s->narrow)
        s->isa->pack_bf16_columns((const uint16_t *)r->diff_dst + at, g->filters, count, 0, width, buffer,
                                  floats, bias);
    else
        s->isa->pack_columns((const float *)r->diff_dst + at, g->filters, count, 0, width, buffer, floats,
                             bias);
    for (int64_t i = all * strip / s->strips; i < all * (strip + 1) / s->strips; i++) {
        int64_t tap = i / s->groups, group = i % s->groups;
        leati_product p = {.a = left,
                           .a_row = 1,
                           .a_depth = s->group + LINE,
                           .b = buffer,
                           .b_panel = floats,
                           .c =
                               r->diff_weights + (tap * g->channels + group * s->group) * g->filters + c.from,
                           .c_row = g->filters,
                           .rows = width_of(s, group),
                           .columns = width,
                           .depth = count,
                           .from_row = g->filters};
        p.from = begins ? NULL : p.c;
        leati_conv_gather(&image, tap, first, count, group * s->group, p.rows, left, p.a_depth);
        s->isa->product(&p);
    }
}

/* For a share of the pixels, part of the columns and strip of taps and channels. */
static void add_taps(void *of, int64_t task, int member) {
    taps_run r = *(const taps_run *)of;
    const weights_state *s = r.s;
    int64_t strip = task % s->strips, share = task / s->strips / s->parts, pixels = s->g.out_pixels;
    columns c = columns_of(s, task / s->strips % s->parts, s->parts);
    if (share > 0) {
        r.diff_weights = r.sums + (share - 1) * sums_of_taps(s);
        if (r.diff_bias) r.diff_bias = r.diff_weights + sums_of_taps(s) - s->g.filters;
    }
    if (r.diff_bias && strip == 0) memset(r.diff_bias + c.from, 0, (size_t)(c.to - c.from) * sizeof(float));
    int64_t first = pixels * share / s->shares, last = pixels * (share + 1) / s->shares;
    int64_t chunks = leati_ceil_div(last - first, PIXELS);
    for (int64_t i = 0; i < chunks; i++) {
        int64_t from = first + (last - first) * i / chunks, to = first + (last - first) * (i + 1) / chunks;
        add_pixels(&r, strip, c, from, to - from, i == 0, r.buffers + member * s->buffer);
    }
}

/* to += `count` arrays, `apart` floats apart. */
static void add_sums(float *to, const float *from, int64_t floats, int64_t count, int64_t apart) {
    for (int64_t k = 0; k < count; k++, from += apart)
        for (int64_t i = 0; i < floats; i++) to[i] += from[i];
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

/* A block of tiles, and where its numbers lie. */
typedef struct places {
    const weights_state *s;
    leati_winograd src, diff;
    float *sums, *diff_weights, *diff_bias;
    int64_t begin, first, count; /* the first block's first tile, this one's */
} places;

/* Of a thread's memory: source and gradient of a block. */
static void set_buffers(places *p, float *buffer) {
    p->src.parts = buffer;
    p->diff.parts = buffer + p->s->places * p->src.by_place;
}

static int64_t sums_of(const weights_state *s) {
    return s->places * s->g.channels * s->g.filters;
}

/* Scratch: zeros, sums, the biases' sums, blocks of tiles. */
static places places_of(const weights_state *s, void *const *args, float *scratch) {
    const leati_geometry *g = &s->g;
    int64_t most = g->channels > g->filters ? g->channels : g->filters;
    places p = {.s = s,
                .sums = scratch + leati_conv_line(most),
                .diff_weights = args[2],
                .diff_bias = args[3]};
    p.src = (leati_winograd){.g = g,
                             .size = s->size,
                             .image = args[0],
                             .zeros = scratch,
                             .narrow = s->narrow,
                             .group = s->group,
                             .by_group = s->tiles * s->group,
                             .by_place = s->groups * s->tiles * s->group + LINE};
    p.diff = (leati_winograd){.g = g,
                              .size = s->size,
                              .image = args[1],
                              .zeros = scratch,
                              .narrow = s->narrow,
                              .group = s->isa->panel,
                              .by_group = s->tiles * s->isa->panel,
                              .by_place = s->tiles * g->filters + LINE};
    set_buffers(&p, p.sums + s->shares * (sums_of(s) + g->filters));
    memset(scratch, 0, (size_t)most * sizeof *scratch);
    if (p.diff_bias) memset(p.diff_bias, 0, (size_t)g->filters * sizeof(float));
    return p;
}

/* The numbers of CHUNK tiles. */
static void make_parts(void *of, int64_t task, int member) {
    const places *p = of;
    leati_winograd src = p->src, diff = p->diff;
    int64_t from = task * CHUNK, to = from + CHUNK < p->count ? from + CHUNK : p->count;
    (void)member;
    src.first = diff.first = p->first + from;
    src.last = diff.last = p->first + to;
    src.parts += from * src.group;
    diff.parts += from * diff.group;
    p->s->isa->winograd_source(&src);
    p->s->isa->winograd_diff(&diff);
}

/* sum += STEP numbers of the gradient. */
static void add_step(const places *p, int64_t at, float *sum) {
    const uint16_t *narrow = (const uint16_t *)p->diff.image + at;
    const float *wide = (const float *)p->diff.image + at;
    if (p->s->narrow)
        for (int l = 0; l < STEP; l++) sum[l] += leati_bfloat16_to_float(narrow[l]);
    else
        for (int l = 0; l < STEP; l++) sum[l] += wide[l];
}

/* Sums of the block's pixels, of some filters. */
static void add_bias(const places *p, columns c) {
    const leati_geometry *g = &p->s->g;
    int64_t size = p->s->size, across = leati_ceil_div(g->out[2], size),
            down = leati_ceil_div(g->out[1], size);
    for (int64_t j = c.from; j < c.to; j += STEP) {
        float sum[STEP] = {0};
        for (int64_t tile = p->first; tile < p->first + p->count; tile++) {
            int64_t image = tile / across / down, y = tile / across % down * size, x = tile % across * size;
            int64_t bottom = y + size < g->out[1] ? y + size : g->out[1];
            int64_t wide = x + size < g->out[2] ? size : g->out[2] - x;
            for (; y < bottom; y++) {
                int64_t at = ((image * g->out[1] + y) * g->out[2] + x) * g->filters + j;
                for (int64_t i = 0; i < wide; i++, at += g->filters) add_step(p, at, sum);
            }
        }
        for (int l = 0; l < STEP; l++) p->diff_bias[j + l] += sum[l];
    }
}

/* For one place, group of channels and part of the columns. */
static void add_tiles(void *of, int64_t task, int member) {
    const places *p = of;
    const weights_state *s = p->s;
    const leati_geometry *g = &s->g;
    int64_t group = task / s->parts % s->groups, place = task / s->parts / s->groups;
    columns c = columns_of(s, task % s->parts, s->parts);
    (void)member;
    leati_product product = {.a = p->src.parts + place * p->src.by_place + group * p->src.by_group,
                             .a_row = 1,
                             .a_depth = s->group,
                             .b = p->diff.parts + place * p->diff.by_place + c.from * s->tiles,
                             .b_panel = p->diff.by_group,
                             .c = p->sums + (place * g->channels + group * s->group) * g->filters + c.from,
                             .c_row = g->filters,
                             .rows = width_of(s, group),
                             .columns = c.to - c.from,
                             .depth = p->count,
                             .from_row = g->filters};
    product.from = p->first == p->begin ? NULL : product.c;
    s->isa->product(&product);
    if (p->diff_bias && place == 0 && group == 0) add_bias(p, c);
}

/* Tiles p.first to last - 1, block by block. */
static void add_blocks(places p, int64_t last, leati_thread_pool *pool) {
    const weights_state *s = p.s;
    for (p.begin = p.first; p.first < last; p.first += s->tiles) {
        p.count = last - p.first < s->tiles ? last - p.first : s->tiles;
        leati_thread_pool_share(pool, s->threads, leati_ceil_div(p.count, CHUNK), make_parts, &p);
        leati_thread_pool_share(pool, s->threads, s->places * s->groups * s->parts, add_tiles, &p);
    }
}

/* All blocks of a share of the tiles, into its own sums. */
static void add_share(void *of, int64_t share, int member) {
    places p = *(const places *)of;
    const weights_state *s = p.s;
    int64_t all = leati_winograd_tiles(&s->g, s->size);
    set_buffers(&p, p.src.parts + member * s->buffer);
    if (p.diff_bias) {
        p.diff_bias = p.sums + s->shares * sums_of(s) + share * s->g.filters;
        memset(p.diff_bias, 0, (size_t)s->g.filters * sizeof(float));
    }
    p.sums += share * sums_of(s);
    p.first = all * share / s->shares;
    add_blocks(p, all * (share + 1) / s->shares, NULL);
}

static void finish_weights(void *of, int64_t task, int member) {
    const places *p = of;
    const weights_state *s = p->s;
    int64_t channels = s->g.channels, filters = s->g.filters, from = task * CHUNK, to = from + CHUNK;
    (void)member;
    if (to > channels) to = channels;
    for (int64_t place = 0; place < s->places; place++) {
        float *sums = p->sums + (place * channels + from) * filters;
        add_sums(sums, sums + sums_of(s), (to - from) * filters, s->shares - 1, sums_of(s));
    }
    s->isa->winograd_weights_back(&(leati_winograd_weights){.size = s->size,
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
    places p = places_of(s, args, run->scratch);
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
    int64_t wanted = s->threads > 1 ? 2 * s->threads : 1, panels = s->g.filters / s->isa->panel;
    s->group = s->g.channels < GROUP ? s->g.channels : GROUP;
    s->groups = leati_ceil_div(s->g.channels, s->group);
    s->parts = leati_ceil_div(wanted, products * s->groups);
    if (s->parts > panels) s->parts = panels;
}

static void use_winograd(weights_state *s, leati_kernel *kernel) {
    const leati_geometry *g = &s->g;
    s->size = leati_winograd_size(g, WEIGHTS_COST);
    s->places = leati_winograd_places(s->size);
    int64_t bytes = s->places * (g->channels + g->filters) * (int64_t)sizeof(float),
            all = leati_winograd_tiles(g, s->size);
    int64_t most = g->channels > g->filters ? g->channels : g->filters;
    share(s, s->places);
    s->shares = g->channels * g->filters <= SHARE_SUMS ? all * s->places / SHARE_NUMBERS : 1;
    s->shares = s->shares > SHARES ? SHARES : s->shares > 0 ? s->shares : 1;
    s->tiles = s->shares > 1 ? NEAR / s->places : MOST_BYTES / bytes < TILES ? MOST_BYTES / bytes : TILES;
    if (s->tiles < 32) s->tiles = 32;
    s->tiles = leati_ceil_div(all, leati_ceil_div(all, s->tiles));
    s->buffer = s->places * (s->tiles * (s->groups * s->group + g->filters) + 2 * (int64_t)LINE);
    int64_t floats = (int64_t)leati_conv_line(most) + s->shares * (sums_of(s) + g->filters) +
                     (s->shares > 1 ? s->threads : 1) * s->buffer;
    kernel->scratch_bytes = (size_t)floats * sizeof(float);
    kernel->run = run_winograd;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native winograd %s%s",
             s->size == 4 ? "4x4 " : "", s->isa->name);
}

/* Shares of the pixels where sums are few, so that a thread reads what others do not; else columns, and what lies on the left
 * where columns would be too few for what it takes to gather it. */
static void share_taps(weights_state *s) {
    const leati_geometry *g = &s->g;
    int64_t wanted = s->threads > 1 ? 2 * s->threads : 1, panel = s->isa->panel, panels = g->filters / panel;
    share(s, 1);
    s->shares = sums_of_taps(s) <= TAPS_SUMS ? g->out_pixels / SHARE_PIXELS : 1;
    s->shares = s->shares > SHARES ? SHARES : s->shares > 0 ? s->shares : 1;
    wanted = leati_ceil_div(wanted, s->shares);
    s->parts = g->filters / WIDE < wanted ? g->filters / WIDE : wanted;
    if (s->parts < leati_ceil_div(g->filters, WIDEST)) s->parts = leati_ceil_div(g->filters, WIDEST);
    s->strips = leati_ceil_div(wanted, s->parts);
    if (s->strips > g->taps * s->groups) s->strips = g->taps * s->groups;
    if (s->parts * s->strips < wanted) s->parts = leati_ceil_div(wanted, s->strips);
    if (s->parts > panels) s->parts = panels;
    s->columns = leati_ceil_div(panels, s->parts) * panel;
}

static void use_taps(weights_state *s, leati_kernel *kernel) {
    share_taps(s);
    s->buffer = PIXELS * (s->columns + s->group + LINE);
    kernel->scratch_bytes =
        (size_t)((s->shares - 1) * sums_of_taps(s) + s->threads * s->buffer) * sizeof(float);
    kernel->run = run_taps;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", s->isa->name);
}

/* yields: where oneDNN is faster. */
static const char *reason_against(const leati_geometry *g, const leati_native_isa *isa, uint32_t unused,
                                  bool yields) {
    if (unused & 1) return "the bias alone";
    if (g->groups > 1) return "groups";
    if (g->filters % isa->panel) return "filters that are not whole panels";
    if (yields && g->channels < 8) return "few channels";
    if (g->out_pixels == 0) return "an empty tensor";
    return NULL;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, bool winograd, char *why,
                           leat_error *err) {
    const leati_native_isa *isa = leati_native_isa_of();
    leati_geometry g;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const char *against = reason_against(&g, isa, task->unused, LEATI_NATIVE_YIELDS && !task->measured);
    bool narrow = leati_conv_is_bf16(&task->inputs[0]);
    if (leati_conv_is_bf16(&task->inputs[1]) != narrow) against = "bfloat16 beside f32";
    if (!against && winograd && !leati_winograd_fits(&g, isa->lanes)) against = "not 3x3 with stride 1";
    if (against) {
        snprintf(why, LEATI_REASON_BYTES, "%s", against);
        return LEAT_OK;
    }
    weights_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a convolution's gradient");
    *s = (weights_state){.g = g, .isa = isa, .narrow = narrow};
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
