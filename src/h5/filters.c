/* SPDX-License-Identifier: Apache-2.0 */
/* The filters of chunks: deflate, shuffle and fletcher32 (section IV.A.2.l).  Room: h5. */
#include <string.h>

#include "base/memory.h"
#include "h5/reader.h"
#include "zip/inflate.h"

enum { filter_deflate = 1, filter_shuffle = 2, filter_fletcher32 = 3, checksum_bytes = 4 };

static bool parse_filter(leati_h5_reader *r, leati_h5_cursor *c, int version, unsigned *id) {
    *id = (unsigned)leati_h5_take(c, 2);
    size_t name_bytes = version == 1 || *id >= 256 ? (size_t)leati_h5_take(c, 2) : 0;
    leati_h5_skip(c, 2);
    size_t values = (size_t)leati_h5_take(c, 2);
    leati_h5_skip(c, version == 1 ? (name_bytes + 7) / 8 * 8 : name_bytes);
    leati_h5_skip(c, 4 * (values + (version == 1 ? values % 2 : 0)));
    if (c->cut_off) return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a filter message is cut off");
    if (*id >= filter_deflate && *id <= filter_fletcher32) return true;
    return leati_h5_refused(
        r, "the dataset is compressed by a filter other than gzip, shuffle and fletcher32, which "
           "is not supported; write it without compression");
}

bool leati_h5_parse_filters(leati_h5_reader *r, const leati_h5_header *header, leati_h5_filters *out) {
    const leati_h5_message *m = leati_h5_message_of(header, LEATI_H5_FILTERS);
    *out = (leati_h5_filters){0};
    if (!m) return true;
    if (!leati_h5_message_usable(r, m)) return false;
    leati_h5_cursor c = leati_h5_cursor_make(m->data, m->bytes);
    int version = (int)leati_h5_take(&c, 1);
    out->count = (size_t)leati_h5_take(&c, 1);
    if (version < 1 || version > 2 || out->count > sizeof out->ids / sizeof *out->ids)
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a filter message is damaged");
    if (version == 1) leati_h5_skip(&c, 6);
    for (size_t i = 0; i < out->count; ++i)
        if (!parse_filter(r, &c, version, &out->ids[i])) return false;
    return true;
}

/* Replaces *data by the unpacked bytes. */
static bool undo_deflate(leati_h5_reader *r, unsigned char **data, size_t packed, size_t bytes) {
    leati_inflater inflater;
    if (!leati_inflate_plausible(packed, bytes))
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a chunk is larger than deflate allows");
    unsigned char *unpacked = leati_calloc(bytes ? bytes : 1, 1);
    if (!unpacked) return leati_h5_no_memory(r);
    leat_status status = leati_inflate_begin(&inflater, LEATI_DEFLATE_ZLIB, *data, packed, "", NULL);
    if (status == LEAT_OK) {
        status = leati_inflate_read(&inflater, unpacked, bytes, NULL);
        if (status == LEAT_OK) status = leati_inflate_finish(&inflater, NULL);
        leati_inflate_end(&inflater);
    }
    leati_free(*data);
    *data = unpacked;
    if (status == LEAT_ENOMEM) return leati_h5_no_memory(r);
    return status == LEAT_OK ||
           leati_h5_damaged(r, LEATI_H5_UNDEFINED, "the compressed data of a chunk is damaged");
}

/* Brings the bytes of each element together: shuffled data has first bytes first, then second bytes, and so on. */
static bool undo_shuffle(leati_h5_reader *r, unsigned char **data, size_t bytes, size_t element) {
    if (element <= 1) return true;
    unsigned char *ordered = leati_memdup(*data, bytes ? bytes : 1); /* bytes of no complete element stay */
    if (!ordered) return leati_h5_no_memory(r);
    size_t count = bytes / element;
    for (size_t k = 0; k < element; ++k)
        for (size_t i = 0; i < count; ++i) ordered[i * element + k] = (*data)[k * count + i];
    leati_free(*data);
    *data = ordered;
    return true;
}

/* Adds in the ones' complement of 16 bits. */
static uint32_t add_16(uint32_t a, uint32_t b) {
    uint32_t sum = a + b;
    return (sum & 0xffff) + (sum >> 16);
}

/* Returns Fletcher's checksum of 16-bit words in big endian. */
static uint32_t fletcher(const unsigned char *data, size_t bytes) {
    uint32_t low = 0, high = 0;
    for (size_t i = 0; i < bytes; i += 2) {
        low = add_16(low, (uint32_t)data[i] << 8 | (i + 1 < bytes ? data[i + 1] : 0u));
        high = add_16(high, low);
    }
    return high << 16 | low;
}

static bool check_fletcher(leati_h5_reader *r, const unsigned char *data, size_t bytes) {
    leati_h5_cursor c = leati_h5_cursor_make(data + bytes, checksum_bytes);
    if ((uint32_t)leati_h5_take(&c, 4) == fletcher(data, bytes)) return true;
    return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a chunk does not match its checksum");
}

bool leati_h5_undo_filters(leati_h5_reader *r, const leati_h5_filters *filters, unsigned skipped,
                           size_t element, unsigned char **data, size_t packed, size_t bytes) {
    size_t checksums = 0, present = packed;
    for (size_t i = 0; i < filters->count; ++i)
        checksums += !(skipped >> i & 1) && filters->ids[i] == filter_fletcher32;
    for (size_t i = filters->count; i-- > 0;) {
        if (skipped >> i & 1) continue;
        size_t size =
            bytes + checksum_bytes * checksums; /* before deflate packed it, after a checksum was added */
        if (filters->ids[i] == filter_deflate) {
            if (!undo_deflate(r, data, present, size)) return false;
            present = size;
        } else if (filters->ids[i] == filter_shuffle) {
            if (!undo_shuffle(r, data, present, element)) return false;
        } else {
            --checksums;
            if (present < checksum_bytes) break;
            present -= checksum_bytes;
            if (!check_fletcher(r, *data, present)) return false;
        }
    }
    return present == bytes || leati_h5_damaged(r, LEATI_H5_UNDEFINED, "a chunk has an unexpected size");
}
