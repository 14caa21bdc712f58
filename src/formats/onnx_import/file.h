/* SPDX-License-Identifier: Apache-2.0 */
/* The content of an ONNX file: nodes, constants, inputs and outputs, as the file has them.  Everything lies in an
 * arena, or in the bytes of the file, which must outlive it. */
#ifndef LEATI_FORMATS_ONNX_IMPORT_FILE_H
#define LEATI_FORMATS_ONNX_IMPORT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/tensor.h"

/* ---- Arena ---- */

/* Blocks of zeroed memory that are freed together. */
typedef struct leati_arena {
    struct leati_arena_block *blocks;
    size_t used, most; /* bytes in all blocks, and the limit */
} leati_arena;

/* Returns zeroed memory; NULL without memory, and beyond the limit. */
void *leati_arena_get(leati_arena *arena, size_t count, size_t size);
void leati_arena_fini(leati_arena *arena);

/* ---- Tensors ---- */

/* ONNX's numbers of element types. */
typedef enum leati_import_type {
    LEATI_IMPORT_FLOAT = 1,
    LEATI_IMPORT_UINT8 = 2,
    LEATI_IMPORT_INT8 = 3,
    LEATI_IMPORT_UINT16 = 4,
    LEATI_IMPORT_INT16 = 5,
    LEATI_IMPORT_INT32 = 6,
    LEATI_IMPORT_INT64 = 7,
    LEATI_IMPORT_BOOL = 9,
    LEATI_IMPORT_FLOAT16 = 10,
    LEATI_IMPORT_DOUBLE = 11,
    LEATI_IMPORT_UINT32 = 12,
    LEATI_IMPORT_UINT64 = 13,
    LEATI_IMPORT_BFLOAT16 = 16
} leati_import_type;

/* Says what an integer of a constant stands for: with an open batch, shapes of tensors are constants, too. */
enum { LEATI_SIZE_KNOWN = 0, LEATI_SIZE_BATCH = 1, LEATI_SIZE_OPEN = 2 };

/* A constant.  Its numbers lie in the file, at any address, in little-endian order. */
typedef struct leati_import_tensor {
    const char *name; /* "" if it has none */
    int type;         /* leati_import_type */
    int32_t rank;
    int64_t dims[LEAT_MAX_RANK];
    int64_t count;
    const unsigned char *data;
    /* One LEATI_SIZE_* per element, NULL if all are known: BATCH stands for the element times the batch size, OPEN for
     * a size that is not known. */
    const unsigned char *sizes;
    uint32_t
        spread; /* axes, as bits, on which the constant is repeated over the batch; their length here is 1 */
} leati_import_tensor;

/* Returns an element, converted. */
double leati_import_number(const leati_import_tensor *tensor, int64_t index);
int64_t leati_import_integer(const leati_import_tensor *tensor, int64_t index);
bool leati_import_is_real(int type);
/* Returns the name of an element type, or "type 8". */
const char *leati_import_type_name(int type);

/* ---- Nodes ---- */

typedef struct leati_import_attr {
    const char *name;
    bool is_reference;
    const unsigned char *graph; /* the bytes of a GraphProto in the file; NULL: none */
    size_t graph_bytes;
    int64_t number;
    float real;
    const char *text;
    int32_t int_count, real_count, text_count;
    int64_t *ints;
    float *reals;
    const char **texts;
    leati_import_tensor *tensor;
} leati_import_attr;

typedef struct leati_import_node {
    const char *name, *op, *domain;
    int32_t input_count, output_count, attr_count;
    const char **inputs, **outputs; /* "": absent */
    leati_import_attr *attrs;
} leati_import_node;

const leati_import_attr *leati_import_attr_of(const leati_import_node *node, const char *name);

/* An input or output of the graph.  A dimension that is not known is -1, and may have a name. */
typedef struct leati_import_value_info {
    const char *name;
    int type;     /* 0: not a tensor, or not said */
    int32_t rank; /* -1: not said */
    int64_t dims[LEAT_MAX_RANK];
    const char *names[LEAT_MAX_RANK];
} leati_import_value_info;

typedef struct leati_import_file {
    leati_arena own_arena, *arena; /* the arena of the body of a node is that of its file */
    const char *directory;         /* of the file, for external data; NULL: there is none */
    const char *graph_name;
    struct leati_import_external *external; /* mapped files */
    int64_t opset;
    int32_t node_count, tensor_count, input_count, output_count;
    leati_import_node *nodes;
    leati_import_tensor *tensors;
    leati_import_value_info *inputs, *outputs;
} leati_import_file;

/* Reads the bytes of an ONNX file.
 * @param path  Path of the file, beside which external data lies; NULL: a file in memory.
 * Errors: LEAT_EFORMAT malformed, truncated, beyond the limits; LEAT_ENOTSUP a domain or type that leat does not read;
 * LEAT_EIO external data; LEAT_ENOMEM. */
leat_status leati_import_parse(leati_import_file *out, const char *path, const void *data, size_t bytes,
                               leat_error *err);
/* Reads the graph of an attribute, such as the body of a Scan; *out lives in the arena of the file.
 * Errors: as in leati_import_parse. */
leat_status leati_import_parse_graph(leati_import_file *out, leati_import_file *file,
                                     const leati_import_attr *attr, leat_error *err);
void leati_import_file_fini(leati_import_file *file);

/* Returns true if bytes look like an ONNX file. */
bool leati_import_is(const unsigned char *data, size_t bytes);

/* ---- External data (external.c) ---- */

/* Finds `bytes` bytes of a file beside the ONNX file, which `location` names, at an offset.  The bytes stay valid until
 * leati_import_external_fini.
 * Errors: LEAT_EFORMAT a location outside of the folder, or bytes beyond the end of the file; LEAT_EIO;
 * LEAT_ENOTFOUND. */
leat_status leati_import_external_find(leati_import_file *file, const char *location, uint64_t offset,
                                       uint64_t bytes, const unsigned char **out, leat_error *err);
void leati_import_external_fini(leati_import_file *file);

#endif
