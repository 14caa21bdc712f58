/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing files: leat writes models, weights, arrays, histories and reports with this function.  Locks of folders,
 * so that only one process at a time writes the files of a run. */
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

/** Removes the unfinished files that leat_file_replace, or another function that writes a file, left in a folder
 *  because its process was killed: regular files named NAME.leat-PID-N.tmp, unless a process PID runs that may be
 *  writing the file.  Files with the pid of this process count as left by a dead one, since pids are used again.
 *  Therefore no thread of this process may write files in the folder during the call: call it after
 *  leat_folder_lock, before the folder is used.  Folders inside the folder are not searched.
 *  Errors: LEAT_ENOTFOUND there is no such folder; LEAT_EINVAL the path is not a folder; LEAT_EIO the folder cannot be
 *  read, or a file cannot be removed (the others are removed).
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_folder_clean(const char *folder, leat_error *err);

/** Opaque: a lock of a folder, which this process holds.  A child that is forked while the lock is held does not hold
 *  the lock; in a child, leat_folder_unlock frees the object and changes nothing else.
 *  Threads: any thread may lock and unlock. */
typedef struct leat_lock leat_lock;

/** Locks a folder for this process, so that no other call of leat_folder_lock for the folder succeeds, in any process,
 *  until leat_folder_unlock or until this process ends, however it ends.  The lock is a POSIX lock (fcntl) of the file
 *  `lock` in the folder, which is created if necessary and remains in the folder.  The file contains a line that says
 *  which process holds the lock and since when.  The lock ends early if the process opens and closes that file itself,
 *  or if somebody removes the file.
 *  @param[out] out  The lock, owned by the caller (leat_folder_unlock); NULL on failure.
 *  Errors: LEAT_EBUSY this or another process holds the lock, the message says which; LEAT_ENOTFOUND there is no such
 *  folder; LEAT_EINVAL the path is not a folder, or its file `lock` is not leat's; LEAT_ENOTSUP the file system has no
 *  locks; LEAT_EIO the file cannot be opened or created; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_folder_lock(leat_lock **out, const char *folder, leat_error *err);

/** Releases a lock, empties the file `lock`, and sets *lock to NULL.  A *lock of NULL is allowed. */
LEAT_API void leat_folder_unlock(leat_lock **lock);

#ifdef __cplusplus
}
#endif
#endif
