/* SPDX-License-Identifier: Apache-2.0 */
/* Reads text files of values with separators (CSV, RFC 4180) into arrays of 4-byte numbers.  A file is cut into chunks
 * of a fixed size at ends of rows, which several threads parse; results and messages do not depend on their number.
 *
 *   csv_options.c   what the SPEC says; finds the columns by the header's names
 *   csv_rows.c      parses the rows of one chunk
 *   csv_runs.c      remembers in which line each row began
 *   csv_file.c      cuts a file into chunks and joins their results
 *   csv_mapping.c   the numbers of categories and the means, and the file that keeps them
 *   csv.c           the source */
#ifndef LEATI_DATA_TABLE_CSV_H
#define LEATI_DATA_TABLE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/threads/thread_pool.h"
#include "data/kinds.h"
#include "data/table/dictionary.h"

enum { LEATI_CSV_CHUNK_BYTES = 256 << 10, LEATI_CSV_MESSAGE_BYTES = 320 };

typedef enum leati_csv_type {
    LEATI_CSV_UNUSED,
    LEATI_CSV_NUMBER,
    LEATI_CSV_INTEGER,
    LEATI_CSV_CATEGORY,       /* a text that becomes its number */
    LEATI_CSV_ONEHOT_CATEGORY /* a text that becomes a row of zeros and a one */
} leati_csv_type;

/* The policies for a missing value. */
typedef enum leati_csv_missing {
    LEATI_CSV_MISSING_FAIL,
    LEATI_CSV_MISSING_SKIP, /* leaves out the row */
    LEATI_CSV_MISSING_MEAN, /* the mean of the column's other values */
    LEATI_CSV_MISSING_VALUE
} leati_csv_missing;

/* How the text is read. */
typedef struct leati_csv_format {
    char separator, point;
    bool has_header;
    int64_t skipped_lines; /* before the header */
    leati_csv_missing missing;
    float missing_value;
    bool skip_bad;      /* leaves out rows that cannot be read */
    size_t chunk_bytes; /* 0: LEATI_CSV_CHUNK_BYTES; other values are for tests */
} leati_csv_format;

typedef struct leati_csv_column {
    char *name;
    leati_csv_type type;
    int group;              /* the tensor that the column belongs to; -1: none */
    int place;              /* the index of the column in its group */
    leati_dictionary words; /* of a category */
    bool words_are_fixed;   /* they were read from a mapping */
    double mean;
    bool mean_is_fixed;
} leati_csv_column;

/* Columns that make one tensor. */
typedef struct leati_csv_group {
    leat_batch_part part;
    int *columns; /* (width): indices of columns */
    int width;
    bool is_integer;
    int64_t final_width; /* with the columns of one-hot categories */
    void *data;          /* (rows, width), then (rows, final_width); int32 or float32 */
} leati_csv_group;

/* Rows from `row` on, of which each has one line, beginning with `line`. */
typedef struct leati_csv_run {
    int64_t row, line;
    int file; /* the index of the file */
} leati_csv_run;

typedef struct leati_csv_runs {
    leati_csv_run *at; /* in the order of the rows */
    int64_t count;
} leati_csv_runs;

typedef struct leati_csv_table {
    leati_csv_format format;
    leati_csv_column *columns;
    int column_count;
    leati_csv_group groups[LEAT_BATCH_MAX_TENSORS];
    int group_count;
    int64_t rows;
    leati_csv_runs runs; /* where the rows come from */
    char **paths;        /* (path_count): of the files */
    int path_count;
    char *mapping; /* the path of a mapping; NULL: none */
    bool mapping_was_read;
    int64_t skipped;                             /* rows that were left out */
    char first_skipped[LEATI_CSV_MESSAGE_BYTES]; /* the reason of the first of them */
} leati_csv_table;

void leati_csv_table_fini(leati_csv_table *table);

/* ---- csv_options.c ---- */

/* Reads the format from the options of a SPEC.  Errors: LEAT_EINVAL. */
leat_status leati_csv_format_read(leati_csv_format *out, const leati_spec *spec, leat_error *err);

/* Makes the groups that the options name, when the columns are known.  Errors: LEAT_EINVAL; LEAT_ENOMEM. */
leat_status leati_csv_groups_read(leati_csv_table *table, const leati_spec *spec, leat_error *err);

/* ---- csv_rows.c ---- */

/* The rows of a part of a file. */
typedef struct leati_csv_chunk {
    const char *begin, *end;
    int64_t rows, capacity, lines, skipped;
    uint32_t *data[LEAT_BATCH_MAX_TENSORS]; /* (rows, width) for each group */
    leati_dictionary *words;                /* (columns): of categories */
    leati_csv_runs runs;                    /* lines are counted from 0 in the chunk */
    leat_status status;
    int64_t bad_line; /* of the failure or of the first skipped row, counted from 0 in the chunk */
    char message[LEATI_CSV_MESSAGE_BYTES];
} leati_csv_chunk;

/* Parses the rows from chunk->begin to chunk->end; the failure is in chunk->status. */
void leati_csv_chunk_parse(leati_csv_chunk *chunk, const leati_csv_table *table);
void leati_csv_chunk_fini(leati_csv_chunk *chunk, const leati_csv_table *table);

/* Reads the names of a header and returns the text behind it; without a header, the names are numbers and the text is
 * returned as it is.  Errors: LEAT_EFORMAT; LEAT_ENOMEM. */
leat_status leati_csv_header_read(char ***names, int *count, const char **text, const char *end,
                                  int64_t *line, const leati_csv_format *format, leat_error *err);

/* ---- csv_runs.c ---- */

/* Notes that a row, the next one, begins in a line.  Returns false if there is no memory. */
bool leati_csv_runs_add(leati_csv_runs *runs, int64_t row, int64_t line, int file);

/* Returns the file and the line of a row that was added. */
leati_csv_run leati_csv_runs_find(const leati_csv_runs *runs, int64_t row);
void leati_csv_runs_fini(leati_csv_runs *runs);

/* ---- csv_file.c ---- */

/* Appends the rows of a file.  The first file defines the columns; `spec` says how they are used.
 * @param pool  May be NULL.
 * Errors: LEAT_EFORMAT a row, with file and line; LEAT_EINVAL; LEAT_ENOMEM. */
leat_status leati_csv_table_add(leati_csv_table *table, const char *text, size_t bytes, const char *label,
                                const leati_spec *spec, leati_thread_pool *pool, leat_error *err);

/* ---- csv_mapping.c ---- */

/* Reads the numbers of categories and the means that a file keeps; *found is false if there is no such file. */
leat_status leati_csv_mapping_read(leati_csv_table *table, const char *path, bool *found, leat_error *err);
leat_status leati_csv_mapping_write(const leati_csv_table *table, const char *path, leat_error *err);

/* Numbers the categories in the order of their texts, fills in means, and widens one-hot categories. */
leat_status leati_csv_table_finish(leati_csv_table *table, leat_error *err);

#endif
