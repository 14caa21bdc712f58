/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the members of tar files: those of POSIX (ustar, pax) and GNU tar, not compressed. */
#ifndef LEATI_DATA_ARCHIVE_TAR_H
#define LEATI_DATA_ARCHIVE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

typedef enum leati_tar_kind {
    LEATI_TAR_FILE,
    LEATI_TAR_FOLDER,
    LEATI_TAR_LINK, /* a hard or a symbolic link, which has no content */
} leati_tar_kind;

/* A member of an archive: its content is the `bytes` bytes at `offset`. */
typedef struct leati_tar_member {
    const char *name; /* borrowed until the visit ends */
    leati_tar_kind kind;
    uint64_t offset, bytes;
} leati_tar_member;

/* Receives each file, folder and link of an archive, in order.  Any failure ends the scan. */
typedef leat_status (*leati_tar_visit)(void *user, const leati_tar_member *member, leat_error *err);

/* Returns true if a file that begins with these bytes is a tar file with at least one member. */
bool leati_is_tar(const void *data, size_t bytes);

/* Reads the headers of an archive.
 * Errors: LEAT_EFORMAT no tar file, or damaged, or cut off, with the offset; LEAT_ENOTSUP a sparse member;
 * LEAT_ENOTFOUND, LEAT_EIO; LEAT_ENOMEM; those of `visit`. */
leat_status leati_tar_scan(const char *path, leati_tar_visit visit, void *user, leat_error *err);

/* Like leati_tar_scan(), for an archive in memory. */
leat_status leati_tar_scan_bytes(const void *data, size_t bytes, const char *label, leati_tar_visit visit,
                                 void *user, leat_error *err);

#endif
