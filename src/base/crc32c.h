/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), the checksum of TensorFlow's record files. */
#ifndef LEATI_BASE_CRC32C_H
#define LEATI_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC-32C of the bytes. */
uint32_t leati_crc32c(const void *data, size_t bytes);

/* Returns the masked CRC-32C that a record file stores: a file whose content includes checksums would otherwise have
 * checksums of checksums. */
uint32_t leati_crc32c_masked(const void *data, size_t bytes);

#endif
