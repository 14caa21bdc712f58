/* SPDX-License-Identifier: Apache-2.0 */
/* Joins a MATMUL of the backward pass of a Dense layer with its neighbour: the gradient with
 * respect to the input with the ELTWISE_BWD that reads it, and the gradient with respect to the weights with the REDUCE
 * that computes the gradient with respect to the bias; and a SOFTMAX_XENT with the multiplication of its gradient.  A
 * group runs where its first node was.  Room: engine. */
#include "base/error.h"
#include "engine/plan/plan_private.h"
#include "tensor/bfloat16.h"

/* Nodes behind a MATMUL among which its REDUCE is searched. */
enum { MOST_BETWEEN = 64 };

static const leati_desc *desc_of(const leati_plan *plan, leati_value value) {
    return &leati_plan_value(plan, value)->desc;
}

static bool is_float(const leati_desc *desc) {
    return desc->dtype == LEAT_F32 || desc->dtype == LEATI_BF16;
}

/* Returns true if node n is a node of this op that runs, with one float output of its own memory. */
static bool is_free(const leati_plan *plan, int32_t n, leati_op op) {
    const leati_node *node = leati_plan_node(plan, n);
    const leati_work *work = &plan->work[n];
    if (node->op != op || !work->needed || !work->kernel.run || work->joined || node->attrs.post.kinds)
        return false;
    const leati_value_info *out = leati_plan_value(plan, node->outputs[0]);
    return out->storage == LEATI_IN_ARENA && is_float(&out->desc);
}

static bool is_product(const leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    if (!is_free(plan, n, LEATI_OP_MATMUL) || plan->work[n].measured || node->inputs[0] == node->inputs[1])
        return false;
    for (int i = 2; i < node->input_count; ++i)
        if (node->inputs[i] >= 0) return false;
    return is_float(desc_of(plan, node->inputs[0])) && is_float(desc_of(plan, node->inputs[1]));
}

/* Returns true if node n can read `value` in place of the later node `reader`. */
static bool is_available(const leati_plan *plan, leati_value value, int32_t n, int32_t reader) {
    const leati_value_info *info = leati_plan_value(plan, value);
    if (info->storage == LEATI_IN_ARENA) return info->producer < n;
    return info->storage != LEATI_IN_SLAB || !leati_plan_is_written(plan, value, n, reader);
}

/* Returns the ELTWISE_BWD that is the only reader of the product, or -1. */
static int32_t slope_after(const leati_plan *plan, int32_t n) {
    leati_value value = leati_plan_node(plan, n)->outputs[0];
    const leati_location *place = &plan->place[value];
    if (leati_plan_value(plan, value)->output || place->readers != 1) return -1;
    int32_t reader = place->last_read;
    if (reader <= n || reader >= plan->node_count || !is_free(plan, reader, LEATI_OP_ELTWISE_BWD)) return -1;
    const leati_node *node = leati_plan_node(plan, reader);
    leati_value at = node->inputs[0];
    bool suits = node->inputs[1] == value && at != value && is_float(desc_of(plan, at)) &&
                 leati_desc_same_shape(desc_of(plan, at), desc_of(plan, value)) &&
                 is_available(plan, at, n, reader);
    return suits ? reader : -1;
}

/* Returns the REDUCE that sums the rows of the product's second operand, or -1. */
static int32_t sums_after(const leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    leati_value rows = node->inputs[1];
    if (!node->attrs.matmul.transpose_a || node->attrs.matmul.transpose_b || desc_of(plan, rows)->rank != 2)
        return -1;
    for (int32_t next = n + 1; next < plan->node_count && next <= n + MOST_BETWEEN; ++next) {
        if (!is_free(plan, next, LEATI_OP_REDUCE)) continue;
        const leati_node *reduce = leati_plan_node(plan, next);
        bool sums = reduce->inputs[0] == rows && reduce->attrs.reduce.kind == LEATI_REDUCE_SUM &&
                    reduce->attrs.reduce.axes == 1;
        if (sums && is_available(plan, rows, n, next)) return next;
    }
    return -1;
}

static leati_joined group_of(const leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    leati_joined j = {.group = {.deterministic = plan->options.deterministic,
                                .threads = leati_plan_threads(plan),
                                .device = leati_plan_device(plan)}};
    leati_joined_input(plan, &j, node->inputs[0]);
    leati_joined_input(plan, &j, node->inputs[1]);
    return j;
}

static void add_member(const leati_plan *plan, leati_joined *j, int32_t n, int32_t first, int32_t second,
                       int32_t output) {
    const leati_node *node = leati_plan_node(plan, n);
    leati_group *group = &j->group;
    group->members[group->length++] = (leati_group_member){.op = node->op,
                                                           .attrs = &node->attrs,
                                                           .operands = {first, second},
                                                           .output = output};
    if (output == LEATI_GROUP_NOTHING) return;
    j->outputs[output] = node->outputs[0];
    group->outputs[output] = *desc_of(plan, node->outputs[0]);
    group->output_count++;
}

static leat_status join_slope(leati_plan *plan, int32_t n, int32_t slope, leat_error *err) {
    const int32_t nodes[] = {slope, n};
    bool accepted;
    leati_joined j = group_of(plan, n);
    int32_t at = leati_joined_input(plan, &j, leati_plan_node(plan, slope)->inputs[0]);
    add_member(plan, &j, n, 0, 1, LEATI_GROUP_NOTHING);
    add_member(plan, &j, slope, at, -1, 0);
    return leati_plan_join(plan, &j, 2, nodes, 0, &accepted, err);
}

static leat_status join_sums(leati_plan *plan, int32_t n, int32_t sums, leat_error *err) {
    const int32_t nodes[] = {sums, n};
    bool accepted;
    leati_joined j = group_of(plan, n);
    add_member(plan, &j, sums, 1, LEATI_GROUP_NOTHING, 1);
    add_member(plan, &j, n, 0, 1, 0);
    return leati_plan_join(plan, &j, 2, nodes, 0, &accepted, err);
}

/* ---- Losses ---- */

/* Returns true if the tensor has one number for each row of `whole`, or for all. */
static bool is_scale(const leati_desc *desc, const leati_desc *whole) {
    int last = whole->rank - 1;
    int64_t rows = 1;
    if (!is_float(desc)) return false;
    if (leati_desc_count(desc) == 1) return desc->rank <= whole->rank;
    if (desc->rank != whole->rank || desc->shape[last] != 1) return false;
    for (int axis = 0; axis < last; ++axis) rows *= whole->shape[axis];
    return leati_desc_count(desc) == rows;
}

/* Returns the BINARY that is the only reader of the gradient of SOFTMAX_XENT, and its other operand; or -1. */
static int32_t scale_after(const leati_plan *plan, int32_t n, leati_value *scale) {
    const leati_node *node = leati_plan_node(plan, n);
    leati_value gradient = node->outputs[1];
    const leati_location *place = &plan->place[gradient];
    if (leati_plan_value(plan, gradient)->output || place->readers != 1) return -1;
    int32_t reader = place->last_read;
    if (reader <= n || reader >= plan->node_count || !is_free(plan, reader, LEATI_OP_BINARY)) return -1;
    const leati_node *binary = leati_plan_node(plan, reader);
    *scale = binary->inputs[0] == gradient ? binary->inputs[1] : binary->inputs[0];
    bool suits = binary->attrs.binary.kind == LEATI_MUL && *scale != gradient && *scale != node->inputs[0] &&
                 *scale != node->inputs[1] && node->inputs[0] != node->inputs[1] &&
                 is_scale(desc_of(plan, *scale), desc_of(plan, gradient)) &&
                 is_available(plan, *scale, n, reader);
    return suits ? reader : -1;
}

static leat_status join_loss(leati_plan *plan, int32_t n, int32_t binary, leati_value scale,
                             leat_error *err) {
    const int32_t nodes[] = {binary, n};
    bool accepted;
    leati_joined j = group_of(plan, n);
    add_member(plan, &j, n, 0, 1, 1);
    add_member(plan, &j, binary, -1, leati_joined_input(plan, &j, scale), 0);
    return leati_plan_join(plan, &j, 2, nodes, 0, &accepted, err);
}

leat_status leati_plan_fuse_products(leati_plan *plan, leat_error *err) {
    if (plan->options.unfused) return LEAT_OK;
    for (int32_t n = 0; n < plan->node_count; ++n) {
        leati_value scale = LEATI_NONE;
        int32_t binary = is_free(plan, n, LEATI_OP_SOFTMAX_XENT) ? scale_after(plan, n, &scale) : -1;
        if (binary >= 0) LEATI_TRY(join_loss(plan, n, binary, scale, err));
        if (!is_product(plan, n)) continue;
        int32_t slope = slope_after(plan, n), sums = slope < 0 ? sums_after(plan, n) : -1;
        if (slope >= 0) LEATI_TRY(join_slope(plan, n, slope, err));
        if (sums >= 0) LEATI_TRY(join_sums(plan, n, sums, err));
    }
    return LEAT_OK;
}
