/* SPDX-License-Identifier: Apache-2.0 */
/* Emits normalizations.  Room: formats. */
#include <stddef.h>

#include "base/memory.h"
#include "engine/op_semantics/group_norm.h"
#include "formats/onnx/exporter.h"

/* Returns a vector of channels; one filled with `number` where the value is absent. */
static const char *channels_of(leati_onnx *x, leati_value value, int64_t count, float number) {
    if (value != LEATI_NONE) return leati_onnx_plain(x, value);
    const leati_desc desc = leati_desc_make(LEAT_F32, 1, &count);
    float *numbers = leati_onnx_allocate(x, leati_desc_bytes(&desc));
    for (int64_t i = 0; numbers && i < count; ++i) numbers[i] = number;
    return numbers ? leati_onnx_initialize(x, number == 0 ? "zeros" : "ones", &desc, numbers, numbers) : "";
}

void leati_onnx_batch_norm(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const leati_desc *src = leati_graph_desc(x->graph, node->inputs[0]);
    const int64_t channels = src->shape[src->rank - 1];
    const char *const inputs[] = {leati_onnx_first(x, node->inputs[0]),
                                  channels_of(x, node->inputs[1], channels, 1),
                                  channels_of(x, node->inputs[2], channels, 0),
                                  leati_onnx_plain(x, node->inputs[3]), leati_onnx_plain(x, node->inputs[4])};
    const leati_onnx_attr attrs[] = {LEATI_ATTR_FLOAT("epsilon", node->attrs.batch_norm.epsilon),
                                     LEATI_ATTR_END};
    leati_onnx_set_first(x, node->outputs[0], leati_onnx_node(x, "BatchNormalization", 5, inputs, attrs));
}

/* ---- GROUP_NORM ---- */

/* One group over the last axis is ONNX's LayerNormalization. */
static void layer_norm(leati_onnx *x, const leati_node *node) {
    const int64_t channels = node->attrs.group_norm.channels;
    const char *const inputs[] = {leati_onnx_plain(x, node->inputs[0]),
                                  channels_of(x, node->inputs[1], channels, 1),
                                  channels_of(x, node->inputs[2], channels, 0)};
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("axis", -1),
                                     LEATI_ATTR_FLOAT("epsilon", node->attrs.group_norm.epsilon),
                                     LEATI_ATTR_END};
    leati_onnx_set_plain(x, node->outputs[0], leati_onnx_node(x, "LayerNormalization", 3, inputs, attrs));
}

/* Returns gamma or beta as (groups, channels / groups). */
static const char *grouped(leati_onnx *x, leati_value value, const leati_group_shape *shape) {
    const int64_t dims[] = {shape->groups, shape->channels / shape->groups};
    return leati_onnx_binary(x, "Reshape", leati_onnx_plain(x, value), leati_onnx_ints(x, 2, dims));
}

static const char *mean_of(leati_onnx *x, const char *name) {
    const int64_t axes[] = {1, 3};
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INTS("axes", 2, axes), LEATI_ATTR_INT("keepdims", 1),
                                     LEATI_ATTR_END};
    return leati_onnx_node(x, "ReduceMean", 1, &name, attrs);
}

/* Returns the source as (rows, places, groups, channels / groups). */
static const char *viewed(leati_onnx *x, const leati_node *node, const leati_group_shape *shape) {
    const leati_value src = node->inputs[0];
    const leati_onnx_size own = leati_onnx_size_of(x, src, 0);
    const bool one_axis = node->attrs.group_norm.samples == 1;
    const leati_group_shape there =
        leati_group_shape_of(&node->attrs, leati_graph_desc(x->probes[1].graph, src));
    const leati_onnx_size to[] = {{{shape->rows, there.rows}},
                                  {{shape->places, there.places}},
                                  {{shape->groups, shape->groups}},
                                  {{shape->channels / shape->groups, shape->channels / shape->groups}}};
    const char *dims = leati_onnx_shape_from(x, one_axis ? 1 : 0, &own, 4, to);
    return leati_onnx_binary(x, "Reshape", leati_onnx_plain(x, src), dims);
}

void leati_onnx_group_norm(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const leati_desc *src = leati_graph_desc(x->graph, node->inputs[0]);
    const leati_group_shape shape = leati_group_shape_of(&node->attrs, src);
    if (node->attrs.group_norm.samples == src->rank - 1 && shape.groups == 1 && shape.places == 1) {
        layer_norm(x, node);
        return;
    }
    const char *view = viewed(x, node, &shape);
    const char *centred = leati_onnx_binary(x, "Sub", view, mean_of(x, view));
    const char *variance = mean_of(x, leati_onnx_binary(x, "Mul", centred, centred));
    const char *epsilon = leati_onnx_scalar(x, node->attrs.group_norm.epsilon);
    const char *deviation = leati_onnx_unary(x, "Sqrt", leati_onnx_binary(x, "Add", variance, epsilon));
    const char *name = leati_onnx_binary(x, "Div", centred, deviation);
    if (node->inputs[1] != LEATI_NONE)
        name = leati_onnx_binary(x, "Mul", name, grouped(x, node->inputs[1], &shape));
    if (node->inputs[2] != LEATI_NONE)
        name = leati_onnx_binary(x, "Add", name, grouped(x, node->inputs[2], &shape));
    const char *dims = leati_onnx_unary(x, "Shape", leati_onnx_plain(x, node->inputs[0]));
    leati_onnx_set_plain(x, node->outputs[0], leati_onnx_binary(x, "Reshape", name, dims));
}
