/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the records of TFRecord files. */
#ifndef LEATI_DATA_SHARDS_TFRECORD_H
#define LEATI_DATA_SHARDS_TFRECORD_H

#include "data/archive/window.h"

/* Receives the data of each record and its checksum behind it: `bytes` bytes at `offset`. */
typedef leat_status (*leati_tfrecord_visit)(void *user, uint64_t offset, uint32_t bytes, leat_error *err);

/* Reads the headers of all records and verifies their checksums, not those of the data.
 * Errors: LEAT_EFORMAT no TFRecord file, or damaged, or cut off, with the offset; LEAT_EIO; those of `visit`. */
leat_status leati_tfrecord_scan(leati_window *file, leati_tfrecord_visit visit, void *user, leat_error *err);

#endif
