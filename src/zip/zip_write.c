/* SPDX-License-Identifier: Apache-2.0 */
/* Writes zip files of stored, aligned members; equal data gives equal bytes.
 * Source: PKWARE APPNOTE.TXT 6.3, sections 4.3 and 4.5.3.  Room: zip. */
#include "zip/zip.h"

#include <string.h>

#include <zlib.h>

#include "base/error.h"
#include "base/memory.h"

enum {
    version_64 = 45,      /* "needed to extract": zip64 */
    date_1980 = 0x21,     /* 1980-01-01: the bytes do not depend on the clock */
    flag_utf8 = 0x800,    /* names are UTF-8 */
    extra_zip64 = 1,      /* section 4.5.3 */
    extra_align = 0xd935, /* padding, as zipalign writes it */
    alignment = 64
};

/* A header under construction: fixed fields, then extra fields with padding. */
typedef struct header {
    unsigned char bytes[160];
    size_t used;
} header;

static void put(header *h, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) h->bytes[h->used++] = (unsigned char)(value >> 8 * i);
}

static uint64_t clamp32(uint64_t value) {
    return value < UINT32_MAX ? value : UINT32_MAX;
}

leat_status leati_zip_create(leati_zip_writer *out, const char *path, leat_error *err) {
    *out = (leati_zip_writer){.file.fd = -1};
    return leati_replace_begin(&out->file, path, err);
}

void leati_zip_create_in_memory(leati_zip_writer *out) {
    *out = (leati_zip_writer){.file.fd = -1, .in_memory = true};
}

static leat_status emit_to_memory(leati_zip_writer *writer, const void *data, size_t bytes, leat_error *err) {
    size_t used = (size_t)writer->offset;
    if (bytes > SIZE_MAX / 2 - used) return leati_fail_memory(err, SIZE_MAX, "a zip file");
    if (used + bytes > writer->data_capacity) {
        size_t capacity = 2 * writer->data_capacity > used + bytes ? 2 * writer->data_capacity : used + bytes;
        unsigned char *grown = leati_realloc(writer->data, capacity, 1);
        if (!grown) return leati_fail_memory(err, capacity, "a zip file");
        writer->data = grown;
        writer->data_capacity = capacity;
    }
    if (bytes) memcpy(writer->data + used, data, bytes);
    writer->offset += bytes;
    return LEAT_OK;
}

static leat_status emit(leati_zip_writer *writer, const void *data, size_t bytes, leat_error *err) {
    if (writer->in_memory) return emit_to_memory(writer, data, bytes, err);
    writer->offset += bytes;
    return leati_replace_write(&writer->file, data, bytes, err);
}

static leat_status emit_header(leati_zip_writer *writer, const header *h, leat_error *err) {
    return emit(writer, h->bytes, h->used, err);
}

/* Makes room for one more member and stores its name and offset. */
static leat_status grow(leati_zip_writer *writer, const char *name, leat_error *err) {
    if (strlen(name) > 65535)
        return leati_fail(err, LEAT_EINVAL, "a member's name is longer than 65535 bytes");
    if (writer->count == writer->capacity) {
        size_t capacity = writer->capacity ? 2 * writer->capacity : 16;
        leati_zip_member *members = leati_realloc(writer->members, capacity, sizeof *members);
        if (members) writer->members = members;
        uint64_t *offsets = leati_realloc(writer->offsets, capacity, sizeof *offsets);
        if (offsets) writer->offsets = offsets;
        if (!members || !offsets)
            return leati_fail_memory(err, capacity * sizeof *members, "a zip directory");
        writer->capacity = capacity;
    }
    leati_zip_member *member = &writer->members[writer->count];
    *member = (leati_zip_member){.name = leati_strdup(name)};
    if (!member->name) return leati_fail_memory(err, strlen(name), "a member's name");
    writer->offsets[writer->count++] = writer->offset;
    return LEAT_OK;
}

/* Section 4.3.7: writes a local header.  Its padding makes the member's content begin at a multiple of `alignment`. */
static leat_status emit_local(leati_zip_writer *writer, const leati_zip_member *member, leat_error *err) {
    header h = {0};
    bool big = member->bytes >= UINT32_MAX;
    size_t name_bytes = strlen(member->name), zip64_bytes = big ? 20 : 0;
    uint64_t unpadded = writer->offset + 30 + name_bytes + zip64_bytes + 4;
    size_t padding = (size_t)(alignment - unpadded % alignment) % alignment;
    put(&h, 0x04034b50, 4);
    put(&h, version_64, 2);
    put(&h, flag_utf8, 2);
    put(&h, 0, 2); /* method: stored */
    put(&h, 0, 2); /* time */
    put(&h, date_1980, 2);
    put(&h, member->crc, 4);
    put(&h, clamp32(member->bytes), 4);
    put(&h, clamp32(member->bytes), 4);
    put(&h, name_bytes, 2);
    put(&h, zip64_bytes + 4 + padding, 2);
    LEATI_TRY(emit_header(writer, &h, err));
    LEATI_TRY(emit(writer, member->name, name_bytes, err));
    h = (header){0};
    if (big) {
        put(&h, extra_zip64, 2);
        put(&h, 16, 2);
        put(&h, member->bytes, 8);
        put(&h, member->bytes, 8);
    }
    put(&h, extra_align, 2);
    put(&h, padding, 2);
    h.used += padding;
    return emit_header(writer, &h, err);
}

leat_status leati_zip_add(leati_zip_writer *writer, const char *name, const leati_piece *pieces, size_t count,
                          leat_error *err) {
    LEATI_TRY(grow(writer, name, err));
    leati_zip_member *member = &writer->members[writer->count - 1];
    uLong crc = crc32_z(0, NULL, 0);
    for (size_t i = 0; i < count; ++i) {
        if (pieces[i].bytes) crc = crc32_z(crc, pieces[i].data, pieces[i].bytes);
        member->bytes += pieces[i].bytes;
    }
    member->crc = (uint32_t)crc;
    LEATI_TRY(emit_local(writer, member, err));
    for (size_t i = 0; i < count; ++i) LEATI_TRY(emit(writer, pieces[i].data, pieces[i].bytes, err));
    return LEAT_OK;
}

/* Section 4.3.12: writes a central header. */
static leat_status emit_central(leati_zip_writer *writer, size_t index, leat_error *err) {
    const leati_zip_member *member = &writer->members[index];
    uint64_t offset = writer->offsets[index];
    bool big = member->bytes >= UINT32_MAX, far_offset = offset >= UINT32_MAX;
    size_t name_bytes = strlen(member->name), payload = (big ? 16u : 0u) + (far_offset ? 8u : 0u);
    header h = {0};
    put(&h, 0x02014b50, 4);
    put(&h, 3 << 8 | version_64, 2); /* made by: Unix */
    put(&h, version_64, 2);
    put(&h, flag_utf8, 2);
    put(&h, 0, 4); /* method, time */
    put(&h, date_1980, 2);
    put(&h, member->crc, 4);
    put(&h, clamp32(member->bytes), 4);
    put(&h, clamp32(member->bytes), 4);
    put(&h, name_bytes, 2);
    put(&h, payload ? payload + 4 : 0, 2);
    put(&h, 0, 6);                       /* comment, volume, internal attributes */
    put(&h, (uint64_t)0100644 << 16, 4); /* a regular file, rw-r--r-- */
    put(&h, clamp32(offset), 4);
    LEATI_TRY(emit_header(writer, &h, err));
    LEATI_TRY(emit(writer, member->name, name_bytes, err));
    h = (header){0};
    if (payload) {
        put(&h, extra_zip64, 2);
        put(&h, payload, 2);
    }
    if (big) {
        put(&h, member->bytes, 8);
        put(&h, member->bytes, 8);
    }
    if (far_offset) put(&h, offset, 8);
    return emit_header(writer, &h, err);
}

/* Sections 4.3.14 to 4.3.16: writes the end records. */
static leat_status emit_end(leati_zip_writer *writer, uint64_t start, leat_error *err) {
    uint64_t bytes = writer->offset - start, at = writer->offset;
    header h = {0};
    if (writer->count >= 0xffff || start >= UINT32_MAX || bytes >= UINT32_MAX) {
        put(&h, 0x06064b50, 4);
        put(&h, 44, 8);
        put(&h, version_64, 2);
        put(&h, version_64, 2);
        put(&h, 0, 8); /* volumes */
        put(&h, writer->count, 8);
        put(&h, writer->count, 8);
        put(&h, bytes, 8);
        put(&h, start, 8);
        put(&h, 0x07064b50, 4);
        put(&h, 0, 4);
        put(&h, at, 8);
        put(&h, 1, 4);
    }
    uint64_t count = writer->count < 0xffff ? writer->count : 0xffff;
    put(&h, 0x06054b50, 4);
    put(&h, 0, 4); /* volumes */
    put(&h, count, 2);
    put(&h, count, 2);
    put(&h, clamp32(bytes), 4);
    put(&h, clamp32(start), 4);
    put(&h, 0, 2); /* comment */
    return emit_header(writer, &h, err);
}

static void free_writer(leati_zip_writer *writer) {
    for (size_t i = 0; i < writer->count; ++i) leati_free(writer->members[i].name);
    leati_free(writer->members);
    leati_free(writer->offsets);
    leati_free(writer->data);
    *writer = (leati_zip_writer){.file.fd = -1};
}

static leat_status emit_directory(leati_zip_writer *writer, leat_error *err) {
    uint64_t start = writer->offset;
    for (size_t i = 0; i < writer->count; ++i) LEATI_TRY(emit_central(writer, i, err));
    return emit_end(writer, start, err);
}

leat_status leati_zip_finish(leati_zip_writer *writer, leat_error *err) {
    leat_status status = emit_directory(writer, err);
    if (status == LEAT_OK)
        status = leati_replace_commit(&writer->file, err);
    else
        leati_replace_abandon(&writer->file);
    free_writer(writer);
    return status;
}

leat_status leati_zip_finish_in_memory(leati_zip_writer *writer, void **out, size_t *bytes, leat_error *err) {
    leat_status status = emit_directory(writer, err);
    *out = NULL;
    *bytes = 0;
    if (status == LEAT_OK) {
        *out = writer->data;
        *bytes = (size_t)writer->offset;
        writer->data = NULL;
    }
    free_writer(writer);
    return status;
}

void leati_zip_abandon(leati_zip_writer *writer) {
    if (!writer->in_memory) leati_replace_abandon(&writer->file);
    free_writer(writer);
}
