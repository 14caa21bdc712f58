/* SPDX-License-Identifier: Apache-2.0 */
/* Gives access to the unconverted arrays of an .npz file, for sources that convert sample by sample. */
#ifndef LEATI_DATA_NPZ_H
#define LEATI_DATA_NPZ_H

#include "data/npy.h"
#include "leat/npz.h"

/* Finds an array by name.  A stored array is mapped; a deflated one is unpacked at the first call, and one in
 * Fortran order is copied to C order at the first call.  The array is borrowed until leat_npz_close. */
leat_status leati_npz_array(leat_npz *npz, const char *name, const leati_array **out, leat_error *err);

/* Like leat_npz_open, but with a guarded mapping: the `map` of each mapped array is set, for leati_map_check after
 * reading. */
leat_status leati_npz_open_guarded(leat_npz **out, const char *path, leat_error *err);

/* Like leat_npz_open, but the file's `size` bytes lie in memory and are borrowed until leat_npz_close. */
leat_status leati_npz_open_bytes(leat_npz **out, const void *data, size_t size, const char *label,
                                 leat_error *err);

#endif
