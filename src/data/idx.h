/* SPDX-License-Identifier: Apache-2.0 */
/* The idx format of MNIST: two zero bytes, a type, a rank, the dimensions, then the numbers, all big-endian.
 * Source: yann.lecun.com/exdb/mnist, "the IDX file format". */
#ifndef LEATI_DATA_IDX_H
#define LEATI_DATA_IDX_H

#include "data/array.h"
#include "leat/error.h"

/* Reads the whole bytes of an idx file, or of one under gzip, which is unpacked to *unpacked (for leati_free; NULL where
 * out->data points into data).
 * Errors: LEAT_EFORMAT damaged; LEAT_ENOTSUP more than LEAT_MAX_RANK dimensions; LEAT_ENOMEM.  After a failure nothing
 * is owed. */
leat_status leati_idx_parse(leati_array *out, void **unpacked, const void *data, size_t size,
                            const char *label, leat_error *err);

#endif
