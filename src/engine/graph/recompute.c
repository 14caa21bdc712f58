/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016).  The forward pass is cut
 * into segments.  A value that is read in a later segment is kept.  The other values that the backward pass reads are
 * computed again, one segment at a time, before the first gradient node that reads the segment.  The last segment is
 * kept whole, because its gradients are computed right after it.  Room: engine. */
#include <assert.h>
#include <stddef.h>
#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/graph_private.h"

/* A value with less than 1 / small of the bytes of the largest value is kept: it is not worth a second computation. */
enum { most_segments = 64, small = 64 };

/* Facts about a value of the original graph, without the copies. */
typedef struct value_facts {
    int64_t bytes;        /* of its own memory; 0: a view, or not computed by the forward pass */
    int32_t last_read;    /* index of the last forward node that reads it */
    bool saved;           /* a gradient node reads it */
    bool kept;            /* it is not computed again */
    bool changed;         /* it is a state that the forward pass writes */
    leati_value stand_in; /* the copy that gradient nodes read instead; LEATI_NONE: there is none */
} value_facts;

/* Facts about a node of the forward pass. */
typedef struct node_facts {
    int64_t made; /* bytes of its outputs that gradient nodes read */
    int64_t live; /* bytes of the values that are live across a cut after the node */
    int32_t segment;
    bool recomputed; /* the node is computed again */
} node_facts;

typedef struct sweep {
    leati_graph *graph;
    int32_t forward_count, node_count, value_count; /* of the original graph, without the copies */
    value_facts *values;
    node_facts *forward;
    int32_t *order; /* old indices of the nodes, in their new order */
    int32_t *place; /* new index of each node, by its old index */
    int32_t ordered;
} sweep;

static leat_status sweep_init(sweep *s, leat_error *err) {
    size_t forward = (size_t)s->forward_count + 1, nodes = (size_t)s->node_count + forward;
    s->values = leati_calloc((size_t)s->value_count + 1, sizeof *s->values);
    s->forward = leati_calloc(forward, sizeof *s->forward);
    s->order = leati_calloc(nodes, sizeof *s->order);
    s->place = leati_calloc(nodes, sizeof *s->place);
    if (s->values && s->forward && s->order && s->place) return LEAT_OK;
    return leati_fail(err, LEAT_ENOMEM, "no memory to cut a graph of %d nodes", s->node_count);
}

static void sweep_fini(sweep *s) {
    leati_free(s->values);
    leati_free(s->forward);
    leati_free(s->order);
    leati_free(s->place);
}

static bool is_forward(const sweep *s, leati_value value) {
    if (value < 0) return false;
    int32_t producer = leati_graph_value(s->graph, value)->producer;
    return producer >= 0 && producer < s->forward_count;
}

static int32_t producer_of(const sweep *s, leati_value value) {
    return leati_graph_value(s->graph, value)->producer;
}

/* ---- Facts about values ---- */

static void mark_changed_state(const sweep *s, leati_value state) {
    const leati_value_info *info = leati_graph_value(s->graph, state);
    for (leati_value v = 0; v < s->value_count; ++v)
        if (leati_states_overlap(leati_graph_value(s->graph, v), info)) s->values[v].changed = true;
}

static void mark_changed(const sweep *s) {
    for (int32_t n = 0; n < s->forward_count; ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        uint32_t writes = leati_op_descriptor_of(node->op)->writes;
        for (int i = 0; i < 32 && writes >> i; ++i)
            if (writes >> i & 1u && node->inputs[i] >= 0) mark_changed_state(s, node->inputs[i]);
    }
}

/* Returns true if a second computation might give another result: the node reads a state that the forward pass writes,
 * or writes one, or calls a custom layer. */
static bool is_not_repeatable(const sweep *s, const leati_node *node) {
    if (node->op == LEATI_OP_CALL || leati_op_descriptor_of(node->op)->writes) return true;
    for (int i = 0; i < node->input_count; ++i)
        if (node->inputs[i] >= 0 && s->values[node->inputs[i]].changed) return true;
    return false;
}

/* Returns the bytes of the largest value. */
static int64_t collect_forward_facts(sweep *s) {
    int64_t largest = 0;
    mark_changed(s);
    for (int32_t n = 0; n < s->forward_count; ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        bool not_repeatable = is_not_repeatable(s, node),
             view = leati_op_descriptor_of(node->op)->flags & LEATI_OP_VIEW;
        for (int i = 0; i < node->input_count; ++i)
            if (node->inputs[i] >= 0) s->values[node->inputs[i]].last_read = n;
        for (int i = 0; i < node->output_count; ++i) {
            leati_value v = node->outputs[i];
            s->values[v].last_read = n;
            s->values[v].bytes = view ? 0 : (int64_t)leati_desc_bytes(leati_graph_desc(s->graph, v));
            s->values[v].kept = not_repeatable || leati_graph_value(s->graph, v)->output;
            if (s->values[v].bytes > largest) largest = s->values[v].bytes;
        }
    }
    /* A node that reads a view reads the memory of the view's source. */
    for (int32_t n = s->forward_count - 1; n >= 0; --n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        if (!(leati_op_descriptor_of(node->op)->flags & LEATI_OP_VIEW) || !is_forward(s, node->inputs[0]))
            continue;
        int32_t last = s->values[node->outputs[0]].last_read;
        if (s->values[node->inputs[0]].last_read < last) s->values[node->inputs[0]].last_read = last;
    }
    return largest;
}

static void collect_facts(sweep *s) {
    int64_t largest = collect_forward_facts(s), live = 0;
    for (int32_t n = s->forward_count; n < s->node_count; ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        for (int i = 0; i < node->input_count; ++i)
            if (is_forward(s, node->inputs[i])) s->values[node->inputs[i]].saved = true;
    }
    for (leati_value v = 0; v < s->value_count; ++v) {
        s->values[v].stand_in = LEATI_NONE;
        if (!is_forward(s, v) || s->values[v].kept) continue;
        s->values[v].kept = s->values[v].bytes > 0 && s->values[v].bytes < largest / small;
        if (s->values[v].kept) continue;
        int32_t producer = producer_of(s, v);
        if (s->values[v].saved) s->forward[producer].made += s->values[v].bytes;
        s->forward[producer].live += s->values[v].bytes;
        s->forward[s->values[v].last_read].live -= s->values[v].bytes;
    }
    for (int32_t n = 0; n < s->forward_count; ++n) s->forward[n].live = live += s->forward[n].live;
}

/* ---- Choosing the cuts ---- */

/* Starts a new segment whenever the current one exceeds the budget.  The cut is placed after the node of the segment
 * where the fewest bytes are live. */
static void cut_segments(const sweep *s, int64_t budget) {
    int32_t first = 0, segment = 0;
    int64_t sum = 0;
    for (int32_t n = 0; n < s->forward_count; ++n) {
        sum += s->forward[n].made;
        s->forward[n].segment = segment;
        if (sum <= budget) continue;
        int32_t best = first;
        for (int32_t at = first; at <= n; ++at)
            if (s->forward[at].live <= s->forward[best].live) best = at;
        ++segment;
        sum = 0;
        for (int32_t at = best + 1; at <= n; ++at) {
            s->forward[at].segment = segment;
            sum += s->forward[at].made;
        }
        first = best + 1;
    }
}

static bool is_read_later(const sweep *s, leati_value value) {
    return s->forward[producer_of(s, value)].segment != s->forward[s->values[value].last_read].segment;
}

/* Returns the peak memory of the current cuts in bytes: the values that are kept, plus the largest segment. */
static int64_t peak_bytes(const sweep *s) {
    int64_t kept = 0, sum = 0, largest = 0;
    int32_t segment = 0;
    for (int32_t n = 0; n < s->forward_count; ++n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        if (s->forward[n].segment != segment) sum = 0;
        segment = s->forward[n].segment;
        for (int i = 0; i < node->output_count; ++i) {
            leati_value v = node->outputs[i];
            if (s->values[v].kept) continue;
            if (is_read_later(s, v))
                kept += s->values[v].bytes;
            else if (s->values[v].saved)
                sum += s->values[v].bytes;
        }
        if (sum > largest) largest = sum;
    }
    return kept + largest;
}

/* Chooses the cuts with the least peak memory.  Returns false if no cut would save memory. */
static bool choose_cuts(const sweep *s) {
    int64_t total = 0, least = 0, best = 0;
    for (int32_t n = 0; n < s->forward_count; ++n) total += s->forward[n].made;
    for (int k = 1; k <= most_segments; ++k) {
        cut_segments(s, total / k);
        int64_t bytes = peak_bytes(s);
        if (k > 1 && bytes >= least) continue;
        least = bytes;
        best = total / k;
    }
    cut_segments(s, best);
    return best < total;
}

/* ---- Copying the nodes that are computed again ---- */

static void mark_recomputed(sweep *s) {
    int32_t last = s->forward[s->forward_count - 1].segment;
    for (int32_t n = s->forward_count - 1; n >= 0; --n) {
        const leati_node *node = leati_graph_node_at(s->graph, n);
        /* All kernels except those of recurrent cells need a first output that somebody reads.  So if the first output
         * is kept, or read in a later segment, all outputs are kept. */
        bool whole = node->op != LEATI_OP_RNN && node->op != LEATI_OP_LSTM_CELL && node->output_count > 0 &&
                     (s->values[node->outputs[0]].kept || is_read_later(s, node->outputs[0]));
        for (int i = 0; i < node->output_count; ++i) {
            leati_value v = node->outputs[i];
            s->values[v].kept |= whole || s->forward[n].segment == last || is_read_later(s, v);
            s->forward[n].recomputed |= s->values[v].saved && !s->values[v].kept;
        }
        for (int i = 0; s->forward[n].recomputed && i < node->input_count; ++i)
            if (is_forward(s, node->inputs[i])) s->values[node->inputs[i]].saved = true;
    }
}

static leati_value read_instead(const sweep *s, leati_value value) {
    bool other = value >= 0 && value < s->value_count && s->values[value].stand_in != LEATI_NONE &&
                 !s->values[value].kept;
    return other ? s->values[value].stand_in : value;
}

static void copy_node(sweep *s, int32_t n) {
    leati_graph *graph = s->graph;
    const leati_node *node = leati_graph_node_at(graph, n);
    leati_value inputs[LEATI_MAX_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    for (int i = 0; i < node->input_count; ++i) inputs[i] = read_instead(s, node->inputs[i]);
    graph->label = node->label;
    s->order[s->ordered++] = leati_graph_node_count(graph);
    leati_graph_node(graph, node->op, &node->attrs, node->input_count, inputs, outputs);
    for (int i = 0; i < node->output_count; ++i) {
        s->values[node->outputs[i]].stand_in = outputs[i];
        if (outputs[i] >= 0 && leati_graph_value(graph, node->outputs[i])->may_be_bf16)
            leati_graph_mark_bf16(graph, outputs[i]);
    }
}

/* Adds, before a gradient node, the copies of the segments whose values it reads, unless they exist already. */
static void copy_segments_for(sweep *s, const leati_node *node) {
    for (int i = 0; i < node->input_count; ++i) {
        leati_value v = node->inputs[i];
        if (!is_forward(s, v) || s->values[v].kept || s->values[v].stand_in != LEATI_NONE) continue;
        int32_t segment = s->forward[producer_of(s, v)].segment, n = producer_of(s, v);
        while (n > 0 && s->forward[n - 1].segment == segment) --n;
        for (; n < s->forward_count && s->forward[n].segment == segment; ++n)
            if (s->forward[n].recomputed) copy_node(s, n);
    }
}

/* Replaces the inputs of a gradient node by their copies, and its forward node by the copy of that node. */
static void redirect(const sweep *s, leati_node *node) {
    int32_t forward = node->forward;
    for (int i = 0; i < node->input_count; ++i) {
        leati_value v = node->inputs[i], other = read_instead(s, v);
        if (other == v) continue;
        if (producer_of(s, v) == forward) node->forward = producer_of(s, other);
        node->inputs[i] = other;
    }
}

static void copy_recomputed(sweep *s) {
    leati_graph *graph = s->graph;
    const char *label = graph->label;
    for (int32_t n = 0; n < s->forward_count; ++n) s->order[s->ordered++] = n;
    for (int32_t n = s->forward_count; n < s->node_count; ++n) {
        leati_node *node = leati_graph_node_mutable(graph, n);
        copy_segments_for(s, node);
        if (graph->failure.code != LEAT_OK) break;
        redirect(s, node);
        s->order[s->ordered++] = n;
    }
    graph->label = label;
}

static void reorder(const sweep *s) {
    leati_graph *graph = s->graph;
    assert(s->ordered == leati_graph_node_count(graph));
    for (int32_t at = 0; at < s->ordered; ++at) s->place[s->order[at]] = at;
    for (leati_value v = 0; v < leati_graph_value_count(graph); ++v) {
        leati_value_info *info = leati_graph_value_mutable(graph, v);
        if (info->producer >= 0) info->producer = s->place[info->producer];
    }
    for (int32_t n = 0; n < s->ordered; ++n) {
        leati_node *node = leati_graph_node_mutable(graph, n);
        if (node->forward >= 0) node->forward = s->place[node->forward];
    }
    for (int32_t at = 0; at < s->ordered; ++at) {
        while (s->place[at] != at) {
            int32_t to = s->place[at];
            void *node = graph->nodes.items[to];
            graph->nodes.items[to] = graph->nodes.items[at];
            graph->nodes.items[at] = node;
            s->place[at] = s->place[to];
            s->place[to] = to;
        }
    }
}

leat_status leati_graph_recompute(leati_graph *graph, int32_t forward_count, leat_error *err) {
    LEATI_TRY(leati_graph_check(graph, err));
    sweep s = {.graph = graph,
               .forward_count = forward_count,
               .node_count = leati_graph_node_count(graph),
               .value_count = leati_graph_value_count(graph)};
    leat_status status = forward_count > 0 ? sweep_init(&s, err) : LEAT_OK;
    if (status == LEAT_OK && forward_count > 0) {
        collect_facts(&s);
        if (choose_cuts(&s)) {
            mark_recomputed(&s);
            copy_recomputed(&s);
            graph->recomputed = true;
            status = leati_graph_check(graph, err);
            if (status == LEAT_OK) reorder(&s);
        }
    }
    sweep_fini(&s);
    return status;
}
