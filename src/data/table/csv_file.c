/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a CSV file into chunks that begin where a row begins, has them parsed, and joins the results in order.
 * Room: data. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/table/csv.h"
#include "data/table/number.h"

enum { THREADS = 64 };

/* ---- Columns ---- */

static void free_names(char **names, int count) {
    for (int i = 0; i < count; ++i) leati_free(names[i]);
    leati_free(names);
}

/* Makes the columns of the first file; takes the names. */
static leat_status make_columns(leati_csv_table *table, char **names, int count, const leati_spec *spec,
                                leat_error *err) {
    table->columns = leati_calloc((size_t)count, sizeof *table->columns);
    if (!table->columns) {
        free_names(names, count);
        return leati_fail_memory(err, (size_t)count * sizeof *table->columns, "the columns of a table");
    }
    table->column_count = count;
    for (int i = 0; i < count; ++i) table->columns[i] = (leati_csv_column){.name = names[i], .group = -1};
    leati_free(names);
    LEATI_TRY(leati_csv_groups_read(table, spec, err));
    return table->mapping ? leati_csv_mapping_read(table, table->mapping, &table->mapping_was_read, err)
                          : LEAT_OK;
}

/* Checks that a further file has the columns of the first one; takes the names. */
static leat_status compare_columns(const leati_csv_table *table, char **names, int count, leat_error *err) {
    leat_status status = LEAT_OK;
    if (count != table->column_count)
        status = leati_fail(err, LEAT_EFORMAT, "expected the %d columns of the first file, found %d",
                            table->column_count, count);
    for (int i = 0; i < count && status == LEAT_OK; ++i)
        if (strcmp(names[i], table->columns[i].name) != 0)
            status = leati_fail(err, LEAT_EFORMAT, "column %d is '%s', expected '%s' as in the first file",
                                i + 1, names[i], table->columns[i].name);
    free_names(names, count);
    return status;
}

/* ---- Chunks ---- */

typedef struct parsing {
    const leati_csv_table *table;
    leati_csv_chunk *chunks;
} parsing;

static void parse_chunk(void *context, int64_t task, int member) {
    const parsing *p = context;
    (void)member;
    leati_csv_chunk_parse(&p->chunks[task], p->table);
}

/* Returns the first beginning of a row behind `p`; `quoted` says that p is inside of quotes. */
static const char *next_row(const char *p, const char *end, bool quoted) {
    for (; p < end; ++p) {
        quoted ^= *p == '"';
        if (*p == '\n' && !quoted) return p + 1;
    }
    return end;
}

static bool has_odd_quotes(const char *p, const char *end) {
    bool odd = false;
    while (p < end && (p = memchr(p, '"', (size_t)(end - p)))) {
        odd = !odd;
        ++p;
    }
    return odd;
}

/* Cuts the text; empty chunks are possible. */
static leat_status cut(leati_csv_chunk **out, int64_t *count, const char *text, const char *end,
                       size_t chunk_bytes, leat_error *err) {
    const size_t bytes = (size_t)(end - text);
    *count = (int64_t)((bytes + chunk_bytes - 1) / chunk_bytes);
    *out = leati_calloc((size_t)*count + 1, sizeof **out);
    if (!*out) return leati_fail_memory(err, (size_t)*count * sizeof **out, "the chunks of a file");
    const char *begin = text;
    bool quoted = false;
    for (int64_t i = 0; i < *count; ++i) {
        const char *stop = text + ((size_t)i + 1) * chunk_bytes;
        if (i + 1 == *count) stop = end;
        quoted ^= has_odd_quotes(text + (size_t)i * chunk_bytes, stop);
        (*out)[i].begin = begin;
        if (stop < begin)
            stop = begin; /* a row that is longer than a chunk */
        else if (stop < end)
            stop = next_row(stop, end, quoted);
        (*out)[i].end = begin = stop;
    }
    return LEAT_OK;
}

/* ---- Joining ---- */

static leat_status make_room(leati_csv_table *table, int64_t rows, leat_error *err) {
    for (int g = 0; g < table->group_count; ++g) {
        leati_csv_group *group = &table->groups[g];
        int64_t count = 0;
        if (table->rows + rows == 0) continue;
        if (!leati_mul_i64(table->rows + rows, group->width, &count)) count = INT64_MAX;
        void *data = leati_realloc(group->data, leati_count_bytes(count, 4), 1);
        if (!data) return leati_fail_memory(err, leati_count_bytes(count, 4), "the rows of a table");
        group->data = data;
    }
    return LEAT_OK;
}

static leat_status unknown_word(const leati_csv_column *c, const leati_word *word, int64_t line,
                                leat_error *err) {
    const int64_t first = line + word->line;
    return leati_fail(err, LEAT_EINVAL,
                      "line %lld, column '%s': '%.60s' is none of the %d categories that the mapping has",
                      (long long)first, c->name, word->text, (int)c->words.count);
}

/* Replaces the chunk's numbers of a category by those of the table. */
static leat_status renumber(leati_csv_table *table, leati_csv_chunk *chunk, int column, int64_t line,
                            leat_error *err) {
    leati_csv_column *c = &table->columns[column];
    const leati_dictionary *words = &chunk->words[column];
    const leati_csv_group *group = &table->groups[c->group];
    int32_t *numbers = leati_calloc((size_t)words->count + 1, sizeof *numbers); /* + 1; 0: not known yet */
    if (!numbers) return leati_fail_memory(err, (size_t)words->count * sizeof *numbers, "categories");
    leat_status status = LEAT_OK;
    for (int64_t row = 0; row < chunk->rows && status == LEAT_OK; ++row) {
        uint32_t *at = chunk->data[c->group] + row * group->width + c->place;
        float number = 0;
        int32_t old = 0;
        memcpy(&number, at, 4);
        memcpy(&old, at, 4);
        if (!group->is_integer) old = (int32_t)number;
        const leati_word *word = &words->words[old];
        if (numbers[old] == 0)
            numbers[old] = 1 + (c->words_are_fixed ? leati_dictionary_find(&c->words, word->text, word->bytes)
                                                   : leati_dictionary_add(&c->words, word->text, word->bytes,
                                                                          line + word->line));
        if (numbers[old] == 0)
            status = c->words_are_fixed ? unknown_word(c, word, line, err)
                                        : leati_fail_memory(err, 0, "categories");
        old = numbers[old] - 1;
        number = (float)old;
        memcpy(at, group->is_integer ? (const void *)&old : (const void *)&number, 4);
    }
    leati_free(numbers);
    return status;
}

/* Appends the rows of a chunk that begins at `line`. */
static leat_status append(leati_csv_table *table, leati_csv_chunk *chunk, int64_t line, leat_error *err) {
    for (int i = 0; i < table->column_count; ++i)
        if (table->columns[i].type >= LEATI_CSV_CATEGORY) LEATI_TRY(renumber(table, chunk, i, line, err));
    for (int g = 0; g < table->group_count; ++g) {
        const size_t row_bytes = (size_t)table->groups[g].width * 4;
        if (chunk->rows > 0)
            memcpy((char *)table->groups[g].data + (size_t)table->rows * row_bytes, chunk->data[g],
                   (size_t)chunk->rows * row_bytes);
    }
    for (int64_t i = 0; i < chunk->runs.count; ++i) {
        const leati_csv_run *run = &chunk->runs.at[i];
        if (!leati_csv_runs_add(&table->runs, table->rows + run->row, line + run->line,
                                table->path_count - 1))
            return leati_fail_memory(err, 0, "the lines of rows");
    }
    table->rows += chunk->rows;
    return LEAT_OK;
}

static leat_status join(leati_csv_table *table, leati_csv_chunk *chunks, int64_t count, const char *label,
                        int64_t line, leat_error *err) {
    int64_t rows = 0, at = line;
    for (int64_t i = 0; i < count; ++i) {
        const leati_csv_chunk *c = &chunks[i];
        if (c->status != LEAT_OK)
            return leati_fail(err, c->status, "line %lld: %s", (long long)at + c->bad_line, c->message);
        if (c->skipped > 0 && table->skipped == 0)
            snprintf(table->first_skipped, sizeof table->first_skipped, "'%.100s', line %lld: %.150s", label,
                     (long long)at + c->bad_line, c->message);
        table->skipped += c->skipped;
        rows += c->rows;
        at += c->lines;
    }
    LEATI_TRY(make_room(table, rows, err));
    for (int64_t i = 0; i < count; ++i) {
        LEATI_TRY(append(table, &chunks[i], line, err));
        line += chunks[i].lines;
        leati_csv_chunk_fini(&chunks[i], table);
    }
    return LEAT_OK;
}

static leat_status add_rows(leati_csv_table *table, const char *text, const char *end, const char *label,
                            int64_t line, leati_thread_pool *pool, leat_error *err) {
    const size_t chunk_bytes = table->format.chunk_bytes ? table->format.chunk_bytes : LEATI_CSV_CHUNK_BYTES;
    parsing p = {.table = table};
    int64_t count = 0;
    LEATI_TRY(cut(&p.chunks, &count, text, end, chunk_bytes, err));
    leati_thread_pool_share(pool, THREADS, count, parse_chunk, &p);
    leat_status status = join(table, p.chunks, count, label, line, err);
    for (int64_t i = 0; i < count; ++i) leati_csv_chunk_fini(&p.chunks[i], table);
    leati_free(p.chunks);
    return status;
}

/* Warns of a header that may be the first row of a file without one: all of its names are numbers, and not the
 * positions that pandas writes for columns without names. */
static void warn_of_numbers(char *const *names, int count, const char *label, char point) {
    bool are_positions = true;
    for (int i = 0; i < count; ++i) {
        float number = 0;
        const char *end = names[i] + strlen(names[i]);
        if (leati_read_float(names[i], end, point, &number) != end || names[i] == end) return;
        are_positions = are_positions && number == (float)i;
    }
    if (!are_positions)
        leati_log(LEAT_LOG_WARNING,
                  "the header of '%s' consists of numbers: if it is the first row, say header=false", label);
}

/* Keeps the name of a file, for messages about its rows. */
static leat_status add_path(leati_csv_table *table, const char *path, leat_error *err) {
    char **paths = leati_realloc(table->paths, (size_t)table->path_count + 1, sizeof *paths);
    if (!paths) return leati_fail_memory(err, 0, "the names of files");
    table->paths = paths;
    paths[table->path_count] = leati_strdup(path);
    if (!paths[table->path_count]) return leati_fail_memory(err, strlen(path), "the name of a file");
    ++table->path_count;
    return LEAT_OK;
}

static leat_status add(leati_csv_table *table, const char *text, const char *end, const char *label,
                       const leati_spec *spec, leati_thread_pool *pool, leat_error *err) {
    char **names = NULL;
    int count = 0;
    int64_t line = 1;
    LEATI_TRY(add_path(table, label, err));
    if (end - text >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3; /* a byte order mark */
    LEATI_TRY(leati_csv_header_read(&names, &count, &text, end, &line, &table->format, err));
    if (table->format.has_header && !table->columns)
        warn_of_numbers(names, count, label, table->format.point);
    LEATI_TRY(table->columns ? compare_columns(table, names, count, err)
                             : make_columns(table, names, count, spec, err));
    return add_rows(table, text, end, label, line, pool, err);
}

leat_status leati_csv_table_add(leati_csv_table *table, const char *text, size_t bytes, const char *label,
                                const leati_spec *spec, leati_thread_pool *pool, leat_error *err) {
    return leati_prefix(add(table, text, text + bytes, label, spec, pool, err), err, "'%s'", label);
}

void leati_csv_table_fini(leati_csv_table *table) {
    for (int i = 0; i < table->column_count; ++i) {
        leati_free(table->columns[i].name);
        leati_dictionary_fini(&table->columns[i].words);
    }
    for (int g = 0; g < table->group_count; ++g) {
        leati_free(table->groups[g].columns);
        leati_free(table->groups[g].data);
    }
    for (int i = 0; i < table->path_count; ++i) leati_free(table->paths[i]);
    leati_free(table->paths);
    leati_csv_runs_fini(&table->runs);
    leati_free(table->columns);
    *table = (leati_csv_table){0};
}
