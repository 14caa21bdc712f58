/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of this room share: the lock, the open file, errors with HDF5's messages. */
#ifndef LEATI_H5_PRIVATE_H
#define LEATI_H5_PRIVATE_H

#include <hdf5.h>

#include "h5/h5.h"

struct leati_h5 {
    hid_t file;
    char *path;
    /* The storage of a file that leati_h5_driver_open opens: `bytes`, `buffer` or `fd` is set.  It is borrowed. */
    const unsigned char *bytes; /* a file in memory that is read; `size` bytes */
    size_t size;
    leati_h5_buffer *buffer; /* a file in memory that is written */
    int fd;                  /* a file on disk that is written; -1: none */
    int write_error;         /* errno of the first write that failed; 0: none */
};

/* Take and release the lock of HDF5.  Between the two calls HDF5 prints nothing, and no other thread calls HDF5. */
void leati_h5_enter(void);
void leati_h5_leave(void);

/* Returns `code` and makes an error that names the file and the object and ends with HDF5's innermost message. */
leat_status leati_h5_fail(leati_h5 *file, leat_status code, leat_error *err, const char *object,
                          const char *message);

/* Opens file->bytes for reading, or creates an empty file in file->buffer or file->fd.  Returns HDF5's identifier,
 * negative on failure.  A write that fails sets file->write_error, and HDF5 goes on as if it had succeeded. */
hid_t leati_h5_driver_open(leati_h5 *file);

/* Opens an object whose path consists of hard links only.  Errors: LEAT_ENOTFOUND, LEAT_EFORMAT. */
leat_status leati_h5_open_object(leati_h5 *file, const char *object, hid_t *out, leat_error *err);

#endif
