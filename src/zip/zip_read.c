/* SPDX-License-Identifier: Apache-2.0 */
/* Reads zip files from memory.  Every offset in the file is checked against the file's size before it is used.
 * Source: PKWARE APPNOTE.TXT 6.3, sections 4.3 (headers) and 4.5.3 (zip64).  Room: zip. */
#include "zip/zip.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "zip/inflate.h"

enum { local_bytes = 30, central_bytes = 46, end_bytes = 22, end64_bytes = 56, locator_bytes = 20 };

typedef struct view {
    const unsigned char *data;
    uint64_t size;
    const char *label;
} view;

static uint16_t u16(const unsigned char *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32(const unsigned char *p) {
    return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const unsigned char *p) {
    return (uint64_t)u32(p) | (uint64_t)u32(p + 4) << 32;
}

/* Returns true if the `bytes` bytes at `offset` lie inside [0, size). */
static bool inside(uint64_t offset, uint64_t bytes, uint64_t size) {
    return offset <= size && bytes <= size - offset;
}

static leat_status damaged(const view *file, const char *what, leat_error *err) {
    return leati_fail(err, LEAT_EFORMAT, "'%s' is not a complete zip file: %s", file->label, what);
}

typedef struct directory {
    uint64_t offset, bytes, count;
} directory;

/* Section 4.3.14: the zip64 end record has the fields that do not fit the end record. */
static leat_status read_end64(const view *file, uint64_t end, directory *out, leat_error *err) {
    if (end < locator_bytes) return damaged(file, "no zip64 locator", err);
    const unsigned char *locator = file->data + end - locator_bytes;
    if (u32(locator) != 0x07064b50) return damaged(file, "no zip64 locator", err);
    uint64_t offset = u64(locator + 8);
    if (!inside(offset, end64_bytes, file->size) || u32(file->data + offset) != 0x06064b50)
        return damaged(file, "no zip64 end record", err);
    const unsigned char *record = file->data + offset;
    *out = (directory){.count = u64(record + 32), .bytes = u64(record + 40), .offset = u64(record + 48)};
    return LEAT_OK;
}

/* Finds the end record, which only a comment of at most 65535 bytes may follow. */
static leat_status find_directory(const view *file, directory *out, leat_error *err) {
    if (file->size < end_bytes) return damaged(file, "shorter than the end record", err);
    uint64_t last = file->size - end_bytes, first = last > 65535 ? last - 65535 : 0;
    for (uint64_t at = last + 1; at-- > first;) {
        const unsigned char *end = file->data + at;
        if (u32(end) != 0x06054b50 || at + end_bytes + u16(end + 20) != file->size) continue;
        if (u16(end + 4) != 0 && u16(end + 4) != 0xffff)
            return damaged(file, "it spans several volumes", err);
        *out = (directory){.count = u16(end + 10), .bytes = u32(end + 12), .offset = u32(end + 16)};
        if (out->count == 0xffff || out->bytes == 0xffffffff || out->offset == 0xffffffff)
            LEATI_TRY(read_end64(file, at, out, err));
        return LEAT_OK;
    }
    return damaged(file, "no end record", err);
}

/* Section 4.5.3: reads 64-bit values of the saturated fields of a central header, which come in the order of
 * `fields`. */
static bool read_extra(const unsigned char *extra, size_t bytes, uint64_t *fields[3],
                       const bool saturated[3]) {
    while (bytes >= 4) {
        size_t length = u16(extra + 2);
        if (length > bytes - 4) return false;
        if (u16(extra) == 1) {
            const unsigned char *p = extra + 4, *end = p + length;
            for (int i = 0; i < 3; ++i) {
                if (!saturated[i]) continue;
                if (end - p < 8) return false;
                *fields[i] = u64(p);
                p += 8;
            }
            return true;
        }
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return !saturated[0] && !saturated[1] && !saturated[2];
}

/* Finds a member's content behind its local header. */
static leat_status find_data(const view *file, uint64_t offset, leati_zip_member *member, leat_error *err) {
    if (!inside(offset, local_bytes, file->size) || u32(file->data + offset) != 0x04034b50)
        return damaged(file, "a local header is missing", err);
    const unsigned char *local = file->data + offset;
    uint64_t start = offset + local_bytes + u16(local + 26) + u16(local + 28);
    if (!inside(start, member->packed_bytes, file->size)) return damaged(file, "a member is cut off", err);
    member->packed = file->data + start;
    return LEAT_OK;
}

static leat_status check_member(const view *file, const leati_zip_member *member, const unsigned char *header,
                                leat_error *err) {
    uint16_t method = u16(header + 10);
    if (u16(header + 8) & 1)
        return leati_fail(err, LEAT_ENOTSUP, "'%s': member '%s' is encrypted", file->label, member->name);
    if (method != 0 && method != 8)
        return leati_fail(err, LEAT_ENOTSUP,
                          "'%s': member '%s' is packed by method %d, expected 0 (stored) or 8 (deflated)",
                          file->label, member->name, method);
    if (method == 0 && member->packed_bytes != member->bytes)
        return damaged(file, "a stored member has different packed and unpacked sizes", err);
    if (method == 8 && !leati_inflate_plausible(member->packed_bytes, member->bytes))
        return damaged(file, "a member claims to unpack to more than deflate allows", err);
    return LEAT_OK;
}

/* Reads the central header at offset *at and moves *at to the end of the header. */
static leat_status read_member(const view *file, uint64_t *at, leati_zip_member *member, leat_error *err) {
    const unsigned char *header = file->data + *at;
    if (!inside(*at, central_bytes, file->size) || u32(header) != 0x02014b50)
        return damaged(file, "the central directory is damaged", err);
    size_t name_bytes = u16(header + 28), extra_bytes = u16(header + 30);
    uint64_t total_bytes = central_bytes + (uint64_t)name_bytes + extra_bytes + u16(header + 32);
    if (!inside(*at, total_bytes, file->size)) return damaged(file, "the central directory is cut off", err);
    *at += total_bytes;
    uint64_t offset = u32(header + 42);
    member->crc = u32(header + 16);
    member->packed_bytes = u32(header + 20);
    member->bytes = u32(header + 24);
    member->stored = u16(header + 10) == 0;
    uint64_t *fields[3] = {&member->bytes, &member->packed_bytes, &offset};
    const bool saturated[3] = {member->bytes == UINT32_MAX, member->packed_bytes == UINT32_MAX,
                               offset == UINT32_MAX};
    if (!read_extra(header + central_bytes + name_bytes, extra_bytes, fields, saturated))
        return damaged(file, "an extra field is damaged", err);
    member->name = leati_calloc(name_bytes + 1, 1);
    if (!member->name) return leati_fail_memory(err, name_bytes + 1, "a member's name");
    memcpy(member->name, header + central_bytes, name_bytes);
    LEATI_TRY(check_member(file, member, header, err));
    return find_data(file, offset, member, err);
}

static leat_status read_members(leati_zip *zip, const view *file, leat_error *err) {
    directory central = {0};
    LEATI_TRY(find_directory(file, &central, err));
    if (!inside(central.offset, central.bytes, file->size) || central.count > central.bytes / central_bytes)
        return damaged(file, "the central directory lies outside the file", err);
    zip->members = leati_calloc((size_t)central.count, sizeof *zip->members);
    if (!zip->members)
        return leati_fail_memory(err, (size_t)central.count * sizeof *zip->members, "a zip directory");
    uint64_t at = central.offset;
    for (; zip->count < central.count; ++zip->count) {
        leat_status status = read_member(file, &at, &zip->members[zip->count], err);
        if (status == LEAT_OK) continue;
        ++zip->count; /* so that the member's name is freed, if it was allocated */
        return status;
    }
    return LEAT_OK;
}

static leat_status open_view(leati_zip *out, const view *file, leat_error *err) {
    leat_status status = LEAT_OK;
    out->label = leati_strdup(file->label);
    if (!out->label) status = leati_fail_memory(err, strlen(file->label), "a file name");
    if (status == LEAT_OK) status = read_members(out, file, err);
    if (status != LEAT_OK) leati_zip_close(out);
    return status;
}

leat_status leati_zip_open_bytes(leati_zip *out, const void *data, size_t size, const char *label,
                                 leat_error *err) {
    *out = (leati_zip){0};
    return open_view(out, &(view){.data = data, .size = size, .label = label}, err);
}

leat_status leati_zip_open(leati_zip *out, const char *path, leat_error *err) {
    *out = (leati_zip){0};
    LEATI_TRY(leati_map_open(&out->map, path, err));
    return open_view(out, &(view){.data = out->map.data, .size = out->map.size, .label = path}, err);
}

void leati_zip_close(leati_zip *zip) {
    for (size_t i = 0; i < zip->count; ++i) leati_free(zip->members[i].name);
    leati_free(zip->members);
    leati_free(zip->label);
    leati_map_close(&zip->map);
    *zip = (leati_zip){0};
}

const leati_zip_member *leati_zip_find(const leati_zip *zip, const char *name) {
    for (size_t i = zip->count; i-- > 0;)
        if (strcmp(zip->members[i].name, name) == 0) return &zip->members[i];
    return NULL;
}

/* Unpacks the first `bytes` bytes of a deflated member; if these are all, checks that the data ends there. */
static leat_status unpack(const leati_zip *zip, const leati_zip_member *member, void *dst, size_t bytes,
                          leat_error *err) {
    leati_inflater inflater;
    LEATI_TRY(leati_inflate_begin(&inflater, LEATI_DEFLATE_RAW, member->packed, (size_t)member->packed_bytes,
                                  zip->label, err));
    leat_status status = leati_inflate_read(&inflater, dst, bytes, err);
    if (status == LEAT_OK && bytes == member->bytes) status = leati_inflate_finish(&inflater, err);
    leati_inflate_end(&inflater);
    return status;
}

leat_status leati_zip_read_start(const leati_zip *zip, const leati_zip_member *member, void *dst,
                                 size_t bytes, leat_error *err) {
    leat_status status = LEAT_OK;
    if (!member->stored)
        status = unpack(zip, member, dst, bytes, err);
    else if (bytes)
        memcpy(dst, member->packed, bytes);
    return leati_prefix(status, err, "member '%s'", member->name);
}

static leat_status compare_checksum(const leati_zip *zip, const leati_zip_member *member, const void *data,
                                    leat_error *err) {
    if (crc32_z(crc32_z(0, NULL, 0), data, (size_t)member->bytes) == member->crc) return LEAT_OK;
    return leati_fail(err, LEAT_EFORMAT, "'%s': member '%s' does not match its checksum", zip->label,
                      member->name);
}

leat_status leati_zip_read(const leati_zip *zip, const leati_zip_member *member, void *dst, leat_error *err) {
    LEATI_TRY(leati_zip_read_start(zip, member, dst, (size_t)member->bytes, err));
    return compare_checksum(zip, member, dst, err);
}

leat_status leati_zip_check(const leati_zip *zip, const leati_zip_member *member, leat_error *err) {
    return compare_checksum(zip, member, member->packed, err);
}
