/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan does, for people: LEAT_VERBOSE=1.  Layer: engine. */
#include "engine/infer.h"
#include "engine/plan_private.h"

static void add_values(const leati_plan *plan, int count, const leati_value *values, leati_text *text) {
    char shape[LEATI_DESC_TEXT_BYTES];
    for (int i = 0; i < count; ++i) {
        if (values[i] < 0) {
            leati_text_add(text, " -");
            continue;
        }
        const leati_desc *desc = &leati_plan_value(plan, values[i])->desc;
        leati_text_add(text, " %s", leati_shape_text(shape, sizeof shape, desc->rank, desc->shape));
        if (desc->dtype != LEAT_F32) leati_text_add(text, "%s", leat_dtype_name(desc->dtype));
    }
}

/* "relu", or "" */
static const char *function_of(const leati_node *node) {
    if (node->op == LEATI_OP_ELTWISE || node->op == LEATI_OP_ELTWISE_BWD)
        return leati_function_name(node->attrs.eltwise.function);
    return node->attrs.post.present ? leati_function_name(node->attrs.post.function.function) : "";
}

static void describe_step(const leati_plan *plan, int32_t n, leati_text *text) {
    const leati_node *node = leati_plan_node(plan, n);
    const leati_work *work = &plan->work[n];
    const char *function = function_of(node);
    leati_text_add(text, "%s%s%s '%s'", leati_op_row_of(node->op)->name, *function ? " " : "", function,
                   node->label ? node->label : "");
    add_values(plan, node->input_count, node->inputs, text);
    leati_text_add(text, " ->");
    add_values(plan, node->output_count, node->outputs, text);
    leati_text_add(text, ": %s", work->kernel.implementation);
    if (work->declined.length) {
        /* without the last "; " */
        leati_text_add(text, " (%.*s)", (int)work->declined.length - 2, work->declined.data);
    }
    leati_text_add(text, "\n");
}

void leati_plan_describe(const leati_plan *plan, leati_text *text) {
    for (int32_t s = 0; s < plan->step_count; ++s) describe_step(plan, plan->steps[s], text);
    leati_text_add(text, "arena %zu bytes, %zu alive at most, %d steps of %d nodes\n", plan->arena_bytes,
                   plan->bound_bytes, plan->step_count, plan->node_count);
}
