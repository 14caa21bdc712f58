/* SPDX-License-Identifier: Apache-2.0 */
/* The prepare functions of all ops that the backend serves.  Each family of ops has a file here for the host's side and
 * a module of the same name in kernels/.  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_OPS_OPS_H
#define LEATI_BACKENDS_CUDA_OPS_OPS_H

#include "backends/cuda/cuda.h"

#define LEATI_CUDA_PREPARE(name)                                                                             \
    leat_status leati_cuda_##name(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err)

/* elementwise.c */
LEATI_CUDA_PREPARE(eltwise);
LEATI_CUDA_PREPARE(eltwise_bwd);
LEATI_CUDA_PREPARE(binary);
LEATI_CUDA_PREPARE(cast);
LEATI_CUDA_PREPARE(dropout);
LEATI_CUDA_PREPARE(random_normal);
/* averages.c: one MOVING_AVERAGE, or a group of them */
LEATI_CUDA_PREPARE(moving_average);
leat_status leati_cuda_prepare_averages(const leati_group *group, leati_kernel *kernel, char *why,
                                        leat_error *err);
/* group.c: several element-wise ops in one kernel */
leat_status leati_cuda_prepare_group(const leati_group *group, leati_kernel *kernel, char *why,
                                     leat_error *err);
/* matmul_group.c: a MATMUL, which is this member of the group, and what follows it or shares its operand */
leat_status leati_cuda_prepare_product(const leati_group *group, int matmul, leati_kernel *kernel, char *why,
                                       leat_error *err);
/* moves.c */
LEATI_CUDA_PREPARE(broadcast);
LEATI_CUDA_PREPARE(concat);
LEATI_CUDA_PREPARE(slice);
LEATI_CUDA_PREPARE(pad);
LEATI_CUDA_PREPARE(transpose);
LEATI_CUDA_PREPARE(reshape);
LEATI_CUDA_PREPARE(reverse);
LEATI_CUDA_PREPARE(copy);
LEATI_CUDA_PREPARE(store);
/* labels.c */
LEATI_CUDA_PREPARE(gather);
LEATI_CUDA_PREPARE(gather_bwd);
LEATI_CUDA_PREPARE(one_hot);
LEATI_CUDA_PREPARE(argmax);
LEATI_CUDA_PREPARE(in_top_k);
/* reduce.c */
LEATI_CUDA_PREPARE(reduce);
/* softmax.c */
LEATI_CUDA_PREPARE(softmax);
LEATI_CUDA_PREPARE(softmax_bwd);
LEATI_CUDA_PREPARE(softmax_xent);
leat_status leati_cuda_prepare_xent(const leati_group *group, leati_kernel *kernel, leat_error *err);
/* update.c */
LEATI_CUDA_PREPARE(update_sgd);
LEATI_CUDA_PREPARE(update_rmsprop);
LEATI_CUDA_PREPARE(update_adagrad);
LEATI_CUDA_PREPARE(update_adadelta);
LEATI_CUDA_PREPARE(update_adam);
LEATI_CUDA_PREPARE(update_adamax);
LEATI_CUDA_PREPARE(update_nadam);
LEATI_CUDA_PREPARE(update_lion);
/* pooling.c */
LEATI_CUDA_PREPARE(pooling);
LEATI_CUDA_PREPARE(pooling_bwd);
/* resample.c */
LEATI_CUDA_PREPARE(resample);
LEATI_CUDA_PREPARE(resample_bwd);
/* patches.c */
LEATI_CUDA_PREPARE(patches);
LEATI_CUDA_PREPARE(patches_bwd);
/* conv.c */
LEATI_CUDA_PREPARE(conv);
LEATI_CUDA_PREPARE(conv_bwd_data);
LEATI_CUDA_PREPARE(conv_bwd_weights);
/* norm.c */
LEATI_CUDA_PREPARE(batch_norm);
LEATI_CUDA_PREPARE(batch_norm_apply);
LEATI_CUDA_PREPARE(batch_norm_bwd);
LEATI_CUDA_PREPARE(group_norm);
LEATI_CUDA_PREPARE(group_norm_bwd);
/* matmul.c */
LEATI_CUDA_PREPARE(matmul);
/* rnn.c */
LEATI_CUDA_PREPARE(rnn);
LEATI_CUDA_PREPARE(rnn_bwd);

#endif
