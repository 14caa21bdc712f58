/* SPDX-License-Identifier: Apache-2.0 */
/* Zip files: read from a mapping, so that stored members need no copy, and written stored and aligned.
 * Zip64 both ways.  No encryption, no multi-volume archives, methods 0 (stored) and 8 (deflated). */
#ifndef LEATI_ZIP_ZIP_H
#define LEATI_ZIP_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/file.h"
#include "leat/error.h"

typedef struct leati_zip_member {
    char *name;
    uint64_t bytes;        /* unpacked */
    uint64_t packed_bytes; /* in the file */
    const unsigned char *packed;
    uint32_t crc;
    bool stored; /* packed is the member itself, in place */
} leati_zip_member;

typedef struct leati_zip {
    leati_map map; /* empty where the bytes are borrowed */
    char *label;   /* the path, for messages */
    leati_zip_member *members;
    size_t count;
} leati_zip;

/* Errors: leati_map_open's; LEAT_EFORMAT damaged; LEAT_ENOTSUP an unknown method, encryption; LEAT_ENOMEM.
 * After a failure nothing is owed. */
leat_status leati_zip_open(leati_zip *out, const char *path, leat_error *err);

/* The same over bytes that stay until leati_zip_close. */
leat_status leati_zip_open_bytes(leati_zip *out, const void *data, size_t size, const char *label,
                                 leat_error *err);

void leati_zip_close(leati_zip *zip);

/* The last member of that name (a later one replaces an earlier one), NULL where there is none. */
const leati_zip_member *leati_zip_find(const leati_zip *zip, const char *name);

/* Unpacks a member into `dst`, of member->bytes, and checks its checksum. */
leat_status leati_zip_read(const leati_zip *zip, const leati_zip_member *member, void *dst, leat_error *err);

/* A part of a member that is being written. */
typedef struct leati_piece {
    const void *data;
    size_t bytes;
} leati_piece;

typedef struct leati_zip_writer {
    leati_replacement file;
    uint64_t offset;
    leati_zip_member *members; /* name, bytes, crc */
    uint64_t *offsets;
    size_t count, capacity;
} leati_zip_writer;

/* Writes a zip file atomically: create, add, ..., finish.  finish (either way) and abandon end it. */
leat_status leati_zip_create(leati_zip_writer *out, const char *path, leat_error *err);

/* Adds a stored member made of pieces one after the other; its first byte lies at a multiple of 64. */
leat_status leati_zip_add(leati_zip_writer *writer, const char *name, const leati_piece *pieces, size_t count,
                          leat_error *err);
leat_status leati_zip_finish(leati_zip_writer *writer, leat_error *err);
void leati_zip_abandon(leati_zip_writer *writer);

#endif
