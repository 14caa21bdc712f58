/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the idx format of MNIST: two zero bytes, a type, a rank, the dimensions, then the elements, all big-endian.
 * Source: yann.lecun.com/exdb/mnist, "the IDX file format". */
#ifndef LEATI_DATA_IDX_H
#define LEATI_DATA_IDX_H

#include "data/array.h"
#include "leat/error.h"

/* Reads the complete content of an idx file.  A file compressed by gzip is unpacked to *unpacked, which is for
 * leati_free; otherwise *unpacked is NULL and out->data points into `data`.  `label` is the file's name in
 * messages. Errors: LEAT_EFORMAT the file is damaged; LEAT_ENOTSUP more than LEAT_MAX_RANK dimensions;
 * LEAT_ENOMEM.  After a failure there is nothing to free. */
leat_status leati_idx_parse(leati_array *out, void **unpacked, const void *data, size_t size,
                            const char *label, leat_error *err);

#endif
