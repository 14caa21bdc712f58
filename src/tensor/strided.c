/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over strided memory, and leat_tensor_copy.  Room: tensor. */
#include "tensor/strided.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/convert.h"

leati_strides leati_strides_make(size_t element_bytes, int rank, const int64_t *shape,
                                 const int64_t *strides) {
    leati_strides out = {.bytes = element_bytes};
    int64_t dense[LEAT_MAX_RANK], step = (int64_t)element_bytes;
    for (int i = rank; i-- > 0; step *= shape[i]) dense[i] = step;
    const int64_t *source_strides = strides ? strides : dense;
    for (int i = 0; i < rank; ++i) {
        if (shape[i] == 1) continue;
        const int last = out.rank - 1;
        if (last >= 0 && out.stride[last] == source_strides[i] * shape[i]) {
            out.shape[last] *= shape[i];
            out.stride[last] = source_strides[i];
            continue;
        }
        out.shape[out.rank] = shape[i];
        out.stride[out.rank++] = source_strides[i];
    }
    return out;
}

bool leati_strides_are_dense(const leati_strides *strides) {
    return strides->rank == 0 || (strides->rank == 1 && strides->stride[0] == (int64_t)strides->bytes);
}

leati_strided_walk leati_strided_begin(const leati_strides *over, const void *data) {
    return (leati_strided_walk){.over = over, .at = data};
}

/* Copies count elements along one dimension.  The size of memcpy is a constant in each loop, so that it becomes a
 * load and a store. */
static void copy_run(const unsigned char *src, int64_t stride, size_t bytes, unsigned char *dst,
                     int64_t count) {
#define RUN(size)                                                                                            \
    for (int64_t i = 0; i < count; ++i) memcpy(dst + i * (size), src + i * stride, size);                    \
    return
    if (stride == (int64_t)bytes) {
        memcpy(dst, src, (size_t)count * bytes);
        return;
    }
    switch (bytes) {
    case 1: RUN(1);
    case 2: RUN(2);
    case 4: RUN(4);
    default: RUN(8);
    }
#undef RUN
}

/* Moves on by `count` elements along the last dimension, at most to its end. */
static void advance(leati_strided_walk *walk, int64_t count) {
    const leati_strides *over = walk->over;
    int d = over->rank - 1;
    walk->at += count * over->stride[d];
    walk->index[d] += count;
    while (walk->index[d] == over->shape[d]) {
        walk->at -= over->shape[d] * over->stride[d];
        walk->index[d] = 0;
        if (--d < 0) return;
        walk->at += over->stride[d];
        ++walk->index[d];
    }
}

void leati_strided_take(leati_strided_walk *walk, void *dst, int64_t count) {
    const leati_strides *over = walk->over;
    const int d = over->rank - 1;
    unsigned char *to = dst;
    if (d < 0 && count > 0) memcpy(dst, walk->at, over->bytes);
    while (d >= 0 && count > 0) {
        int64_t left = over->shape[d] - walk->index[d], run = left < count ? left : count;
        copy_run(walk->at, over->stride[d], over->bytes, to, run);
        advance(walk, run);
        to += (size_t)run * over->bytes;
        count -= run;
    }
}

static leat_status check(const leat_tensor *tensor, const char *operand, leat_error *err) {
    if (leat_dtype_bytes(tensor->dtype) == 0)
        return leati_fail(err, LEAT_EDTYPE, "%s has the unknown data type %d", operand, (int)tensor->dtype);
    if (tensor->rank < 0 || tensor->rank > LEAT_MAX_RANK)
        return leati_fail(err, LEAT_ESHAPE, "%s has rank %d, expected 0 to %d", operand, (int)tensor->rank,
                          LEAT_MAX_RANK);
    for (int i = 0; i < tensor->rank; ++i)
        if (tensor->shape[i] < 0)
            return leati_fail(err, LEAT_ESHAPE, "dimension %d of %s is %lld, expected at least 0", i, operand,
                              (long long)tensor->shape[i]);
    if (!tensor->data && leat_tensor_count(tensor) > 0)
        return leati_fail(err, LEAT_EINVAL, "%s has no data", operand);
    return LEAT_OK;
}

static leat_status check_shapes(const leat_tensor *dst, const leat_tensor *src, leat_error *err) {
    bool same = dst->rank == src->rank;
    for (int i = 0; same && i < src->rank; ++i) same = dst->shape[i] == src->shape[i];
    if (same) return LEAT_OK;
    char expected[128], received[128];
    return leati_fail(err, LEAT_ESHAPE, "expected a source of the target's shape %s, received %s",
                      leati_shape_text(expected, sizeof expected, dst->rank, dst->shape),
                      leati_shape_text(received, sizeof received, src->rank, src->shape));
}

leat_status leat_tensor_copy(const leat_tensor *dst, const leat_tensor *src, const int64_t *strides,
                             leat_error *err) {
    LEATI_GIVEN(dst, err);
    LEATI_GIVEN(src, err);
    LEATI_TRY(check(dst, "the target", err));
    LEATI_TRY(check(src, "the source", err));
    LEATI_TRY(check_shapes(dst, src, err));
    if (!dst->data || !src->data) return LEAT_OK; /* NULL: check has verified that there are no elements */
    enum { run = 512 };
    uint64_t buffer[run]; /* aligned for every type */
    const int64_t count = leat_tensor_count(src);
    const size_t dst_bytes = leat_dtype_bytes(dst->dtype);
    const leati_strides over =
        leati_strides_make(leat_dtype_bytes(src->dtype), src->rank, src->shape, strides);
    leati_strided_walk walk = leati_strided_begin(&over, src->data);
    if (dst->dtype == src->dtype) {
        leati_strided_take(&walk, dst->data, count);
        return LEAT_OK;
    }
    for (int64_t i = 0; i < count; i += run) {
        const int64_t n = count - i < run ? count - i : run;
        leati_strided_take(&walk, buffer, n);
        leati_convert(dst->dtype, (unsigned char *)dst->data + (size_t)i * dst_bytes, src->dtype, buffer,
                      (size_t)n);
    }
    return LEAT_OK;
}
