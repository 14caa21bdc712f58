/* SPDX-License-Identifier: Apache-2.0 */
/* The product of a transposed wide matrix with another, for the code that is compiled once per instruction set. */
#ifndef LEATI_BACKENDS_NATIVE_OUTER_BODY_H
#define LEATI_BACKENDS_NATIVE_OUTER_BODY_H

#include "backends/native/isa.h"
#include "backends/native/tile.h"

static void pack_panels(const float *b, int64_t k, int64_t n, float *packed) {
    for (int64_t j = 0; j < n; j += LEATI_PANEL)
        for (int64_t i = 0; i < k; i++, packed += LEATI_PANEL)
            memcpy(packed, b + i * n + j, LEATI_PANEL * sizeof *packed);
}

/* Some columns of a at a time, copied together: in place they lie a power of two apart and push each other out of the
 * cache. */
static void outer(const leati_outer_job *job) {
    for (int64_t first = job->first; first < job->last; first += LEATI_OUTER_ROWS) {
        int64_t rows = job->last - first < LEATI_OUTER_ROWS ? job->last - first : LEATI_OUTER_ROWS;
        for (int64_t i = 0; i < job->k; i++)
            memcpy(job->buffer + i * LEATI_OUTER_ROWS, job->a + i * job->m + first,
                   (size_t)rows * sizeof(float));
        leati_stretch columns = {job->buffer, 1, LEATI_OUTER_ROWS, 0, job->k, 1};
        leati_tile t = {.stretches = &columns,
                        .count = 1,
                        .b = job->packed,
                        .b_row = LEATI_PANEL,
                        .b_panel = job->k * LEATI_PANEL,
                        .c = job->c + first * job->n,
                        .c_row = job->n,
                        .c_panel = LEATI_PANEL};
        tile_all(t, rows, job->n / LEATI_PANEL);
    }
}

#endif
