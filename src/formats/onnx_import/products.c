/* SPDX-License-Identifier: Apache-2.0 */
/* Reads products of matrices: a constant matrix becomes the kernel of a Dense layer.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"

/* ---- Dense layers ---- */

/* Returns a bias of `units` numbers, or scaled; a single number is repeated. */
static leati_import_weight bias_of(leati_import *x, const leati_import_tensor *tensor, int64_t units,
                                   float scale) {
    leati_import_weight weight = leati_import_weight_of(tensor);
    weight.scale = scale;
    weight.rank = 1;
    weight.dims[0] = tensor->count;
    weight.perm[0] = 0;
    if (tensor->count == units) return weight;
    if (tensor->count != 1) leati_import_refuse(x, "expected a bias of %lld numbers", (long long)units);
    float *numbers = leati_import_memory(x, units, sizeof *numbers);
    for (int64_t i = 0; numbers && i < units; ++i) numbers[i] = scale * (float)leati_import_number(tensor, 0);
    weight.numbers = numbers;
    return weight;
}

/* Returns the value with its last axis as the last stored axis. */
static leati_view last_axis_last(leati_import *x, leati_import_value *value) {
    leati_view view = leati_import_settle(x, value, NULL);
    if (!leati_import_ok(x) || view.rank < 1) return view;
    if (leati_import_stored(x, &view, view.rank - 1) == view.shape.rank - 1) return view;
    return leati_import_natural(x, value);
}

/* Applies a Dense layer to the last axis.  kernel: (inputs, units) after its permutation. */
static leati_view dense(leati_import *x, leati_import_value *value, const leati_import_weight *kernel,
                        const leati_import_tensor *bias, float bias_scale) {
    const leati_view view = last_axis_last(x, value);
    const int64_t units = kernel->dims[kernel->perm[1]];
    leati_import_weight weights[2] = {*kernel};
    if (!leati_import_ok(x)) return view;
    if (bias) weights[1] = bias_of(x, bias, units, bias_scale);
    json_t *config = json_pack("{s:I, s:b}", "units", (json_int_t)units, "use_bias", bias != NULL);
    const leati_source source =
        leati_import_weighted(x, "Dense", config, 1, &view.source, bias ? 2 : 1, weights);
    return leati_view_with(x, &view, source);
}

static void read_gemm(leati_import *x) {
    const leati_import_tensor *matrix = leati_import_constant_in(x, 1, "matrix B");
    const leati_import_tensor *bias = leati_import_constant_in(x, 2, "bias C");
    leati_import_value *value = leati_import_need(x, 0);
    const bool transposed = leati_import_int(x, "transB", 0) != 0;
    if (leati_import_int(x, "transA", 0) != 0) leati_import_refuse(x, "transA is not supported");
    if (leati_import_ok(x) && (!matrix || matrix->rank != 2))
        leati_import_refuse(x, "expected a matrix B of 2 axes");
    if (!leati_import_ok(x)) return;
    leati_import_weight kernel = leati_import_weight_of(matrix);
    kernel.scale = leati_import_real(x, "alpha", 1);
    if (transposed) kernel.perm[0] = 1, kernel.perm[1] = 0;
    const leati_view out = dense(x, value, &kernel, bias, leati_import_real(x, "beta", 1));
    leati_import_set(x, 0, &out);
}

/* Returns the only node that reads the output of the present node if it adds a bias of `units` numbers to it. */
static const leati_import_node *find_bias(leati_import *x, int64_t units, const leati_import_tensor **bias) {
    const leati_import_value *output = leati_import_find(x, x->node->outputs[0]);
    const leati_import_node *end = x->file->nodes + x->file->node_count;
    if (!output || output->readers != 1) return NULL;
    for (const leati_import_node *at = x->node + 1; at < end; ++at) {
        for (int i = 0; i < at->input_count; ++i) {
            if (strcmp(at->inputs[i], output->name) != 0) continue;
            if (strcmp(at->op, "Add") != 0 || at->input_count != 2 || at->output_count != 1) return NULL;
            const leati_import_value *other = leati_import_find(x, at->inputs[1 - i]);
            *bias = other ? other->constant : NULL;
            const bool fits = *bias && (*bias)->count == units && !(*bias)->sizes && (*bias)->rank >= 1 &&
                              (*bias)->dims[(*bias)->rank - 1] == units;
            return fits ? at : NULL;
        }
    }
    return NULL;
}

static void multiply_by_matrix(leati_import *x, leati_import_value *value,
                               const leati_import_tensor *matrix) {
    leati_import_weight kernel = leati_import_weight_of(matrix);
    const leati_import_tensor *bias = NULL;
    const int64_t units = matrix->dims[matrix->rank - 1];
    const leati_import_node *adder = find_bias(x, units, &bias), *own = x->node;
    const int rank = value->view_count > 0 ? value->views[0].rank
                     : value->constant     ? value->constant->rank
                                           : 0;
    kernel.rank = 2;
    kernel.dims[0] = matrix->dims[matrix->rank - 2], kernel.dims[1] = units;
    kernel.perm[0] = 0, kernel.perm[1] = 1;
    if (adder && bias->rank > rank) adder = NULL;
    const leati_view out = dense(x, value, &kernel, adder ? bias : NULL, 1);
    leati_import_set(x, 0, &out);
    if (!adder || !leati_import_ok(x)) return;
    leati_import_value *sum = leati_import_find(x, adder->outputs[0]);
    if (!sum) return;
    x->node = adder;
    sum->views[0] = out;
    sum->view_count = 1;
    sum->made = true;
    sum->type = LEATI_IMPORT_FLOAT;
    x->node = own;
}

/* ---- Products of tensors ---- */

/* Adds the operation Matmul of settled views, or constants, in the order of the tensor's axes. */
static leati_view product(leati_import *x, leati_import_value *a, leati_import_value *b) {
    leati_source inputs[2];
    int count = 0;
    leati_view left = {0}, right = {0};
    if (!a->constant) left = leati_import_natural(x, a);
    if (!b->constant) right = leati_import_natural(x, b);
    const leati_view *like = a->constant ? &right : &left;
    if (!leati_import_ok(x)) return *like;
    const int batch = leati_view_batch_axis(like), rank = like->rank;
    const bool mixes = !a->constant && !b->constant &&
                       (left.rank != right.rank || leati_view_batch_axis(&right) != batch ||
                        left.axes[batch].count != right.axes[batch].count);
    if (mixes || batch >= rank - 2) {
        leati_import_refuse(
            x, "it mixes samples: expected the batch among the axes before the last two of both tensors");
        return *like;
    }
    json_t *args[2];
    for (int i = 0; i < 2; ++i) {
        const leati_import_value *value = i == 0 ? a : b;
        if (!value->constant) inputs[count] = i == 0 ? left.source : right.source;
        args[i] =
            value->constant ? leati_import_operand(x, value->constant, like) : leati_import_argument(count++);
    }
    json_t *both = json_pack("[o, o]", args[0], args[1]);
    const leati_source source = leati_import_operation(x, "Matmul", both, NULL, count, inputs);
    return leati_view_with(x, like, source);
}

/* Writes the names of the axes of a constant: of its matrix, `row` and `column`; of the axes before, those of the
 * view's stored axes; none for an axis of length 1.  Returns false if the constant has another number of elements
 * along an axis than the tensor, or one for each sample. */
static bool name_axes(const leati_view *view, const leati_import_tensor *matrix, char row, char column,
                      char *out, leati_import_weight *weight) {
    const int batch = leati_view_batch_axis(view);
    int count = 0;
    for (int c = 0; c < matrix->rank; ++c) {
        const int axis = view->rank - matrix->rank + c, place = matrix->rank - 1 - c;
        if (place > 1 && matrix->dims[c] == 1) continue;
        if (place > 1 && (axis == batch || leati_view_size(view, axis).count != matrix->dims[c]))
            return false;
        weight->dims[count] = matrix->dims[c];
        weight->perm[count] = count;
        out[count++] = place == 0 ? column : place == 1 ? row : (char)('a' + view->axes[axis].stored[0]);
    }
    out[count] = '\0';
    weight->rank = count;
    return true;
}

/* Writes the names of the stored axes, and those of the result, in which one axis is called z. */
static void name_stored(const leati_view *view, int contracted, char *in, char *out) {
    for (int i = 0; i < view->shape.rank; ++i) {
        in[i] = (char)('a' + i);
        out[i] = i == contracted ? 'z' : in[i];
    }
    in[view->shape.rank] = out[view->shape.rank] = '\0';
}

/* Multiplies by a constant that has a matrix for each place of other axes: an EinsumDense layer. */
static bool multiply_by_matrices(leati_import *x, leati_import_value *value,
                                 const leati_import_tensor *matrix) {
    char equation[64], in[16], kernel_axes[16], made[16];
    leati_import_weight kernel = leati_import_weight_of(matrix);
    const leati_view view = leati_import_settle(x, value, NULL);
    if (!leati_import_ok(x) || view.rank < matrix->rank) return false;
    const int last = view.rank - 1, contracted = view.axes[last].stored[0];
    if (last == leati_view_batch_axis(&view) || matrix->rank < 3) return false;
    if (!name_axes(&view, matrix, (char)('a' + contracted), 'z', kernel_axes, &kernel)) return false;
    name_stored(&view, contracted, in, made);
    snprintf(equation, sizeof equation, "%s,%s->%s", in, kernel_axes, made);
    json_t *shape = json_array();
    for (int i = 1; shape && i < view.shape.rank; ++i) {
        const int64_t length = i == contracted ? matrix->dims[matrix->rank - 1] : view.shape.dims[i];
        leati_import_append(&shape, length < 0 ? json_null() : json_integer(length));
    }
    json_t *config = json_pack("{s:s, s:o}", "equation", equation, "output_shape", shape);
    const leati_view out =
        leati_view_with(x, &view,
                        leati_import_weighted(x, "EinsumDense", config, 1, &view.source, 1, &kernel));
    leati_import_set(x, 0, &out);
    return true;
}

/* Multiplies a constant by a tensor: a matrix of resizing, not the weights of a layer. */
static bool multiply_from_left(leati_import *x, const leati_import_tensor *matrix,
                               leati_import_value *value) {
    char equation[64], in[16], matrix_axes[16], made[16];
    leati_import_weight axes = leati_import_weight_of(matrix);
    const leati_view view = leati_import_settle(x, value, NULL);
    const int rows = view.rank - 2;
    if (!leati_import_ok(x) || rows < 0 || view.rank < matrix->rank || matrix->rank < 2) return false;
    if (rows == leati_view_batch_axis(&view)) return false;
    const int contracted = view.axes[rows].stored[0];
    if (!name_axes(&view, matrix, 'z', (char)('a' + contracted), matrix_axes, &axes)) return false;
    name_stored(&view, contracted, in, made);
    snprintf(equation, sizeof equation, "%s,%s->%s", matrix_axes, in, made);
    json_t *operand = leati_import_array(x, matrix, axes.rank, axes.dims);
    json_t *args = operand ? json_pack("[o, o]", operand, leati_import_argument(0)) : NULL;
    const leati_view out =
        leati_view_with(x, &view,
                        leati_import_operation(x, "Einsum", args, json_pack("{s:s}", "subscripts", equation),
                                               1, &view.source));
    leati_import_set(x, 0, &out);
    return true;
}

/* Returns true if a constant is one matrix. */
static bool is_matrix(const leati_import_tensor *tensor) {
    for (int i = 0; i + 2 < tensor->rank; ++i)
        if (tensor->dims[i] != 1) return false;
    return tensor->rank >= 2;
}

static void read_matmul(leati_import *x) {
    leati_import_value *a = leati_import_need(x, 0), *b = leati_import_need(x, 1);
    if (!leati_import_ok(x)) return;
    const int rank = a->view_count > 0 ? a->views[0].rank : a->constant ? a->constant->rank : 0;
    if (b->constant && !b->constant->spread && is_matrix(b->constant) && rank >= b->constant->rank) {
        multiply_by_matrix(x, a, b->constant);
        return;
    }
    if (a->constant && !b->constant && (multiply_from_left(x, a->constant, b) || !leati_import_ok(x))) return;
    if (b->constant && !a->constant && (multiply_by_matrices(x, a, b->constant) || !leati_import_ok(x)))
        return;
    if ((a->constant && (a->constant->rank < 2 || a->constant->count == 1)) ||
        (b->constant && (b->constant->rank < 2 || b->constant->count == 1))) {
        leati_import_refuse(x, "a product with a constant vector is not supported; use a matrix");
        return;
    }
    const leati_view out = product(x, a, b);
    leati_import_set(x, 0, &out);
}

/* An equation without spaces, in which each tensor begins with the batch. */
static void read_einsum(leati_import *x) {
    const char *equation = leati_import_string(x, "equation", "");
    char plain[128];
    size_t length = 0;
    for (; *equation && length + 1 < sizeof plain; ++equation)
        if (*equation != ' ') plain[length++] = *equation;
    plain[length] = '\0';
    leati_source inputs[2];
    json_t *args = json_array();
    int count = 0;
    const char *term = plain, *out = strstr(plain, "->");
    bool fits = x->node->input_count <= 2 && out && plain[0] != '\0' && !strchr(plain, '.');
    for (int i = 0; fits && i < x->node->input_count && leati_import_ok(x); ++i) {
        leati_import_value *value = leati_import_need(x, i);
        if (value->constant) {
            fits = false;
            break;
        }
        const leati_view view = leati_import_natural(x, value);
        fits = leati_view_batch_axis(&view) == 0 && view.shape.rank == view.rank && *term == out[2];
        inputs[count] = view.source;
        if (args) leati_import_append(&args, leati_import_argument(count++));
        const char *comma = strchr(term, ',');
        term = comma ? comma + 1 : out;
    }
    if (!fits)
        leati_import_refuse(
            x, "expected an equation of one or two computed tensors that all begin with the batch");
    const leati_source source =
        leati_import_operation(x, "Einsum", args, json_pack("{s:s}", "subscripts", plain), count, inputs);
    const leati_view made = leati_view_of(x, source);
    leati_import_set(x, 0, &made);
}

const leati_import_operator leati_import_product_operators[] = {
    {"Gemm", read_gemm, NULL},
    {"MatMul", read_matmul, NULL},
    {"Einsum", read_einsum, NULL},
    {.name = NULL},
};
