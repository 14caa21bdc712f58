/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a group of nodes, which one kernel computes, in the place of one of them, the last that the caller
 * names.  fuse_averages.c, fuse_products.c, fuse_elementwise.c and fuse_separable.c find the groups.  Room: engine. */
#include <string.h>

#include "base/error.h"
#include "engine/plan/plan_private.h"

int32_t leati_joined_input(const leati_plan *plan, leati_joined *joined, leati_value value) {
    leati_group *group = &joined->group;
    for (int k = 0; k < group->input_count; ++k)
        if (joined->inputs[k] == value) return k;
    int k = group->input_count;
    if (k == LEATI_GROUP_INPUTS) return -1;
    joined->inputs[k] = value;
    group->inputs[k] = leati_plan_value(plan, value)->desc;
    group->input_count++;
    return k;
}

static leat_status ask(const leati_plan *plan, const leati_group *group, leati_kernel *kernel,
                       leat_error *err) {
    const leati_backend *const *backend = leati_plan_backends(plan);
    for (; *backend; ++backend) {
        char why[LEATI_REASON_BYTES] = "";
        if (!(*backend)->prepare_group) continue;
        leat_status status = (*backend)->prepare_group(group, kernel, why, err);
        if (status == LEAT_OK && kernel->run) return LEAT_OK;
        if (kernel->destroy) kernel->destroy(kernel->state);
        *kernel = (leati_kernel){0};
        LEATI_TRY(status);
    }
    return LEAT_OK;
}

static void drop_kernel(leati_work *work) {
    if (work->kernel.destroy) work->kernel.destroy(work->kernel.state);
    work->kernel = (leati_kernel){0};
}

leat_status leati_plan_join(leati_plan *plan, const leati_joined *joined, int count, const int32_t *nodes,
                            uint32_t writes, bool *accepted, leat_error *err) {
    const leati_group *group = &joined->group;
    int32_t last = nodes[count - 1];
    leati_node *node = leati_graph_node_mutable(plan->graph, last);
    leati_work *work = &plan->work[last];
    leati_kernel kernel = {0};
    LEATI_TRY(ask(plan, group, &kernel, err));
    *accepted = kernel.run != NULL;
    if (!kernel.run) return LEAT_OK;
    for (int m = 0; m < count; ++m) {
        drop_kernel(&plan->work[nodes[m]]);
        plan->work[nodes[m]].needed = nodes[m] == last;
    }
    work->kernel = kernel;
    work->joined = true;
    work->writes = writes;
    node->input_count = group->input_count;
    node->output_count = group->output_count;
    memcpy(node->inputs, joined->inputs, (size_t)node->input_count * sizeof *node->inputs);
    memcpy(node->outputs, joined->outputs, (size_t)node->output_count * sizeof *node->outputs);
    for (int k = 0; k < node->output_count; ++k)
        leati_graph_value_mutable(plan->graph, node->outputs[k])->producer = last;
    leati_plan_count_readers(plan);
    return LEAT_OK;
}
