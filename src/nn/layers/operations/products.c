/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops that are products of matrices, and Einstein sums.  Room: nn. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "nn/layers/core/einsum.h"
#include "nn/layers/operations/operations.h"

/* Broadcasts the axes of a and b before the last two to a common shape, which both tensors then have. */
static bool join_leading(leati_graph *g, leati_value *a, leati_value *b) {
    leati_value *both[] = {a, b};
    leati_desc descs[] = {*leati_graph_desc(g, *a), *leati_graph_desc(g, *b)};
    int rank = descs[0].rank > descs[1].rank ? descs[0].rank : descs[1].rank;
    int64_t leading[LEAT_MAX_RANK] = {0};
    if (descs[0].rank < 2 || descs[1].rank < 2) return false;
    for (int i = 0; i < rank - 2; ++i) {
        int64_t dims[2];
        for (int k = 0; k < 2; ++k) {
            int from = i - (rank - descs[k].rank);
            dims[k] = from < 0 ? 1 : descs[k].shape[from];
        }
        if (dims[0] != dims[1] && dims[0] != 1 && dims[1] != 1) return false;
        leading[i] = dims[0] == 1 ? dims[1] : dims[0];
    }
    for (int k = 0; k < 2; ++k) {
        leati_desc desc = leati_desc_make(LEAT_F32, rank, leading);
        desc.shape[rank - 2] = descs[k].shape[descs[k].rank - 2];
        desc.shape[rank - 1] = descs[k].shape[descs[k].rank - 1];
        if (!leati_desc_same_shape(&desc, &descs[k]))
            *both[k] = leati_broadcast(g, *both[k], rank, desc.shape);
    }
    return true;
}

/* Multiplies matrices; where b has two axes, all rows of a are one matrix. */
static leati_value product_of(const leati_operands *o, leati_value a, leati_value b) {
    leati_graph *g = o->g;
    leati_desc left = *leati_graph_desc(g, a), right = *leati_graph_desc(g, b), out = left;
    if (left.rank < 1 || right.rank < 1)
        return leati_operand_fail(o, LEAT_ESHAPE, "expected tensors, received a number");
    if (right.rank == 1) { /* a vector is a matrix of one column, whose axis the result does not have */
        leati_value column = leati_reshape(g, b, 2, (int64_t[]){right.shape[0], 1});
        leati_value y = product_of(o, a, column);
        return leati_reshape(g, y, left.rank - 1, left.shape);
    }
    if (left.rank == 1) {
        leati_value y = product_of(o, leati_reshape(g, a, 2, (int64_t[]){1, left.shape[0]}), b);
        leati_desc desc = *leati_graph_desc(g, y);
        if (desc.rank < 2) return y;
        desc.shape[desc.rank - 2] = desc.shape[desc.rank - 1];
        return leati_reshape(g, y, desc.rank - 1, desc.shape);
    }
    if (right.rank == 2) {
        int64_t columns = left.shape[left.rank - 1],
                rows = columns > 0 ? leati_desc_count(&left) / columns : 0;
        leati_value flat = leati_reshape(g, a, 2, (int64_t[]){rows, columns});
        out.shape[out.rank - 1] = right.shape[1];
        return leati_reshape(g, leati_matmul(g, flat, false, b, false, LEATI_NONE), out.rank, out.shape);
    }
    if (!join_leading(g, &a, &b))
        return leati_operand_fail(o, LEAT_ESHAPE, "the leading axes of x1 and x2 differ");
    return leati_matmul(g, a, false, b, false, LEATI_NONE);
}

static void lower_matmul(leati_operands *o) {
    leati_value x1 = leati_operand(o, "x1"), x2 = leati_operand(o, "x2");
    o->outputs[0] = product_of(o, x1, x2);
}

/* Computes numpy.dot, for a second operand of at most two axes. */
static void lower_dot(leati_operands *o) {
    leati_value x1 = leati_operand(o, "x1"), x2 = leati_operand(o, "x2");
    int left = leati_graph_desc(o->g, x1)->rank, right = leati_graph_desc(o->g, x2)->rank;
    if (left == 0 || right == 0)
        o->outputs[0] = leati_mul(o->g, x1, x2);
    else if (right <= 2)
        o->outputs[0] = product_of(o, x1, x2);
    else
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP,
                               "expected a second operand of at most 2 axes; use keras.ops.einsum");
}

/* Sums the products of the last axes.  A second operand of two axes has to be a constant: all samples of x1 meet all
 * its rows. */
static void lower_inner(leati_operands *o) {
    leati_value x1 = leati_operand(o, "x1"), x2 = leati_operand(o, "x2");
    const int left = leati_graph_desc(o->g, x1)->rank, right = leati_graph_desc(o->g, x2)->rank;
    if (left >= 2 && right == 2) x2 = leati_operand_without_tensor(o, "x2");
    if (left == 0 || right == 0)
        o->outputs[0] = leati_mul(o->g, x1, x2);
    else if (right <= 2)
        o->outputs[0] = product_of(o, x1, right == 2 ? leati_transpose(o->g, x2, (int32_t[]){1, 0}) : x2);
    else
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP,
                               "expected a second operand of at most 2 axes; use keras.ops.einsum");
}

/* The vector product of three numbers along an axis. */
static void lower_cross(leati_operands *o) {
    static const char *const axes[] = {"axisa", "axisb", "axisc"};
    leati_graph *g = o->g;
    leati_value x[] = {leati_operand(o, "x1"), leati_operand(o, "x2")}, parts[2][3], out[3];
    const leati_desc desc = *leati_graph_desc(g, x[0]);
    int place[3];
    for (int k = 0; k < 3; ++k) {
        const leati_desc *own = leati_graph_desc(g, x[k < 2 ? k : 0]);
        place[k] = leati_operand_axis(o, leati_operand_json(o, "axis") ? "axis" : axes[k], own->rank, -1);
        if (place[k] < 0 || (k < 2 && own->shape[place[k]] != 3)) {
            o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "expected axes of 3 numbers");
            return;
        }
    }
    if (desc.rank != leati_graph_desc(g, x[1])->rank || place[0] != place[1] || place[0] != place[2]) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "expected one axis of tensors of equal rank");
        return;
    }
    for (int k = 0; k < 2; ++k)
        for (int i = 0; i < 3; ++i) parts[k][i] = leati_slice_axis(g, x[k], place[0], i, 1);
    for (int i = 0; i < 3; ++i) {
        const int a = (i + 1) % 3, b = (i + 2) % 3;
        out[i] = leati_sub(g, leati_mul(g, parts[0][a], parts[1][b]), leati_mul(g, parts[0][b], parts[1][a]));
    }
    o->outputs[0] = leati_concat(g, 3, out, place[0]);
}

/* The distances of all pairs of rows. */
static void lower_cdist(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x"), y = leati_operand(o, "y");
    leati_desc a = *leati_graph_desc(g, x), b = *leati_graph_desc(g, y);
    if (a.rank < 3 || a.rank >= LEAT_MAX_RANK || a.rank != b.rank) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "expected rows of vectors for each sample");
        return;
    }
    const int last = a.rank - 1;
    a.shape[last + 1] = a.shape[last];
    a.shape[last] = 1;
    b.shape[last + 1] = b.shape[last];
    b.shape[last] = b.shape[last - 1];
    b.shape[last - 1] = 1;
    leati_value rest =
        leati_sub(g, leati_reshape(g, x, a.rank + 1, a.shape), leati_reshape(g, y, a.rank + 1, b.shape));
    leati_value squares =
        leati_reduce_last(g, LEATI_REDUCE_SUM, leati_function_of(g, rest, LEATI_FN_SQUARE), false);
    o->outputs[0] = leati_function_of(g, squares, LEATI_FN_SQRT);
}

/* ---- Einstein sums ---- */

#define MOST_AXES     (2 * LEAT_MAX_RANK)
#define MOST_OPERANDS 8

typedef struct equation {
    char in[MOST_OPERANDS][MOST_AXES + 1], out[MOST_AXES + 1];
    int operands;
    bool has_out;
} equation;

/* Reads the axes of one operand or of the result; "..." becomes digits, which end with 9. */
static const char *read_axes(const char *at, char *names, int rank) {
    int letters = 0, count = 0;
    for (const char *c = at; *c && *c != ',' && *c != '-'; ++c) letters += *c != '.' && *c != ' ';
    int elided = rank >= letters ? rank - letters : 0;
    for (; *at && *at != ',' && *at != '-'; ++at) {
        if (*at == ' ') continue;
        if (*at == '.') {
            if (strncmp(at, "...", 3) != 0) return NULL;
            at += 2;
            for (int i = 0; i < elided && count < MOST_AXES; ++i)
                names[count++] = (char)('0' + 10 - elided + i); /* the last axes of both operands agree */
            continue;
        }
        if (count >= MOST_AXES) return NULL;
        names[count++] = *at;
    }
    names[count] = '\0';
    return at;
}

/* Reads "bij,bjk->bik" for operands of these ranks.  Without "->" the result has the axes that occur once. */
static bool read_equation(equation *e, const char *text, int operands, const int *ranks) {
    const char *at = text;
    *e = (equation){.operands = operands};
    for (int i = 0; i < operands; ++i) {
        at = at ? read_axes(at, e->in[i], ranks[i]) : NULL;
        if (!at || (int)strlen(e->in[i]) != ranks[i]) return false;
        if (i + 1 < operands && *at++ != ',') return false;
    }
    if (strncmp(at, "->", 2) == 0) {
        int elided = 0, letters = 0;
        for (int i = 0; i < operands; ++i)
            for (const char *c = e->in[i]; *c; ++c)
                if (*c >= '0' && *c <= '9' && '9' + 1 - *c > elided) elided = '9' + 1 - *c;
        for (const char *c = at + 2; *c; ++c) letters += *c != '.' && *c != ' ';
        at = read_axes(at + 2, e->out, strstr(at, "...") ? letters + elided : letters);
        return at && !*at;
    }
    int count = 0;
    for (int name = '0'; name <= 'z'; ++name) {
        int times = 0;
        for (int i = 0; i < operands; ++i)
            for (const char *c = e->in[i]; *c; ++c) times += *c == name;
        if (times == 1 && count < MOST_AXES) e->out[count++] = (char)name;
    }
    return *at == '\0';
}

/* Sums over the axes of an operand that neither the other operand nor the result has. */
static leati_value without_lone_axes(leati_graph *g, leati_value x, char *names, const char *other,
                                     const char *out) {
    uint32_t axes = 0;
    int kept = 0;
    for (int i = 0; names[i]; ++i)
        if (!strchr(other, names[i]) && !strchr(out, names[i])) axes |= UINT32_C(1) << i;
    if (!axes) return x;
    x = leati_reduce_of(g, LEATI_REDUCE_SUM, x, axes, false);
    for (int i = 0; names[i]; ++i)
        if (!(axes >> i & 1u)) names[kept++] = names[i];
    names[kept] = '\0';
    return x;
}

static leati_value permuted(leati_graph *g, leati_value x, const char *from, const char *to) {
    int32_t perm[LEAT_MAX_RANK] = {0};
    for (int i = 0; to[i] && i < LEAT_MAX_RANK; ++i) {
        const char *at = strchr(from, to[i]);
        perm[i] = at ? (int32_t)(at - from) : -1;
    }
    return leati_transpose(g, x, perm);
}

/* Returns the tensor or the constant at a position of the call's arguments. */
static leati_value argument_at(const leati_operands *o, size_t index) {
    json_t *kwargs = json_pack("{s:O}", "x1", json_array_get(o->args, index));
    leati_operands one = *o;
    one.args = NULL;
    one.kwargs = kwargs;
    leati_operation any = *o->operation;
    any.signature = "x1";
    one.operation = &any;
    leati_value value = leati_operand(&one, "x1");
    json_decref(kwargs);
    return value;
}

/* Takes the diagonal of two axes of the same name, until no name occurs twice. */
static leati_value without_twins(leati_operands *o, leati_value x, char *names) {
    leati_graph *g = o->g;
    for (int first = 0; names[first]; ++first) {
        const char *twin = strchr(names + first + 1, names[first]);
        if (!twin) continue;
        const int second = (int)(twin - names);
        const leati_desc desc = *leati_graph_desc(g, x);
        const int64_t n = desc.shape[first];
        leati_desc square = leati_desc_make(LEAT_F32, desc.rank, desc.shape);
        for (int i = 0; i < desc.rank; ++i) square.shape[i] = i == first || i == second ? n : 1;
        float *ones = n == desc.shape[second] ? leati_calloc((size_t)(n * n) + 1, sizeof *ones) : NULL;
        if (!ones) return leati_operand_fail(o, LEAT_ESHAPE, "subscripts: axis %c has two lengths", *twin);
        for (int64_t i = 0; i < n; ++i) ones[i * n + i] = 1;
        leati_value kept = leati_mul(g, x, leati_graph_constant(g, &square, ones));
        leati_free(ones);
        x = leati_reduce_of(g, LEATI_REDUCE_SUM, kept, UINT32_C(1) << second, false);
        memmove(names + second, names + second + 1, strlen(names + second));
        --first;
    }
    return x;
}

/* Lists the axes of two operands that the result or a later operand has. */
static void keep_needed(const equation *e, int next, const char *left, char *out) {
    const char *both[] = {left, e->in[next]};
    int count = 0;
    for (int k = 0; k < 2; ++k)
        for (const char *c = both[k]; *c; ++c) {
            bool needed = strchr(e->out, *c) != NULL;
            for (int i = next + 1; i < e->operands; ++i) needed = needed || strchr(e->in[i], *c);
            if (!needed || memchr(out, *c, (size_t)count) || count == MOST_AXES) continue;
            out[count++] = *c;
        }
    out[count] = '\0';
}

/* Multiplies the operands from left to right. */
static leati_value sum_of_products(leati_operands *o, equation *e, leati_value *x) {
    leati_graph *g = o->g;
    char left[MOST_AXES + 1], out[MOST_AXES + 1], full[3 * MOST_AXES + 8];
    leati_value y = x[0];
    snprintf(left, sizeof left, "%s", e->in[0]);
    for (int i = 1; i < e->operands; ++i) {
        keep_needed(e, i, left, out);
        if (i == e->operands - 1) snprintf(out, sizeof out, "%s", e->out);
        y = without_lone_axes(g, y, left, e->in[i], out);
        x[i] = without_lone_axes(g, x[i], e->in[i], left, out);
        snprintf(full, sizeof full, "%s,%s->%s", left, e->in[i], out);
        if (strlen(out) > LEAT_MAX_RANK)
            return leati_operand_fail(o, LEAT_ENOTSUP,
                                      "subscripts: a product of two operands has more than %d axes",
                                      LEAT_MAX_RANK);
        y = leati_einsum(g, full, y, x[i]);
        snprintf(left, sizeof left, "%s", out);
    }
    return y;
}

static void lower_einsum(leati_operands *o) {
    leati_graph *g = o->g;
    const size_t count = json_array_size(o->args);
    leati_value x[MOST_OPERANDS];
    int ranks[MOST_OPERANDS] = {0};
    const char *text = json_string_value(json_object_get(o->options, "subscripts"));
    equation e;
    for (size_t i = 0; i < count && i < MOST_OPERANDS; ++i) {
        x[i] = argument_at(o, i);
        ranks[i] = leati_graph_desc(g, x[i])->rank;
    }
    if (!text || count < 1 || count > MOST_OPERANDS || !read_equation(&e, text, (int)count, ranks)) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP,
                               "subscripts: expected an equation for 1 to %d tensors, received '%.64s'",
                               MOST_OPERANDS, text ? text : "");
        return;
    }
    for (size_t i = 0; i < count; ++i) x[i] = without_twins(o, x[i], e.in[i]);
    if (count > 1) {
        o->outputs[0] = sum_of_products(o, &e, x);
        return;
    }
    x[0] = without_lone_axes(g, x[0], e.in[0], "", e.out);
    o->outputs[0] = strlen(e.in[0]) == strlen(e.out)
                        ? permuted(g, x[0], e.in[0], e.out)
                        : leati_operand_fail(o, LEAT_EINVAL, "subscripts: the result has an unknown axis");
}

/* Sums the products over the last n axes of x1 and the first n axes of x2, or over two lists of axes. */
static void lower_tensordot(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x1 = leati_operand(o, "x1"), x2 = leati_operand(o, "x2");
    int ranks[] = {leati_graph_desc(g, x1)->rank, leati_graph_desc(g, x2)->rank};
    const json_t *axes = leati_operand_json(o, "axes");
    char names[2][LEAT_MAX_RANK + 1] = {"", ""}, out[MOST_AXES + 1] = "", full[4 * MOST_AXES];
    int64_t n = json_is_integer(axes) ? (int64_t)json_integer_value(axes) : axes ? 1 : 2;
    const json_t *lists[] = {json_array_get(axes, 0), json_array_get(axes, 1)};
    if (json_is_array(lists[0])) n = (int64_t)json_array_size(lists[0]);
    bool fits = n >= 0 && n <= ranks[0] && n <= ranks[1];
    for (int k = 0; k < 2; ++k)
        for (int i = 0; i < ranks[k]; ++i) names[k][i] = (char)((k ? 'a' : 'A') + i);
    for (int64_t i = 0; fits && i < n; ++i) {
        int64_t at[] = {ranks[0] - n + i, i};
        for (int k = 0; k < 2 && json_is_array(axes); ++k)
            at[k] =
                json_integer_value(json_is_array(lists[k]) ? json_array_get(lists[k], (size_t)i) : lists[k]);
        int a = leati_axis_from(at[0], ranks[0]), b = leati_axis_from(at[1], ranks[1]);
        fits = a >= 0 && b >= 0;
        if (fits) names[0][a] = names[1][b] = (char)('0' + i);
    }
    int count = 0;
    for (int k = 0; k < 2; ++k)
        for (int i = 0; i < ranks[k]; ++i)
            if (names[k][i] > '9') out[count++] = names[k][i];
    snprintf(full, sizeof full, "%s,%s->%s", names[0], names[1], out);
    o->outputs[0] = fits && count <= LEAT_MAX_RANK
                        ? leati_einsum(g, full, x1, x2)
                        : leati_operand_fail(o, LEAT_EINVAL, "axes: expected axes of both tensors");
}

/* ---- Attention ---- */

#define FAR_BELOW (-1e9f) /* as in Keras's MultiHeadAttention */

/* Makes (batch, heads, steps, size) of (batch, steps, heads, size), where `repeats` heads in a row are equal. */
static leati_value by_heads(leati_graph *g, leati_value x, int64_t repeats) {
    const leati_desc d = *leati_graph_desc(g, x);
    const int64_t *n = d.shape, heads = n[2] * repeats;
    if (repeats > 1) {
        x = leati_reshape(g, x, 5, (int64_t[]){n[0], n[1], n[2], 1, n[3]});
        x = leati_broadcast(g, x, 5, (int64_t[]){n[0], n[1], n[2], repeats, n[3]});
        x = leati_reshape(g, x, 4, (int64_t[]){n[0], n[1], heads, n[3]});
    }
    return leati_transpose(g, x, (int32_t[]){0, 2, 1, 3});
}

/* Returns what takes the scores of pairs that do not count below all others: 0 where a pair counts. */
static leati_value score_of_masked(leati_operands *o, int64_t queries, int64_t keys) {
    leati_graph *g = o->g;
    leati_value out = LEATI_NONE;
    if (leati_operand_json(o, "mask")) {
        leati_value zero = leati_binary_of(g, LEATI_EQUAL, leati_operand(o, "mask"), leati_scalar(g, 0));
        out = leati_linear(g, zero, FAR_BELOW, 0);
    }
    if (!leati_operand_flag(o, "is_causal")) return out;
    float *values = leati_calloc((size_t)(queries * keys) + 1, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for a mask");
    for (int64_t i = 0; i < queries; ++i)
        for (int64_t k = i + 1; k < keys; ++k) values[i * keys + k] = FAR_BELOW;
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){queries, keys});
    leati_value causal = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return out == LEATI_NONE ? causal : leati_add(g, out, causal);
}

/* Computes keras.ops.dot_product_attention: tensors are (batch, steps, heads, size). */
static void lower_attention(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value query = leati_operand(o, "query"), key = leati_operand(o, "key"),
                value = leati_operand(o, "value");
    const leati_desc q = *leati_graph_desc(g, query), k = *leati_graph_desc(g, key),
                     v = *leati_graph_desc(g, value);
    bool fits = q.rank == 4 && k.rank == 4 && v.rank == 4 && k.shape[2] > 0 && q.shape[2] % k.shape[2] == 0 &&
                v.shape[2] == k.shape[2] && (k.shape[2] > 1 || q.shape[2] == 1) && q.shape[3] > 0;
    if (!fits || leati_operand_json(o, "attn_logits_soft_cap")) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP,
                               "expected tensors (batch, steps, heads, size) whose heads agree, and no "
                               "attn_logits_soft_cap");
        return;
    }
    const double scale = leati_operand_number_or(o, "scale", 1.0 / sqrt((double)q.shape[3]));
    const int64_t repeats = q.shape[2] / k.shape[2];
    leati_value scores =
        leati_matmul(g, by_heads(g, query, 1), false, by_heads(g, key, repeats), true, LEATI_NONE);
    scores = leati_linear(g, scores, (float)scale, 0);
    if (leati_operand_json(o, "bias")) scores = leati_add(g, scores, leati_operand(o, "bias"));
    leati_value masked = score_of_masked(o, q.shape[1], k.shape[1]);
    if (masked != LEATI_NONE) scores = leati_add(g, scores, masked);
    leati_value y = leati_matmul(g, leati_softmax_of(g, scores, 3), false, by_heads(g, value, repeats), false,
                                 LEATI_NONE);
    o->outputs[0] = leati_transpose(g, y, (int32_t[]){0, 2, 1, 3});
}

const leati_operation leati_product_operations[] = {
    {"Matmul", "ops.numpy", "x1 x2", lower_matmul, 0},
    {"Dot", "ops.numpy", "x1 x2", lower_dot, 0},
    {"Inner", "ops.numpy", "x1 x2", lower_inner, 0},
    {"Cross", "ops.numpy", "x1 x2 axisa axisb axisc axis", lower_cross, 0},
    {"CDist", "ops.math", "x y", lower_cdist, 0},
    {"Einsum", "ops.numpy", "subscripts", lower_einsum, 0},
    {"Tensordot", "ops.numpy", "x1 x2 axes", lower_tensordot, 0},
    {"DotProductAttention", "ops.nn",
     "query key value bias mask scale is_causal flash_attention attn_logits_soft_cap", lower_attention, 0},
    {.name = NULL},
};
