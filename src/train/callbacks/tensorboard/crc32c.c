/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C, four bits at a time.  Source: RFC 3720, appendix B.4; the mask is that of TensorFlow's record files.
 * Room: train. */
#include "train/callbacks/tensorboard/crc32c.h"

uint32_t leati_crc32c(const void *data, size_t bytes) {
    /* The remainders of the 16 values of four bits, for the reflected polynomial 0x82f63b78. */
    static const uint32_t remainders[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const unsigned char *at = data;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < bytes; ++i) {
        crc ^= at[i];
        crc = remainders[crc & 15] ^ crc >> 4;
        crc = remainders[crc & 15] ^ crc >> 4;
    }
    return ~crc;
}

uint32_t leati_crc32c_masked(const void *data, size_t bytes) {
    uint32_t crc = leati_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}
