/* SPDX-License-Identifier: Apache-2.0 */
/* Einstein sums of two tensors, as one matrix product, with transpositions if the order of the axes needs them. */
#ifndef LEATI_NN_LAYERS_CORE_EINSUM_H
#define LEATI_NN_LAYERS_CORE_EINSUM_H

#include "engine/graph/build.h"

/* Computes "abc,cd->abd"; each character except ',' and '-' names an axis.  An axis of only one operand must be in
 * the result; axes of both operands that are not in the result are summed over.  The graph keeps failures. */
leati_value leati_einsum(leati_graph *g, const char *equation, leati_value a, leati_value b);

#endif
