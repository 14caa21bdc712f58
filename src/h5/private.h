/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of this room share: the lock, the open file, errors with HDF5's messages. */
#ifndef LEATI_H5_PRIVATE_H
#define LEATI_H5_PRIVATE_H

#include <hdf5.h>

#include "h5/h5.h"
#include "h5/reader.h"

/* An open file: `image` is set if it is read, the other members if it is written. */
struct leati_h5 {
    char *path;
    leati_h5_image image;
    hid_t file;   /* H5I_INVALID_HID: the file is read */
    hid_t driver; /* the class of the driver; set by leati_h5_driver_open if the file was created */
    /* The storage of a file that leati_h5_driver_open creates: `buffer` or `fd` is set.  It is borrowed. */
    leati_h5_buffer *buffer;
    int fd;          /* -1: none */
    int write_error; /* errno of the first write that failed; 0: none */
};

/* Take and release the lock of HDF5.  Between the two calls HDF5 prints nothing, and no other thread calls HDF5. */
void leati_h5_enter(void);
void leati_h5_leave(void);

/* Returns `code` and makes an error that names the file and the object and ends with HDF5's innermost message. */
leat_status leati_h5_fail(leati_h5 *file, leat_status code, leat_error *err, const char *object,
                          const char *message);

/* Creates an empty file in file->buffer or file->fd.  Returns HDF5's identifier, negative on failure.  A write that
 * fails sets file->write_error, and HDF5 goes on as if it had succeeded. */
hid_t leati_h5_driver_open(leati_h5 *file);
/* Must be called after H5Fclose of a file that leati_h5_driver_open has created. */
void leati_h5_driver_close(leati_h5 *file);

/* Ends the use of a reader; returns its status and makes an error that names the file, the object and the problem. */
leat_status leati_h5_report(const leati_h5 *file, leati_h5_reader *r, leat_error *err, const char *object);

/* A dataset of numbers that is being read. */
typedef struct leati_h5_dataset {
    leati_h5 *file;
    const char *name;
    leati_h5_reader reader;
    leati_h5_header header;
    leati_h5_type type;
    leati_h5_space space;
} leati_h5_dataset;

/* Opens a dataset of numbers.  After a failure there is nothing to close. */
leat_status leati_h5_dataset_open(leati_h5_dataset *d, leati_h5 *file, const char *name, leat_error *err);
/* Returns the type that a dataset is read as by default. */
leat_dtype leati_h5_default_dtype(leat_dtype stored);
/* Converts elements as they are in the file, which are overwritten if their byte order is another. */
void leati_h5_convert(leat_dtype dtype, void *dst, const leati_h5_type *type, unsigned char *elements,
                      size_t count);
/* Ends the use; returns the reader's error. */
leat_status leati_h5_dataset_close(leati_h5_dataset *d, leat_error *err);

#endif
