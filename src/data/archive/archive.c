/* SPDX-License-Identifier: Apache-2.0 */
/* Reads members of zip files and tar files from a mapping of the file.  Room: data. */
#include "data/archive/archive.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "base/text.h"
#include "data/archive/tar.h"
#include "zip/zip.h"

/* A member of a tar file. */
typedef struct tar_member {
    char *name; /* NULL: a link */
    uint64_t offset, bytes;
} tar_member;

struct leati_archive {
    leati_map map; /* empty after leati_archive_open_bytes */
    const unsigned char *data;
    size_t bytes;
    char *label; /* the path, or its replacement in messages */
    bool is_zip;
    leati_zip zip;
    tar_member *members;
    int64_t count, capacity;
};

static bool is_zip(const void *head, size_t bytes) {
    return bytes >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0);
}

bool leati_is_archive(const void *head, size_t bytes) {
    return is_zip(head, bytes) || leati_is_tar(head, bytes);
}

void leati_archive_close(leati_archive *archive) {
    if (!archive) return;
    for (int64_t i = 0; i < archive->count; ++i) leati_free(archive->members[i].name);
    leati_free(archive->members);
    leati_zip_close(&archive->zip);
    leati_map_close(&archive->map);
    leati_free(archive->label);
    leati_free(archive);
}

/* Returns the name for leati_free, with a '/' at the end if it is the name of a folder. */
static char *copy_name(const leati_tar_member *member) {
    leati_text text = {0};
    const size_t length = strlen(member->name);
    const bool ends = length > 0 && member->name[length - 1] == '/';
    leati_text_add(&text, "%s%s", member->name, member->kind == LEATI_TAR_FOLDER && !ends ? "/" : "");
    if (!text.failed) return text.data;
    leati_text_fini(&text);
    return NULL;
}

static leat_status add_member(void *user, const leati_tar_member *member, leat_error *err) {
    leati_archive *archive = user;
    if (archive->count == archive->capacity) {
        const int64_t capacity = archive->capacity ? 2 * archive->capacity : 64;
        tar_member *members = leati_realloc(archive->members, (size_t)capacity, sizeof *members);
        if (!members) return leati_fail_memory(err, (size_t)capacity * sizeof *members, "a list of members");
        archive->members = members;
        archive->capacity = capacity;
    }
    char *name = member->kind == LEATI_TAR_LINK ? NULL : copy_name(member);
    if (!name && member->kind != LEATI_TAR_LINK)
        return leati_fail_memory(err, strlen(member->name), "the name of a member");
    archive->members[archive->count++] = (tar_member){name, member->offset, member->bytes};
    return LEAT_OK;
}

static leat_status read_members(leati_archive *archive, leat_error *err) {
    archive->is_zip = is_zip(archive->data, archive->bytes);
    if (archive->is_zip)
        return leati_zip_open_bytes(&archive->zip, archive->data, archive->bytes, archive->label, err);
    return leati_tar_scan_bytes(archive->data, archive->bytes, archive->label, add_member, archive, err);
}

static leat_status create(leati_archive **out, const char *label, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    if (*out) (*out)->label = leati_strdup(label);
    if (*out && (*out)->label) return LEAT_OK;
    leati_archive_close(*out);
    *out = NULL;
    return leati_fail_memory(err, sizeof **out, "an archive");
}

leat_status leati_archive_open_bytes(leati_archive **out, const void *data, size_t bytes, const char *label,
                                     leat_error *err) {
    LEATI_TRY(create(out, label, err));
    (*out)->data = data;
    (*out)->bytes = bytes;
    const leat_status status = read_members(*out, err);
    if (status == LEAT_OK) return LEAT_OK;
    leati_archive_close(*out);
    *out = NULL;
    return status;
}

/* Maps the file and reads its headers. */
static leat_status open_file(leati_archive *archive, const char *path, leat_error *err) {
    leat_error problem = {0};
    LEATI_TRY(leati_map_open_guarded(&archive->map, path, err));
    archive->data = archive->map.data;
    archive->bytes = archive->map.size;
    const leat_status status = read_members(archive, &problem);
    /* Pages that the file has lost read as zeros: then the headers are not the problem. */
    LEATI_TRY(leati_map_check(&archive->map, archive->data, archive->bytes, err));
    return status == LEAT_OK ? LEAT_OK : leati_fail(err, status, "%s", problem.message);
}

leat_status leati_archive_open(leati_archive **out, const char *path, leat_error *err) {
    LEATI_TRY(create(out, path, err));
    const leat_status status = open_file(*out, path, err);
    if (status == LEAT_OK) return LEAT_OK;
    leati_archive_close(*out);
    *out = NULL;
    return status;
}

const char *leati_archive_path(const leati_archive *archive) {
    return archive->label;
}

int64_t leati_archive_count(const leati_archive *archive) {
    return archive->is_zip ? (int64_t)archive->zip.count : archive->count;
}

const char *leati_archive_name(const leati_archive *archive, int64_t member) {
    return archive->is_zip ? archive->zip.members[member].name : archive->members[member].name;
}

leat_status leati_archive_read(const leati_archive *archive, int64_t member, unsigned char **out,
                               size_t *bytes, leat_error *err) {
    const leati_zip_member *packed = archive->is_zip ? &archive->zip.members[member] : NULL;
    const tar_member *plain = packed ? NULL : &archive->members[member];
    const uint64_t size = packed ? packed->bytes : plain->bytes;
    const unsigned char *content = packed ? packed->packed : archive->data + plain->offset;
    *out = NULL;
    *bytes = (size_t)size;
    if (packed && !packed->stored && size > LEATI_ARCHIVE_MOST_UNPACKED)
        return leati_fail(err, LEAT_ESHAPE, "the member unpacks to %llu bytes, expected at most %d",
                          (unsigned long long)size, LEATI_ARCHIVE_MOST_UNPACKED);
    unsigned char *copy = leati_calloc((size_t)size + 1, 1);
    if (!copy) return leati_fail_memory(err, (size_t)size, "a member of an archive");
    leat_status status = LEAT_OK;
    leat_error problem = {0};
    if (packed)
        status = leati_zip_read(&archive->zip, packed, copy, &problem);
    else if (size > 0)
        memcpy(copy, content, (size_t)size);
    const leat_status present =
        leati_map_check(&archive->map, content, (size_t)(packed ? packed->packed_bytes : size), err);
    if (present == LEAT_OK && status != LEAT_OK) (void)leati_fail(err, status, "%s", problem.message);
    if (present != LEAT_OK) status = present;
    if (status == LEAT_OK)
        *out = copy;
    else
        leati_free(copy);
    return status;
}
