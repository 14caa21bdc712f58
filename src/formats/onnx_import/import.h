/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an ONNX import, and what the files of this folder share.
 *
 * The importer walks over the nodes of the graph in their order and adds layers to a network, whose shapes say what the
 * next node gets.  A tensor of the graph is a constant or an output of a layer.
 *
 * leat's tensors have the batch as their first axis, and Keras's layers have the channels last; ONNX has other orders.
 * So an output of a layer stands for a tensor of the graph through a view (below).  A Transpose changes only the view,
 * and most Reshapes do; a layer Permute or Reshape is added when a node needs another order than there is.
 *
 * The importer keeps the first failure.  After a failure nothing else happens. */
#ifndef LEATI_FORMATS_ONNX_IMPORT_IMPORT_H
#define LEATI_FORMATS_ONNX_IMPORT_IMPORT_H

#include <jansson.h>

#include "formats/onnx_import/file.h"
#include "nn/model/model.h"

/* ---- Sizes and views (views.c) ---- */

/* A size of a tensor: count, times the batch size if `batch`, times a size that is not known if `open`. */
typedef struct leati_import_size {
    int64_t count;
    bool batch, open;
} leati_import_size;

/* Says which axes of an output of a layer make one axis of a tensor of the graph: their product, in this order; none
 * for an axis of length 1. */
typedef struct leati_view_axis {
    int32_t count;
    int32_t stored[LEAT_MAX_RANK];
} leati_view_axis;

/* An output of a layer as a tensor of the graph.  Each axis of the output is part of exactly one axis of the tensor;
 * axis 0 of the output is the batch.  A view is settled if all axes but that with the batch have one stored axis. */
typedef struct leati_view {
    leati_source source;
    leati_shape shape; /* of source */
    int32_t rank;
    leati_view_axis axes[LEAT_MAX_RANK];
} leati_view;

enum { LEATI_IMPORT_VIEWS = 4 };

/* A tensor of the graph. */
typedef struct leati_import_value {
    const char *name;
    int type; /* leati_import_type */
    int32_t readers, view_count;
    const leati_import_tensor *constant;  /* NULL: not a constant */
    leati_view views[LEATI_IMPORT_VIEWS]; /* the first one is that of the layer that makes the tensor */
    int32_t maker;                        /* index of the node; -1: none */
    bool made, positive;                  /* positive: never below 0 */
} leati_import_value;

/* A weight of a layer: the tensor with its axes reshaped to `dims`, then permuted, times `scale`; or `numbers`. */
typedef struct leati_import_weight {
    const leati_import_tensor *tensor;
    int32_t rank;
    int64_t dims[LEAT_MAX_RANK];
    int32_t perm[LEAT_MAX_RANK];
    float scale;
    const float *numbers;
} leati_import_weight;

enum { LEATI_IMPORT_WEIGHTS = 6 };

typedef struct leati_import_binding {
    int32_t member;
    char layer[LEAT_NAME_BYTES];
    const char *class_name;
    json_t *config;
    int32_t count;
    leati_import_weight weights[LEATI_IMPORT_WEIGHTS];
} leati_import_binding;

typedef struct leati_import {
    leati_import_file *file;
    struct leati_import *outer; /* of the graph around this one, whose tensors are known, too; NULL: none */
    leat_model *model;
    leat_error failure;            /* the first one; code LEAT_OK: none */
    const leati_import_node *node; /* that is being read; NULL: none */
    leati_import_value *values;
    int32_t value_count, *slots; /* a hash table of the names: indices, -1: free */
    uint32_t slot_mask;
    int64_t fixed_batch; /* the file's batch size, which becomes open; 0: it is open in the file */
    leati_import_binding *bindings;
    int32_t binding_count, binding_capacity;
    leati_source *inputs;
    int32_t input_count;
} leati_import;

/* ---- Failures (values.c) ---- */

/* Records a failure LEAT_ENOTSUP if it is the first, with the node in front. */
void leati_import_refuse(leati_import *x, const char *format, ...) LEAT_PRINTF(2, 3);
/* Records the failure of a function. */
void leati_import_failed(leati_import *x, leat_status status, const leat_error *err);
static inline bool leati_import_ok(const leati_import *x) {
    return x->failure.code == LEAT_OK;
}
/* Returns zeroed memory that lives as long as the file; NULL after recording the failure. */
void *leati_import_memory(leati_import *x, int64_t count, size_t size);

/* ---- Values (values.c) ---- */

/* Makes the table of all names of the file. */
void leati_import_values_make(leati_import *x);
leati_import_value *leati_import_find(leati_import *x, const char *name);
/* Returns input `index` of the node; NULL if it is absent. */
leati_import_value *leati_import_in(leati_import *x, int index);
/* Like leati_import_in, but fails if the input is absent, and returns a value of no views. */
leati_import_value *leati_import_need(leati_import *x, int index);
/* Returns the constant of an input; NULL if it is absent.  Fails if the input is not a constant. */
const leati_import_tensor *leati_import_constant_in(leati_import *x, int index, const char *what);
/* Returns true if someone reads output `index` of the node. */
bool leati_import_is_read(leati_import *x, int index);
/* Return output `index` of the node; NULL if it is absent.  type: 0: that of input 0. */
leati_import_value *leati_import_set(leati_import *x, int index, const leati_view *view);
leati_import_value *leati_import_set_constant(leati_import *x, int index, const leati_import_tensor *tensor);
/* Gives output 0 the views or the constant of a value. */
void leati_import_alias(leati_import *x, int index, const leati_import_value *value);

/* ---- Attributes and lists of integers (values.c) ---- */

int64_t leati_import_int(leati_import *x, const char *name, int64_t preset);
float leati_import_real(leati_import *x, const char *name, float preset);
const char *leati_import_string(leati_import *x, const char *name, const char *preset);
/* Reads a list of integers from an attribute, or from a constant input (index -1: none).  Returns the count; -1 if the
 * list is absent. */
int leati_import_ints(leati_import *x, const char *name, int index, int most, int64_t *out);
/* Returns an axis of a tensor of that rank from 0; fails if there is none. */
int leati_import_axis(leati_import *x, int64_t axis, int rank);

/* ---- Views (views.c) ---- */

leati_import_size leati_view_size(const leati_view *view, int axis);
int leati_view_batch_axis(const leati_view *view);
bool leati_view_is_settled(const leati_view *view);
/* Returns the view in which the stored axes are those of the tensor, one by one. */
leati_view leati_view_of(const leati_import *x, leati_source source);
/* Returns a view with another output of a layer of the same axes. */
leati_view leati_view_with(const leati_import *x, const leati_view *view, leati_source source);
/* Returns a settled view.  The stored axes are the batch, with the others of its axis, then the axes in `order`, a list
 * of the other axes of the tensor; NULL: any order in which there is a settled view. */
leati_view leati_import_settle(leati_import *x, leati_import_value *value, const int *order);
leati_view leati_import_settle_view(leati_import *x, const leati_view *view, const int *order);
/* Returns the value in the order of its own axes, which must begin with the batch, or in the order (batch, the
 * others). */
leati_view leati_import_natural(leati_import *x, leati_import_value *value);
/* Returns an image (N, C, spatial...) with the channels last.  Fails if axis 0 is not the batch.
 * leati_import_frames: axis 0 may be the batch times another axis, which then is stored axis 1. */
leati_view leati_import_channels_last(leati_import *x, leati_import_value *value);
leati_view leati_import_frames(leati_import *x, leati_import_value *value);
/* Returns the stored axis of an axis of a settled view; fails for the axis with the batch. */
int leati_import_stored(leati_import *x, const leati_view *view, int axis);
/* Makes one view of each tensor such that all have the same axes: values without views are constants and are left out.
 * Returns the pattern for the result. */
leati_view leati_import_align(leati_import *x, int count, leati_import_value *const *values,
                              leati_view *views);
/* Removes stored axis `stored`, which is part of axis `axis`; the caller has made a source without it. */
void leati_view_drop(leati_view *view, int axis, bool keep);
/* Adds axes of length 1 in front up to a rank. */
leati_view leati_view_padded(leati_import *x, const leati_view *view, int rank);

/* ---- Reshaping (reshape.c) ---- */

/* Views a tensor with other sizes; at most one may be -1 (count), which is computed. */
leati_view leati_import_reshape(leati_import *x, leati_import_value *value, int rank,
                                const leati_import_size *sizes);
leati_view leati_import_reshape_view(leati_import *x, const leati_view *view, int rank,
                                     const leati_import_size *sizes);
/* Permutes the axes of a view. */
leati_view leati_view_permuted(const leati_view *view, const int *perm);

/* ---- Layers (layers.c) ---- */

/* Adds a layer and calls it.  config: consumed, NULL without memory. */
leati_source leati_import_layer(leati_import *x, const char *class_name, json_t *config, int count,
                                const leati_source *inputs);
/* Like leati_import_layer for a layer with weights.  A layer of the same class, configuration and weights is called
 * again instead. */
leati_source leati_import_weighted(leati_import *x, const char *class_name, json_t *config, int input_count,
                                   const leati_source *inputs, int count, const leati_import_weight *weights);
/* Adds a function of keras.ops.  args: consumed; {"input": i} stands for inputs[i].  options: consumed, NULL: none. */
leati_source leati_import_operation(leati_import *x, const char *function, json_t *args, json_t *options,
                                    int count, const leati_source *inputs);
/* Adds an InputLayer.  config: consumed. */
leati_source leati_import_input(leati_import *x, json_t *config);
/* Append to a list, set a key of an object, replace an item of a list.  Without memory they free *list and set it to
 * NULL, which the next function takes as no memory.  item: consumed. */
void leati_import_append(json_t **list, json_t *item);
void leati_import_put_key(json_t **object, const char *key, json_t *item);
void leati_import_put_item(json_t **list, size_t index, json_t *item);
/* Returns {"input": index}. */
json_t *leati_import_argument(int index);
/* Returns another output of the same call. */
static inline leati_source leati_import_output(leati_source source, int tensor) {
    source.tensor = tensor;
    return source;
}
/* Applies a function of one argument, or an activation, to any view. */
leati_view leati_import_unary(leati_import *x, const char *function, const leati_view *view);
leati_view leati_import_activation(leati_import *x, const char *activation, const leati_view *view);
/* Returns a weight that is a constant as it is, or reshaped and permuted. */
leati_import_weight leati_import_weight_of(const leati_import_tensor *tensor);
/* Changes the order of axes, and adds layers Reshape, unless nothing changes. */
leati_source leati_import_permute(leati_import *x, leati_source source, const int *perm);
leati_source leati_import_to_shape(leati_import *x, leati_source source, const leati_shape *shape);
/* Copies all weights into the finished model. */
void leati_import_fill(leati_import *x);

/* ---- Constants as operands (operands.c) ---- */

/* Returns a constant as an argument of a function, with its axes in the order of a settled view; any view will do for a
 * single number. */
json_t *leati_import_operand(leati_import *x, const leati_import_tensor *tensor, const leati_view *like);
/* Returns a constant as an argument with its own axes in another shape. */
json_t *leati_import_array(leati_import *x, const leati_import_tensor *tensor, int rank, const int64_t *dims);
/* Returns a tensor with the numbers of a constant for each sample. */
leati_view leati_import_spread(leati_import *x, const leati_import_tensor *tensor);
/* Applies a function of several arguments with broadcasting. */
leati_view leati_import_function(leati_import *x, const char *function, int count,
                                 leati_import_value *const *values);
/* Applies a function of two arguments to a view and a number. */
leati_view leati_import_with_number(leati_import *x, const char *function, const leati_view *view,
                                    double number, bool first);

/* ---- Constants (fold.c, fold_*.c) ---- */

/* Makes the outputs of the node constants if the node can be computed now.  Returns false if it must become layers. */
bool leati_import_fold(leati_import *x);
leati_import_tensor *leati_import_new_constant(leati_import *x, int type, int rank, const int64_t *dims);
void leati_import_put(leati_import_tensor *tensor, int64_t index, double number);
void leati_import_put_int(leati_import_tensor *tensor, int64_t index, int64_t number);
/* Reads the elements of a constant list of sizes.  Returns the count, -1 after a failure. */
int leati_import_sizes(leati_import *x, const leati_import_tensor *tensor, leati_import_size *out);
/* Returns one element of a constant as a size. */
leati_import_size leati_import_size_at(const leati_import_tensor *tensor, int64_t index);

/* ---- Operators: each reads the node and sets its outputs ---- */

typedef void leati_import_op(leati_import *x);
typedef struct leati_import_operator {
    const char *name;
    leati_import_op *read;
    const char *detail; /* what `read` computes, if it serves several operators */
} leati_import_operator;
/* Tables that end with a NULL name. */
extern const leati_import_operator leati_import_window_operators[], leati_import_product_operators[],
    leati_import_norm_operators[], leati_import_element_operators[], leati_import_move_operators[],
    leati_import_reduce_operators[], leati_import_recurrent_operators[], leati_import_slice_operators[],
    leati_import_scan_operators[];
/* Reads all nodes of the graph in their order (import.c). */
void leati_import_nodes(leati_import *x);
/* Joins tensors along a stored axis (moves.c). */
leati_source leati_import_joined(leati_import *x, int count, const leati_source *sources, int axis);
/* Takes one element of a stored axis, which ends (slices.c). */
leati_source leati_import_take(leati_import *x, const leati_view *view, int stored, int64_t index);
/* The detail of the operator that is being read. */
const leati_import_operator *leati_import_operator_of(const char *name);

#endif
