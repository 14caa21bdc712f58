/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ONNX files for tests. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "formats/onnx_reader.h"

enum { VARINT = 0, BYTES = 2, BITS_32 = 5 };

static uint64_t varint(onnx_bytes *message) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        assert_true(message->bytes > 0);
        const unsigned char byte = *message->data++;
        --message->bytes;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    fail_msg("a varint has more than ten bytes");
    return 0;
}

bool onnx_next(onnx_bytes *message, onnx_field *field) {
    if (message->bytes == 0) return false;
    const uint64_t tag = varint(message);
    *field = (onnx_field){.number = (int)(tag >> 3), .wire = (int)(tag & 7)};
    assert_true(field->number > 0);
    if (field->wire == VARINT) {
        field->value = varint(message);
        return true;
    }
    assert_true(field->wire == BYTES || field->wire == BITS_32);
    const uint64_t bytes = field->wire == BYTES ? varint(message) : 4;
    assert_true(bytes <= message->bytes);
    field->data = message->data, field->bytes = (size_t)bytes;
    message->data += bytes, message->bytes -= (size_t)bytes;
    return true;
}

bool onnx_find(onnx_bytes message, int number, int index, onnx_field *field) {
    while (onnx_next(&message, field))
        if (field->number == number && index-- == 0) return true;
    return false;
}

onnx_bytes onnx_part(onnx_bytes message, int number, int index) {
    onnx_field field;
    if (!onnx_find(message, number, index, &field))
        fail_msg("there is no field %d of index %d", number, index);
    return (onnx_bytes){field.data, field.bytes};
}

const char *onnx_text(onnx_bytes message, int number, int index) {
    static char buffers[8][256];
    static int next;
    onnx_field field;
    char *buffer = buffers[next++ % 8];
    const bool found = onnx_find(message, number, index, &field);
    snprintf(buffer, 256, "%.*s", found ? (int)field.bytes : 0, found ? (const char *)field.data : "");
    return buffer;
}

int64_t onnx_number(onnx_bytes message, int number, int index) {
    onnx_field field;
    if (!onnx_find(message, number, index, &field))
        fail_msg("there is no field %d of index %d", number, index);
    return (int64_t)field.value;
}

/* ---- A model ---- */

enum { MAX_NAMES = 4096 };

/* The tensors that exist so far. */
typedef struct names {
    char items[MAX_NAMES][128];
    int count;
} names;

static bool has_name(const names *all, const char *name) {
    for (int i = 0; i < all->count; ++i)
        if (strcmp(all->items[i], name) == 0) return true;
    return false;
}

static void add_name(names *all, const char *name) {
    if (has_name(all, name)) fail_msg("two tensors are called '%s'", name);
    assert_true(all->count < MAX_NAMES && name[0]);
    snprintf(all->items[all->count++], sizeof all->items[0], "%s", name);
}

/* TensorProto: dims 1, data_type 2, name 8, raw_data 9. */
static void check_initializer(onnx_bytes tensor) {
    onnx_field field;
    const int64_t type = onnx_number(tensor, 2, 0);
    size_t bytes = type == 1 || type == 6 ? 4 : type == 7 || type == 11 ? 8 : 1;
    for (int i = 0; onnx_find(tensor, 1, i, &field); ++i) bytes *= (size_t)field.value;
    assert_true(onnx_find(tensor, 9, 0, &field));
    assert_int_equal(field.bytes, bytes);
}

/* NodeProto: input 1, output 2, op_type 4.  An empty name is an absent tensor. */
static void check_node(names *all, onnx_bytes node) {
    onnx_field field;
    for (int i = 0; onnx_find(node, 1, i, &field); ++i) {
        const char *name = onnx_text(node, 1, i);
        if (name[0] && !has_name(all, name)) fail_msg("'%s' is read before it is made", name);
    }
    for (int i = 0; onnx_find(node, 2, i, &field); ++i)
        if (field.bytes > 0) add_name(all, onnx_text(node, 2, i));
}

/* ModelProto: ir_version 1, graph 7, opset_import 8.  GraphProto: node 1, initializer 5, input 11, output 12. */
onnx_bytes onnx_check(const void *data, size_t bytes, char *ops, size_t room) {
    static names all;
    const onnx_bytes model = {data, bytes}, graph = onnx_part(model, 7, 0);
    onnx_field field;
    all.count = 0, ops[0] = '\0';
    assert_int_equal(onnx_number(model, 1, 0), 8);
    assert_int_equal(onnx_number(onnx_part(model, 8, 0), 2, 0), 17);
    for (int i = 0; onnx_find(graph, 11, i, &field); ++i)
        add_name(&all, onnx_text(onnx_part(graph, 11, i), 1, 0));
    for (int i = 0; onnx_find(graph, 5, i, &field); ++i) {
        check_initializer(onnx_part(graph, 5, i));
        add_name(&all, onnx_text(onnx_part(graph, 5, i), 8, 0));
    }
    for (int i = 0; onnx_find(graph, 1, i, &field); ++i) {
        const onnx_bytes node = onnx_part(graph, 1, i);
        const size_t used = strlen(ops);
        check_node(&all, node);
        snprintf(ops + used, room - used, "%s ", onnx_text(node, 4, 0));
    }
    for (int i = 0; onnx_find(graph, 12, i, &field); ++i)
        assert_true(has_name(&all, onnx_text(onnx_part(graph, 12, i), 1, 0)));
    return graph;
}
