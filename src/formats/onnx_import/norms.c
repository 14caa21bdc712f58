/* SPDX-License-Identifier: Apache-2.0 */
/* Reads normalizations.  Room: formats. */
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"

/* Returns the image with the channels last, or a tensor (N, C). */
static leati_view channels(leati_import *x, leati_import_value *value) {
    const int rank = value->view_count > 0 ? value->views[0].rank : 0;
    return rank == 2 ? leati_import_natural(x, value) : leati_import_frames(x, value);
}

static leati_import_weight vector_of(leati_import *x, int index, const char *what, int64_t count) {
    const leati_import_tensor *tensor = leati_import_constant_in(x, index, what);
    if (leati_import_ok(x) && (!tensor || tensor->count != count))
        leati_import_refuse(x, "expected a constant of %lld numbers as the %s", (long long)count, what);
    leati_import_weight weight = leati_import_weight_of(tensor);
    weight.rank = 1, weight.dims[0] = count, weight.perm[0] = 0;
    return weight;
}

static void read_batch_normalization(leati_import *x) {
    const leati_view view = channels(x, leati_import_need(x, 0));
    if (!leati_import_ok(x)) return;
    const int64_t count = view.shape.dims[view.shape.rank - 1];
    if (leati_import_int(x, "training_mode", 0) != 0 || leati_import_int(x, "spatial", 1) == 0)
        leati_import_refuse(
            x, "expected the form for predictions, with training_mode 0: export the model in eval mode");
    const leati_import_weight weights[] = {vector_of(x, 1, "scale", count), vector_of(x, 2, "bias", count),
                                           vector_of(x, 3, "mean", count),
                                           vector_of(x, 4, "variance", count)};
    json_t *config = json_pack("{s:f, s:f}", "epsilon", (double)leati_import_real(x, "epsilon", 1e-5f),
                               "momentum", (double)leati_import_real(x, "momentum", 0.9f));
    const leati_view out =
        leati_view_with(x, &view,
                        leati_import_weighted(x, "BatchNormalization", config, 1, &view.source, 4, weights));
    leati_import_set(x, 0, &out);
}

/* ---- Layer normalization ---- */

/* Returns the weight of the normalized axes, which are the last ones of the tensor. */
static leati_import_weight trailing(leati_import *x, int index, const char *what, int count,
                                    const int64_t *dims) {
    leati_import_weight weight = vector_of(x, index, what, leati_shape_count(count, dims));
    weight.rank = count;
    for (int i = 0; i < count; ++i) weight.dims[i] = dims[i], weight.perm[i] = i;
    return weight;
}

static void read_layer_normalization(leati_import *x) {
    const bool rms = strcmp(x->node->op, "RMSNormalization") == 0;
    leati_import_value *value = leati_import_need(x, 0);
    leati_view view = leati_import_settle(x, value, NULL);
    if (!leati_import_ok(x)) return;
    const int axis = leati_import_axis(x, leati_import_int(x, "axis", -1), view.rank),
              count = view.rank - axis;
    int64_t dims[LEAT_MAX_RANK];
    if (count > 1) view = leati_import_natural(x, value);
    json_t *axes = json_array();
    for (int i = 0; i < count && leati_import_ok(x); ++i) {
        const int stored = leati_import_stored(x, &view, axis + i);
        dims[i] = view.shape.dims[stored];
        if (dims[i] < 0) leati_import_refuse(x, "the normalized axes must have fixed sizes");
        if (axes) leati_import_append(&axes, json_integer(stored));
    }
    if (leati_import_is_read(x, 1) || leati_import_is_read(x, 2))
        leati_import_refuse(x, "its further outputs are not supported");
    const bool shifted = !rms && leati_import_in(x, 2);
    const leati_import_weight weights[] = {trailing(x, 1, "scale", count, dims),
                                           shifted ? trailing(x, 2, "bias", count, dims)
                                                   : (leati_import_weight){0}};
    json_t *config =
        json_pack("{s:o, s:f}", "axis", axes, "epsilon", (double)leati_import_real(x, "epsilon", 1e-5f));
    if (config && !rms) leati_import_put_key(&config, "center", json_boolean(shifted));
    const leati_source source = leati_import_weighted(x, rms ? "RMSNormalization" : "LayerNormalization",
                                                      config, 1, &view.source, shifted ? 2 : 1, weights);
    const leati_view out = leati_view_with(x, &view, source);
    leati_import_set(x, 0, &out);
}

/* ---- Groups of channels ---- */

static void read_group_normalization(leati_import *x) {
    const bool instance = strcmp(x->node->op, "InstanceNormalization") == 0;
    const leati_view view = leati_import_channels_last(x, leati_import_need(x, 0));
    if (!leati_import_ok(x)) return;
    const int64_t count = view.shape.dims[view.shape.rank - 1];
    const int64_t groups = instance ? count : leati_import_int(x, "num_groups", 0);
    if (!instance && x->file->opset < 21)
        leati_import_refuse(
            x, "GroupNormalization of opset 18 has one scale for each group; export with opset 21");
    const leati_import_weight weights[] = {vector_of(x, 1, "scale", count), vector_of(x, 2, "bias", count)};
    json_t *config = json_pack("{s:I, s:f}", "groups", (json_int_t)groups, "epsilon",
                               (double)leati_import_real(x, "epsilon", 1e-5f));
    const leati_source source =
        leati_import_weighted(x, "GroupNormalization", config, 1, &view.source, 2, weights);
    const leati_view out = leati_view_with(x, &view, source);
    leati_import_set(x, 0, &out);
}

const leati_import_operator leati_import_norm_operators[] = {
    {"BatchNormalization", read_batch_normalization, NULL},
    {"LayerNormalization", read_layer_normalization, NULL},
    {"RMSNormalization", read_layer_normalization, NULL},
    {"InstanceNormalization", read_group_normalization, NULL},
    {"GroupNormalization", read_group_normalization, NULL},
    {.name = NULL},
};
