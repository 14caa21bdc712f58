/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which values share memory.  There are three rewrites, in this order: a view gets the memory of its source; a
 * value that is stored into a state is computed in the state itself; an op that can work in place overwrites its first
 * input, if nobody reads that input later.
 *
 * States are read and written in program order.  Two states may overlap (one weight, all weights), so a rewrite that
 * makes an access to a state earlier or later checks all nodes between.  Room: engine. */
#include "engine/plan/plan_private.h"

/* Returns the state whose memory `value` has, or NULL if its memory is not a state. */
static const leati_value_info *state_of(const leati_plan *plan, leati_value value) {
    const leati_value_info *info = leati_plan_value(plan, leati_plan_root(plan, value));
    return info->storage == LEATI_IN_SLAB ? info : NULL;
}

static bool overlaps(const leati_plan *plan, leati_value value, const leati_value_info *state) {
    return value >= 0 && leati_states_overlap(leati_plan_value(plan, leati_plan_root(plan, value)), state);
}

static bool runs(const leati_plan *plan, int32_t n) {
    return plan->work[n].needed && !plan->work[n].virtual;
}

static bool node_writes(const leati_plan *plan, int32_t n, const leati_value_info *state) {
    const leati_node *node = leati_plan_node(plan, n);
    uint32_t mask = leati_plan_writes(plan, n);
    for (int i = 0; i < node->input_count && i < 32; ++i)
        if ((mask >> i & 1u) && overlaps(plan, node->inputs[i], state)) return true;
    for (int i = 0; i < node->output_count; ++i)
        if (overlaps(plan, node->outputs[i], state)) return true;
    return false;
}

static bool node_reads(const leati_plan *plan, int32_t n, const leati_value_info *state) {
    const leati_node *node = leati_plan_node(plan, n);
    for (int i = 0; i < node->input_count; ++i)
        if (overlaps(plan, node->inputs[i], state)) return true;
    return false;
}

/* Returns true if a node in [first, last] writes the state. */
static bool written_between(const leati_plan *plan, int32_t first, int32_t last,
                            const leati_value_info *state) {
    for (int32_t n = first; n <= last && n < plan->node_count; ++n)
        if (runs(plan, n) && node_writes(plan, n, state)) return true;
    return false;
}

bool leati_plan_is_written(const leati_plan *plan, leati_value value, int32_t first, int32_t last) {
    const leati_value_info *state = state_of(plan, value);
    return state && written_between(plan, first, last, state);
}

static void share_memory(leati_plan *plan, leati_value value, leati_value root) {
    plan->place[value].root = root;
    if (plan->place[root].dies < plan->place[value].dies) plan->place[root].dies = plan->place[value].dies;
}

static void alias_views(leati_plan *plan) {
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_node *node = leati_plan_node(plan, n);
        if (!plan->work[n].needed || !(leati_op_descriptor_of(node->op)->flags & LEATI_OP_VIEW)) continue;
        leati_value dst = node->outputs[0], root = leati_plan_root(plan, node->inputs[0]);
        if (leati_plan_value(plan, root)->desc.dtype != leati_plan_value(plan, dst)->desc.dtype ||
            leati_plan_is_written(plan, root, n + 1, plan->place[dst].last_read))
            continue;
        share_memory(plan, dst, root);
        plan->work[n].virtual = true;
    }
}

/* Returns true if node `producer` may write its output `stored` into the state while it reads its inputs. */
static bool producer_allows(const leati_plan *plan, int32_t producer, leati_value stored,
                            const leati_value_info *state) {
    const leati_node *node = leati_plan_node(plan, producer);
    for (int i = 0; i < node->output_count; ++i)
        if (node->outputs[i] != stored && overlaps(plan, node->outputs[i], state)) return false;
    for (int i = 0; i < node->input_count; ++i) {
        if (!overlaps(plan, node->inputs[i], state)) continue;
        bool same = i == 0 && (leati_op_descriptor_of(node->op)->flags & LEATI_OP_IN_PLACE) &&
                    node->outputs[0] == stored &&
                    leati_plan_value(plan, leati_plan_root(plan, node->inputs[0])) == state;
        if (!same) return false;
    }
    return true;
}

/* Returns true if the value that node n stores can be computed in the state itself: the value has memory of its own in
 * the arena, no node between its producer and the store reads or writes the state, and no node between the store and
 * the value's last reader writes the state. */
static bool can_elide(const leati_plan *plan, int32_t n, leati_value root, leati_value state) {
    const leati_value_info *stored = leati_plan_value(plan, root), *target = state_of(plan, state);
    if (!target || stored->storage != LEATI_IN_ARENA || stored->producer < 0) return false;
    if (plan->place[root].bytes != leati_desc_bytes(&target->desc) ||
        stored->desc.dtype != target->desc.dtype)
        return false;
    if (target->where.offset_bytes % 64 != 0 || !producer_allows(plan, stored->producer, root, target))
        return false;
    for (int32_t between = stored->producer + 1; between < n; ++between)
        if (runs(plan, between) && (node_writes(plan, between, target) || node_reads(plan, between, target)))
            return false;
    return !written_between(plan, n + 1, plan->place[root].dies, target);
}

static void elide_stores(leati_plan *plan) {
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_node *node = leati_plan_node(plan, n);
        if (node->op != LEATI_OP_STORE || !plan->work[n].needed) continue;
        leati_value root = leati_plan_root(plan, node->inputs[0]), state = node->inputs[1];
        if (!can_elide(plan, n, root, state)) continue;
        share_memory(plan, root, state);
        plan->work[n].virtual = true;
    }
}

static bool can_work_in_place(const leati_plan *plan, int32_t n, leati_value dst, leati_value root) {
    const leati_node *node = leati_plan_node(plan, n);
    const leati_value_info *from = leati_plan_value(plan, root), *to = leati_plan_value(plan, dst);
    if (from->storage != LEATI_IN_ARENA || to->storage != LEATI_IN_ARENA || plan->place[dst].root != dst)
        return false;
    if (from->desc.dtype != to->desc.dtype || leati_desc_count(&from->desc) != leati_desc_count(&to->desc))
        return false;
    if (plan->place[root].dies != n || plan->place[root].bytes != plan->place[dst].bytes) return false;
    for (int i = 1; i < node->input_count; ++i)
        if (node->inputs[i] >= 0 && leati_plan_root(plan, node->inputs[i]) == root) return false;
    return true;
}

static void work_in_place(leati_plan *plan) {
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_node *node = leati_plan_node(plan, n);
        if (!runs(plan, n) || !(leati_op_descriptor_of(node->op)->flags & LEATI_OP_IN_PLACE)) continue;
        leati_value dst = node->outputs[0], root = leati_plan_root(plan, node->inputs[0]);
        if (root != dst && can_work_in_place(plan, n, dst, root)) share_memory(plan, dst, root);
    }
}

void leati_plan_alias(leati_plan *plan) {
    for (leati_value v = 0; v < plan->value_count; ++v) {
        const leati_value_info *info = leati_plan_value(plan, v);
        leati_location *place = &plan->place[v];
        place->dies = place->last_read > info->producer ? place->last_read : info->producer;
        place->bytes = leati_desc_bytes(&info->desc);
        if (info->producer < 0 || !runs(plan, info->producer)) continue;
        const leati_node *node = leati_plan_node(plan, info->producer);
        for (int i = 0; i < node->output_count; ++i)
            if (node->outputs[i] == v && plan->work[info->producer].kernel.output_bytes[i])
                place->bytes = plan->work[info->producer].kernel.output_bytes[i];
    }
    alias_views(plan);
    elide_stores(plan);
    work_in_place(plan);
}
