/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter: it runs nodes in program order, and no two values share memory. */
#include "engine/interpret.h"

#include "backends/ref/ref.h"
#include "base/memory.h"
#include "cmocka_all.h"

typedef struct machine {
    const leati_graph *graph;
    const void *const *inputs;
    float *const *slabs;
    void **values;
} machine;

static void *address_of(const machine *m, leati_value value) {
    if (value < 0) return NULL;
    const leati_value_info *info = leati_graph_value(m->graph, value);
    union {
        const void *read;
        void *argument;
    } address = {.argument = m->values[value]};
    switch (info->storage) {
    case LEATI_IN_INPUT: address.read = m->inputs[info->where.input]; break;
    case LEATI_IN_CONSTANT: address.read = info->where.constant; break;
    case LEATI_IN_SLAB:
        address.argument = (unsigned char *)m->slabs[info->where.slab] + info->where.offset_bytes;
        break;
    case LEATI_IN_ARENA: break;
    }
    return address.argument;
}

static void prepare(const leati_task *task, leati_kernel *kernel) {
    char why[LEATI_REASON_BYTES] = "";
    leat_error err = {0};
    for (size_t i = 0; i < leati_backend_ref.count && !kernel->run; ++i)
        if (leati_backend_ref.implementations[i].op == task->op)
            assert_int_equal(leati_backend_ref.implementations[i].prepare(task, kernel, why, &err), LEAT_OK);
    assert_non_null(kernel->run);
}

static void run_node(const machine *m, const leati_node *node) {
    leati_desc inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    void *args[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS];
    for (int i = 0; i < node->input_count; ++i) {
        inputs[i] =
            node->inputs[i] < 0 ? (leati_desc){.rank = -1} : *leati_graph_desc(m->graph, node->inputs[i]);
        args[i] = address_of(m, node->inputs[i]);
    }
    for (int i = 0; i < node->output_count; ++i) {
        outputs[i] = *leati_graph_desc(m->graph, node->outputs[i]);
        args[node->input_count + i] = m->values[node->outputs[i]] =
            leati_calloc_aligned(leati_desc_bytes(&outputs[i]) + 1);
    }
    leati_task task = {.op = node->op,
                       .attrs = &node->attrs,
                       .input_count = node->input_count,
                       .output_count = node->output_count,
                       .inputs = inputs,
                       .outputs = outputs,
                       .threads = 1};
    leati_kernel kernel = {0};
    leat_error err = {0};
    prepare(&task, &kernel);
    leati_run run = {.seed = 1, .scratch = leati_calloc_aligned(kernel.scratch_bytes + 1)};
    assert_int_equal(kernel.run(&kernel, args, &run, &err), LEAT_OK);
    leati_free(run.scratch);
    if (kernel.destroy) kernel.destroy(kernel.state);
}

void interpret(const leati_graph *graph, const void *const *inputs, float *const *slabs, void **values) {
    machine m = {graph, inputs, slabs, values};
    for (int32_t n = 0; n < leati_graph_node_count(graph); ++n) run_node(&m, leati_graph_node_at(graph, n));
}
