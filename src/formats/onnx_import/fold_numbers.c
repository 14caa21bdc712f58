/* SPDX-License-Identifier: Apache-2.0 */
/* Computes constants at import: arithmetic, comparisons, reductions, ranges.  Most of it is arithmetic of shapes, where
 * a size may be a multiple of the batch size.  Room: formats. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/fold.h"

enum {
    ADD,
    SUB,
    MUL,
    DIV,
    MOD,
    POW,
    MIN,
    MAX,
    AND,
    OR,
    XOR,
    EQUAL,
    LESS,
    GREATER,
    LESS_EQUAL,
    GREATER_EQUAL
};
enum { NEG, ABS, SQRT, FLOOR, CEIL, EXP, LOG, RECIPROCAL, NOT, ROUND, SIN, COS, ERF, TANH, SIGMOID, RELU };
enum { SUM, MEAN, PROD, LOWEST, HIGHEST };

static const leati_import_tensor *input(leati_import *x, int index) {
    const leati_import_value *value = leati_import_in(x, index);
    return value ? value->constant : NULL;
}

static bool is_comparison(int op) {
    return op >= AND;
}

/* ---- Elements ---- */

static double of_reals(int op, double a, double b) {
    switch (op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return a / b;
    case MOD: return fmod(a, b);
    case POW: return pow(a, b);
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    case AND: return a != 0 && b != 0;
    case OR: return a != 0 || b != 0;
    case XOR: return (a != 0) != (b != 0);
    case EQUAL: return a == b;
    case LESS: return a < b;
    case GREATER: return a > b;
    case LESS_EQUAL: return a <= b;
    default: return a >= b;
    }
}

static int64_t of_integers(int op, int64_t a, int64_t b) {
    switch (op) {
    case ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case DIV: return b == 0 || (b == -1 && a == INT64_MIN) ? 0 : a / b;
    case MOD: return b == 0 || b == -1 ? 0 : a % b != 0 && (a % b < 0) != (b < 0) ? a % b + b : a % b;
    case POW: return (int64_t)pow((double)a, (double)b);
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    case EQUAL: return a == b;
    case LESS: return a < b;
    case GREATER: return a > b;
    case LESS_EQUAL: return a <= b;
    case GREATER_EQUAL: return a >= b;
    default: return (int64_t)of_reals(op, (double)a, (double)b);
    }
}

/* Computes with sizes of which at least one is not known.  The result is OPEN unless a rule says what it is. */
static leati_import_size of_sizes(int op, leati_import_size a, leati_import_size b) {
    const leati_import_size open = {-1, false, false};
    const bool a_open = a.count == -1 && !a.batch, b_open = b.count == -1 && !b.batch;
    const leati_import_size *known = !a.batch && !a_open ? &a : !b.batch && !b_open ? &b : NULL;
    if (op == EQUAL && known && known->count <= 0)
        return (leati_import_size){0, false, false}; /* a size is above 0 */
    if ((op == MUL) && known && known->count == 1) return known == &a ? b : a;
    if ((op == ADD || op == SUB || op == DIV) && known == &b && b.count == (op == DIV)) return a;
    if (op == ADD && known == &a && a.count == 0) return b;
    if (a_open || b_open) return open;
    if (op == EQUAL && a.batch && b.batch && a.count == b.count) return (leati_import_size){1, false, false};
    if (op == MUL && known) return (leati_import_size){leati_mul_saturated(a.count, b.count), true, false};
    if (op == DIV && a.batch && b.batch && b.count > 0 && a.count % b.count == 0)
        return (leati_import_size){a.count / b.count, false, false};
    if (op == DIV && known == &b && b.count > 0 && a.count % b.count == 0)
        return (leati_import_size){a.count / b.count, true, false};
    if ((op == ADD || op == SUB) && a.batch && b.batch)
        return (leati_import_size){a.count + (op == ADD ? b.count : -b.count),
                                   a.count != b.count || op == ADD, false};
    return open;
}

static void put_size(leati_import_tensor *out, int64_t index, leati_import_size size) {
    const bool open = size.count == -1 && !size.batch;
    leati_import_put_int(out, index, size.count);
    ((unsigned char *)(uintptr_t)out->sizes)[index] = open         ? LEATI_SIZE_OPEN
                                                      : size.batch ? LEATI_SIZE_BATCH
                                                                   : LEATI_SIZE_KNOWN;
}

/* ---- Broadcasting ---- */

typedef struct broadcast {
    int rank;
    int64_t dims[LEAT_MAX_RANK];
    uint32_t spread;
} broadcast;

static bool join(broadcast *b, const leati_import_tensor *tensor) {
    if (tensor->rank > b->rank) {
        const int more = tensor->rank - b->rank;
        for (int i = tensor->rank - 1; i >= 0; --i) b->dims[i] = i < more ? 1 : b->dims[i - more];
        b->spread <<= more;
        b->rank = tensor->rank;
    }
    for (int i = 0; i < tensor->rank; ++i) {
        int64_t *own = &b->dims[b->rank - tensor->rank + i];
        if (*own == 1) *own = tensor->dims[i];
        if (tensor->dims[i] != 1 && tensor->dims[i] != *own) return false;
    }
    b->spread |= tensor->spread << (b->rank - tensor->rank);
    return true;
}

/* Returns a constant as it is after broadcasting. */
static const leati_import_tensor *broadcasted(leati_import *x, const leati_import_tensor *from,
                                              const broadcast *to) {
    int64_t own[LEAT_MAX_RANK], strides[LEAT_MAX_RANK] = {0};
    bool same = from->rank == to->rank;
    leati_fold_strides(from, own);
    for (int i = 0; i < from->rank; ++i) {
        const int axis = to->rank - from->rank + i;
        strides[axis] = from->dims[i] == 1 ? 0 : own[i];
        same = same && from->dims[i] == to->dims[axis];
    }
    return same ? from : leati_fold_strided(x, from, to->rank, to->dims, strides, 0);
}

static const leati_import_tensor *combine(leati_import *x, int op, const leati_import_tensor *a,
                                          const leati_import_tensor *b) {
    broadcast to = {0};
    if (!a || !b || !join(&to, a) || !join(&to, b)) return NULL;
    a = broadcasted(x, a, &to);
    b = broadcasted(x, b, &to);
    if (!a || !b) return NULL;
    const bool real = leati_import_is_real(a->type), sizes = a->sizes || b->sizes;
    leati_import_tensor *out =
        leati_import_new_constant(x, is_comparison(op) ? LEATI_IMPORT_BOOL : a->type, to.rank, to.dims);
    if (!out) return NULL;
    out->spread = to.spread;
    if (sizes) leati_fold_sizes(x, out);
    if (sizes && !out->sizes) return NULL;
    for (int64_t i = 0; i < out->count; ++i) {
        const bool known = !sizes || ((!a->sizes || !a->sizes[i]) && (!b->sizes || !b->sizes[i]));
        if (!known)
            put_size(out, i, of_sizes(op, leati_import_size_at(a, i), leati_import_size_at(b, i)));
        else if (real)
            leati_import_put(out, i, of_reals(op, leati_import_number(a, i), leati_import_number(b, i)));
        else
            leati_import_put_int(out, i,
                                 of_integers(op, leati_import_integer(a, i), leati_import_integer(b, i)));
    }
    return out;
}

static const leati_import_tensor *fold_binary(leati_import *x) {
    const int op = leati_fold_detail(leati_fold_computations, x->node->op);
    const leati_import_tensor *out = input(x, 0);
    if (x->node->input_count < 2 && op != MIN && op != MAX && op != ADD) return NULL;
    for (int i = 1; out && i < x->node->input_count; ++i) out = combine(x, op, out, input(x, i));
    return out;
}

static const leati_import_tensor *fold_where(leati_import *x) {
    const leati_import_tensor *parts[3] = {input(x, 0), input(x, 1), input(x, 2)};
    broadcast to = {0};
    for (int i = 0; i < 3; ++i)
        if (!parts[i] || !join(&to, parts[i])) return NULL;
    for (int i = 0; i < 3; ++i)
        if (!(parts[i] = broadcasted(x, parts[i], &to))) return NULL;
    leati_import_tensor *out = leati_import_new_constant(x, parts[1]->type, to.rank, to.dims);
    if (!out) return NULL;
    out->spread = to.spread;
    if (parts[0]->sizes || parts[1]->sizes || parts[2]->sizes) leati_fold_sizes(x, out);
    for (int64_t i = 0; i < out->count; ++i) {
        leati_fold_copy(out, i, parts[leati_import_number(parts[0], i) != 0 ? 1 : 2], i);
        if (out->sizes && parts[0]->sizes && parts[0]->sizes[i])
            put_size(out, i, (leati_import_size){-1, false, false});
    }
    return out;
}

/* ---- Functions of one number ---- */

static double of_one(int op, double a) {
    switch (op) {
    case NEG: return -a;
    case ABS: return fabs(a);
    case SQRT: return sqrt(a);
    case FLOOR: return floor(a);
    case CEIL: return ceil(a);
    case EXP: return exp(a);
    case LOG: return log(a);
    case RECIPROCAL: return 1 / a;
    case NOT: return a == 0;
    case ROUND: return nearbyint(a);
    case SIN: return sin(a);
    case COS: return cos(a);
    case ERF: return erf(a);
    case TANH: return tanh(a);
    case SIGMOID: return 1 / (1 + exp(-a));
    default: return a > 0 ? a : 0;
    }
}

static const leati_import_tensor *fold_unary(leati_import *x) {
    const leati_import_tensor *from = input(x, 0);
    const int op = leati_fold_detail(leati_fold_computations, x->node->op);
    if (from->sizes && op != FLOOR && op != CEIL) return NULL;
    if (from->sizes) return from;
    leati_import_tensor *out = leati_import_new_constant(x, from->type, from->rank, from->dims);
    for (int64_t i = 0; out && i < from->count; ++i)
        leati_import_put(out, i, of_one(op, leati_import_number(from, i)));
    if (out) out->spread = from->spread;
    return out;
}

/* ---- Reductions and ranges ---- */

static double reduced(int op, double sum, double a) {
    return op == PROD      ? sum * a
           : op == LOWEST  ? (a < sum ? a : sum)
           : op == HIGHEST ? (a > sum ? a : sum)
                           : sum + a;
}

/* Reduces some axes of numbers that are known. */
static const leati_import_tensor *reduce_axes(leati_import *x, int op, const leati_import_tensor *from,
                                              uint32_t axes, bool keep) {
    int64_t dims[LEAT_MAX_RANK], strides[LEAT_MAX_RANK], own[LEAT_MAX_RANK], stride = 1, each = 1;
    int rank = 0;
    for (int i = 0; i < from->rank; ++i) {
        const bool gone = axes >> i & 1u;
        if (gone) each *= from->dims[i];
        if (!gone || keep) dims[rank++] = gone ? 1 : from->dims[i];
    }
    leati_import_tensor *out = leati_import_new_constant(x, from->type, rank, dims);
    if (!out || out->count < 1) return NULL;
    for (int i = from->rank - 1; i >= 0; --i) {
        strides[i] = axes >> i & 1u ? 0 : stride;
        if (strides[i]) stride *= from->dims[i];
    }
    leati_fold_strides(from, own);
    for (int64_t i = 0; i < from->count; ++i) {
        int64_t at = 0;
        bool first = true;
        for (int k = 0; k < from->rank; ++k) {
            const int64_t place = i / own[k] % from->dims[k];
            at += place * strides[k];
            first = first && (strides[k] || place == 0);
        }
        const double number = leati_import_number(from, i);
        leati_import_put(out, at, first ? number : reduced(op, leati_import_number(out, at), number));
    }
    for (int64_t i = 0; op == MEAN && i < out->count; ++i)
        leati_import_put(out, i, leati_import_number(out, i) / (double)each);
    return out;
}

/* Reduces a list, or all elements. */
static const leati_import_tensor *fold_reduce(leati_import *x) {
    const leati_import_tensor *from = input(x, 0);
    const int op = leati_fold_detail(leati_fold_computations, x->node->op);
    int64_t axes[LEAT_MAX_RANK], dims[LEAT_MAX_RANK];
    const int count = leati_import_ints(x, "axes", 1, LEAT_MAX_RANK, axes);
    const bool keep = leati_import_int(x, "keepdims", 1) != 0;
    uint32_t some = 0;
    if (from->count < 1 || from->spread) return NULL;
    for (int i = 0; i < count; ++i) some |= UINT32_C(1) << leati_import_axis(x, axes[i], from->rank);
    if (count == 0 && leati_import_int(x, "noop_with_empty_axes", 0) != 0) return from;
    if (count > 0 && !from->sizes) return reduce_axes(x, op, from, some, keep);
    if (count > 0 && count < from->rank) return NULL;
    leati_import_size size = leati_import_size_at(from, 0);
    bool known = !from->sizes || from->sizes[0] == LEATI_SIZE_KNOWN;
    double number = leati_import_number(from, 0);
    for (int64_t i = 1; i < from->count; ++i) {
        number = reduced(op, number, leati_import_number(from, i));
        if (from->sizes)
            size = of_sizes(op == PROD ? MUL : op == SUM ? ADD : MOD, size, leati_import_size_at(from, i));
        known = known && (!from->sizes || from->sizes[i] == LEATI_SIZE_KNOWN);
    }
    for (int i = 0; i < from->rank; ++i) dims[i] = 1;
    leati_import_tensor *out = leati_import_new_constant(x, from->type, keep ? from->rank : 0, dims);
    if (!out) return NULL;
    if (!known) leati_fold_sizes(x, out);
    if (!known && out->sizes)
        put_size(out, 0, size);
    else
        leati_import_put(out, 0, op == MEAN ? number / (double)from->count : number);
    return out;
}

static const leati_import_tensor *fold_range(leati_import *x) {
    const leati_import_tensor *start = input(x, 0), *limit = input(x, 1), *delta = input(x, 2);
    if (!start || !limit || !delta || start->sizes || limit->sizes || delta->sizes) return NULL;
    if (start->count != 1 || limit->count != 1 || delta->count != 1) return NULL;
    const double from = leati_import_number(start, 0), to = leati_import_number(limit, 0);
    const double step = leati_import_number(delta, 0), steps = step != 0 ? ceil((to - from) / step) : 0;
    if (!(steps < 1e9)) return NULL;
    const int64_t count = steps > 0 ? (int64_t)steps : 0;
    leati_import_tensor *out = leati_import_new_constant(x, start->type, 1, &count);
    for (int64_t i = 0; out && i < count; ++i) leati_import_put(out, i, from + (double)i * step);
    return out;
}

/* Keeps the elements below (or above) a diagonal. */
static const leati_import_tensor *fold_trilu(leati_import *x) {
    const leati_import_tensor *from = input(x, 0), *diagonal = input(x, 1);
    const bool upper = leati_import_int(x, "upper", 1) != 0;
    const int64_t k = diagonal && diagonal->count == 1 ? leati_import_integer(diagonal, 0) : 0;
    if (from->rank < 2 || from->sizes) return NULL;
    const int64_t columns = from->dims[from->rank - 1], rows = from->dims[from->rank - 2];
    leati_import_tensor *out = leati_import_new_constant(x, from->type, from->rank, from->dims);
    for (int64_t i = 0; out && i < from->count; ++i) {
        const int64_t column = i % columns, row = i / columns % rows;
        if (upper ? column - row >= k : column - row <= k) leati_fold_copy(out, i, from, i);
    }
    if (out) out->spread = from->spread;
    return out;
}

const leati_fold_operator leati_fold_computations[] = {
    {"Add", fold_binary, ADD},
    {"Sub", fold_binary, SUB},
    {"Mul", fold_binary, MUL},
    {"Div", fold_binary, DIV},
    {"Mod", fold_binary, MOD},
    {"Pow", fold_binary, POW},
    {"Min", fold_binary, MIN},
    {"Max", fold_binary, MAX},
    {"Sum", fold_binary, ADD},
    {"And", fold_binary, AND},
    {"Or", fold_binary, OR},
    {"Xor", fold_binary, XOR},
    {"Equal", fold_binary, EQUAL},
    {"Less", fold_binary, LESS},
    {"Greater", fold_binary, GREATER},
    {"LessOrEqual", fold_binary, LESS_EQUAL},
    {"GreaterOrEqual", fold_binary, GREATER_EQUAL},
    {"Where", fold_where, 0},
    {"Neg", fold_unary, NEG},
    {"Abs", fold_unary, ABS},
    {"Sqrt", fold_unary, SQRT},
    {"Floor", fold_unary, FLOOR},
    {"Ceil", fold_unary, CEIL},
    {"Exp", fold_unary, EXP},
    {"Log", fold_unary, LOG},
    {"Reciprocal", fold_unary, RECIPROCAL},
    {"Not", fold_unary, NOT},
    {"Round", fold_unary, ROUND},
    {"Sin", fold_unary, SIN},
    {"Cos", fold_unary, COS},
    {"Erf", fold_unary, ERF},
    {"Tanh", fold_unary, TANH},
    {"Sigmoid", fold_unary, SIGMOID},
    {"Relu", fold_unary, RELU},
    {"ReduceSum", fold_reduce, SUM},
    {"ReduceMean", fold_reduce, MEAN},
    {"ReduceProd", fold_reduce, PROD},
    {"ReduceMin", fold_reduce, LOWEST},
    {"ReduceMax", fold_reduce, HIGHEST},
    {"Range", fold_range, 0},
    {"Trilu", fold_trilu, 0},
    {.name = NULL},
};
