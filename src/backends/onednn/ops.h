/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that prepare the kernels of backends/onednn. */
#ifndef LEATI_BACKENDS_ONEDNN_OPS_H
#define LEATI_BACKENDS_ONEDNN_OPS_H

#include "engine/backend.h"

leat_status leati_onednn_matmul(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_onednn_conv(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_onednn_conv_bwd_data(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err);
leat_status leati_onednn_conv_bwd_weights(const leati_task *task, leati_kernel *kernel, char *why,
                                          leat_error *err);
leat_status leati_onednn_pooling(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
leat_status leati_onednn_pooling_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err);

#endif
