/* SPDX-License-Identifier: Apache-2.0 */
/* GATHER and GATHER_BWD, for the code that is compiled once per instruction set. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_GATHER_TMPL_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_GATHER_TMPL_H

#include "backends/native/elementwise/jobs.h"
#include "backends/native/simd/vector_tmpl.h"

/* GATHER: rows first to last - 1 of dst (count, columns). */
static void gather(const leati_range_job *job, int64_t first, int64_t last) {
    int64_t columns = job->gather.columns;
    for (int64_t i = first; i < last; i++)
        memcpy(job->out[0] + i * columns, job->in[0] + job->gather.indices[i] * columns,
               (size_t)columns * sizeof(float));
}

/* GATHER_BWD: rows first to last - 1 of the table's gradient.  Each thread goes through all indices and adds only
 * to its own rows, so no two threads write one row, and a row's sum is always formed in the order of the batch. */
static void gather_bwd(const leati_range_job *job, int64_t first, int64_t last) {
    int64_t columns = job->gather.columns;
    float *table = job->out[0];
    memset(table + first * columns, 0, (size_t)((last - first) * columns) * sizeof *table);
    for (int64_t i = 0; i < job->gather.count; i++) {
        if (job->gather.indices[i] < first || job->gather.indices[i] >= last) continue;
        const float *from = job->in[1] + i * columns;
        float *to = table + job->gather.indices[i] * columns;
        for (int64_t c = 0; c < columns; c += LEATI_LANES) {
            vf sum = v_load_part(to + c, columns - c) + v_load_part(from + c, columns - c);
            v_store_part(to + c, sum, columns - c);
        }
    }
}

#endif
