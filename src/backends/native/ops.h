/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that backends/native serves, and the functions that prepare their kernels. */
#ifndef LEATI_BACKENDS_NATIVE_OPS_H
#define LEATI_BACKENDS_NATIVE_OPS_H

#include "engine/backend.h"

/* Kernels that accept bf16 tensors as well as f32 ones. */
#define LEATI_NATIVE_BF16_LIST(X)                                                                            \
    X(CONV, conv_dense)                                                                                      \
    X(CONV, conv_bfloat16)                                                                                   \
    X(CONV, conv_winograd)                                                                                   \
    X(CONV, conv_product)                                                                                    \
    X(CONV_BWD_DATA, conv_bfloat16)                                                                          \
    X(CONV_BWD_DATA, conv_winograd)                                                                          \
    X(CONV_BWD_DATA, conv_product)                                                                           \
    X(CONV_BWD_WEIGHTS, conv_bwd_weights_winograd)                                                           \
    X(CONV_BWD_WEIGHTS, conv_bwd_weights_product)                                                            \
    X(ELTWISE, eltwise)                                                                                      \
    X(ELTWISE_BWD, eltwise_bwd)                                                                              \
    X(BINARY, binary)                                                                                        \
    X(CAST, cast)                                                                                            \
    X(BATCH_NORM, batch_norm)                                                                                \
    X(BATCH_NORM_APPLY, batch_norm_apply)                                                                    \
    X(BATCH_NORM_BWD, batch_norm_bwd)

#define LEATI_NATIVE_LIST(X)                                                                                 \
    X(MATMUL, matmul)                                                                                        \
    X(MATMUL, dense)                                                                                         \
    X(CONV, conv_few_filters)                                                                                \
    X(CONV, conv_grouped)                                                                                    \
    X(CONV, conv)                                                                                            \
    X(CONV_BWD_DATA, conv_bwd_data_few_channels)                                                             \
    X(CONV_BWD_DATA, conv_bwd_data_grouped)                                                                  \
    X(CONV_BWD_DATA, conv_bwd_data)                                                                          \
    X(CONV_BWD_WEIGHTS, conv_bwd_weights_few_filters)                                                        \
    X(CONV_BWD_WEIGHTS, conv_bwd_weights_grouped)                                                            \
    X(CONV_BWD_WEIGHTS, conv_bwd_weights)                                                                    \
    X(REDUCE, reduce)                                                                                        \
    X(SOFTMAX, softmax)                                                                                      \
    X(SOFTMAX_BWD, softmax_bwd)                                                                              \
    X(SOFTMAX_XENT, softmax_xent)                                                                            \
    X(ARGMAX, argmax)                                                                                        \
    X(IN_TOP_K, in_top_k)                                                                                    \
    X(DROPOUT, dropout)                                                                                      \
    X(RANDOM_NORMAL, random_normal)                                                                          \
    X(GATHER, gather)                                                                                        \
    X(GATHER_BWD, gather_bwd)                                                                                \
    X(ONE_HOT, one_hot)                                                                                      \
    X(CONCAT, concat)                                                                                        \
    X(SLICE, slice)                                                                                          \
    X(PAD, pad)                                                                                              \
    X(TRANSPOSE, transpose)                                                                                  \
    X(BROADCAST, broadcast)                                                                                  \
    X(REVERSE, reverse)                                                                                      \
    X(PATCHES, patches)                                                                                      \
    X(PATCHES_BWD, patches_bwd)                                                                              \
    X(POOLING, pooling)                                                                                      \
    X(POOLING_BWD, pooling_bwd)                                                                              \
    X(RESAMPLE, resample)                                                                                    \
    X(RESAMPLE_BWD, resample_bwd)                                                                            \
    X(GROUP_NORM, group_norm)                                                                                \
    X(GROUP_NORM_BWD, group_norm_bwd)                                                                        \
    X(RNN, rnn)                                                                                              \
    X(RNN_BWD, rnn_bwd)                                                                                      \
    X(LSTM_CELL, lstm_cell)                                                                                  \
    X(LSTM_CELL_BWD, lstm_cell_bwd)                                                                          \
    X(ATTENTION, attention)                                                                                  \
    X(ATTENTION_BWD, attention_bwd)                                                                          \
    X(MOVING_AVERAGE, moving_average)                                                                        \
    X(UPDATE_SGD, update_sgd)                                                                                \
    X(UPDATE_RMSPROP, update_rmsprop)                                                                        \
    X(UPDATE_ADAGRAD, update_adagrad)                                                                        \
    X(UPDATE_ADADELTA, update_adadelta)                                                                      \
    X(UPDATE_ADAM, update_adam)                                                                              \
    X(UPDATE_ADAMAX, update_adamax)                                                                          \
    X(UPDATE_NADAM, update_nadam)                                                                            \
    X(UPDATE_LION, update_lion)

/* One kernel for a group of nodes; kernel->run stays NULL if there is none, and `why` says the reason.  Of a loss; of a
 * depthwise convolution and the one that reads it; of products. */
leat_status leati_native_scaled_xent(const leati_group *group, leati_kernel *kernel, char *why,
                                     leat_error *err);
leat_status leati_native_separable(const leati_group *group, leati_kernel *kernel, char *why,
                                   leat_error *err);
leat_status leati_native_dense_group(const leati_group *group, leati_kernel *kernel, char *why,
                                     leat_error *err);

/* MATMUL whose weights are kept in task->weights_format; kernel->run stays NULL if it does not serve the task. */
leat_status leati_native_narrow_dense(const leati_task *task, leati_kernel *kernel, leat_error *err);

#define LEATI_NATIVE_DECLARED(upper, lower)                                                                  \
    leat_status leati_native_##lower(const leati_task *task, leati_kernel *kernel, char *why,                \
                                     leat_error *err);
LEATI_NATIVE_BF16_LIST(LEATI_NATIVE_DECLARED)
LEATI_NATIVE_LIST(LEATI_NATIVE_DECLARED)
#undef LEATI_NATIVE_DECLARED

#endif
