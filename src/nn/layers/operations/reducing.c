/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops that reduce axes, and running sums.  Room: nn. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "nn/layers/operations/operations.h"

typedef struct reduction {
    leati_value x;
    uint32_t axes;
    bool keep_dims;
} reduction;

static reduction reduction_of(const leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    return (reduction){x, leati_operand_axes(o, "axis", leati_graph_desc(o->g, x)->rank),
                       leati_operand_flag(o, "keepdims")};
}

static void lower_reduction(leati_operands *o) {
    reduction r = reduction_of(o);
    const leati_reduce kind = (leati_reduce)o->operation->detail;
    o->outputs[0] = leati_reduce_of(o->g, kind, r.x, r.axes, r.keep_dims);
    if (leati_operand_json(o, "initial"))
        o->outputs[0] = leati_binary_of(o->g, kind == LEATI_REDUCE_MAX ? LEATI_MAX : LEATI_MIN, o->outputs[0],
                                        leati_operand(o, "initial"));
}

/* Returns the tensor without the reduced axes, which have length 1. */
static leati_value without_axes(leati_graph *g, leati_value x, const reduction *r) {
    const leati_desc desc = *leati_graph_desc(g, x);
    leati_desc out = {0};
    for (int i = 0; i < desc.rank; ++i)
        if (!(r->axes >> i & 1u)) out.shape[out.rank++] = desc.shape[i];
    return r->keep_dims ? x : leati_reshape(g, x, out.rank, out.shape);
}

enum { VARIANCE, DEVIATION };

static void lower_variance(leati_operands *o) {
    leati_graph *g = o->g;
    reduction r = reduction_of(o);
    leati_value centered = leati_sub(g, r.x, leati_reduce_of(g, LEATI_REDUCE_MEAN, r.x, r.axes, true));
    leati_value squares = leati_function_of(g, centered, LEATI_FN_SQUARE);
    leati_value variance = leati_reduce_of(g, LEATI_REDUCE_MEAN, squares, r.axes, r.keep_dims);
    o->outputs[0] =
        o->operation->detail == VARIANCE ? variance : leati_function_of(g, variance, LEATI_FN_SQRT);
}

/* Computes the mean and the variance. */
static void lower_moments(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    const reduction r = {x, leati_operand_axes(o, "axes", leati_graph_desc(g, x)->rank),
                         leati_operand_flag(o, "keepdims")};
    leati_value mean = leati_reduce_of(g, LEATI_REDUCE_MEAN, x, r.axes, true);
    leati_value squares = leati_function_of(g, leati_sub(g, x, mean), LEATI_FN_SQUARE);
    o->output_count = 2;
    o->outputs[0] = without_axes(g, mean, &r);
    o->outputs[1] = leati_reduce_of(g, LEATI_REDUCE_MEAN, squares, r.axes, r.keep_dims);
}

/* Divides by the root of the mean of the squares. */
static void lower_rms_norm(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    const int rank = leati_graph_desc(g, x)->rank;
    const double epsilon = leati_operand_number_or(o, "epsilon", (double)LEATI_EPSILON);
    const uint32_t axes = leati_operand_json(o, "axis") ? leati_operand_axes(o, "axis", rank)
                                                        : UINT32_C(1) << (rank > 0 ? rank - 1 : 0);
    leati_value squares = leati_function_of(g, x, LEATI_FN_SQUARE);
    leati_value mean = leati_reduce_of(g, LEATI_REDUCE_MEAN, squares, axes, true);
    leati_value root = leati_function_of(g, leati_linear(g, mean, 1, (float)epsilon), LEATI_FN_SQRT);
    leati_value y = leati_div(g, x, root);
    o->outputs[0] = leati_operand_json(o, "scale") ? leati_mul(g, y, leati_operand(o, "scale")) : y;
}

enum { ANY, ALL, COUNT_NONZERO };

static void lower_truths(leati_operands *o) {
    static const leati_reduce kinds[] = {LEATI_REDUCE_MAX, LEATI_REDUCE_MIN, LEATI_REDUCE_SUM};
    reduction r = reduction_of(o);
    leati_value truth = leati_operation_truth(o->g, r.x);
    o->outputs[0] = leati_reduce_of(o->g, kinds[o->operation->detail], truth, r.axes, r.keep_dims);
}

static void lower_logsumexp(leati_operands *o) {
    leati_graph *g = o->g;
    reduction r = reduction_of(o);
    leati_value most = leati_reduce_of(g, LEATI_REDUCE_MAX, r.x, r.axes, true);
    /* A cast from f64 has no gradient: the maximum cancels. */
    most = leati_cast(g, leati_cast(g, most, LEAT_F64, 1), LEAT_F32, 1);
    leati_value powers = leati_function_of(g, leati_sub(g, r.x, most), LEATI_FN_EXP);
    leati_value sum = leati_reduce_of(g, LEATI_REDUCE_SUM, powers, r.axes, true);
    o->outputs[0] = without_axes(g, leati_add(g, leati_function_of(g, sum, LEATI_FN_LOG), most), &r);
}

leati_value leati_operation_norm(leati_graph *g, leati_value x, uint32_t axes, bool keeps, double order) {
    if (order == 2) {
        leati_value squares = leati_function_of(g, x, LEATI_FN_SQUARE);
        return leati_function_of(g, leati_reduce_of(g, LEATI_REDUCE_SUM, squares, axes, keeps),
                                 LEATI_FN_SQRT);
    }
    leati_value sizes = leati_function_of(g, x, LEATI_FN_ABS);
    if (order == 1) return leati_reduce_of(g, LEATI_REDUCE_SUM, sizes, axes, keeps);
    if (order == (double)INFINITY) return leati_reduce_of(g, LEATI_REDUCE_MAX, sizes, axes, keeps);
    const leati_eltwise power = {.function = LEATI_FN_POW, .a = (float)order};
    const leati_eltwise root = {.function = LEATI_FN_POW, .a = (float)(1 / order)};
    sizes = leati_eltwise_of(g, sizes, power);
    return leati_eltwise_of(g, leati_reduce_of(g, LEATI_REDUCE_SUM, sizes, axes, keeps), root);
}

/* Computes the norm of vectors, of any order above 0, or Frobenius's norm of matrices. */
static void lower_norm(leati_operands *o) {
    reduction r = reduction_of(o);
    double order = 2;
    const bool number = leati_operand_number(o, "ord", &order), flat = (r.axes & (r.axes - 1)) == 0;
    const char *text = number ? "" : leati_operand_text(o, "ord", "");
    if (text[0] && strcmp(text, "euclidean") != 0 && strcmp(text, "fro") != 0) order = 0;
    if (!(order > 0) || (!flat && (number || order != 2)))
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP,
                                           "ord: expected a number above 0 or inf for one axis, or None");
    else
        o->outputs[0] = leati_operation_norm(o->g, r.x, r.axes, r.keep_dims, order);
}

/* Multiplies the elements of some axes, one axis after the other. */
static void lower_product(leati_operands *o) {
    reduction r = reduction_of(o);
    const leati_desc desc = *leati_graph_desc(o->g, r.x);
    leati_value product = r.x;
    for (int axis = 0; axis < desc.rank; ++axis) {
        if (!(r.axes >> axis & 1u)) continue;
        if (desc.shape[axis] < 1 || desc.shape[axis] > 64 || axis == 0) {
            o->outputs[0] =
                leati_operand_fail(o, LEAT_ENOTSUP, "expected axes of 1 to 64 elements, and not the batch");
            return;
        }
        leati_value whole = product;
        product = leati_slice_axis(o->g, whole, axis, 0, 1);
        for (int64_t i = 1; i < desc.shape[axis]; ++i)
            product = leati_mul(o->g, product, leati_slice_axis(o->g, whole, axis, i, 1));
    }
    o->outputs[0] = without_axes(o->g, product, &r);
}

enum { LARGEST, SMALLEST };

static void lower_argmax(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(o->g, x);
    reduction r = {.keep_dims = leati_operand_flag(o, "keepdims")};
    int axis = leati_operand_axis(o, "axis", desc.rank, LEATI_AXIS_NEEDED);
    if (o->operation->detail == SMALLEST) x = leati_linear(o->g, x, -1, 0);
    leati_value y = axis < 0 ? LEATI_INVALID : leati_argmax(o->g, x, axis);
    y = leati_cast(o->g, y, LEAT_F32, 1);
    leati_desc kept = desc;
    if (r.keep_dims && axis >= 0) kept.shape[axis] = 1;
    o->outputs[0] = r.keep_dims ? leati_reshape(o->g, y, kept.rank, kept.shape) : y;
}

/* Computes the mean with weights of the elements of an axis, or of all elements. */
static void lower_average(leati_operands *o) {
    leati_graph *g = o->g;
    reduction r = reduction_of(o);
    if (!leati_operand_json(o, "weights")) {
        o->outputs[0] = leati_reduce_of(g, LEATI_REDUCE_MEAN, r.x, r.axes, false);
        return;
    }
    leati_value weights = leati_operand(o, "weights");
    const leati_desc desc = *leati_graph_desc(g, r.x), own = *leati_graph_desc(g, weights);
    if (own.rank == 1 && desc.rank != 1 && r.axes) {
        int64_t dims[LEAT_MAX_RANK];
        for (int i = 0; i < desc.rank; ++i) dims[i] = r.axes >> i & 1u ? own.shape[0] : 1;
        weights = leati_reshape(g, weights, desc.rank, dims);
    }
    weights = leati_broadcast(g, weights, desc.rank, desc.shape);
    leati_value sum = leati_reduce_of(g, LEATI_REDUCE_SUM, leati_mul(g, r.x, weights), r.axes, false);
    o->outputs[0] = leati_div(g, sum, leati_reduce_of(g, LEATI_REDUCE_SUM, weights, r.axes, false));
}

/* Computes running sums as the product with a triangular matrix of ones. */
static void lower_cumsum(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operation_to_dtype(o, leati_operand(o, "x"));
    const leati_desc desc = *leati_graph_desc(g, x);
    int axis = leati_operand_axis(o, "axis", desc.rank, LEATI_AXIS_NEEDED);
    if (axis < 0) return;
    int64_t n = desc.shape[axis];
    float *ones = n > 4096 ? NULL : leati_calloc((size_t)(n * n) + 1, sizeof *ones);
    if (!ones) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "expected an axis of at most 4096 elements");
        return;
    }
    for (int64_t i = 0; i < n; ++i)
        for (int64_t k = i; k < n; ++k) ones[i * n + k] = 1;
    leati_desc square = leati_desc_make(LEAT_F32, 2, (int64_t[]){n, n});
    leati_value matrix = leati_graph_constant(g, &square, ones);
    leati_free(ones);
    int32_t perm[LEAT_MAX_RANK];
    for (int i = 0; i < desc.rank; ++i) perm[i] = i == axis ? desc.rank - 1 : i == desc.rank - 1 ? axis : i;
    leati_value last = leati_transpose(g, x, perm);
    const leati_desc moved = *leati_graph_desc(g, last);
    int64_t rows = n > 0 ? leati_desc_count(&desc) / n : 0;
    leati_value sums =
        leati_matmul(g, leati_reshape(g, last, 2, (int64_t[]){rows, n}), false, matrix, false, LEATI_NONE);
    o->outputs[0] = leati_transpose(g, leati_reshape(g, sums, moved.rank, moved.shape), perm);
}

#define NUMPY "ops.numpy"

const leati_operation leati_reducing_operations[] = {
    {"Mean", NUMPY, "x axis keepdims", lower_reduction, LEATI_REDUCE_MEAN},
    {"Sum", NUMPY, "x axis keepdims", lower_reduction, LEATI_REDUCE_SUM},
    {"Max", NUMPY, "x axis keepdims initial", lower_reduction, LEATI_REDUCE_MAX},
    {"Min", NUMPY, "x axis keepdims initial", lower_reduction, LEATI_REDUCE_MIN},
    {"Amax", NUMPY, "x axis keepdims", lower_reduction, LEATI_REDUCE_MAX},
    {"Amin", NUMPY, "x axis keepdims", lower_reduction, LEATI_REDUCE_MIN},
    {"Var", NUMPY, "x axis keepdims", lower_variance, VARIANCE},
    {"Std", NUMPY, "x axis keepdims", lower_variance, DEVIATION},
    {"RMSNorm", "ops.nn", "x scale axis epsilon", lower_rms_norm, 0},
    {"Moments", "ops.nn", "x axes keepdims synchronized", lower_moments, 0},
    {"Any", NUMPY, "x axis keepdims", lower_truths, ANY},
    {"All", NUMPY, "x axis keepdims", lower_truths, ALL},
    {"CountNonzero", NUMPY, "x axis", lower_truths, COUNT_NONZERO},
    {"Logsumexp", "ops.math", "x axis keepdims", lower_logsumexp, 0},
    {"Norm", "ops.linalg", "x ord axis keepdims", lower_norm, 0},
    {"Prod", NUMPY, "x axis keepdims dtype", lower_product, 0},
    {"Argmax", NUMPY, "x axis keepdims", lower_argmax, LARGEST},
    {"Argmin", NUMPY, "x axis keepdims", lower_argmax, SMALLEST},
    {"Average", NUMPY, "x weights axis", lower_average, 0},
    {"Cumsum", NUMPY, "x axis dtype", lower_cumsum, 0},
    {.name = NULL},
};
