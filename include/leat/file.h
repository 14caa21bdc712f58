/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing files: leat writes models, weights, arrays, histories and reports with this function. */
#ifndef LEAT_FILE_H
#define LEAT_FILE_H

#include <stddef.h>

#include "leat/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Replaces the content of the file at `path` by the `bytes` bytes at `data`, atomically: writes them to a new
 *  file in the same folder, flushes that file to the disk and renames it.  A reader sees either the old content
 *  or the new one.  After a failure the old content remains.  If `path` is a symbolic link, the file that the
 *  link points to is replaced, and the link remains.  The new file gets the permissions of the old file, and its
 *  owner and group if the process may set them.
 *  Errors: LEAT_EINVAL the path is not a regular file (but a directory, device, FIFO or socket), which remains
 *  unchanged; LEAT_EIO links form a loop, a file or folder is not writable, the disk is full; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_file_replace(const char *path, const void *data, size_t bytes,
                                                    leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
