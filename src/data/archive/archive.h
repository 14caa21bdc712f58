/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a zip file or of an uncompressed tar file, read in any order. */
#ifndef LEATI_DATA_ARCHIVE_ARCHIVE_H
#define LEATI_DATA_ARCHIVE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"

/* Opaque: an open archive, whose file is mapped.  Threads: immutable. */
typedef struct leati_archive leati_archive;

/* The bytes at the beginning of a file by which leati_is_archive() recognizes an archive. */
enum { LEATI_ARCHIVE_HEAD_BYTES = 512 };

/* A deflated member of more bytes is refused, so that a small file cannot take all memory. */
enum { LEATI_ARCHIVE_MOST_UNPACKED = 256 << 20 };

/* Returns true if a file that begins with these bytes is a zip file or a tar file. */
bool leati_is_archive(const void *head, size_t bytes);

/* Maps an archive and reads the headers of all its members.
 * @param[out] out  For leati_archive_close; NULL on failure.
 * Errors: LEAT_EFORMAT no archive, or damaged, or cut off; LEAT_ENOTSUP a member that is encrypted, sparse, or packed
 * by another method than deflate; LEAT_ENOTFOUND, LEAT_EIO; LEAT_ENOMEM. */
leat_status leati_archive_open(leati_archive **out, const char *path, leat_error *err);

/* Like leati_archive_open(), for an archive in memory that is borrowed until leati_archive_close. */
leat_status leati_archive_open_bytes(leati_archive **out, const void *data, size_t bytes, const char *label,
                                     leat_error *err);

/* Closes the archive; NULL is allowed. */
void leati_archive_close(leati_archive *archive);

int64_t leati_archive_count(const leati_archive *archive);

/* Returns the name of a member as the archive has it; the name of a folder ends in '/'.  NULL for a link of a tar
 * file. */
const char *leati_archive_name(const leati_archive *archive, int64_t member);

/* Reads the content of a member, and verifies the checksum that a zip file has.
 * @param[out] out  For leati_free; NULL on failure.
 * Errors: LEAT_EFORMAT the member is damaged; LEAT_ESHAPE it has more than LEATI_ARCHIVE_MOST_UNPACKED bytes; LEAT_EIO
 * the file was shortened; LEAT_ENOMEM.  Threads: any. */
leat_status leati_archive_read(const leati_archive *archive, int64_t member, unsigned char **out,
                               size_t *bytes, leat_error *err);

/* Returns the path of the file. */
const char *leati_archive_path(const leati_archive *archive);

#endif
