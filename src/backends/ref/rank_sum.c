/* SPDX-License-Identifier: Apache-2.0 */
/* RANK_SUM in plain C: sums in double.  Room: backends/ref. */
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "engine/exchange.h"

static leat_status run_rank_sum(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const leati_desc *desc = leati_ref_in(leati_ref_of(kernel), 0);
    const float *src = args[0];
    float *dst = args[1];
    double *sums = run->scratch;
    const int64_t count = leati_desc_count(desc);
    if (!run->exchange) {
        memmove(dst, src, leati_desc_bytes(desc));
        return LEAT_OK;
    }
    for (int64_t i = 0; i < count; ++i) sums[i] = (double)src[i];
    LEATI_TRY(leati_exchange_sum(run->exchange, sums, count, err));
    for (int64_t i = 0; i < count; ++i) dst[i] = (float)sums[i];
    return LEAT_OK;
}

leat_status leati_ref_rank_sum(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    LEATI_TRY(leati_ref_accept(task, kernel, run_rank_sum, err));
    kernel->scratch_bytes = (size_t)leati_desc_count(&task->inputs[0]) * sizeof(double);
    return LEAT_OK;
}
