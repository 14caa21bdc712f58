/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ONNX files for tests: protobuf's wire format, and the parts of a model. */
#ifndef LEAT_TESTS_FORMATS_ONNX_READER_H
#define LEAT_TESTS_FORMATS_ONNX_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A field of a message: a number, or bytes. */
typedef struct onnx_field {
    int number, wire;
    uint64_t value;
    const unsigned char *data;
    size_t bytes;
} onnx_field;

/* A part of the file that is left to read. */
typedef struct onnx_bytes {
    const unsigned char *data;
    size_t bytes;
} onnx_bytes;

/* Reads the next field; returns false at the end.  The test fails if the bytes are not a message. */
bool onnx_next(onnx_bytes *message, onnx_field *field);
/* Finds the `index`-th field of a number; returns false if there is none. */
bool onnx_find(onnx_bytes message, int number, int index, onnx_field *field);
/* Returns the message in a field that must exist. */
onnx_bytes onnx_part(onnx_bytes message, int number, int index);
/* Copies the text of a field into one of a few static buffers; "" if there is none. */
const char *onnx_text(onnx_bytes message, int number, int index);
int64_t onnx_number(onnx_bytes message, int number, int index);

/* Checks a whole model: the versions, the names of the tensors (each is made before it is read, and only once) and the
 * sizes of the initializers.  Returns its graph.  ops: the names of its operators, each with a blank behind it. */
onnx_bytes onnx_check(const void *data, size_t bytes, char *ops, size_t room);

#endif
