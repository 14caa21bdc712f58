/* SPDX-License-Identifier: Apache-2.0 */
/* Reads zip files from a mapping, so that stored members need no copy, and writes zip files of stored, aligned
 * members. Supports zip64 in both directions, and methods 0 (stored) and 8 (deflated); no encryption, no
 * multi-volume archives. */
#ifndef LEATI_ZIP_ZIP_H
#define LEATI_ZIP_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/file.h"
#include "leat/error.h"

typedef struct leati_zip_member {
    char *name;
    uint64_t bytes;        /* unpacked size */
    uint64_t packed_bytes; /* size in the file */
    const unsigned char *packed;
    uint32_t crc;
    bool stored; /* not compressed: `packed` points to the member's content */
} leati_zip_member;

typedef struct leati_zip {
    leati_map map; /* empty after leati_zip_open_bytes */
    char *label;   /* the path, or its replacement in messages */
    leati_zip_member *members;
    size_t count;
} leati_zip;

/* Maps a zip file and reads its directory.  Errors: those of leati_map_open; LEAT_EFORMAT the file is damaged;
 * LEAT_ENOTSUP an unknown method, encryption; LEAT_ENOMEM.  After a failure there is nothing to free. */
leat_status leati_zip_open(leati_zip *out, const char *path, leat_error *err);

/* Like leati_zip_open, but the file's `size` bytes lie in memory, at any alignment; they are borrowed until
 * leati_zip_close. */
leat_status leati_zip_open_bytes(leati_zip *out, const void *data, size_t size, const char *label,
                                 leat_error *err);

void leati_zip_close(leati_zip *zip);

/* Returns the last member of that name (a later member replaces an earlier one); NULL if there is none. */
const leati_zip_member *leati_zip_find(const leati_zip *zip, const char *name);

/* Unpacks a member into `dst`, which has member->bytes bytes, and verifies the checksum. */
leat_status leati_zip_read(const leati_zip *zip, const leati_zip_member *member, void *dst, leat_error *err);

/* Verifies the checksum of a stored member, whose bytes at member->packed the caller uses in place. */
leat_status leati_zip_check(const leati_zip *zip, const leati_zip_member *member, leat_error *err);

/* Unpacks the first `bytes` bytes of a member, at most member->bytes, without its checksum. */
leat_status leati_zip_read_start(const leati_zip *zip, const leati_zip_member *member, void *dst,
                                 size_t bytes, leat_error *err);

/* A part of a member that is being written. */
typedef struct leati_piece {
    const void *data;
    size_t bytes;
} leati_piece;

typedef struct leati_zip_writer {
    leati_replacement file; /* without a path if the zip file is written into memory */
    unsigned char *data;    /* the bytes in memory; `offset` of them are written */
    size_t data_capacity;
    bool in_memory;
    uint64_t offset;
    leati_zip_member *members; /* only name, bytes and crc are set */
    uint64_t *offsets;         /* of the members' local headers */
    size_t count, capacity;
} leati_zip_writer;

/* Begins to write a zip file, which appears under `path` only when leati_zip_finish succeeds.  The writer ends with
 * leati_zip_finish, also if that fails, or with leati_zip_abandon. */
leat_status leati_zip_create(leati_zip_writer *out, const char *path, leat_error *err);

/* Adds a stored member that is the concatenation of the pieces; its content begins at a multiple of 64 bytes. */
leat_status leati_zip_add(leati_zip_writer *writer, const char *name, const leati_piece *pieces, size_t count,
                          leat_error *err);
leat_status leati_zip_finish(leati_zip_writer *writer, leat_error *err);

/* Like leati_zip_create and leati_zip_finish, but for a zip file in memory.  *out is for leati_free; NULL on
 * failure. */
void leati_zip_create_in_memory(leati_zip_writer *out);
leat_status leati_zip_finish_in_memory(leati_zip_writer *writer, void **out, size_t *bytes, leat_error *err);

void leati_zip_abandon(leati_zip_writer *writer);

#endif
