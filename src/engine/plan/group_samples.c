/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the first ops of a prediction for a group of samples at a time, so that what an op writes is still in the
 * L2 caches when the next one reads it (docs/decisions/0138-predictions-in-groups-of-samples.md).  These ops become a
 * plan of their own, the front; the rest of the graph reads the results of all groups as further inputs.  Room:
 * engine. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/choose_front.h"

/* ---- The two graphs ---- */

static leati_desc for_group(const leati_split *s, leati_value value) {
    leati_desc desc = *leati_graph_desc(s->graph, value);
    if (s->kinds[value] == LEATI_SAMPLED) desc.shape[0] = s->group;
    return desc;
}

/* Returns the value of the front for a value that no node computes. */
static leati_value copy_source(const leati_split *s, leati_graph *front, leati_value value) {
    const leati_value_info *info = leati_graph_value(s->graph, value);
    const leati_desc desc = for_group(s, value);
    switch (info->storage) {
    case LEATI_IN_INPUT: return leati_graph_input(front, info->where.input, &desc);
    case LEATI_IN_SLAB: return leati_graph_state(front, info->where.slab, info->where.offset_bytes, &desc);
    case LEATI_IN_CONSTANT: return leati_graph_constant(front, &desc, info->where.constant);
    default: return LEATI_INVALID;
    }
}

static void copy_node(const leati_split *s, leati_graph *front, int32_t n, leati_value *copies) {
    const leati_node *node = leati_graph_node_at(s->graph, n);
    leati_attrs attrs = node->attrs;
    leati_value inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    if (s->in_front[n] && node->op == LEATI_OP_SLICE) attrs.slice.size[0] = s->group;
    if (s->in_front[n] && node->op == LEATI_OP_RESHAPE) attrs.shape.dims[0] = s->group;
    for (int i = 0; i < node->input_count; ++i) {
        const leati_value v = node->inputs[i];
        if (v >= 0 && copies[v] == LEATI_NONE) copies[v] = copy_source(s, front, v);
        inputs[i] = v < 0 ? LEATI_NONE : copies[v];
    }
    leati_graph_label(front, node->label);
    leati_graph_node(front, node->op, &attrs, node->input_count, inputs, outputs);
    for (int i = 0; i < node->output_count; ++i) {
        const leati_value_info *info = leati_graph_value(s->graph, node->outputs[i]);
        copies[node->outputs[i]] = outputs[i];
        if (outputs[i] < 0) continue;
        leati_value_info *copy = leati_graph_value_mutable(front, outputs[i]);
        copy->may_be_bf16 = info->may_be_bf16;
        copy->exact = info->exact;
        const leati_desc expected = for_group(s, node->outputs[i]);
        if (i == 0 && !leati_desc_same_shape(&copy->desc, &expected))
            leati_graph_fail(front, LEAT_EINTERNAL, "a group of samples has another shape");
    }
}

static leat_status build_front(const leati_split *s, leati_graph **out, leati_value *copies,
                               leat_error *err) {
    LEATI_TRY(leati_graph_create(out, err));
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v) copies[v] = LEATI_NONE;
    for (int32_t n = 0; n < s->end; ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        bool fixed = node->output_count && s->kinds[node->outputs[0]] == LEATI_FIXED;
        if (fixed || s->in_front[n]) copy_node(s, *out, n, copies);
    }
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v)
        if (leati_split_hands(s, v)) leati_graph_keep(*out, copies[v]);
    return leati_graph_check(*out, err);
}

/* Makes what the front hands over inputs of the rest, behind its own. */
static leat_status hand_over(leati_plan *plan, const leati_split *s, const leati_value *copies,
                             leat_error *err) {
    leati_front *front = plan->front;
    int32_t count = 0;
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v) {
        const leati_value_info *info = leati_graph_value(s->graph, v);
        count += leati_split_hands(s, v);
        if (info->storage == LEATI_IN_INPUT && info->where.input >= front->input_count)
            front->input_count = info->where.input + 1;
    }
    front->handed = leati_calloc((size_t)count + 1, sizeof *front->handed);
    front->input_bytes = leati_calloc((size_t)front->input_count + 1, sizeof *front->input_bytes);
    front->inputs = leati_calloc((size_t)(front->input_count + count) + 1, sizeof *front->inputs);
    if (!front->handed || !front->input_bytes || !front->inputs)
        return leati_fail_memory(err, 0, "the inputs of groups of samples");
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v) {
        leati_value_info *info = leati_graph_value_mutable(plan->graph, v);
        if (info->storage == LEATI_IN_INPUT && s->kinds[v] == LEATI_SAMPLED)
            front->input_bytes[info->where.input] = leati_desc_bytes(&info->desc) / (size_t)front->groups;
        if (!leati_split_hands(s, v)) continue;
        leati_handed *handed = &front->handed[front->handed_count];
        handed->value = copies[v];
        handed->bytes = leati_desc_bytes(&info->desc) / (size_t)front->groups;
        handed->memory = leati_calloc_aligned(leati_desc_bytes(&info->desc));
        if (!handed->memory) return leati_fail_memory(err, leati_desc_bytes(&info->desc), "activations");
        info->storage = LEATI_IN_INPUT;
        info->where.input = front->input_count + front->handed_count++;
        info->may_be_bf16 = false;
    }
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v) {
        leati_value_info *info = leati_graph_value_mutable(plan->graph, v);
        if (info->storage == LEATI_IN_INPUT) info->producer = -1;
    }
    return LEAT_OK;
}

static leat_status make_front(leati_plan *plan, const leati_split *s, leat_error *err) {
    leati_graph *graph = NULL;
    leati_value *copies = leati_calloc((size_t)leati_graph_value_count(s->graph) + 1, sizeof *copies);
    leati_plan_options options = plan->options;
    options.samples = 0;
    plan->front = leati_calloc(1, sizeof *plan->front);
    leat_status status = plan->front && copies ? build_front(s, &graph, copies, err)
                                               : leati_fail_memory(err, 0, "groups of samples");
    if (status == LEAT_OK) {
        plan->front->groups = s->batch / s->group;
        plan->front->samples = s->group;
        status = hand_over(plan, s, copies, err);
    }
    if (status == LEAT_OK) status = leati_plan_create(&plan->front->plan, &graph, &options, err);
    leati_graph_destroy(&graph);
    leati_free(copies);
    return status;
}

leat_status leati_plan_group_samples(leati_plan *plan, leat_error *err) {
    leati_split s;
    leat_status status = leati_split_choose(&s, plan, err);
    if (status == LEAT_OK && s.end > 0) status = make_front(plan, &s, err);
    leati_split_free(&s);
    return status;
}

void leati_plan_free_front(leati_plan *plan) {
    leati_front *front = plan->front;
    if (!front) return;
    leati_plan_destroy(&front->plan);
    for (int32_t i = 0; i < front->handed_count; ++i) leati_free(front->handed[i].memory);
    leati_free(front->handed);
    leati_free(front->input_bytes);
    leati_free(front->inputs);
    leati_free(front);
    plan->front = NULL;
}

/* ---- Running ---- */

static void bind_group(const leati_front *front, const void *const *inputs, int64_t group) {
    for (int32_t i = 0; i < front->input_count; ++i)
        front->inputs[i] = front->input_bytes[i]
                               ? (const unsigned char *)inputs[i] + (size_t)group * front->input_bytes[i]
                               : inputs[i];
}

const void *const *leati_plan_rest_inputs(const leati_plan *plan, const void *const *inputs) {
    const leati_front *front = plan->front;
    for (int32_t i = 0; i < front->input_count; ++i) front->inputs[i] = inputs[i];
    for (int32_t i = 0; i < front->handed_count; ++i)
        front->inputs[front->input_count + i] = front->handed[i].memory;
    return front->inputs;
}

leat_status leati_plan_run_front(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                                 int64_t *step_ns, leat_error *err) {
    leati_front *front = plan->front;
    const int32_t steps = front->plan->step_count;
    int64_t *group_ns = NULL;
    if (step_ns && !(group_ns = leati_calloc((size_t)steps + 1, sizeof *group_ns)))
        return leati_fail_memory(err, (size_t)steps * sizeof *group_ns, "times");
    for (int32_t t = 0; step_ns && t < steps; ++t) step_ns[t] = 0;
    leat_status status = LEAT_OK;
    for (int64_t g = 0; g < front->groups && status == LEAT_OK; ++g) {
        bind_group(front, inputs, g);
        status = leati_plan_run_timed(front->plan, front->inputs, seed, step, group_ns, err);
        for (int32_t t = 0; step_ns && t < steps; ++t) step_ns[t] += group_ns[t];
        for (int32_t i = 0; i < front->handed_count && status == LEAT_OK; ++i) {
            const leati_handed *handed = &front->handed[i];
            memcpy(handed->memory + (size_t)g * handed->bytes,
                   leati_plan_output(front->plan, handed->value).data, handed->bytes);
        }
    }
    leati_free(group_ns);
    return status;
}
