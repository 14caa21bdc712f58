/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of LSTM and GRU in files of CuDNNLSTM and CuDNNGRU, and the other way round, as Keras converts them. */
#ifndef LEATI_FORMATS_CUDNN_WEIGHTS_H
#define LEATI_FORMATS_CUDNN_WEIGHTS_H

#include "nn/layers/layer.h"

typedef enum leati_conversion { LEATI_AS_IT_IS, LEATI_FROM_CUDNN, LEATI_TO_CUDNN } leati_conversion;

/* What the weights from `kernel` on (kernel, recurrent kernel, bias of a layer) need to be read from a file whose bias is
 * `stored`. */
leati_conversion leati_cudnn_conversion(const leati_weight *kernel, const leati_weight *recurrent,
                                        const leati_weight *bias, const leat_tensor *stored);

/* A kernel (inputs, gates units), in place. */
leat_status leati_cudnn_kernel(leati_conversion conversion, float *kernel, int64_t inputs, int64_t gates,
                               int64_t units, leat_error *err);
/* The stored bias into the layer's. */
void leati_cudnn_bias(leati_conversion conversion, const float *stored, int64_t gates, int64_t units,
                      float *bias);

#endif
