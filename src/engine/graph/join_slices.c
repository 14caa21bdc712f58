/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a value of which only slices are read.  The rule of SLICE alone pads each gradient to the size of the
 * whole value and adds them all up: for the four gates of an LSTM 8 tensors of the full size are written and read.
 * Slices that do not overlap are joined by one CONCAT instead.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/graph/graph_private.h"

/* Returns the only axis along which the slice is shorter than its source; -1 if there is no such axis. */
static int sliced_axis(const leati_desc *src, const leati_attrs *attrs) {
    int axis = -1;
    for (int i = 0; i < src->rank; ++i) {
        if (attrs->slice.size[i] == src->shape[i]) continue;
        if (axis >= 0) return -1;
        axis = i;
    }
    return axis;
}

static leati_value zeros(leati_graph *g, const leati_desc *like, int axis, int64_t size) {
    leati_desc desc = *like;
    desc.shape[axis] = size;
    return leati_full(g, desc.rank, desc.shape, 0.0f);
}

/* Sorts the slices by where they begin; there are few. */
static void sort(int count, leati_sliced *slices, int axis) {
    for (int i = 1; i < count; ++i)
        for (int k = i; k > 0 && slices[k].attrs->slice.start[axis] < slices[k - 1].attrs->slice.start[axis];
             --k) {
            leati_sliced kept = slices[k];
            slices[k] = slices[k - 1];
            slices[k - 1] = kept;
        }
}

/* Returns how many parts the whole value has, gaps between the sorted slices included; 0 if two slices overlap. */
static int count_parts(int count, const leati_sliced *slices, int axis, int64_t length) {
    int parts = count;
    int64_t end = 0;
    for (int i = 0; i < count; ++i) {
        const int64_t start = slices[i].attrs->slice.start[axis];
        if (start < end) return 0;
        parts += start > end;
        end = start + slices[i].attrs->slice.size[axis];
    }
    return parts + (end < length);
}

leati_value leati_graph_join_slices(leati_graph *g, leati_value value, int count, leati_sliced *slices) {
    const leati_desc src = *leati_graph_desc(g, value);
    const int axis = sliced_axis(&src, slices[0].attrs);
    if (axis < 0 || count < 2) return LEATI_NONE;
    for (int i = 1; i < count; ++i)
        if (sliced_axis(&src, slices[i].attrs) != axis) return LEATI_NONE;
    sort(count, slices, axis);
    const int wanted = count_parts(count, slices, axis, src.shape[axis]);
    if (wanted < 2 || wanted > LEATI_MAX_CONCAT) return LEATI_NONE;
    leati_value parts[LEATI_MAX_CONCAT];
    int used = 0;
    int64_t end = 0;
    for (int i = 0; i < count; ++i) {
        const int64_t start = slices[i].attrs->slice.start[axis];
        if (start > end) parts[used++] = zeros(g, &src, axis, start - end);
        parts[used++] = slices[i].diff;
        end = start + slices[i].attrs->slice.size[axis];
    }
    if (end < src.shape[axis]) parts[used++] = zeros(g, &src, axis, src.shape[axis] - end);
    return leati_concat(g, used, parts, axis);
}
