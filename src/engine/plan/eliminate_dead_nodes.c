/* SPDX-License-Identifier: Apache-2.0 */
/* Dead node elimination: a plan runs the nodes that write a state, the nodes that compute outputs of the graph, and all
 * nodes on which these depend.  Room: engine. */
#include "engine/plan/plan_private.h"

void leati_plan_count_readers(leati_plan *plan) {
    for (leati_value v = 0; v < plan->value_count; ++v) {
        plan->place[v].readers = 0;
        plan->place[v].last_read = leati_plan_value(plan, v)->output ? plan->node_count : -1;
    }
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_node *node = leati_plan_node(plan, n);
        for (int i = 0; plan->work[n].needed && i < node->input_count; ++i) {
            if (node->inputs[i] < 0) continue;
            leati_location *place = &plan->place[node->inputs[i]];
            ++place->readers;
            if (place->last_read < n) place->last_read = n;
        }
    }
}

void leati_plan_eliminate_dead_nodes(leati_plan *plan) {
    for (leati_value v = 0; v < plan->value_count; ++v) {
        const leati_value_info *info = leati_plan_value(plan, v);
        plan->place[v].root = v;
        if (info->output && info->producer >= 0) plan->work[info->producer].needed = true;
    }
    for (int32_t n = plan->node_count - 1; n >= 0; --n) {
        const leati_node *node = leati_plan_node(plan, n);
        if (leati_op_descriptor_of(node->op)->writes && !plan->options.writes_nothing)
            plan->work[n].needed = true;
        for (int i = 0; plan->work[n].needed && i < node->input_count; ++i) {
            int32_t producer = node->inputs[i] < 0 ? -1 : leati_plan_value(plan, node->inputs[i])->producer;
            if (producer >= 0) plan->work[producer].needed = true;
        }
    }
    leati_plan_count_readers(plan);
}
