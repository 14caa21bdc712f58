/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM_CELL and its gradient in plain C.  Room: backends/ref.
 *
 * With f the recurrent activation, g the activation, (.) element-wise, and z_i, z_f, z_c, z_o the parts of a row:
 *   i = f(z_i)   f = f(z_f)   c~ = g(z_c)   o = f(z_o)   c = f (.) c_before + i (.) c~   h = o (.) g(c)
 * The rows of `gates` are i, f, c~, o.  Backwards, with dc the sum of diff_c and diff_h (.) o (.) g'(c):
 *   diff_z = dc (.) c~ (.) f', dc (.) c_before (.) f', dc (.) i (.) g', diff_h (.) g(c) (.) f'
 *   diff_c_before = dc (.) f */
#include "backends/ref/ref.h"
#include "engine/op_semantics/function.h"

static int64_t units_of(const leati_ref *ref) {
    const leati_desc *z = leati_ref_in(ref, 0);
    return z->shape[z->rank - 1] / 4;
}

/* Returns an element of a tensor that may be absent. */
static float element(const float *x, int64_t at) {
    return x ? x[at] : 0;
}

static leat_status run_cell(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_eltwise *g = &ref->attrs.rnn.activation, *f = &ref->attrs.rnn.recurrent_activation;
    const int64_t units = units_of(ref), count = leati_desc_count(leati_ref_in(ref, 0)) / 4;
    const float *z = args[0], *before = ref->input_count > 1 ? args[1] : NULL;
    void *const *out = args + ref->input_count;
    float *gates = out[LEATI_LSTM_GATES], *h = out[LEATI_LSTM_H], *c = out[LEATI_LSTM_C];
    (void)run, (void)err;
    if (!ref->attrs.rnn.training) gates = NULL;
    for (int64_t at = 0; at < count; ++at) {
        const int64_t first = at / units * 4 * units + at % units;
        float gate[4];
        for (int k = 0; k < 4; ++k) gate[k] = leati_eltwise_at(k == 2 ? g : f, z[first + k * units]);
        const float next = gate[1] * element(before, at) + gate[0] * gate[2];
        if (h) h[at] = gate[3] * leati_eltwise_at(g, next);
        if (c) c[at] = next;
        for (int k = 0; gates && k < 4; ++k) gates[first + k * units] = gate[k];
    }
    return LEAT_OK;
}

static leat_status run_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_eltwise *g = &ref->attrs.rnn.activation, *f = &ref->attrs.rnn.recurrent_activation;
    const int64_t units = units_of(ref), count = leati_desc_count(leati_ref_in(ref, 0)) / 4;
    const float *gates = args[0], *before = args[1], *c = args[2], *diff_h = args[3], *diff_c = args[4];
    float *diff_z = args[5], *diff_before = args[6];
    (void)run, (void)err;
    for (int64_t at = 0; at < count; ++at) {
        const int64_t first = at / units * 4 * units + at % units;
        float gate[4], slope[4];
        for (int k = 0; k < 4; ++k) {
            gate[k] = gates[first + k * units];
            slope[k] = leati_slope_from_dst(k == 2 ? g : f, gate[k]);
        }
        const float activated = leati_eltwise_at(g, c[at]), dh = element(diff_h, at);
        const float dc = element(diff_c, at) + dh * gate[3] * leati_slope_from_dst(g, activated);
        const float diff[4] = {dc * gate[2], dc * element(before, at), dc * gate[0], dh * activated};
        for (int k = 0; diff_z && k < 4; ++k) diff_z[first + k * units] = diff[k] * slope[k];
        if (diff_before) diff_before[at] = dc * gate[1];
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(lstm_cell, run_cell)
LEATI_REF_ACCEPTS(lstm_cell_bwd, run_bwd)
