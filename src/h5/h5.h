/* SPDX-License-Identifier: Apache-2.0 */
/* The part of HDF5 that Keras's files need; the only room that includes hdf5.h.  Files are read by leat's own reader
 * (reader.h), which checks all that it reads; libhdf5 writes them, under one lock, and its messages become leat's
 * errors.  Soft and external links, external and virtual storage are refused and never followed.  Internally
 * synchronised. */
#ifndef LEATI_H5_H5_H
#define LEATI_H5_H5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/tensor.h"

/* The largest attribute in bytes, a little below what an object header can hold; longer lists of strings are
 * split, as Keras splits them. */
#define LEATI_H5_HEADER_LIMIT 64512

typedef struct leati_h5 leati_h5;

/* The strings of an attribute; leati_h5_strings_fini frees them. */
typedef struct leati_h5_strings {
    char **items;
    size_t count;
} leati_h5_strings;

/* A file that is written into memory: zeroed before; `data` is for leati_free, after leati_h5_close. */
typedef struct leati_h5_buffer {
    unsigned char *data;
    size_t count, capacity; /* bytes */
} leati_h5_buffer;

/* Opens a file for reading.  Errors: LEAT_ENOTFOUND, LEAT_EIO; LEAT_EINVAL not a regular file; LEAT_EFORMAT not an
 * HDF5 file; LEAT_ENOMEM. */
leat_status leati_h5_open(leati_h5 **out, const char *path, leat_error *err);
/* Opens a file whose `size` bytes lie in memory, at any alignment; they are borrowed until leati_h5_close.
 * `label` replaces the path in messages.  Errors: LEAT_EFORMAT not an HDF5 file; LEAT_ENOMEM. */
leat_status leati_h5_open_bytes(leati_h5 **out, const char *label, const void *data, size_t size,
                                leat_error *err);
/* Creates an empty file.  Its bytes go to the descriptor, which is open for reading and writing, refers to an
 * empty file, and is borrowed until leati_h5_close.  `label` replaces the path in messages. */
leat_status leati_h5_create(leati_h5 **out, const char *label, int fd, leat_error *err);
/* Like leati_h5_create, but the bytes go to the buffer, which is borrowed until leati_h5_close. */
leat_status leati_h5_create_in_memory(leati_h5 **out, const char *label, leati_h5_buffer *buffer,
                                      leat_error *err);
/* Closes the file; NULL is fine.  Errors: LEAT_EIO a write failed, now or earlier; LEAT_ENOMEM so did the growth
 * of a buffer. */
leat_status leati_h5_close(leati_h5 **file, leat_error *err);

/* Reading.  `object` is a path from the root: "/", "model_weights/dense_1". */

/* Sets *exists.  Errors: LEAT_EFORMAT the file is damaged there, or a link on the path is not a hard link. */
leat_status leati_h5_exists(leati_h5 *file, const char *object, bool *exists, leat_error *err);
/* Return true if the object or the attribute exists, and also if the file is damaged there, so that reading it gives
 * the error. */
bool leati_h5_has_object(leati_h5 *file, const char *object);
bool leati_h5_has_attribute(leati_h5 *file, const char *object, const char *name);
/* Reads an attribute that is one string, of fixed or variable length; *out is for leati_free. */
leat_status leati_h5_read_string(leati_h5 *file, const char *object, const char *name, char **out,
                                 leat_error *err);
/* Reads an attribute that is a list of strings, or the attributes name0, name1, ... into which it was split.  An
 * empty list may have any type. */
leat_status leati_h5_read_strings(leati_h5 *file, const char *object, const char *name, leati_h5_strings *out,
                                  leat_error *err);
void leati_h5_strings_fini(leati_h5_strings *strings);
/* Gives a dataset's shape and type (out->data is NULL).
 * Errors: LEAT_EDTYPE the elements are no numbers; LEAT_ESHAPE more than LEAT_MAX_RANK dimensions. */
leat_status leati_h5_describe(leati_h5 *file, const char *dataset, leat_tensor *out, leat_error *err);
/* A dataset as it is stored. */
typedef struct leati_h5_place {
    leat_dtype dtype;
    bool swapped; /* the byte order is not this machine's */
    int rank;
    int64_t shape[LEAT_MAX_RANK];
    int64_t
        offset; /* of the elements in the file, in row-major order; -1: they are in chunks, or not in the file */
} leati_h5_place;

/* Says where a dataset of numbers is.  Errors: as leati_h5_describe. */
leat_status leati_h5_locate(leati_h5 *file, const char *dataset, leati_h5_place *out, leat_error *err);
/* Reads a dataset into tensor->data, converted to tensor->dtype; tensor->data is undefined after a failure.
 * Errors: LEAT_ESHAPE the dataset's shape is not the tensor's; LEAT_EDTYPE LEAT_F16. */
leat_status leati_h5_read(leati_h5 *file, const char *dataset, const leat_tensor *tensor, leat_error *err);

/* A dataset in chunks that are read one at a time, for data that is larger than memory.  Immutable; any thread and any
 * forked process may read. */
typedef struct leati_h5_chunks leati_h5_chunks;

/* The form of such a dataset.  A band is all chunks that have the same rows: the rows from band * rows on. */
typedef struct leati_h5_chunk_form {
    leat_dtype dtype;        /* that leati_h5_describe says: chunks are converted to it */
    int64_t rows;            /* of a band; the last band of a dataset may have fewer */
    int64_t bands;           /* number of bands */
    int64_t in_band;         /* number of chunks of a band; chunk number b * in_band + i belongs to band b */
    size_t chunk_bytes;      /* of a chunk, unpacked and converted */
    size_t row_bytes;        /* of a row of the dataset, converted */
    const char *file, *name; /* for messages; borrowed until leati_h5_chunks_close */
} leati_h5_chunk_form;

/* Finds the chunks of a dataset.  *out is NULL, without an error, if the dataset has no chunks.  The file must stay
 * open until leati_h5_chunks_close.  Errors: as leati_h5_describe. */
leat_status leati_h5_chunks_open(leati_h5_chunks **out, leati_h5 *file, const char *dataset, leat_error *err);
void leati_h5_chunks_close(leati_h5_chunks **chunks);
leati_h5_chunk_form leati_h5_chunks_form(const leati_h5_chunks *chunks);
/* Reads a chunk; *out, for leati_free, has chunk_bytes bytes.  Errors: LEAT_EFORMAT it is damaged; LEAT_EIO;
 * LEAT_ENOMEM. */
leat_status leati_h5_chunks_load(const leati_h5_chunks *chunks, int64_t number, unsigned char **out,
                                 leat_error *err);
/* Copies the part that a chunk has of the rows first ... first + count - 1, which are rows of its band, to dst, an
 * array of these rows of the dataset. */
void leati_h5_chunks_copy(const leati_h5_chunks *chunks, int64_t number, const unsigned char *chunk,
                          int64_t first, int64_t count, unsigned char *dst);

/* Writing.  Missing groups on the path to `object` are created. */
leat_status leati_h5_write_group(leati_h5 *file, const char *object, leat_error *err);
/* Writes a string of variable length. */
leat_status leati_h5_write_string(leati_h5 *file, const char *object, const char *name, const char *value,
                                  leat_error *err);
/* Writes a list of strings of fixed length, split if it is too long for one attribute.  An empty list is written
 * as NumPy writes it. */
leat_status leati_h5_write_strings(leati_h5 *file, const char *object, const char *name,
                                   const char *const *values, size_t count, leat_error *err);
/* Writes a dataset.  Errors: LEAT_EDTYPE LEAT_F16. */
leat_status leati_h5_write(leati_h5 *file, const char *dataset, const leat_tensor *tensor, leat_error *err);

#endif
