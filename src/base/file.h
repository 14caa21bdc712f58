/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: mapped for reading, and replaced in one step when written. */
#ifndef LEATI_BASE_FILE_H
#define LEATI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/guard.h"
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

/* A file that appears under its name only when it is complete: written beside it, flushed to the disk, renamed.
 * After begin fails or commit (either way) nothing is owed; otherwise abandon removes the unfinished file. */
typedef struct leati_replacement {
    int fd; /* -1: none */
    char *path;
    char *temporary;
} leati_replacement;

leat_status leati_replace_begin(leati_replacement *out, const char *path, leat_error *err);
leat_status leati_replace_write(leati_replacement *file, const void *data, size_t bytes, leat_error *err);
leat_status leati_replace_commit(leati_replacement *file, leat_error *err);
void leati_replace_abandon(leati_replacement *file);

#endif
