/* SPDX-License-Identifier: Apache-2.0 */
/* Groups with a MATMUL: the gradient of a Dense layer with respect to its input, times the slope of the function before
 * it; the gradient with respect to its weights, and to its bias.  Room: backends/cuda. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/ops/matmul.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"

/* Adds what another member computes. */
static void add_member(const leati_group *group, const leati_group_member *member, leati_cuda_product *p) {
    if (member->op == LEATI_OP_ELTWISE_BWD) {
        p->has_slope = true;
        p->function = member->attrs->eltwise;
        p->slope_arg = member->operands[0];
        p->slope = group->inputs[p->slope_arg].dtype;
    }
    if (member->op == LEATI_OP_REDUCE) {
        p->has_row_sums = true;
        p->row_sums_arg = group->input_count + member->output;
        p->row_sums = group->outputs[member->output].dtype;
    }
}

/* Sets *own to true if own kernels compute the product itself at least as fast as cuBLASLt. */
static leat_status is_own(leati_cuda *cuda, const leati_group *group, const leati_cuda_product *p, bool *own,
                          char *why, leat_error *err) {
    int candidate = 0;
    *own = leati_cuda_matmul_is_small(cuda, p);
    if (*own || group->deterministic) return LEAT_OK;
    LEATI_TRY(leati_cuda_matmul_choose(cuda, p, &candidate, why, err));
    *own = candidate == LEATI_CUDA_MATMUL_OWN;
    return LEAT_OK;
}

leat_status leati_cuda_prepare_product(const leati_group *group, int matmul, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(group->device);
    const leati_task task = {.op = LEATI_OP_MATMUL,
                             .attrs = group->members[matmul].attrs,
                             .input_count = 2,
                             .output_count = 1,
                             .inputs = group->inputs,
                             .outputs = &group->outputs[0],
                             .device = group->device};
    leati_cuda_product p = leati_cuda_product_of(&task);
    bool own = false;
    p.out_arg = group->input_count;
    if (p.count * p.m * p.n > 0) LEATI_TRY(is_own(cuda, group, &p, &own, why, err));
    if (!own) {
        snprintf(why, LEATI_REASON_BYTES, "a product for cuBLASLt");
        return LEAT_OK;
    }
    for (int m = 0; m < group->length; ++m) add_member(group, &group->members[m], &p);
    LEATI_TRY(leati_cuda_matmul_own(cuda, &p, kernel, err));
    size_t length = strlen(kernel->implementation);
    snprintf(kernel->implementation + length, sizeof kernel->implementation - length, ", %d ops in one",
             group->length);
    return LEAT_OK;
}
