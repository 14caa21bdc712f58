/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL in plain C, sums in double.  Room: backends/ref. */
#include "backends/ref/ref.h"
#include "engine/op_semantics/function.h"

/* The sizes and strides of A (M, K) and B (K, N). */
typedef struct product {
    int64_t count, m, k, n;
    int64_t a_row, a_column, b_row, b_column;
} product;

static product product_of(const leati_ref *ref) {
    bool ta = ref->attrs.matmul.transpose_a, tb = ref->attrs.matmul.transpose_b;
    const leati_desc *a = leati_ref_in(ref, 0), *b = leati_ref_in(ref, 1), *dst = leati_ref_out(ref, 0);
    int rows = dst->rank - 2, columns = dst->rank - 1;
    product p = {.count = 1,
                 .m = dst->shape[rows],
                 .k = a->shape[ta ? rows : columns],
                 .n = dst->shape[columns],
                 .a_row = ta ? 1 : a->shape[columns],
                 .a_column = ta ? a->shape[columns] : 1,
                 .b_row = tb ? 1 : b->shape[columns],
                 .b_column = tb ? b->shape[columns] : 1};
    for (int i = 0; i < rows; ++i) p.count *= dst->shape[i];
    return p;
}

/* sums (N) += a row of A times B; the loops follow the memory order of B. */
static void row_times_b(const product *p, const float *a, const float *b, double *sums) {
    if (p->b_column == 1) {
        for (int64_t k = 0; k < p->k; ++k) {
            double factor = (double)a[k * p->a_column];
            const float *row = b + k * p->b_row;
            for (int64_t j = 0; j < p->n; ++j) sums[j] += factor * (double)row[j];
        }
        return;
    }
    for (int64_t j = 0; j < p->n; ++j)
        for (int64_t k = 0; k < p->k; ++k)
            sums[j] += (double)a[k * p->a_column] * (double)b[j * p->b_column + k * p->b_row];
}

static leat_status run_matmul(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    product p = product_of(ref);
    const float *a = args[0], *b = args[1], *bias = args[2];
    float *dst = args[3];
    double *sums = run->scratch; /* (N) */
    for (int64_t i = 0; i < p.count * p.m; ++i) {
        int64_t matrix = i / p.m;
        for (int64_t j = 0; j < p.n; ++j) sums[j] = bias ? (double)bias[j] : 0;
        row_times_b(&p, a + matrix * p.m * p.k + i % p.m * p.a_row, b + matrix * p.k * p.n, sums);
        for (int64_t j = 0; j < p.n; ++j) {
            float value = (float)sums[j];
            dst[i * p.n + j] =
                ref->attrs.post.kinds ? leati_eltwise_at(&ref->attrs.post.function, value) : value;
        }
    }
    return LEAT_OK;
}

leat_status leati_ref_matmul(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->scratch_bytes = (size_t)task->outputs[0].shape[task->outputs[0].rank - 1] * sizeof(double);
    return leati_ref_accept(task, kernel, run_matmul, err);
}
