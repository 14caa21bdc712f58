/* SPDX-License-Identifier: Apache-2.0 */
/* BROADCAST, CONCAT, SLICE, PAD, TRANSPOSE, RESHAPE, REVERSE, COPY and STORE in plain C: ops that copy elements of
 * any type.  Room: backends/ref. */
#include <string.h>

#include "backends/ref/ref.h"
#include "backends/ref/walk.h"
#include "engine/op_semantics/infer.h"

/* Copies dst[offset 0] = src[first + offset 1] over the walk, for elements of `size` bytes. */
static void gather(leati_walk w, const void *src, int64_t first, void *dst, size_t size) {
    const unsigned char *from = (const unsigned char *)src;
    unsigned char *to = dst;
    for (; leati_walk_more(&w); leati_walk_next(&w)) {
        const unsigned char *at = from + (size_t)(first + w.offset[1]) * size;
        unsigned char *where = to + (size_t)w.offset[0] * size;
        if (size == 4)
            memcpy(where, at, 4);
        else
            memcpy(where, at, size);
    }
}

static leat_status run_broadcast(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                 leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    leati_walk w = leati_walk_over(leati_ref_out(ref, 0));
    leati_walk_broadcast(&w, 1, leati_ref_in(ref, 0));
    gather(w, args[0], 0, args[1], leat_dtype_bytes(leati_ref_in(ref, 0)->dtype));
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(broadcast, run_broadcast)

static leat_status run_slice(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *src = leati_ref_in(ref, 0);
    leati_walk w = leati_walk_over(leati_ref_out(ref, 0));
    leati_strides(src, w.stride[1]);
    int64_t first = 0;
    for (int i = 0; i < src->rank; ++i) first += ref->attrs.slice.start[i] * w.stride[1][i];
    gather(w, args[0], first, args[1], leat_dtype_bytes(src->dtype));
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(slice, run_slice)

static leat_status run_transpose(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                 leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *src = leati_ref_in(ref, 0);
    leati_walk w = leati_walk_over(leati_ref_out(ref, 0));
    int64_t stride[LEAT_MAX_RANK] = {0};
    leati_strides(src, stride);
    for (int i = 0; i < src->rank; ++i) w.stride[1][i] = stride[ref->attrs.transpose.perm[i]];
    gather(w, args[0], 0, args[1], leat_dtype_bytes(src->dtype));
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(transpose, run_transpose)

static leat_status run_reverse(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *src = leati_ref_in(ref, 0);
    int axis = ref->attrs.reverse.axis;
    leati_walk w = leati_walk_over(src);
    leati_strides(src, w.stride[1]);
    int64_t first = (src->shape[axis] - 1) * w.stride[1][axis];
    w.stride[1][axis] = -w.stride[1][axis];
    gather(w, args[0], first, args[1], leat_dtype_bytes(src->dtype));
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(reverse, run_reverse)

static leat_status run_pad(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *dst_desc = leati_ref_out(ref, 0);
    const float *src = args[0];
    float *dst = args[1];
    int64_t stride[LEAT_MAX_RANK] = {0}, first = 0, count = leati_desc_count(dst_desc);
    for (int64_t i = 0; i < count; ++i) dst[i] = ref->attrs.pad.value;
    leati_walk w = leati_walk_over(leati_ref_in(ref, 0));
    leati_strides(dst_desc, stride);
    for (int i = 0; i < dst_desc->rank; ++i) {
        w.stride[1][i] = stride[i];
        first += ref->attrs.pad.before[i] * stride[i];
    }
    for (; leati_walk_more(&w); leati_walk_next(&w)) dst[first + w.offset[1]] = src[w.offset[0]];
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(pad, run_pad)

static leat_status run_concat(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    (void)run;
    (void)err;
    const leati_ref *ref = leati_ref_of(kernel);
    const leati_desc *dst = leati_ref_out(ref, 0);
    leati_axis_split whole = leati_split_at(dst, ref->attrs.concat.axis);
    size_t element = (size_t)whole.inner * leat_dtype_bytes(dst->dtype),
           stride = (size_t)whole.length * element;
    unsigned char *to = args[ref->input_count];
    for (int i = 0; i < ref->input_count; ++i) {
        const unsigned char *from = args[i];
        size_t bytes = (size_t)leati_ref_in(ref, i)->shape[ref->attrs.concat.axis] * element;
        for (size_t o = 0; bytes && o < (size_t)whole.outer; ++o)
            memcpy(to + o * stride, from + o * bytes, bytes);
        to += bytes;
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(concat, run_concat)

/* RESHAPE runs only where the plan cannot make it a view of its input. */
static leat_status run_copy(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    (void)run;
    (void)err;
    size_t bytes = leati_ref_of(kernel)->first_bytes;
    if (bytes) memmove(args[1], args[0], bytes);
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(copy, run_copy)
LEATI_REF_ACCEPTS(reshape, run_copy)
LEATI_REF_ACCEPTS(store, run_copy)
