/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that are open in the exported graph: taken from the shapes of its tensors.  Room: formats. */
#include "formats/onnx/exporter.h"

leati_onnx_size leati_onnx_size_of(const leati_onnx *x, leati_value value, int axis) {
    return (leati_onnx_size){{leati_graph_desc(x->probes[0].graph, value)->shape[axis],
                              leati_graph_desc(x->probes[1].graph, value)->shape[axis]}};
}

bool leati_onnx_has_open(const leati_onnx *x, leati_value value) {
    for (int axis = 0; axis < leati_graph_desc(x->graph, value)->rank; ++axis)
        if (leati_onnx_is_open(leati_onnx_size_of(x, value, axis))) return true;
    return false;
}

static bool is_same(leati_onnx_size a, leati_onnx_size b) {
    return a.at[0] == b.at[0] && a.at[1] == b.at[1];
}

/* Returns a tensor of one integer: the size of an axis of an earlier value that has this size.  Inputs of the model
 * come first, because their values have the lowest numbers. */
static const char *size_of_some_value(leati_onnx *x, leati_onnx_size size) {
    const int32_t count = leati_graph_value_count(x->graph);
    for (leati_value value = 0; value < count; ++value) {
        const leati_onnx_forms *forms = &x->forms[value];
        const int rank = leati_graph_desc(x->graph, value)->rank;
        if (!forms->plain && !forms->first) continue;
        for (int axis = 0; axis < rank; ++axis) {
            if (!is_same(leati_onnx_size_of(x, value, axis), size)) continue;
            const int place = leati_onnx_axis(rank, axis, !forms->plain);
            const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("start", place), LEATI_ATTR_INT("end", place + 1),
                                             LEATI_ATTR_END};
            return leati_onnx_node(x, "Shape", 1, forms->plain ? &forms->plain : &forms->first, attrs);
        }
    }
    return leati_onnx_refuse(x, "an open size of this layer cannot be computed in ONNX; give the inputs of "
                                "the model fixed sizes, apart from the batch");
}

const char *leati_onnx_shape(leati_onnx *x, int count, const leati_onnx_size *sizes) {
    int64_t fixed[LEAT_MAX_RANK];
    const char *parts[LEAT_MAX_RANK];
    bool open = false;
    for (int i = 0; i < count; ++i) open |= leati_onnx_is_open(sizes[i]), fixed[i] = sizes[i].at[0];
    if (!open) return leati_onnx_ints(x, count, fixed);
    for (int i = 0; i < count; ++i)
        parts[i] = fixed[i] >= 0 && leati_onnx_is_open(sizes[i]) ? size_of_some_value(x, sizes[i])
                                                                 : leati_onnx_ints(x, 1, &fixed[i]);
    if (count == 1) return parts[0];
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("axis", 0), LEATI_ATTR_END};
    return leati_onnx_node(x, "Concat", count, parts, attrs);
}

/* In a Reshape, 0 copies the size of the same axis, and one -1 stands for what is left. */
const char *leati_onnx_shape_from(leati_onnx *x, int from_count, const leati_onnx_size *from, int count,
                                  const leati_onnx_size *to) {
    leati_onnx_size sizes[LEAT_MAX_RANK];
    bool has_rest = false;
    for (int i = 0; i < count; ++i) {
        sizes[i] = to[i];
        if (!leati_onnx_is_open(to[i])) continue;
        if (i < from_count && is_same(from[i], to[i]))
            sizes[i] = (leati_onnx_size){{0, 0}};
        else if (!has_rest)
            sizes[i] = (leati_onnx_size){{-1, -1}}, has_rest = true;
    }
    return leati_onnx_shape(x, count, sizes);
}
