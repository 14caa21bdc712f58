/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: mapped for reading, and replaced in one step when written. */
#ifndef LEATI_BASE_OS_FILE_H
#define LEATI_BASE_OS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/os/guard.h"
#include "leat/error.h"

/* A file's bytes, read-only.  They stay as long as nobody shortens the file. */
typedef struct leati_map {
    const unsigned char *data;
    size_t size;
    leati_guard *guard; /* NULL where the mapping is not guarded */
    char *path;         /* of a guarded one */
    dev_t device;       /* with inode: tells the file from another one under that path */
    ino_t inode;
} leati_map;

/* Errors: LEAT_EIO (ENOENT is LEAT_ENOTFOUND), with the path and errno's text; LEAT_EINVAL not a regular file. */
leat_status leati_map_open(leati_map *out, const char *path, leat_error *err);

/* The same for a file whose readers call leati_map_check after they have read: pages that are missing by then read as zeros,
 * instead of ending the program by SIGBUS.  Errors: also LEAT_ENOMEM. */
leat_status leati_map_open_guarded(leati_map *out, const char *path, leat_error *err);

/* Whether the bytes that were read from a guarded mapping, `bytes` from `from` on, are the file's.  Errors: LEAT_EIO the file
 * was shortened, or its device failed; from then on for all of the mapping.  NULL, and a mapping that is not guarded, are fine.
 * Threads: any. */
leat_status leati_map_check(const leati_map *map, const void *from, size_t bytes, leat_error *err);

void leati_map_close(leati_map *map);

/* write(2) and, with an offset that is not negative, pwrite(2), until all bytes are written.  Beyond the limit of file sizes
 * the result is EFBIG, and no signal.  Returns 0, or the number of the error. */
int leati_write_all(int fd, const void *data, size_t bytes, int64_t offset);

/* A file that appears under its name only when it is complete: written beside it, flushed to the disk, renamed.  Every file
 * that leat replaces is replaced through these functions.  The rule: a regular file, or a name that is free, is written; a
 * symbolic link is followed, also to a file that is yet to be; anything else (a directory, device, FIFO, socket) is refused
 * and stays as it is.  The new file has the permissions of the old one, and its owner and group where the process may set
 * them; a group that cannot be kept gets the permissions of others.  ACLs and extended attributes are not copied.
 * After begin fails or commit (either way) nothing is owed; otherwise abandon removes the unfinished file. */
typedef struct leati_replacement {
    int fd;          /* -1: none */
    char *path;      /* the file to replace, behind all links */
    char *temporary; /* the unfinished file, in the same folder */
    bool replaces;   /* there is an old file, with the following */
    mode_t mode;
    uid_t owner;
    gid_t group;
} leati_replacement;

/* Errors: LEAT_EINVAL something lies there that is no regular file; LEAT_EIO, with errno: links in a loop, a file or folder
 * that may not be written; LEAT_ENOMEM. */
leat_status leati_replace_begin(leati_replacement *out, const char *path, leat_error *err);
leat_status leati_replace_write(leati_replacement *file, const void *data, size_t bytes, leat_error *err);
leat_status leati_replace_commit(leati_replacement *file, leat_error *err);
void leati_replace_abandon(leati_replacement *file);

/* Opens a file that is written bit by bit and stays readable when the program is killed: a trace, a log.  It is written in
 * place, after what it has (`append`) or emptied, so a FIFO or a character device (`/dev/stdout`) serves as well.  The
 * descriptor is the caller's.  Errors: LEAT_EINVAL a directory, block device or socket; LEAT_EIO. */
leat_status leati_stream_open(int *out, const char *path, bool append, leat_error *err);

#endif
