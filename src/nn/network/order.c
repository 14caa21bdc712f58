/* SPDX-License-Identifier: Apache-2.0 */
/* Finishes a model: finds what its outputs need, and sorts layers and calls as Keras does.
 * Source: keras/engine/network.py, 2.3.1, _map_graph_network.  Room: nn. */
#include "nn/network/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/added.h"

/* A call; the calls of all members are numbered together. */
typedef struct node {
    int32_t member, call;
    int32_t depth;
    int32_t next_input; /* the input that the walk visits next */
    int32_t new_call;   /* its new number among its member's calls */
    bool entered;
} node;

/* The position of a member in Keras's order. */
typedef struct rank {
    int32_t member;
    int32_t depth;
    int32_t index; /* index in the order in which the walk reached the members; -1: not reached */
} rank;

typedef struct walk {
    leat_model *model;
    int32_t node_count, done_count, met_count;
    node *nodes;
    int32_t *stack;     /* nodes that the walk has entered and not finished */
    int32_t *done;      /* finished nodes: each comes after the nodes that it needs */
    rank *ranks;        /* by member */
    int32_t *new_index; /* new index of each member */
} walk;

static void number_calls(leat_model *model) {
    int32_t count = 0;
    for (int32_t i = 0; i < model->member_count; ++i) {
        model->members[i].first_call = count;
        count += model->members[i].call_count;
    }
    model->schedule_count = count;
}

static void walk_fini(walk *w) {
    leati_free(w->nodes);
    leati_free(w->stack);
    leati_free(w->done);
    leati_free(w->ranks);
    leati_free(w->new_index);
}

static leat_status walk_init(walk *w, leat_model *model, leat_error *err) {
    number_calls(model);
    *w = (walk){.model = model, .node_count = model->schedule_count};
    size_t nodes = (size_t)w->node_count + 1, members = (size_t)model->member_count + 1;
    w->nodes = leati_calloc(nodes, sizeof *w->nodes);
    w->stack = leati_calloc(nodes, sizeof *w->stack);
    w->done = leati_calloc(nodes, sizeof *w->done);
    w->ranks = leati_calloc(members, sizeof *w->ranks);
    w->new_index = leati_calloc(members, sizeof *w->new_index);
    if (!w->nodes || !w->stack || !w->done || !w->ranks || !w->new_index)
        return leati_fail_memory(err, nodes * sizeof *w->nodes, "the order of layers");
    for (int32_t i = 0, n = 0; i < model->member_count; ++i) {
        w->ranks[i] = (rank){.member = i, .index = -1};
        for (int32_t call = 0; call < model->members[i].call_count; ++call)
            w->nodes[n++] = (node){.member = i, .call = call};
    }
    return LEAT_OK;
}

static int32_t node_of(const leat_model *model, const leati_source *source) {
    return model->members[source->layer].first_call + source->call;
}

static const leati_call *call_of(const walk *w, int32_t n) {
    return &w->model->members[w->nodes[n].member].calls[w->nodes[n].call];
}

static void enter(walk *w, int32_t n, int32_t *height) {
    rank *r = &w->ranks[w->nodes[n].member];
    if (w->nodes[n].entered) return;
    w->nodes[n].entered = true;
    if (r->index < 0) r->index = w->met_count++;
    w->stack[(*height)++] = n;
}

/* Walks depth first, inputs in their order.  There are no cycles, since a call reads only tensors that exist. */
static void walk_from(walk *w, int32_t start) {
    int32_t height = 0;
    enter(w, start, &height);
    while (height > 0) {
        int32_t n = w->stack[height - 1];
        const leati_call *call = call_of(w, n);
        if (w->nodes[n].next_input < call->input_count)
            enter(w, node_of(w->model, &call->inputs[w->nodes[n].next_input++]), &height);
        else {
            w->done[w->done_count++] = n;
            --height;
        }
    }
}

/* As in Keras, the depth of a call is at least the depth of the calls of its layer that were visited before. */
static void find_depths(walk *w) {
    for (int32_t i = w->done_count - 1; i >= 0; --i) {
        node *n = &w->nodes[w->done[i]];
        rank *r = &w->ranks[n->member];
        const leati_call *call = call_of(w, w->done[i]);
        if (n->depth < r->depth) n->depth = r->depth;
        r->depth = n->depth;
        for (int32_t j = 0; j < call->input_count; ++j) {
            node *input = &w->nodes[node_of(w->model, &call->inputs[j])];
            if (input->depth < n->depth + 1) input->depth = n->depth + 1;
        }
    }
}

static int compare_ranks(const void *a, const void *b) {
    const rank *x = a, *y = b;
    if ((x->index < 0) != (y->index < 0)) return x->index < 0 ? 1 : -1;
    if (x->depth != y->depth) return x->depth > y->depth ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static void call_fini(leati_call *call) {
    leati_free(call->inputs);
}

static void member_fini(leati_member *member) {
    for (int32_t i = 0; i < member->call_count; ++i) call_fini(&member->calls[i]);
    leati_free(member->calls);
    leati_layer_destroy(&member->layer);
    leat_model_destroy(&member->model);
}

void leati_network_fini(leat_model *model) {
    for (int32_t i = 0; i < model->member_count; ++i) member_fini(&model->members[i]);
    leati_free(model->members);
    leati_free(model->schedule);
    leati_free(model->inputs);
    leati_free(model->outputs);
}

static leati_source renumbered(const walk *w, const leati_source *source) {
    return (leati_source){.layer = w->new_index[source->layer],
                          .call = w->nodes[node_of(w->model, source)].new_call,
                          .tensor = source->tensor};
}

/* Renumbers all sources of the calls that the walk reached. */
static void renumber_sources(walk *w) {
    leat_model *model = w->model;
    for (int32_t i = 0; i < w->done_count; ++i) {
        const leati_call *call = call_of(w, w->done[i]);
        for (int32_t j = 0; j < call->input_count; ++j) call->inputs[j] = renumbered(w, &call->inputs[j]);
        model->schedule[i] =
            (leati_scheduled_call){w->new_index[w->nodes[w->done[i]].member], w->nodes[w->done[i]].new_call};
    }
    for (int32_t i = 0; i < model->input_count; ++i) model->inputs[i] = renumbered(w, &model->inputs[i]);
    for (int32_t i = 0; i < model->output_count; ++i) model->outputs[i] = renumbered(w, &model->outputs[i]);
}

static void number_calls_that_stay(walk *w) {
    for (int32_t i = 0; i < w->model->member_count; ++i) {
        int32_t kept = 0;
        for (int32_t c = 0; c < w->model->members[i].call_count; ++c) {
            node *n = &w->nodes[w->model->members[i].first_call + c];
            if (n->entered) n->new_call = kept++;
        }
    }
}

static void drop_calls(walk *w, int32_t i) {
    leati_member *member = &w->model->members[i];
    int32_t kept = 0;
    for (int32_t c = 0; c < member->call_count; ++c) {
        const node *n = &w->nodes[member->first_call + c];
        member->calls[c].depth = n->depth;
        if (n->entered)
            member->calls[kept++] = member->calls[c];
        else
            call_fini(&member->calls[c]);
    }
    member->call_count = kept;
}

/* Reorders members and calls.  `sorted` has Keras's order; members that were not reached come last, and are freed. */
static void rearrange(walk *w, const rank *sorted, leati_member *members) {
    leat_model *model = w->model;
    int32_t kept = 0;
    for (int32_t i = 0; i < model->member_count; ++i) w->new_index[sorted[i].member] = i;
    number_calls_that_stay(w);
    renumber_sources(w);
    for (int32_t i = 0; i < model->member_count; ++i) drop_calls(w, i);
    for (int32_t i = 0; i < model->member_count; ++i) {
        members[i] = model->members[sorted[i].member];
        if (sorted[i].index >= 0)
            ++kept;
        else
            member_fini(&members[i]);
    }
    leati_free(model->members);
    model->members = members;
    model->member_count = kept;
    number_calls(model);
}

static leat_status check_inputs(const walk *w, leat_error *err) {
    const leat_model *model = w->model;
    for (int32_t i = 0; i < w->done_count; ++i) {
        const leati_member *member = &model->members[w->nodes[w->done[i]].member];
        bool listed = !member->layer || !leati_layer_is_input(member->layer);
        for (int32_t j = 0; j < model->input_count; ++j)
            if (model->inputs[j].layer == w->nodes[w->done[i]].member) listed = true;
        if (!listed)
            return leati_fail(err, LEAT_EINVAL, "the outputs need '%s', which is not an input of the model",
                              member->layer->name);
    }
    return LEAT_OK;
}

/* Returns the capacity of an array of this many members: a power of two, as leati_network_add_layer expects. */
static size_t capacity_of(size_t count) {
    size_t capacity = 1;
    while (capacity < count) capacity *= 2;
    return capacity;
}

/* Fails if a layer that the outputs need makes a tensor without a batch. */
static leat_status check_batches(const walk *w, leat_error *err) {
    for (int32_t i = 0; i < w->done_count; ++i) {
        const leati_call *call = call_of(w, w->done[i]);
        const int32_t member = w->nodes[w->done[i]].member;
        for (int32_t j = 0; j < call->output_count; ++j)
            if (call->outputs[j].rank < 1)
                return leati_fail(
                    err, LEAT_ENOTSUP,
                    "layer '%s': expected a result whose first axis is the batch, as leat's layers need "
                    "it, received a scalar; write the part of the model that mixes samples as a custom "
                    "layer (leat/layer.h)",
                    leati_member_name(w->model, member));
    }
    return LEAT_OK;
}

/* Walks from the layers AddLoss and AddMetric.  What they alone need comes after all other layers, as in tf.keras. */
static void walk_from_added(walk *w) {
    const leat_model *model = w->model;
    const int32_t needed = w->done_count, met = w->met_count;
    for (int32_t i = 0; i < model->member_count; ++i)
        for (int32_t j = 0; j < model->members[i].call_count; ++j)
            if (model->members[i].layer && leati_layer_is_added(model->members[i].layer))
                walk_from(w, model->members[i].first_call + j);
    for (int32_t i = needed; i < w->done_count; ++i) {
        const int32_t member = w->nodes[w->done[i]].member;
        rank *r = &w->ranks[member];
        if (r->index < met || r->depth < 0) continue;
        r->depth = -1;
        r->index = met + i;
        w->model->members[member].added = true;
    }
}

static leat_status sort(walk *w, bool added, leat_error *err) {
    leat_model *model = w->model;
    size_t count = (size_t)model->member_count;
    for (int32_t i = 0; i < model->output_count; ++i) walk_from(w, node_of(model, &model->outputs[i]));
    for (int32_t i = 0; i < model->input_count; ++i) walk_from(w, node_of(model, &model->inputs[i]));
    LEATI_TRY(check_batches(w, err));
    find_depths(w);
    if (added) walk_from_added(w);
    LEATI_TRY(check_inputs(w, err));
    rank *sorted = leati_memdup(w->ranks, count * sizeof *sorted);
    leati_member *members = leati_calloc(capacity_of(count), sizeof *members);
    model->schedule = leati_calloc((size_t)w->done_count, sizeof *model->schedule);
    if (!sorted || !members || !model->schedule) {
        leati_free(sorted);
        leati_free(members);
        return leati_fail_memory(err, count * sizeof *members, "layers");
    }
    qsort(sorted, count, sizeof *sorted, compare_ranks);
    rearrange(w, sorted, members);
    leati_free(sorted);
    return LEAT_OK;
}

static leat_status copy_sources(const leat_model *model, int32_t count, const leati_source *from,
                                const char *what, leati_source **to, int32_t *to_count, leat_error *err) {
    if (count < 1) return leati_fail(err, LEAT_EINVAL, "expected at least one %s, received none", what);
    for (int32_t i = 0; i < count; ++i)
        if (!leati_network_has(model, &from[i]))
            return leati_fail(err, LEAT_EINVAL, "%s %d is not a tensor of this model", what, (int)i);
    *to = leati_memdup(from, (size_t)count * sizeof **to);
    if (!*to) return leati_fail_memory(err, (size_t)count * sizeof **to, what);
    *to_count = count;
    return LEAT_OK;
}

static leat_status check_input_layers(const leat_model *model, leat_error *err) {
    for (int32_t i = 0; i < model->input_count; ++i) {
        const leati_member *member = &model->members[model->inputs[i].layer];
        if (!member->layer || !leati_layer_is_input(member->layer))
            return leati_fail(err, LEAT_EINVAL,
                              "expected input %d to be that of an InputLayer, received layer '%s'", (int)i,
                              leati_member_name(model, model->inputs[i].layer));
        for (int32_t j = 0; j < i; ++j)
            if (model->inputs[j].layer == model->inputs[i].layer)
                return leati_fail(err, LEAT_EINVAL, "input '%s' is listed twice", member->layer->name);
    }
    return LEAT_OK;
}

static leat_status finish(leat_model *model, bool added, int32_t input_count, const leati_source *inputs,
                          int32_t output_count, const leati_source *outputs, leat_error *err) {
    walk w = {0};
    LEATI_TRY(copy_sources(model, input_count, inputs, "input", &model->inputs, &model->input_count, err));
    LEATI_TRY(
        copy_sources(model, output_count, outputs, "output", &model->outputs, &model->output_count, err));
    LEATI_TRY(check_input_layers(model, err));
    leat_status status = walk_init(&w, model, err);
    if (status == LEAT_OK) status = sort(&w, added, err);
    walk_fini(&w);
    return status;
}

leat_status leati_network_finish(leat_model *model, int32_t input_count, const leati_source *inputs,
                                 int32_t output_count, const leati_source *outputs, leat_error *err) {
    return finish(model, false, input_count, inputs, output_count, outputs, err);
}

leat_status leati_network_finish_added(leat_model *model, int32_t input_count, const leati_source *inputs,
                                       int32_t output_count, const leati_source *outputs, leat_error *err) {
    return finish(model, true, input_count, inputs, output_count, outputs, err);
}

bool leati_network_has_added(const leat_model *model) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_member *member = &model->members[i];
        const leat_model *inner = leati_member_model(member);
        if (member->layer && leati_layer_is_added(member->layer)) return true;
        if (inner && leati_network_has_added(inner)) return true;
    }
    return false;
}
