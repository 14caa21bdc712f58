/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the ref backend, and the preparation that most ops share.  Room: backends/ref. */
#include "backends/ref/ref.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static const leati_implementation implementations[] = {
#define FUSES(op) ((op) == LEATI_OP_MATMUL || (op) == LEATI_OP_CONV ? LEATI_POST_FUNCTION : 0)
#define IMPLEMENTATION(upper, lower)                                                                         \
    {LEATI_OP_##upper, leati_ref_##lower, FUSES(LEATI_OP_##upper), LEATI_OP_##upper == LEATI_OP_CAST},
    LEATI_OP_LIST(IMPLEMENTATION)
#undef IMPLEMENTATION
#undef FUSES
};

const leati_backend leati_backend_ref = {.name = "ref",
                                         .implementations = implementations,
                                         .count = sizeof implementations / sizeof *implementations};

leat_status leati_ref_accept(const leati_task *task, leati_kernel *kernel, leati_ref_run run,
                             leat_error *err) {
    size_t inputs = (size_t)task->input_count, outputs = (size_t)task->output_count;
    size_t bytes = sizeof(leati_ref) + (inputs + outputs) * sizeof(leati_desc);
    leati_ref *ref = leati_calloc(1, bytes);
    if (!ref) return leati_fail_memory(err, bytes, "a kernel");
    ref->attrs = *task->attrs;
    ref->input_count = task->input_count;
    ref->output_count = task->output_count;
    ref->unused = task->unused;
    if (inputs && task->inputs[0].rank >= 0) ref->first_bytes = leati_desc_bytes(&task->inputs[0]);
    memcpy(ref->descs, task->inputs, inputs * sizeof *ref->descs);
    if (outputs) memcpy(ref->descs + inputs, task->outputs, outputs * sizeof *ref->descs);
    kernel->state = ref;
    kernel->destroy = leati_free;
    kernel->run = run;
    snprintf(kernel->implementation, sizeof kernel->implementation, "ref");
    return LEAT_OK;
}
