/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops that choose between values: by conditions, without NaN, by the bin of a number.  Room: nn. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "nn/layers/operations/operations.h"

/* ---- NaN ---- */

/* Replaces NaN and infinite numbers. */
static leati_value with_numbers(leati_operands *o, leati_value x, double nan, double highest, double lowest) {
    leati_graph *g = o->g;
    leati_value above = leati_binary_of(g, LEATI_EQUAL, x, leati_scalar(g, INFINITY));
    leati_value below = leati_binary_of(g, LEATI_EQUAL, x, leati_scalar(g, -INFINITY));
    x = leati_operation_select(o, leati_operation_is_nan(g, x), leati_scalar(g, (float)nan), x);
    x = leati_operation_select(o, above, leati_scalar(g, (float)highest), x);
    return leati_operation_select(o, below, leati_scalar(g, (float)lowest), x);
}

static void lower_nan_to_num(leati_operands *o) {
    o->outputs[0] = with_numbers(o, leati_operand(o, "x"), leati_operand_number_or(o, "nan", 0),
                                 leati_operand_number_or(o, "posinf", (double)FLT_MAX),
                                 leati_operand_number_or(o, "neginf", -(double)FLT_MAX));
}

/* A function that ignores NaN: the same function of numbers in whose place NaN is `fill`. */
typedef struct without_nan {
    const char *plain;
    float fill, none; /* none: the result where all elements are NaN */
} without_nan;

enum { SUM, PROD, MAX, MIN, CUMSUM, CUMPROD, ARGMAX, ARGMIN };

static const without_nan plain_functions[] = {[SUM] = {"Sum", 0, 0},
                                              [PROD] = {"Prod", 1, 1},
                                              [MAX] = {"Max", -INFINITY, NAN},
                                              [MIN] = {"Min", INFINITY, NAN},
                                              [CUMSUM] = {"Cumsum", 0, 0},
                                              [CUMPROD] = {"Cumprod", 1, 1},
                                              [ARGMAX] = {"Argmax", -INFINITY, -1},
                                              [ARGMIN] = {"Argmin", INFINITY, -1}};

/* Lowers a function of the tensor x with the options of o. */
static leati_value call_with(const leati_operands *o, const char *function, leati_value x) {
    leati_value result = LEATI_INVALID;
    leati_operation plain = *leati_operation_find(function);
    json_t *args = json_pack("[{s:i}]", "input", 0);
    leati_operands call = *o;
    plain.name = o->operation->name; /* for messages */
    call.operation = &plain;
    call.args = args;
    call.kwargs = NULL;
    call.inputs = &x;
    call.input_count = 1;
    call.outputs = &result;
    plain.lower(&call);
    json_decref(args);
    return result;
}

static void lower_without_nan(leati_operands *o) {
    const without_nan *f = &plain_functions[o->operation->detail];
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x"), nan = leati_operation_is_nan(g, x);
    const int kind = o->operation->detail;
    if (kind == CUMSUM || kind == CUMPROD) /* as in Keras, infinite numbers become finite */
        x = with_numbers(o, x, (double)f->fill, (double)FLT_MAX, -(double)FLT_MAX);
    else
        x = leati_operation_select(o, nan, leati_scalar(g, f->fill), x);
    o->outputs[0] = call_with(o, f->plain, x);
    if (f->none == f->fill) return;
    const uint32_t axes = leati_operand_axes(o, "axis", leati_graph_desc(g, x)->rank);
    leati_value all = leati_reduce_of(g, LEATI_REDUCE_MIN, nan, axes, leati_operand_flag(o, "keepdims"));
    o->outputs[0] = leati_operation_select(o, all, leati_scalar(g, f->none), o->outputs[0]);
}

enum { MEAN, VARIANCE, DEVIATION };

/* Computes moments of the numbers that are not NaN. */
static void lower_moments_without_nan(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x"), nan = leati_operation_is_nan(g, x),
                counts = leati_linear(g, nan, -1, 1);
    const uint32_t axes = leati_operand_axes(o, "axis", leati_graph_desc(g, x)->rank);
    const bool keeps = leati_operand_flag(o, "keepdims"), mean = o->operation->detail == MEAN;
    x = leati_operation_select(o, nan, leati_scalar(g, 0), x);
    leati_value y = leati_reduce_of(g, LEATI_REDUCE_SUM, x, axes, mean ? keeps : true);
    y = leati_div(g, y, leati_reduce_of(g, LEATI_REDUCE_SUM, counts, axes, mean ? keeps : true));
    if (!mean) {
        leati_value squares = leati_function_of(g, leati_mul(g, leati_sub(g, x, y), counts), LEATI_FN_SQUARE);
        y = leati_reduce_of(g, LEATI_REDUCE_SUM, squares, axes, keeps);
        y = leati_div(g, y, leati_reduce_of(g, LEATI_REDUCE_SUM, counts, axes, keeps));
    }
    o->outputs[0] = o->operation->detail == DEVIATION ? leati_function_of(g, y, LEATI_FN_SQRT) : y;
}

/* Computes the larger or smaller operand, or the other one where one is NaN. */
static void lower_extreme(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value a = leati_operand(o, "x1"), b = leati_operand(o, "x2");
    leati_value left = leati_operation_select(o, leati_operation_is_nan(g, a), b, a);
    leati_value right = leati_operation_select(o, leati_operation_is_nan(g, b), a, b);
    o->outputs[0] = leati_binary_of(g, o->operation->detail == MAX ? LEATI_MAX : LEATI_MIN, left, right);
}

/* ---- Conditions ---- */

/* Takes the choice of the first condition that holds. */
static void lower_select(leati_operands *o) {
    leati_value conditions[LEATI_MAX_CONCAT], choices[LEATI_MAX_CONCAT];
    int count = leati_operand_list(o, "condlist", conditions, LEATI_MAX_CONCAT);
    if (leati_operand_list(o, "choicelist", choices, LEATI_MAX_CONCAT) != count) {
        o->outputs[0] = leati_operand_fail(o, LEAT_EINVAL, "expected a choice for each condition");
        return;
    }
    o->outputs[0] = leati_operand_or(o, "default", 0);
    for (int i = count - 1; i >= 0; --i) {
        leati_value holds = leati_operation_truth(o->g, conditions[i]);
        o->outputs[0] = leati_operation_select(o, holds, choices[i], o->outputs[0]);
    }
}

/* Tells by 1 where two numbers are nearly equal.  As in Keras on TensorFlow, equal infinities are not. */
static void lower_isclose(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value a = leati_operand(o, "x1"), b = leati_operand(o, "x2");
    leati_value distance = leati_function_of(g, leati_sub(g, a, b), LEATI_FN_ABS);
    leati_value most =
        leati_mul(g, leati_function_of(g, b, LEATI_FN_ABS), leati_operand_or(o, "rtol", 1e-5f));
    most = leati_add(g, most, leati_operand_or(o, "atol", 1e-8f));
    leati_value close = leati_binary_of(g, LEATI_GREATER_EQUAL, most, distance);
    if (leati_operand_flag(o, "equal_nan"))
        close = leati_binary_of(g, LEATI_MAX, close,
                                leati_mul(g, leati_operation_is_nan(g, a), leati_operation_is_nan(g, b)));
    o->outputs[0] = close;
}

/* ---- Comparisons with all elements of a constant ---- */

enum { IS_IN, NOT_BELOW, ABOVE };

/* Tells by 1 whether each element of x is in the vector or list `with`, or counts the elements that it is above, or not
 * below.  NaN is not below any number. */
static leati_value compare_all(leati_operands *o, leati_value x, leati_value with, int kind) {
    leati_graph *g = o->g;
    const leati_desc desc = *leati_graph_desc(g, x), list = *leati_graph_desc(g, with);
    const int64_t count = leati_desc_count(&list);
    if (desc.rank >= LEAT_MAX_RANK || count < 1)
        return leati_operand_fail(o, LEAT_ENOTSUP, "expected at most %d axes, and a list that is not empty",
                                  LEAT_MAX_RANK - 1);
    x = leati_expand_last(g, x);
    with = leati_reshape(g, with, 1, &count);
    leati_value each = kind == IS_IN   ? leati_binary_of(g, LEATI_EQUAL, x, with)
                       : kind == ABOVE ? leati_binary_of(g, LEATI_GREATER, x, with)
                                       : leati_linear(g, leati_binary_of(g, LEATI_GREATER, with, x), -1, 1);
    return leati_reduce_last(g, kind == IS_IN ? LEATI_REDUCE_MAX : LEATI_REDUCE_SUM, each, false);
}

static void lower_isin(leati_operands *o) {
    leati_value y = compare_all(o, leati_operand(o, "x1"), leati_operand_without_tensor(o, "x2"), IS_IN);
    o->outputs[0] = leati_operand_flag(o, "invert") ? leati_linear(o->g, y, -1, 1) : y;
}

/* Counts the bins that begin at x or below. */
static void lower_digitize(leati_operands *o) {
    o->outputs[0] = compare_all(o, leati_operand(o, "x"), leati_operand_without_tensor(o, "bins"), NOT_BELOW);
}

static void lower_searchsorted(leati_operands *o) {
    static const char *const sides[] = {"left", "right", NULL};
    const bool right = leati_operand_choice(o, "side", sides) == 1;
    leati_value list = leati_operand_without_tensor(o, "sorted_sequence");
    o->outputs[0] = leati_graph_desc(o->g, list)->rank == 1
                        ? compare_all(o, leati_operand(o, "values"), list, right ? NOT_BELOW : ABOVE)
                        : leati_operand_fail(o, LEAT_ENOTSUP, "sorted_sequence: expected one axis");
}

/* ---- Single numbers ---- */

/* Tells by 1 where a number is negative; -0 is. */
static void lower_signbit(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x"), zero = leati_scalar(g, 0);
    const leati_eltwise inverse = {.function = LEATI_FN_POW, .a = -1};
    o->outputs[0] = leati_binary_of(g, LEATI_MAX, leati_binary_of(g, LEATI_GREATER, zero, x),
                                    leati_binary_of(g, LEATI_GREATER, zero, leati_eltwise_of(g, x, inverse)));
}

/* sin(pi x) / (pi x), and 1 at 0, where its gradient is 0 */
static void lower_sinc(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_linear(g, leati_operand(o, "x"), (float)LEATI_PI, 0);
    leati_value zero = leati_binary_of(g, LEATI_EQUAL, x, leati_scalar(g, 0));
    leati_value y = leati_div(g, leati_function_of(g, x, LEATI_FN_SIN), leati_add(g, x, zero));
    y = leati_mul(g, y, leati_linear(g, zero, -1, 1));
    o->outputs[0] = leati_add(g, y, zero);
}

enum { ZEROS, ONES, ANGLE };

/* Functions of complex numbers, of real ones. */
static void lower_real(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(g, x);
    if (o->operation->detail == ANGLE)
        o->outputs[0] =
            leati_linear(g, leati_binary_of(g, LEATI_GREATER, leati_scalar(g, 0), x), (float)LEATI_PI, 0);
    else
        o->outputs[0] = leati_full(g, desc.rank, desc.shape, o->operation->detail == ONES);
}

/* Limits numbers by those of a type, and truncates them for an integer type; bool is 1 where they are not 0. */
static void lower_saturate(leati_operands *o) {
    static const struct {
        const char *name;
        float lowest, highest;
        leat_dtype whole; /* integers of this type hold all numbers; F32: numbers are not truncated */
    } types[] = {{"bool", 0, 1, LEAT_F32},
                 {"int8", -128, 127, LEAT_I64},
                 {"uint8", 0, 255, LEAT_I64},
                 {"int16", -32768, 32767, LEAT_I64},
                 {"uint16", 0, 65535, LEAT_I64},
                 {"int32", -0x1p31f, 0x1p31f, LEAT_I64},
                 {"uint32", 0, 0x1p32f, LEAT_I64},
                 {"int64", -0x1p63f, 0x1p63f, LEAT_I64},
                 {"uint64", 0, 0x1p64f, LEAT_U64},
                 {"float16", -65504, 65504, LEAT_F32},
                 {"bfloat16", -0x1.fep127f, 0x1.fep127f, LEAT_F32},
                 {"float32", -FLT_MAX, FLT_MAX, LEAT_F32},
                 {"float64", -FLT_MAX, FLT_MAX, LEAT_F32}};
    enum { type_count = sizeof types / sizeof types[0] };
    const char *dtype = leati_operand_text(o, "dtype", "float32");
    int i = 0;
    while (i < type_count && strcmp(types[i].name, dtype) != 0) ++i;
    if (i == type_count) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "dtype: expected a type of real numbers");
        return;
    }
    leati_value x = leati_clip(o->g, leati_operand(o, "x"), types[i].lowest, types[i].highest);
    if (types[i].whole != LEAT_F32) x = leati_cast(o->g, leati_cast(o->g, x, types[i].whole, 1), LEAT_F32, 1);
    o->outputs[0] = strcmp(dtype, "bool") == 0 ? leati_operation_truth(o->g, x) : x;
}

/* ---- Axes ---- */

/* The largest element of an axis less the smallest one. */
static void lower_ptp(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    const uint32_t axes = leati_operand_axes(o, "axis", leati_graph_desc(o->g, x)->rank);
    const bool keeps = leati_operand_flag(o, "keepdims");
    o->outputs[0] = leati_sub(o->g, leati_reduce_of(o->g, LEATI_REDUCE_MAX, x, axes, keeps),
                              leati_reduce_of(o->g, LEATI_REDUCE_MIN, x, axes, keeps));
}

/* The integral by trapezoids with equal distances. */
static void lower_trapezoid(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value y = leati_operand(o, "y");
    const leati_desc desc = *leati_graph_desc(g, y);
    int axis = leati_operand_axis(o, "axis", desc.rank, -1);
    const double dx = leati_operand_number_or(o, "dx", 1);
    if (axis < 0 || leati_operand_json(o, "x") || desc.shape[axis] < 1) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "expected an axis, and dx instead of x");
        return;
    }
    const uint32_t axes = UINT32_C(1) << axis;
    leati_value all = leati_reduce_of(g, LEATI_REDUCE_SUM, y, axes, false);
    leati_value ends = leati_add(g, leati_slice_axis(g, y, axis, 0, 1),
                                 leati_slice_axis(g, y, axis, desc.shape[axis] - 1, 1));
    ends = leati_reduce_of(g, LEATI_REDUCE_SUM, ends, axes, false);
    o->outputs[0] = leati_linear(g, leati_sub(g, all, leati_linear(g, ends, 0.5f, 0)), (float)dx, 0);
}

/* Computes `num` numbers from start to stop along a new axis.  Integers are those below the numbers between two
 * integers. */
static void lower_linspace(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value from = leati_operation_to_dtype(o, leati_operand(o, "start")),
                to = leati_operation_to_dtype(o, leati_operand(o, "stop")), parts[LEATI_MAX_CONCAT];
    const bool integer = strstr(leati_operand_text(o, "dtype", ""), "int");
    const int64_t count = leati_operand_int(o, "num", 50);
    leati_desc desc = *leati_graph_desc(g, leati_add(g, from, to));
    int axis = desc.rank < LEAT_MAX_RANK ? leati_operand_axis(o, "axis", desc.rank + 1, 0) : -1;
    if (axis < 0 || count < 1 || count > LEATI_MAX_CONCAT || leati_operand_flag(o, "retstep")) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP, "expected 1 to %d numbers, and no retstep", LEATI_MAX_CONCAT);
        return;
    }
    const bool ends = leati_operand_number_or(o, "endpoint", 1) != 0;
    const int64_t steps = !ends ? count : count > 1 ? count - 1 : 1;
    for (int i = desc.rank++; i > axis; --i) desc.shape[i] = desc.shape[i - 1];
    desc.shape[axis] = 1;
    for (int64_t i = 0; i < count; ++i) {
        const double whole = integer ? (double)steps : 1;
        const float share = (float)((double)i * whole / (double)steps), rest = (float)(whole - (double)share);
        leati_value y = leati_add(g, leati_linear(g, from, rest, 0), leati_linear(g, to, share, 0));
        if (integer) y = leati_operation_floor(g, leati_div(g, y, leati_scalar(g, (float)whole)));
        parts[i] = leati_reshape(g, y, desc.rank, desc.shape);
    }
    o->outputs[0] = count > 1 ? leati_concat(g, (int)count, parts, axis) : parts[0];
}

#define NUMPY "ops.numpy"

const leati_operation leati_choice_operations[] = {
    {"NanToNum", NUMPY, "x nan posinf neginf", lower_nan_to_num, 0},
    {"Nansum", NUMPY, "x axis keepdims", lower_without_nan, SUM},
    {"Nanprod", NUMPY, "x axis keepdims", lower_without_nan, PROD},
    {"Nanmax", NUMPY, "x axis keepdims", lower_without_nan, MAX},
    {"Nanmin", NUMPY, "x axis keepdims", lower_without_nan, MIN},
    {"Nancumsum", NUMPY, "x axis dtype", lower_without_nan, CUMSUM},
    {"Nancumprod", NUMPY, "x axis dtype", lower_without_nan, CUMPROD},
    {"Nanargmax", NUMPY, "x axis keepdims", lower_without_nan, ARGMAX},
    {"Nanargmin", NUMPY, "x axis keepdims", lower_without_nan, ARGMIN},
    {"Nanmean", NUMPY, "x axis keepdims", lower_moments_without_nan, MEAN},
    {"Nanvar", NUMPY, "x axis keepdims", lower_moments_without_nan, VARIANCE},
    {"Nanstd", NUMPY, "x axis keepdims", lower_moments_without_nan, DEVIATION},
    {"Fmax", NUMPY, "x1 x2", lower_extreme, MAX},
    {"Fmin", NUMPY, "x1 x2", lower_extreme, MIN},
    {"Select", NUMPY, "condlist choicelist default", lower_select, 0},
    {"Isclose", NUMPY, "x1 x2 rtol atol equal_nan", lower_isclose, 0},
    {"IsIn", NUMPY, "x1 x2 assume_unique invert", lower_isin, 0},
    {"Digitize", NUMPY, "x bins", lower_digitize, 0},
    {"SearchSorted", NUMPY, "sorted_sequence values side", lower_searchsorted, 0},
    {"Signbit", NUMPY, "x", lower_signbit, 0},
    {"Sinc", NUMPY, "x", lower_sinc, 0},
    {"Imag", NUMPY, "x", lower_real, ZEROS},
    {"EmptyLike", NUMPY, "x dtype", lower_real, ZEROS},
    {"Isreal", NUMPY, "x", lower_real, ONES},
    {"Angle", NUMPY, "x", lower_real, ANGLE},
    {"SaturateCast", "ops.core", "x dtype", lower_saturate, 0},
    {"Ptp", NUMPY, "x axis keepdims", lower_ptp, 0},
    {"Trapezoid", NUMPY, "y x dx axis", lower_trapezoid, 0},
    {"Linspace", NUMPY, "start stop num endpoint retstep dtype axis", lower_linspace, 0},
    {.name = NULL},
};
