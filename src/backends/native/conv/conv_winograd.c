/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with stride 1 of 3x3 windows, and of 3 or 5 taps of one axis, and their gradients with respect to the
 * source, by Winograd's F(2x2, 3x3), F(4x4, 3x3), F(4, 3) or F(4, 5) (jobs.h).  A block of tiles goes through all
 * three steps (transform, products, inverse transform) while it is in the cache, the last two for 64 columns at a
 * time.  Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"

enum {
    /* floats of a block's transformed tiles and of their products with LEATI_WINOGRAD_COLUMNS columns, which stay in
     * the L2 cache; tiles of a block, which reads all weights, at least and at most */
    BLOCK_FLOATS = 350000,
    MIN_TILES = 16,
    MAX_TILES = 64,
    L2_FLOATS = 131072, /* floats of weights that stay in the L2 cache beside a block */
    LINE = 16,          /* floats of a cache line */
    PACKED = 4,         /* channels whose weights one task packs */
    WEIGHTS_COST =
        32, /* leati_winograd_size: transforming and reading the weights costs as much as 32 tiles */
    MAX_CHANNELS = 512 /* sums over more channels are too inexact with tiles of 4, see docs/decisions/0132 */
};

/* True if the tiles have few pixels outside of the destination, as they have unless a dilation is nearly its size. */
static bool fills_tiles(const leati_geometry *g) {
    int64_t size = leati_winograd_is_line(g) ? 4 : 2, height = leati_winograd_height(g, size);
    return 2 * g->out_pixels >= leati_winograd_tiles(g, size) * size * height;
}

bool leati_winograd_fits(const leati_geometry *g, int64_t lanes, int64_t channels) {
    bool dilated = g->dilation[1] > 1 || g->dilation[2] > 1;
    if (leati_conv_has_steps(g) || g->dilation[0] > 1 || (dilated && !fills_tiles(g))) return false;
    if (g->kernel[0] != 1 || g->in[0] != 1 || g->out[0] != 1) return false;
    if (g->channels % lanes != 0 || g->channels < 16) return false;
    if (g->kernel[1] == 3) return g->kernel[2] == 3;
    return g->kernel[1] == 1 && g->in[1] == g->out[1] && (g->kernel[2] == 3 || g->kernel[2] == 5) &&
           channels <= MAX_CHANNELS;
}

const char *leati_winograd_name(const leati_geometry *g, int64_t size) {
    if (size == 0) return "";
    if (leati_winograd_is_line(g)) return "winograd 4x1 ";
    return size == 2 ? "winograd " : "winograd 4x4 ";
}

int64_t leati_winograd_size(const leati_geometry *g, int64_t weights_cost) {
    int64_t cost[2];
    if (leati_winograd_is_line(g)) return 4;
    for (int i = 0; i < 2; i++)
        cost[i] = leati_winograd_elements(g, 2 + 2 * i) * (leati_winograd_tiles(g, 2 + 2 * i) + weights_cost);
    return cost[1] < cost[0] && g->channels <= MAX_CHANNELS ? 4 : 2;
}

static void pack(void *of, int64_t task, int member) {
    const leati_conv_packing *p = of;
    const leati_geometry *g = &p->s->g;
    int64_t channels = g->channels, from = task * PACKED, to = from + PACKED;
    (void)member;
    p->s->isa->winograd_weights(&(leati_winograd_weights){.size = p->s->size,
                                                          .elements = leati_winograd_elements(g, p->s->size),
                                                          .taps = g->taps,
                                                          .depth = channels,
                                                          .columns = g->filters,
                                                          .first = from,
                                                          .last = to < channels ? to : channels,
                                                          .weights = p->weights,
                                                          .packed = p->packed});
}

/* Returns the tiles of a block at most, where a tile has `floats` floats. */
static int64_t max_tiles(int64_t floats) {
    int64_t tiles = BLOCK_FLOATS / floats;
    return tiles < MIN_TILES ? MIN_TILES : tiles < MAX_TILES ? tiles : MAX_TILES;
}

/* Multiplies all elements of a block's tiles by the weights of columns `from` to `from` + columns - 1, a group of
 * LEATI_WINOGRAD_COLUMNS or fewer, and transforms the products back. */
static void multiply(const leati_conv_run *r, leati_winograd w, int64_t from, int64_t columns,
                     float *products) {
    const leati_conv_state *s = r->s;
    const leati_geometry *g = &s->g;
    int64_t tiles = w.last - w.first, elements = leati_winograd_elements(g, s->size);
    int64_t width = leati_round_up(columns, s->isa->panel), product_stride = tiles * columns + LINE;
    leati_product p = {.a = w.transformed,
                       .b = r->packed + from * elements * g->channels,
                       .c = products,
                       .rows = tiles,
                       .columns = columns,
                       .depth = g->channels,
                       .a_row = g->channels,
                       .a_depth = 1,
                       .b_panel = g->channels * s->isa->panel,
                       .c_row = columns,
                       .streams = s->streams};
    for (int64_t element = 0; element < elements; element++) {
        s->isa->product(&p);
        p.a += w.element_stride;
        p.b += width * g->channels;
        p.c += product_stride;
    }
    w.transformed = products;
    w.element_stride = product_stride;
    w.group = w.columns = columns;
    w.first_filter = from;
    s->isa->winograd_result(&w);
}

static void compute(void *of, int64_t task, int member) {
    const leati_conv_run *r = of;
    const leati_conv_state *s = r->s;
    const leati_geometry *g = &s->g;
    float *buffer = r->buffers + (size_t)member * s->buffer;
    leati_conv_area area = leati_conv_area_of(s, task);
    leati_winograd w = {.g = g,
                        .size = s->size,
                        .first = area.first,
                        .last = area.first + area.rows,
                        .image = r->src,
                        .zeros = buffer,
                        .bf16 = s->bf16,
                        .transformed = buffer + leati_conv_line(g->channels),
                        .group = g->channels,
                        .element_stride = s->block * g->channels + LINE,
                        .bias = r->bias,
                        .addend = r->addend,
                        .dst = r->dst,
                        .f = s->has_f ? &s->f : NULL};
    float *products = w.transformed + leati_winograd_elements(g, s->size) * w.element_stride;
    memset(buffer, 0, (size_t)g->channels * sizeof *buffer);
    s->isa->winograd_source(&w);
    for (int64_t done = 0, columns; done < area.columns; done += columns) {
        columns = area.columns - done < LEATI_WINOGRAD_COLUMNS ? area.columns - done : LEATI_WINOGRAD_COLUMNS;
        multiply(r, w, area.from + done, columns, products);
    }
}

static leat_status run_winograd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const leati_conv_state *s = kernel->state;
    leati_conv_run r = leati_conv_start(s, kernel, args, run, pack, leati_ceil_div(s->g.channels, PACKED));
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->blocks * s->parts, compute, &r);
    return LEAT_OK;
}

leat_status leati_native_conv_winograd(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    leati_conv_state *s = NULL;
    leati_geometry g;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    int64_t summed = task->op == LEATI_OP_CONV_BWD_DATA ? g.filters : g.channels;
    if (!leati_winograd_fits(&g, leati_native_isa_of()->lanes, summed)) {
        snprintf(why, LEATI_REASON_BYTES, "the window is not 3x3, 3 or 5 with stride 1");
        return LEAT_OK;
    }
    LEATI_TRY(leati_conv_begin(&s, task, true, kernel, why, err));
    if (!s) return LEAT_OK;
    int64_t channels = s->g.channels, filters = s->g.filters;
    s->size = leati_winograd_size(&s->g, WEIGHTS_COST);
    int64_t elements = leati_winograd_elements(&s->g, s->size);
    int64_t width = filters < LEATI_WINOGRAD_COLUMNS ? filters : LEATI_WINOGRAD_COLUMNS;
    leati_conv_share(s, leati_winograd_tiles(&s->g, s->size), max_tiles(elements * (channels + width)),
                     LEATI_WINOGRAD_COLUMNS);
    s->buffer =
        leati_conv_line(channels) + (size_t)(elements * (s->block * (channels + width) + 2 * (int64_t)LINE));
    s->streams = elements * channels * filters > L2_FLOATS;
    int64_t columns = leati_ceil_div(filters, s->isa->panel) * s->isa->panel;
    leati_conv_memory(s, kernel, leati_winograd_name(&s->g, s->size),
                      (size_t)(elements * channels * columns));
    kernel->run = run_winograd;
    return LEAT_OK;
}
