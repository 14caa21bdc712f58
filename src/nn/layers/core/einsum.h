/* SPDX-License-Identifier: Apache-2.0 */
/* Einstein's sums of two tensors, as one matrix product with transpositions around it where the order asks for them. */
#ifndef LEATI_NN_LAYERS_CORE_EINSUM_H
#define LEATI_NN_LAYERS_CORE_EINSUM_H

#include "engine/graph/build.h"

/* "abc,cd->abd": any character but ',' and '-' names an axis.  An axis of one operand alone must be in the result; axes of
 * both that are not in the result are summed over.  Failures are kept by the graph. */
leati_value leati_einsum(leati_graph *g, const char *equation, leati_value a, leati_value b);

#endif
