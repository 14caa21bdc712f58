/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of the graph as arguments of functions, and functions with broadcasting.  Room: formats. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/onnx_import/import.h"
#include "json/json.h"

/* The constants of functions are JSON, at about 50 bytes for a number. */
enum { MOST_NUMBERS = 1 << 24 };

static json_t *number_of(double number) {
    return leati_json_real(number);
}

/* Makes nested lists of the elements of a constant in the order of the axes `dims` with strides in the constant. */
static json_t *nested(const leati_import_tensor *tensor, int rank, const int64_t *dims,
                      const int64_t *strides, int64_t from) {
    if (rank == 0) return number_of(leati_import_number(tensor, from));
    json_t *list = json_array();
    for (int64_t i = 0; list && i < dims[0]; ++i)
        if (json_array_append_new(list, nested(tensor, rank - 1, dims + 1, strides + 1,
                                               from + i * strides[0])) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *array_of(const leati_import_tensor *tensor, int rank, const int64_t *dims,
                        const int64_t *strides) {
    json_t *value = nested(tensor, rank, dims, strides, 0);
    if (!value || rank == 0) return value;
    return json_pack("{s:s, s:{s:o, s:s}}", "class_name", "__numpy__", "config", "value", value, "dtype",
                     "float32");
}

/* Checks that a constant is a tensor of known numbers. */
static bool is_known(leati_import *x, const leati_import_tensor *tensor) {
    for (int64_t i = 0; tensor->sizes && i < tensor->count; ++i)
        if (tensor->sizes[i] != LEATI_SIZE_KNOWN)
            leati_import_refuse(
                x, "it computes with a size that is open in the model; export the model with fixed sizes, "
                   "except for the batch");
    if (tensor->count > MOST_NUMBERS)
        leati_import_refuse(x,
                            "a constant has %lld numbers, expected at most %d in place of a layer's weights",
                            (long long)tensor->count, MOST_NUMBERS);
    return leati_import_ok(x);
}

json_t *leati_import_operand(leati_import *x, const leati_import_tensor *tensor, const leati_view *like) {
    int64_t dims[LEAT_MAX_RANK], strides[LEAT_MAX_RANK] = {0}, stride = 1;
    if (!is_known(x, tensor)) return NULL;
    if (tensor->count == 1) return number_of(leati_import_number(tensor, 0));
    const int rank = like->shape.rank, batch = leati_view_batch_axis(like);
    for (int i = 0; i < rank; ++i) dims[i] = 1;
    if (tensor->rank > like->rank || !leati_view_is_settled(like))
        leati_import_refuse(x, "a constant of %d axes does not fit a tensor of %d", (int)tensor->rank,
                            (int)like->rank);
    for (int c = tensor->rank - 1; leati_import_ok(x) && c >= 0; --c) {
        const int axis = like->rank - tensor->rank + c;
        if (axis == batch && tensor->dims[c] != 1)
            leati_import_refuse(x, "a constant has %lld different values along the batch",
                                (long long)tensor->dims[c]);
        if (axis != batch) {
            dims[like->axes[axis].stored[0]] = tensor->dims[c];
            strides[like->axes[axis].stored[0]] = stride;
        }
        stride *= tensor->dims[c];
    }
    int first = 0;
    while (first < rank && dims[first] == 1) ++first;
    return leati_import_ok(x) ? array_of(tensor, rank - first, dims + first, strides + first) : NULL;
}

json_t *leati_import_array(leati_import *x, const leati_import_tensor *tensor, int rank,
                           const int64_t *dims) {
    int64_t strides[LEAT_MAX_RANK], stride = 1;
    if (!is_known(x, tensor) || leati_shape_count(rank, dims) != tensor->count) return NULL;
    for (int i = rank - 1; i >= 0; --i) {
        strides[i] = stride;
        stride *= dims[i];
    }
    return array_of(tensor, rank, dims, strides);
}

/* ---- A constant for each sample ---- */

/* Returns zeros of the shape (batch, 1, ..., 1), made from the first input of the model. */
static leati_source zeros(leati_import *x, int rank) {
    leati_source source = x->inputs ? x->inputs[0] : (leati_source){0};
    if (!x->inputs || x->input_count < 1) leati_import_refuse(x, "expected a model with an input");
    if (!leati_import_ok(x)) return source;
    const leati_shape from = leati_network_shape(x->model, &source);
    json_t *key = json_array();
    for (int i = 0; i < from.rank; ++i) {
        json_t *config = i == 0 ? json_pack("{s:n, s:n, s:n}", "start", "stop", "step")
                                : json_pack("{s:i, s:i, s:n}", "start", 0, "stop", 1, "step");
        if (key)
            leati_import_append(&key, json_pack("{s:s, s:o}", "class_name", "__slice__", "config", config));
    }
    source = leati_import_operation(x, "GetItem", json_pack("[o, o]", leati_import_argument(0), key), NULL, 1,
                                    &source);
    leati_shape shape = {.rank = rank, .dims = {from.dims[0]}};
    for (int i = 1; i < rank; ++i) shape.dims[i] = 1;
    source = leati_import_to_shape(x, source, &shape);
    return leati_import_operation(x, "ZerosLike", json_pack("[o]", leati_import_argument(0)), NULL, 1,
                                  &source);
}

/* The batch is axis 0, or the axis that a spread constant has it on. */
leati_view leati_import_spread(leati_import *x, const leati_import_tensor *tensor) {
    int batch = 0, perm[LEAT_MAX_RANK], count = 0;
    for (int i = 0; i < tensor->rank; ++i)
        if (tensor->spread >> i & 1u) batch = i;
    if (tensor->rank < 1 || tensor->dims[batch] != 1)
        leati_import_refuse(x, "expected a tensor with the batch as its first axis, received a constant");
    if (!leati_import_ok(x)) return (leati_view){0};
    leati_view view = leati_view_of(x, zeros(x, tensor->rank));
    perm[count++] = batch;
    for (int i = 0; i < tensor->rank; ++i)
        if (i != batch) perm[count++] = i;
    for (int i = 0; i < tensor->rank; ++i) view.axes[perm[i]] = (leati_view_axis){1, {i}};
    json_t *operand = leati_import_operand(x, tensor, &view);
    json_t *args = operand ? json_pack("[o, o]", leati_import_argument(0), operand) : NULL;
    return leati_view_with(x, &view, leati_import_operation(x, "Add", args, NULL, 1, &view.source));
}

/* ---- Functions ---- */

leati_view leati_import_function(leati_import *x, const char *function, int count,
                                 leati_import_value *const *values) {
    leati_view views[4];
    leati_source inputs[4];
    int input_count = 0;
    const leati_view pattern = leati_import_align(x, count, values, views);
    json_t *args = json_array();
    for (int i = 0; i < count && leati_import_ok(x); ++i) {
        json_t *item;
        if (values[i]->constant) {
            item = leati_import_operand(x, values[i]->constant, &pattern);
        } else {
            inputs[input_count] = views[i].source;
            item = leati_import_argument(input_count++);
        }
        if (args && json_array_append_new(args, item) != 0) {
            json_decref(args);
            args = NULL;
        }
    }
    const leati_source source = leati_import_operation(x, function, args, NULL, input_count, inputs);
    return leati_view_with(x, &pattern, source);
}

leati_view leati_import_with_number(leati_import *x, const char *function, const leati_view *view,
                                    double number, bool first) {
    json_t *value = number_of(number), *input = leati_import_argument(0);
    json_t *args = first ? json_pack("[o, o]", value, input) : json_pack("[o, o]", input, value);
    return leati_view_with(x, view, leati_import_operation(x, function, args, NULL, 1, &view->source));
}
