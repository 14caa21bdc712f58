/* SPDX-License-Identifier: Apache-2.0 */
/* Files: mapped for reading, replaced atomically, or written as a stream. */
#ifndef LEATI_BASE_OS_FILE_H
#define LEATI_BASE_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/os/guard.h"
#include "leat/error.h"

/* A read-only mapping of a file's bytes.  The bytes stay valid unless somebody shortens the file. */
typedef struct leati_map {
    const unsigned char *data;
    size_t size;
    leati_guard *guard; /* NULL if the mapping is not guarded */
    char *path;         /* path of the file if the mapping is guarded, otherwise NULL */
    dev_t device;       /* identifies the file together with inode, since another file may take its path */
    ino_t inode;
} leati_map;

/* Maps a file.  Errors: LEAT_ENOTFOUND there is no such file; LEAT_EIO, with errno; LEAT_EINVAL not a regular
 * file. */
leat_status leati_map_open(leati_map *out, const char *path, leat_error *err);

/* Like leati_map_open(), but if the file is shortened, the missing pages read as zeros instead of raising SIGBUS.
 * Readers call leati_map_check after reading.  Errors: also LEAT_ENOMEM. */
leat_status leati_map_open_guarded(leati_map *out, const char *path, leat_error *err);

/* Checks that the `bytes` bytes at `from`, which the caller has read from a guarded mapping, were the file's.
 * Errors: LEAT_EIO the file was shortened or its device failed; once a missing page has been read, every later check
 * of the mapping fails.  A map of NULL or without a guard passes.  Threads: any. */
leat_status leati_map_check(const leati_map *map, const void *from, size_t bytes, leat_error *err);

void leati_map_close(leati_map *map);

/* Writes all bytes, with write(2), or with pwrite(2) if offset is not negative.  Returns 0 or the error's errno
 * value; beyond the limit of file sizes that is EFBIG, without the signal SIGXFSZ. */
int leati_write_all(int fd, const void *data, size_t bytes, int64_t offset);

/* An atomic replacement of a file: the new file is written under a temporary name in the same folder, flushed to the
 * disk, and renamed.  leat replaces files through these functions only.
 *
 * The path may name a regular file, no file yet, or a symbolic link to either; anything else (a directory, device,
 * FIFO, socket) is refused and not changed.  The new file gets the permissions of the old one, and its owner and
 * group if the process may set them; if it may not set the group, the new group gets the permissions of others.  ACLs
 * and extended attributes are not copied.
 *
 * The caller ends a replacement with commit or abandon, which removes the unfinished file.  After a failed begin, and
 * after commit whether or not it fails, there is nothing left to free. */
typedef struct leati_replacement {
    int fd;          /* -1: none */
    char *path;      /* the file to replace, after following all links */
    char *temporary; /* the unfinished file, in the same folder */
    bool replaces;   /* there is an old file; mode, owner and group are those of the old file */
    mode_t mode;
    uid_t owner;
    gid_t group;
} leati_replacement;

/* Errors of begin: LEAT_EINVAL the path names something that is not a regular file; LEAT_EIO, with errno: links in a
 * loop, or a file or folder without permission to write; LEAT_ENOMEM. */
leat_status leati_replace_begin(leati_replacement *out, const char *path, leat_error *err);
leat_status leati_replace_write(leati_replacement *file, const void *data, size_t bytes, leat_error *err);
leat_status leati_replace_commit(leati_replacement *file, leat_error *err);
void leati_replace_abandon(leati_replacement *file);

/* Opens a file that is written in place and piece by piece, so that it is readable even if the program is killed: a
 * trace or a log.  `append`: keeps the file's bytes and appends; otherwise empties the file.  A FIFO or a character
 * device (`/dev/stdout`) is accepted, too.  The caller closes the descriptor.  Errors: LEAT_EINVAL a directory, block
 * device or socket; LEAT_EIO. */
leat_status leati_stream_open(int *out, const char *path, bool append, leat_error *err);

#endif
