/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel serves each node: the backends are asked in order, and what each refuses is kept for the describer.  A
 * function after a product or convolution is offered to the same backend fused into it.  Layer: engine. */
#include <string.h>

#include "base/error.h"
#include "engine/infer.h"
#include "engine/plan_private.h"

/* A task, with the memory that it points into. */
typedef struct assignment {
    leati_task task;
    leati_attrs attrs;
    leati_desc inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
} assignment;

static bool is_read(const leati_plan *plan, leati_value value) {
    return plan->place[value].last_read >= 0;
}

static void assign(const leati_plan *plan, const leati_node *node, assignment *a) {
    *a = (assignment){.attrs = node->attrs};
    for (int i = 0; i < node->input_count; ++i) {
        if (node->inputs[i] < 0)
            a->inputs[i].rank = -1;
        else
            a->inputs[i] = leati_plan_value(plan, node->inputs[i])->desc;
    }
    uint32_t unused = 0;
    for (int i = 0; i < node->output_count; ++i) {
        a->outputs[i] = leati_plan_value(plan, node->outputs[i])->desc;
        if (!is_read(plan, node->outputs[i])) unused |= 1u << i;
    }
    const leati_kernel *forward = node->forward >= 0 ? &plan->work[node->forward].kernel : NULL;
    a->task = (leati_task){.op = node->op,
                           .attrs = &a->attrs,
                           .input_count = node->input_count,
                           .output_count = node->output_count,
                           .inputs = a->inputs,
                           .outputs = a->outputs,
                           .unused = unused,
                           .threads = plan->options.threads,
                           .forward = forward && forward->run ? forward : NULL};
}

/* The function that alone reads what node n makes, and whose derivative does not ask for that value; -1: none. */
static int32_t fusable_function(const leati_plan *plan, int32_t n) {
    const leati_node *node = leati_plan_node(plan, n);
    if (node->op != LEATI_OP_MATMUL && node->op != LEATI_OP_CONV) return -1;
    const leati_place *place = &plan->place[node->outputs[0]];
    if (node->attrs.post.present || place->readers != 1 || place->last_read >= plan->node_count) return -1;
    const leati_node *reader = leati_plan_node(plan, place->last_read);
    return reader->op == LEATI_OP_ELTWISE && leati_eltwise_uses_dst(&reader->attrs.eltwise) ? place->last_read
                                                                                            : -1;
}

/* Asks one backend.  kernel->run stays NULL where all of its implementations refuse. */
static leat_status ask(const leati_backend *backend, const leati_task *task, leati_kernel *kernel,
                       leati_text *declined, leat_error *err) {
    if (task->attrs->post.present && !backend->fuses) return LEAT_OK;
    for (size_t i = 0; i < backend->count; ++i) {
        const leati_implementation *implementation = &backend->implementations[i];
        if (implementation->op != task->op) continue;
        char why[LEATI_REASON_BYTES] = "";
        *kernel = (leati_kernel){0};
        leat_status status = implementation->prepare(task, kernel, why, err);
        if (status == LEAT_OK && kernel->run) return LEAT_OK;
        if (kernel->destroy) kernel->destroy(kernel->state);
        *kernel = (leati_kernel){0};
        LEATI_TRY(status);
        why[sizeof why - 1] = '\0';
        leati_text_add(declined, "%s%s%s: %s; ", backend->name, task->attrs->post.present ? " with " : "",
                       task->attrs->post.present ? leati_function_name(task->attrs->post.function.function)
                                                 : "",
                       why);
    }
    return LEAT_OK;
}

/* The node takes over what the function after it made. */
static void fuse(leati_plan *plan, int32_t n, int32_t function, const leati_attrs *attrs) {
    leati_node *node = leati_graph_node_mutable(plan->graph, n);
    leati_value dst = leati_plan_node(plan, function)->outputs[0];
    node->attrs = *attrs;
    node->outputs[0] = dst;
    leati_graph_value_mutable(plan->graph, dst)->producer = n;
    plan->work[function].needed = false;
    leati_plan_count_readers(plan);
}

static leat_status refused_by_all(const leati_plan *plan, int32_t n, leat_error *err) {
    const leati_node *node = leati_plan_node(plan, n);
    const char *declined = plan->work[n].declined.data;
    return leati_fail(err, LEAT_ENOTSUP, "no backend serves op %s%s%s", leati_op_row_of(node->op)->name,
                      declined ? ": " : "", declined ? declined : "");
}

static leat_status choose(leati_plan *plan, int32_t n, leat_error *err) {
    leati_work *work = &plan->work[n];
    assignment plain, fused;
    assign(plan, leati_plan_node(plan, n), &plain);
    int32_t function = fusable_function(plan, n);
    if (function >= 0) {
        assign(plan, leati_plan_node(plan, n), &fused);
        fused.attrs.post.present = true;
        fused.attrs.post.function = leati_plan_node(plan, function)->attrs.eltwise;
        fused.task.unused = 0;
    }
    for (const leati_backend *const *backend = plan->options.backends; *backend && !work->kernel.run;
         ++backend) {
        if (function >= 0) {
            LEATI_TRY(ask(*backend, &fused.task, &work->kernel, &work->declined, err));
            if (work->kernel.run) fuse(plan, n, function, &fused.attrs);
        }
        if (!work->kernel.run) LEATI_TRY(ask(*backend, &plain.task, &work->kernel, &work->declined, err));
    }
    return work->kernel.run ? LEAT_OK : refused_by_all(plan, n, err);
}

static leat_status choose_where(leati_plan *plan, bool rest, leat_error *err) {
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_node *node = leati_plan_node(plan, n);
        bool late = node->op == LEATI_OP_STORE || (leati_op_row_of(node->op)->flags & LEATI_OP_VIEW);
        if (!plan->work[n].needed || plan->work[n].virtual || late != rest) continue;
        leat_status status = choose(plan, n, err);
        if (status != LEAT_OK && node->label) return leati_prefix(status, err, "'%s'", node->label);
        LEATI_TRY(status);
    }
    return LEAT_OK;
}

leat_status leati_plan_choose(leati_plan *plan, leat_error *err) {
    return choose_where(plan, false, err);
}

leat_status leati_plan_choose_rest(leati_plan *plan, leat_error *err) {
    return choose_where(plan, true, err);
}
