/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an ONNX export, and what the files of this folder share.
 *
 * The exporter lowers the model to the graph of its prediction twice, with other sizes of the batch and of each axis
 * that the model leaves open.  Both graphs have the same nodes.  A size that differs between the graphs is an open
 * size: the exported graph computes it from the shape of a tensor.
 *
 * leat's images have their channels last, ONNX's have them first.  A value of rank 3 or more has up to two tensors in
 * ONNX: `plain`, with leat's order of axes, and `first`, with the channels as axis 1.  A node makes one of the two,
 * and the first reader that needs the other one adds a Transpose.
 *
 * The exporter keeps the first failure.  After a failure, names are "" and nothing else happens, so that the code
 * that emits nodes needs no checks. */
#ifndef LEATI_FORMATS_ONNX_EXPORTER_H
#define LEATI_FORMATS_ONNX_EXPORTER_H

#include "engine/graph/graph.h"
#include "formats/protobuf/message.h"
#include "nn/program/program.h"

/* ONNX's version of the operators (opset) and of the file (IR): what every ONNX Runtime since 1.12 reads. */
enum { LEATI_ONNX_OPSET = 17, LEATI_ONNX_IR = 8 };

/* A constant tensor of the exported graph. */
typedef struct leati_onnx_initializer {
    const char *name;
    leat_dtype dtype;
    int32_t rank;
    int64_t dims[LEAT_MAX_RANK];
    const void *data; /* borrowed from the model or from the graph, or `owned` */
    void *owned;      /* NULL: none */
    bool external;    /* the data is in the file beside the ONNX file, from offset_bytes on */
    size_t offset_bytes;
} leati_onnx_initializer;

/* The ONNX names of a value; NULL: not made yet. */
typedef struct leati_onnx_forms {
    const char *plain, *first;
    const char *kernel; /* the weights of a convolution: (filters, channels, spatial...) */
} leati_onnx_forms;

/* A growing array of owned strings. */
typedef struct leati_onnx_names {
    char **items;
    int32_t count, capacity;
} leati_onnx_names;

typedef struct leati_onnx {
    const leat_model *model;
    leati_program probes[2];
    char *data_path;          /* the file for large constants beside the ONNX file; NULL: memory */
    const leati_graph *graph; /* of probes[0] */
    leat_error failure;       /* the first one; code LEAT_OK: none */
    const char *label;        /* name of the layer whose nodes are being emitted; NULL: none */
    leati_onnx_forms *forms;  /* one per value of the graph */
    bool *live;               /* one per node: an output of the model depends on it */
    leati_onnx_names names;   /* all names */
    leati_onnx_names taken; /* the names of inputs, outputs and initializers; the strings belong to `names` */
    leati_onnx_initializer *initializers;
    int32_t initializer_count, initializer_capacity;
    int32_t serial;                /* number of names that were made with a number */
    leati_message nodes;           /* NodeProto's of the graph */
    leati_message *into;           /* `nodes`, or the nodes of the body of a Scan */
    leati_message inputs, outputs; /* ValueInfoProto's of the graph */
    leati_message states;          /* ValueInfoProto's of the outputs that are new states */
    int32_t open_count;
    struct {
        int64_t at[2];
        const char *name;
    } open[LEATI_NETWORK_MAX_OUTPUTS * LEAT_MAX_RANK]; /* names of the open sizes of the inputs */
} leati_onnx;

/* ---- Failures and names (nodes.c) ---- */

/* Records a failure LEAT_ENOTSUP if it is the first, with the layer's name in front.  Returns "". */
const char *leati_onnx_refuse(leati_onnx *x, const char *format, ...) LEAT_PRINTF(2, 3);
/* Records a failure that a status-returning function has reported. */
void leati_onnx_failed(leati_onnx *x, leat_status status, const leat_error *err);
/* Returns a new name that no tensor has yet.  `reserve`: the name is an input's, an output's or an initializer's. */
const char *leati_onnx_name(leati_onnx *x, bool reserve, const char *wish);

/* ---- Nodes (nodes.c) ---- */

typedef enum leati_onnx_kind {
    LEATI_ONNX_FLOAT = 1, /* ONNX's numbers of attribute types */
    LEATI_ONNX_INT = 2,
    LEATI_ONNX_TEXT = 3,
    LEATI_ONNX_GRAPH = 5,
    LEATI_ONNX_FLOATS = 6,
    LEATI_ONNX_INTS = 7,
    LEATI_ONNX_TEXTS = 8
} leati_onnx_kind;

/* An attribute of a node.  A list of attributes ends with one without a name. */
typedef struct leati_onnx_attr {
    const char *name;
    leati_onnx_kind kind;
    int64_t number;
    float real;
    int count; /* of the lists */
    const int64_t *ints;
    const float *floats;
    const char *const *texts;
    const char *text;
    const leati_message *graph;
} leati_onnx_attr;

#define LEATI_ATTR_INT(key, value)                                                                           \
    (leati_onnx_attr) {                                                                                      \
        .name = (key), .kind = LEATI_ONNX_INT, .number = (value)                                             \
    }
#define LEATI_ATTR_FLOAT(key, value)                                                                         \
    (leati_onnx_attr) {                                                                                      \
        .name = (key), .kind = LEATI_ONNX_FLOAT, .real = (value)                                             \
    }
#define LEATI_ATTR_INTS(key, size, values)                                                                   \
    (leati_onnx_attr) {                                                                                      \
        .name = (key), .kind = LEATI_ONNX_INTS, .count = (size), .ints = (values)                            \
    }
#define LEATI_ATTR_TEXT(key, value)                                                                          \
    (leati_onnx_attr) {                                                                                      \
        .name = (key), .kind = LEATI_ONNX_TEXT, .text = (value)                                              \
    }
#define LEATI_ATTR_END                                                                                       \
    (leati_onnx_attr) {                                                                                      \
        .name = NULL                                                                                         \
    }

/* Adds a node with one output, whose name the function returns.  An input of "" is absent. */
const char *leati_onnx_node(leati_onnx *x, const char *op, int count, const char *const *inputs,
                            const leati_onnx_attr *attrs);
/* Adds a node with several outputs, whose names the caller has made ("": unused). */
void leati_onnx_node_to(leati_onnx *x, const char *op, int count, const char *const *inputs, int output_count,
                        const char *const *outputs, const leati_onnx_attr *attrs);
/* Add a node without attributes. */
const char *leati_onnx_unary(leati_onnx *x, const char *op, const char *a);
const char *leati_onnx_binary(leati_onnx *x, const char *op, const char *a, const char *b);
/* Adds a Transpose; returns its input if the permutation changes nothing. */
const char *leati_onnx_transposed(leati_onnx *x, const char *name, int rank, const int64_t *perm);
/* Adds a Cast.  `type`: one of ONNX's numbers of data types. */
const char *leati_onnx_cast(leati_onnx *x, const char *name, int type);
/* Returns a new name for an output of a node. */
const char *leati_onnx_output(leati_onnx *x, const char *op);
/* Returns ONNX's number of a data type; 0 if ONNX has none. */
int leati_onnx_type_of(leat_dtype dtype);
enum { LEATI_ONNX_TYPE_FLOAT = 1, LEATI_ONNX_TYPE_INT64 = 7, LEATI_ONNX_TYPE_BOOL = 9 };

/* ---- Constants (constants.c) ---- */

/* Return the name of a constant, which is made at the first call with these numbers: a list of integers (1-D), a
 * scalar. */
const char *leati_onnx_ints(leati_onnx *x, int count, const int64_t *values);
const char *leati_onnx_scalar(leati_onnx *x, float value);
/* Adds an initializer.  owned: NULL, or `data`, which the exporter then frees. */
const char *leati_onnx_initialize(leati_onnx *x, const char *wish, const leati_desc *desc, const void *data,
                                  void *owned);
/* Returns memory for an initializer's data; NULL after recording the failure. */
void *leati_onnx_allocate(leati_onnx *x, size_t bytes);
/* Returns the numbers of a value that is the same constant in both graphs, like a weight, or a weight with another
 * shape; NULL for another value. */
const void *leati_onnx_data_of(leati_onnx *x, leati_value value);
/* Returns the name for the initializer of a constant value: "dense_1/kernel" for a weight. */
const char *leati_onnx_wish_of(leati_onnx *x, leati_value value);
/* Returns a value with its axes permuted: an initializer if the value is a constant, otherwise a Transpose of the
 * plain tensor. */
const char *leati_onnx_permuted(leati_onnx *x, leati_value value, const int64_t *perm);

/* ---- Sizes (sizes.c) ---- */

/* A size in both graphs; an open size differs. */
typedef struct leati_onnx_size {
    int64_t at[2];
} leati_onnx_size;

static inline bool leati_onnx_is_open(leati_onnx_size size) {
    return size.at[0] != size.at[1];
}
leati_onnx_size leati_onnx_size_of(const leati_onnx *x, leati_value value, int axis);
/* True if a value has an open size. */
bool leati_onnx_has_open(const leati_onnx *x, leati_value value);
/* Returns a 1-D tensor with these sizes. */
const char *leati_onnx_shape(leati_onnx *x, int count, const leati_onnx_size *sizes);
/* Returns the second argument of a Reshape of a tensor of the shape `from` to `to`. */
const char *leati_onnx_shape_from(leati_onnx *x, int from_count, const leati_onnx_size *from, int count,
                                  const leati_onnx_size *to);

/* ---- Forms of values (forms.c) ---- */

const char *leati_onnx_plain(leati_onnx *x, leati_value value);
const char *leati_onnx_first(leati_onnx *x, leati_value value);
void leati_onnx_set_plain(leati_onnx *x, leati_value value, const char *name);
void leati_onnx_set_first(leati_onnx *x, leati_value value, const char *name);
/* True if only the form with the channels first has been made. */
bool leati_onnx_is_first(const leati_onnx *x, leati_value value);
/* Returns the place of an axis of a value of that rank in the form with the channels first. */
int leati_onnx_first_axis(int rank, int axis);
/* Returns `value` in the form that the caller has chosen, and the place of an axis in the form. */
const char *leati_onnx_form(leati_onnx *x, leati_value value, bool first);
void leati_onnx_set_form(leati_onnx *x, leati_value value, bool first, const char *name);
static inline int leati_onnx_axis(int rank, int axis, bool first) {
    return first ? leati_onnx_first_axis(rank, axis) : axis;
}

/* ---- Ops ---- */

/* Applies an element-wise function to a tensor (elementwise.c). */
const char *leati_onnx_function(leati_onnx *x, const leati_eltwise *function, const char *name);

/* Emits a node of the graph.  `other` is the node of the second graph. */
typedef void leati_onnx_emit(leati_onnx *x, const leati_node *node, const leati_node *other);
leati_onnx_emit leati_onnx_eltwise, leati_onnx_binary_op, leati_onnx_call, leati_onnx_cast_op,
    leati_onnx_softmax, leati_onnx_copy, leati_onnx_reduce, leati_onnx_concat, leati_onnx_slice,
    leati_onnx_pad, leati_onnx_transpose, leati_onnx_reshape, leati_onnx_reverse, leati_onnx_broadcast,
    leati_onnx_gather, leati_onnx_one_hot, leati_onnx_argmax, leati_onnx_matmul, leati_onnx_batch_norm,
    leati_onnx_group_norm, leati_onnx_conv, leati_onnx_conv_transpose, leati_onnx_pooling,
    leati_onnx_resample, leati_onnx_patches, leati_onnx_rnn, leati_onnx_store;
/* Emits a recurrent node as a Scan with the cell's formulas, which handles every cell and masks (scan.c). */
void leati_onnx_scan(leati_onnx *x, const leati_node *node);

#endif
