/* SPDX-License-Identifier: Apache-2.0 */
/* Names and nodes of an ONNX graph.  Room: formats. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/onnx/exporter.h"

/* ---- Failures ---- */

void leati_onnx_failed(leati_onnx *x, leat_status status, const leat_error *err) {
    if (status == LEAT_OK || x->failure.code != LEAT_OK) return;
    x->failure = *err;
    x->failure.code = status;
}

const char *leati_onnx_refuse(leati_onnx *x, const char *format, ...) {
    char text[256];
    if (x->failure.code != LEAT_OK) return "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    leati_fail(&x->failure, LEAT_ENOTSUP, "layer '%s': %s", x->label ? x->label : "?", text);
    return "";
}

static void no_memory(leati_onnx *x, size_t bytes) {
    if (x->failure.code == LEAT_OK) leati_fail_memory(&x->failure, bytes, "an ONNX graph");
}

/* ---- Names ---- */

/* Adds a string to the list.  Returns false after recording the failure. */
static bool add_name(leati_onnx *x, leati_onnx_names *names, char *name) {
    if (names->count == names->capacity) {
        int32_t capacity = names->capacity ? 2 * names->capacity : 64;
        char **items = leati_realloc(names->items, (size_t)capacity, sizeof *items);
        if (!items) return no_memory(x, (size_t)capacity * sizeof *items), false;
        names->items = items, names->capacity = capacity;
    }
    names->items[names->count++] = name;
    return true;
}

static bool is_taken(const leati_onnx *x, const char *name) {
    for (int32_t i = 0; i < x->taken.count; ++i)
        if (strcmp(x->taken.items[i], name) == 0) return true;
    return false;
}

const char *leati_onnx_name(leati_onnx *x, bool reserve, const char *wish) {
    size_t bytes = strlen(wish) + 16;
    if (x->failure.code != LEAT_OK) return "";
    char *name = leati_calloc(bytes, 1);
    if (!name) return no_memory(x, bytes), "";
    if (!add_name(x, &x->names, name)) return leati_free(name), "";
    memcpy(name, wish, strlen(wish));
    for (int number = 1; is_taken(x, name); ++number) snprintf(name, bytes, "%s_%d", wish, number);
    if (reserve && !add_name(x, &x->taken, name)) return "";
    return name;
}

const char *leati_onnx_output(leati_onnx *x, const char *op) {
    char wish[2 * LEAT_NAME_BYTES];
    snprintf(wish, sizeof wish, "%s%s%s_%d", x->label ? x->label : "", x->label ? "/" : "", op,
             (int)++x->serial);
    return leati_onnx_name(x, false, wish);
}

/* ---- Attributes: AttributeProto ---- */

enum {
    ATTR_NAME = 1,
    ATTR_FLOAT = 2,
    ATTR_INT = 3,
    ATTR_TEXT = 4,
    ATTR_GRAPH = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_TEXTS = 9,
    ATTR_TYPE = 20
};

static void put_attr(leati_message *out, const leati_onnx_attr *attr) {
    leati_message_text(out, ATTR_NAME, attr->name);
    leati_message_int(out, ATTR_TYPE, attr->kind);
    switch (attr->kind) {
    case LEATI_ONNX_FLOAT: leati_message_float(out, ATTR_FLOAT, attr->real); break;
    case LEATI_ONNX_INT: leati_message_int(out, ATTR_INT, attr->number); break;
    case LEATI_ONNX_TEXT: leati_message_text(out, ATTR_TEXT, attr->text); break;
    case LEATI_ONNX_GRAPH: leati_message_inner(out, ATTR_GRAPH, attr->graph); break;
    case LEATI_ONNX_FLOATS:
        for (int i = 0; i < attr->count; ++i) leati_message_float(out, ATTR_FLOATS, attr->floats[i]);
        break;
    case LEATI_ONNX_INTS:
        for (int i = 0; i < attr->count; ++i) leati_message_int(out, ATTR_INTS, attr->ints[i]);
        break;
    case LEATI_ONNX_TEXTS:
        for (int i = 0; i < attr->count; ++i) leati_message_text(out, ATTR_TEXTS, attr->texts[i]);
        break;
    }
}

/* ---- Nodes: NodeProto ---- */

enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTR = 5, GRAPH_NODE = 1 };

void leati_onnx_node_to(leati_onnx *x, const char *op, int count, const char *const *inputs, int output_count,
                        const char *const *outputs, const leati_onnx_attr *attrs) {
    leati_message node = {0}, attr = {0};
    char name[2 * LEAT_NAME_BYTES];
    if (x->failure.code != LEAT_OK) return;
    snprintf(name, sizeof name, "node_%d_%s", (int)++x->serial, op);
    for (int i = 0; i < count; ++i) leati_message_text(&node, NODE_INPUT, inputs[i]);
    for (int i = 0; i < output_count; ++i) leati_message_text(&node, NODE_OUTPUT, outputs[i]);
    leati_message_text(&node, NODE_NAME, name);
    leati_message_text(&node, NODE_OP, op);
    for (; attrs && attrs->name; ++attrs) {
        leati_message_clear(&attr);
        put_attr(&attr, attrs);
        leati_message_inner(&node, NODE_ATTR, &attr);
    }
    leati_message_inner(x->into, GRAPH_NODE, &node);
    if (x->into->failed) no_memory(x, x->into->length);
    leati_message_fini(&attr);
    leati_message_fini(&node);
}

const char *leati_onnx_node(leati_onnx *x, const char *op, int count, const char *const *inputs,
                            const leati_onnx_attr *attrs) {
    const char *output = leati_onnx_output(x, op);
    leati_onnx_node_to(x, op, count, inputs, 1, &output, attrs);
    return output;
}

const char *leati_onnx_unary(leati_onnx *x, const char *op, const char *a) {
    return leati_onnx_node(x, op, 1, &a, NULL);
}

const char *leati_onnx_binary(leati_onnx *x, const char *op, const char *a, const char *b) {
    return leati_onnx_node(x, op, 2, (const char *[]){a, b}, NULL);
}

const char *leati_onnx_transposed(leati_onnx *x, const char *name, int rank, const int64_t *perm) {
    bool same = true;
    for (int i = 0; i < rank; ++i) same &= perm[i] == i;
    if (same) return name;
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INTS("perm", rank, perm), LEATI_ATTR_END};
    return leati_onnx_node(x, "Transpose", 1, &name, attrs);
}

const char *leati_onnx_cast(leati_onnx *x, const char *name, int type) {
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("to", type), LEATI_ATTR_END};
    return leati_onnx_node(x, "Cast", 1, &name, attrs);
}

int leati_onnx_type_of(leat_dtype dtype) {
    switch (dtype) {
    case LEAT_F32: return LEATI_ONNX_TYPE_FLOAT;
    case LEAT_U8: return 2;
    case LEAT_I8: return 3;
    case LEAT_U16: return 4;
    case LEAT_I16: return 5;
    case LEAT_I32: return 6;
    case LEAT_I64: return LEATI_ONNX_TYPE_INT64;
    case LEAT_BOOL: return LEATI_ONNX_TYPE_BOOL;
    case LEAT_F16: return 10;
    case LEAT_F64: return 11;
    case LEAT_U32: return 12;
    case LEAT_U64: return 13;
    default: return 0;
    }
}
