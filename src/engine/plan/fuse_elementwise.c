/* SPDX-License-Identifier: Apache-2.0 */
/* Joins element-wise nodes of one shape into groups, each of which is one kernel of the plan's device: values inside a
 * group never reach memory, and a step has fewer launches.  The nodes of a group run where its last node was, so no
 * other node between them may read their results or change what they read.
 * docs/decisions/0401-element-wise-chains-on-a-device.md has the reasons.  Room: engine. */
#include "base/error.h"
#include "engine/plan/plan_private.h"
#include "tensor/bfloat16.h"

/* MOST_BETWEEN: nodes behind a group that are examined for another member. */
enum { MOST_MEMBERS = 16, MOST_BETWEEN = 64 };

typedef struct selection {
    int length;
    int32_t nodes[MOST_MEMBERS];
} selection;

static const leati_desc *desc_of(const leati_plan *plan, leati_value value) {
    return &leati_plan_value(plan, value)->desc;
}

static bool is_float(const leati_desc *desc) {
    return desc->dtype == LEAT_F32 || desc->dtype == LEATI_BF16;
}

static bool is_elementwise(const leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    if (!plan->work[n].needed || !plan->work[n].kernel.run || plan->work[n].joined) return false;
    switch (node->op) {
    case LEATI_OP_ELTWISE:
    case LEATI_OP_ELTWISE_BWD:
    case LEATI_OP_DROPOUT: break;
    case LEATI_OP_BINARY:
        if (!is_float(desc_of(plan, node->inputs[0])) ||
            node->attrs.post.kinds & ~(uint32_t)LEATI_POST_FUNCTION)
            return false;
        break;
    case LEATI_OP_CAST: break;
    default: return false;
    }
    const leati_value_info *out = leati_plan_value(plan, node->outputs[0]);
    return out->storage == LEATI_IN_ARENA && is_float(&out->desc) && leati_desc_count(&out->desc) > 0;
}

/* Returns the member that computes `value`, or -1. */
static int member_of(const leati_plan *plan, const selection *s, leati_value value) {
    for (int m = 0; m < s->length; ++m)
        if (leati_plan_node(plan, s->nodes[m])->outputs[0] == value) return m;
    return -1;
}

static bool reads_member(const leati_plan *plan, const selection *s, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    for (int i = 0; i < node->input_count; ++i)
        if (member_of(plan, s, node->inputs[i]) >= 0) return true;
    return false;
}

/* Returns true if node n and a member read the same tensor of the group's shape. */
static bool shares_input(const leati_plan *plan, const selection *s, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    for (int i = 0; i < node->input_count; ++i) {
        leati_value value = node->inputs[i];
        if (!leati_desc_same_shape(desc_of(plan, value), desc_of(plan, node->outputs[0]))) continue;
        for (int m = 0; m < s->length; ++m) {
            const leati_node *member = leati_plan_node(plan, s->nodes[m]);
            for (int k = 0; k < member->input_count; ++k)
                if (member->inputs[k] == value) return true;
        }
    }
    return false;
}

/* Returns true if nothing changes the members' inputs before node n. */
static bool inputs_stay(const leati_plan *plan, const selection *s, int32_t n) {
    for (int m = 0; m < s->length; ++m) {
        const leati_node *member = leati_plan_node(plan, s->nodes[m]);
        for (int i = 0; i < member->input_count; ++i)
            if (leati_plan_is_written(plan, member->inputs[i], s->nodes[m], n)) return false;
    }
    return true;
}

static bool can_join(const leati_plan *plan, const selection *s, int32_t n) {
    const leati_desc *whole = desc_of(plan, leati_plan_node(plan, s->nodes[0])->outputs[0]);
    return is_elementwise(plan, n) &&
           leati_desc_same_shape(whole, desc_of(plan, leati_plan_node(plan, n)->outputs[0])) &&
           (reads_member(plan, s, n) || shares_input(plan, s, n)) && inputs_stay(plan, s, n);
}

/* Collects the group that begins with node n. */
static void collect(const leati_plan *plan, int32_t n, selection *s) {
    *s = (selection){.length = 1, .nodes = {n}};
    for (int32_t next = n + 1; next < plan->node_count && s->length < MOST_MEMBERS; ++next) {
        if (next - s->nodes[s->length - 1] > MOST_BETWEEN) return;
        if (!plan->work[next].needed) continue;
        if (can_join(plan, s, next))
            s->nodes[s->length++] = next;
        else if (reads_member(plan, s, next))
            return;
    }
}

/* ---- The group as a task ---- */

static bool add_member(const leati_plan *plan, const selection *s, int m, leati_joined *j) {
    const leati_node *node = leati_plan_node(plan, s->nodes[m]);
    leati_group_member *member = &j->group.members[m];
    *member = (leati_group_member){.op = node->op,
                                   .attrs = &node->attrs,
                                   .operands = {LEATI_GROUP_NOTHING, LEATI_GROUP_NOTHING},
                                   .output = LEATI_GROUP_NOTHING};
    for (int i = 0; i < node->input_count; ++i) {
        int inside = member_of(plan, s, node->inputs[i]);
        int32_t outside = inside < 0 ? leati_joined_input(plan, j, node->inputs[i]) : 0;
        if (outside < 0) return false;
        member->operands[i] = inside < 0 ? outside : -1 - inside;
    }
    return true;
}

/* Returns true if something else than the members reads the result of member m. */
static bool is_read_outside(const leati_plan *plan, const selection *s, int m) {
    leati_value value = leati_plan_node(plan, s->nodes[m])->outputs[0];
    int32_t inside = 0;
    for (int reader = 0; reader < s->length; ++reader) {
        const leati_node *node = leati_plan_node(plan, s->nodes[reader]);
        for (int i = 0; i < node->input_count; ++i) inside += node->inputs[i] == value;
    }
    return leati_plan_value(plan, value)->output || plan->place[value].readers > inside;
}

static bool add_outputs(const leati_plan *plan, const selection *s, leati_joined *j) {
    for (int m = s->length - 1; m >= 0; --m) {
        if (m < s->length - 1 && !is_read_outside(plan, s, m)) continue;
        int k = j->group.output_count;
        if (k == LEATI_GROUP_OUTPUTS) return false;
        j->outputs[k] = leati_plan_node(plan, s->nodes[m])->outputs[0];
        j->group.outputs[k] = *desc_of(plan, j->outputs[k]);
        j->group.members[m].output = k;
        j->group.output_count++;
    }
    return true;
}

/* Puts first an input that the group may overwrite with output 0: one that nobody reads later. */
static void choose_first_input(const leati_plan *plan, const selection *s, leati_joined *j) {
    leati_group *group = &j->group;
    for (int k = 0; k < group->input_count; ++k) {
        leati_value value = j->inputs[k];
        bool dies = leati_plan_value(plan, value)->storage == LEATI_IN_ARENA &&
                    plan->place[value].last_read == s->nodes[s->length - 1];
        if (!dies || group->inputs[k].dtype != group->outputs[0].dtype ||
            !leati_desc_same_shape(&group->inputs[k], &group->whole))
            continue;
        leati_desc desc = group->inputs[0];
        group->inputs[0] = group->inputs[k];
        group->inputs[k] = desc;
        j->inputs[k] = j->inputs[0];
        j->inputs[0] = value;
        for (int m = 0; m < group->length; ++m)
            for (int i = 0; i < 2; ++i) {
                int32_t *operand = &group->members[m].operands[i];
                *operand = *operand == 0 ? k : *operand == k ? 0 : *operand;
            }
        return;
    }
}

static bool make_group(const leati_plan *plan, const selection *s, leati_joined *j) {
    leati_group *group = &j->group;
    *j = (leati_joined){.group = {.length = s->length, .device = leati_plan_device(plan)}};
    group->whole = *desc_of(plan, leati_plan_node(plan, s->nodes[0])->outputs[0]);
    for (int m = 0; m < s->length; ++m)
        if (!add_member(plan, s, m, j)) return false;
    if (!add_outputs(plan, s, j)) return false;
    choose_first_input(plan, s, j);
    return true;
}

/* Joins the selection, or as much of its beginning as one kernel can compute. */
static leat_status join(leati_plan *plan, selection *s, leat_error *err) {
    bool accepted = false;
    for (; s->length > 1 && !accepted; --s->length) {
        leati_joined j;
        if (make_group(plan, s, &j))
            LEATI_TRY(leati_plan_join(plan, &j, s->length, s->nodes, 0, &accepted, err));
    }
    return LEAT_OK;
}

leat_status leati_plan_fuse_elementwise(leati_plan *plan, leat_error *err) {
    if (plan->options.unfused) return LEAT_OK;
    for (int32_t n = 0; n < plan->node_count; ++n) {
        selection s;
        if (!is_elementwise(plan, n)) continue;
        collect(plan, n, &s);
        LEATI_TRY(join(plan, &s, err));
    }
    return LEAT_OK;
}
