/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of an ONNX graph: weights, numbers and shapes.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/onnx/exporter.h"

void *leati_onnx_allocate(leati_onnx *x, size_t bytes) {
    if (x->failure.code != LEAT_OK) return NULL;
    void *memory = leati_calloc(bytes + 1, 1);
    if (!memory) leati_fail_memory(&x->failure, bytes, "a constant of an ONNX graph");
    return memory;
}

static bool has_room(leati_onnx *x) {
    if (x->initializer_count < x->initializer_capacity) return true;
    int32_t capacity = x->initializer_capacity ? 2 * x->initializer_capacity : 64;
    void *larger = leati_realloc(x->initializers, (size_t)capacity, sizeof *x->initializers);
    if (!larger) {
        leati_fail_memory(&x->failure, (size_t)capacity * sizeof *x->initializers, "an ONNX graph");
        return false;
    }
    x->initializers = larger, x->initializer_capacity = capacity;
    return true;
}

const char *leati_onnx_initialize(leati_onnx *x, const char *wish, const leati_desc *desc, const void *data,
                                  void *owned) {
    const char *name = leati_onnx_name(x, true, wish);
    if (x->failure.code != LEAT_OK || !has_room(x)) return leati_free(owned), "";
    leati_onnx_initializer *item = &x->initializers[x->initializer_count++];
    *item = (leati_onnx_initializer){
        .name = name, .dtype = desc->dtype, .rank = desc->rank, .data = data, .owned = owned};
    memcpy(item->dims, desc->shape, sizeof item->dims);
    return name;
}

/* Returns the initializer of that name; NULL if there is none. */
static const char *find(const leati_onnx *x, const char *name) {
    for (int32_t i = 0; i < x->initializer_count; ++i)
        if (strcmp(x->initializers[i].name, name) == 0) return x->initializers[i].name;
    return NULL;
}

const char *leati_onnx_ints(leati_onnx *x, int count, const int64_t *values) {
    char name[LEAT_MAX_RANK * 2 * 21 + 16];
    size_t used = (size_t)snprintf(name, sizeof name, "ints");
    const int64_t dims[] = {count};
    const leati_desc desc = leati_desc_make(LEAT_I64, 1, dims);
    for (int i = 0; i < count && used < sizeof name; ++i)
        used += (size_t)snprintf(name + used, sizeof name - used, "_%lld", (long long)values[i]);
    const char *known = find(x, name);
    if (known) return known;
    int64_t *copy = leati_onnx_allocate(x, (size_t)count * sizeof *copy);
    if (!copy) return "";
    memcpy(copy, values, (size_t)count * sizeof *copy);
    return leati_onnx_initialize(x, name, &desc, copy, copy);
}

const char *leati_onnx_scalar(leati_onnx *x, float value) {
    char name[48];
    const leati_desc desc = leati_desc_make(LEAT_F32, 0, NULL);
    snprintf(name, sizeof name, "float_%a", (double)value); /* hexadecimal: no two floats share a name */
    const char *known = find(x, name);
    if (known) return known;
    float *copy = leati_onnx_allocate(x, sizeof *copy);
    if (!copy) return "";
    *copy = value;
    return leati_onnx_initialize(x, name, &desc, copy, copy);
}

/* ---- Values of the graph ---- */

/* Returns the value whose memory a value shares through nodes RESHAPE and COPY. */
static leati_value origin_of(const leati_onnx *x, leati_value value) {
    for (;;) {
        const leati_value_info *info = leati_graph_value(x->graph, value);
        const leati_node *maker = info->producer >= 0 ? leati_graph_node_at(x->graph, info->producer) : NULL;
        if (!maker || (maker->op != LEATI_OP_RESHAPE && maker->op != LEATI_OP_COPY)) return value;
        value = maker->inputs[0];
    }
}

const void *leati_onnx_data_of(leati_onnx *x, leati_value value) {
    if (leati_onnx_has_open(x, value)) return NULL;
    value = origin_of(x, value);
    const leati_value_info *info = leati_graph_value(x->graph, value);
    if (info->storage == LEATI_IN_SLAB && info->where.slab == LEATI_SLAB_WEIGHTS) {
        const char *slab = leati_weights_slab(&x->model->weights, LEATI_SLAB_WEIGHTS);
        return slab ? slab + info->where.offset_bytes : NULL;
    }
    if (info->storage != LEATI_IN_CONSTANT) return NULL;
    const leati_value_info *other = leati_graph_value(x->probes[1].graph, value);
    size_t bytes = leati_desc_bytes(&info->desc);
    bool same = leati_desc_same_shape(&info->desc, &other->desc) &&
                memcmp(info->where.constant, other->where.constant, bytes) == 0;
    return same ? info->where.constant : NULL;
}

const char *leati_onnx_wish_of(leati_onnx *x, leati_value value) {
    const leati_value_info *info = leati_graph_value(x->graph, origin_of(x, value));
    const leati_weights *weights = &x->model->weights;
    char wish[2 * LEAT_NAME_BYTES];
    if (info->storage != LEATI_IN_SLAB) return leati_onnx_output(x, "constant");
    for (int32_t i = 0; i < weights->count; ++i) {
        if (weights->entries[i]->offset_bytes != info->where.offset_bytes) continue;
        const char *name = weights->names[i], *colon = strrchr(name, ':');
        snprintf(wish, sizeof wish, "%.*s", colon ? (int)(colon - name) : (int)strlen(name), name);
        return leati_onnx_name(x, false, wish);
    }
    return leati_onnx_output(x, "weight");
}

/* Copies a tensor with its axes permuted. dims: those of the copy; strides: the source's, in elements. */
static void permute(const leati_desc *to, const int64_t *strides, const char *src, char *dst) {
    const size_t size = leati_dtype_bytes(to->dtype);
    int64_t index[LEAT_MAX_RANK] = {0}, from = 0;
    for (int64_t left = leati_desc_count(to); left > 0; --left, dst += size) {
        memcpy(dst, src + (size_t)from * size, size);
        for (int axis = to->rank - 1; axis >= 0; --axis) {
            from += strides[axis];
            if (++index[axis] < to->shape[axis]) break;
            from -= strides[axis] * to->shape[axis], index[axis] = 0;
        }
    }
}

const char *leati_onnx_permuted(leati_onnx *x, leati_value value, const int64_t *perm) {
    const void *data = leati_onnx_data_of(x, value);
    const leati_desc *desc = leati_graph_desc(x->graph, value);
    leati_desc to = *desc;
    int64_t source[LEAT_MAX_RANK] = {0}, strides[LEAT_MAX_RANK] = {0};
    if (!data) return leati_onnx_transposed(x, leati_onnx_plain(x, value), desc->rank, perm);
    for (int i = desc->rank - 1; i >= 0; --i)
        source[i] = i == desc->rank - 1 ? 1 : source[i + 1] * desc->shape[i + 1];
    for (int i = 0; i < desc->rank; ++i) to.shape[i] = desc->shape[perm[i]], strides[i] = source[perm[i]];
    void *copy = leati_onnx_allocate(x, leati_desc_bytes(desc));
    if (!copy) return "";
    permute(&to, strides, data, copy);
    return leati_onnx_initialize(x, leati_onnx_wish_of(x, value), &to, copy, copy);
}
