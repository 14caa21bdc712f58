/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses which ops of a prediction run for a group of samples at a time: those that compute each sample by itself, up
 * to the place from where on groups would save nothing.  A prediction that consists of products and attention, such as
 * a transformer's, has groups that each thread computes alone; if there are groups, their size does not depend on the
 * number of threads.
 * Room: engine. */
#include "engine/plan/choose_front.h"

#include "base/error.h"
#include "base/memory.h"

/* Bytes of a value that the L2 cache of one thread holds beside what else an op touches. */
#define L2_BYTES ((size_t)1 << 20)

/* Convolutions with windows may keep weights that are transformed to 36 numbers for 9 (Winograd). */
enum { TRANSFORMED = 4 };

/* The largest number of operations for each byte that need not leave the L2 caches, so that the gain is above noise.
 * Groups of one thread save the waiting of threads for each other, too. */
enum { OPERATIONS_PER_BYTE = 48, OPERATIONS_PER_BYTE_ALONE = 96 };

/* Rows by which a matrix is multiplied while it is read from the L3 cache at no cost. */
enum { FREE_ROWS = 64 };

/* What it costs to run a step once more, in bytes of which the L2 caches save the way. */
#define STEP_BYTES 32768.0

/* ---- Which ops compute each sample by itself ---- */

int leati_sample_axis(const leati_desc *desc) {
    int axis = 0;
    while (axis < desc->rank && desc->shape[axis] == 1) ++axis;
    return axis;
}

static int axis_of(const leati_split *s, leati_value value) {
    return leati_sample_axis(leati_graph_desc(s->graph, value));
}

static leati_sample_kind kind_of(const leati_split *s, leati_value value) {
    return value < 0 ? LEATI_FIXED : s->kinds[value];
}

static bool are_fixed_from(const leati_split *s, const leati_node *node, int first) {
    for (int i = first; i < node->input_count; ++i)
        if (kind_of(s, node->inputs[i]) != LEATI_FIXED) return false;
    return true;
}

static bool are_sampled(const leati_split *s, const leati_node *node) {
    for (int i = 0; i < node->input_count; ++i)
        if (kind_of(s, node->inputs[i]) != LEATI_SAMPLED) return false;
    return true;
}

/* Returns true if NumPy's rule for broadcasting aligns the samples of `value` with those of the result. */
static bool broadcasts_by_sample(const leati_split *s, leati_value value, const leati_desc *dst) {
    const leati_desc *desc = leati_graph_desc(s->graph, value);
    const int axis = leati_sample_axis(dst) - (dst->rank - desc->rank);
    if (kind_of(s, value) == LEATI_SAMPLED)
        return leati_sample_axis(desc) == axis && desc->shape[axis] == dst->shape[leati_sample_axis(dst)];
    return kind_of(s, value) == LEATI_FIXED && (axis < 0 || desc->shape[axis] == 1);
}

/* Returns true if each row, or each matrix, of the product is of one sample. */
static bool multiplies_by_sample(const leati_split *s, const leati_node *node) {
    const leati_desc *a = leati_graph_desc(s->graph, node->inputs[0]);
    const int axis = leati_sample_axis(a);
    if (kind_of(s, node->inputs[0]) != LEATI_SAMPLED || axis > a->rank - 2) return false;
    if (axis == a->rank - 2) return !node->attrs.matmul.transpose_a && are_fixed_from(s, node, 1);
    return kind_of(s, node->inputs[1]) == LEATI_SAMPLED && axis_of(s, node->inputs[1]) == axis &&
           are_fixed_from(s, node, 2);
}

static bool attends_by_sample(const leati_split *s, const leati_node *node) {
    const leati_desc *q = leati_graph_desc(s->graph, node->inputs[0]);
    for (int i = 0; i < node->input_count; ++i) {
        const leati_value value = node->inputs[i];
        bool shared = i > 2 && kind_of(s, value) == LEATI_FIXED &&
                      (value < 0 || leati_graph_desc(s->graph, value)->shape[0] == 1);
        if (shared) continue;
        if (kind_of(s, value) != LEATI_SAMPLED || axis_of(s, value) != 0) return false;
        if (leati_graph_desc(s->graph, value)->shape[0] != q->shape[0]) return false;
    }
    return node->attrs.attention.rate == 0;
}

/* Returns true for an op whose kernels are as fast for the rows of a few samples as for those of many. */
static bool is_by_row(const leati_split *s, const leati_node *node) {
    switch (node->op) {
    case LEATI_OP_MATMUL: return multiplies_by_sample(s, node);
    case LEATI_OP_ATTENTION: return attends_by_sample(s, node);
    case LEATI_OP_GROUP_NORM:
        return kind_of(s, node->inputs[0]) == LEATI_SAMPLED && are_fixed_from(s, node, 1) &&
               axis_of(s, node->inputs[0]) < node->attrs.group_norm.samples;
    case LEATI_OP_BROADCAST:
        return broadcasts_by_sample(s, node->inputs[0], leati_graph_desc(s->graph, node->outputs[0]));
    case LEATI_OP_GATHER:
        return kind_of(s, node->inputs[0]) == LEATI_FIXED && kind_of(s, node->inputs[1]) == LEATI_SAMPLED;
    default: return false;
    }
}

/* Returns true if the op changes no axis before the samples' axis of its input, nor the samples' axis. */
static bool keeps_samples(const leati_split *s, const leati_node *node) {
    const leati_attrs *attrs = &node->attrs;
    const leati_desc *src = leati_graph_desc(s->graph, node->inputs[0]);
    const int axis = leati_sample_axis(src);
    switch (node->op) {
    case LEATI_OP_REDUCE: return !(attrs->reduce.axes >> axis & 1u);
    case LEATI_OP_SOFTMAX: return attrs->softmax.axis > axis;
    case LEATI_OP_CONCAT: return attrs->concat.axis > axis;
    case LEATI_OP_SLICE: return attrs->slice.start[axis] == 0 && attrs->slice.size[axis] == src->shape[axis];
    case LEATI_OP_PAD:
        for (int i = 0; i <= axis; ++i)
            if (attrs->pad.before[i] != 0 || attrs->pad.after[i] != 0) return false;
        return true;
    case LEATI_OP_TRANSPOSE:
        for (int i = 0; i <= axis; ++i)
            if (attrs->transpose.perm[i] != i) return false;
        return true;
    default: return false;
    }
}

static bool is_by_sample(const leati_split *s, const leati_node *node) {
    const leati_desc *dst = leati_graph_desc(s->graph, node->outputs[0]);
    switch (node->op) {
    case LEATI_OP_CONV:
        return kind_of(s, node->inputs[0]) == LEATI_SAMPLED && are_fixed_from(s, node, 1) &&
               axis_of(s, node->inputs[0]) == 0;
    case LEATI_OP_BATCH_NORM_APPLY:
        return kind_of(s, node->inputs[0]) == LEATI_SAMPLED && are_fixed_from(s, node, 1) &&
               axis_of(s, node->inputs[0]) < dst->rank - 1;
    case LEATI_OP_POOLING:
    case LEATI_OP_RESAMPLE: return are_sampled(s, node) && axis_of(s, node->inputs[0]) == 0;
    case LEATI_OP_ELTWISE:
    case LEATI_OP_CAST:
    case LEATI_OP_COPY:
    case LEATI_OP_RESHAPE: return are_sampled(s, node);
    case LEATI_OP_BINARY:
        return broadcasts_by_sample(s, node->inputs[0], dst) && broadcasts_by_sample(s, node->inputs[1], dst);
    case LEATI_OP_REDUCE:
    case LEATI_OP_SOFTMAX:
    case LEATI_OP_CONCAT:
    case LEATI_OP_SLICE:
    case LEATI_OP_PAD:
    case LEATI_OP_TRANSPOSE: return are_sampled(s, node) && keeps_samples(s, node);
    default: return s->alone && is_by_row(s, node);
    }
}

/* Returns true for the ops of is_by_sample when nothing that they read depends on the samples. */
static bool is_fixed(const leati_split *s, const leati_node *node) {
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

/* Returns true if the batch divides the first axis that is longer than 1. */
static bool has_samples(const leati_split *s, leati_value value) {
    const leati_desc *desc = leati_graph_desc(s->graph, value);
    const int axis = leati_sample_axis(desc);
    return axis < desc->rank && desc->shape[axis] > 0 && desc->shape[axis] % s->batch == 0;
}

/* Returns true for an input with the batch in axis 0. */
static bool is_batch(const leati_split *s, leati_value value) {
    const leati_desc *desc = leati_graph_desc(s->graph, value);
    return desc->rank > 0 && desc->shape[0] == s->batch;
}

static void classify_node(leati_split *s, int32_t n) {
    const leati_node *node = leati_graph_node_at(s->graph, n);
    if (node->output_count == 0) return;
    if (is_fixed(s, node)) {
        s->kinds[node->outputs[0]] = LEATI_FIXED;
    } else if (has_samples(s, node->outputs[0]) && is_by_sample(s, node)) {
        s->in_front[n] = true;
        s->kinds[node->outputs[0]] = LEATI_SAMPLED;
        for (int i = 1; i < node->output_count; ++i) /* A workspace is for one kernel and one batch. */
            s->in_front[n] = s->in_front[n] && s->readers[node->outputs[i]] == 0;
        if (!s->in_front[n]) s->kinds[node->outputs[0]] = LEATI_MIXED;
    }
}

static void classify(leati_split *s) {
    for (leati_value v = 0; v < leati_graph_value_count(s->graph); ++v) {
        const leati_value_info *info = leati_graph_value(s->graph, v);
        if (info->storage == LEATI_IN_INPUT)
            s->kinds[v] = is_batch(s, v) ? LEATI_SAMPLED : LEATI_MIXED;
        else if (info->storage != LEATI_IN_ARENA)
            s->kinds[v] = LEATI_FIXED;
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
static double lost_bytes(const leati_split *s, leati_value value) {
    if (value < 0 || s->kinds[value] != LEATI_SAMPLED) return 0;
    size_t bytes = leati_desc_bytes(leati_graph_desc(s->graph, value));
    return bytes >= L2_BYTES * (size_t)(s->alone ? 1 : s->plan->options.threads) ? (double)bytes : 0;
}

/* Returns true for ops that the plan computes in kernels of their own. */
static bool moves_samples(leati_op op) {
    switch (op) {
    case LEATI_OP_CONV:
    case LEATI_OP_MATMUL:
    case LEATI_OP_ATTENTION:
    case LEATI_OP_GROUP_NORM:
    case LEATI_OP_POOLING:
    case LEATI_OP_RESAMPLE:
    case LEATI_OP_REDUCE:
    case LEATI_OP_CONCAT:
    case LEATI_OP_SLICE:
    case LEATI_OP_PAD: return true;
    default: return false;
    }
}

/* Returns the bytes of the weights that a group's product reads and that its rows do not pay for. */
static double read_again(const leati_split *s, const leati_node *node) {
    const leati_desc *dst = leati_graph_desc(s->graph, node->outputs[0]);
    if (kind_of(s, node->inputs[1]) != LEATI_FIXED) return 0;
    if (dst->shape[leati_sample_axis(dst)] / s->batch * s->group >= FREE_ROWS) return 0;
    return (double)leati_desc_bytes(leati_graph_desc(s->graph, node->inputs[1]));
}

/* Returns the bytes by which the node moves less from and to memory behind the L2 caches if it runs for one group after
 * the other; negative if it reads more weights than it saves.  What the plan may fuse into other ops counts as 0. */
static double saved_bytes(const leati_split *s, const leati_node *node) {
    const double again = (double)s->batch / (double)s->group - 1;
    if (!moves_samples(node->op)) return 0;
    double saved = lost_bytes(s, node->outputs[0]) - STEP_BYTES * again;
    for (int i = 0; i < node->input_count; ++i) saved += lost_bytes(s, node->inputs[i]);
    if (node->op == LEATI_OP_MATMUL) return saved - read_again(s, node) * again;
    if (node->op != LEATI_OP_CONV) return saved;
    const leati_window *window = &node->attrs.conv.window;
    bool is_point = true;
    for (int i = 0; i < window->spatial; ++i) is_point = is_point && window->kernel[i] == 1;
    double weights = (double)leati_desc_bytes(leati_graph_desc(s->graph, node->inputs[1]));
    return saved - weights * again * (is_point ? 1 : TRANSFORMED);
}

/* Returns true if the plan may compute the only reader of the value in the kernel of the value's node. */
static bool may_be_fused(const leati_split *s, leati_value value, const leati_node *reader) {
    const int32_t producer = leati_graph_value(s->graph, value)->producer;
    if (producer < 0 || s->readers[value] != 1) return false;
    if (reader->op != LEATI_OP_BATCH_NORM_APPLY && reader->op != LEATI_OP_ELTWISE &&
        reader->op != LEATI_OP_BINARY)
        return false;
    switch (leati_graph_node_at(s->graph, producer)->op) {
    case LEATI_OP_CONV:
    case LEATI_OP_MATMUL:
    case LEATI_OP_BATCH_NORM_APPLY:
    case LEATI_OP_BINARY: return true;
    default: return false;
    }
}

/* Counts the pairs of nodes that the plan may fuse, so that a front must not end between them: sets s->parts. */
static void count_pairs(leati_split *s) {
    for (int32_t n = 0; n < leati_graph_node_count(s->graph); ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        for (int i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] < 0 || !may_be_fused(s, node->inputs[i], node)) continue;
            ++s->parts[leati_graph_value(s->graph, node->inputs[i])->producer + 1];
            --s->parts[n + 1];
        }
    }
}

/* Returns the change, by node n, of the bytes that the front hands to the rest if it ends behind n. */
static double handed_bytes(const leati_split *s, int32_t n) {
    const leati_node *node = leati_graph_node_at(s->graph, n);
    const leati_value made = node->outputs[0];
    double bytes = 0;
    if (s->last_read[made] > n) bytes = (double)leati_desc_bytes(leati_graph_desc(s->graph, made));
    for (int i = 0; i < node->input_count; ++i) {
        const leati_value v = node->inputs[i];
        bool repeated = false;
        for (int j = 0; j < i; ++j) repeated = repeated || node->inputs[j] == v;
        if (v < 0 || repeated || s->kinds[v] != LEATI_SAMPLED || s->last_read[v] != n) continue;
        if (leati_graph_value(s->graph, v)->producer >= 0)
            bytes -= (double)leati_desc_bytes(leati_graph_desc(s->graph, v));
    }
    return bytes;
}

/* Sets s->end to the place with the largest saving, if it is worth the trouble. */
static void choose_end(leati_split *s) {
    double saved = 0, handed = 0, operations = 0, best = 0, work = 0;
    int32_t pairs = 0;
    for (int32_t n = 0; n < leati_graph_node_count(s->graph); ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        pairs += s->parts[n + 1];
        if (!s->in_front[n]) continue;
        saved += saved_bytes(s, node);
        handed += handed_bytes(s, n);
        operations += leati_plan_operations(s->plan, node);
        if (pairs > 0 || saved - 2 * handed <= best) continue;
        best = saved - 2 * handed; /* They are written and read once more. */
        work = operations;
        s->end = n + 1;
    }
    if (work > (s->alone ? OPERATIONS_PER_BYTE_ALONE : OPERATIONS_PER_BYTE) * best) s->end = 0;
}

static bool is_product(const leati_node *node) {
    return node->op == LEATI_OP_MATMUL || node->op == LEATI_OP_ATTENTION;
}

/* Returns true if nearly all operations are those of products and attention. */
static bool is_made_of_products(const leati_split *s) {
    double products = 0, all = 0;
    for (int32_t n = 0; n < leati_graph_node_count(s->graph); ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        double operations = leati_plan_operations(s->plan, node);
        all += operations;
        if (is_product(node)) products += operations;
    }
    return all > 0 && products >= 0.9 * all;
}

/* Returns the most bytes that a value has for one sample, of the values of convolutions, or of products. */
static int64_t sample_bytes(const leati_split *s) {
    int64_t most = 1;
    for (int32_t n = 0; n < leati_graph_node_count(s->graph); ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        if (s->alone ? !is_product(node) : node->op != LEATI_OP_CONV) continue;
        int64_t bytes = (int64_t)leati_desc_bytes(leati_graph_desc(s->graph, node->outputs[0])) / s->batch;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Returns the number of samples of a group that one thread computes; 0: there are too few groups for the threads, or a
 * number that leaves threads without work. */
static int64_t group_alone(const leati_split *s) {
    int64_t threads = s->plan->options.threads, group = (int64_t)L2_BYTES / sample_bytes(s);
    if (group > s->batch) group = s->batch;
    while (group > 1 && s->batch % group != 0) --group;
    if (group < 1) group = 1;
    int64_t groups = s->batch / group, rounds = (groups + threads - 1) / threads;
    return groups > 1 && 8 * rounds * threads <= 9 * groups ? group : 0;
}

/* Returns the number of samples of a group: as many as fill the L2 caches, at least one for each thread, and two,
 * because kernels of one sample read weights more often than they need; 0: the batch cannot be divided into such
 * groups. */
static int64_t group_of(const leati_split *s) {
    const int64_t batch = s->batch, threads = s->plan->options.threads;
    if (batch < 2) return 0;
    if (s->alone) return group_alone(s);
    int64_t least = (int64_t)L2_BYTES / sample_bytes(s) * threads;
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

static leat_status allocate(leati_split *s, leat_error *err) {
    const size_t values = (size_t)leati_graph_value_count(s->graph) + 1;
    const size_t nodes = (size_t)leati_graph_node_count(s->graph) + 2;
    s->kinds = leati_calloc(values, sizeof *s->kinds);
    s->in_front = leati_calloc(nodes, sizeof *s->in_front);
    s->readers = leati_calloc(values, sizeof *s->readers);
    s->last_read = leati_calloc(values, sizeof *s->last_read);
    s->parts = leati_calloc(nodes, sizeof *s->parts);
    if (s->kinds && s->in_front && s->readers && s->last_read && s->parts) return LEAT_OK;
    return leati_fail_memory(err, 0, "groups of samples");
}

leat_status leati_split_choose(leati_split *s, const leati_plan *plan, leat_error *err) {
    const leati_plan_options *options = &plan->options;
    *s = (leati_split){.plan = plan, .graph = plan->graph, .batch = options->samples};
    if (options->deterministic || leati_plan_device(plan) || writes_states(s->graph)) return LEAT_OK;
    s->alone = !options->measures && is_made_of_products(s);
    s->group = group_of(s);
    if (s->group == 0) return LEAT_OK;
    LEATI_TRY(allocate(s, err));
    classify(s);
    count_pairs(s);
    choose_end(s);
    return LEAT_OK;
}

void leati_split_free(leati_split *s) {
    leati_free(s->kinds);
    leati_free(s->in_front);
    leati_free(s->readers);
    leati_free(s->last_read);
    leati_free(s->parts);
}

bool leati_split_hands(const leati_split *s, leati_value value) {
    const int32_t producer = leati_graph_value(s->graph, value)->producer;
    return producer >= 0 && producer < s->end && s->in_front[producer] && s->last_read[value] >= s->end;
}
