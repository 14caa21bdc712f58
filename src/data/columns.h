/* SPDX-License-Identifier: Apache-2.0 */
/* Makes batches of arrays: every ready-made source except plugins becomes columns.  A column is one array whose
 * rows are the samples, with the conversion of its elements to a batch. */
#ifndef LEATI_DATA_COLUMNS_H
#define LEATI_DATA_COLUMNS_H

#include "data/array.h"
#include "data/npz.h"
#include "leat/sequence.h"
#include "leat/source.h"

/* The conversions that the options of a source request. */
typedef struct leati_column_options {
    double numerator, denominator;    /* factor of the inputs; denominator 0: no scaling */
    int64_t onehot;                   /* number of classes; 0: no one-hot coding */
    int shape_rank;                   /* length of `shape`; -1: the shape of the file */
    int64_t shape[LEAT_MAX_RANK - 1]; /* of an input sample */
} leati_column_options;

leati_column_options leati_column_options_default(void);

typedef struct leati_columns leati_columns;

/* Copies the caller's options, or the defaults for NULL, into a struct of this version.  Errors: those of
 * leati_growing_read. */
leat_status leati_source_options_read(const leat_source_options *in, leat_source_options *out,
                                      leat_error *err);

/* Computes value * numerator / denominator, as float32, for each byte.  *out has 256 elements, for leati_free; NULL for
 * the denominator 0, which means no scaling.  Errors: LEAT_ENOMEM. */
leat_status leati_scaled_bytes(float **out, double numerator, double denominator, leat_error *err);

/* Creates an empty list of columns; leati_columns_destroy frees the list and then calls release(owner), unless
 * release is NULL. */
leat_status leati_columns_create(leati_columns **out, const leat_source_options *options, void *owner,
                                 void (*release)(void *owner), leat_error *err);
void leati_columns_destroy(leati_columns *columns);

/* Adds an array; call this for the inputs first, then for the targets, then for the sample weights.  The array
 * must not be in Fortran order, and its data is borrowed until the columns are destroyed.  `name` may be NULL;
 * `origin` names the array in messages. */
leat_status leati_columns_add(leati_columns *columns, leat_batch_part part, const char *name,
                              const leati_array *array, const leati_column_options *options,
                              const char *origin, leat_error *err);

/* Adds the arrays of an .npz file with the names of a list, whose commas become zero bytes.  Without a list, adds the
 * array named `fallback`, which must exist if it is an input. */
leat_status leati_columns_add_members(leati_columns *columns, leat_npz *npz, char *list, const char *fallback,
                                      leat_batch_part part, const leati_column_options *options,
                                      leat_error *err);

/* Returns the number of arrays. */
int leati_columns_count(const leati_columns *columns);

/* Where a sample comes from. */
typedef struct leati_row_place {
    const char *path; /* borrowed */
    bool is_line;     /* `number` is that of a line, from 1 on; otherwise that of a row, from 0 on */
    int64_t number;
} leati_row_place;

/* Says that row N of the file `path`, of which the columns keep a copy, is sample N.  Errors: LEAT_ENOMEM. */
leat_status leati_columns_set_path(leati_columns *columns, const char *path, leat_error *err);

/* Says that `find` knows where the rows of the owner come from. */
void leati_columns_set_place(leati_columns *columns, leati_row_place (*find)(const void *owner, int64_t row));

/* Tells where a sample comes from; false: `sequence` was not made of columns, or nobody has said it. */
bool leati_columns_place(const leat_sequence *sequence, int64_t sample, leati_row_place *out);

/* Makes a sequence, which owns the columns; on failure the columns are destroyed. */
leat_status leati_columns_finish(leat_sequence *out, leati_columns *columns, leat_error *err);

/* Like leati_columns_finish(), for columns that need not have an input, but at least one array. */
void leati_columns_finish_any(leat_sequence *out, leati_columns *columns);

#endif
