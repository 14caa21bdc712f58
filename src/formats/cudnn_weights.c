/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between Keras's two layouts of the weights of recurrent layers.
 * Source: keras.engine.saving, _convert_rnn_weights.  Layer: formats. */
#include "formats/cudnn_weights.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), own = strlen(end);
    return length >= own && strcmp(name + length - own, end) == 0;
}

/* Returns true for the shape (count). */
static bool is_list(int32_t rank, const int64_t *shape, int64_t count) {
    return rank == 1 && shape[0] == count;
}

/* Returns true for the shape (2, count). */
static bool is_rows(int32_t rank, const int64_t *shape, int64_t count) {
    return rank == 2 && shape[0] == 2 && shape[1] == count;
}

leati_conversion leati_cudnn_conversion(const leati_weight *kernel, const leati_weight *recurrent,
                                        const leati_weight *bias, const leat_tensor *stored) {
    if (!ends_with(kernel->name, "kernel") || !ends_with(recurrent->name, "recurrent_kernel") ||
        !ends_with(bias->name, "bias") || recurrent->desc.rank != 2)
        return LEATI_AS_IT_IS;
    const int64_t width = recurrent->desc.shape[1], gates = width / recurrent->desc.shape[0];
    const leati_desc *own = &bias->desc;
    if (gates == 4 && is_list(own->rank, own->shape, width) &&
        is_list(stored->rank, stored->shape, 2 * width))
        return LEATI_FROM_CUDNN;
    if (gates == 4 && is_list(own->rank, own->shape, 2 * width) &&
        is_list(stored->rank, stored->shape, width))
        return LEATI_TO_CUDNN;
    if (gates == 3 && is_rows(own->rank, own->shape, width) &&
        is_list(stored->rank, stored->shape, 2 * width))
        return LEATI_FROM_CUDNN;
    if (gates == 3 && is_list(own->rank, own->shape, 2 * width) &&
        is_rows(stored->rank, stored->shape, width))
        return LEATI_TO_CUDNN;
    return LEATI_AS_IT_IS;
}

/* In memory, cuDNN's kernel of one gate is (units, inputs), although Keras's layer keeps it in an array (inputs, units). */
leat_status leati_cudnn_kernel(leati_conversion conversion, float *kernel, int64_t inputs, int64_t gates,
                               int64_t units, leat_error *err) {
    const int64_t width = gates * units;
    float *from = leati_memdup(kernel, (size_t)(inputs * width) * sizeof *from);
    if (!from) return leati_fail_memory(err, (size_t)(inputs * width) * sizeof *from, "weights");
    for (int64_t row = 0; row < inputs; ++row)
        for (int64_t column = 0; column < width; ++column) {
            int64_t gate = column / units, place = column % units * inputs + row;
            int64_t plain = row * width + column,
                    turned = place / units * width + gate * units + place % units;
            if (conversion == LEATI_FROM_CUDNN)
                kernel[plain] = from[turned];
            else
                kernel[turned] = from[plain];
        }
    leati_free(from);
    return LEAT_OK;
}

void leati_cudnn_bias(leati_conversion conversion, const float *stored, int64_t gates, int64_t units,
                      float *bias) {
    const int64_t width = gates * units;
    if (gates == 3) { /* only the shape differs: (2 * width), or (2, width) */
        memcpy(bias, stored, (size_t)(2 * width) * sizeof *bias);
        return;
    }
    for (int64_t i = 0; i < width; ++i) {
        if (conversion == LEATI_FROM_CUDNN)
            bias[i] = stored[i] + stored[width + i];
        else
            bias[i] = bias[width + i] = 0.5f * stored[i];
    }
}
