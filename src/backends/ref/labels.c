/* SPDX-License-Identifier: Apache-2.0 */
/* ONE_HOT, ARGMAX, IN_TOP_K in plain C.  Room: backends/ref. */
#include <math.h>

#include "backends/ref/ref.h"
#include "engine/op_semantics/index.h"
#include "engine/op_semantics/infer.h"

/* An index outside [0, depth) gives a row of zeros. */
static leat_status run_one_hot(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *indices = leati_ref_in(ref, 0);
    int64_t count = leati_desc_count(indices), depth = ref->attrs.one_hot.depth;
    float *dst = args[1];
    for (int64_t i = 0; i < count; ++i) {
        int64_t index = leati_index_at(indices->dtype, args[0], i, depth);
        for (int64_t j = 0; j < depth; ++j) dst[i * depth + j] = j == index ? 1.0f : 0.0f;
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(one_hot, run_one_hot)

static leat_status run_argmax(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    leati_axis_split split = leati_split_at(leati_ref_in(ref, 0), ref->attrs.argmax.axis);
    const float *src = args[0];
    int32_t *dst = args[1];
    for (int64_t o = 0; o < split.outer; ++o)
        for (int64_t i = 0; i < split.inner; ++i) {
            const float *line = src + o * split.length * split.inner + i;
            float maximum = -INFINITY; /* NaN is never the largest */
            int32_t at = 0;
            for (int64_t k = 0; k < split.length; ++k)
                if (line[k * split.inner] > maximum) {
                    maximum = line[k * split.inner];
                    at = (int32_t)k;
                }
            dst[o * split.inner + i] = at;
        }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(argmax, run_argmax)

/* Returns true if fewer than k classes are more probable than the target.  As in TensorFlow, false if the target is
 * no class or an element of the row is not finite. */
static bool in_top_k(const float *row, int64_t classes, int64_t target, int64_t k) {
    if (target < 0 || !isfinite(row[target])) return false;
    int64_t above = 0;
    for (int64_t i = 0; i < classes; ++i) {
        if (!isfinite(row[i])) return false;
        above += row[i] > row[target];
    }
    return above < k;
}

static leat_status run_in_top_k(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *predictions = leati_ref_in(ref, 0);
    int64_t rows = predictions->shape[0], classes = predictions->shape[1];
    const float *src = args[0];
    float *dst = args[2];
    for (int64_t i = 0; i < rows; ++i) {
        int64_t target = leati_index_at(leati_ref_in(ref, 1)->dtype, args[1], i, classes);
        dst[i] = in_top_k(src + i * classes, classes, target, ref->attrs.top_k.k) ? 1.0f : 0.0f;
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(in_top_k, run_in_top_k)
