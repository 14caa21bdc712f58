/* SPDX-License-Identifier: Apache-2.0 */
/* Computes constants at import: what depends only on constants and on shapes.  Room: formats. */
#include "formats/onnx_import/fold.h"

#include <string.h>

#include "base/memory.h"

/* ---- Constants ---- */

leati_import_tensor *leati_import_new_constant(leati_import *x, int type, int rank, const int64_t *dims) {
    leati_import_tensor *out = leati_import_memory(x, 1, sizeof *out);
    if (!out) return NULL;
    out->name = "";
    out->type = leati_import_is_real(type)  ? LEATI_IMPORT_FLOAT
                : type == LEATI_IMPORT_BOOL ? LEATI_IMPORT_BOOL
                                            : LEATI_IMPORT_INT64;
    out->rank = rank;
    for (int i = 0; i < rank; ++i) out->dims[i] = dims[i];
    out->count = leati_shape_count(rank, dims);
    out->data = leati_import_memory(x, out->count, sizeof(int64_t));
    return out->data ? out : NULL;
}

static unsigned char *bytes_at(leati_import_tensor *tensor, int64_t index, size_t bytes) {
    return (unsigned char *)(uintptr_t)tensor->data + (size_t)index * bytes;
}

void leati_import_put_int(leati_import_tensor *tensor, int64_t index, int64_t number) {
    const unsigned char flag = number != 0;
    const float real = (float)number;
    if (tensor->type == LEATI_IMPORT_FLOAT)
        memcpy(bytes_at(tensor, index, sizeof real), &real, sizeof real);
    else if (tensor->type == LEATI_IMPORT_BOOL)
        *bytes_at(tensor, index, 1) = flag;
    else
        memcpy(bytes_at(tensor, index, sizeof number), &number, sizeof number);
}

void leati_import_put(leati_import_tensor *tensor, int64_t index, double number) {
    const float real = (float)number;
    if (tensor->type == LEATI_IMPORT_FLOAT)
        memcpy(bytes_at(tensor, index, sizeof real), &real, sizeof real);
    else
        leati_import_put_int(tensor, index,
                             number > -9e18 && number < 9e18 ? (int64_t)number
                             : number < 0                    ? INT64_MIN
                                                             : INT64_MAX);
}

void leati_fold_sizes(leati_import *x, leati_import_tensor *tensor) {
    if (!tensor->sizes) tensor->sizes = leati_import_memory(x, tensor->count, 1);
}

void leati_fold_copy(leati_import_tensor *to, int64_t index, const leati_import_tensor *from,
                     int64_t source) {
    if (to->type == LEATI_IMPORT_FLOAT)
        leati_import_put(to, index, leati_import_number(from, source));
    else
        leati_import_put_int(to, index, leati_import_integer(from, source));
    if (to->sizes)
        ((unsigned char *)(uintptr_t)to->sizes)[index] = from->sizes ? from->sizes[source] : LEATI_SIZE_KNOWN;
}

void leati_fold_strides(const leati_import_tensor *tensor, int64_t strides[LEAT_MAX_RANK]) {
    int64_t stride = 1;
    for (int i = tensor->rank - 1; i >= 0; --i) {
        strides[i] = stride;
        stride *= tensor->dims[i];
    }
}

leati_import_tensor *leati_fold_strided(leati_import *x, const leati_import_tensor *from, int rank,
                                        const int64_t *dims, const int64_t *strides, int64_t base) {
    leati_import_tensor *out = leati_import_new_constant(x, from->type, rank, dims);
    int64_t at[LEAT_MAX_RANK] = {0};
    if (!out) return NULL;
    if (from->sizes) leati_fold_sizes(x, out);
    for (int64_t i = 0; i < out->count; ++i) {
        leati_fold_copy(out, i, from, base);
        for (int k = rank - 1; k >= 0; --k) {
            base += strides[k];
            if (++at[k] < dims[k]) break;
            base -= at[k] * strides[k];
            at[k] = 0;
        }
    }
    return out;
}

leati_import_size leati_import_size_at(const leati_import_tensor *tensor, int64_t index) {
    const int64_t number = leati_import_integer(tensor, index);
    switch (tensor->sizes ? tensor->sizes[index] : LEATI_SIZE_KNOWN) {
    case LEATI_SIZE_BATCH: return (leati_import_size){number, true, false};
    case LEATI_SIZE_OPEN: return (leati_import_size){-1, false, false};
    default: return (leati_import_size){number, false, false};
    }
}

int leati_import_sizes(leati_import *x, const leati_import_tensor *tensor, leati_import_size *out) {
    if (!tensor || tensor->count > LEAT_MAX_RANK || tensor->rank > 1) {
        leati_import_refuse(x, "expected a shape of at most %d sizes", LEAT_MAX_RANK);
        return -1;
    }
    for (int64_t i = 0; i < tensor->count; ++i) out[i] = leati_import_size_at(tensor, i);
    return (int)tensor->count;
}

/* ---- Shapes ---- */

/* Returns the shape of input 0 as a constant. */
static const leati_import_tensor *fold_shape(leati_import *x) {
    const leati_import_value *value = leati_import_need(x, 0);
    const leati_import_tensor *constant = value->constant;
    if (!leati_import_ok(x) || (!constant && value->view_count == 0)) return NULL;
    const int rank = constant ? constant->rank : value->views[0].rank;
    int64_t start = leati_import_int(x, "start", 0), end = leati_import_int(x, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    if (start < 0) start = 0;
    if (end > rank) end = rank;
    const int64_t count = end > start ? end - start : 0;
    leati_import_tensor *out = leati_import_new_constant(x, LEATI_IMPORT_INT64, 1, &count);
    unsigned char *sizes = leati_import_memory(x, count, 1);
    if (!out || !sizes) return NULL;
    out->sizes = sizes;
    for (int64_t i = 0; i < count; ++i) {
        const int axis = (int)(start + i);
        leati_import_size size = {constant ? constant->dims[axis] : 0,
                                  constant && constant->spread >> axis & 1u, false};
        if (!constant) size = leati_view_size(&value->views[0], axis);
        sizes[i] = size.open ? LEATI_SIZE_OPEN : size.batch ? LEATI_SIZE_BATCH : LEATI_SIZE_KNOWN;
        leati_import_put_int(out, i, size.count);
        if (size.batch && !size.open && x->fixed_batch > 0 && !constant) sizes[i] = LEATI_SIZE_BATCH;
    }
    return out;
}

static const leati_import_tensor *fold_size(leati_import *x) {
    const leati_import_tensor *shape = fold_shape(x);
    leati_import_tensor *out = leati_import_new_constant(x, LEATI_IMPORT_INT64, 0, NULL);
    int64_t total = 1;
    bool batch = false, open = false;
    if (!shape || !out) return NULL;
    for (int64_t i = 0; i < shape->count; ++i) {
        total = leati_mul_saturated(total, leati_import_integer(shape, i));
        batch = batch || shape->sizes[i] == LEATI_SIZE_BATCH;
        open = open || shape->sizes[i] == LEATI_SIZE_OPEN;
    }
    leati_import_put_int(out, 0, total);
    leati_fold_sizes(x, out);
    if (out->sizes)
        *(unsigned char *)(uintptr_t)out->sizes = open    ? LEATI_SIZE_OPEN
                                                  : batch ? LEATI_SIZE_BATCH
                                                          : LEATI_SIZE_KNOWN;
    return out;
}

/* ---- Constant ---- */

static const leati_import_tensor *list_of_ints(leati_import *x, int rank, int64_t count,
                                               const int64_t *values) {
    leati_import_tensor *out = leati_import_new_constant(x, LEATI_IMPORT_INT64, rank, &count);
    for (int64_t i = 0; out && i < count; ++i) leati_import_put_int(out, i, values[i]);
    return out;
}

static const leati_import_tensor *list_of_reals(leati_import *x, int rank, int64_t count,
                                                const float *values) {
    leati_import_tensor *out = leati_import_new_constant(x, LEATI_IMPORT_FLOAT, rank, &count);
    for (int64_t i = 0; out && i < count; ++i) leati_import_put(out, i, (double)values[i]);
    return out;
}

static const leati_import_tensor *fold_constant(leati_import *x) {
    const leati_import_attr *attr = x->node->attr_count > 0 ? &x->node->attrs[0] : NULL;
    if (attr && attr->tensor) return attr->tensor;
    if (attr && strcmp(attr->name, "value_int") == 0) return list_of_ints(x, 0, 1, &attr->number);
    if (attr && strcmp(attr->name, "value_ints") == 0) return list_of_ints(x, 1, attr->int_count, attr->ints);
    if (attr && strcmp(attr->name, "value_float") == 0) return list_of_reals(x, 0, 1, &attr->real);
    if (attr && strcmp(attr->name, "value_floats") == 0)
        return list_of_reals(x, 1, attr->real_count, attr->reals);
    leati_import_refuse(x, "expected a constant of numbers");
    return NULL;
}

/* ---- The node ---- */

int leati_fold_detail(const leati_fold_operator *table, const char *name) {
    for (; table->name; ++table)
        if (strcmp(table->name, name) == 0) return table->detail;
    return 0;
}

static bool all_constant(leati_import *x) {
    for (int i = 0; i < x->node->input_count; ++i) {
        const leati_import_value *value = leati_import_in(x, i);
        if (value && !value->constant) return false;
    }
    return x->node->input_count > 0;
}

static const leati_fold_operator *find(const char *name) {
    const leati_fold_operator *const tables[] = {leati_fold_moves, leati_fold_computations};
    for (int t = 0; t < 2; ++t)
        for (const leati_fold_operator *at = tables[t]; at->name; ++at)
            if (strcmp(at->name, name) == 0) return at;
    return NULL;
}

bool leati_import_fold(leati_import *x) {
    const char *op = x->node->op;
    const leati_import_tensor *out = NULL;
    if (strcmp(op, "Constant") == 0)
        out = fold_constant(x);
    else if (strcmp(op, "Shape") == 0)
        out = fold_shape(x);
    else if (strcmp(op, "Size") == 0)
        out = fold_size(x);
    else if (find(op) && all_constant(x) && leati_import_ok(x))
        out = find(op)->fold(x);
    if (!out || !leati_import_ok(x)) return false;
    leati_import_set_constant(x, 0, out);
    return true;
}
