/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of an .npz file as they lie in it, for the sources, which convert sample by sample. */
#ifndef LEATI_DATA_NPZ_H
#define LEATI_DATA_NPZ_H

#include "data/npy.h"
#include "leat/npz.h"

/* The array of that name: mapped where it is stored, inflated at the first call where it is deflated.  Never in Fortran
 * order: such an array is transposed at the first call.  Borrowed until leat_npz_close. */
leat_status leati_npz_array(leat_npz *npz, const char *name, const leati_array **out, leat_error *err);

/* leat_npz_open for those who check what they have read: arrays that lie in the file have its mapping, for leati_map_check. */
leat_status leati_npz_open_guarded(leat_npz **out, const char *path, leat_error *err);

/* leat_npz_open over bytes that stay until leat_npz_close. */
leat_status leati_npz_open_bytes(leat_npz **out, const void *data, size_t size, const char *label,
                                 leat_error *err);

#endif
