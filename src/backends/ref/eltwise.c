/* SPDX-License-Identifier: Apache-2.0 */
/* ELTWISE and ELTWISE_BWD in plain C.  Room: backends/ref. */
#include "backends/ref/ref.h"
#include "engine/op_semantics/function.h"

static leat_status run_eltwise(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const float *src = args[0];
    float *dst = args[1];
    int64_t count = leati_desc_count(leati_ref_in(ref, 0));
    for (int64_t i = 0; i < count; ++i) dst[i] = leati_eltwise_at(&ref->attrs.eltwise, src[i]);
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(eltwise, run_eltwise)

static leat_status run_eltwise_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_eltwise *f = &ref->attrs.eltwise;
    const float *at = args[0], *diff_dst = args[1];
    float *diff_src = args[2];
    int64_t count = leati_desc_count(leati_ref_in(ref, 0));
    bool from_dst = leati_eltwise_uses_dst(f);
    for (int64_t i = 0; i < count; ++i)
        diff_src[i] = diff_dst[i] * (from_dst ? leati_slope_from_dst(f, at[i]) : leati_slope_at(f, at[i]));
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(eltwise_bwd, run_eltwise_bwd)
