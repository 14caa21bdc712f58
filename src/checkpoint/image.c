/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and reads the bytes of a checkpoint.  Room: checkpoint. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "checkpoint/image.h"

#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.h"
#include "base/memory.h"

static const char magic[8] = {'L', 'E', 'A', 'T', 'C', 'K', 'P', 'T'};
enum { format_version = 1, alignment = 8 };

/* All numbers are little-endian, as on every machine that leat supports. */
typedef struct image_header {
    char magic[8];
    uint32_t version, count; /* count: number of records */
    uint64_t bytes;          /* size of the file */
    uint64_t checksum;       /* XXH3 (64 bits) of everything after the header */
} image_header;

/* A record: this struct, the name with its final zero byte, the data; name and data are padded with zeros to a
 * multiple of 8 bytes. */
typedef struct record_header {
    uint64_t data_bytes;
    uint32_t name_bytes; /* with the final zero byte, without padding */
    uint32_t reserved;   /* 0 */
} record_header;

static size_t padded(size_t bytes) {
    return (bytes + alignment - 1) / alignment * alignment;
}

/* ---- Making ---- */

leat_status leati_snapshot_reserve(leati_snapshot *snapshot, size_t bytes, leat_error *err) {
    const size_t block = LEATI_SNAPSHOT_ALIGNMENT;
    if (bytes <= snapshot->capacity) return LEAT_OK;
    if (bytes > SIZE_MAX / 2) return leati_fail_memory(err, bytes, "a checkpoint");
    const size_t capacity = (bytes + block - 1) / block * block;
    unsigned char *memory = leati_calloc_aligned(capacity + block);
    if (!memory) return leati_fail_memory(err, capacity + block, "a checkpoint");
    unsigned char *data = memory + (block - (uintptr_t)memory % block) % block;
    if (snapshot->bytes > 0) memcpy(data, snapshot->data, snapshot->bytes);
    leati_free(snapshot->memory);
    snapshot->memory = memory;
    snapshot->data = data;
    snapshot->capacity = capacity;
    return LEAT_OK;
}

/* Makes room for so many further bytes. */
static leat_status grow(leati_snapshot *snapshot, size_t bytes, leat_error *err) {
    if (bytes <= snapshot->capacity - snapshot->bytes) return LEAT_OK;
    if (bytes > SIZE_MAX / 4) return leati_fail_memory(err, bytes, "a checkpoint");
    const size_t needed = snapshot->bytes + bytes, larger = snapshot->capacity + snapshot->capacity / 2;
    return leati_snapshot_reserve(snapshot, needed > larger ? needed : larger, err);
}

/* The caller has reserved the memory. */
static void append(leati_snapshot *snapshot, const void *data, size_t bytes) {
    const size_t padding = padded(bytes) - bytes;
    if (bytes > 0) memcpy(snapshot->data + snapshot->bytes, data, bytes);
    memset(snapshot->data + snapshot->bytes + bytes, 0, padding);
    snapshot->bytes += bytes + padding;
}

static void forget_files(leati_snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->file_count; ++i) leati_free(snapshot->files[i]);
    leati_free(snapshot->files);
    snapshot->files = NULL;
    snapshot->file_count = 0;
}

leat_status leati_snapshot_begin(leati_snapshot *snapshot, leat_error *err) {
    const image_header empty = {.bytes = 0};
    snapshot->bytes = 0;
    snapshot->count = 0;
    forget_files(snapshot);
    LEATI_TRY(grow(snapshot, sizeof empty, err));
    append(snapshot, &empty, sizeof empty);
    return LEAT_OK;
}

/* Returns the record at `offset`, and the offsets of its data and of the next record; NULL if there is no complete
 * record. */
static const record_header *record_at(const unsigned char *data, size_t end, size_t offset, size_t *body,
                                      size_t *next) {
    if (end - offset < sizeof(record_header)) return NULL;
    const record_header *record = (const record_header *)(const void *)(data + offset);
    const size_t room = end - offset - sizeof *record;
    const size_t name = padded(record->name_bytes);
    if (record->name_bytes == 0 || record->reserved != 0 || name > room || record->data_bytes > room - name ||
        padded((size_t)record->data_bytes) > room - name)
        return NULL;
    *body = offset + sizeof *record + name;
    *next = *body + padded((size_t)record->data_bytes);
    const char *text = (const char *)(record + 1);
    return memchr(text, '\0', record->name_bytes) == text + record->name_bytes - 1 ? record : NULL;
}

static const unsigned char *find(const unsigned char *data, size_t end, const char *name, size_t *bytes) {
    size_t body = 0, next = 0;
    for (size_t at = sizeof(image_header); at < end; at = next) {
        const record_header *record = record_at(data, end, at, &body, &next);
        if (!record) return NULL;
        if (strcmp((const char *)(record + 1), name) != 0) continue;
        *bytes = (size_t)record->data_bytes;
        return data + body;
    }
    return NULL;
}

leat_status leati_snapshot_add(leati_snapshot *snapshot, const char *name, const void *data, size_t bytes,
                               leat_error *err) {
    size_t existing = 0, name_bytes = strlen(name) + 1;
    if (find(snapshot->data, snapshot->bytes, name, &existing))
        return leati_fail(err, LEAT_EINVAL, "the value '%s' was added already", name);
    if (bytes > SIZE_MAX / 4) return leati_fail_memory(err, bytes, "a checkpoint");
    const record_header record = {.data_bytes = bytes, .name_bytes = (uint32_t)name_bytes};
    LEATI_TRY(grow(snapshot, sizeof record + padded(name_bytes) + padded(bytes), err));
    append(snapshot, &record, sizeof record);
    append(snapshot, name, name_bytes);
    append(snapshot, data, bytes);
    ++snapshot->count;
    return LEAT_OK;
}

leat_status leati_snapshot_add_file(leati_snapshot *snapshot, const char *path, leat_error *err) {
    char **files = leati_realloc(snapshot->files, snapshot->file_count + 1, sizeof *files);
    if (!files) return leati_fail_memory(err, sizeof *files, "a checkpoint");
    snapshot->files = files;
    files[snapshot->file_count] = leati_strdup(path);
    if (!files[snapshot->file_count]) return leati_fail_memory(err, strlen(path), "a checkpoint");
    ++snapshot->file_count;
    return LEAT_OK;
}

static uint64_t checksum(const unsigned char *data, size_t bytes) {
    return XXH3_64bits(data + sizeof(image_header), bytes - sizeof(image_header));
}

void leati_snapshot_finish(leati_snapshot *snapshot) {
    image_header header = {.version = format_version, .count = snapshot->count, .bytes = snapshot->bytes};
    memcpy(header.magic, magic, sizeof magic);
    header.checksum = checksum(snapshot->data, snapshot->bytes);
    memcpy(snapshot->data, &header, sizeof header);
}

void leati_snapshot_fini(leati_snapshot *snapshot) {
    forget_files(snapshot);
    leati_free(snapshot->memory);
    *snapshot = (leati_snapshot){0};
}

/* ---- Reading ---- */

static leat_status check_header(const leati_map *map, leat_error *err) {
    image_header header;
    if (map->size < sizeof header)
        return leati_fail(err, LEAT_EFORMAT, "the file has %zu bytes, too few for a checkpoint", map->size);
    memcpy(&header, map->data, sizeof header);
    if (memcmp(header.magic, magic, sizeof magic) != 0)
        return leati_fail(err, LEAT_EFORMAT, "the file is not a checkpoint of leat");
    if (header.version != format_version)
        return leati_fail(err, LEAT_EFORMAT, "expected format version %d, received %u", format_version,
                          (unsigned)header.version);
    if (header.bytes != map->size)
        return leati_fail(err, LEAT_EFORMAT, "the file is incomplete: it has %zu of %llu bytes", map->size,
                          (unsigned long long)header.bytes);
    if (header.checksum != checksum(map->data, map->size))
        return leati_fail(err, LEAT_EFORMAT, "the file is damaged: its checksum is wrong");
    return LEAT_OK;
}

static leat_status check_records(const leati_map *map, uint32_t *count, leat_error *err) {
    size_t body = 0, next = 0;
    image_header header;
    memcpy(&header, map->data, sizeof header);
    for (size_t at = sizeof header; at < map->size; at = next, ++*count)
        if (!record_at(map->data, map->size, at, &body, &next))
            return leati_fail(err, LEAT_EFORMAT, "record %u is damaged", (unsigned)*count);
    if (*count == header.count) return LEAT_OK;
    return leati_fail(err, LEAT_EFORMAT, "expected %u records, received %u", (unsigned)header.count,
                      (unsigned)*count);
}

leat_status leati_image_open(leati_image *out, const char *path, leat_error *err) {
    *out = (leati_image){0};
    LEATI_TRY(leati_map_open_guarded(&out->map, path, err));
    leat_status status = check_header(&out->map, err);
    if (status == LEAT_OK) status = check_records(&out->map, &out->count, err);
    if (status == LEAT_OK) status = leati_map_check(&out->map, out->map.data, out->map.size, err);
    if (status == LEAT_OK) return LEAT_OK;
    leati_image_close(out);
    return leati_prefix(status, err, "'%s'", path);
}

leat_status leati_image_copy(leati_image *out, const void *data, size_t bytes, leat_error *err) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *out = (leati_image){0};
    if (memory == MAP_FAILED) return leati_fail_memory(err, bytes, "a checkpoint");
    memcpy(memory, data, bytes);
    out->map = (leati_map){.data = memory, .size = bytes};
    leat_status status = check_header(&out->map, err);
    if (status == LEAT_OK) status = check_records(&out->map, &out->count, err);
    if (status != LEAT_OK) leati_image_close(out);
    return status;
}

void leati_image_close(leati_image *image) {
    leati_map_close(&image->map);
    *image = (leati_image){0};
}

const void *leati_image_find(const leati_image *image, const char *name, size_t *bytes) {
    *bytes = 0;
    return find(image->map.data, image->map.size, name, bytes);
}
