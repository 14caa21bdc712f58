/* SPDX-License-Identifier: Apache-2.0 */
/* FarmHash's Fingerprint64 for texts of at most 32 bytes, SipHash-2-4, and the combination of fingerprints.  Bytes are
 * read in the order of little-endian machines on every machine.  Room: nn. */
#include "nn/layers/preprocessing/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>

/* Room for the decimal text of an int64_t, which has at most 20 characters. */
enum { TEXT_BYTES = 24 };

static uint64_t fetch(const unsigned char *text, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; --i) value = value << 8 | text[i];
    return value;
}

static uint64_t rotated_right(uint64_t x, int bits) {
    return x >> bits | x << (64 - bits);
}

static uint64_t rotated_left(uint64_t x, int bits) {
    return rotated_right(x, 64 - bits);
}

static uint64_t folded(uint64_t x) {
    return x ^ x >> 47;
}

/* ---- FarmHash ---- */

static const uint64_t k0 = UINT64_C(0xc3a5c85c97cb3127), k1 = UINT64_C(0xb492b66fbe98f273),
                      k2 = UINT64_C(0x9ae16a3b2f90404f);

static uint64_t mixed(uint64_t u, uint64_t v, uint64_t factor) {
    uint64_t a = folded((u ^ v) * factor);
    return folded((v ^ a) * factor) * factor;
}

/* Hashes 1 to 32 bytes. */
static uint64_t farm_hash(const unsigned char *text, uint64_t length) {
    const uint64_t factor = k2 + 2 * length;
    const unsigned char *end = text + length;
    if (length > 16) {
        uint64_t a = fetch(text, 8) * k1, b = fetch(text + 8, 8), c = fetch(end - 8, 8) * factor,
                 d = fetch(end - 16, 8) * k2;
        return mixed(rotated_right(a + b, 43) + rotated_right(c, 30) + d, a + rotated_right(b + k2, 18) + c,
                     factor);
    }
    if (length >= 8) {
        uint64_t a = fetch(text, 8) + k2, b = fetch(end - 8, 8);
        return mixed(rotated_right(b, 37) * factor + a, (rotated_right(a, 25) + b) * factor, factor);
    }
    if (length >= 4) return mixed(length + (fetch(text, 4) << 3), fetch(end - 4, 4), factor);
    uint64_t y = text[0] + ((uint64_t)text[length >> 1] << 8), z = length + ((uint64_t)end[-1] << 2);
    return folded(y * k2 ^ z * k0) * k2;
}

/* ---- SipHash ---- */

static void sip_rounds(uint64_t v[4], int rounds) {
    for (; rounds > 0; --rounds) {
        v[0] += v[1], v[2] += v[3];
        v[1] = rotated_left(v[1], 13) ^ v[0], v[3] = rotated_left(v[3], 16) ^ v[2];
        v[0] = rotated_left(v[0], 32);
        v[2] += v[1], v[0] += v[3];
        v[1] = rotated_left(v[1], 17) ^ v[2], v[3] = rotated_left(v[3], 21) ^ v[0];
        v[2] = rotated_left(v[2], 32);
    }
}

static void sip_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_rounds(v, 2);
    v[0] ^= word;
}

static uint64_t sip_hash(const unsigned char *text, uint64_t length, const uint64_t key[2]) {
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t done = 0;
    for (; length - done >= 8; done += 8) sip_word(v, fetch(text + done, 8));
    sip_word(v, length << 56 | fetch(text + done, (int)(length - done)));
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t leati_fingerprint(int64_t number, const uint64_t *key) {
    char text[TEXT_BYTES];
    uint64_t length = (uint64_t)snprintf(text, sizeof text, "%" PRId64, number);
    const unsigned char *bytes = (const unsigned char *)text;
    return key ? sip_hash(bytes, length, key) : farm_hash(bytes, length);
}

/* ---- Combination ---- */

uint64_t leati_fingerprint_join(uint64_t first, uint64_t second) {
    const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t result = (first ^ factor ^ folded(second * factor) * factor) * factor;
    return folded(folded(result) * factor);
}
