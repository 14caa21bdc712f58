/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share: the lock, the file, and HDF5's messages as ours. */
#ifndef LEATI_H5_PRIVATE_H
#define LEATI_H5_PRIVATE_H

#include <hdf5.h>

#include "h5/h5.h"

struct leati_h5 {
    hid_t file;
    char *path;
    int fd;          /* of a file that is written; borrowed */
    int write_error; /* of errno: the first write that failed; 0: none */
};

/* Between these, HDF5 prints nothing, and no other thread is inside HDF5. */
void leati_h5_enter(void);
void leati_h5_leave(void);

/* An error that names file and object, with HDF5's innermost message. */
leat_status leati_h5_fail(leati_h5 *file, leat_status code, leat_error *err, const char *object,
                          const char *what);

/* A new, empty file, written to file->fd: HDF5's number of it, negative on failure.  What cannot be written sets
 * file->write_error, and HDF5 goes on as if it had been. */
hid_t leati_h5_sink_create(leati_h5 *file);

/* Opens an object by hard links alone.  Errors: LEAT_ENOTFOUND, LEAT_EFORMAT. */
leat_status leati_h5_open_object(leati_h5 *file, const char *object, hid_t *out, leat_error *err);

#endif
