/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of arrays: what every ready-made source but a plugin becomes.  A column is one array with one row a sample,
 * and how its numbers are converted on their way into a batch. */
#ifndef LEATI_DATA_COLUMNS_H
#define LEATI_DATA_COLUMNS_H

#include "data/array.h"
#include "leat/sequence.h"
#include "leat/source.h"

/* What the options of a source ask of its columns. */
typedef struct leati_column_options {
    double numerator, denominator; /* of scale; denominator 0: none */
    int64_t onehot;                /* classes; 0: none */
    int shape_rank;                /* of shape; -1: as the file has it */
    int64_t shape[LEAT_MAX_RANK - 1];
} leati_column_options;

leati_column_options leati_column_options_default(void);

typedef struct leati_columns leati_columns;

/* Copies the caller's options, or the defaults for NULL, into a struct of this version.  Errors: those of
 * leati_growing_read. */
leat_status leati_source_options_read(const leat_source_options *in, leat_source_options *out,
                                      leat_error *err);

/* Starts with no column.  Once it is there, leati_columns_destroy frees it, and calls release(owner). */
leat_status leati_columns_create(leati_columns **out, const leat_source_options *options, void *owner,
                                 void (*release)(void *owner), leat_error *err);
void leati_columns_destroy(leati_columns *columns);

/* Adds an array (C order; its data stays until destroy), inputs first, then targets, then sample weights.  name may be
 * NULL; `origin` names the array in messages. */
leat_status leati_columns_add(leati_columns *columns, leat_batch_part part, const char *name,
                              const leati_array *array, const leati_column_options *options,
                              const char *origin, leat_error *err);

/* Turns the columns into a sequence, which owns them from then on, and destroys them here on failure. */
leat_status leati_columns_finish(leat_sequence *out, leati_columns *columns, leat_error *err);

#endif
