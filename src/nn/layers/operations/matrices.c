/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops.linalg of square matrices, each a call of code in double precision.  A batch has a matrix for
 * each element of its leading axes.
 * Source of the gradients: Giles 2008, Collected matrix derivative results for forward and reverse mode algorithmic
 * differentiation.  Room: nn. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/callee.h"
#include "nn/layers/operations/operations.h"

typedef enum matrix_function {
    INVERSE,
    DETERMINANT,
    LOG_DETERMINANT, /* of the symmetric matrix that has the lower triangle */
    CHOLESKY,
    SOLVE,      /* a x = b */
    SOLVE_LOWER /* with the lower triangle of a */
} matrix_function;

typedef struct matrix_callee {
    leati_callee callee;
    matrix_function function;
} matrix_callee;

/* The buffers of one matrix: n x n, and right sides n x columns. */
typedef struct work {
    int64_t n, columns, matrices;
    double *a, *inverse, *product, *more; /* n x n each */
    int64_t *order;                       /* of the rows */
} work;

static matrix_function function_of(const leati_callee *callee) {
    return ((const matrix_callee *)callee)->function;
}

static bool has_right_side(matrix_function function) {
    return function == SOLVE || function == SOLVE_LOWER;
}

static leat_status infer(const leati_callee *callee, int input_count, const leati_desc *inputs,
                         leati_desc *outputs, leat_error *err) {
    const matrix_function function = function_of(callee);
    const leati_desc *a = &inputs[0], *b = &inputs[input_count - 1];
    if (a->rank < 2 || a->shape[a->rank - 1] != a->shape[a->rank - 2])
        return leati_fail(err, LEAT_ESHAPE, "expected square matrices");
    outputs[0] = *a;
    if (function == DETERMINANT || function == LOG_DETERMINANT) outputs[0].rank -= 2;
    if (!has_right_side(function)) return LEAT_OK;
    bool fits = b->rank == a->rank;
    for (int i = 0; fits && i < a->rank - 1; ++i) fits = a->shape[i] == b->shape[i];
    if (!fits)
        return leati_fail(err, LEAT_ESHAPE, "expected as many right sides as matrices, with their rows");
    outputs[0] = *b;
    return LEAT_OK;
}

static leat_status open_work(work *w, const leati_callee_run *run, leat_error *err) {
    const leati_desc *a = &run->inputs[0], *b = &run->inputs[run->input_count - 1];
    w->n = a->shape[a->rank - 1];
    w->columns = b->shape[b->rank - 1];
    w->matrices = w->n > 0 ? leati_desc_count(a) / (w->n * w->n) : 0;
    const size_t square = (size_t)(w->n * w->n) + 1;
    w->a = leati_calloc(4 * square, sizeof *w->a);
    w->order = leati_calloc((size_t)w->n + 1, sizeof *w->order);
    if (!w->a || !w->order) {
        leati_free(w->a);
        leati_free(w->order);
        return leati_fail_memory(err, 4 * square * sizeof *w->a, "matrices");
    }
    w->inverse = w->a + square;
    w->product = w->inverse + square;
    w->more = w->product + square;
    return LEAT_OK;
}

static void close_work(work *w) {
    leati_free(w->a);
    leati_free(w->order);
}

/* ---- Elimination ---- */

/* Replaces a by its factors L (with ones on the diagonal, which are not stored) and U; order[i] is the row of the
 * matrix that is row i of L U.  Returns the sign of this order. */
static double factorize(work *w) {
    const int64_t n = w->n;
    double sign = 1, *a = w->a;
    for (int64_t i = 0; i < n; ++i) w->order[i] = i;
    for (int64_t k = 0; k < n; ++k) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; ++i)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (pivot != k) {
            sign = -sign;
            const int64_t row = w->order[k];
            w->order[k] = w->order[pivot];
            w->order[pivot] = row;
            for (int64_t j = 0; j < n; ++j) {
                const double first = a[k * n + j];
                a[k * n + j] = a[pivot * n + j];
                a[pivot * n + j] = first;
            }
        }
        for (int64_t i = k + 1; i < n; ++i) {
            const double factor = a[k * n + k] == 0 ? 0 : a[i * n + k] / a[k * n + k];
            a[i * n + k] = factor;
            for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return sign;
}

/* Computes the inverse from the factors; a singular matrix gives infinite numbers or NaN. */
static void invert(work *w) {
    const int64_t n = w->n;
    double *x = w->inverse;
    for (int64_t column = 0; column < n; ++column) {
        for (int64_t i = 0; i < n; ++i) {
            double sum = w->order[i] == column;
            for (int64_t k = 0; k < i; ++k) sum -= w->a[i * n + k] * x[k * n + column];
            x[i * n + column] = sum;
        }
        for (int64_t i = n - 1; i >= 0; --i) {
            double sum = x[i * n + column];
            for (int64_t k = i + 1; k < n; ++k) sum -= w->a[i * n + k] * x[k * n + column];
            x[i * n + column] = sum / w->a[i * n + i];
        }
    }
}

/* Computes the inverse of the lower triangle in w->a. */
static void invert_lower(work *w) {
    const int64_t n = w->n;
    memset(w->inverse, 0, (size_t)(n * n) * sizeof *w->inverse);
    for (int64_t column = 0; column < n; ++column)
        for (int64_t i = column; i < n; ++i) {
            double sum = i == column;
            for (int64_t k = column; k < i; ++k) sum -= w->a[i * n + k] * w->inverse[k * n + column];
            w->inverse[i * n + column] = sum / w->a[i * n + i];
        }
}

/* Replaces the lower triangle of a by its factor, and clears the upper one. */
static leat_status cholesky(work *w, leat_error *err) {
    const int64_t n = w->n;
    double *a = w->a;
    for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = j; i < n; ++i) {
            double sum = a[i * n + j];
            for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
            if (i == j && !(sum > 0))
                return leati_fail(err, LEAT_EINVAL, "Cholesky: expected a positive definite matrix");
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
        for (int64_t i = 0; i < j; ++i) a[i * n + j] = 0;
    }
    return LEAT_OK;
}

/* c = a b, or a' b, or a b' for matrices n x n. */
static void multiply(int64_t n, const double *a, bool turn_a, const double *b, bool turn_b, double *c) {
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < n; ++k)
                sum += a[turn_a ? k * n + i : i * n + k] * b[turn_b ? j * n + k : k * n + j];
            c[i * n + j] = sum;
        }
}

static void load(double *to, const float *from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) to[i] = (double)from[i];
}

/* ---- Forward ---- */

/* Prepares the inverse for the functions that have a right side. */
static void prepare(work *w, matrix_function function) {
    if (function == SOLVE_LOWER) {
        invert_lower(w);
    } else {
        (void)factorize(w);
        invert(w);
    }
}

/* y = inverse b, or inverse' b, for b of n rows. */
static void apply(const work *w, bool turn, const float *b, float *y) {
    for (int64_t i = 0; i < w->n; ++i)
        for (int64_t j = 0; j < w->columns; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < w->n; ++k)
                sum += w->inverse[turn ? k * w->n + i : i * w->n + k] * (double)b[k * w->columns + j];
            y[i * w->columns + j] = (float)sum;
        }
}

static double determinant(work *w) {
    double out = factorize(w);
    for (int64_t i = 0; i < w->n; ++i) out *= w->a[i * w->n + i];
    return out;
}

/* Returns NaN for a matrix that is not positive definite, as TensorFlow does. */
static double log_determinant(work *w) {
    double sum = 0;
    if (cholesky(w, NULL) != LEAT_OK) return (double)NAN;
    for (int64_t i = 0; i < w->n; ++i) sum += 2 * log(w->a[i * w->n + i]);
    return sum;
}

static leat_status forward_one(work *w, matrix_function function, const float *b, float *y, leat_error *err) {
    const int64_t square = w->n * w->n;
    switch (function) {
    case DETERMINANT: *y = (float)determinant(w); return LEAT_OK;
    case LOG_DETERMINANT: *y = (float)log_determinant(w); return LEAT_OK;
    case CHOLESKY:
        LEATI_TRY(cholesky(w, err));
        for (int64_t i = 0; i < square; ++i) y[i] = (float)w->a[i];
        return LEAT_OK;
    case INVERSE:
        prepare(w, function);
        for (int64_t i = 0; i < square; ++i) y[i] = (float)w->inverse[i];
        return LEAT_OK;
    default:
        prepare(w, function);
        apply(w, false, b, y);
        return LEAT_OK;
    }
}

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    work w = {0};
    const matrix_function function = function_of(callee);
    const float *a = run->args[0], *b = run->args[run->input_count - 1];
    float *y = run->results[0];
    LEATI_TRY(open_work(&w, run, err));
    const int64_t square = w.n * w.n,
                  step = w.matrices > 0 ? leati_desc_count(&run->outputs[0]) / w.matrices : 0;
    leat_status status = LEAT_OK;
    for (int64_t m = 0; status == LEAT_OK && m < w.matrices; ++m) {
        load(w.a, a + m * square, square);
        status = forward_one(&w, function, b + m * w.n * w.columns, y + m * step, err);
    }
    close_work(&w);
    return status;
}

/* ---- Backward ---- */

/* With S the lower triangle of l' dl, whose diagonal is halved: da = (l^-T (S + S') l^-1) / 2. */
static void cholesky_back(work *w, const float *l, const float *dl, float *da) {
    const int64_t n = w->n;
    load(w->a, l, n * n);
    load(w->more, dl, n * n);
    invert_lower(w);
    multiply(n, w->a, true, w->more, false, w->product);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j)
            w->product[i * n + j] = w->product[j * n + i] = w->product[i * n + j];
    multiply(n, w->inverse, true, w->product, false, w->more);
    multiply(n, w->more, false, w->inverse, false, w->product);
    for (int64_t i = 0; i < n * n; ++i) da[i] = (float)(w->product[i] / 2);
}

/* da = -y' dy y' */
static void inverse_back(work *w, const float *y, const float *dy, float *da) {
    const int64_t n = w->n;
    load(w->a, y, n * n);
    load(w->more, dy, n * n);
    multiply(n, w->a, true, w->more, false, w->product);
    multiply(n, w->product, false, w->a, true, w->more);
    for (int64_t i = 0; i < n * n; ++i) da[i] = (float)-w->more[i];
}

/* da = dy det inverse', or without det for the logarithm of a symmetric matrix. */
static void determinant_back(work *w, const float *a, bool symmetric, double factor, float *da) {
    const int64_t n = w->n;
    load(w->a, a, n * n);
    for (int64_t i = 0; symmetric && i < n; ++i)
        for (int64_t j = 0; j < i; ++j) w->a[j * n + i] = w->a[i * n + j];
    prepare(w, SOLVE);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) da[i * n + j] = (float)(factor * w->inverse[j * n + i]);
}

/* db = inverse' dy, da = -db y'; of a triangle only the triangle. */
static void solve_back(work *w, matrix_function function, const float *a, const float *y, const float *dy,
                       float *da, float *db) {
    const int64_t n = w->n, columns = w->columns;
    load(w->a, a, n * n);
    prepare(w, function);
    apply(w, true, dy, db);
    for (int64_t i = 0; da && i < n; ++i)
        for (int64_t j = 0; j < (function == SOLVE_LOWER ? i + 1 : n); ++j) {
            double sum = 0;
            for (int64_t k = 0; k < columns; ++k)
                sum += (double)db[i * columns + k] * (double)y[j * columns + k];
            da[i * n + j] = (float)-sum;
        }
}

static leat_status backward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    work w = {0};
    const matrix_function function = function_of(callee);
    const float *a = run->args[0], *y = run->results[0], *dy = run->diff_results[0];
    float *da = run->diff_args[0], *db = has_right_side(function) ? run->diff_args[1] : NULL, *scratch = NULL;
    LEATI_TRY(open_work(&w, run, err));
    const int64_t square = w.n * w.n, right = w.n * w.columns;
    if (has_right_side(function) && !(scratch = leati_calloc((size_t)right + 1, sizeof *scratch))) {
        close_work(&w);
        return leati_fail_memory(err, (size_t)right * sizeof *scratch, "matrices");
    }
    for (int64_t m = 0; m < w.matrices; ++m) {
        const float *own = a + m * square;
        float *to = da ? da + m * square : NULL;
        if (has_right_side(function))
            solve_back(&w, function, own, y + m * right, dy + m * right, to, db ? db + m * right : scratch);
        else if (function == CHOLESKY)
            cholesky_back(&w, y + m * square, dy + m * square, to);
        else if (function == INVERSE)
            inverse_back(&w, y + m * square, dy + m * square, to);
        else
            determinant_back(&w, own, function == LOG_DETERMINANT,
                             (double)dy[m] * (function == DETERMINANT ? (double)y[m] : 1), to);
    }
    leati_free(scratch);
    close_work(&w);
    return LEAT_OK;
}

#define CALLEE                                                                                               \
    { .output_count = 1, .infer = infer, .forward = forward, .backward = backward }
static const matrix_callee callees[] = {
    [INVERSE] = {CALLEE, INVERSE},
    [DETERMINANT] = {CALLEE, DETERMINANT},
    [LOG_DETERMINANT] = {CALLEE, LOG_DETERMINANT},
    [CHOLESKY] = {CALLEE, CHOLESKY},
    [SOLVE] = {CALLEE, SOLVE},
    [SOLVE_LOWER] = {CALLEE, SOLVE_LOWER},
};

/* ---- Lowering ---- */

static leati_value call(const leati_operands *o, matrix_function function, int count,
                        const leati_value *inputs) {
    leati_value y = LEATI_INVALID;
    leati_graph_call(o->g, &callees[function].callee, false, 0, count, inputs, &y);
    return y;
}

static bool are_matrices(leati_operands *o, leati_value x) {
    const leati_desc *desc = leati_graph_desc(o->g, x);
    if (desc->rank >= 2 && desc->shape[desc->rank - 1] == desc->shape[desc->rank - 2]) return true;
    o->outputs[0] = leati_operand_fail(o, LEAT_ESHAPE, "expected square matrices");
    return false;
}

static void lower_matrix(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    o->outputs[0] = call(o, (matrix_function)o->operation->detail, 1, &x);
}

static void lower_cholesky(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    if (!are_matrices(o, x)) return;
    leati_value y = call(o, CHOLESKY, 1, &x);
    o->outputs[0] = leati_operand_flag(o, "upper") && y >= 0 ? leati_operation_swap_last(o->g, y) : y;
}

/* Makes unit matrices of a shape. */
static leati_value unit_like(leati_graph *g, const leati_desc *like) {
    const int64_t n = like->shape[like->rank - 1];
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){n, n});
    float *values = leati_calloc((size_t)(n * n) + 1, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for a unit matrix");
    for (int64_t i = 0; i < n; ++i) values[i * n + i] = 1;
    leati_value unit = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return leati_broadcast(g, unit, like->rank, like->shape);
}

/* The inverse of the matrix whose factor is a triangle of x: with l the lower one, l^-T l^-1. */
static void lower_cholesky_inverse(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    if (!are_matrices(o, x)) return;
    const leati_desc desc = *leati_graph_desc(g, x);
    if (leati_operand_flag(o, "upper")) x = leati_operation_swap_last(g, x);
    leati_value inverse = call(o, SOLVE_LOWER, 2, (leati_value[]){x, unit_like(g, &desc)});
    o->outputs[0] = leati_matmul(g, inverse, true, inverse, false, LEATI_NONE);
}

/* A right side of one axis less is a vector.  An upper triangle is a lower one with rows and columns in reverse. */
static void lower_solve(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value inputs[] = {leati_operand(o, "a"), leati_operand(o, "b")};
    const leati_desc a = *leati_graph_desc(g, inputs[0]), b = *leati_graph_desc(g, inputs[1]);
    const bool vector = b.rank == a.rank - 1;
    matrix_function function = (matrix_function)o->operation->detail;
    const bool turned = function == SOLVE_LOWER && !leati_operand_flag(o, "lower");
    if (!are_matrices(o, inputs[0])) return;
    if (vector) inputs[1] = leati_expand_last(g, inputs[1]);
    if (turned) {
        inputs[0] = leati_reverse(g, leati_reverse(g, inputs[0], a.rank - 1), a.rank - 2);
        inputs[1] = leati_reverse(g, inputs[1], a.rank - 2);
    }
    leati_value y = call(o, function, 2, inputs);
    if (turned && y >= 0) y = leati_reverse(g, y, a.rank - 2);
    o->outputs[0] = vector ? leati_reshape(g, y, b.rank, b.shape) : y;
}

#define LINALG "ops.linalg"

const leati_operation leati_matrix_operations[] = {
    {"Inv", LINALG, "x", lower_matrix, INVERSE},
    {"Det", LINALG, "x", lower_matrix, DETERMINANT},
    {"Logdet", "ops.math", "x", lower_matrix, LOG_DETERMINANT},
    {"Cholesky", LINALG, "x upper", lower_cholesky, 0},
    {"CholeskyInverse", LINALG, "x upper", lower_cholesky_inverse, 0},
    {"Solve", LINALG, "a b", lower_solve, SOLVE},
    {"SolveTriangular", LINALG, "a b lower", lower_solve, SOLVE_LOWER},
    {.name = NULL},
};
