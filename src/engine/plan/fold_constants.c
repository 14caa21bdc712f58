/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: nodes that depend only on constants, such as the first nodes of the backward pass, run once, when
 * the plan is created.  Only small values are folded, because a constant never shares its memory as values in the arena
 * do.  Room: engine. */
#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/plan_private.h"

#define MOST_BYTES ((size_t)64 * 1024)

static bool is_constant(const leati_plan *plan, leati_value value) {
    return value < 0 || leati_plan_value(plan, value)->storage == LEATI_IN_CONSTANT;
}

static bool can_fold(const leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    if (!plan->work[n].needed || leati_op_descriptor_of(node->op)->writes ||
        (leati_op_descriptor_of(node->op)->flags & LEATI_OP_RANDOM))
        return false;
    if (leati_plan_device(plan) && node->attrs.post.kinds)
        return false; /* the host may have no kernel for it */
    for (int i = 0; i < node->input_count; ++i)
        if (!is_constant(plan, node->inputs[i])) return false;
    bool view = leati_op_descriptor_of(node->op)->flags & LEATI_OP_VIEW;
    if (view && leati_plan_value(plan, node->inputs[0])->desc.dtype !=
                    leati_plan_value(plan, node->outputs[0])->desc.dtype)
        return false;
    for (int i = 0; i < node->output_count; ++i) {
        size_t said = plan->work[n].kernel.output_bytes[i];
        if (said || leati_desc_bytes(&leati_plan_value(plan, node->outputs[i])->desc) > MOST_BYTES)
            return false;
    }
    return true;
}

static void become_constant(leati_plan *plan, leati_value value, const void *data) {
    leati_value_info *info = leati_graph_value_mutable(plan->graph, value);
    info->storage = LEATI_IN_CONSTANT;
    info->where.constant = data;
    info->producer = -1;
}

static void *argument_of(const leati_plan *plan, leati_value value) {
    union {
        const void *constant;
        void *argument;
    } address = {.constant = value < 0 ? NULL : leati_plan_value(plan, value)->where.constant};
    return address.argument; /* kernels do not write their inputs */
}

static leat_status run_once(const leati_kernel *kernel, void **args, leat_error *err) {
    leati_run run = {.scratch = kernel->scratch_bytes ? leati_calloc_aligned(kernel->scratch_bytes) : NULL};
    if (kernel->scratch_bytes && !run.scratch)
        return leati_fail_memory(err, kernel->scratch_bytes, "a constant");
    leat_status status = kernel->run(kernel, args, &run, err);
    leati_free(run.scratch);
    return status;
}

/* Computes node n on the host, on which its own kernel does not run if the plan has a device. */
static leat_status compute(leati_plan *plan, int32_t n, void **args, leat_error *err) {
    if (!leati_plan_device(plan)) return run_once(&plan->work[n].kernel, args, err);
    leati_kernel kernel = {0};
    LEATI_TRY(leati_plan_host_kernel(plan, n, &kernel, err));
    leat_status status = run_once(&kernel, args, err);
    if (kernel.destroy) kernel.destroy(kernel.state);
    return status;
}

static leat_status fold(leati_plan *plan, int32_t n, leat_error *err) {
    const leati_node *node = leati_plan_node(plan, n);
    void *args[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS];
    plan->work[n].needed = false;
    if (leati_op_descriptor_of(node->op)->flags & LEATI_OP_VIEW) {
        become_constant(plan, node->outputs[0], argument_of(plan, node->inputs[0]));
        return LEAT_OK;
    }
    for (int i = 0; i < node->input_count; ++i) args[i] = argument_of(plan, node->inputs[i]);
    for (int i = 0; i < node->output_count; ++i) {
        size_t bytes = leati_desc_bytes(&leati_plan_value(plan, node->outputs[i])->desc);
        void *memory = leati_graph_own_constant(plan->graph, bytes);
        if (!memory) return leati_fail_memory(err, bytes, "a constant");
        args[node->input_count + i] = memory;
    }
    LEATI_TRY(compute(plan, n, args, err));
    for (int i = 0; i < node->output_count; ++i)
        become_constant(plan, node->outputs[i], args[node->input_count + i]);
    return LEAT_OK;
}

leat_status leati_plan_fold(leati_plan *plan, leat_error *err) {
    for (int32_t n = 0; n < plan->node_count; ++n)
        if (can_fold(plan, n)) LEATI_TRY(fold(plan, n, err));
    leati_plan_count_readers(plan);
    return LEAT_OK;
}
