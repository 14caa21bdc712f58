/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and filling the sequences of callers that were compiled against another version's header. */
#ifndef LEATI_TENSOR_SEQUENCE_H
#define LEATI_TENSOR_SEQUENCE_H

#include "base/growing.h"
#include "leat/sequence.h"

/* Copies the caller's sequence into a struct of this version.  Errors: those of leati_growing_read; LEAT_EINVAL in
 * is NULL. */
leat_status leati_sequence_read(const leat_sequence *in, leat_sequence *out, leat_error *err);

/* Zeroes the caller's *out of `size` bytes.  Errors: those of leati_growing_fits. */
leat_status leati_sequence_begin(leat_sequence *out, size_t size, leat_error *err);

/* Copies *in, a struct of this version, into the caller's *out of `size` bytes. */
void leati_sequence_write(const leat_sequence *in, leat_sequence *out, size_t size);

/* Checks a specification.  Errors: LEAT_ESHAPE the batch size, the number of tensors, a rank or a dimension;
 * LEAT_EINVAL an unknown part; LEAT_EDTYPE an unknown data type. */
leat_status leati_batch_spec_check(const leat_batch_spec *spec, leat_error *err);

/* Fails because a batch would have too many tensors; says how a model with more inputs can be fed. */
leat_status leati_fail_tensors(leat_error *err);

#endif
