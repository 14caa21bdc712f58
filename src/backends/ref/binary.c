/* SPDX-License-Identifier: Apache-2.0 */
/* BINARY in plain C.  Room: backends/ref. */
#include <math.h>

#include "backends/ref/ref.h"
#include "backends/ref/walk.h"
#include "tensor/number.h"

static float apply(leati_binary kind, float a, float b) {
    switch (kind) {
    case LEATI_ADD: return a + b;
    case LEATI_SUB: return a - b;
    case LEATI_MUL: return a * b;
    case LEATI_DIV: return a / b;
    case LEATI_MAX: return a > b || isnan(a) ? a : b;
    case LEATI_MIN: return a < b || isnan(a) ? a : b;
    case LEATI_EQUAL: return a == b ? 1.0f : 0.0f;
    case LEATI_GREATER: return a > b ? 1.0f : 0.0f;
    case LEATI_GREATER_EQUAL: return a >= b ? 1.0f : 0.0f;
    }
    return NAN;
}

static leat_status run_f32(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const float *a = args[0], *b = args[1];
    float *dst = args[2];
    leati_walk w = leati_walk_over(leati_ref_out(ref, 0));
    leati_walk_broadcast(&w, 1, leati_ref_in(ref, 0));
    leati_walk_broadcast(&w, 2, leati_ref_in(ref, 1));
    for (; leati_walk_more(&w); leati_walk_next(&w))
        dst[w.offset[0]] = apply(ref->attrs.binary.kind, a[w.offset[1]], b[w.offset[2]]);
    return LEAT_OK;
}

/* Returns -1, 0 or 1 if a is less than, equal to or greater than b; 2 if one of them is NaN. */
static int compare(leat_dtype dtype, const void *a, int64_t i, const void *b, int64_t j) {
    if (dtype == LEAT_U64) {
        const uint64_t x = ((const uint64_t *)a)[i], y = ((const uint64_t *)b)[j];
        return (x > y) - (x < y);
    }
    if (leati_dtype_is_integer(dtype)) {
        const int64_t x = leati_integer_at(dtype, a, i), y = leati_integer_at(dtype, b, j);
        return (x > y) - (x < y);
    }
    const double x = leati_number_at(dtype, a, i), y = leati_number_at(dtype, b, j);
    return isnan(x) || isnan(y) ? 2 : (x > y) - (x < y);
}

/* Compares tensors of any other type than f32. */
static leat_status run_comparison(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                  leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    float *dst = args[2];
    leati_walk w = leati_walk_over(leati_ref_out(ref, 0));
    leati_walk_broadcast(&w, 1, leati_ref_in(ref, 0));
    leati_walk_broadcast(&w, 2, leati_ref_in(ref, 1));
    for (; leati_walk_more(&w); leati_walk_next(&w)) {
        int order = compare(leati_ref_in(ref, 0)->dtype, args[0], w.offset[1], args[1], w.offset[2]);
        bool holds = ref->attrs.binary.kind == LEATI_EQUAL     ? order == 0
                     : ref->attrs.binary.kind == LEATI_GREATER ? order == 1
                                                               : order == 0 || order == 1;
        dst[w.offset[0]] = holds ? 1.0f : 0.0f;
    }
    return LEAT_OK;
}

leat_status leati_ref_binary(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return leati_ref_accept(task, kernel, task->inputs[0].dtype == LEAT_F32 ? run_f32 : run_comparison, err);
}
