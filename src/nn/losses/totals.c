/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the samples of a batch.  Room: nn. */
#include "nn/losses/totals.h"

#include "base/error.h"
#include "engine/graph/build.h"

leati_value leati_total_count(leati_graph *graph, leati_totals *totals, leati_value part) {
    if (!totals || part < 0) return part;
    if (totals->count == LEATI_TOTALS_MAX)
        return leati_graph_fail(graph, LEAT_ENOTSUP, "losses with more than %d sums over a batch",
                                LEATI_TOTALS_MAX);
    leati_value total = part;
    if (totals->collects)
        leati_graph_keep(graph, part);
    else
        total = leati_graph_input(graph, (*totals->binding)++, leati_graph_desc(graph, part));
    totals->values[totals->count++] = total;
    return total;
}

/* Adds a multiple of `part` minus itself, which is 0, for the sake of the gradient, which does not flow through a cast
 * from f64. */
leati_value leati_total(leati_graph *graph, leati_totals *totals, leati_value part) {
    const leati_value total = leati_total_count(graph, totals, part);
    if (total < 0 || total == part) return total;
    const leati_value fixed = leati_cast(graph, leati_cast(graph, part, LEAT_F64, 1.0f), LEAT_F32, 1.0f);
    const float factor = 1.0f / leati_share_of_part(totals);
    return leati_add(graph, total, leati_linear(graph, leati_sub(graph, part, fixed), factor, 0.0f));
}

/* The rows have room for the largest batch, so that a total has one size in all batches. */
leati_value leati_total_rows(leati_graph *graph, leati_totals *totals, leati_value part,
                             bool differentiates) {
    if (!totals || part < 0) return part;
    int64_t before[LEAT_MAX_RANK] = {totals->first},
            after[LEAT_MAX_RANK] = {totals->most - totals->first - totals->samples};
    leati_value rows = leati_pad(graph, part, before, after, 0.0f);
    rows = differentiates ? leati_total(graph, totals, rows) : leati_total_count(graph, totals, rows);
    return leati_slice_axis(graph, rows, 0, 0, totals->whole);
}

float leati_share_of_part(const leati_totals *totals) {
    return totals ? (float)totals->samples / (float)totals->whole : 1.0f;
}
