/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL with weights that are kept in bf16 or int8: c (m, n) = f(a (m, k) w (k, n) + bias + addend).  The columns of
 * w are split into groups of up to four panels, each of which is a block of narrow.h.  A few rows of a are multiplied
 * with the narrow weights one by one; for more rows each group is expanded to floats first, and multiplied as
 * matmul/dense.c does it.  Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/matmul/jobs.h"
#include "backends/native/narrow/narrow.h"
#include "backends/native/ops.h"
#include "backends/native/share.h"
#include "backends/native/simd/isa.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    FEW_ROWS = 4,
    FEW_COLUMNS = 8, /* so few columns have few weights, and matvec_tmpl.h a kernel that is faster */
    GROUP_PANELS = 4,
    MAX_LANES = 16,
    MAX_COLUMNS = 2 * GROUP_PANELS * MAX_LANES /* of a group */
};

typedef struct narrow_dense {
    leati_narrow narrow;
    const leati_native_isa *isa;
    int64_t m, n, k, panels, groups;
    bool transposed_b, has_f;
    leati_eltwise f;
    int threads, bias, addend, dst; /* indices of arguments; -1: absent */
    size_t scales_bytes;            /* at the beginning of the pack */
    size_t expanded_bytes;          /* per thread */
} narrow_dense;

typedef struct narrow_run {
    const narrow_dense *s;
    const float *a, *b, *bias, *addend;
    float *c;
    unsigned char *pack, *prepared, *expanded;
    float *a_scales; /* (m), where there are few rows */
} narrow_run;

static bool few_rows(const narrow_dense *s) {
    return s->m <= FEW_ROWS;
}

/* The bytes in which a row of a is prepared, whatever the format. */
static size_t row_bytes(const narrow_dense *s) {
    return 4 * (size_t)(s->k + 1);
}

/* The columns of a group, padded to whole panels, and those that exist. */
static int64_t columns_of(const narrow_dense *s, int64_t group) {
    int64_t left = s->panels - group * GROUP_PANELS;
    return (left < GROUP_PANELS ? left : GROUP_PANELS) * s->isa->panel;
}
static int64_t first_column(const narrow_dense *s, int64_t group) {
    return group * GROUP_PANELS * s->isa->panel;
}
static int64_t present_columns(const narrow_dense *s, int64_t group) {
    int64_t left = s->n - first_column(s, group), columns = columns_of(s, group);
    return left < columns ? left : columns;
}

static unsigned char *weights_of(const narrow_run *r, int64_t group) {
    const narrow_dense *s = r->s;
    size_t elements = (size_t)(2 * leati_narrow_pairs(s->k) * first_column(s, group));
    return r->pack + s->scales_bytes + elements * s->narrow.element_bytes;
}

static float *scales_of(const narrow_run *r, int64_t group) {
    return (float *)(void *)r->pack + first_column(r->s, group);
}

static void pack_group(void *of, int64_t group, int member) {
    const narrow_run *r = of;
    const narrow_dense *s = r->s;
    int64_t row = s->transposed_b ? 1 : s->n, column = s->transposed_b ? s->k : 1;
    leati_narrow_source source = {.from = r->b + first_column(s, group) * column,
                                  .row = row,
                                  .column = column,
                                  .depth = s->k,
                                  .present = present_columns(s, group)};
    (void)member;
    leati_narrow_pack(&s->narrow, &source, columns_of(s, group), weights_of(r, group), scales_of(r, group));
}

/* ---- A few rows ---- */

/* Writes the sums of one row and group, which include the bias, to c. */
static void finish_row(const narrow_run *r, int64_t row, int64_t group, const float *sums) {
    const narrow_dense *s = r->s;
    int64_t first = first_column(s, group), count = present_columns(s, group);
    float *c = r->c + row * s->n + first;
    const float *addend = r->addend ? r->addend + row * s->n + first : NULL;
    for (int64_t j = 0; j < count; j++) c[j] = sums[j] + (addend ? addend[j] : 0);
    if (s->has_f) s->isa->apply(&s->f, c, count);
}

static void multiply_group(void *of, int64_t group, int member) {
    const narrow_run *r = of;
    const narrow_dense *s = r->s;
    float start[MAX_COLUMNS] = {0}, z[MAX_COLUMNS];
    int64_t columns = columns_of(s, group);
    (void)member;
    if (r->bias)
        memcpy(start, r->bias + first_column(s, group), (size_t)present_columns(s, group) * sizeof *start);
    for (int64_t row = 0; row < s->m; row++) {
        leati_narrow_job job = {.a = r->prepared + (size_t)row * row_bytes(s),
                                .a_scale = r->a_scales[row],
                                .w = weights_of(r, group),
                                .w_row = 2 * columns,
                                .pairs = leati_narrow_pairs(s->k),
                                .vectors = columns / s->isa->lanes,
                                .scales = scales_of(r, group),
                                .start = start,
                                .z = z};
        s->narrow.multiply(&job);
        finish_row(r, row, group, z);
    }
}

/* ---- Many rows ---- */

static void expand_and_multiply(void *of, int64_t group, int member) {
    const narrow_run *r = of;
    const narrow_dense *s = r->s;
    int64_t panel = s->isa->panel, columns = columns_of(s, group), first = first_column(s, group);
    float *expanded = (float *)(void *)(r->expanded + (size_t)member * s->expanded_bytes);
    for (int64_t j = 0; j < columns; j += panel)
        leati_narrow_expand(&s->narrow, weights_of(r, group) + (size_t)(2 * j) * s->narrow.element_bytes,
                            2 * columns, scales_of(r, group) + j, s->k, panel, expanded + j * s->k, panel);
    leati_product p = {.a = r->a,
                       .b = expanded,
                       .addend = r->addend ? r->addend + first : NULL,
                       .bias = r->bias ? r->bias + first : NULL,
                       .c = r->c + first,
                       .rows = s->m,
                       .columns = present_columns(s, group),
                       .depth = s->k,
                       .a_row = s->k,
                       .a_depth = 1,
                       .b_panel = s->k * panel,
                       .c_row = s->n,
                       .addend_row = s->n,
                       .f = s->has_f ? &s->f : NULL};
    s->isa->product(&p);
}

static leat_status run_narrow(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const narrow_dense *s = kernel->state;
    size_t prepared_bytes = few_rows(s) ? leati_align((size_t)s->m * row_bytes(s)) : 0;
    float a_scales[FEW_ROWS] = {0};
    narrow_run r = {.s = s,
                    .a = args[0],
                    .b = args[1],
                    .bias = s->bias >= 0 ? args[s->bias] : NULL,
                    .addend = s->addend >= 0 ? args[s->addend] : NULL,
                    .c = args[s->dst],
                    .prepared = run->scratch,
                    .a_scales = a_scales};
    (void)err;
    r.expanded = r.prepared + prepared_bytes;
    r.pack = run->pack ? run->pack : r.expanded + s->expanded_bytes * (size_t)s->threads;
    if (!(run->pack && run->packed))
        leati_thread_pool_share(run->pool, s->threads, s->groups, pack_group, &r);
    for (int64_t row = 0; few_rows(s) && row < s->m; row++)
        a_scales[row] = s->narrow.prepare(r.a + row * s->k, s->k, r.prepared + (size_t)row * row_bytes(s));
    leati_thread_pool_share(run->pool, s->threads, s->groups,
                            few_rows(s) ? multiply_group : expand_and_multiply, &r);
    return LEAT_OK;
}

/* ---- Preparing ---- */

static void describe(narrow_dense *s, leati_kernel *kernel) {
    size_t columns = (size_t)(s->panels * s->isa->panel);
    s->scales_bytes = s->narrow.scaled ? leati_align(columns * sizeof(float)) : 0;
    if (!few_rows(s))
        s->expanded_bytes = leati_align((size_t)(s->k * GROUP_PANELS * s->isa->panel) * sizeof(float));
    kernel->pack_bytes = leati_align(s->scales_bytes + 2 * (size_t)leati_narrow_pairs(s->k) * columns *
                                                           s->narrow.element_bytes);
    kernel->pack_inputs = 1u << 1;
    kernel->narrow_weights = s->k * s->n;
    kernel->scratch_bytes = kernel->pack_bytes + s->expanded_bytes * (size_t)s->threads;
    if (few_rows(s)) kernel->scratch_bytes += leati_align((size_t)s->m * row_bytes(s));
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "native %s %s%s %lldx%lld", s->narrow.name,
             s->isa->name, s->transposed_b ? " transposed" : "", (long long)s->k, (long long)s->n);
    snprintf(kernel->layout, sizeof kernel->layout, "%s", s->narrow.layout);
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", s->isa->name);
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_narrow;
}

leat_status leati_native_narrow_dense(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    const leati_desc *dst = &task->outputs[0], *b = &task->inputs[1];
    int op_inputs = leati_op_inputs(task);
    bool serves = task->weights_format && dst->rank == 2 && !task->attrs->matmul.transpose_a;
    if (!serves || dst->shape[1] <= FEW_COLUMNS || leati_desc_count(&task->inputs[0]) == 0 ||
        leati_desc_count(b) == 0)
        return LEAT_OK;
    narrow_dense *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a matrix product");
    *s = (narrow_dense){.narrow = leati_narrow_of(task->weights_format),
                        .isa = leati_native_isa_of(),
                        .m = dst->shape[0],
                        .n = dst->shape[1],
                        .k = task->inputs[0].shape[1],
                        .transposed_b = task->attrs->matmul.transpose_b,
                        .has_f = task->attrs->post.kinds & LEATI_POST_FUNCTION,
                        .f = task->attrs->post.function,
                        .dst = task->input_count};
    s->bias = op_inputs > 2 && task->inputs[2].rank >= 0 ? 2 : -1;
    s->addend = task->attrs->post.kinds & LEATI_POST_ADD ? op_inputs + LEATI_POST_ADDEND : -1;
    s->panels = leati_ceil_div(s->n, s->isa->panel);
    s->groups = leati_ceil_div(s->panels, GROUP_PANELS);
    s->threads = leati_worthwhile_threads(task, 2 * (double)s->m * (double)s->n * (double)s->k);
    describe(s, kernel);
    return LEAT_OK;
}
