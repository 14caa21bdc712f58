/* SPDX-License-Identifier: Apache-2.0 */
/* Describes the steps of a plan as text, for example for LEAT_VERBOSE=1.  Room: engine. */
#include <stdio.h>

#include "engine/op_semantics/attention.h"
#include "engine/op_semantics/geometry.h"
#include "engine/op_semantics/infer.h"
#include "engine/plan/plan_private.h"

/* ---- Figures of a step ---- */

/* Writes names such as "eltwise relu", "conv+norm+add+relu" and "relu+batch_norm_bwd"; with a sum of gradients that the
 * kernel computes, "add+relu+batch_norm_bwd".  Two convolutions that one kernel computes are "conv+conv". */
static void name_step(const leati_node *node, const leati_work *work, char *out, size_t size) {
    char fused[LEATI_POST_TEXT_BYTES];
    bool function = node->op == LEATI_OP_ELTWISE || node->op == LEATI_OP_ELTWISE_BWD;
    bool rectified = node->op == LEATI_OP_BATCH_NORM_BWD && node->input_count > 5 && node->inputs[5] >= 0;
    bool adds = node->op == LEATI_OP_BATCH_NORM_BWD && node->input_count > 7 && node->inputs[7] >= 0;
    bool two = work->joined && node->op == LEATI_OP_CONV;
    snprintf(out, size, "%s%s%s%s%s%s%s%s", adds ? "add+" : "", rectified ? "relu+" : "", two ? "conv+" : "",
             leati_op_descriptor_of(node->op)->name, function ? " " : "",
             function ? leati_function_name(node->attrs.eltwise.function) : "",
             node->attrs.post.kinds ? "+" : "", leati_post_text(fused, &node->attrs));
}

static const leati_desc *input_desc(const leati_plan *plan, const leati_node *node, int i) {
    return &leati_plan_value(plan, node->inputs[i])->desc;
}

static double conv_operations(const leati_plan *plan, const leati_node *node) {
    leati_desc in[3] = {{.rank = -1}, {.rank = -1}, {.rank = -1}};
    leati_geometry g;
    for (int i = 0; i < node->input_count && i < 3; ++i)
        if (node->inputs[i] >= 0) in[i] = *input_desc(plan, node, i);
    if (leati_conv_geometry(&g, node->op, &node->attrs, in, NULL) != LEAT_OK) return 0;
    return 2.0 * (double)g.out_pixels * (double)g.taps * (double)g.channels * (double)g.filters /
           (double)g.groups;
}

static double matmul_operations(const leati_plan *plan, const leati_node *node) {
    const leati_desc *a = input_desc(plan, node, 0), *dst = &leati_plan_value(plan, node->outputs[0])->desc;
    return 2.0 * (double)leati_desc_count(dst) *
           (double)a->shape[a->rank - (node->attrs.matmul.transpose_a ? 2 : 1)];
}

/* Counts the two products of every time step.  The backward pass has each product twice: for the gradients with respect
 * to its operand and with respect to its weights. */
static double rnn_operations(const leati_plan *plan, const leati_node *node) {
    const leati_desc *x = input_desc(plan, node, LEATI_RNN_X);
    double steps = (double)(x->shape[0] * x->shape[1]);
    double weights = (double)(leati_desc_count(input_desc(plan, node, LEATI_RNN_KERNEL)) +
                              leati_desc_count(input_desc(plan, node, LEATI_RNN_RECURRENT)));
    return (node->op == LEATI_OP_RNN ? 2 : 4) * steps * weights;
}

/* Counts the two products; the backward pass computes the scores again and has two products for each of the two. */
static double attention_operations(const leati_plan *plan, const leati_node *node) {
    const leati_desc in[] = {*input_desc(plan, node, 0),
                             *input_desc(plan, node, 1),
                             *input_desc(plan, node, 2),
                             {.rank = -1}};
    const leati_attention_sizes s = leati_attention_sizes_of(in);
    const double pairs = (double)(s.batch * s.heads * s.queries) * (double)s.keys;
    return pairs *
           (double)(node->op == LEATI_OP_ATTENTION ? 2 * s.depth + 2 * s.width : 6 * s.depth + 4 * s.width);
}

double leati_plan_operations(const leati_plan *plan, const leati_node *node) {
    switch (node->op) {
    case LEATI_OP_MATMUL: return matmul_operations(plan, node);
    case LEATI_OP_CONV:
    case LEATI_OP_CONV_BWD_DATA:
    case LEATI_OP_CONV_BWD_WEIGHTS: return conv_operations(plan, node);
    case LEATI_OP_RNN:
    case LEATI_OP_RNN_BWD: return rnn_operations(plan, node);
    case LEATI_OP_ATTENTION:
    case LEATI_OP_ATTENTION_BWD: return attention_operations(plan, node);
    default: return 0;
    }
}

static bool is_repeated(const leati_node *node, int input) {
    for (int i = 0; i < input; ++i)
        if (node->inputs[i] == node->inputs[input]) return true;
    return false;
}

static void add_bytes(const leati_plan *plan, int32_t n, leati_plan_step *out) {
    const leati_node *node = leati_plan_node(plan, n);
    const leati_kernel *kernel = &plan->work[n].kernel;
    uint32_t writes = leati_plan_writes(plan, n);
    out->arena_bytes = leati_plan_scratch_bytes(&plan->work[n]);
    for (int i = 0; i < node->input_count; ++i) {
        if (node->inputs[i] < 0 || is_repeated(node, i)) continue;
        size_t bytes = leati_desc_bytes(input_desc(plan, node, i));
        out->bytes += i < 32 && writes >> i & 1u ? 2 * bytes : bytes;
    }
    for (int i = 0; i < node->output_count; ++i) {
        leati_value v = node->outputs[i];
        if (leati_plan_is_left_out(plan, node, v)) continue;
        size_t bytes = kernel->output_bytes[i] ? kernel->output_bytes[i]
                                               : leati_desc_bytes(&leati_plan_value(plan, v)->desc);
        out->bytes += bytes;
        if (plan->place[v].root == v) out->arena_bytes += bytes;
    }
}

int64_t leati_plan_group_size(const leati_plan *plan) {
    return plan->front ? plan->front->samples : 0;
}

static int32_t front_steps(const leati_plan *plan) {
    return plan->front ? plan->front->plan->step_count : 0;
}

int32_t leati_plan_step_count(const leati_plan *plan) {
    return front_steps(plan) + plan->step_count;
}

/* Describes a step of the front: what it does in all its runs. */
static void get_front_step(const leati_front *front, int32_t step, leati_plan_step *out) {
    leati_plan_step_get(front->plan, step, out);
    out->runs = front->groups;
    out->operations *= (double)front->groups;
    out->bytes *= (size_t)front->groups;
    out->reorders *= (int)front->groups;
    out->reorder_bytes *= (size_t)front->groups;
}

void leati_plan_step_get(const leati_plan *plan, int32_t step, leati_plan_step *out) {
    if (step < front_steps(plan)) {
        get_front_step(plan->front, step, out);
        return;
    }
    int32_t n = plan->steps[step - front_steps(plan)];
    const leati_work *work = &plan->work[n];
    const leati_node *node = leati_plan_node(plan, n);
    *out = (leati_plan_step){.graph = plan->graph,
                             .node = node,
                             .runs = 1,
                             .implementation = work->kernel.implementation,
                             .layout = *work->kernel.layout ? work->kernel.layout : "plain",
                             .measured = work->measured,
                             .declined = work->declined.data ? work->declined.data : "",
                             .operations = work->joined && work->operations > 0
                                               ? work->operations
                                               : leati_plan_operations(plan, node),
                             .reorders = work->kernel.reorders,
                             .reorder_bytes = work->kernel.reorder_bytes,
                             .kept_bytes = work->pack ? work->pack->bytes : 0};
    if (!work->pack) {
        out->reorders += work->kernel.pack_reorders;
        out->reorder_bytes += work->kernel.pack_reorder_bytes;
    }
    name_step(node, work, out->op, sizeof out->op);
    add_bytes(plan, n, out);
}

/* ---- LEAT_VERBOSE=1 ---- */

static void add_values(const leati_plan *plan, int count, const leati_value *values, leati_text *text) {
    char shape[LEATI_DESC_TEXT_BYTES];
    for (int i = 0; i < count; ++i) {
        if (values[i] < 0) {
            leati_text_add(text, " -");
            continue;
        }
        const leati_desc *desc = &leati_plan_value(plan, values[i])->desc;
        leati_text_add(text, " %s", leati_shape_text(shape, sizeof shape, desc->rank, desc->shape));
        if (desc->dtype != LEAT_F32) leati_text_add(text, "%s", leati_dtype_name(desc->dtype));
    }
}

static void describe_step(const leati_plan *plan, int32_t n, leati_text *text) {
    const leati_node *node = leati_plan_node(plan, n);
    const leati_work *work = &plan->work[n];
    char name[LEATI_STEP_NAME_BYTES];
    name_step(node, work, name, sizeof name);
    leati_text_add(text, "%s '%s'", name, node->label ? node->label : "");
    add_values(plan, node->input_count, node->inputs, text);
    leati_text_add(text, " ->");
    add_values(plan, node->output_count, node->outputs, text);
    leati_text_add(text, ": %s%s", work->kernel.implementation, work->measured ? ", measured" : "");
    if (work->declined.length) {
        /* The last "; " is left out. */
        leati_text_add(text, " (%.*s)", (int)work->declined.length - 2, work->declined.data);
    }
    leati_text_add(text, "\n");
}

int64_t leati_plan_narrow_weights(const leati_plan *plan) {
    int64_t count = plan->front ? leati_plan_narrow_weights(plan->front->plan) : 0;
    for (int32_t s = 0; s < plan->step_count; ++s) count += plan->work[plan->steps[s]].kernel.narrow_weights;
    return count;
}

void leati_plan_describe(const leati_plan *plan, leati_text *text) {
    if (plan->front) {
        leati_plan_describe(plan->front->plan, text);
        leati_text_add(text, "the steps above run %lld times, for %lld samples each\n",
                       (long long)plan->front->groups, (long long)plan->front->samples);
    }
    for (int32_t s = 0; s < plan->step_count; ++s) describe_step(plan, plan->steps[s], text);
    leati_text_add(text, "arena %zu bytes, %zu alive at most, %d steps of %d nodes\n", plan->arena_bytes,
                   plan->bound_bytes, plan->step_count, plan->node_count);
}
