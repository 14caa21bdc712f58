/* SPDX-License-Identifier: Apache-2.0 */
/* Code that several layers share: weights from their configuration, and simple shape rules.  Room: nn. */
#include "nn/layers/common_fields.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

leat_status leati_weight_config_add(leati_layer *layer, const char *name, const leati_weight_config *config,
                                    int rank, const int64_t *dims, leat_error *err) {
    leati_weight_spec spec = {.name = name,
                              .rank = rank,
                              .initializer = config->initializer,
                              .regularizer = &config->regularizer,
                              .constraint = &config->constraint};
    memcpy(spec.dims, dims, (size_t)rank * sizeof *dims);
    return leati_layer_add_weight(layer, &spec, err);
}

leat_status leati_affine_add_bias(leati_layer *layer, const leati_affine *affine, int64_t units,
                                  leat_error *err) {
    return affine->use_bias ? leati_weight_config_add(layer, "bias", &affine->bias, 1, &units, err) : LEAT_OK;
}

leati_value leati_affine_bias(const leati_layer *layer, const leati_affine *affine,
                              const leati_lowering *lowering) {
    return affine->use_bias ? leati_layer_weight(layer, lowering, layer->weight_count - 1) : LEATI_NONE;
}

leat_status leati_infer_same(const leati_layer *layer, int input_count, const leati_shape *inputs,
                             leati_shape *outputs, int *output_count, leat_error *err) {
    (void)layer, (void)input_count, (void)output_count, (void)err;
    outputs[0] = inputs[0];
    return LEAT_OK;
}

leat_status leati_axes_find(const leati_ints *axes, const leati_shape *input, int first, uint32_t *out,
                            leat_error *err) {
    *out = 0;
    for (int i = 0; i < axes->count; ++i) {
        int64_t axis = axes->values[i] < 0 ? axes->values[i] + input->rank : axes->values[i];
        if (axis < first || axis >= input->rank)
            return leati_shape_unexpected(input,
                                          first > 0 ? "an input that has the axis (not the batch axis)"
                                                    : "an input that has the axis",
                                          err);
        *out |= UINT32_C(1) << axis;
    }
    return LEAT_OK;
}

uint32_t leati_axes_of(const leati_ints *axes, int rank) {
    leati_shape shape = {.rank = rank};
    uint32_t found = 0;
    (void)leati_axes_find(axes, &shape, 0, &found, NULL);
    return found;
}

leat_status leati_shape_product(const leati_shape *shape, int from, int64_t *out, leat_error *err) {
    bool known = true;
    *out = 1;
    for (int i = from; i < shape->rank; ++i) {
        if (shape->dims[i] < 0)
            known = false;
        else if (!leati_mul_i64(*out, shape->dims[i], out) || *out > INT32_MAX)
            return leati_shape_unexpected(shape, "fewer than 2147483648 elements in a sample", err);
    }
    if (!known) *out = -1;
    return LEAT_OK;
}
