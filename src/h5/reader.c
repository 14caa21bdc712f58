/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of an HDF5 file, errors, checksums, and the superblock.  Room: h5. */
#include "h5/reader.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

void leati_h5_reader_init(leati_h5_reader *r, const leati_h5_image *image) {
    *r = (leati_h5_reader){.image = image, .at = LEATI_H5_UNDEFINED, .collection = LEATI_H5_UNDEFINED};
    r->work = ((uint64_t)1 << 20) + 16 * (image->size < UINT64_MAX / 32 ? image->size : UINT64_MAX / 32);
}

void leati_h5_reader_fini(leati_h5_reader *r) {
    leati_free(r->collection_data);
    r->collection_data = NULL;
}

static bool record(leati_h5_reader *r, leat_status status, uint64_t at, const char *problem) {
    if (r->status != LEAT_OK) return false;
    r->status = status;
    r->at = at;
    r->problem = problem;
    return false;
}

bool leati_h5_damaged(leati_h5_reader *r, uint64_t at, const char *problem) {
    return record(r, LEAT_EFORMAT, at, problem);
}

bool leati_h5_refused(leati_h5_reader *r, const char *problem) {
    return record(r, LEAT_ENOTSUP, LEATI_H5_UNDEFINED, problem);
}

bool leati_h5_no_memory(leati_h5_reader *r) {
    return record(r, LEAT_ENOMEM, LEATI_H5_UNDEFINED, "no memory");
}

bool leati_h5_work(leati_h5_reader *r, uint64_t steps) {
    if (steps > r->work)
        return leati_h5_damaged(r, LEATI_H5_UNDEFINED, "its structures refer to each other without end");
    r->work -= steps;
    return true;
}

static bool load_from_descriptor(leati_h5_reader *r, uint64_t at, uint64_t bytes, unsigned char *dst) {
    for (uint64_t done = 0; done < bytes;) {
        uint64_t left = bytes - done, most = (uint64_t)1 << 30;
        ssize_t got =
            pread(r->image->fd, dst + done, (size_t)(left < most ? left : most), (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return record(r, LEAT_EIO, at, strerror(errno));
        if (got == 0) return leati_h5_damaged(r, at, "the file became shorter while it was read");
        done += (uint64_t)got;
    }
    return true;
}

/* Returns true if the bytes are inside the file; otherwise records an error. */
static bool inside(leati_h5_reader *r, uint64_t at, uint64_t bytes) {
    if (at <= r->image->size && bytes <= r->image->size - at) return true;
    return leati_h5_damaged(r, at, "an address or a length points beyond the end of the file");
}

bool leati_h5_load(leati_h5_reader *r, uint64_t at, uint64_t bytes, void *dst) {
    if (!inside(r, at, bytes)) return false;
    if (!r->image->bytes) return load_from_descriptor(r, at, bytes, dst);
    if (bytes > 0) memcpy(dst, r->image->bytes + at, (size_t)bytes);
    return true;
}

unsigned char *leati_h5_load_new(leati_h5_reader *r, uint64_t at, uint64_t bytes) {
    if (!inside(r, at, bytes)) return NULL;
    unsigned char *data = leati_calloc(bytes ? (size_t)bytes : 1, 1);
    if (!data) {
        leati_h5_no_memory(r);
        return NULL;
    }
    if (leati_h5_load(r, at, bytes, data)) return data;
    leati_free(data);
    return NULL;
}

/* ---- Cursors ---- */

leati_h5_cursor leati_h5_cursor_make(const void *data, size_t bytes) {
    const unsigned char *first = data;
    return (leati_h5_cursor){.next = first, .end = first + bytes};
}

size_t leati_h5_left(const leati_h5_cursor *c) {
    return (size_t)(c->end - c->next);
}

const unsigned char *leati_h5_skip(leati_h5_cursor *c, size_t bytes) {
    if (leati_h5_left(c) < bytes) {
        c->cut_off = true;
        c->next = c->end;
        return NULL;
    }
    const unsigned char *skipped = c->next;
    c->next += bytes;
    return skipped;
}

uint64_t leati_h5_take(leati_h5_cursor *c, int bytes) {
    const unsigned char *p = leati_h5_skip(c, (size_t)bytes);
    uint64_t value = 0;
    for (int i = 0; p && i < bytes; ++i) value |= (uint64_t)p[i] << 8 * i;
    return value;
}

uint64_t leati_h5_take_address(const leati_h5_reader *r, leati_h5_cursor *c) {
    int bytes = r->image->offset_bytes;
    uint64_t address = leati_h5_take(c, bytes);
    return address == UINT64_MAX >> (64 - 8 * bytes) ? LEATI_H5_UNDEFINED : address;
}

uint64_t leati_h5_take_length(const leati_h5_reader *r, leati_h5_cursor *c) {
    return leati_h5_take(c, r->image->length_bytes);
}

/* ---- Checksums ---- */

static uint32_t rotate(uint32_t x, int bits) {
    return x << bits | x >> (32 - bits);
}

static void mix(uint32_t s[3]) {
    static const int bits[6] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; ++i) {
        uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];
        *a -= *c;
        *a ^= rotate(*c, bits[i]);
        *c += *b;
    }
}

static void mix_last(uint32_t s[3]) {
    static const int bits[7] = {14, 11, 25, 16, 4, 14, 24};
    for (int i = 0; i < 7; ++i) {
        uint32_t *x = &s[(i + 2) % 3], y = s[(i + 1) % 3];
        *x ^= y;
        *x -= rotate(y, bits[i]);
    }
}

uint32_t leati_h5_checksum(const unsigned char *data, size_t bytes) {
    uint32_t initial = 0xdeadbeef + (uint32_t)bytes, s[3] = {initial, initial, initial};
    if (bytes == 0) return initial;
    for (; bytes > 12; data += 12, bytes -= 12) {
        for (int i = 0; i < 12; ++i) s[i / 4] += (uint32_t)data[i] << 8 * (i % 4);
        mix(s);
    }
    for (size_t i = 0; i < bytes; ++i) s[i / 4] += (uint32_t)data[i] << 8 * (i % 4);
    mix_last(s);
    return s[2];
}

bool leati_h5_checksum_holds(const unsigned char *data, size_t bytes) {
    if (bytes < 4) return false;
    leati_h5_cursor c = leati_h5_cursor_make(data + bytes - 4, 4);
    return leati_h5_take(&c, 4) == leati_h5_checksum(data, bytes - 4);
}

/* ---- The superblock, section II.A ---- */

static bool valid_width(int bytes) {
    return bytes == 2 || bytes == 4 || bytes == 8;
}

/* Compares the end of the file that the superblock states with the length of the file. */
static bool check_addresses(leati_h5_reader *r, uint64_t base, uint64_t end, uint64_t driver) {
    if (base != 0) return leati_h5_refused(r, "the file begins with a user block, which is not supported");
    if (driver != LEATI_H5_UNDEFINED)
        return leati_h5_refused(r, "the file is one of several that belong together, which is not supported");
    if (end > r->image->size) return leati_h5_damaged(r, r->image->size, "the file is cut off");
    return true;
}

/* Versions 0 and 1. */
static bool read_old(leati_h5_reader *r, leati_h5_cursor *c, int version, leati_h5_image *image) {
    leati_h5_skip(c, version == 0 ? 8 : 12); /* parameters of B-trees, flags */
    uint64_t base = leati_h5_take_address(r, c);
    leati_h5_take_address(r, c); /* free space */
    uint64_t end = leati_h5_take_address(r, c), driver = leati_h5_take_address(r, c);
    leati_h5_take_address(r, c); /* the root's name */
    image->root = leati_h5_take_address(r, c);
    if (c->cut_off) return leati_h5_damaged(r, 0, "the superblock is cut off");
    return check_addresses(r, base, end, driver);
}

/* Versions 2 and 3. */
static bool read_new(leati_h5_reader *r, leati_h5_cursor *c, const unsigned char *first,
                     leati_h5_image *image) {
    uint64_t base = leati_h5_take_address(r, c);
    leati_h5_take_address(r, c); /* the superblock's extension */
    uint64_t end = leati_h5_take_address(r, c);
    image->root = leati_h5_take_address(r, c);
    leati_h5_take(c, 4);
    if (c->cut_off || !leati_h5_checksum_holds(first, (size_t)(c->next - first)))
        return leati_h5_damaged(r, 0, "the superblock does not match its checksum");
    return check_addresses(r, base, end, LEATI_H5_UNDEFINED);
}

bool leati_h5_read_superblock(leati_h5_reader *r, leati_h5_image *image) {
    unsigned char data[128] = {0};
    uint64_t present = image->size < sizeof data ? image->size : sizeof data;
    if (!leati_h5_load(r, 0, present, data)) return false;
    if (present < 16 || memcmp(data, "\x89HDF\r\n\x1a\n", 8) != 0)
        return leati_h5_damaged(r, 0, "not an HDF5 file");
    leati_h5_cursor c = leati_h5_cursor_make(data, (size_t)present);
    leati_h5_skip(&c, 8);
    int version = (int)leati_h5_take(&c, 1);
    if (version > 3) return leati_h5_refused(r, "expected an HDF5 file of superblock version 0 to 3");
    if (version < 2) leati_h5_skip(&c, 4);
    image->offset_bytes = (int)leati_h5_take(&c, 1);
    image->length_bytes = (int)leati_h5_take(&c, 1);
    leati_h5_take(&c, 1);
    if (!valid_width(image->offset_bytes) || !valid_width(image->length_bytes))
        return leati_h5_damaged(r, 0,
                                "the superblock's widths of addresses and lengths are not 2, 4 or 8 bytes");
    return version < 2 ? read_old(r, &c, version, image) : read_new(r, &c, data, image);
}
