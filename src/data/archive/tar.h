/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the members of tar files: those of POSIX (ustar, pax) and GNU tar, not compressed. */
#ifndef LEATI_DATA_ARCHIVE_TAR_H
#define LEATI_DATA_ARCHIVE_TAR_H

#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

/* Receives each regular file of an archive, in order: its content is the `bytes` bytes at `offset`.  Any failure
 * ends the scan. */
typedef leat_status (*leati_tar_visit)(void *user, const char *name, uint64_t offset, uint64_t bytes,
                                       leat_error *err);

/* Reads the headers of an archive.
 * Errors: LEAT_EFORMAT no tar file, or damaged, or cut off, with the offset; LEAT_ENOTSUP a sparse member;
 * LEAT_ENOTFOUND, LEAT_EIO; LEAT_ENOMEM; those of `visit`. */
leat_status leati_tar_scan(const char *path, leati_tar_visit visit, void *user, leat_error *err);

/* Like leati_tar_scan(), for an archive in memory. */
leat_status leati_tar_scan_bytes(const void *data, size_t bytes, const char *label, leati_tar_visit visit,
                                 void *user, leat_error *err);

#endif
