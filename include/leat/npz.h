/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's files: .npy (one array) and .npz (a zip of named arrays), written and read. */
#ifndef LEAT_NPZ_H
#define LEAT_NPZ_H

#include "leat/error.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** numpy.save(path, tensor).  Replaces the file as leat_file_replace does: on failure the old one is untouched.
 *  Errors: LEAT_EINVAL not a regular file; LEAT_EIO with the path.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_npy_write(const char *path, const leat_tensor *tensor,
                                                 leat_error *err);

/** numpy.savez(path, names[i]=tensors[i]...), stored, each array at a multiple of 64 bytes, the same bytes for the same
 *  data.  Replaces the file atomically.  Errors: LEAT_EIO; LEAT_EINVAL a name twice, empty, or too long; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_npz_write(const char *path, const char *const *names,
                                                 const leat_tensor *tensors, int count, leat_error *err);

/** Opaque: an open .npz file, or a .npy file as one array named "".  Externally synchronised.  The file must not be
 *  shortened while it is open: it is mapped, not loaded, and reading what is missing raises SIGBUS. */
typedef struct leat_npz leat_npz;

/** numpy.load(path).
 *  @param[out] out  New, closed by leat_npz_close; NULL on failure.
 *  Errors: LEAT_ENOTFOUND, LEAT_EIO; LEAT_EFORMAT neither .npz nor .npy, or damaged; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_npz_open(leat_npz **out, const char *path, leat_error *err);

/** Arrays in the file, and the name of one: in the file's order.  A name belongs to the npz, until leat_npz_close. */
LEAT_API int leat_npz_count(const leat_npz *npz);
LEAT_API const char *leat_npz_name(const leat_npz *npz, int index);

/** The array of that name, in the file's data type, in C order and this machine's byte order: in place where the file has
 *  it so, otherwise a copy made at the first call.  leat_tensor_copy converts it to another type.
 *  @param[out] out  Read-only.  Its memory belongs to the npz, until leat_npz_close; further calls leave it in place.
 *  Errors: LEAT_ENOTFOUND lists the names there are; LEAT_EFORMAT damaged; LEAT_ENOTSUP a type; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_npz_get(leat_npz *npz, const char *name, leat_tensor *out,
                                               leat_error *err);

/** NULL is fine; sets *npz to NULL. */
LEAT_API void leat_npz_close(leat_npz **npz);

#ifdef __cplusplus
}
#endif
#endif
