/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of the ops in the op table, each defined in ops/<family>.c. */
#ifndef LEATI_ENGINE_OPS_TYPES_H
#define LEATI_ENGINE_OPS_TYPES_H

#include "engine/op_semantics/op.h"

#define LEATI_OP_DESCRIPTOR_DECLARED(upper, lower) extern const leati_op_descriptor leati_op_##lower;
LEATI_OP_LIST(LEATI_OP_DESCRIPTOR_DECLARED)
#undef LEATI_OP_DESCRIPTOR_DECLARED

#endif
