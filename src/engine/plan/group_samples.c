/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the first ops of a prediction for a group of samples at a time, so that what an op writes is still in the
 * L2 caches when the next one reads it (docs/decisions/0138-predictions-in-groups-of-samples.md).  These ops become a
 * plan of their own, the front; the rest of the graph reads the results of all groups as further inputs.  Room:
 * engine. */
#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/plan/plan_private.h"

/* Bytes of a value that the L2 cache of one thread holds beside what else an op touches. */
#define L2_BYTES ((size_t)1 << 20)

/* Convolutions with windows may keep weights that are transformed to 36 numbers for 9 (Winograd). */
enum { TRANSFORMED = 4 };

/* The largest number of operations for each byte that need not leave the L2 caches, so that the gain is above noise. */
enum { OPERATIONS_PER_BYTE = 48 };

/* What it costs to run a step once more, in bytes of which the L2 caches save the way. */
#define STEP_BYTES 32768.0

/* How a value depends on the samples of the batch. */
typedef enum kind {
    MIXED =
        0,  /* in a way that is not known, or an op between the samples and it is not one of `is_by_sample` */
    FIXED,  /* not at all */
    SAMPLED /* element i of axis 0 depends on sample i only */
} kind;

typedef struct split {
    const leati_plan *plan;
    const leati_graph *graph;
    int64_t batch, group; /* number of samples */
    kind *kinds;          /* by value */
    bool *in_front;       /* by node: the front has it, if it is before `end` */
    int32_t *readers;     /* by value: number of nodes that read it */
    int32_t
        *last_read; /* by value: the last reader in the front; INT32_MAX: the rest reads it, or the caller */
    int32_t end;    /* the front ends before this node; 0: there is no front */
} split;

/* ---- Which ops compute each sample by itself ---- */

static kind kind_of(const split *s, leati_value value) {
    return value < 0 ? FIXED : s->kinds[value];
}

static bool are_fixed_from(const split *s, const leati_node *node, int first) {
    for (int i = first; i < node->input_count; ++i)
        if (kind_of(s, node->inputs[i]) != FIXED) return false;
    return true;
}

static bool are_sampled(const split *s, const leati_node *node) {
    for (int i = 0; i < node->input_count; ++i)
        if (kind_of(s, node->inputs[i]) != SAMPLED) return false;
    return true;
}

/* Returns true if NumPy's rule for broadcasting aligns the samples of `value` with axis 0 of a result of this rank. */
static bool broadcasts_by_sample(const split *s, leati_value value, int32_t rank) {
    const leati_desc *desc = leati_graph_desc(s->graph, value);
    if (kind_of(s, value) == SAMPLED) return desc->rank == rank;
    return kind_of(s, value) == FIXED && (desc->rank < rank || desc->shape[0] == 1);
}

static bool is_by_sample(const split *s, const leati_node *node) {
    const leati_attrs *attrs = &node->attrs;
    const leati_desc *dst = leati_graph_desc(s->graph, node->outputs[0]);
    switch (node->op) {
    case LEATI_OP_CONV:
    case LEATI_OP_BATCH_NORM_APPLY:
        return kind_of(s, node->inputs[0]) == SAMPLED && are_fixed_from(s, node, 1);
    case LEATI_OP_POOLING:
    case LEATI_OP_RESAMPLE:
    case LEATI_OP_ELTWISE:
    case LEATI_OP_CAST:
    case LEATI_OP_COPY: return are_sampled(s, node);
    case LEATI_OP_BINARY:
        return broadcasts_by_sample(s, node->inputs[0], dst->rank) &&
               broadcasts_by_sample(s, node->inputs[1], dst->rank);
    case LEATI_OP_REDUCE: return are_sampled(s, node) && !(attrs->reduce.axes & 1u);
    case LEATI_OP_SOFTMAX: return are_sampled(s, node) && attrs->softmax.axis > 0;
    case LEATI_OP_CONCAT: return are_sampled(s, node) && attrs->concat.axis > 0;
    case LEATI_OP_SLICE:
        return are_sampled(s, node) && attrs->slice.start[0] == 0 && attrs->slice.size[0] == s->batch;
    case LEATI_OP_PAD: return are_sampled(s, node) && attrs->pad.before[0] == 0 && attrs->pad.after[0] == 0;
    case LEATI_OP_TRANSPOSE: return are_sampled(s, node) && attrs->transpose.perm[0] == 0;
    case LEATI_OP_RESHAPE: return are_sampled(s, node) && attrs->shape.dims[0] == s->batch;
    default: return false;
    }
}

/* Returns true for the ops of is_by_sample when nothing that they read depends on the samples. */
static bool is_fixed(const split *s, const leati_node *node) {
    switch (node->op) {
    case LEATI_OP_ELTWISE:
    case LEATI_OP_CAST:
    case LEATI_OP_COPY:
    case LEATI_OP_BINARY:
    case LEATI_OP_REDUCE:
    case LEATI_OP_CONCAT:
    case LEATI_OP_SLICE:
    case LEATI_OP_PAD:
    case LEATI_OP_TRANSPOSE:
    case LEATI_OP_RESHAPE: return are_fixed_from(s, node, 0);
    default: return false;
    }
}

static bool has_samples(const split *s, leati_value value) {
    const leati_desc *desc = leati_graph_desc(s->graph, value);
    return desc->rank > 0 && desc->shape[0] == s->batch;
}

static void classify_node(split *s, int32_t n) {
    const leati_node *node = leati_graph_node_at(s->graph, n);
    if (node->output_count == 0) return;
    if (is_fixed(s, node)) {
        s->kinds[node->outputs[0]] = FIXED;
    } else if (has_samples(s, node->outputs[0]) && is_by_sample(s, node)) {
        s->in_front[n] = true;
        s->kinds[node->outputs[0]] = SAMPLED;
        for (int i = 1; i < node->output_count; ++i) /* A workspace is for one kernel and one batch. */
            s->in_front[n] = s->in_front[n] && s->readers[node->outputs[i]] == 0;
        if (!s->in_front[n]) s->kinds[node->outputs[0]] = MIXED;
    }
}

static void classify(split *s) {
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v) {
        const leati_value_info *info = leati_graph_value(s->graph, v);
        if (info->storage == LEATI_IN_INPUT)
            s->kinds[v] = has_samples(s, v) ? SAMPLED : MIXED;
        else if (info->storage != LEATI_IN_ARENA)
            s->kinds[v] = FIXED;
        s->last_read[v] = info->output ? INT32_MAX : -1;
    }
    for (int32_t n = 0; n < leati_graph_node_count(s->graph); ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        for (int i = 0; i < node->input_count; ++i)
            if (node->inputs[i] >= 0) ++s->readers[node->inputs[i]];
    }
    for (int32_t n = 0; n < leati_graph_node_count(s->graph); ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        classify_node(s, n);
        for (int i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] < 0) continue;
            int32_t *last = &s->last_read[node->inputs[i]];
            if (*last < n) *last = s->in_front[n] ? n : INT32_MAX;
        }
    }
}

/* ---- Where the front ends ---- */

/* Returns the bytes of a value of the whole batch that would leave the L2 caches. */
static double lost_bytes(const split *s, leati_value value) {
    if (value < 0 || s->kinds[value] != SAMPLED) return 0;
    size_t bytes = leati_desc_bytes(leati_graph_desc(s->graph, value));
    return bytes >= L2_BYTES * (size_t)s->plan->options.threads ? (double)bytes : 0;
}

/* Returns true for ops that the plan computes in kernels of their own. */
static bool moves_samples(leati_op op) {
    switch (op) {
    case LEATI_OP_CONV:
    case LEATI_OP_POOLING:
    case LEATI_OP_RESAMPLE:
    case LEATI_OP_REDUCE:
    case LEATI_OP_CONCAT:
    case LEATI_OP_SLICE:
    case LEATI_OP_PAD: return true;
    default: return false;
    }
}

/* Returns the bytes by which the node moves less from and to memory behind the L2 caches if it runs for one group after
 * the other; negative if it reads more weights than it saves.  What the plan may fuse into other ops counts as 0. */
static double saved_bytes(const split *s, const leati_node *node) {
    const double again = (double)s->batch / (double)s->group - 1;
    if (!moves_samples(node->op)) return 0;
    double saved = lost_bytes(s, node->outputs[0]) - STEP_BYTES * again;
    for (int i = 0; i < node->input_count; ++i) saved += lost_bytes(s, node->inputs[i]);
    if (node->op != LEATI_OP_CONV) return saved;
    const leati_window *window = &node->attrs.conv.window;
    bool is_point = true;
    for (int i = 0; i < window->spatial; ++i) is_point = is_point && window->kernel[i] == 1;
    double weights = (double)leati_desc_bytes(leati_graph_desc(s->graph, node->inputs[1]));
    return saved - weights * again * (is_point ? 1 : TRANSFORMED);
}

/* Returns true if the plan may compute the only reader of the value in the kernel of the value's node. */
static bool may_be_fused(const split *s, leati_value value, const leati_node *reader) {
    const int32_t producer = leati_graph_value(s->graph, value)->producer;
    if (producer < 0 || s->readers[value] != 1) return false;
    if (reader->op != LEATI_OP_BATCH_NORM_APPLY && reader->op != LEATI_OP_ELTWISE &&
        reader->op != LEATI_OP_BINARY)
        return false;
    switch (leati_graph_node_at(s->graph, producer)->op) {
    case LEATI_OP_CONV:
    case LEATI_OP_BATCH_NORM_APPLY:
    case LEATI_OP_BINARY: return true;
    default: return false;
    }
}

/* Marks, in `parts`, the first node behind each place where a front must not end, because it would part nodes that the
 * plan fuses: parts[n] becomes the change of the number of such pairs around place n. */
static void count_pairs(const split *s, int32_t *parts) {
    for (int32_t n = 0; n < leati_graph_node_count(s->graph); ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        for (int i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] < 0 || !may_be_fused(s, node->inputs[i], node)) continue;
            ++parts[leati_graph_value(s->graph, node->inputs[i])->producer + 1];
            --parts[n + 1];
        }
    }
}

/* Returns the change, by node n, of the bytes that the front hands to the rest if it ends behind n. */
static double handed_bytes(const split *s, int32_t n) {
    const leati_node *node = leati_graph_node_at(s->graph, n);
    const leati_value made = node->outputs[0];
    double bytes = 0;
    if (s->last_read[made] > n) bytes = (double)leati_desc_bytes(leati_graph_desc(s->graph, made));
    for (int i = 0; i < node->input_count; ++i) {
        const leati_value v = node->inputs[i];
        bool repeated = false;
        for (int j = 0; j < i; ++j) repeated = repeated || node->inputs[j] == v;
        if (v < 0 || repeated || s->kinds[v] != SAMPLED || s->last_read[v] != n) continue;
        if (leati_graph_value(s->graph, v)->producer >= 0)
            bytes -= (double)leati_desc_bytes(leati_graph_desc(s->graph, v));
    }
    return bytes;
}

/* Sets s->end to the place with the largest saving, if it is worth the trouble.  `parts` is from count_pairs. */
static void choose_end(split *s, const int32_t *parts) {
    double saved = 0, handed = 0, operations = 0, best = 0, work = 0;
    int32_t pairs = 0;
    for (int32_t n = 0; n < leati_graph_node_count(s->graph); ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        pairs += parts[n + 1];
        if (!s->in_front[n]) continue;
        saved += saved_bytes(s, node);
        handed += handed_bytes(s, n);
        operations += leati_plan_operations(s->plan, node);
        if (pairs > 0 || saved - 2 * handed <= best) continue;
        best = saved - 2 * handed; /* They are written and read once more. */
        work = operations;
        s->end = n + 1;
    }
    if (work > OPERATIONS_PER_BYTE * best) s->end = 0;
}

/* ---- The two graphs ---- */

static leati_desc for_group(const split *s, leati_value value) {
    leati_desc desc = *leati_graph_desc(s->graph, value);
    if (s->kinds[value] == SAMPLED) desc.shape[0] = s->group;
    return desc;
}

/* Returns the value of the front for a value that no node computes. */
static leati_value copy_source(const split *s, leati_graph *front, leati_value value) {
    const leati_value_info *info = leati_graph_value(s->graph, value);
    const leati_desc desc = for_group(s, value);
    switch (info->storage) {
    case LEATI_IN_INPUT: return leati_graph_input(front, info->where.input, &desc);
    case LEATI_IN_SLAB: return leati_graph_state(front, info->where.slab, info->where.offset_bytes, &desc);
    case LEATI_IN_CONSTANT: return leati_graph_constant(front, &desc, info->where.constant);
    default: return LEATI_INVALID;
    }
}

static void copy_node(const split *s, leati_graph *front, int32_t n, leati_value *copies) {
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

/* Returns true if the front computes the value, and the rest of the graph or the caller reads it. */
static bool is_handed(const split *s, leati_value value) {
    const int32_t producer = leati_graph_value(s->graph, value)->producer;
    return producer >= 0 && producer < s->end && s->in_front[producer] && s->last_read[value] >= s->end;
}

static leat_status build_front(const split *s, leati_graph **out, leati_value *copies, leat_error *err) {
    LEATI_TRY(leati_graph_create(out, err));
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v) copies[v] = LEATI_NONE;
    for (int32_t n = 0; n < s->end; ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        bool fixed = node->output_count && s->kinds[node->outputs[0]] == FIXED;
        if (fixed || s->in_front[n]) copy_node(s, *out, n, copies);
    }
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v)
        if (is_handed(s, v)) leati_graph_keep(*out, copies[v]);
    return leati_graph_check(*out, err);
}

/* Makes what the front hands over inputs of the rest, behind its own. */
static leat_status hand_over(leati_plan *plan, const split *s, const leati_value *copies, leat_error *err) {
    leati_front *front = plan->front;
    int32_t count = 0;
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v) {
        const leati_value_info *info = leati_graph_value(s->graph, v);
        count += is_handed(s, v);
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
        if (info->storage == LEATI_IN_INPUT && s->kinds[v] == SAMPLED)
            front->input_bytes[info->where.input] = leati_desc_bytes(&info->desc) / (size_t)front->groups;
        if (!is_handed(s, v)) continue;
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

static leat_status make_front(leati_plan *plan, const split *s, leati_value *copies, leat_error *err) {
    leati_graph *graph = NULL;
    leati_plan_options options = plan->options;
    options.samples = 0;
    plan->front = leati_calloc(1, sizeof *plan->front);
    leat_status status = plan->front ? build_front(s, &graph, copies, err)
                                     : leati_fail_memory(err, sizeof *plan->front, "groups of samples");
    if (status == LEAT_OK) {
        plan->front->groups = s->batch / s->group;
        plan->front->samples = s->group;
        status = hand_over(plan, s, copies, err);
    }
    if (status == LEAT_OK) return leati_plan_create(&plan->front->plan, &graph, &options, err);
    leati_graph_destroy(&graph);
    return status;
}

/* Returns the most bytes that a value has for one sample, of the values of convolutions. */
static int64_t sample_bytes(const leati_graph *graph, int64_t batch) {
    int64_t most = 1;
    for (int32_t n = 0; n < leati_graph_node_count(graph); ++n) {
        const leati_node *node = leati_graph_node_at(graph, n);
        if (node->op != LEATI_OP_CONV) continue;
        int64_t bytes = (int64_t)leati_desc_bytes(leati_graph_desc(graph, node->outputs[0])) / batch;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Returns the number of samples of a group: as many as fill the L2 caches, at least one for each thread, and two,
 * because kernels of one sample read weights more often than they need; 0: the batch cannot be divided into such
 * groups. */
static int64_t group_of(const leati_graph *graph, int64_t batch, int threads) {
    if (batch < 2) return 0;
    int64_t least = (int64_t)L2_BYTES / sample_bytes(graph, batch) * threads;
    if (least < threads) least = threads;
    if (least < 2) least = 2;
    for (int64_t group = least; group <= 2 * least && 2 * group <= batch; group += threads)
        if (batch % group == 0) return group;
    return 0;
}

static bool writes_states(const leati_graph *graph) {
    for (int32_t n = 0; n < leati_graph_node_count(graph); ++n)
        if (leati_op_descriptor_of(leati_graph_node_at(graph, n)->op)->writes) return true;
    return false;
}

leat_status leati_plan_group_samples(leati_plan *plan, leat_error *err) {
    const leati_plan_options *options = &plan->options;
    split s = {.plan = plan, .graph = plan->graph, .batch = options->samples};
    s.group =
        options->deterministic || leati_plan_device(plan) ? 0 : group_of(s.graph, s.batch, options->threads);
    if (s.group == 0 || writes_states(s.graph)) return LEAT_OK;
    const size_t values = (size_t)leati_graph_value_count(s.graph) + 1;
    const size_t nodes = (size_t)leati_graph_node_count(s.graph) + 2;
    s.kinds = leati_calloc(values, sizeof *s.kinds);
    s.in_front = leati_calloc(nodes, sizeof *s.in_front);
    s.readers = leati_calloc(values, sizeof *s.readers);
    s.last_read = leati_calloc(values, sizeof *s.last_read);
    int32_t *parts = leati_calloc(nodes, sizeof *parts);
    leati_value *copies = leati_calloc(values, sizeof *copies);
    leat_status status = LEAT_OK;
    if (s.kinds && s.in_front && s.readers && s.last_read && parts && copies) {
        classify(&s);
        count_pairs(&s, parts);
        choose_end(&s, parts);
        if (s.end > 0) status = make_front(plan, &s, copies, err);
    } else {
        status = leati_fail_memory(err, 0, "groups of samples");
    }
    leati_free(s.kinds);
    leati_free(s.in_front);
    leati_free(s.readers);
    leati_free(s.last_read);
    leati_free(parts);
    leati_free(copies);
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
