/* SPDX-License-Identifier: Apache-2.0 */
/* GATHER and GATHER_BWD in plain C.  Room: backends/ref. */
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "engine/op_semantics/index.h"

static leat_status find(const leati_desc *indices, const void *data, int64_t i, int64_t rows, int64_t *out,
                        leat_error *err) {
    *out = leati_index_at(indices->dtype, data, i, rows);
    return *out >= 0 ? LEAT_OK : leati_index_fail(indices, data, i, rows, err);
}

static leat_status run_gather(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *table = leati_ref_in(ref, 0), *indices = leati_ref_in(ref, 1);
    int64_t columns = table->shape[1], count = leati_desc_count(indices), row;
    const float *src = args[0];
    float *dst = args[2];
    (void)run;
    for (int64_t i = 0; i < count; ++i) {
        LEATI_TRY(find(indices, args[1], i, table->shape[0], &row, err));
        memcpy(dst + i * columns, src + row * columns, (size_t)columns * sizeof *dst);
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(gather, run_gather)

static leat_status run_gather_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                  leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *indices = leati_ref_in(ref, 0), *table = leati_ref_out(ref, 0);
    int64_t columns = table->shape[1], count = leati_desc_count(indices), row;
    const float *diff_dst = args[1];
    float *diff_table = args[2];
    (void)run;
    for (int64_t i = 0; i < leati_desc_count(table); ++i) diff_table[i] = 0;
    for (int64_t i = 0; i < count; ++i) {
        LEATI_TRY(find(indices, args[0], i, table->shape[0], &row, err));
        for (int64_t c = 0; c < columns; ++c) diff_table[row * columns + c] += diff_dst[i * columns + c];
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(gather_bwd, run_gather_bwd)
