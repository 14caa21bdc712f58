/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what oneDNN serves.  Layer: backends/onednn. */
#include "backends/onednn/backend.h"

#include "backends/onednn/ops.h"

static const leati_implementation implementations[] = {
    {LEATI_OP_MATMUL, leati_onednn_matmul},
    {LEATI_OP_CONV, leati_onednn_conv},
    {LEATI_OP_CONV_BWD_DATA, leati_onednn_conv_bwd_data},
    {LEATI_OP_CONV_BWD_WEIGHTS, leati_onednn_conv_bwd_weights},
    {LEATI_OP_POOLING, leati_onednn_pooling},
    {LEATI_OP_POOLING_BWD, leati_onednn_pooling_bwd},
    {LEATI_OP_BATCH_NORM, leati_onednn_batch_norm},
    {LEATI_OP_BATCH_NORM_APPLY, leati_onednn_batch_norm_apply},
    {LEATI_OP_BATCH_NORM_BWD, leati_onednn_batch_norm_bwd},
};

const leati_backend leati_backend_onednn = {
    .name = "onednn",
    .implementations = implementations,
    .fuses = true,
    .count = sizeof implementations / sizeof implementations[0],
};
