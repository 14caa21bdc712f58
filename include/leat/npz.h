/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's files: .npy (one array) and .npz (a zip archive of named arrays), for writing and reading. */
#ifndef LEAT_NPZ_H
#define LEAT_NPZ_H

#include "leat/error.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Writes a tensor to a .npy file, like numpy.save(path, tensor).  Replaces the file atomically
 *  (leat_file_replace): on failure the old file is unchanged.
 *  Errors: LEAT_EINVAL the path is not a regular file, the tensor has no data; LEAT_EDTYPE, LEAT_ESHAPE the
 *  tensor; LEAT_EIO names the path; LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_npy_write(const char *path, const leat_tensor *tensor,
                                                 leat_error *err);

/** Writes `count` tensors to a .npz file, like numpy.savez(path, names[i]=tensors[i], ...).  The arrays are not
 *  compressed, and each begins at a multiple of 64 bytes.  The same data gives the same bytes.  Replaces the file
 *  atomically.
 *  Errors: LEAT_EINVAL a name is empty, too long or given twice, a tensor has no data, or the path is not a
 *  regular file; LEAT_EDTYPE, LEAT_ESHAPE a tensor; LEAT_EIO; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_npz_write(const char *path, const char *const *names,
                                                 const leat_tensor *tensors, int count, leat_error *err);

/** An open .npz file, or a .npy file as one array with the name "".  Opaque.  The file is mapped, not loaded: it
 *  must not be shortened while it is open, since reading the missing part raises SIGBUS.  Threads: externally
 *  synchronised. */
typedef struct leat_npz leat_npz;

/** Opens a .npz or .npy file, like numpy.load(path).
 *  @param[out] out  New object, owned by the caller (leat_npz_close); NULL on failure.
 *  Errors: LEAT_ENOTFOUND, LEAT_EIO; LEAT_EFORMAT the file is neither .npz nor .npy, or is damaged; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_npz_open(leat_npz **out, const char *path, leat_error *err);

/** The number of arrays in the file, and the name of an array, in the order of the file.  A name is valid until
 *  leat_npz_close; it is NULL if the index is out of range. */
LEAT_API int leat_npz_count(const leat_npz *npz);
LEAT_API const char *leat_npz_name(const leat_npz *npz, int index);

/** Gives a view of the array with this name, in the file's data type, in row-major order and in this machine's
 *  byte order.  The view shows the mapped file if the file has this order; otherwise it shows a copy, which the
 *  first call makes. leat_tensor_copy converts the array to another data type.
 *  @param[out] out  Read-only.  The memory belongs to the npz and is valid until leat_npz_close; other calls do
 *  not move it.
 *  The first call for an array verifies its checksum, unless the array is stored uncompressed and larger than
 *  256 MiB.
 *  Errors: LEAT_ENOTFOUND no such name, the message lists the names; LEAT_EFORMAT the array is damaged;
 *  LEAT_ENOTSUP the data type is not supported; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_npz_get(leat_npz *npz, const char *name, leat_tensor *out,
                                               leat_error *err);

/** Closes the file and sets *npz to NULL; NULL is fine. */
LEAT_API void leat_npz_close(leat_npz **npz);

#ifdef __cplusplus
}
#endif
#endif
