/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a model of an ONNX file: inputs, nodes, outputs.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/onnx_import/import.h"
#include "formats/onnx_import/onnx_import.h"
#include "nn/config/name.h"

enum { LEAST_OPSET = 7, LAST_OPSET = 25 };

/* ---- Inputs ---- */

/* Returns Keras's name of an input's type; NULL: none. */
static const char *dtype_of(int type) {
    switch (type) {
    case 0:
    case LEATI_IMPORT_FLOAT16:
    case LEATI_IMPORT_BFLOAT16: return "float32";
    case LEATI_IMPORT_DOUBLE: return "float64";
    case LEATI_IMPORT_FLOAT: return "float32";
    default: return leati_import_type_name(type);
    }
}

/* Returns true if a recurrent node with the steps first reads a value. */
static bool is_sequence(leati_import *x, const char *name) {
    for (int32_t i = 0; i < x->file->node_count; ++i) {
        const leati_import_node *node = &x->file->nodes[i];
        const bool recurrent =
            strcmp(node->op, "LSTM") == 0 || strcmp(node->op, "GRU") == 0 || strcmp(node->op, "RNN") == 0;
        const leati_import_attr *layout = leati_import_attr_of(node, "layout");
        if (recurrent && node->input_count > 0 && strcmp(node->inputs[0], name) == 0 &&
            (!layout || layout->number == 0))
            return true;
    }
    return false;
}

/* Returns the axis of an input that is the batch: the one whose name says so; the second one of a sequence with the
 * steps first; the first one that is open; otherwise the first one. */
static int batch_axis_of(leati_import *x, const leati_import_value_info *info) {
    for (int i = 0; i < info->rank; ++i)
        if (info->dims[i] < 0 && (strstr(info->names[i], "batch") || strcmp(info->names[i], "N") == 0))
            return i;
    if (info->rank == 3 && is_sequence(x, info->name)) return 1;
    for (int i = 0; i < info->rank; ++i)
        if (info->dims[i] < 0) return i;
    return 0;
}

static json_t *input_config(const leati_import_value_info *info, int batch, const char *dtype) {
    char name[LEAT_NAME_BYTES] = "";
    json_t *dims = json_array();
    if (dims) leati_import_append(&dims, json_null());
    for (int i = 0; dims && i < info->rank; ++i)
        if (i != batch)
            leati_import_append(&dims, info->dims[i] < 0 ? json_null() : json_integer(info->dims[i]));
    leati_name_append(name, info->name[0] ? info->name : "input", "");
    for (char *c = name; *c; ++c)
        if (*c == '/' || *c == ':') *c = '_';
    return json_pack("{s:o, s:s, s:s}", "batch_input_shape", dims, "dtype", dtype, "name", name);
}

static void add_input(leati_import *x, const leati_import_value_info *info) {
    leati_import_value *value = leati_import_find(x, info->name);
    const char *dtype = dtype_of(info->type);
    leat_dtype unused;
    if (!value || info->rank < 0 || (info->type && leat_dtype_parse(&unused, dtype, NULL) != LEAT_OK))
        leati_import_refuse(x, "input '%.64s': expected a tensor of numbers with a shape, received %s",
                            info->name, dtype);
    if (info->rank == 0)
        leati_import_refuse(x, "input '%.64s': expected at least one axis, the batch", info->name);
    if (!leati_import_ok(x)) return;
    const int batch = batch_axis_of(x, info);
    if (info->dims[batch] > 0 && x->fixed_batch == 0) x->fixed_batch = info->dims[batch];
    const leati_source source = leati_import_input(x, input_config(info, batch, dtype));
    leati_view view = leati_view_of(x, source);
    for (int i = 0, next = 1; i < info->rank; ++i)
        view.axes[i] = (leati_view_axis){1, {i == batch ? 0 : next++}};
    value->views[0] = view;
    value->view_count = 1;
    value->made = true;
    x->inputs[x->input_count++] = source;
}

static void add_inputs(leati_import *x) {
    x->inputs = leati_import_memory(x, x->file->input_count, sizeof *x->inputs);
    for (int32_t i = 0; i < x->file->input_count && leati_import_ok(x); ++i) {
        const leati_import_value *value = leati_import_find(x, x->file->inputs[i].name);
        if (!value || !value->constant) add_input(x, &x->file->inputs[i]);
    }
    if (leati_import_ok(x) && x->input_count == 0)
        leati_import_refuse(x, "expected a model with an input, found none");
}

/* ---- Nodes ---- */

static const leati_import_operator *const tables[] = {
    leati_import_window_operators,    leati_import_product_operators, leati_import_norm_operators,
    leati_import_element_operators,   leati_import_move_operators,    leati_import_reduce_operators,
    leati_import_recurrent_operators, leati_import_slice_operators,   leati_import_scan_operators};

const leati_import_operator *leati_import_operator_of(const char *name) {
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; ++t)
        for (const leati_import_operator *at = tables[t]; at->name; ++at)
            if (strcmp(at->name, name) == 0) return at;
    return NULL;
}

static void read_node(leati_import *x) {
    const leati_import_node *node = x->node;
    const bool standard = node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0;
    if (standard && leati_import_fold(x)) return;
    const leati_import_operator *operator= standard ? leati_import_operator_of(node->op) : NULL;
    if (!leati_import_ok(x)) return;
    if (!standard && strcmp(node->domain, "com.microsoft") == 0) operator= leati_import_operator_of(node->op);
    if (operator)
        operator->read(x);
    else if (standard)
        leati_import_refuse(
            x, "leat does not have this operator; export the part of the model before it, or write that "
               "part with other operators (docs/formats/onnx.md has the list)");
    else
        leati_import_refuse(
            x,
            "leat does not have operators of the domain '%.64s'; export the model with the standard "
            "operators only",
            node->domain);
}

void leati_import_nodes(leati_import *x) {
    for (int32_t i = 0; i < x->file->node_count && leati_import_ok(x); ++i) {
        x->node = &x->file->nodes[i];
        bool needed = false, done = x->node->output_count > 0;
        for (int32_t k = 0; k < x->node->output_count; ++k) {
            const leati_import_value *value = leati_import_find(x, x->node->outputs[k]);
            needed = needed || (value && value->readers > 0);
            done = done && (!value || value->made);
        }
        if (needed && !done) read_node(x); /* done: an earlier node has been joined with this one */
    }
    x->node = NULL;
}

/* ---- Outputs ---- */

/* Returns true if a source is an input, or another output of the model: Keras's outputs come from different layers. */
static bool needs_layer(const leati_import *x, leati_source source, int count, const leati_source *others) {
    for (int i = 0; i < count; ++i)
        if (others[i].layer == source.layer) return true;
    return leati_layer_is_input(x->model->members[source.layer].layer);
}

/* Returns true if the layer that makes a source may get another name: it makes nothing else, and has no weights, whose
 * names would change, too. */
static bool may_rename(const leati_import *x, leati_source source) {
    const leati_member *member = &x->model->members[source.layer];
    return member->layer->weight_count == 0 && member->call_count == 1 && member->calls[0].output_count == 1;
}

/* Gives an output of the model the name that it has in the file, where that is free. */
static void name_output(leati_import *x, const char *wish, leati_source *source, int count,
                        const leati_source *others) {
    char name[LEAT_NAME_BYTES] = "";
    leat_error err = {0};
    leati_name_append(name, wish, "");
    for (char *c = name; *c; ++c)
        if (*c == '/' || *c == ':') *c = '_';
    if (needs_layer(x, *source, count, others))
        *source = leati_import_layer(x, "Identity", json_object(), 1, source);
    if (!leati_import_ok(x) || !may_rename(x, *source) || leati_network_find(x->model, name) >= 0) return;
    if (leati_name_check(name, &err) == LEAT_OK)
        memcpy(x->model->members[source->layer].layer->name, name, sizeof name);
}

static void finish(leati_import *x) {
    leati_source outputs[LEATI_NETWORK_MAX_OUTPUTS];
    leat_error err = {0};
    const int32_t count = x->file->output_count;
    if (count < 1 || count > LEATI_NETWORK_MAX_OUTPUTS)
        leati_import_refuse(x, "expected 1 to %d outputs, found %d", LEATI_NETWORK_MAX_OUTPUTS, (int)count);
    for (int32_t i = 0; i < count && leati_import_ok(x); ++i) {
        leati_import_value *value = leati_import_find(x, x->file->outputs[i].name);
        if (!value || !value->made)
            leati_import_refuse(x, "output '%.64s' is never made", x->file->outputs[i].name);
        if (!leati_import_ok(x)) return;
        const leati_view view = leati_import_natural(x, value);
        outputs[i] = view.source;
        if (leati_import_ok(x) && view.shape.rank != view.rank)
            leati_import_refuse(x, "output '%.64s' mixes samples in one axis", value->name);
        if (leati_import_ok(x)) name_output(x, value->name, &outputs[i], i, outputs);
    }
    leat_status status = LEAT_OK;
    if (leati_import_ok(x))
        status = leati_network_finish(x->model, x->input_count, x->inputs, count, outputs, &err);
    if (leati_import_ok(x) && status == LEAT_OK) status = leati_weights_layout(x->model, &err);
    leati_import_failed(x, status, &err);
    if (leati_import_ok(x)) leati_import_fill(x);
}

/* ---- The whole ---- */

static void read_all(leati_import *x) {
    leat_error err = {0};
    const int64_t opset = x->file->opset;
    if (opset < LEAST_OPSET || opset > LAST_OPSET)
        leati_import_refuse(
            x,
            "expected operators of opset %d to %d, found opset %lld: export the model again, or use "
            "onnx.version_converter",
            LEAST_OPSET, LAST_OPSET, (long long)opset);
    if (leati_import_ok(x)) leati_import_failed(x, leati_network_create(&x->model, "Model", &err), &err);
    if (!leati_import_ok(x)) return;
    const char *name = x->file->graph_name;
    leati_name_append(x->model->name, name[0] && leati_name_check(name, NULL) == LEAT_OK ? name : "model",
                      "");
    for (char *c = x->model->name; *c; ++c)
        if (*c == '/') *c = '_';
    x->model->as_keras3 = x->model->from_keras3 = true;
    leati_import_values_make(x);
    if (leati_import_ok(x)) add_inputs(x);
    if (leati_import_ok(x)) leati_import_nodes(x);
    if (leati_import_ok(x)) finish(x);
}

bool leati_onnx_is(const unsigned char *data, size_t bytes) {
    return leati_import_is(data, bytes);
}

leat_status leati_onnx_load(leat_model **out, const char *path, const void *data, size_t bytes,
                            leat_error *err) {
    leati_import_file file;
    leati_import x = {.file = &file};
    *out = NULL;
    leat_status status = leati_prefix(leati_import_parse(&file, path, data, bytes, err), err, "ONNX");
    if (status == LEAT_OK) {
        read_all(&x);
        status = (leat_status)x.failure.code;
        if (status != LEAT_OK && err) *err = x.failure;
        leati_prefix(status, err, "ONNX");
    }
    for (int32_t i = 0; i < x.binding_count; ++i) json_decref(x.bindings[i].config);
    leati_free(x.bindings);
    leati_import_file_fini(&file);
    if (status != LEAT_OK) leat_model_destroy(&x.model);
    *out = x.model;
    return status;
}
