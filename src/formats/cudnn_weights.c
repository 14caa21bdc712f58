/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between Keras's two layouts of the weights of recurrent layers.
 * Source: keras.engine.saving, _convert_rnn_weights.  Room: formats. */
#include "formats/cudnn_weights.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
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
        return LEATI_NO_CONVERSION;
    const int64_t width = recurrent->desc.shape[1], gates = width / recurrent->desc.shape[0];
    const leati_desc *expected = &bias->desc;
    if (gates == 4 && is_list(expected->rank, expected->shape, width) &&
        is_list(stored->rank, stored->shape, 2 * width))
        return LEATI_FROM_CUDNN;
    if (gates == 4 && is_list(expected->rank, expected->shape, 2 * width) &&
        is_list(stored->rank, stored->shape, width))
        return LEATI_TO_CUDNN;
    if (gates == 3 && is_rows(expected->rank, expected->shape, width) &&
        is_list(stored->rank, stored->shape, 2 * width))
        return LEATI_FROM_CUDNN;
    if (gates == 3 && is_list(expected->rank, expected->shape, 2 * width) &&
        is_rows(stored->rank, stored->shape, width))
        return LEATI_TO_CUDNN;
    return LEATI_NO_CONVERSION;
}

/* In memory, cuDNN's kernel of one gate is (units, inputs), although Keras's layer keeps it in an array (inputs,
 * units). */
leat_status leati_cudnn_kernel(leati_conversion conversion, float *kernel, int64_t inputs, int64_t gates,
                               int64_t units, leat_error *err) {
    const int64_t width = gates * units;
    float *original = leati_memdup(kernel, (size_t)(inputs * width) * sizeof *original);
    if (!original) return leati_fail_memory(err, (size_t)(inputs * width) * sizeof *original, "weights");
    for (int64_t row = 0; row < inputs; ++row)
        for (int64_t column = 0; column < width; ++column) {
            int64_t gate = column / units, position = column % units * inputs + row;
            int64_t in_keras = row * width + column,
                    in_cudnn = position / units * width + gate * units + position % units;
            if (conversion == LEATI_FROM_CUDNN)
                kernel[in_keras] = original[in_cudnn];
            else
                kernel[in_cudnn] = original[in_keras];
        }
    leati_free(original);
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
