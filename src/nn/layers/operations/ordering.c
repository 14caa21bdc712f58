/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops that order elements, take them by computed indices, or depend on their place in a matrix.
 * Room: nn. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "nn/layers/operations/operations.h"

/* An axis of a tensor as the columns of a matrix. */
typedef struct rows {
    leati_value x; /* (rows, count) */
    int axis;
    int64_t rows, count;
    leati_desc moved; /* the shape with the axis at its end */
    int32_t perm[LEAT_MAX_RANK];
} rows;

/* Orders of more elements would take too much memory: a matrix of count x count for each row. */
enum { MOST_ORDERED = 1024 };

/* The largest index that f32 represents exactly with all smaller ones. */
#define MOST_INDEXED (INT64_C(1) << 23)

static rows rows_of(leati_graph *g, leati_value x, int axis) {
    rows r = {.axis = axis, .moved = *leati_graph_desc(g, x)};
    const int last = r.moved.rank - 1;
    for (int i = 0; i <= last; ++i) r.perm[i] = i == axis ? last : i == last ? axis : i;
    r.count = r.moved.shape[axis];
    r.moved.shape[axis] = r.moved.shape[last];
    r.moved.shape[last] = r.count;
    r.rows = r.count > 0 ? leati_desc_count(&r.moved) / r.count : 0;
    r.x = leati_reshape(g, leati_transpose(g, x, r.perm), 2, (int64_t[]){r.rows, r.count});
    return r;
}

/* Gives a matrix of `count` columns the shape of the tensor, with the columns along the axis. */
static leati_value back(leati_graph *g, const rows *r, leati_value matrix, int64_t count) {
    leati_desc moved = r->moved;
    moved.shape[moved.rank - 1] = count;
    return leati_transpose(g, leati_reshape(g, matrix, moved.rank, moved.shape), r->perm);
}

/* Makes a constant matrix whose elements are `of(row, column, k)`. */
static leati_value matrix_of(leati_graph *g, int64_t height, int64_t width, int64_t k,
                             float (*of)(int64_t row, int64_t column, int64_t k)) {
    float *values = leati_calloc((size_t)(height * width) + 1, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for a constant");
    for (int64_t i = 0; i < height * width; ++i) values[i] = of(i / width, i % width, k);
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){height, width});
    leati_value out = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return out;
}

static float is_before(int64_t row, int64_t column, int64_t k) {
    (void)k;
    return column < row;
}

static float its_column(int64_t row, int64_t column, int64_t k) {
    (void)row, (void)k;
    return (float)column;
}

static float its_row(int64_t row, int64_t column, int64_t k) {
    (void)column, (void)k;
    return (float)row;
}

/* Returns the indices of the first `wanted` elements of each row in their order, (rows, wanted).  The place of an
 * element is the number of elements that come before it; of equal ones those of lower indices do.  NaN has its place
 * among the infinite numbers: it equals nothing, so that several elements would have one place. */
static leati_value order_of(leati_operands *o, const rows *r, bool ascending, int64_t wanted) {
    leati_graph *g = o->g;
    const int64_t n = r->count;
    leati_value keys =
        leati_operation_select(o, leati_operation_is_nan(g, r->x), leati_scalar(g, INFINITY), r->x);
    const leati_desc cube = leati_desc_make(LEAT_F32, 3, (int64_t[]){r->rows, n, n});
    leati_value own =
        leati_broadcast(g, leati_reshape(g, keys, 3, (int64_t[]){r->rows, n, 1}), 3, cube.shape);
    leati_value other =
        leati_broadcast(g, leati_reshape(g, keys, 3, (int64_t[]){r->rows, 1, n}), 3, cube.shape);
    leati_value before = ascending ? leati_binary_of(g, LEATI_GREATER, own, other)
                                   : leati_binary_of(g, LEATI_GREATER, other, own);
    leati_value equal =
        leati_mul(g, leati_binary_of(g, LEATI_EQUAL, own, other), matrix_of(g, n, n, 0, is_before));
    leati_value places = leati_reduce_last(g, LEATI_REDUCE_SUM, leati_add(g, before, equal), false);
    const int64_t dims[] = {r->rows, wanted, n};
    leati_value here =
        leati_binary_of(g, LEATI_EQUAL,
                        leati_broadcast(g, leati_reshape(g, places, 3, (int64_t[]){r->rows, 1, n}), 3, dims),
                        leati_broadcast(g, matrix_of(g, wanted, n, 0, its_row), 3, dims));
    return leati_reduce_last(g, LEATI_REDUCE_SUM, leati_mul(g, here, matrix_of(g, wanted, n, 0, its_column)),
                             false);
}

/* Takes elements of each row by their indices, (rows, wanted). */
static leati_value take_from(leati_graph *g, const rows *r, leati_value indices, int64_t wanted) {
    leati_value table = leati_reshape(g, r->x, 2, (int64_t[]){r->rows * r->count, 1});
    leati_value begins = leati_linear(g, matrix_of(g, r->rows, wanted, 0, its_row), (float)r->count, 0);
    leati_value flat = leati_reshape(g, leati_add(g, indices, begins), 1, (int64_t[]){r->rows * wanted});
    return leati_reshape(g, leati_gather(g, table, flat), 2, (int64_t[]){r->rows, wanted});
}

/* Returns the rows of the axis that orders a function's argument; fails for an axis that is too long. */
static bool ordered(leati_operands *o, rows *out) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(o->g, x);
    int axis = leati_operand_axis(o, "axis", desc.rank, -1);
    if (axis < 0) return false;
    *out = rows_of(o->g, x, axis);
    if (out->count >= 1 && out->count <= MOST_ORDERED && leati_desc_count(&desc) <= MOST_INDEXED) return true;
    o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP,
                                       "expected an axis of 1 to %d elements, and a batch of at most %lld",
                                       MOST_ORDERED, (long long)MOST_INDEXED);
    return false;
}

enum { VALUES, INDICES };

static void lower_sort(leati_operands *o) {
    rows r;
    if (!ordered(o, &r)) return;
    leati_value order = order_of(o, &r, true, r.count);
    if (o->operation->detail == VALUES) order = take_from(o->g, &r, order, r.count);
    o->outputs[0] = back(o->g, &r, order, r.count);
}

/* Gives the k largest elements of the last axis, and their indices. */
static void lower_top_k(leati_operands *o) {
    rows r;
    int64_t k = leati_operand_int(o, "k", 1);
    o->output_count = 2;
    o->outputs[0] = o->outputs[1] = LEATI_INVALID;
    if (!ordered(o, &r)) return;
    if (k < 1 || k > r.count) {
        o->outputs[0] = o->outputs[1] =
            leati_operand_fail(o, LEAT_ESHAPE, "k: expected 1 to %lld, received %lld", (long long)r.count,
                               (long long)k);
        return;
    }
    leati_value order = order_of(o, &r, false, k);
    o->outputs[0] = back(o->g, &r, take_from(o->g, &r, order, k), k);
    o->outputs[1] = back(o->g, &r, order, k);
}

enum { MEDIAN, QUANTILE, PERCENTILE };

/* Finds the first of the two elements between which a quantile of `count` elements lies, and the share of the second
 * one.  Returns false for more than one quantile, and for other methods than "linear": Keras 3.15 saves their names,
 * but computes "linear". */
static bool find_place(leati_operands *o, int64_t count, int64_t *low, double *share) {
    const char *method = leati_operand_text(o, "method", "linear");
    double q = 0.5;
    if (o->operation->detail != MEDIAN && !leati_operand_number(o, "q", &q)) return false;
    if (o->operation->detail == PERCENTILE) q /= 100;
    const double place = q * (double)(count - 1), whole = floor(place);
    if (!(q >= 0 && q <= 1)) return false;
    *low = (int64_t)whole;
    *share = place - whole;
    return strcmp(method, "linear") == 0;
}

/* Computes the median or another quantile of an axis; it is NaN if an element is. */
static void lower_quantile(leati_operands *o) {
    rows r;
    int64_t low = 0;
    double share = 0;
    if (!leati_operand_json(o, "axis")) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "expected an axis");
        return;
    }
    if (!ordered(o, &r)) return;
    if (!find_place(o, r.count, &low, &share)) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP, "expected one number as q, and the method \"linear\"");
        return;
    }
    const int64_t count = share > 0 ? 2 : 1;
    leati_value order = order_of(o, &r, true, r.count);
    leati_value y = take_from(o->g, &r, leati_slice_axis(o->g, order, 1, low, count), count);
    if (count == 2)
        y = leati_add(o->g, leati_linear(o->g, leati_slice_axis(o->g, y, 1, 0, 1), (float)(1 - share), 0),
                      leati_linear(o->g, leati_slice_axis(o->g, y, 1, 1, 1), (float)share, 0));
    leati_value nan = leati_reduce_last(o->g, LEATI_REDUCE_MAX, leati_operation_is_nan(o->g, r.x), true);
    y = back(o->g, &r, leati_operation_select(o, nan, leati_scalar(o->g, NAN), y), 1);
    leati_desc desc = *leati_graph_desc(o->g, y), out = {.dtype = LEAT_F32};
    for (int i = 0; i < desc.rank; ++i)
        if (i != r.axis) out.shape[out.rank++] = desc.shape[i];
    o->outputs[0] = leati_operand_flag(o, "keepdims") ? y : leati_reshape(o->g, y, out.rank, out.shape);
}

/* Takes elements along an axis: the other axes of x and of the indices are equal, or broadcast. */
static void lower_take_along(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x"), indices = leati_operand(o, "indices");
    leati_desc own = *leati_graph_desc(g, x), at = *leati_graph_desc(g, indices);
    int axis = leati_operand_json(o, "axis") ? leati_operand_axis(o, "axis", own.rank, -1) : -1;
    bool fits = axis >= 0 && own.rank == at.rank && leati_desc_count(&own) <= MOST_INDEXED;
    for (int i = 0; fits && i < own.rank; ++i) {
        if (i == axis) continue;
        fits = own.shape[i] == at.shape[i] || own.shape[i] == 1 || at.shape[i] == 1;
        own.shape[i] = at.shape[i] = own.shape[i] > at.shape[i] ? own.shape[i] : at.shape[i];
    }
    if (!fits) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP,
                               "expected an axis, and indices that differ from x along this axis only");
        return;
    }
    rows r = rows_of(g, leati_broadcast(g, x, own.rank, own.shape), axis);
    rows by = rows_of(g, leati_broadcast(g, indices, at.rank, at.shape), axis);
    leati_value negative = leati_binary_of(g, LEATI_GREATER, leati_scalar(g, 0), by.x);
    leati_value from = leati_add(g, by.x, leati_linear(g, negative, (float)r.count, 0));
    o->outputs[0] = back(g, &by, take_from(g, &r, from, by.count), by.count);
}

/* ---- Places in a matrix ---- */

static float is_lower(int64_t row, int64_t column, int64_t k) {
    return column <= row + k;
}

static float is_upper(int64_t row, int64_t column, int64_t k) {
    return column >= row + k;
}

static float is_diagonal(int64_t row, int64_t column, int64_t k) {
    return column == row + k;
}

static void lower_triangle(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(o->g, x);
    if (desc.rank < 2) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "expected a matrix");
        return;
    }
    o->outputs[0] =
        leati_mul(o->g, x,
                  matrix_of(o->g, desc.shape[desc.rank - 2], desc.shape[desc.rank - 1],
                            leati_operand_int(o, "k", 0), o->operation->detail ? is_upper : is_lower));
}

enum { DIAGONAL, TRACE };

/* Takes the elements (i, i + offset) of two axes, and puts them behind the other axes. */
static void lower_diagonal(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    leati_desc desc = *leati_graph_desc(g, x);
    int a = leati_operand_axis(o, "axis1", desc.rank, 0), b = leati_operand_axis(o, "axis2", desc.rank, 1);
    if (a < 0 || b < 0 || a == b) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "expected two axes");
        return;
    }
    int32_t perm[LEAT_MAX_RANK] = {0};
    int next = 0;
    for (int i = 0; i < desc.rank; ++i)
        if (i != a && i != b) perm[next++] = i;
    perm[next++] = a;
    perm[next++] = b;
    const int64_t height = desc.shape[a], width = desc.shape[b], k = leati_operand_int(o, "offset", 0);
    const int64_t first = k < 0 ? -k : 0, end = height < width - k ? height : width - k;
    leati_value kept = leati_mul(g, leati_transpose(g, x, perm), matrix_of(g, height, width, k, is_diagonal));
    leati_value diagonal = leati_reduce_last(g, LEATI_REDUCE_SUM, kept, false);
    if (o->operation->detail == TRACE)
        o->outputs[0] = leati_reduce_last(g, LEATI_REDUCE_SUM, diagonal, false);
    else
        o->outputs[0] = end > first ? leati_slice_axis(g, diagonal, desc.rank - 2, first, end - first)
                                    : leati_operand_fail(o, LEAT_ESHAPE, "offset: there is no such diagonal");
}

/* ---- Neighbours ---- */

/* Multiplies each element by all before it, in log2(count) products with a moved copy. */
static void lower_cumprod(leati_operands *o) {
    leati_value x = leati_operation_to_dtype(o, leati_operand(o, "x"));
    const leati_desc desc = *leati_graph_desc(o->g, x);
    int axis = leati_operand_axis(o, "axis", desc.rank, LEATI_AXIS_NEEDED);
    if (axis < 0) return;
    for (int64_t step = 1; step < desc.shape[axis]; step *= 2) {
        int64_t before[LEAT_MAX_RANK] = {0}, after[LEAT_MAX_RANK] = {0};
        before[axis] = step;
        leati_value head = leati_slice_axis(o->g, x, axis, 0, desc.shape[axis] - step);
        x = leati_mul(o->g, x, leati_pad(o->g, head, before, after, 1));
    }
    o->outputs[0] = x;
}

/* Subtracts from each element the one before it, n times. */
static void lower_diff(leati_operands *o) {
    leati_value x = leati_operand(o, "a");
    const leati_desc desc = *leati_graph_desc(o->g, x);
    int axis = leati_operand_axis(o, "axis", desc.rank, -1);
    int64_t length = axis < 0 ? 0 : desc.shape[axis], times = leati_operand_int(o, "n", 1);
    if (axis < 0 || times < 0 || times >= length) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "n: expected less than the length of the axis");
        return;
    }
    for (; times > 0; --times, --length)
        x = leati_sub(o->g, leati_slice_axis(o->g, x, axis, 1, length - 1),
                      leati_slice_axis(o->g, x, axis, 0, length - 1));
    o->outputs[0] = x;
}

#define NUMPY "ops.numpy"

const leati_operation leati_ordering_operations[] = {
    {"Sort", NUMPY, "x axis", lower_sort, VALUES},
    {"Argsort", NUMPY, "x axis", lower_sort, INDICES},
    {"TopK", "ops.math", "x k sorted", lower_top_k, 0},
    {"Median", NUMPY, "x axis keepdims", lower_quantile, MEDIAN},
    {"Quantile", NUMPY, "x q axis method keepdims", lower_quantile, QUANTILE},
    {"Percentile", NUMPY, "x q axis method keepdims", lower_quantile, PERCENTILE},
    {"TakeAlongAxis", NUMPY, "x indices axis", lower_take_along, 0},
    {"Tril", NUMPY, "x k", lower_triangle, 0},
    {"Triu", NUMPY, "x k", lower_triangle, 1},
    {"Diagonal", NUMPY, "x offset axis1 axis2", lower_diagonal, DIAGONAL},
    {"Trace", NUMPY, "x offset axis1 axis2", lower_diagonal, TRACE},
    {"Cumprod", NUMPY, "x axis dtype", lower_cumprod, 0},
    {"Diff", NUMPY, "a n axis", lower_diff, 0},
    {.name = NULL},
};
