/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE in plain C, sums in double.  Room: backends/ref. */
#include <math.h>

#include "backends/ref/ref.h"
#include "backends/ref/walk.h"

/* Returns a walk over src, where operand 1 is dst with the reduced axes kept as 1. */
static leati_walk walk_of(const leati_ref *ref) {
    leati_desc kept = *leati_ref_in(ref, 0);
    leati_walk walk = leati_walk_over(&kept);
    for (int i = 0; i < kept.rank; ++i)
        if (ref->attrs.reduce.axes >> i & 1u) kept.shape[i] = 1;
    leati_walk_broadcast(&walk, 1, &kept);
    return walk;
}

static leat_status run_sum(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const float *src = args[0];
    float *dst = args[1];
    double *sums = run->scratch;
    int64_t from = leati_desc_count(leati_ref_in(ref, 0)), to = leati_desc_count(leati_ref_out(ref, 0));
    for (int64_t i = 0; i < to; ++i) sums[i] = 0;
    for (leati_walk w = walk_of(ref); leati_walk_more(&w); leati_walk_next(&w))
        sums[w.offset[1]] += (double)src[w.offset[0]];
    double divisor = ref->attrs.reduce.kind == LEATI_REDUCE_MEAN && to ? (double)from / (double)to : 1;
    for (int64_t i = 0; i < to; ++i) dst[i] = (float)(sums[i] / divisor);
    return LEAT_OK;
}

static leat_status run_extreme(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const float *src = args[0];
    float *dst = args[1];
    bool max = ref->attrs.reduce.kind == LEATI_REDUCE_MAX;
    int64_t to = leati_desc_count(leati_ref_out(ref, 0));
    for (int64_t i = 0; i < to; ++i) dst[i] = max ? -INFINITY : INFINITY;
    for (leati_walk w = walk_of(ref); leati_walk_more(&w); leati_walk_next(&w)) {
        float x = src[w.offset[0]], *best = &dst[w.offset[1]];
        if (isnan(x) || (max ? x > *best : x < *best)) *best = x;
    }
    return LEAT_OK;
}

leat_status leati_ref_reduce(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    bool sum = task->attrs->reduce.kind == LEATI_REDUCE_SUM || task->attrs->reduce.kind == LEATI_REDUCE_MEAN;
    if (sum) kernel->scratch_bytes = (size_t)leati_desc_count(&task->outputs[0]) * sizeof(double);
    return leati_ref_accept(task, kernel, sum ? run_sum : run_extreme, err);
}
