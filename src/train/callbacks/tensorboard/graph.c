/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a model as a GraphDef.  Source: tensorboard/compat/proto/graph.proto, node_def.proto, attr_value.proto.
 * Room: train. */
#include "train/callbacks/tensorboard/graph.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "json/json.h"
#include "nn/model/summary.h"

/* Fields of tensorboard.Event, GraphDef, NodeDef, the entries of NodeDef.attr, AttrValue and its ListValue, and
 * TensorShapeProto with its Dim. */
enum {
    EVENT_GRAPH_DEF = 4,
    GRAPH_NODE = 1,
    NODE_NAME = 1,
    NODE_OP = 2,
    NODE_INPUT = 3,
    NODE_ATTR = 5,
    ATTR_KEY = 1,
    ATTR_VALUE = 2,
    VALUE_LIST = 1,
    VALUE_TEXT = 2,
    VALUE_INT = 3,
    VALUE_BOOL = 5,
    LIST_SHAPE = 7,
    SHAPE_DIM = 2,
    DIM_SIZE = 1
};

/* A model whose layers become nodes: the outermost model, or a nested model in its first call. */
typedef struct scope scope;
struct scope {
    const leat_model *model;
    const char *prefix; /* "" or "encoder/" */
    const scope *outer; /* NULL for the outermost model */
    const leati_call
        *of; /* the call of the nested model, whose inputs are tensors of `outer`; otherwise NULL */
    leati_message *graph;
};

/* Adds the name of a layer.  Characters with a meaning in the name of a node's input become '_'. */
static void add_name(leati_text *text, const char *name) {
    size_t begin = text->length;
    leati_text_add(text, "%s", name);
    for (size_t i = begin; !text->failed && i < text->length; ++i)
        if (strchr(":^", text->data[i])) text->data[i] = '_';
}

static void add_call_name(leati_text *text, const leat_model *model, int32_t member, int32_t call) {
    add_name(text, leati_member_name(model, member));
    if (model->members[member].call_count > 1) leati_text_add(text, "/call_%d", (int)call);
}

/* Returns true if the layers of the nested model are shown in this call. */
static bool is_expanded(const leat_model *model, int32_t member, int32_t call) {
    return model->members[member].model && call == 0;
}

/* Adds the name of a tensor as an input of a node: "dense_1", or "lstm_1:2" for an output other than the first.  The
 * output of an expanded nested model is a tensor of a layer in the model. */
static void add_source(leati_text *text, const leat_model *model, leati_source source) {
    while (is_expanded(model, source.layer, source.call)) {
        add_call_name(text, model, source.layer, source.call);
        leati_text_add(text, "/");
        model = model->members[source.layer].model;
        source = model->outputs[source.tensor];
    }
    add_call_name(text, model, source.layer, source.call);
    if (source.tensor > 0) leati_text_add(text, ":%d", (int)source.tensor);
}

static leat_status write_text(leati_message *graph, int field, leati_text *text, leat_error *err) {
    leat_status status =
        text->failed ? leati_fail_memory(err, text->length, "the graph of the model") : LEAT_OK;
    if (status == LEAT_OK) leati_message_text(graph, field, text->data);
    leati_text_fini(text);
    return status;
}

static leat_status write_input(const scope *at, const leati_source *source, leat_error *err) {
    leati_text text = {0};
    leati_text_add(&text, "%s", at->prefix);
    add_source(&text, at->model, *source);
    return write_text(at->graph, NODE_INPUT, &text, err);
}

/* Writes the inputs of a call.  An input of a nested model reads what the call of the model reads. */
static leat_status write_inputs(const scope *at, int32_t member, const leati_call *call, leat_error *err) {
    for (int32_t i = 0; i < call->input_count; ++i) LEATI_TRY(write_input(at, &call->inputs[i], err));
    for (int32_t i = 0; at->outer && i < at->model->input_count; ++i)
        if (at->model->inputs[i].layer == member && i < at->of->input_count)
            LEATI_TRY(write_input(at->outer, &at->of->inputs[i], err));
    return LEAT_OK;
}

/* ---- Attributes ---- */

static size_t begin_attribute(leati_message *graph, const char *key, size_t *entry) {
    *entry = leati_message_begin(graph, NODE_ATTR);
    leati_message_text(graph, ATTR_KEY, key);
    return leati_message_begin(graph, ATTR_VALUE);
}

static void end_attribute(leati_message *graph, size_t value, size_t entry) {
    leati_message_end(graph, value);
    leati_message_end(graph, entry);
}

static void write_int(leati_message *graph, const char *key, int field, int64_t number) {
    size_t entry, value = begin_attribute(graph, key, &entry);
    leati_message_int(graph, field, number);
    end_attribute(graph, value, entry);
}

static void write_shape(leati_message *graph, const leati_shape *shape) {
    size_t list = leati_message_begin(graph, LIST_SHAPE);
    for (int32_t i = 0; i < shape->rank; ++i) {
        size_t dim = leati_message_begin(graph, SHAPE_DIM);
        leati_message_int(graph, DIM_SIZE, shape->dims[i] < 0 ? -1 : shape->dims[i]);
        leati_message_end(graph, dim);
    }
    leati_message_end(graph, list);
}

/* Writes the attribute that TensorBoard shows at the edges of the graph. */
static void write_shapes(leati_message *graph, const leati_call *call) {
    size_t entry, value = begin_attribute(graph, "_output_shapes", &entry);
    size_t list = leati_message_begin(graph, VALUE_LIST);
    for (int32_t i = 0; i < call->output_count; ++i) write_shape(graph, &call->outputs[i]);
    leati_message_end(graph, list);
    end_attribute(graph, value, entry);
}

static leat_status write_config(leati_message *graph, const leati_layer *layer, leat_error *err) {
    json_t *config = NULL;
    char *text = NULL;
    LEATI_TRY(leati_layer_config(layer, &config, err));
    leat_status status = leati_json_write(config, &text, err);
    json_decref(config);
    if (status != LEAT_OK) return status;
    size_t entry, value = begin_attribute(graph, "config", &entry);
    leati_message_text(graph, VALUE_TEXT, text);
    end_attribute(graph, value, entry);
    leat_string_free(text);
    return LEAT_OK;
}

/* ---- Nodes ---- */

static leat_status write_node(const scope *at, const char *name, int32_t member_index, const leati_call *call,
                              leat_error *err) {
    const leati_member *member = &at->model->members[member_index];
    size_t node = leati_message_begin(at->graph, GRAPH_NODE);
    leati_message_text(at->graph, NODE_NAME, name);
    leati_message_text(at->graph, NODE_OP,
                       member->layer ? member->layer->type->class_name : member->model->class_name);
    LEATI_TRY(write_inputs(at, member_index, call, err));
    write_shapes(at->graph, call);
    write_int(at->graph, "parameters", VALUE_INT, leati_summary_params(member));
    write_int(at->graph, "trainable", VALUE_BOOL,
              member->layer ? member->layer->trainable : member->model->trainable);
    if (member->layer) LEATI_TRY(write_config(at->graph, member->layer, err));
    leati_message_end(at->graph, node);
    return LEAT_OK;
}

static leat_status write_scope(const scope *at, leat_error *err);

static leat_status write_call(const scope *at, const leati_scheduled_call *step, leat_error *err) {
    const leati_member *member = &at->model->members[step->member];
    const leati_call *call = &member->calls[step->call];
    bool expanded = is_expanded(at->model, step->member, step->call);
    leati_text name = {0};
    leati_text_add(&name, "%s", at->prefix);
    add_call_name(&name, at->model, step->member, step->call);
    if (expanded) leati_text_add(&name, "/");
    const scope inner = {member->model, name.data, at, call, at->graph};
    leat_status status = name.failed ? leati_fail_memory(err, name.length, "the graph of the model")
                         : expanded  ? write_scope(&inner, err)
                                     : write_node(at, name.data, step->member, call, err);
    leati_text_fini(&name);
    return status;
}

static leat_status write_scope(const scope *at, leat_error *err) {
    for (int32_t i = 0; i < at->model->schedule_count; ++i)
        LEATI_TRY(write_call(at, &at->model->schedule[i], err));
    return LEAT_OK;
}

leat_status leati_event_graph(leati_event_file *file, const leat_model *model, leat_error *err) {
    leati_message graph = {0};
    const scope whole = {.model = model, .prefix = "", .graph = &graph};
    leat_status status = write_scope(&whole, err);
    if (status == LEAT_OK) {
        leati_message *message = leati_event_begin(file, 0);
        leati_message_bytes(message, EVENT_GRAPH_DEF, graph.data, graph.length);
        message->failed = message->failed || graph.failed;
        status = leati_event_end(file, err);
    }
    leati_message_fini(&graph);
    return status;
}
