/* SPDX-License-Identifier: Apache-2.0 */
/* Converts weights between LSTM and CuDNNLSTM, and between GRU and CuDNNGRU, when a file has the other layer's
 * weights.  Keras does the same. */
#ifndef LEATI_FORMATS_CUDNN_WEIGHTS_H
#define LEATI_FORMATS_CUDNN_WEIGHTS_H

#include "nn/layers/layer.h"

typedef enum leati_conversion { LEATI_NO_CONVERSION, LEATI_FROM_CUDNN, LEATI_TO_CUDNN } leati_conversion;

/* Returns the conversion of a layer's three weights that a file needs whose bias has the type and shape of `stored`. */
leati_conversion leati_cudnn_conversion(const leati_weight *kernel, const leati_weight *recurrent,
                                        const leati_weight *bias, const leat_tensor *stored);

/* Converts a kernel, (inputs, gates * units), in place.  Errors: LEAT_ENOMEM. */
leat_status leati_cudnn_kernel(leati_conversion conversion, float *kernel, int64_t inputs, int64_t gates,
                               int64_t units, leat_error *err);
/* Converts the file's bias, `stored`, to the layer's, `bias`. */
void leati_cudnn_bias(leati_conversion conversion, const float *stored, int64_t gates, int64_t units,
                      float *bias);

#endif
