/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the moving averages of a plan of a device, with the linear functions of their values: a network has many, each
 * is tiny, and nobody reads them before the end of the step.  A group runs where its last average was, so no node
 * between may read or write the states.  Room: engine. */
#include "base/error.h"
#include "engine/plan/plan_private.h"

typedef struct selection {
    leati_joined joined;
    int count; /* of nodes */
    int32_t nodes[LEATI_GROUP_MOST];
    uint32_t writes;
} selection;

static bool is_state(const leati_value_info *info) {
    return info->storage == LEATI_IN_SLAB;
}

static bool is_average(const leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    return plan->work[n].needed && node->op == LEATI_OP_MOVING_AVERAGE && !plan->work[n].joined &&
           is_state(leati_plan_value(plan, node->inputs[0]));
}

/* Returns the node that computes the value of average n, if it is a linear function that nothing else reads; or -1. */
static int32_t linear_before(const leati_plan *plan, int32_t n) {
    leati_value value = leati_plan_node(plan, n)->inputs[1];
    const leati_value_info *info = leati_plan_value(plan, value);
    if (info->storage != LEATI_IN_ARENA || info->producer < 0 || info->output ||
        plan->place[value].readers != 1)
        return -1;
    const leati_node *node = leati_plan_node(plan, info->producer);
    bool linear = node->op == LEATI_OP_ELTWISE && node->attrs.eltwise.function == LEATI_FN_LINEAR;
    bool stays = !leati_plan_is_written(plan, node->inputs[0], info->producer, n);
    return linear && stays && plan->work[info->producer].needed ? info->producer : -1;
}

/* Returns true if node n reads or writes a state of the group, or writes what the group reads. */
static bool disturbs(const leati_plan *plan, const selection *s, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    for (int k = 0; k < s->joined.group.input_count; ++k) {
        const leati_value_info *info = leati_plan_value(plan, s->joined.inputs[k]);
        if (!is_state(info)) continue;
        bool written = s->writes >> k & 1u;
        for (int i = 0; i < node->input_count; ++i) {
            bool writes = i < 32 && leati_plan_writes(plan, n) >> i & 1u;
            if (node->inputs[i] >= 0 && (written || writes) &&
                leati_states_overlap(leati_plan_value(plan, node->inputs[i]), info))
                return true;
        }
    }
    return false;
}

static void add_member(selection *s, const leati_node *node, int32_t first, int32_t second) {
    s->joined.group.members[s->joined.group.length++] = (leati_group_member){.op = node->op,
                                                                             .attrs = &node->attrs,
                                                                             .operands = {first, second},
                                                                             .output = LEATI_GROUP_NOTHING};
}

/* Adds average n to the group.  Returns false if the group has no room. */
static bool add(const leati_plan *plan, selection *s, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    leati_group *group = &s->joined.group;
    int32_t linear = linear_before(plan, n);
    if (group->length + 2 > LEATI_GROUP_MOST || group->input_count + 2 > LEATI_GROUP_INPUTS) return false;
    int32_t state = leati_joined_input(plan, &s->joined, node->inputs[0]);
    s->writes |= 1u << state;
    if (linear >= 0) {
        const leati_node *before = leati_plan_node(plan, linear);
        add_member(s, before, leati_joined_input(plan, &s->joined, before->inputs[0]), LEATI_GROUP_NOTHING);
        add_member(s, node, state, -group->length);
        s->nodes[s->count++] = linear;
    } else {
        add_member(s, node, state, leati_joined_input(plan, &s->joined, node->inputs[1]));
    }
    s->nodes[s->count++] = n;
    return true;
}

leat_status leati_plan_fuse_averages(leati_plan *plan, leat_error *err) {
    if (plan->options.unfused) return LEAT_OK;
    for (int32_t n = 0; n < plan->node_count; ++n) {
        if (!is_average(plan, n)) continue;
        selection s = {.joined = {.group = {.device = leati_plan_device(plan)}}};
        bool accepted;
        add(plan, &s, n);
        for (int32_t next = n + 1; next < plan->node_count; ++next) {
            if (!plan->work[next].needed) continue;
            if (disturbs(plan, &s, next)) break;
            if (is_average(plan, next) && !add(plan, &s, next)) break;
        }
        if (s.joined.group.length > 1)
            LEATI_TRY(leati_plan_join(plan, &s.joined, s.count, s.nodes, s.writes, &accepted, err));
    }
    return LEAT_OK;
}
