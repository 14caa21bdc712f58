/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a model: emits its nodes, inputs and outputs, and writes the file (ModelProto of onnx.proto).
 * Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/probes.h"
#include "leat/version.h"

enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum {
    TENSOR_DIM = 1,
    TENSOR_TYPE = 2,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, LOCATION_EXTERNAL = 1 };

#define DATA_SUFFIX    ".data"
#define DATA_ALIGNMENT 64
#define LEAST_DATA_BYTES                                                                                     \
    1024 /* smaller constants stay in the ONNX file, where readers need shapes and the like */
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TYPE_ELEMENT = 1, TYPE_SHAPE = 2, SHAPE_DIM = 1 };
enum { DIM_VALUE = 1, DIM_NAME = 2 };

/* ---- Inputs and outputs: ValueInfoProto ---- */

static void put_value(leati_onnx *x, leati_message *out, int field, const char *name, leati_value value) {
    const leati_desc *desc = leati_graph_desc(x->graph, value);
    leati_message shape = {0}, dim = {0}, tensor = {0}, type = {0}, info = {0};
    for (int i = 0; i < desc->rank; ++i) {
        const leati_onnx_size size = leati_onnx_size_of(x, value, i);
        const char *open = leati_onnx_open_name(x, size);
        leati_message_clear(&dim);
        if (!leati_onnx_is_open(size))
            leati_message_int(&dim, DIM_VALUE, size.at[0]);
        else if (open)
            leati_message_text(&dim, DIM_NAME, open);
        leati_message_inner(&shape, SHAPE_DIM, &dim);
    }
    leati_message_int(&tensor, TYPE_ELEMENT, leati_onnx_type_of(desc->dtype));
    leati_message_inner(&tensor, TYPE_SHAPE, &shape);
    leati_message_inner(&type, TYPE_TENSOR, &tensor);
    leati_message_text(&info, VALUE_NAME, name);
    leati_message_inner(&info, VALUE_TYPE, &type);
    leati_message_inner(out, field, &info);
    leati_message_fini(&shape);
    leati_message_fini(&dim);
    leati_message_fini(&tensor);
    leati_message_fini(&type);
    leati_message_fini(&info);
}

/* Gives the inputs of the graph the names of the model's inputs. */
static void emit_inputs(leati_onnx *x) {
    for (leati_value value = 0; value < leati_graph_value_count(x->graph); ++value) {
        const leati_value_info *info = leati_graph_value(x->graph, value);
        if (info->storage != LEATI_IN_INPUT) continue;
        const char *name = leati_onnx_name(x, true, leati_model_input_name(x->model, info->where.input));
        leati_onnx_set_plain(x, value, name);
        put_value(x, &x->inputs, GRAPH_INPUT, name, value);
    }
}

/* Reserves the names of the outputs before others take them. */
static void name_outputs(leati_onnx *x, const char **names) {
    for (int i = 0; i < x->model->output_count; ++i)
        names[i] = leati_onnx_name(x, true, leati_model_output_name(x->model, i));
}

static void emit_outputs(leati_onnx *x, const char *const *names) {
    for (int i = 0; i < x->model->output_count; ++i) {
        const leati_value value = x->probes[0].predictions[i];
        const char *name = leati_onnx_plain(x, value);
        leati_onnx_node_to(x, "Identity", 1, &name, 1, &names[i], NULL);
        put_value(x, &x->outputs, GRAPH_OUTPUT, names[i], value);
    }
}

/* ---- States of stateful layers: an input and an output each ---- */

static void emit_states(leati_onnx *x, const leati_node *node) {
    for (int i = 0; i < node->input_count; ++i) {
        const leati_value value = node->inputs[i];
        const leati_value_info *info = value >= 0 ? leati_graph_value(x->graph, value) : NULL;
        char wish[LEAT_NAME_BYTES + 8];
        if (!info || info->storage != LEATI_IN_SLAB || info->where.slab != LEATI_SLAB_STATES) continue;
        if (x->forms[value].plain) continue;
        snprintf(wish, sizeof wish, "%s_state", x->label ? x->label : "model");
        const char *name = leati_onnx_name(x, true, wish);
        leati_onnx_set_plain(x, value, name);
        put_value(x, &x->inputs, GRAPH_INPUT, name, value);
    }
}

void leati_onnx_store(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    char wish[2 * LEAT_NAME_BYTES];
    const char *value = leati_onnx_plain(x, node->inputs[0]);
    snprintf(wish, sizeof wish, "%s_next", leati_onnx_plain(x, node->inputs[1]));
    const char *name = leati_onnx_name(x, true, wish);
    leati_onnx_node_to(x, "Identity", 1, &value, 1, &name, NULL);
    put_value(x, &x->states, GRAPH_OUTPUT, name, node->inputs[1]);
}

/* ---- Nodes ---- */

static leati_onnx_emit *const emitters[LEATI_OP_COUNT] = {
    [LEATI_OP_MATMUL] = leati_onnx_matmul,
    [LEATI_OP_CONV] = leati_onnx_conv,
    [LEATI_OP_CONV_BWD_DATA] = leati_onnx_conv_transpose,
    [LEATI_OP_PATCHES] = leati_onnx_patches,
    [LEATI_OP_POOLING] = leati_onnx_pooling,
    [LEATI_OP_RESAMPLE] = leati_onnx_resample,
    [LEATI_OP_BATCH_NORM_APPLY] = leati_onnx_batch_norm,
    [LEATI_OP_GROUP_NORM] = leati_onnx_group_norm,
    [LEATI_OP_RNN] = leati_onnx_rnn,
    [LEATI_OP_ELTWISE] = leati_onnx_eltwise,
    [LEATI_OP_BINARY] = leati_onnx_binary_op,
    [LEATI_OP_CALL] = leati_onnx_call,
    [LEATI_OP_REDUCE] = leati_onnx_reduce,
    [LEATI_OP_BROADCAST] = leati_onnx_broadcast,
    [LEATI_OP_SOFTMAX] = leati_onnx_softmax,
    [LEATI_OP_CONCAT] = leati_onnx_concat,
    [LEATI_OP_SLICE] = leati_onnx_slice,
    [LEATI_OP_PAD] = leati_onnx_pad,
    [LEATI_OP_TRANSPOSE] = leati_onnx_transpose,
    [LEATI_OP_RESHAPE] = leati_onnx_reshape,
    [LEATI_OP_REVERSE] = leati_onnx_reverse,
    [LEATI_OP_CAST] = leati_onnx_cast_op,
    [LEATI_OP_COPY] = leati_onnx_copy,
    [LEATI_OP_STORE] = leati_onnx_store,
    [LEATI_OP_GATHER] = leati_onnx_gather,
    [LEATI_OP_ONE_HOT] = leati_onnx_one_hot,
    [LEATI_OP_ARGMAX] = leati_onnx_argmax,
};

static void refuse_op(leati_onnx *x, leati_op op) {
    const leati_op_descriptor *descriptor = leati_op_descriptor_of(op);
    if (descriptor->flags & LEATI_OP_RANDOM)
        leati_onnx_refuse(x, "it draws random numbers, which differ from run to run; remove the layer");
    else
        leati_onnx_refuse(
            x,
            "ONNX has no equivalent of leat's operation '%s'; replace the layer, or end the model "
            "before it",
            descriptor->name);
}

static void emit_nodes(leati_onnx *x) {
    for (int32_t i = 0; x->failure.code == LEAT_OK && i < leati_graph_node_count(x->graph); ++i) {
        const leati_node *node = leati_graph_node_at(x->graph, i);
        if (!x->live[i]) continue;
        x->label = node->label;
        emit_states(x, node);
        if (emitters[node->op])
            emitters[node->op](x, node, leati_graph_node_at(x->probes[1].graph, i));
        else
            refuse_op(x, node->op);
    }
}

/* ---- The file ---- */

/* The destination of the bytes: a file, or memory with room for all of them. */
typedef struct sink {
    leati_replacement *file;
    unsigned char *memory;
} sink;

static leat_status put(sink *to, const void *data, size_t bytes, leat_error *err) {
    if (to->file) return leati_replace_write(to->file, data, bytes, err);
    if (bytes > 0) memcpy(to->memory, data, bytes);
    to->memory += bytes;
    return LEAT_OK;
}

static size_t bytes_of(const leati_onnx_initializer *item) {
    return leati_count_bytes(leati_shape_count(item->rank, item->dims), leat_dtype_bytes(item->dtype));
}

/* Adds an entry of the description of external data. */
static void add_entry(leati_message *tensor, const char *key, const char *value) {
    leati_message entry = {0};
    leati_message_text(&entry, ENTRY_KEY, key);
    leati_message_text(&entry, ENTRY_VALUE, value);
    leati_message_inner(tensor, TENSOR_EXTERNAL, &entry);
    tensor->failed = tensor->failed || entry.failed;
    leati_message_fini(&entry);
}

/* Returns the name of the file of external data, which is in the folder of the ONNX file. */
static const char *data_name(const leati_onnx *x) {
    const char *slash = strrchr(x->data_path, '/');
    return slash ? slash + 1 : x->data_path;
}

static void add_external(const leati_onnx *x, leati_message *tensor, const leati_onnx_initializer *item) {
    char number[32];
    add_entry(tensor, "location", data_name(x));
    snprintf(number, sizeof number, "%zu", item->offset_bytes);
    add_entry(tensor, "offset", number);
    snprintf(number, sizeof number, "%zu", bytes_of(item));
    add_entry(tensor, "length", number);
    leati_message_int(tensor, TENSOR_LOCATION, LOCATION_EXTERNAL);
}

/* Returns the bytes of an initializer's data that are in the ONNX file. */
static size_t inner_bytes_of(const leati_onnx_initializer *item) {
    return item->external ? 0 : bytes_of(item);
}

/* Makes the bytes of an initializer before its data: the beginning of the field, and the TensorProto without raw_data's
 * content. */
static void make_head(const leati_onnx *x, leati_message *out, const leati_onnx_initializer *item) {
    const size_t bytes = inner_bytes_of(item);
    leati_message head = {0};
    for (int i = 0; i < item->rank; ++i) leati_message_int(&head, TENSOR_DIM, item->dims[i]);
    leati_message_int(&head, TENSOR_TYPE, leati_onnx_type_of(item->dtype));
    leati_message_text(&head, TENSOR_NAME, item->name);
    if (item->external)
        add_external(x, &head, item);
    else
        leati_message_begin_bytes(&head, TENSOR_RAW, bytes);
    leati_message_clear(out);
    out->failed = out->failed || head.failed;
    leati_message_begin_bytes(out, GRAPH_INITIALIZER, head.length + bytes);
    leati_message_append(out, &head);
    leati_message_fini(&head);
}

/* Makes everything of the file before the initializers.  *total: the bytes of the whole file. */
static leat_status make_front(const leati_onnx *x, leati_message *out, size_t *total, leat_error *err) {
    leati_message graph = {0}, opset = {0}, head = {0};
    size_t rest = 0;
    leati_message_append(&graph, &x->nodes);
    leati_message_text(&graph, GRAPH_NAME, x->model->name);
    leati_message_append(&graph, &x->inputs);
    leati_message_append(&graph, &x->outputs);
    leati_message_append(&graph, &x->states);
    for (int32_t i = 0; i < x->initializer_count; ++i) {
        make_head(x, &head, &x->initializers[i]);
        rest += head.length + inner_bytes_of(&x->initializers[i]);
    }
    leati_message_int(out, MODEL_IR, LEATI_ONNX_IR);
    leati_message_text(&opset, OPSET_DOMAIN, "");
    leati_message_int(&opset, OPSET_VERSION, LEATI_ONNX_OPSET);
    leati_message_inner(out, MODEL_OPSET, &opset);
    leati_message_text(out, MODEL_PRODUCER, "leat");
    leati_message_text(out, MODEL_PRODUCER_VERSION, LEAT_VERSION_STRING);
    leati_message_begin_bytes(out, MODEL_GRAPH, graph.length + rest);
    leati_message_append(out, &graph);
    *total = out->length + rest;
    const bool failed = out->failed || head.failed || opset.failed;
    leati_message_fini(&graph);
    leati_message_fini(&opset);
    leati_message_fini(&head);
    return failed ? leati_fail_memory(err, *total, "an ONNX file") : LEAT_OK;
}

/* Moves the large constants to the file of external data. */
static void make_external(leati_onnx *x) {
    size_t offset = 0;
    for (int32_t i = 0; i < x->initializer_count; ++i) {
        leati_onnx_initializer *item = &x->initializers[i];
        if (bytes_of(item) < LEAST_DATA_BYTES) continue;
        item->external = true;
        item->offset_bytes = offset;
        offset += (bytes_of(item) + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
    }
}

static leat_status refuse_size(size_t total, bool to_memory, leat_error *err) {
    return leati_fail(err, LEAT_ENOTSUP,
                      "the model needs %zu bytes as ONNX, and ONNX files have at most 2147483647; save it %s",
                      total,
                      to_memory ? "to a file, which gets a file with the weights beside it"
                                : "as .keras or .h5");
}

/* Makes the front of a file that is at most as large as the limit. */
static leat_status make_fitting_front(leati_onnx *x, leati_message *front, size_t limit, size_t *bytes,
                                      leat_error *err) {
    LEATI_TRY(make_front(x, front, bytes, err));
    if (*bytes <= limit) return LEAT_OK;
    if (!x->data_path) return refuse_size(*bytes, true, err);
    make_external(x);
    leati_message_clear(front);
    LEATI_TRY(make_front(x, front, bytes, err));
    return *bytes <= INT32_MAX ? LEAT_OK : refuse_size(*bytes, false, err);
}

static leat_status write_external(const leati_onnx *x, leati_replacement *file, leat_error *err) {
    static const char zeros[DATA_ALIGNMENT];
    for (int32_t i = 0; i < x->initializer_count; ++i) {
        const leati_onnx_initializer *item = &x->initializers[i];
        if (!item->external) continue;
        LEATI_TRY(leati_replace_write(file, item->data, bytes_of(item), err));
        LEATI_TRY(leati_replace_write(file, zeros,
                                      (DATA_ALIGNMENT - bytes_of(item) % DATA_ALIGNMENT) % DATA_ALIGNMENT,
                                      err));
    }
    return LEAT_OK;
}

/* Writes the file of external data, if there is any. */
static leat_status write_data(const leati_onnx *x, leat_error *err) {
    leati_replacement file;
    bool any = false;
    for (int32_t i = 0; i < x->initializer_count; ++i) any = any || x->initializers[i].external;
    if (!any) return LEAT_OK;
    LEATI_TRY(leati_replace_begin(&file, x->data_path, err));
    leat_status status = write_external(x, &file, err);
    if (status == LEAT_OK) return leati_replace_commit(&file, err);
    leati_replace_abandon(&file);
    return status;
}

static leat_status write_all(const leati_onnx *x, sink *to, const leati_message *front, leat_error *err) {
    leati_message head = {0};
    leat_status status = put(to, front->data, front->length, err);
    for (int32_t i = 0; status == LEAT_OK && i < x->initializer_count; ++i) {
        make_head(x, &head, &x->initializers[i]);
        status =
            head.failed ? leati_fail_memory(err, 256, "an ONNX file") : put(to, head.data, head.length, err);
        if (status == LEAT_OK)
            status = put(to, x->initializers[i].data, inner_bytes_of(&x->initializers[i]), err);
    }
    leati_message_fini(&head);
    return status;
}

/* ---- Export ---- */

static leat_status export_graph(leati_onnx *x, leat_error *err) {
    const char *names[LEATI_NETWORK_MAX_OUTPUTS];
    LEATI_TRY(leati_onnx_probe(x, err));
    emit_inputs(x);
    name_outputs(x, names);
    emit_nodes(x);
    emit_outputs(x, names);
    if (x->failure.code == LEAT_OK && !x->nodes.failed && !x->inputs.failed && !x->outputs.failed &&
        !x->states.failed)
        return LEAT_OK;
    if (x->failure.code == LEAT_OK) return leati_fail_memory(err, x->nodes.length, "an ONNX graph");
    if (err) *err = x->failure;
    return x->failure.code;
}

static void fini(leati_onnx *x) {
    for (int i = 0; i < 2; ++i) leati_graph_destroy(&x->probes[i].graph);
    for (int32_t i = 0; i < x->names.count; ++i) leati_free(x->names.items[i]);
    for (int32_t i = 0; i < x->initializer_count; ++i) leati_free(x->initializers[i].owned);
    leati_free(x->data_path);
    leati_free(x->names.items);
    leati_free(x->taken.items);
    leati_free(x->initializers);
    leati_free(x->forms);
    leati_free(x->live);
    leati_message_fini(&x->nodes);
    leati_message_fini(&x->inputs);
    leati_message_fini(&x->outputs);
    leati_message_fini(&x->states);
    leati_free(x);
}

/* Writes the exported graph to a file, or to new memory if path is NULL. */
static leat_status write_graph(leati_onnx *x, const char *path, size_t limit, void **out, size_t *bytes,
                               leat_error *err) {
    leati_message front = {0};
    leati_replacement file;
    sink to = {NULL, NULL};
    leat_status status = make_fitting_front(x, &front, limit, bytes, err);
    if (status == LEAT_OK && path) status = write_data(x, err);
    if (status == LEAT_OK && path) {
        status = leati_replace_begin(&file, path, err);
        if (status == LEAT_OK) to.file = &file;
    } else if (status == LEAT_OK) {
        *out = to.memory = leati_calloc(*bytes, 1);
        if (!*out) status = leati_fail_memory(err, *bytes, "an ONNX file");
    }
    if (status == LEAT_OK) status = write_all(x, &to, &front, err);
    if (to.file && status == LEAT_OK)
        status = leati_replace_commit(&file, err);
    else if (to.file)
        leati_replace_abandon(&file);
    leati_message_fini(&front);
    return status;
}

/* Returns the path of the external data; NULL without memory. */
static char *data_path_of(const char *path) {
    char *out = leati_calloc(1, strlen(path) + sizeof DATA_SUFFIX);
    if (out) memcpy(out, path, strlen(path));
    if (out) memcpy(out + strlen(path), DATA_SUFFIX, sizeof DATA_SUFFIX);
    return out;
}

static leat_status export_model(const leat_model *model, const char *path, size_t limit, void **out,
                                size_t *bytes, leat_error *err) {
    leati_onnx *x = leati_calloc(1, sizeof *x);
    if (!x) return leati_fail_memory(err, sizeof *x, "an ONNX export");
    x->model = model, x->into = &x->nodes;
    if (path) x->data_path = data_path_of(path);
    leat_status status =
        path && !x->data_path ? leati_fail_memory(err, strlen(path), "an ONNX export") : export_graph(x, err);
    if (status == LEAT_OK) status = write_graph(x, path, limit, out, bytes, err);
    fini(x);
    return leati_prefix(status, err, "ONNX");
}

leat_status leati_onnx_save(const leat_model *model, const char *path, leat_error *err) {
    return leati_onnx_save_within(model, path, INT32_MAX, err);
}

leat_status leati_onnx_save_within(const leat_model *model, const char *path, size_t limit_bytes,
                                   leat_error *err) {
    size_t bytes;
    return export_model(model, path, limit_bytes, NULL, &bytes, err);
}

leat_status leati_onnx_save_memory(const leat_model *model, void **out, size_t *bytes, leat_error *err) {
    *out = NULL;
    leat_status status = export_model(model, NULL, INT32_MAX, out, bytes, err);
    if (status == LEAT_OK) return LEAT_OK;
    leati_free(*out);
    *out = NULL, *bytes = 0;
    return status;
}
