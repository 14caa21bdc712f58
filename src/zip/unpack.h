/* SPDX-License-Identifier: Apache-2.0 */
/* Decompresses a whole file of gzip or Zstandard into memory, when the unpacked size is not known beforehand. */
#ifndef LEATI_ZIP_UNPACK_H
#define LEATI_ZIP_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "leat/error.h"

/* Returns true if the bytes begin as a file of gzip or Zstandard does. */
bool leati_is_packed(const void *data, size_t bytes);

/* Unpacks a file that leati_is_packed() recognizes.
 * @param[out] out  The unpacked bytes and a zero byte behind them, for leati_free; NULL on failure.
 * Errors: LEAT_EFORMAT the data is damaged or cut off; LEAT_ENOMEM. */
leat_status leati_unpack(unsigned char **out, size_t *out_bytes, const void *data, size_t bytes,
                         const char *label, leat_error *err);

#endif
