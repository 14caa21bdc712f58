/* SPDX-License-Identifier: Apache-2.0 */
/* CALL and CALL_BWD: pass the buffers to a function outside of the library, such as a custom layer's.
 * Room: backends/ref. */
#include <stdio.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "engine/graph/callee.h"

static leat_rng numbers_of(const leati_ref *ref, const leati_run *run) {
    return leat_rng_for(run->seed, run->step, ref->attrs.call.stream);
}

static leat_status run_call(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_callee *callee = ref->attrs.call.callee;
    leat_rng rng = numbers_of(ref, run);
    const leati_callee_run call = {.input_count = ref->input_count,
                                   .output_count = callee->output_count,
                                   .inputs = leati_ref_in(ref, 0),
                                   .outputs = leati_ref_out(ref, 0),
                                   .args = args,
                                   .results = args + ref->input_count,
                                   .training = ref->attrs.call.training,
                                   .rng = &rng,
                                   .pool = run->pool};
    return callee->forward(callee, &call, err);
}

static leat_status run_call_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_callee *callee = ref->attrs.call.callee;
    const int outputs = callee->output_count, inputs = ref->input_count - 2 * outputs;
    const uint32_t wanted = ref->attrs.call.wanted;
    const leati_desc *descs = leati_ref_in(ref, 0);
    float *all = args[ref->input_count];
    void *diff_args[LEATI_CALLEE_MAX_INPUTS] = {NULL};
    leat_rng rng = numbers_of(ref, run);
    for (int64_t i = 0; i < leati_desc_count(leati_ref_out(ref, 0)); ++i) all[i] = 0;
    for (int i = 0; i < inputs; ++i)
        if (wanted >> i & 1u) diff_args[i] = all + leati_callee_place(wanted, descs, i);
    const leati_callee_run call = {.input_count = inputs,
                                   .output_count = outputs,
                                   .inputs = descs,
                                   .outputs = descs + inputs,
                                   .args = args,
                                   .results = args + inputs,
                                   .training = ref->attrs.call.training,
                                   .rng = &rng,
                                   .pool = run->pool,
                                   .diff_results = args + inputs + outputs,
                                   .diff_args = diff_args};
    return callee->backward(callee, &call, err);
}

static leat_status accept(const leati_task *task, leati_kernel *kernel, leati_ref_run run, leat_error *err) {
    LEATI_TRY(leati_ref_accept(task, kernel, run, err));
    snprintf(kernel->implementation, sizeof kernel->implementation, "custom code");
    return LEAT_OK;
}

leat_status leati_ref_call(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return accept(task, kernel, run_call, err);
}

leat_status leati_ref_call_bwd(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return accept(task, kernel, run_call_bwd, err);
}
