/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the steps of a plan after which a part of a slab is final, such as the gradients of the last layers, and the
 * steps that exchange values with other ranks.  Room: engine. */
#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/plan_private.h"

/* Returns the end, in bytes, of what a value has in the slab; 0 if the value is elsewhere. */
static size_t end_in(const leati_plan *plan, leati_value value, leati_slab slab) {
    if (value < 0) return 0;
    const leati_value_info *info = leati_plan_value(plan, leati_plan_root(plan, value));
    if (info->storage != LEATI_IN_SLAB || info->where.slab != slab) return 0;
    return info->where.offset_bytes + leati_desc_bytes(&info->desc);
}

/* Returns the end of what a node reads or writes in the slab. */
static size_t end_used(const leati_plan *plan, const leati_node *node, leati_slab slab) {
    size_t end = 0;
    for (int i = 0; i < node->input_count + node->output_count; ++i) {
        bool out = i >= node->input_count;
        size_t one = end_in(plan, out ? node->outputs[i - node->input_count] : node->inputs[i], slab);
        if (one > end) end = one;
    }
    return end;
}

leat_status leati_plan_watch(leati_plan *plan, leati_slab slab, leat_error *err) {
    const size_t bytes = ((size_t)plan->step_count + 1) * sizeof *plan->final_from;
    if (!plan->final_from) plan->final_from = leati_calloc(1, bytes);
    if (!plan->final_from) return leati_fail_memory(err, bytes, "the steps of a plan");
    size_t from = 0;
    for (int32_t s = plan->step_count - 1; s >= 0; --s) {
        plan->final_from[s] = from;
        const size_t end = end_used(plan, leati_plan_node(plan, plan->steps[s]), slab);
        if (end > from) from = end;
    }
    plan->final_slab = slab;
    return LEAT_OK;
}

/* Returns the number of doubles that a node exchanges with the other ranks; 0: it makes no exchange. */
static int64_t exchanged(const leati_plan *plan, const leati_node *node) {
    const bool is_norm = node->op == LEATI_OP_BATCH_NORM || node->op == LEATI_OP_BATCH_NORM_BWD;
    const leati_desc *src =
        node->input_count > 0 && node->inputs[0] >= 0 ? &leati_plan_value(plan, node->inputs[0])->desc : NULL;
    if (src && node->op == LEATI_OP_RANK_SUM) return leati_desc_count(src);
    return src && is_norm && node->attrs.batch_norm.synchronized ? 1 + 2 * src->shape[src->rank - 1] : 0;
}

bool leati_plan_exchange_get(const leati_plan *plan, int32_t index, int64_t *count, const char **label) {
    for (int32_t s = 0; s < plan->step_count; ++s) {
        const leati_node *node = leati_plan_node(plan, plan->steps[s]);
        const int64_t doubles = exchanged(plan, node);
        if (doubles == 0 || index-- > 0) continue;
        *count = doubles;
        *label = node->label ? node->label : "";
        return true;
    }
    return false;
}
