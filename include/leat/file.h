/* SPDX-License-Identifier: Apache-2.0 */
/* How leat replaces files: the same for models, weights, arrays, histories and reports. */
#ifndef LEAT_FILE_H
#define LEAT_FILE_H

#include <stddef.h>

#include "leat/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Makes `bytes` bytes of `data` the content of the file at `path`, in one step: they are written to a new file beside it,
 *  which is flushed to the disk and then renamed.  A reader sees the old content or the new one; after a failure the old one.
 *  A symbolic link is followed, and stays.  The new file has the old one's permissions, and its owner and group where the
 *  process may set them.
 *  Errors: LEAT_EINVAL there is something else than a regular file (a directory, device, FIFO, socket), which stays as it is;
 *  LEAT_EIO links in a loop, a file or folder that may not be written, a full disk; LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_file_replace(const char *path, const void *data, size_t bytes,
                                                    leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
