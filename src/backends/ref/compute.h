/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the ops that compute most, in plain C: for truth, and where no other backend accepts. */
#ifndef LEATI_BACKENDS_REF_COMPUTE_H
#define LEATI_BACKENDS_REF_COMPUTE_H

#include "engine/backend.h"

leat_status leati_ref_conv(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_ref_conv_bwd_data(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_ref_conv_bwd_weights(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err);
leat_status leati_ref_pooling(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_ref_pooling_bwd(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_ref_batch_norm(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_ref_batch_norm_apply(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err);
leat_status leati_ref_batch_norm_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err);
leat_status leati_ref_lstm(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_ref_lstm_bwd(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);

#endif
