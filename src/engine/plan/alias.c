/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which values share memory.  There are four rewrites, in this order: a view gets the memory of its source; a
 * slice that is contiguous in its source gets its part of it, and the inputs of a concatenation are computed in its
 * memory, if they are contiguous there; a value that is stored into a state is computed in the state itself; an op that
 * can work in place overwrites its first input, if nobody reads that input later.
 *
 * States are read and written in program order.  Two states may overlap (one weight, all weights), so a rewrite that
 * makes an access to a state earlier or later checks all nodes between.  Room: engine. */
#include "base/memory.h"
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

static void share_memory(leati_plan *plan, leati_value value, leati_value root, size_t shift) {
    leati_location *to = &plan->place[root], *from = &plan->place[value];
    from->root = root;
    from->shift = shift;
    if (to->born > from->born) to->born = from->born;
    if (to->dies < from->dies) to->dies = from->dies;
}

static void alias_views(leati_plan *plan) {
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_node *node = leati_plan_node(plan, n);
        if (!plan->work[n].needed || !(leati_op_descriptor_of(node->op)->flags & LEATI_OP_VIEW)) continue;
        leati_value dst = node->outputs[0], root = leati_plan_root(plan, node->inputs[0]);
        if (leati_plan_value(plan, root)->desc.dtype != leati_plan_value(plan, dst)->desc.dtype ||
            leati_plan_is_written(plan, root, n + 1, plan->place[dst].last_read))
            continue;
        share_memory(plan, dst, root, 0);
        plan->work[n].virtual = true;
    }
}

/* ---- Parts ---- */

/* Returns true if the elements at one index of an axis of the tensor are contiguous in memory. */
static bool is_outermost(const leati_desc *desc, int axis) {
    for (int i = 0; i < axis; ++i)
        if (desc->shape[i] != 1) return false;
    return true;
}

static size_t bytes_of_one(const leati_desc *desc, int axis) {
    leati_desc one = *desc;
    one.shape[axis] = 1;
    return leati_desc_bytes(&one);
}

/* Returns true if the slice is contiguous in its source, and gives its place there. */
static bool is_part(const leati_desc *src, const leati_desc *dst, const leati_attrs *attrs, size_t *shift) {
    int axis = 0;
    while (axis < src->rank - 1 && src->shape[axis] == 1) ++axis;
    for (int i = axis + 1; i < src->rank; ++i)
        if (src->shape[i] != dst->shape[i]) return false;
    if (src->rank < 1 || src->dtype != dst->dtype) return false;
    *shift = (size_t)attrs->slice.start[axis] * bytes_of_one(src, axis);
    return *shift % LEATI_ALIGNMENT == 0;
}

static void alias_slice(leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    const leati_value src = node->inputs[0], dst = node->outputs[0], root = leati_plan_root(plan, src);
    const leati_value_info *from = leati_plan_value(plan, src), *to = leati_plan_value(plan, dst);
    size_t shift = 0;
    if (leati_plan_value(plan, root)->storage != LEATI_IN_ARENA || plan->place[dst].root != dst) return;
    if (!is_part(&from->desc, &to->desc, &node->attrs, &shift)) return;
    share_memory(plan, dst, root, leati_plan_shift(plan, src) + shift);
    plan->work[n].virtual = true;
}

/* Returns true if input i of the concatenation can be computed in its memory, at `shift`: the input has memory of its
 * own, which no other input shares. */
static bool can_be_part(const leati_plan *plan, const leati_node *node, int i, size_t shift) {
    const leati_value value = node->inputs[i], root = leati_plan_root(plan, value);
    const leati_value_info *whole = leati_plan_value(plan, node->outputs[0]);
    const leati_value_info *part = leati_plan_value(plan, root);
    const leati_desc *desc = &leati_plan_value(plan, value)->desc;
    if (part->storage != LEATI_IN_ARENA || part->producer < 0 || shift % LEATI_ALIGNMENT != 0) return false;
    if (desc->dtype != whole->desc.dtype || plan->place[root].bytes != leati_desc_bytes(desc)) return false;
    for (int k = 0; k < i; ++k)
        if (leati_plan_root(plan, node->inputs[k]) == root) return false;
    return true;
}

static void alias_concat(leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    const leati_value dst = node->outputs[0];
    const int axis = node->attrs.concat.axis;
    size_t shift = 0;
    if (!is_outermost(&leati_plan_value(plan, dst)->desc, axis) || plan->place[dst].root != dst) return;
    for (int i = 0; i < node->input_count; ++i) {
        if (!can_be_part(plan, node, i, shift)) return;
        shift += leati_desc_bytes(&leati_plan_value(plan, node->inputs[i])->desc);
    }
    shift = 0;
    for (int i = 0; i < node->input_count; ++i) {
        share_memory(plan, leati_plan_root(plan, node->inputs[i]), dst, shift);
        shift += leati_desc_bytes(&leati_plan_value(plan, node->inputs[i])->desc);
    }
    plan->work[n].virtual = true;
}

/* A device has kernels that may expect a larger alignment than a part has. */
static void alias_parts(leati_plan *plan) {
    if (leati_plan_device(plan)) return;
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_op op = leati_plan_node(plan, n)->op;
        if (!runs(plan, n)) continue;
        if (op == LEATI_OP_SLICE) alias_slice(plan, n);
        if (op == LEATI_OP_CONCAT) alias_concat(plan, n);
    }
}

/* ---- Stores ---- */

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
    if (plan->place[root].born != stored->producer) return false; /* its parts are computed before */
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
        share_memory(plan, root, state, 0);
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
        if (root != dst && can_work_in_place(plan, n, dst, root)) share_memory(plan, dst, root, 0);
    }
}

void leati_plan_alias(leati_plan *plan) {
    for (leati_value v = 0; v < plan->value_count; ++v) {
        const leati_value_info *info = leati_plan_value(plan, v);
        leati_location *place = &plan->place[v];
        place->born = info->producer;
        place->dies = place->last_read > info->producer ? place->last_read : info->producer;
        place->bytes = leati_desc_bytes(&info->desc);
        if (info->producer < 0 || !runs(plan, info->producer)) continue;
        const leati_node *node = leati_plan_node(plan, info->producer);
        for (int i = 0; i < node->output_count; ++i)
            if (node->outputs[i] == v && plan->work[info->producer].kernel.output_bytes[i])
                place->bytes = plan->work[info->producer].kernel.output_bytes[i];
    }
    alias_views(plan);
    alias_parts(plan);
    elide_stores(plan);
    work_in_place(plan);
}
