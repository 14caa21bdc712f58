/* SPDX-License-Identifier: Apache-2.0 */
/* What the layers that encode positions share.  Room: nn. */
#include "nn/layers/hub/positions.h"

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/common_fields.h"

const char *const leati_positions_arguments[] = {"inputs", "positions", NULL};
const char *const leati_positions_options[] = {"start_index", NULL};

leat_status leati_positions_check_count(bool positions, int input_count, leat_error *err) {
    if (positions == (input_count == 2)) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "positions: expected %s second input, received %d inputs",
                      positions ? "a" : "no", input_count);
}

leat_status leati_positions_check(bool positions, int input_count, const leati_shape *inputs,
                                  leat_error *err) {
    LEATI_TRY(leati_positions_check_count(positions, input_count, err));
    if (inputs[0].rank < 3) return leati_shape_unexpected(&inputs[0], "a sequence (N, steps, features)", err);
    if (!positions || (inputs[0].rank == 3 && inputs[1].rank == 2)) return LEAT_OK;
    return leati_shape_unexpected(&inputs[inputs[0].rank != 3 ? 0 : 1],
                                  "a sequence (N, steps, features) and positions (N, steps)", err);
}

leati_value leati_vector_of(leati_graph *g, int64_t count,
                            void (*fill)(float *out, int64_t count, const void *user), const void *user) {
    const leati_desc desc = leati_desc_make(LEAT_F32, 1, &count);
    float *values = leati_calloc((size_t)count + 1, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for a vector of constants");
    fill(values, count, user);
    leati_value out = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return out;
}
