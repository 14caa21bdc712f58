/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL of any sizes: c (m, n) = op(a) (m, k) op(b) (k, n) + bias + addend, through a function.  Tiles of rows times packed
 * panels of b (product.h).  Weights are packed as a whole, for as long as they last.  What is large, or surely no weights,
 * each task packs by itself: its own columns, some of the depth at a time.  Sums do not depend on threads.
 * Layer: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    ROWS = 96,  /* of a, kept in the second cache while panels go by */
    DEPTH = 256 /* of a panel in the first, of a's columns copied together */
};
#define WHOLE  33554432 /* bytes of b that are packed as a whole */
#define SHARED 1e6      /* operations from which a second thread pays */
#define LARGE  3e7      /* from which there are more tasks than threads: one may be held up */

typedef struct dense_state {
    const leati_native_isa *isa;
    int64_t m, n, k;
    bool ta, tb, has_f;
    bool
        whole; /* b is packed as a whole: a transposed a is a gradient by weights, whose b is of the samples */
    leati_eltwise f;
    int threads, bias, addend, dst; /* arguments; -1: absent */
    int64_t blocks, parts;          /* of rows, of columns: a task is one of each */
    int64_t left, right;            /* floats that each thread packs of a and of b */
} dense_state;

typedef struct dense_run {
    const dense_state *s;
    const float *a, *b, *bias, *addend;
    float *c, *packed /* b, where s->whole */, *buffers;
    bool pack; /* a task packs its own columns of it */
} dense_run;

/* A task's rows and columns. */
typedef struct dense_area {
    int64_t row, rows, column, columns;
} dense_area;

static int64_t panels_of(const dense_state *s) {
    return leati_ceil_div(s->n, s->isa->panel);
}

static dense_area area_of(const dense_state *s, int64_t task) {
    int64_t block = task / s->parts, part = task % s->parts, panels = panels_of(s);
    dense_area area = {.row = s->m * block / s->blocks, .column = panels * part / s->parts * s->isa->panel};
    int64_t to = panels * (part + 1) / s->parts * s->isa->panel;
    area.rows = s->m * (block + 1) / s->blocks - area.row;
    area.columns = (to < s->n ? to : s->n) - area.column;
    return area;
}

/* Rows `from` to `to` - 1 of some columns of op(b), its panels as long as that is deep. */
static void pack_depth(const dense_run *r, int64_t column, int64_t columns, int64_t from, int64_t to,
                       float *packed) {
    const dense_state *s = r->s;
    int64_t depth = to - from, floats = depth * s->isa->panel;
    if (s->tb)
        s->isa->pack_turned(r->b + column * s->k + from, s->k, depth, 0, columns, packed, floats);
    else
        s->isa->pack_columns(r->b + from * s->n + column, s->n, depth, 0, columns, packed, floats, NULL);
}

static void pack_panel(void *of, int64_t task, int member) {
    const dense_run *r = of;
    const dense_state *s = r->s;
    int64_t panel = s->isa->panel, column = task * panel;
    (void)member;
    pack_depth(r, column, s->n - column < panel ? s->n - column : panel, 0, s->k, r->packed + column * s->k);
}

/* Adds what the depth from k to `to` gives to an area; b: its panels from k on. */
static void add_depth(const dense_run *r, dense_area area, int64_t k, int64_t to, const float *b,
                      int64_t b_panel, float *buffer) {
    const dense_state *s = r->s;
    leati_product p = {.b = b, .b_panel = b_panel, .depth = to - k, .columns = area.columns};
    int64_t at = area.row * s->n + area.column;
    p.rows = area.rows;
    p.c = r->c + at;
    p.c_row = p.from_row = s->n;
    if (s->ta) {
        for (int64_t i = 0; i < p.depth; i++)
            memcpy(buffer + i * ROWS, r->a + (k + i) * s->m + area.row, (size_t)area.rows * sizeof *buffer);
        p.a = buffer;
        p.a_row = 1;
        p.a_depth = ROWS;
    } else {
        p.a = r->a + area.row * s->k + k;
        p.a_row = s->k;
        p.a_depth = 1;
    }
    if (k > 0)
        p.from = p.c;
    else
        p.from = r->addend ? r->addend + at : NULL;
    p.bias = r->bias && k == 0 ? r->bias + area.column : NULL;
    p.f = s->has_f && to == s->k ? &s->f : NULL;
    s->isa->product(&p);
}

/* Rows ROWS at a time, as even as may be. */
static dense_area rows_of(dense_area area, int64_t group, int64_t groups) {
    dense_area some = area;
    some.row += area.rows * group / groups;
    some.rows = area.row + area.rows * (group + 1) / groups - some.row;
    return some;
}

static void compute(void *of, int64_t task, int member) {
    const dense_run *r = of;
    const dense_state *s = r->s;
    dense_area area = area_of(s, task);
    float *left = r->buffers + (s->left + s->right) * member, *right = left + s->left;
    int64_t chunks = leati_ceil_div(s->k, DEPTH), groups = leati_ceil_div(area.rows, ROWS),
            panel = s->isa->panel;
    if (r->pack) pack_depth(r, area.column, area.columns, 0, s->k, r->packed + area.column * s->k);
    for (int64_t i = 0; i < chunks * groups; i++) {
        int64_t chunk = s->whole ? i % chunks : i / groups, group = s->whole ? i / chunks : i % groups;
        int64_t k = s->k * chunk / chunks, to = s->k * (chunk + 1) / chunks;
        const float *b = s->whole ? r->packed + area.column * s->k + k * panel : right;
        if (!s->whole && group == 0) pack_depth(r, area.column, area.columns, k, to, right);
        add_depth(r, rows_of(area, group, groups), k, to, b, (s->whole ? s->k : to - k) * panel, left);
    }
}

static leat_status run_dense(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const dense_state *s = kernel->state;
    dense_run r = {.s = s,
                   .a = args[0],
                   .b = args[1],
                   .bias = s->bias >= 0 ? args[s->bias] : NULL,
                   .addend = s->addend >= 0 ? args[s->addend] : NULL,
                   .c = args[s->dst],
                   .buffers = run->scratch};
    (void)err;
    r.packed = run->pack ? run->pack : r.buffers + (s->left + s->right) * s->threads;
    bool packs = s->whole && !(run->pack && run->packed);
    r.pack = packs && s->blocks == 1;
    if (packs && !r.pack) leati_team_share(run->team, s->threads, panels_of(s), pack_panel, &r);
    leati_team_share(run->team, s->threads, s->blocks * s->parts, compute, &r);
    return LEAT_OK;
}

/* Columns, so that nothing is packed twice; rows, where there are many more. */
static void share(dense_state *s, const leati_task *task) {
    double operations = 2 * (double)s->m * (double)s->n * (double)s->k;
    s->threads = operations < SHARED && !task->measured ? 1 : task->threads;
    int64_t wanted = s->threads == 1 ? 1 : operations < LARGE ? s->threads : 2 * s->threads;
    int64_t panels = panels_of(s), most = leati_ceil_div(s->m, s->isa->rows);
    s->parts = s->m > 2 * s->n ? 1 : wanted < panels ? wanted : panels;
    s->blocks = leati_ceil_div(wanted, s->parts);
    if (s->blocks > most) s->blocks = most;
}

static leat_status prepare(dense_state *s, const leati_task *task, leati_kernel *kernel) {
    int64_t panel = s->isa->panel, depth = s->k < DEPTH ? s->k : DEPTH;
    share(s, task);
    size_t bytes = (size_t)(s->k * panels_of(s) * panel) * sizeof(float);
    s->whole = !s->ta && bytes <= WHOLE;
    s->left = s->ta ? depth * ROWS : 0;
    if (s->whole) {
        kernel->pack_bytes = bytes;
        kernel->pack_inputs = 1u << 1;
        snprintf(kernel->pack_key, sizeof kernel->pack_key, "native %s%s %lldx%lld", s->isa->name,
                 s->tb ? " turned" : "", (long long)s->k, (long long)s->n);
        snprintf(kernel->layout, sizeof kernel->layout, "weights panels of %d columns", (int)panel);
    } else {
        s->right = depth * leati_ceil_div(panels_of(s), s->parts) * panel;
    }
    kernel->scratch_bytes = (size_t)((s->left + s->right) * s->threads) * sizeof(float) + kernel->pack_bytes;
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_dense;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native dense %s", s->isa->name);
    return LEAT_OK;
}

leat_status leati_native_dense(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    const leati_desc *a = &task->inputs[0], *b = &task->inputs[1], *dst = &task->outputs[0];
    int own = leati_own_inputs(task);
    if (dst->rank > 2 || leati_desc_count(a) == 0 || leati_desc_count(b) == 0) {
        snprintf(why, LEATI_REASON_BYTES, dst->rank > 2 ? "several matrices" : "an empty tensor");
        return LEAT_OK;
    }
    dense_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a product");
    *s = (dense_state){.isa = leati_native_isa_of(),
                       .m = dst->shape[0],
                       .n = dst->shape[1],
                       .ta = task->attrs->matmul.transpose_a,
                       .tb = task->attrs->matmul.transpose_b,
                       .has_f = task->attrs->post.kinds & LEATI_POST_FUNCTION,
                       .f = task->attrs->post.function,
                       .dst = task->input_count};
    s->k = a->shape[!s->ta];
    s->bias = own > 2 && task->inputs[2].rank >= 0 ? 2 : -1;
    s->addend = task->attrs->post.kinds & LEATI_POST_ADD ? own + LEATI_POST_ADDEND : -1;
    return prepare(s, task, kernel);
}
