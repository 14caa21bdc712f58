/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an ONNX file (onnx.proto) into nodes, constants, inputs and outputs.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "formats/onnx_import/tensor_proto.h"

enum { MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_FUNCTION = 25, OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_SPARSE = 15
};
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTR = 5, NODE_DOMAIN = 7 };
enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, TYPE_ELEMENT = 1, TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };
enum {
    ATTR_NAME = 1,
    ATTR_FLOAT = 2,
    ATTR_INT = 3,
    ATTR_TEXT = 4,
    ATTR_TENSOR = 5,
    ATTR_GRAPH = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_TEXTS = 9,
    ATTR_REFERENCE = 21
};

/* A file of `bytes` bytes may take this much memory, so that a small file cannot claim all of it. */
#define ARENA_BYTES  ((size_t)64 << 20)
#define ARENA_FACTOR ((size_t)16)

bool leati_import_is(const unsigned char *data, size_t bytes) {
    return bytes > 2 && data[0] == 0x08 && data[1] > 0 &&
           data[1] < 0x40; /* field 1: the version of the file */
}

leat_status leati_import_no_memory(leati_import_file *file, leat_error *err) {
    if (file->arena->used > file->arena->most / 2)
        return leati_fail(err, LEAT_EFORMAT, "the description of the model is too large for its file");
    return leati_fail(err, LEAT_ENOMEM, "no memory for an ONNX file");
}

leat_status leati_import_text(leati_import_file *file, const leati_proto_field *field, const char **out,
                              leat_error *err) {
    char *copy = leati_arena_get(file->arena, 1, field->bytes + 1);
    *out = "";
    if (!copy) return leati_import_no_memory(file, err);
    if (field->bytes > 0) memcpy(copy, field->data, field->bytes);
    for (size_t i = 0; i < field->bytes; ++i)
        if ((unsigned char)copy[i] < ' ' || copy[i] == 0x7f) copy[i] = '_';
    *out = copy;
    return LEAT_OK;
}

static leat_status end_of(const leati_proto *message, const char *what, leat_error *err) {
    return message->malformed
               ? leati_fail(err, LEAT_EFORMAT, "%s: malformed or truncated protocol buffer", what)
               : LEAT_OK;
}

/* Counts the fields of a number whose values are bytes. */
static int32_t count_fields(leati_proto message, int number) {
    leati_proto_field field;
    int32_t count = 0;
    while (leati_proto_next(&message, &field))
        if (field.number == number && field.wire == LEATI_WIRE_BYTES) ++count;
    return count;
}

static leat_status reserve(leati_import_file *file, void *out, int32_t count, size_t size, leat_error *err) {
    void *array = leati_arena_get(file->arena, (size_t)count + 1, size);
    memcpy(out, &array, sizeof array);
    return array ? LEAT_OK : leati_import_no_memory(file, err);
}

/* ---- Attributes ---- */

/* Counts the numbers of a repeated field, which may be packed. */
static int32_t count_numbers(leati_proto message, int number, int fixed) {
    leati_proto_field field;
    uint64_t unused;
    int64_t count = 0;
    while (leati_proto_next(&message, &field)) {
        if (field.number != number) continue;
        if (field.wire != LEATI_WIRE_BYTES) {
            ++count;
            continue;
        }
        leati_proto list = leati_proto_of(field.data, field.bytes);
        while (fixed ? leati_proto_fixed(&list, fixed, &unused) : leati_proto_varint(&list, &unused)) ++count;
    }
    return count > INT32_MAX ? INT32_MAX : (int32_t)count;
}

static leat_status read_ints(leati_import_file *file, leati_proto message, leati_import_attr *out,
                             leat_error *err) {
    leati_proto_field field;
    uint64_t value;
    LEATI_TRY(reserve(file, &out->ints, count_numbers(message, ATTR_INTS, 0), sizeof *out->ints, err));
    while (leati_proto_next(&message, &field)) {
        if (field.number != ATTR_INTS) continue;
        if (field.wire == LEATI_WIRE_VARINT) out->ints[out->int_count++] = (int64_t)field.value;
        if (field.wire != LEATI_WIRE_BYTES) continue;
        leati_proto list = leati_proto_of(field.data, field.bytes);
        while (leati_proto_varint(&list, &value)) out->ints[out->int_count++] = (int64_t)value;
    }
    return LEAT_OK;
}

static leat_status read_reals(leati_import_file *file, leati_proto message, leati_import_attr *out,
                              leat_error *err) {
    leati_proto_field field;
    uint64_t value;
    LEATI_TRY(reserve(file, &out->reals, count_numbers(message, ATTR_FLOATS, 4), sizeof *out->reals, err));
    while (leati_proto_next(&message, &field)) {
        if (field.number != ATTR_FLOATS) continue;
        if (field.wire == LEATI_WIRE_32) out->reals[out->real_count++] = leati_proto_float(field.value);
        if (field.wire != LEATI_WIRE_BYTES) continue;
        leati_proto list = leati_proto_of(field.data, field.bytes);
        while (leati_proto_fixed(&list, 4, &value)) out->reals[out->real_count++] = leati_proto_float(value);
    }
    return LEAT_OK;
}

static leat_status read_attr_field(leati_import_file *file, const leati_proto_field *field,
                                   leati_import_attr *out, leat_error *err) {
    const bool is_bytes = field->wire == LEATI_WIRE_BYTES;
    switch (field->number) {
    case ATTR_NAME: return is_bytes ? leati_import_text(file, field, &out->name, err) : LEAT_OK;
    case ATTR_TEXT: return is_bytes ? leati_import_text(file, field, &out->text, err) : LEAT_OK;
    case ATTR_TEXTS:
        return is_bytes ? leati_import_text(file, field, &out->texts[out->text_count++], err) : LEAT_OK;
    case ATTR_FLOAT: out->real = leati_proto_float(field->value); break;
    case ATTR_INT: out->number = (int64_t)field->value; break;
    case ATTR_GRAPH:
        out->graph = field->data;
        out->graph_bytes = field->bytes;
        break;
    case ATTR_REFERENCE: out->is_reference = field->bytes > 0; break;
    case ATTR_TENSOR:
        if (!is_bytes) break;
        LEATI_TRY(reserve(file, &out->tensor, 1, sizeof *out->tensor, err));
        return leati_import_tensor_read(file, leati_proto_of(field->data, field->bytes), out->tensor, err);
    default: break;
    }
    return LEAT_OK;
}

static leat_status read_attr(leati_import_file *file, leati_proto message, leati_import_attr *out,
                             leat_error *err) {
    leati_proto all = message;
    leati_proto_field field;
    out->name = out->text = "";
    LEATI_TRY(reserve(file, &out->texts, count_fields(message, ATTR_TEXTS), sizeof *out->texts, err));
    while (leati_proto_next(&message, &field)) LEATI_TRY(read_attr_field(file, &field, out, err));
    LEATI_TRY(end_of(&message, "an attribute", err));
    LEATI_TRY(read_ints(file, all, out, err));
    return read_reals(file, all, out, err);
}

/* ---- Nodes ---- */

static leat_status read_node_field(leati_import_file *file, const leati_proto_field *field,
                                   leati_import_node *out, leat_error *err) {
    if (field->wire != LEATI_WIRE_BYTES) return LEAT_OK;
    switch (field->number) {
    case NODE_INPUT: return leati_import_text(file, field, &out->inputs[out->input_count++], err);
    case NODE_OUTPUT: return leati_import_text(file, field, &out->outputs[out->output_count++], err);
    case NODE_NAME: return leati_import_text(file, field, &out->name, err);
    case NODE_OP: return leati_import_text(file, field, &out->op, err);
    case NODE_DOMAIN: return leati_import_text(file, field, &out->domain, err);
    case NODE_ATTR:
        return leati_import_attr_read_into(file, leati_proto_of(field->data, field->bytes),
                                           &out->attrs[out->attr_count++], err);
    default: return LEAT_OK;
    }
}

leat_status leati_import_attr_read_into(leati_import_file *file, leati_proto message, leati_import_attr *out,
                                        leat_error *err) {
    return leati_prefix(read_attr(file, message, out, err), err, "attribute '%.64s'", out->name);
}

static leat_status read_node(leati_import_file *file, leati_proto message, leati_import_node *out,
                             leat_error *err) {
    leati_proto_field field;
    out->name = out->op = out->domain = "";
    LEATI_TRY(reserve(file, &out->inputs, count_fields(message, NODE_INPUT), sizeof *out->inputs, err));
    LEATI_TRY(reserve(file, &out->outputs, count_fields(message, NODE_OUTPUT), sizeof *out->outputs, err));
    LEATI_TRY(reserve(file, &out->attrs, count_fields(message, NODE_ATTR), sizeof *out->attrs, err));
    while (leati_proto_next(&message, &field))
        LEATI_TRY(leati_prefix(read_node_field(file, &field, out, err), err, "node '%.64s' (%.64s)",
                               out->name, out->op));
    return end_of(&message, "a node", err);
}

const leati_import_attr *leati_import_attr_of(const leati_import_node *node, const char *name) {
    for (int32_t i = 0; i < node->attr_count; ++i)
        if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
    return NULL;
}

/* ---- Inputs and outputs ---- */

static leat_status read_dim(leati_import_file *file, leati_proto message, leati_import_value_info *out,
                            leat_error *err) {
    leati_proto_field field;
    if (out->rank >= LEAT_MAX_RANK)
        return leati_fail(err, LEAT_ENOTSUP, "'%.64s': expected at most %d axes", out->name, LEAT_MAX_RANK);
    const int32_t axis = out->rank++;
    out->dims[axis] = -1;
    out->names[axis] = "";
    while (leati_proto_next(&message, &field)) {
        if (field.number == DIM_VALUE && field.wire == LEATI_WIRE_VARINT)
            out->dims[axis] = (int64_t)field.value;
        if (field.number == DIM_NAME && field.wire == LEATI_WIRE_BYTES)
            LEATI_TRY(leati_import_text(file, &field, &out->names[axis], err));
    }
    if (out->dims[axis] == 0 || out->dims[axis] < -1 || out->dims[axis] > INT32_MAX) out->dims[axis] = -1;
    return end_of(&message, "a dimension", err);
}

/* Reads TypeProto.Tensor and its shape; `level` is 0 for the TypeProto, 1 for the tensor, 2 for the shape. */
static leat_status read_type(leati_import_file *file, leati_proto message, int level,
                             leati_import_value_info *out, leat_error *err) {
    static const int inner[] = {TYPE_TENSOR, TYPE_SHAPE, SHAPE_DIM};
    leati_proto_field field;
    if (level == 2 && out->rank < 0) out->rank = 0;
    while (leati_proto_next(&message, &field)) {
        if (level == 1 && field.number == TYPE_ELEMENT && field.wire == LEATI_WIRE_VARINT)
            out->type = field.value <= INT32_MAX ? (int)field.value : 0;
        if (field.number != inner[level] || field.wire != LEATI_WIRE_BYTES) continue;
        leati_proto part = leati_proto_of(field.data, field.bytes);
        LEATI_TRY(level == 2 ? read_dim(file, part, out, err) : read_type(file, part, level + 1, out, err));
    }
    return end_of(&message, "a type", err);
}

static leat_status read_value_info(leati_import_file *file, leati_proto message, leati_import_value_info *out,
                                   leat_error *err) {
    leati_proto_field field;
    *out = (leati_import_value_info){.name = "", .rank = -1};
    while (leati_proto_next(&message, &field)) {
        if (field.wire != LEATI_WIRE_BYTES) continue;
        if (field.number == VALUE_NAME) LEATI_TRY(leati_import_text(file, &field, &out->name, err));
        if (field.number == VALUE_TYPE)
            LEATI_TRY(read_type(file, leati_proto_of(field.data, field.bytes), 0, out, err));
    }
    return end_of(&message, "an input or output", err);
}

/* ---- The graph and the model ---- */

static leat_status read_graph_field(leati_import_file *file, const leati_proto_field *field,
                                    leat_error *err) {
    const leati_proto inner = leati_proto_of(field->data, field->bytes);
    switch (field->number) {
    case GRAPH_NODE: return read_node(file, inner, &file->nodes[file->node_count++], err);
    case GRAPH_NAME: return leati_import_text(file, field, &file->graph_name, err);
    case GRAPH_INITIALIZER:
        return leati_import_tensor_read(file, inner, &file->tensors[file->tensor_count++], err);
    case GRAPH_INPUT: return read_value_info(file, inner, &file->inputs[file->input_count++], err);
    case GRAPH_OUTPUT: return read_value_info(file, inner, &file->outputs[file->output_count++], err);
    case GRAPH_SPARSE: return leati_fail(err, LEAT_ENOTSUP, "sparse initializers are not supported");
    default: return LEAT_OK;
    }
}

static leat_status read_graph(leati_import_file *file, leati_proto message, leat_error *err) {
    leati_proto_field field;
    if (file->nodes) return leati_fail(err, LEAT_EFORMAT, "expected one graph, found several");
    LEATI_TRY(reserve(file, &file->nodes, count_fields(message, GRAPH_NODE), sizeof *file->nodes, err));
    LEATI_TRY(
        reserve(file, &file->tensors, count_fields(message, GRAPH_INITIALIZER), sizeof *file->tensors, err));
    LEATI_TRY(reserve(file, &file->inputs, count_fields(message, GRAPH_INPUT), sizeof *file->inputs, err));
    LEATI_TRY(reserve(file, &file->outputs, count_fields(message, GRAPH_OUTPUT), sizeof *file->outputs, err));
    while (leati_proto_next(&message, &field))
        if (field.wire == LEATI_WIRE_BYTES) LEATI_TRY(read_graph_field(file, &field, err));
    return end_of(&message, "the graph", err);
}

static leat_status read_opset(leati_import_file *file, leati_proto message, leat_error *err) {
    leati_proto_field field;
    const char *domain = "";
    int64_t version = 0;
    while (leati_proto_next(&message, &field)) {
        if (field.number == OPSET_DOMAIN && field.wire == LEATI_WIRE_BYTES)
            LEATI_TRY(leati_import_text(file, &field, &domain, err));
        if (field.number == OPSET_VERSION) version = (int64_t)field.value;
    }
    if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0) file->opset = version;
    return end_of(&message, "opset_import", err);
}

static leat_status read_model(leati_import_file *file, leati_proto message, leat_error *err) {
    leati_proto_field field;
    while (leati_proto_next(&message, &field)) {
        if (field.wire != LEATI_WIRE_BYTES) continue;
        leati_proto inner = leati_proto_of(field.data, field.bytes);
        if (field.number == MODEL_GRAPH) LEATI_TRY(read_graph(file, inner, err));
        if (field.number == MODEL_OPSET) LEATI_TRY(read_opset(file, inner, err));
    }
    LEATI_TRY(end_of(&message, "the model", err));
    if (!file->nodes)
        return leati_fail(err, LEAT_EFORMAT, "expected an ONNX model with a graph, found no graph");
    return LEAT_OK;
}

leat_status leati_import_parse(leati_import_file *out, const char *path, const void *data, size_t bytes,
                               leat_error *err) {
    *out = (leati_import_file){.graph_name = ""};
    out->arena = &out->own_arena;
    out->own_arena.most =
        bytes < (SIZE_MAX - ARENA_BYTES) / ARENA_FACTOR ? ARENA_BYTES + ARENA_FACTOR * bytes : SIZE_MAX;
    if (path) {
        const char *slash = strrchr(path, '/');
        size_t length = slash ? (size_t)(slash - path) + 1 : 0;
        char *directory = leati_arena_get(out->arena, 1, length + 1);
        if (!directory) return leati_import_no_memory(out, err);
        memcpy(directory, path, length);
        out->directory = directory;
    }
    return read_model(out, leati_proto_of(data, bytes), err);
}

leat_status leati_import_parse_graph(leati_import_file *out, leati_import_file *file,
                                     const leati_import_attr *attr, leat_error *err) {
    *out = (leati_import_file){.arena = file->arena,
                               .directory = file->directory,
                               .graph_name = "",
                               .external = file->external,
                               .opset = file->opset};
    const leat_status status = read_graph(out, leati_proto_of(attr->graph, attr->graph_bytes), err);
    file->external = out->external;
    return status;
}

void leati_import_file_fini(leati_import_file *file) {
    leati_import_external_fini(file);
    leati_arena_fini(&file->own_arena);
    *file = (leati_import_file){.graph_name = ""};
}
