/* SPDX-License-Identifier: Apache-2.0 */
/* Axes are of four kinds: in both operands and the result (one matrix product for each index), only in the first
 * operand and the result (rows), only in the second operand and the result (columns), in both operands but not in the
 * result (summed over).  Room: nn. */
#include "nn/layers/core/einsum.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum { max_labels = LEAT_MAX_RANK };

typedef struct labels {
    int count;
    char names[max_labels + 1];
} labels;

typedef struct axes {
    labels a, b, out;
    labels both, rows, columns, inner; /* rows: only in a; columns: only in b */
} axes;

static bool has(const labels *of, char name) {
    return memchr(of->names, name, (size_t)of->count) != NULL;
}

static bool read_labels(labels *out, const char *start, const char *end) {
    if (end - start > max_labels) return false;
    out->count = (int)(end - start);
    memcpy(out->names, start, (size_t)out->count);
    return true;
}

static void add(labels *to, char name) {
    to->names[to->count++] = name;
}

static bool read_equation(axes *s, const char *equation) {
    const char *comma = strchr(equation, ','), *arrow = strstr(equation, "->");
    memset(s, 0, sizeof *s);
    if (!comma || !arrow || arrow < comma || !read_labels(&s->a, equation, comma) ||
        !read_labels(&s->b, comma + 1, arrow) ||
        !read_labels(&s->out, arrow + 2, equation + strlen(equation)))
        return false;
    for (int i = 0; i < s->out.count; ++i) {
        char name = s->out.names[i];
        bool in_a = has(&s->a, name), in_b = has(&s->b, name);
        if (!in_a && !in_b) return false;
        add(in_a && in_b ? &s->both : in_a ? &s->rows : &s->columns, name);
    }
    for (int i = 0; i < s->a.count; ++i)
        if (!has(&s->out, s->a.names[i])) add(&s->inner, s->a.names[i]);
    for (int i = 0; i < s->b.count; ++i)
        if (!has(&s->out, s->b.names[i]) && !has(&s->inner, s->b.names[i])) return false;
    for (int i = 0; i < s->inner.count; ++i)
        if (!has(&s->b, s->inner.names[i])) return false;
    return true;
}

static leati_value permuted(leati_graph *g, leati_value x, const labels *from, const labels *to) {
    int32_t perm[LEAT_MAX_RANK] = {0};
    bool moves = false;
    for (int i = 0; i < to->count; ++i) {
        const char *at = memchr(from->names, to->names[i], (size_t)from->count);
        perm[i] = at ? (int32_t)(at - from->names) : 0;
        moves = moves || perm[i] != i;
    }
    return moves ? leati_transpose(g, x, perm) : x;
}

static void append(labels *to, const labels *from) {
    for (int i = 0; i < from->count && to->count < max_labels; ++i) add(to, from->names[i]);
}

static int64_t size_of(const leati_desc *desc, const labels *all, const labels *some) {
    int64_t size = 1;
    for (int i = 0; i < all->count && i < desc->rank; ++i)
        if (has(some, all->names[i])) size = leati_mul_saturated(size, desc->shape[i]);
    return size;
}

/* Reshapes an operand to matrices (both, outer, inner), or to (both, inner, outer) if its last axis is an outer one.
 * The outer axes are the operand's rows or columns. */
static leati_value as_matrices(leati_graph *g, leati_value x, const labels *from, const axes *s,
                               const labels *outer, bool *inner_first) {
    const leati_desc desc = *leati_graph_desc(g, x);
    labels order = s->both;
    *inner_first = from->count > 0 && has(outer, from->names[from->count - 1]);
    append(&order, *inner_first ? &s->inner : outer);
    append(&order, *inner_first ? outer : &s->inner);
    int64_t dims[3] = {size_of(&desc, from, &s->both), size_of(&desc, from, outer),
                       size_of(&desc, from, &s->inner)};
    if (*inner_first) {
        int64_t rows = dims[1];
        dims[1] = dims[2];
        dims[2] = rows;
    }
    return leati_reshape(g, permuted(g, x, from, &order), 3, dims);
}

static int64_t dim_of(const leati_desc *desc, const labels *from, char name) {
    const char *at = memchr(from->names, name, (size_t)from->count);
    return at ? desc->shape[at - from->names] : -1;
}

leati_value leati_einsum(leati_graph *g, const char *equation, leati_value a, leati_value b) {
    const leati_desc da = *leati_graph_desc(g, a), db = *leati_graph_desc(g, b);
    axes s;
    bool a_transposed, b_transposed;
    if (!read_equation(&s, equation) || s.a.count != da.rank || s.b.count != db.rank)
        return leati_graph_fail(g, LEAT_EINVAL, "'%s': expected an equation for tensors of %d and %d axes",
                                equation, (int)da.rank, (int)db.rank);
    for (int i = 0; i < s.a.count; ++i) {
        int64_t other = dim_of(&db, &s.b, s.a.names[i]);
        if (other >= 0 && other != da.shape[i])
            return leati_graph_fail(g, LEAT_ESHAPE,
                                    "'%s': axis %c has length %lld in one tensor and %lld in the other",
                                    equation, s.a.names[i], (long long)da.shape[i], (long long)other);
    }
    leati_value left = as_matrices(g, a, &s.a, &s, &s.rows, &a_transposed);
    leati_value right = as_matrices(g, b, &s.b, &s, &s.columns, &b_transposed);
    leati_value product = leati_matmul(g, left, a_transposed, right, !b_transposed, LEATI_NONE);
    labels order = s.both;
    int64_t dims[LEAT_MAX_RANK] = {0};
    append(&order, &s.rows);
    append(&order, &s.columns);
    for (int i = 0; i < order.count; ++i) {
        int64_t dim = dim_of(&da, &s.a, order.names[i]);
        dims[i] = dim >= 0 ? dim : dim_of(&db, &s.b, order.names[i]);
    }
    return permuted(g, leati_reshape(g, product, order.count, dims), &order, &s.out);
}
