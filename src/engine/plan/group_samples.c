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
    if (s->kinds[value] == LEATI_SAMPLED) {
        int64_t *dim = &desc.shape[leati_sample_axis(&desc)];
        *dim = *dim / s->batch * s->group;
    }
    return desc;
}

static void set_dims(const leati_split *s, leati_value value, int64_t *dims) {
    const int axis = leati_sample_axis(leati_graph_desc(s->graph, value));
    dims[axis] = for_group(s, value).shape[axis];
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
    if (s->in_front[n] && node->op == LEATI_OP_SLICE) set_dims(s, node->inputs[0], attrs.slice.size);
    if (s->in_front[n] && (node->op == LEATI_OP_RESHAPE || node->op == LEATI_OP_BROADCAST))
        set_dims(s, node->outputs[0], attrs.shape.dims);
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

/* Compiles the front for one lane. */
static leat_status make_lane(leati_plan *plan, const leati_split *s, int32_t i, leati_value *copies,
                             leat_error *err) {
    leati_graph *graph = NULL;
    leati_lane *lane = &plan->front->lanes[i];
    leati_plan_options options = plan->options;
    options.samples = 0;
    if (s->alone) {
        options.threads = 1;
        options.recalls = false; /* All lanes have the same kernels. */
    }
    leat_status status = build_front(s, &graph, copies, err);
    if (status == LEAT_OK && i > 0 && (status = leati_arena_create(&lane->arena, err)) == LEAT_OK) {
        lane->arena->lent = &plan->options.arena->packs;
        options.arena = lane->arena;
    }
    if (status == LEAT_OK) status = leati_plan_create(&lane->plan, &graph, &options, err);
    leati_graph_destroy(&graph);
    return status;
}

static leat_status make_lanes(leati_plan *plan, const leati_split *s, leati_value *copies, leat_error *err) {
    leati_front *front = plan->front;
    int64_t lanes = s->alone ? plan->options.threads : 1;
    if (lanes > front->groups) lanes = front->groups;
    front->lanes = leati_calloc((size_t)lanes, sizeof *front->lanes);
    if (!front->lanes) return leati_fail_memory(err, 0, "groups of samples");
    while (front->lane_count < lanes) LEATI_TRY(make_lane(plan, s, front->lane_count++, copies, err));
    front->plan = front->lanes[0].plan;
    return LEAT_OK;
}

static leat_status make_front(leati_plan *plan, const leati_split *s, leat_error *err) {
    leati_value *copies = leati_calloc((size_t)leati_graph_value_count(s->graph) + 1, sizeof *copies);
    leati_front *front = plan->front = leati_calloc(1, sizeof *plan->front);
    leat_status status = front && copies ? LEAT_OK : leati_fail_memory(err, 0, "groups of samples");
    if (status == LEAT_OK) {
        front->groups = s->batch / s->group;
        front->samples = s->group;
        status = make_lanes(plan, s, copies, err);
    }
    if (status == LEAT_OK) status = hand_over(plan, s, copies, err);
    for (int32_t i = 0; status == LEAT_OK && i < front->lane_count; ++i) {
        front->lanes[i].inputs = leati_calloc((size_t)front->input_count + 1, sizeof *front->inputs);
        if (!front->lanes[i].inputs) status = leati_fail_memory(err, 0, "the inputs of groups of samples");
    }
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
    for (int32_t i = 0; i < front->lane_count; ++i) {
        leati_plan_destroy(&front->lanes[i].plan);
        leati_arena_destroy(&front->lanes[i].arena);
        leati_free(front->lanes[i].inputs);
    }
    leati_free(front->lanes);
    for (int32_t i = 0; i < front->handed_count; ++i) leati_free(front->handed[i].memory);
    leati_free(front->handed);
    leati_free(front->input_bytes);
    leati_free(front->inputs);
    leati_free(front);
    plan->front = NULL;
}

/* ---- Running ---- */

/* A run of the front. */
typedef struct front_run {
    const leati_front *front;
    const void *const *inputs;
    uint64_t seed, step;
    int64_t first; /* number of groups that were computed before the lanes began */
} front_run;

/* Computes one group.  step_ns (may be NULL) receives the times of its steps. */
static leat_status compute_group(const front_run *r, const leati_lane *lane, int64_t group, int64_t *step_ns,
                                 leat_error *err) {
    const leati_front *front = r->front;
    for (int32_t i = 0; i < front->input_count; ++i)
        lane->inputs[i] = (const unsigned char *)r->inputs[i] + (size_t)group * front->input_bytes[i];
    leat_status status = leati_plan_run_timed(lane->plan, lane->inputs, r->seed, r->step, step_ns, err);
    if (status != LEAT_OK) {
        leati_error_move_place(err, group * front->samples);
        return status;
    }
    for (int32_t i = 0; i < front->handed_count; ++i) {
        const leati_handed *handed = &front->handed[i];
        memcpy(handed->memory + (size_t)group * handed->bytes,
               leati_plan_output(lane->plan, handed->value).data, handed->bytes);
    }
    return LEAT_OK;
}

/* After a failure a lane computes only the groups before it, so that the failure of the first group is found. */
static void compute_in_lane(void *of, int64_t task, int member) {
    const front_run *r = of;
    const int64_t group = r->first + task;
    leati_lane *lane = &r->front->lanes[member];
    leat_error err = {0};
    if (lane->status != LEAT_OK && group > lane->failed) return;
    const leat_status status = compute_group(r, lane, group, NULL, &err);
    if (status == LEAT_OK) return;
    lane->failed = group;
    lane->status = status;
    lane->err = err;
}

/* Returns the failure of the first group that failed in a lane. */
static leat_status status_of_lanes(const leati_front *front, leat_error *err) {
    const leati_lane *first = NULL;
    for (int32_t i = 0; i < front->lane_count; ++i) {
        const leati_lane *lane = &front->lanes[i];
        if (lane->status != LEAT_OK && (!first || lane->failed < first->failed)) first = lane;
    }
    if (!first) return LEAT_OK;
    if (err) *err = first->err;
    return first->status;
}

/* Returns true if a run packs weights that all lanes use. */
static bool packs_weights(const leati_plan *plan) {
    for (int32_t s = 0; s < plan->step_count; ++s) {
        const leati_prepacked *pack = plan->work[plan->steps[s]].pack;
        if (pack && pack->version != plan->options.arena->version) return true;
    }
    return false;
}

/* Runs the groups, each in the lane of the thread that takes it.  Where weights must be packed, the first group is
 * computed before the others. */
static leat_status run_lanes(const leati_plan *plan, front_run *r, leat_error *err) {
    const leati_front *front = r->front;
    leati_arena *arena = plan->options.arena;
    for (int32_t i = 0; i < front->lane_count; ++i) {
        front->lanes[i].status = LEAT_OK;
        if (i > 0) leati_arena_set_version(front->lanes[i].arena, arena->version);
    }
    r->first = packs_weights(front->plan);
    if (r->first) LEATI_TRY(compute_group(r, &front->lanes[0], 0, NULL, err));
    leati_thread_pool_limit(arena->pool, front->lane_count);
    leati_thread_pool_share(arena->pool, front->lane_count, front->groups - r->first, compute_in_lane, r);
    return status_of_lanes(front, err);
}

/* Runs the groups one after the other.  Of several lanes the times are those of one, divided by their number. */
static leat_status run_in_order(const front_run *r, int64_t *step_ns, int64_t *group_ns, leat_error *err) {
    const leati_front *front = r->front;
    const int32_t steps = front->plan->step_count;
    for (int64_t g = 0; g < front->groups; ++g) {
        LEATI_TRY(compute_group(r, &front->lanes[0], g, group_ns, err));
        for (int32_t t = 0; step_ns && t < steps; ++t) step_ns[t] += group_ns[t];
    }
    for (int32_t t = 0; step_ns && t < steps; ++t) step_ns[t] /= front->lane_count;
    return LEAT_OK;
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
    const leati_front *front = plan->front;
    leati_arena *arena = plan->options.arena;
    front_run r = {.front = front, .inputs = inputs, .seed = seed, .step = step};
    const int32_t steps = front->plan->step_count;
    const bool unknown = arena->version == 0;
    int64_t *group_ns = NULL;
    if (step_ns && !(group_ns = leati_calloc((size_t)steps + 1, sizeof *group_ns)))
        return leati_fail_memory(err, (size_t)steps * sizeof *group_ns, "times");
    for (int32_t t = 0; step_ns && t < steps; ++t) step_ns[t] = 0;
    /* All groups of the run have the same weights. */
    if (unknown) arena->version = UINT64_MAX - arena->unknown++;
    leat_status status = step_ns || front->lane_count == 1 ? run_in_order(&r, step_ns, group_ns, err)
                                                           : run_lanes(plan, &r, err);
    if (unknown) arena->version = 0;
    leati_free(group_ns);
    return status;
}
