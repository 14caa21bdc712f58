/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the outputs of layers with the policy mixed_bfloat16, and the gradients with respect to them, as bf16 in the
 * arena.  The graph is built with f32 everywhere, so that no shape or gradient rule needs to know bf16; only kernels do
 * (bf16_fallback.c).  Room: engine. */
#include "engine/plan/plan_private.h"
#include "tensor/bfloat16.h"

static bool is_bf16(const leati_plan *plan, const leati_value_info *info) {
    if (!info->may_be_bf16 || info->output || info->storage != LEATI_IN_ARENA || info->desc.dtype != LEAT_F32)
        return false;
    if (!plan->work[info->producer].needed) return false;
    const leati_node *producer = leati_plan_node(plan, info->producer);
    return !(leati_op_descriptor_of(producer->op)->flags & LEATI_OP_VIEW) ||
           leati_plan_value(plan, producer->inputs[0])->desc.dtype == LEATI_BF16;
}

void leati_plan_store_bf16(leati_plan *plan) {
    for (leati_value v = 0; v < plan->value_count; ++v) {
        leati_value_info *info = leati_graph_value_mutable(plan->graph, v);
        if (!is_bf16(plan, info)) continue;
        leati_node *producer = leati_graph_node_mutable(plan->graph, info->producer);
        info->desc.dtype = LEATI_BF16;
        if (producer->op == LEATI_OP_CAST) producer->attrs.cast.dtype = LEATI_BF16;
    }
}
