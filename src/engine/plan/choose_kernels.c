/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a kernel for each node.  The backends are asked in order, and the reasons of refusals are kept for the
 * description of the plan.  A backend is first offered the op with the ops that follow fused into it (fuse.c).  Room:
 * engine. */
#include <string.h>

#include "base/error.h"
#include "engine/op_semantics/geometry.h"
#include "engine/op_semantics/infer.h"
#include "engine/plan/plan_private.h"

/* A task and the memory to which it points. */
typedef struct assignment {
    leati_task task;
    leati_attrs attrs;
    leati_desc inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
} assignment;

static bool is_read(const leati_plan *plan, leati_value value) {
    return plan->place[value].last_read >= 0;
}

/* Returns how the weights of a node are to be kept.  Two matrices that are both computed have no weights. */
static leati_weights_format weights_format_of(const leati_plan *plan, const leati_node *node) {
    int32_t weights = node->op == LEATI_OP_MATMUL ? 1 : node->op == LEATI_OP_RNN ? LEATI_RNN_KERNEL : -1;
    bool stays = plan->options.weights_format && weights > 0 && leati_plan_stays(plan, node->inputs[weights]);
    if (stays && node->op == LEATI_OP_RNN) stays = leati_plan_stays(plan, node->inputs[LEATI_RNN_RECURRENT]);
    return stays ? plan->options.weights_format : LEATI_WEIGHTS_F32;
}

/* Returns how many leading axes of 1 a matrix has. */
static int unit_axes(const leati_desc *desc) {
    int axes = 0;
    while (axes < desc->rank - 2 && desc->shape[axes] == 1) ++axes;
    return axes == desc->rank - 2 ? axes : 0;
}

static void set_shape(leati_desc *desc, const leati_desc *as) {
    desc->rank = as->rank;
    memcpy(desc->shape, as->shape, sizeof desc->shape);
}

/* Describes a product as a backend computes it: without leading axes of 1, and with result and addend in the shape of
 * the product, since fuse.c may have left out a reshape behind it. */
static void describe_product(assignment *a, int input_count) {
    int axes = unit_axes(&a->inputs[0]), rows = a->inputs[0].rank - axes - 2, columns = rows + 1;
    for (int i = 0; i < 2 && axes > 0; ++i) {
        a->inputs[i].rank -= axes;
        memmove(a->inputs[i].shape, a->inputs[i].shape + axes, 2 * sizeof *a->inputs[i].shape);
    }
    leati_desc product = a->inputs[0];
    product.shape[rows] = a->inputs[0].shape[a->attrs.matmul.transpose_a ? columns : rows];
    product.shape[columns] = a->inputs[1].shape[a->attrs.matmul.transpose_b ? rows : columns];
    set_shape(&a->outputs[0], &product);
    if (a->attrs.post.kinds & LEATI_POST_ADD)
        set_shape(&a->inputs[input_count - LEATI_POST_INPUTS + LEATI_POST_ADDEND], &product);
}

/* Returns the value that reshapes make `value` of: attention has weights of three axes, which its products read as
 * matrices. */
static leati_value source_of(const leati_plan *plan, leati_value value) {
    for (;;) {
        int32_t producer = leati_plan_value(plan, value)->producer;
        if (producer < 0 || leati_plan_node(plan, producer)->op != LEATI_OP_RESHAPE) return value;
        value = leati_plan_node(plan, producer)->inputs[0];
    }
}

static void make_assignment(const leati_plan *plan, const leati_node *node, assignment *a) {
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
    if (node->op == LEATI_OP_MATMUL) describe_product(a, node->input_count);
    bool deterministic = plan->options.deterministic;
    const leati_kernel *forward =
        node->forward >= 0 ? leati_kernel_inside(&plan->work[node->forward].kernel) : NULL;
    bool stay = node->op == LEATI_OP_MATMUL && leati_plan_stays(plan, source_of(plan, node->inputs[1]));
    a->task = (leati_task){.op = node->op,
                           .attrs = &a->attrs,
                           .input_count = node->input_count,
                           .output_count = node->output_count,
                           .inputs = a->inputs,
                           .outputs = a->outputs,
                           .unused = unused,
                           .threads = leati_plan_threads(plan),
                           .deterministic = deterministic,
                           .present = plan->options.threads,
                           .measured = leati_plan_device(plan) && plan->options.measures && !deterministic,
                           .forward = forward && forward->run ? forward : NULL,
                           .device = leati_plan_device(plan),
                           .weights_format = weights_format_of(plan, node),
                           .weights_stay = stay};
}

leat_status leati_plan_ask(const leati_backend *backend, const leati_task *task, leati_kernel *kernel,
                           leati_text *declined, leat_error *err) {
    uint32_t post = task->attrs->post.kinds;
    bool has_bf16 = leati_task_has_bf16(task);
    for (size_t i = 0; i < backend->count; ++i) {
        const leati_implementation *implementation = &backend->implementations[i];
        if (implementation->op != task->op || (post & ~implementation->fuses)) continue;
        if (has_bf16 && !implementation->takes_bf16) continue;
        char why[LEATI_REASON_BYTES] = "";
        *kernel = (leati_kernel){0};
        leat_status status = implementation->prepare(task, kernel, why, err);
        if (status == LEAT_OK && kernel->run) return LEAT_OK;
        if (kernel->destroy) kernel->destroy(kernel->state);
        *kernel = (leati_kernel){0};
        LEATI_TRY(status);
        why[sizeof why - 1] = '\0';
        char fused[LEATI_POST_TEXT_BYTES];
        leati_text_add(declined, "%s%s%s: %s; ", backend->name, post ? " with " : "",
                       leati_post_text(fused, task->attrs), why);
    }
    return LEAT_OK;
}

static leat_status fail_refused(const leati_plan *plan, int32_t n, leat_error *err) {
    const leati_node *node = leati_plan_node(plan, n);
    const char *declined = plan->work[n].declined.data;
    return leati_fail(err, LEAT_ENOTSUP, "no backend supports op %s%s%s",
                      leati_op_descriptor_of(node->op)->name, declined ? ": " : "", declined ? declined : "");
}

const leati_backend *const *leati_plan_backends(const leati_plan *plan) {
    const leati_device *device = leati_plan_device(plan);
    return device ? device->backends : plan->options.backends;
}

leat_status leati_plan_ask_host(const leati_plan *plan, const leati_task *task, leati_kernel *kernel,
                                leati_text *declined, leat_error *err) {
    leati_desc inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    leati_task one = *task, wide;
    one.threads = one.present = 1;
    one.device = NULL;
    for (const leati_backend *const *b = plan->options.backends; *b && !kernel->run; ++b)
        LEATI_TRY(leati_plan_ask(*b, &one, kernel, declined, err));
    if (kernel->run || !leati_task_has_bf16(task)) return LEAT_OK;
    wide = one;
    leati_task_as_f32(&one, inputs, outputs);
    wide.inputs = inputs;
    wide.outputs = outputs;
    for (const leati_backend *const *b = plan->options.backends; *b && !kernel->run; ++b)
        LEATI_TRY(leati_plan_ask(*b, &wide, kernel, declined, err));
    return kernel->run ? leati_plan_make_f32_fallback(plan->options.backends, &one, kernel, err) : LEAT_OK;
}

leat_status leati_plan_host_kernel(const leati_plan *plan, int32_t n, leati_kernel *kernel, leat_error *err) {
    leati_text declined = {0};
    assignment a;
    make_assignment(plan, leati_plan_node(plan, n), &a);
    a.task.forward = NULL;
    leat_status status = leati_plan_ask_host(plan, &a.task, kernel, &declined, err);
    leati_text_fini(&declined);
    if (status == LEAT_OK && !kernel->run) status = fail_refused(plan, n, err);
    return status;
}

/* Finds a kernel of the host for an op that the plan's device does not serve. */
static leat_status choose_on_host(leati_plan *plan, int32_t n, leat_error *err) {
    leati_work *work = &plan->work[n];
    assignment a;
    const leati_node *node = leati_plan_node(plan, n);
    make_assignment(plan, node, &a);
    a.task.forward = node->forward >= 0 ? leati_kernel_on_host(&plan->work[node->forward].kernel) : NULL;
    LEATI_TRY(leati_plan_ask_host(plan, &a.task, &work->kernel, &work->declined, err));
    return work->kernel.run ? leati_plan_make_host_fallback(plan, &a.task, &work->kernel, err) : LEAT_OK;
}

/* Asks a backend for a kernel for node n with the first `length` nodes of its chain fused into it.  If `widened`,
 * the task has f32 in place of bf16. */
static leat_status ask_for_chain(leati_plan *plan, const leati_backend *backend, int32_t n,
                                 const leati_chain *chain, int length, bool widened, leat_error *err) {
    leati_work *work = &plan->work[n];
    leati_node node;
    assignment a;
    leati_plan_fused(plan, n, chain, length, &node);
    make_assignment(plan, &node, &a);
    leati_task task = a.task;
    leati_desc inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    if (widened) {
        if (!leati_task_has_bf16(&a.task)) return LEAT_OK;
        leati_task_as_f32(&a.task, inputs, outputs);
        task.inputs = inputs;
        task.outputs = outputs;
    }
    LEATI_TRY(leati_plan_ask(backend, &task, &work->kernel, &work->declined, err));
    if (!work->kernel.run) return LEAT_OK;
    leati_plan_tune(plan, &node, &task, work);
    if (widened)
        LEATI_TRY(leati_plan_make_f32_fallback(leati_plan_backends(plan), &a.task, &work->kernel, err));
    if (length > 0) leati_plan_fuse(plan, n, chain, length, &node);
    return LEAT_OK;
}

/* Asks each backend for the longest chain first, then for shorter ones, and finally for the op alone.  If all backends
 * refuse a bf16 task, they are asked again with f32. */
static leat_status choose(leati_plan *plan, int32_t n, leat_error *err) {
    leati_work *work = &plan->work[n];
    leati_chain chain;
    leati_plan_chain(plan, n, &chain);
    for (int widened = 0; widened < 2; ++widened)
        for (const leati_backend *const *backend = leati_plan_backends(plan); *backend && !work->kernel.run;
             ++backend)
            for (int length = chain.length; length >= 0 && !work->kernel.run; --length)
                LEATI_TRY(ask_for_chain(plan, *backend, n, &chain, length, widened, err));
    if (!work->kernel.run && leati_plan_device(plan)) LEATI_TRY(choose_on_host(plan, n, err));
    return work->kernel.run ? LEAT_OK : fail_refused(plan, n, err);
}

/* Reports the progress of measuring, which may take seconds. */
static void report_progress(const leati_plan *plan, double share) {
    const leati_plan_options *o = &plan->options;
    if (o->watch && o->measures && !o->deterministic) o->watch(o->watcher, share);
}

static leat_status choose_kernels(leati_plan *plan, bool rest, leat_error *err) {
    for (int32_t n = 0; n < plan->node_count; ++n) {
        const leati_node *node = leati_plan_node(plan, n);
        bool late = node->op == LEATI_OP_STORE || (leati_op_descriptor_of(node->op)->flags & LEATI_OP_VIEW);
        if (!plan->work[n].needed || plan->work[n].virtual || late != rest) continue;
        if (!rest) report_progress(plan, (n + 1.0) / (plan->node_count + 1.0));
        leat_status status = choose(plan, n, err);
        if (status != LEAT_OK && node->label) return leati_prefix(status, err, "'%s'", node->label);
        LEATI_TRY(status);
    }
    return LEAT_OK;
}

leat_status leati_plan_choose(leati_plan *plan, leat_error *err) {
    report_progress(plan, 0);
    leat_status status = choose_kernels(plan, false, err);
    report_progress(plan, 1);
    if (plan->options.arena->choices) leati_tuning_cache_save(plan->options.arena->choices);
    return status;
}

leat_status leati_plan_choose_rest(leati_plan *plan, leat_error *err) {
    return choose_kernels(plan, true, err);
}
