/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the lock, the file, and HDF5's messages as ours. */
#ifndef LEATI_H5_PRIVATE_H
#define LEATI_H5_PRIVATE_H

#include <hdf5.h>

#include "h5/h5.h"

struct leati_h5 {
    hid_t file;
    char *path;
};

/* Between these, HDF5 prints nothing, and no other thread is inside HDF5. */
void leati_h5_enter(void);
void leati_h5_leave(void);

/* An error that names file and object, with HDF5's innermost message. */
leat_status leati_h5_fail(leati_h5 *file, leat_status code, leat_error *err, const char *object,
                          const char *what);

/* Opens an object by hard links alone.  Errors: LEAT_ENOTFOUND, LEAT_EFORMAT. */
leat_status leati_h5_open_object(leati_h5 *file, const char *object, hid_t *out, leat_error *err);

#endif
