/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the onednn backend: which ops it serves, and what it can fuse into them.  Room: backends/onednn. */
#include "backends/onednn/backend.h"

#include <stdio.h>

#include "backends/onednn/onednn_compat.h"
#include "backends/onednn/ops.h"

static const leati_implementation implementations[] = {
    {LEATI_OP_MATMUL, leati_onednn_matmul, LEATI_POST_ADD | LEATI_POST_FUNCTION, true},
    {LEATI_OP_CONV, leati_onednn_conv, LEATI_POST_NORM | LEATI_POST_ADD | LEATI_POST_FUNCTION, true},
    {LEATI_OP_CONV_BWD_DATA, leati_onednn_conv_bwd_data, 0, true},
    {LEATI_OP_CONV_BWD_WEIGHTS, leati_onednn_conv_bwd_weights, 0, true},
    {LEATI_OP_POOLING, leati_onednn_pooling, 0, false},
    {LEATI_OP_POOLING_BWD, leati_onednn_pooling_bwd, 0, false},
};

static void name_version(char *out, size_t bytes) {
    const dnnl_version_t *version = dnnl_version();
    snprintf(out, bytes, "%d.%d.%d isa %d", version->major, version->minor, version->patch,
             (int)dnnl_get_effective_cpu_isa());
}

const leati_backend leati_backend_onednn = {
    .name = "onednn",
    .implementations = implementations,
    .count = sizeof implementations / sizeof implementations[0],
    .name_version = name_version,
};
