/* SPDX-License-Identifier: Apache-2.0 */
/* What the two parts of the parser of ONNX files share. */
#ifndef LEATI_FORMATS_ONNX_IMPORT_TENSOR_PROTO_H
#define LEATI_FORMATS_ONNX_IMPORT_TENSOR_PROTO_H

#include "formats/onnx_import/file.h"
#include "formats/protobuf/reader.h"

/* Reads a TensorProto. */
leat_status leati_import_tensor_read(leati_import_file *file, leati_proto message, leati_import_tensor *out,
                                     leat_error *err);
/* Reads an AttributeProto; errors name it. */
leat_status leati_import_attr_read_into(leati_import_file *file, leati_proto message, leati_import_attr *out,
                                        leat_error *err);
/* Copies a text; control characters become '_'. */
leat_status leati_import_text(leati_import_file *file, const leati_proto_field *field, const char **out,
                              leat_error *err);
/* The failure after leati_arena_get has returned NULL: no memory, or beyond the arena's limit. */
leat_status leati_import_no_memory(leati_import_file *file, leat_error *err);

#endif
