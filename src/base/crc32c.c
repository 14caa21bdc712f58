/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C: four bits at a time, and eight bytes at a time for much data.  Source: RFC 3720, appendix B.4;
 * the mask is that
 * of TensorFlow's record files.  Room: base. */
#include "base/crc32c.h"

#include <string.h>

/* From this size on it is worth to compute tables for eight bytes at a time. */
enum { MUCH_BYTES = 16 << 10 };

/* The remainders of the 16 values of four bits, for the reflected polynomial 0x82f63b78. */
static const uint32_t remainders[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t add_byte(uint32_t crc, unsigned char byte) {
    crc ^= byte;
    crc = remainders[crc & 15] ^ crc >> 4;
    return remainders[crc & 15] ^ crc >> 4;
}

/* Adds the bytes of all whole groups of eight; *data then points behind them. */
static uint32_t add_groups(uint32_t crc, const unsigned char **data, size_t groups) {
    uint32_t tables[8][256]; /* tables[k][b]: the remainder of the byte b with k zero bytes behind it */
    for (unsigned i = 0; i < 256; ++i) tables[0][i] = add_byte(0, (unsigned char)i);
    for (int k = 1; k < 8; ++k)
        for (unsigned i = 0; i < 256; ++i)
            tables[k][i] = tables[0][tables[k - 1][i] & 255] ^ tables[k - 1][i] >> 8;
    for (; groups > 0; --groups, *data += 8) {
        uint64_t bytes; /* the first in the lowest byte */
        memcpy(&bytes, *data, 8);
        bytes ^= crc;
        crc = 0;
        for (int k = 0; k < 8; ++k) crc ^= tables[7 - k][bytes >> (8 * k) & 255];
    }
    return crc;
}

uint32_t leati_crc32c(const void *data, size_t bytes) {
    const unsigned char *at = data, *end = at + bytes;
    uint32_t crc = UINT32_MAX;
    if (bytes >= MUCH_BYTES) crc = add_groups(crc, &at, bytes / 8);
    for (; at < end; ++at) crc = add_byte(crc, *at);
    return ~crc;
}

uint32_t leati_crc32c_masked(const void *data, size_t bytes) {
    uint32_t crc = leati_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}
