/* SPDX-License-Identifier: Apache-2.0 */
/* CAST in plain C.  Numbers that the new type cannot hold become its nearest; NaN becomes 0
 * where that has none.  Layer: backends/ref. */
#include <math.h>

#include "backends/ref/ref.h"
#include "tensor/bfloat16.h"

static double read_real(leat_dtype dtype, const void *data, int64_t i) {
    if (dtype == LEATI_BF16) return (double)leati_bfloat16_to_float(((const uint16_t *)data)[i]);
    switch (dtype) {
    case LEAT_F32: return (double)((const float *)data)[i];
    case LEAT_F64: return ((const double *)data)[i];
    case LEAT_I32: return (double)((const int32_t *)data)[i];
    case LEAT_I64: return (double)((const int64_t *)data)[i];
    case LEAT_U8: return (double)((const uint8_t *)data)[i];
    }
    return 0;
}

static int64_t read_whole(leat_dtype dtype, const void *data, int64_t i) {
    switch (dtype) {
    case LEAT_I32: return ((const int32_t *)data)[i];
    case LEAT_I64: return ((const int64_t *)data)[i];
    case LEAT_U8: return ((const uint8_t *)data)[i];
    case LEAT_F32:
    case LEAT_F64: break;
    }
    double x = read_real(dtype, data, i);
    if (isnan(x)) return 0;
    return x <= -0x1p63 ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : (int64_t)x;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

/* Element i of data becomes that of out. */
static void write_element(leat_dtype to, void *out, int64_t i, leat_dtype from, const void *data,
                          float scale) {
    if (to == LEATI_BF16) {
        ((uint16_t *)out)[i] = leati_bfloat16_of_float((float)read_real(from, data, i) * scale);
        return;
    }
    switch (to) {
    case LEAT_F32: ((float *)out)[i] = (float)read_real(from, data, i) * scale; break;
    case LEAT_F64: ((double *)out)[i] = read_real(from, data, i); break;
    case LEAT_I32:
        ((int32_t *)out)[i] = (int32_t)clamp(read_whole(from, data, i), INT32_MIN, INT32_MAX);
        break;
    case LEAT_I64: ((int64_t *)out)[i] = read_whole(from, data, i); break;
    case LEAT_U8: ((uint8_t *)out)[i] = (uint8_t)clamp(read_whole(from, data, i), 0, UINT8_MAX); break;
    }
}

static leat_status run_cast(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    leat_dtype from = leati_ref_in(ref, 0)->dtype, to = ref->attrs.cast.dtype;
    int64_t count = leati_desc_count(leati_ref_in(ref, 0));
    for (int64_t i = 0; i < count; ++i) write_element(to, args[1], i, from, args[0], ref->attrs.cast.scale);
    return LEAT_OK;
}

leat_status leati_ref_cast(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return leati_ref_accept(task, kernel, run_cast, err);
}
