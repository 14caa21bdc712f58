/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops that compute each element by itself: arithmetic, comparisons, logic, casts.  Room: nn. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "nn/layers/operations/operations.h"

/* ---- Functions of one tensor ---- */

static const leati_eltwise functions[] = {
    {LEATI_FN_ABS, 0, 0, 0},
    {LEATI_FN_EXP, 0, 0, 0},
    {LEATI_FN_LOG, 0, 0, 0},
    {LEATI_FN_SQRT, 0, 0, 0},
    {LEATI_FN_SQUARE, 0, 0, 0},
    {LEATI_FN_TANH, 0, 0, 0},
    {LEATI_FN_LINEAR, -1, 0, 0},
    {LEATI_FN_POW, -0.5f, 0, 0},
    {LEATI_FN_POW, -1, 0, 0},
    {LEATI_FN_LINEAR, -1, 1, 0},
    {LEATI_FN_SIN, 0, 0, 0},
    {LEATI_FN_COS, 0, 0, 0},
    {LEATI_FN_TAN, 0, 0, 0},
    {LEATI_FN_ASIN, 0, 0, 0},
    {LEATI_FN_ACOS, 0, 0, 0},
    {LEATI_FN_ATAN, 0, 0, 0},
    {LEATI_FN_SINH, 0, 0, 0},
    {LEATI_FN_COSH, 0, 0, 0},
    {LEATI_FN_ASINH, 0, 0, 0},
    {LEATI_FN_ACOSH, 0, 0, 0},
    {LEATI_FN_ATANH, 0, 0, 0},
    {LEATI_FN_ERF, 0, 0, 0},
    {LEATI_FN_LOG1P, 0, 0, 0},
    {LEATI_FN_EXPM1, 0, 0, 0},
    {LEATI_FN_LINEAR, (float)(LEATI_PI / 180), 0, 0},
    {LEATI_FN_LINEAR, (float)(180 / LEATI_PI), 0, 0},
};
enum {
    ABS,
    EXP,
    LOG,
    SQRT,
    SQUARE,
    TANH,
    NEGATIVE,
    RSQRT,
    RECIPROCAL,
    NOT,
    SIN,
    COS,
    TAN,
    ARCSIN,
    ARCCOS,
    ARCTAN,
    SINH,
    COSH,
    ARCSINH,
    ARCCOSH,
    ARCTANH,
    ERF,
    LOG1P,
    EXPM1,
    RADIANS,
    DEGREES
};

static void lower_function(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    if (o->operation->detail == NOT) x = leati_binary_of(o->g, LEATI_EQUAL, x, leati_scalar(o->g, 0));
    o->outputs[0] =
        o->operation->detail == NOT ? x : leati_eltwise_of(o->g, x, functions[o->operation->detail]);
}

enum { LOG2, LOG10, EXP2 };

static void lower_logarithm(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    if (o->operation->detail == EXP2) {
        o->outputs[0] = leati_function_of(g, leati_linear(g, x, 0.69314718055994531f, 0), LEATI_FN_EXP);
        return;
    }
    float factor = o->operation->detail == LOG2 ? 1.4426950408889634f : 0.43429448190325182f;
    o->outputs[0] = leati_linear(g, leati_function_of(g, x, LEATI_FN_LOG), factor, 0);
}

static void lower_erfc(leati_operands *o) {
    o->outputs[0] = leati_linear(o->g, leati_function_of(o->g, leati_operand(o, "x"), LEATI_FN_ERF), -1, 1);
}

leati_value leati_operation_sign(leati_graph *g, leati_value x) {
    leati_value zero = leati_scalar(g, 0);
    return leati_sub(g, leati_binary_of(g, LEATI_GREATER, x, zero),
                     leati_binary_of(g, LEATI_GREATER, zero, x));
}

/* Computes the cube root, as TensorFlow does: a power of |x| with the sign of x. */
static void lower_cbrt(leati_operands *o) {
    leati_graph *g = o->g;
    const leati_eltwise root = {.function = LEATI_FN_POW, .a = 1.0f / 3};
    leati_value x = leati_operand(o, "x");
    o->outputs[0] = leati_mul(g, leati_operation_sign(g, x),
                              leati_eltwise_of(g, leati_function_of(g, x, LEATI_FN_ABS), root));
}

leati_value leati_operation_is_nan(leati_graph *g, leati_value x) {
    return leati_linear(g, leati_binary_of(g, LEATI_EQUAL, x, x), -1, 1);
}

leati_value leati_operation_truth(leati_graph *g, leati_value x) {
    return leati_linear(g, leati_binary_of(g, LEATI_EQUAL, x, leati_scalar(g, 0)), -1, 1);
}

enum { IS_NAN, IS_INFINITE, IS_FINITE, IS_HIGHEST, IS_LOWEST };

/* Tells numbers of one kind by 1, others by 0. */
static void lower_kind(leati_operands *o) {
    leati_graph *g = o->g;
    const int kind = o->operation->detail;
    leati_value x = leati_operand(o, "x");
    if (kind == IS_INFINITE || kind == IS_FINITE) x = leati_function_of(g, x, LEATI_FN_ABS);
    if (kind == IS_NAN)
        o->outputs[0] = leati_operation_is_nan(g, x);
    else if (kind == IS_FINITE)
        o->outputs[0] = leati_binary_of(g, LEATI_GREATER_EQUAL, leati_scalar(g, FLT_MAX), x);
    else
        o->outputs[0] =
            leati_binary_of(g, LEATI_EQUAL, x, leati_scalar(g, kind == IS_LOWEST ? -INFINITY : INFINITY));
}

/* Returns the integer part of each element, from -2^63 to 2^63; NaN becomes 0.  No gradient flows through it. */
static leati_value truncated(leati_graph *g, leati_value x) {
    return leati_cast(g, leati_cast(g, x, LEAT_I64, 1), LEAT_F32, 1);
}

static leati_value floor_small(leati_graph *g, leati_value x) {
    leati_value whole = truncated(g, x);
    return leati_sub(g, whole, leati_binary_of(g, LEATI_GREATER, whole, x));
}

static leati_value round_small(leati_graph *g, leati_value x) {
    leati_value low = floor_small(g, x), rest = leati_sub(g, x, low);
    leati_value odd = leati_sub(g, low, leati_linear(g, floor_small(g, leati_linear(g, low, 0.5f, 0)), 2, 0));
    leati_value above = leati_binary_of(g, LEATI_GREATER, rest, leati_scalar(g, 0.5f));
    leati_value half = leati_binary_of(g, LEATI_EQUAL, rest, leati_scalar(g, 0.5f));
    leati_value up = leati_add(g, above, leati_mul(g, half, odd));
    return leati_add(g, low, up);
}

/* Rounds x by a function of numbers up to 2^63; larger ones, infinite ones and NaN stay.  A cast from f64 has no
 * gradient. */
static leati_value rounded(leati_graph *g, leati_value x, leati_value (*by)(leati_graph *, leati_value)) {
    leati_value near = leati_clip(g, x, -0x1p63f, 0x1p63f);
    leati_value far = leati_cast(g, leati_cast(g, leati_sub(g, x, near), LEAT_F64, 1), LEAT_F32, 1);
    return leati_add(g, by(g, near), far);
}

leati_value leati_operation_floor(leati_graph *g, leati_value x) {
    return rounded(g, x, floor_small);
}

leati_value leati_operation_round(leati_graph *g, leati_value x) {
    return rounded(g, x, round_small);
}

enum { FLOOR, CEIL, ROUND, SIGN, TRUNC };

static void lower_rounding(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    switch (o->operation->detail) {
    case FLOOR: o->outputs[0] = leati_operation_floor(g, x); return;
    case CEIL:
        o->outputs[0] = leati_linear(g, leati_operation_floor(g, leati_linear(g, x, -1, 0)), -1, 0);
        return;
    case TRUNC: o->outputs[0] = rounded(g, x, truncated); return;
    case ROUND: {
        const float scale = (float)pow(10, (double)leati_operand_int(o, "decimals", 0));
        x = leati_operation_round(g, scale == 1 ? x : leati_linear(g, x, scale, 0));
        o->outputs[0] = scale == 1 ? x : leati_div(g, x, leati_scalar(g, scale));
        return;
    }
    default: o->outputs[0] = leati_operation_sign(g, x);
    }
}

/* ---- Functions of two operands ---- */

enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM };

/* Returns true and the linear function if one operand of the function is a number. */
static bool is_linear(const leati_operands *o, const char **tensor, float *a, float *b) {
    double number = 0;
    bool first = leati_operand_number(o, "x1", &number);
    if (!first && !leati_operand_number(o, "x2", &number)) return false;
    *tensor = first ? "x2" : "x1";
    *a = 1;
    *b = 0;
    switch (o->operation->detail) {
    case ADD: *b = (float)number; return true;
    case SUBTRACT:
        *a = first ? -1 : 1;
        *b = (float)(first ? number : -number);
        return true;
    case MULTIPLY: *a = (float)number; return true;
    case DIVIDE: *a = (float)(1 / number); return !first && number != 0;
    default: return false;
    }
}

static void lower_arithmetic(leati_operands *o) {
    static const leati_binary kinds[] = {LEATI_ADD, LEATI_SUB, LEATI_MUL, LEATI_DIV, LEATI_MAX, LEATI_MIN};
    const char *tensor;
    float a, b;
    if (is_linear(o, &tensor, &a, &b)) {
        o->outputs[0] = leati_linear(o->g, leati_operand(o, tensor), a, b);
        return;
    }
    leati_value x1 = leati_operand(o, "x1"), x2 = leati_operand(o, "x2");
    o->outputs[0] = leati_binary_of(o->g, kinds[o->operation->detail], x1, x2);
}

enum { HYPOT, ANGLE, HEAVISIDE, DIVIDE_NO_NAN };

static void lower_pair(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value a = leati_operand(o, "x1"), b = leati_operand(o, "x2"), zero = leati_scalar(g, 0);
    switch (o->operation->detail) {
    case HYPOT:
        a = leati_add(g, leati_function_of(g, a, LEATI_FN_SQUARE), leati_function_of(g, b, LEATI_FN_SQUARE));
        o->outputs[0] = leati_function_of(g, a, LEATI_FN_SQRT);
        return;
    case ANGLE: o->outputs[0] = leati_angle_of(g, a, b); return;
    case HEAVISIDE:
        o->outputs[0] = leati_add(g, leati_binary_of(g, LEATI_GREATER, a, zero),
                                  leati_mul(g, leati_binary_of(g, LEATI_EQUAL, a, zero), b));
        return;
    default: { /* a / b, and 0 where b is 0 */
        leati_value none = leati_binary_of(g, LEATI_EQUAL, b, zero);
        leati_value quotient = leati_div(g, a, leati_add(g, b, none));
        o->outputs[0] = leati_mul(g, quotient, leati_linear(g, none, -1, 1));
    }
    }
}

static void lower_floor_division(leati_operands *o) {
    o->outputs[0] =
        leati_operation_floor(o->g, leati_div(o->g, leati_operand(o, "x1"), leati_operand(o, "x2")));
}

enum { EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL };

/* Comparisons give 1 or 0. */
static void lower_comparison(leati_operands *o) {
    static const leati_binary kinds[] = {LEATI_EQUAL,         LEATI_EQUAL,   LEATI_GREATER,
                                         LEATI_GREATER_EQUAL, LEATI_GREATER, LEATI_GREATER_EQUAL};
    int detail = o->operation->detail;
    leati_value x1 = leati_operand(o, "x1"), x2 = leati_operand(o, "x2");
    bool swaps = detail == LESS || detail == LESS_EQUAL;
    leati_value y = leati_binary_of(o->g, kinds[detail], swaps ? x2 : x1, swaps ? x1 : x2);
    o->outputs[0] = detail == NOT_EQUAL ? leati_linear(o->g, y, -1, 1) : y;
}

enum { AND, OR, XOR };

static void lower_logic(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value a = leati_operation_truth(g, leati_operand(o, "x1")),
                b = leati_operation_truth(g, leati_operand(o, "x2"));
    switch (o->operation->detail) {
    case AND: o->outputs[0] = leati_mul(g, a, b); return;
    case OR: o->outputs[0] = leati_binary_of(g, LEATI_MAX, a, b); return;
    default: o->outputs[0] = leati_linear(g, leati_binary_of(g, LEATI_EQUAL, a, b), -1, 1);
    }
}

static void lower_clip(leati_operands *o) {
    double low, high;
    if (!leati_operand_number(o, "x_min", &low) || !leati_operand_number(o, "x_max", &high)) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "expected numbers as x_min and x_max");
        return;
    }
    o->outputs[0] = leati_clip(o->g, leati_operand(o, "x"), (float)low, (float)high);
}

/* ---- where ---- */

/* Returns `x` broadcast to the shape of `like`. */
static leati_value spread(leati_graph *g, leati_value x, const leati_desc *like) {
    const leati_desc *desc = leati_graph_desc(g, x);
    if (leati_desc_same_shape(desc, like)) return x;
    return leati_broadcast(g, x, like->rank, like->shape);
}

/* Returns 0, 1, ..., count - 1. */
static leati_value numbers_up_to(leati_graph *g, int64_t count) {
    float *values = leati_calloc((size_t)count + 1, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for %lld numbers", (long long)count);
    for (int64_t i = 0; i < count; ++i) values[i] = (float)i;
    leati_desc desc = leati_desc_make(LEAT_F32, 1, &count);
    leati_value out = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return out;
}

/* The largest number of elements whose indices in both branches f32 represents exactly. */
#define MOST_SELECTED (INT64_C(1) << 23)

/* Selects elements of x1 where the condition is 1, by their indices in [x2, x1]: a product with the condition makes
 * NaN of what is infinite in the branch that is not selected. */
static leati_value select_from(leati_graph *g, leati_value condition, leati_value x1, leati_value x2) {
    const leati_desc desc = *leati_graph_desc(g, condition);
    int64_t count = leati_desc_count(&desc);
    leati_value branches[] = {leati_reshape(g, x2, 2, (int64_t[]){count, 1}),
                              leati_reshape(g, x1, 2, (int64_t[]){count, 1})};
    leati_value table = leati_concat(g, 2, branches, 0);
    leati_value flat = leati_reshape(g, condition, 1, &count);
    leati_value indices = leati_add(g, leati_linear(g, flat, (float)count, 0), numbers_up_to(g, count));
    return leati_reshape(g, leati_gather(g, table, indices), desc.rank, desc.shape);
}

leati_value leati_operation_select(leati_operands *o, leati_value condition, leati_value x1, leati_value x2) {
    leati_graph *g = o->g;
    leati_value all = leati_add(g, leati_add(g, condition, x1), x2); /* dead: only its shape is used */
    const leati_desc like = *leati_graph_desc(g, all);
    if (leati_desc_count(&like) > MOST_SELECTED)
        return leati_operand_fail(o, LEAT_ENOTSUP,
                                  "expected at most %lld elements in a batch; use a smaller batch",
                                  (long long)MOST_SELECTED);
    return select_from(g, spread(g, condition, &like), spread(g, x1, &like), spread(g, x2, &like));
}

static void lower_where(leati_operands *o) {
    leati_graph *g = o->g;
    double a, b;
    leati_value condition = leati_operation_truth(g, leati_operand(o, "condition"));
    leati_value x1 = leati_operand(o, "x1"), x2 = leati_operand(o, "x2");
    if (leati_operand_number(o, "x1", &a) && leati_operand_number(o, "x2", &b) && isfinite(a - b))
        o->outputs[0] = leati_linear(g, condition, (float)(a - b), (float)b);
    else
        o->outputs[0] = leati_operation_select(o, condition, x1, x2);
}

/* ---- Types and constants ---- */

/* All values are f32: a cast to an integer type truncates, a cast to bool compares with 0. */
leati_value leati_operation_to_dtype(const leati_operands *o, leati_value x) {
    const char *dtype = leati_operand_text(o, "dtype", "float32");
    if (strcmp(dtype, "bool") == 0) return leati_operation_truth(o->g, x);
    return strstr(dtype, "int") ? truncated(o->g, x) : x;
}

static void lower_cast(leati_operands *o) {
    o->outputs[0] = leati_operation_to_dtype(o, leati_operand(o, "x"));
}

/* Makes a tensor of the shape of x that is filled with one number. */
static void lower_full(leati_operands *o) {
    double value = o->operation->detail;
    const leati_desc desc = *leati_graph_desc(o->g, leati_operand(o, "x"));
    if (o->operation->detail >= 0 || leati_operand_number(o, "fill_value", &value)) {
        leati_value number = leati_operation_to_dtype(o, leati_scalar(o->g, (float)value));
        o->outputs[0] = leati_broadcast(o->g, number, desc.rank, desc.shape);
    } else {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "fill_value: expected a number");
    }
}

static void lower_identity(leati_operands *o) {
    o->outputs[0] = leati_operand(o, "x");
}

/* Returns x without a gradient, which does not flow through a cast from f64. */
static void lower_stop(leati_operands *o) {
    leati_value x = leati_cast(o->g, leati_operand(o, "variable"), LEAT_F64, 1);
    o->outputs[0] = leati_cast(o->g, x, LEAT_F32, 1);
}

#define NUMPY "ops.numpy"

const leati_operation leati_elementwise_operations[] = {
    {"Abs", NUMPY, "x", lower_function, ABS},
    {"Absolute", NUMPY, "x", lower_function, ABS},
    {"Exp", NUMPY, "x", lower_function, EXP},
    {"Log", NUMPY, "x", lower_function, LOG},
    {"Sqrt", NUMPY, "x", lower_function, SQRT},
    {"Square", NUMPY, "x", lower_function, SQUARE},
    {"Tanh", "ops.numpy", "x", lower_function, TANH},
    {"Negative", NUMPY, "x", lower_function, NEGATIVE},
    {"Rsqrt", "ops.math", "x", lower_function, RSQRT},
    {"Reciprocal", NUMPY, "x", lower_function, RECIPROCAL},
    {"LogicalNot", NUMPY, "x", lower_function, NOT},
    {"Log2", NUMPY, "x", lower_logarithm, LOG2},
    {"Log10", NUMPY, "x", lower_logarithm, LOG10},
    {"Log1p", NUMPY, "x", lower_function, LOG1P},
    {"Expm1", NUMPY, "x", lower_function, EXPM1},
    {"Exp2", NUMPY, "x", lower_logarithm, EXP2},
    {"Sin", NUMPY, "x", lower_function, SIN},
    {"Cos", NUMPY, "x", lower_function, COS},
    {"Tan", NUMPY, "x", lower_function, TAN},
    {"Arcsin", NUMPY, "x", lower_function, ARCSIN},
    {"Arccos", NUMPY, "x", lower_function, ARCCOS},
    {"Arctan", NUMPY, "x", lower_function, ARCTAN},
    {"Sinh", NUMPY, "x", lower_function, SINH},
    {"Cosh", NUMPY, "x", lower_function, COSH},
    {"Arcsinh", NUMPY, "x", lower_function, ARCSINH},
    {"Arccosh", NUMPY, "x", lower_function, ARCCOSH},
    {"Arctanh", NUMPY, "x", lower_function, ARCTANH},
    {"Erf", "ops.math", "x", lower_function, ERF},
    {"Erfc", "ops.math", "x", lower_erfc, 0},
    {"Fabs", NUMPY, "x", lower_function, ABS},
    {"Deg2rad", NUMPY, "x", lower_function, RADIANS},
    {"Rad2deg", NUMPY, "x", lower_function, DEGREES},
    {"Cbrt", NUMPY, "x", lower_cbrt, 0},
    {"Isnan", NUMPY, "x", lower_kind, IS_NAN},
    {"Isinf", NUMPY, "x", lower_kind, IS_INFINITE},
    {"Isfinite", NUMPY, "x", lower_kind, IS_FINITE},
    {"Isposinf", NUMPY, "x", lower_kind, IS_HIGHEST},
    {"Isneginf", NUMPY, "x", lower_kind, IS_LOWEST},
    {"Floor", NUMPY, "x", lower_rounding, FLOOR},
    {"Ceil", NUMPY, "x", lower_rounding, CEIL},
    {"Round", NUMPY, "x decimals", lower_rounding, ROUND},
    {"Sign", NUMPY, "x", lower_rounding, SIGN},
    {"Trunc", NUMPY, "x", lower_rounding, TRUNC},
    {"Add", NUMPY, "x1 x2", lower_arithmetic, ADD},
    {"Subtract", NUMPY, "x1 x2", lower_arithmetic, SUBTRACT},
    {"Multiply", NUMPY, "x1 x2", lower_arithmetic, MULTIPLY},
    {"Divide", NUMPY, "x1 x2", lower_arithmetic, DIVIDE},
    {"TrueDivide", NUMPY, "x1 x2", lower_arithmetic, DIVIDE},
    {"Maximum", NUMPY, "x1 x2", lower_arithmetic, MAXIMUM},
    {"Minimum", NUMPY, "x1 x2", lower_arithmetic, MINIMUM},
    {"Hypot", NUMPY, "x1 x2", lower_pair, HYPOT},
    {"Arctan2", NUMPY, "x1 x2", lower_pair, ANGLE},
    {"Heaviside", NUMPY, "x1 x2", lower_pair, HEAVISIDE},
    {"DivideNoNan", NUMPY, "x1 x2", lower_pair, DIVIDE_NO_NAN},
    {"FloorDivide", NUMPY, "x1 x2", lower_floor_division, 0},
    {"Equal", NUMPY, "x1 x2", lower_comparison, EQUAL},
    {"NotEqual", NUMPY, "x1 x2", lower_comparison, NOT_EQUAL},
    {"Greater", NUMPY, "x1 x2", lower_comparison, GREATER},
    {"GreaterEqual", NUMPY, "x1 x2", lower_comparison, GREATER_EQUAL},
    {"Less", NUMPY, "x1 x2", lower_comparison, LESS},
    {"LessEqual", NUMPY, "x1 x2", lower_comparison, LESS_EQUAL},
    {"LogicalAnd", NUMPY, "x1 x2", lower_logic, AND},
    {"LogicalOr", NUMPY, "x1 x2", lower_logic, OR},
    {"LogicalXor", NUMPY, "x1 x2", lower_logic, XOR},
    {"Clip", NUMPY, "x x_min x_max", lower_clip, 0},
    {"Where", NUMPY, "condition x1 x2", lower_where, 0},
    {"Cast", "ops.core", "x dtype", lower_cast, 0},
    {"ZerosLike", NUMPY, "x dtype", lower_full, 0},
    {"OnesLike", NUMPY, "x dtype", lower_full, 1},
    {"FullLike", NUMPY, "x fill_value dtype", lower_full, -1},
    {"ConvertToTensor", "ops.core", "x dtype sparse ragged", lower_cast, 0},
    {"Copy", NUMPY, "x", lower_identity, 0},
    {"Array", NUMPY, "x dtype", lower_cast, 0},
    {"Conj", NUMPY, "x", lower_identity, 0},
    {"Conjugate", NUMPY, "x", lower_identity, 0},
    {"Real", NUMPY, "x", lower_identity, 0},
    {"StopGradient", "ops.core", "variable", lower_stop, 0},
    {.name = NULL},
};
