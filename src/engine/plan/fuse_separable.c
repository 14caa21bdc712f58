/* SPDX-License-Identifier: Apache-2.0 */
/* Joins a depthwise convolution with the convolution that alone reads it, each with the ops that are fused into it
 * (fuse.c).  The group runs where the second one was.  Room: engine. */
#include "base/error.h"
#include "engine/op_semantics/geometry.h"
#include "engine/plan/plan_private.h"

/* Returns true if node n is a convolution that runs and was not measured, and gives its geometry. */
static bool is_convolution(const leati_plan *plan, int32_t n, leati_geometry *g) {
    const leati_node *node = leati_plan_node(plan, n);
    const leati_work *work = &plan->work[n];
    leati_desc in[3] = {{.rank = -1}, {.rank = -1}, {.rank = -1}};
    if (node->op != LEATI_OP_CONV || !work->needed || !work->kernel.run || work->joined || work->measured)
        return false;
    for (int i = 0; i < node->input_count && i < 3; ++i)
        if (node->inputs[i] >= 0) in[i] = leati_plan_value(plan, node->inputs[i])->desc;
    return leati_conv_geometry(g, node->op, &node->attrs, in, NULL) == LEAT_OK;
}

/* Returns the convolution with windows of one pixel that is the only reader of the depthwise convolution n, as its
 * source; or -1. */
static int32_t reader_of(const leati_plan *plan, int32_t n) {
    leati_geometry g;
    if (!is_convolution(plan, n, &g) || g.groups != g.channels || g.filters != g.channels) return -1;
    leati_value between = leati_plan_node(plan, n)->outputs[0];
    const leati_location *place = &plan->place[between];
    if (place->readers != 1 || place->last_read <= n || place->last_read >= plan->node_count) return -1;
    if (leati_plan_value(plan, between)->storage != LEATI_IN_ARENA) return -1;
    int32_t reader = place->last_read;
    bool suits = is_convolution(plan, reader, &g) && g.taps == 1 && g.groups == 1 &&
                 leati_plan_node(plan, reader)->inputs[0] == between;
    return suits ? reader : -1;
}

/* Adds the inputs of a node from `from` on, in their order. */
static void add_inputs(const leati_plan *plan, leati_joined *j, int32_t n, int from) {
    const leati_node *node = leati_plan_node(plan, n);
    leati_group *group = &j->group;
    for (int i = from; i < node->input_count; ++i) {
        leati_value value = node->inputs[i];
        leati_desc absent = {.rank = -1};
        j->inputs[group->input_count] = value;
        group->inputs[group->input_count++] = value < 0 ? absent : leati_plan_value(plan, value)->desc;
    }
}

static leat_status join(leati_plan *plan, int32_t n, int32_t reader, leat_error *err) {
    const int32_t nodes[] = {n, reader};
    const leati_node *first = leati_plan_node(plan, n), *second = leati_plan_node(plan, reader);
    double operations = leati_plan_operations(plan, first) + leati_plan_operations(plan, second);
    leati_joined j = {.group = {.length = 2,
                                .output_count = 1,
                                .whole = leati_plan_value(plan, first->outputs[0])->desc,
                                .deterministic = plan->options.deterministic,
                                .threads = leati_plan_threads(plan)}};
    bool accepted;
    if (first->input_count + second->input_count > LEATI_GROUP_INPUTS) return LEAT_OK;
    add_inputs(plan, &j, n, 0);
    j.group.members[0] = (leati_group_member){LEATI_OP_CONV, &first->attrs, {0, 1}, LEATI_GROUP_NOTHING};
    j.group.members[1] = (leati_group_member){LEATI_OP_CONV, &second->attrs, {-1, j.group.input_count}, 0};
    add_inputs(plan, &j, reader, 1);
    j.outputs[0] = second->outputs[0];
    j.group.outputs[0] = leati_plan_value(plan, j.outputs[0])->desc;
    LEATI_TRY(leati_plan_join(plan, &j, 2, nodes, 0, &accepted, err));
    if (accepted) plan->work[reader].operations = operations;
    return LEAT_OK;
}

leat_status leati_plan_fuse_separable(leati_plan *plan, leat_error *err) {
    if (plan->options.unfused) return LEAT_OK;
    for (int32_t n = 0; n < plan->node_count; ++n) {
        int32_t reader = reader_of(plan, n);
        if (reader >= 0) LEATI_TRY(join(plan, n, reader, err));
    }
    return LEAT_OK;
}
