/* SPDX-License-Identifier: Apache-2.0 */
/* CAST in plain C.  A number that is out of the new type's range becomes the nearest one in range; NaN becomes 0
 * where the new type has no NaN.  Room: backends/ref. */
#include "backends/ref/ref.h"
#include "tensor/bfloat16.h"
#include "tensor/convert.h"
#include "tensor/number.h"

/* The table of conversions (tensor/convert.h) does not have bf16, so bf16 is converted by way of f32. */
static float read_float(leat_dtype from, const void *src, int64_t i) {
    if (from == LEATI_BF16) return leati_bfloat16_to_float(((const uint16_t *)src)[i]);
    return (float)leati_number_at(from, src, i);
}

static void convert_element(leat_dtype to, void *dst, int64_t i, float x) {
    if (to == LEATI_BF16)
        ((uint16_t *)dst)[i] = leati_bfloat16_of_float(x);
    else
        leati_convert(to, (unsigned char *)dst + (size_t)i * leat_dtype_bytes(to), LEAT_F32, &x, 1);
}

static leat_status run_cast(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    leat_dtype from = leati_ref_in(ref, 0)->dtype, to = ref->attrs.cast.dtype;
    int64_t count = leati_desc_count(leati_ref_in(ref, 0));
    const float scale = to == LEAT_F32 || to == LEATI_BF16 ? ref->attrs.cast.scale : 1;
    if (scale == 1 && to != LEATI_BF16 && from != LEATI_BF16) {
        leati_convert(to, args[1], from, args[0], (size_t)count);
        return LEAT_OK;
    }
    for (int64_t i = 0; i < count; ++i) convert_element(to, args[1], i, read_float(from, args[0], i) * scale);
    return LEAT_OK;
}

leat_status leati_ref_cast(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return leati_ref_accept(task, kernel, run_cast, err);
}
