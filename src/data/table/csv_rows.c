/* SPDX-License-Identifier: Apache-2.0 */
/* Parses rows of CSV: a number is read where it stands; every other field is cut out first.  Room: data. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/table/csv.h"
#include "data/table/number.h"

enum { MAX_COLUMNS = 1 << 20, SHOWN = 40 };

/* A field: its text without quotes. */
typedef struct field {
    const char *text;
    size_t bytes;
    bool quoted;
} field;

typedef struct reader {
    leati_csv_chunk *chunk;
    const leati_csv_table *table;
    const char *end;
    char separator, point;
    char *scratch; /* a field whose doubled quotes became single */
    size_t scratch_bytes;
    leat_status status;
    int64_t inner_lines; /* line breaks in quotes of the current row */
    bool drop_row;       /* a value is missing, and the policy leaves out the row */
} reader;

/* Records why the current row cannot be read; returns NULL. */
static LEAT_PRINTF(3, 4) const char *fail(reader *r, leat_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    r->status = status;
    const bool ends = status == LEAT_ENOMEM || (status != LEAT_OK && !r->table->format.skip_bad);
    if (ends || r->chunk->skipped == 0) {
        vsnprintf(r->chunk->message, sizeof r->chunk->message, format, arguments);
        r->chunk->bad_line = r->chunk->lines;
    }
    va_end(arguments);
    return NULL;
}

/* ---- Fields ---- */

static int64_t lines_between(const char *p, const char *end) {
    int64_t lines = 0;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
        ++lines;
        ++p;
    }
    return lines;
}

/* Reads a field in quotes. */
static const char *read_quoted(reader *r, const char *p, field *out) {
    const char *begin = ++p;
    bool doubled = false;
    for (;; p += 2) {
        p = p < r->end ? memchr(p, '"', (size_t)(r->end - p)) : NULL;
        if (!p) return fail(r, LEAT_EFORMAT, "a quote is not closed");
        if (p + 1 == r->end || p[1] != '"') break;
        doubled = true;
    }
    *out = (field){begin, (size_t)(p - begin), true};
    r->inner_lines += lines_between(begin, p);
    if (!doubled) return p + 1;
    if (out->bytes > r->scratch_bytes) {
        char *scratch = leati_realloc(r->scratch, out->bytes, 1);
        if (!scratch) return fail(r, LEAT_ENOMEM, "no memory for a field");
        r->scratch = scratch;
        r->scratch_bytes = out->bytes;
    }
    size_t bytes = 0;
    for (size_t i = 0; r->scratch && i < out->bytes; ++i) {
        r->scratch[bytes++] = begin[i];
        i += begin[i] == '"';
    }
    *out = (field){r->scratch, bytes, true};
    return p + 1;
}

/* Reads a field without quotes, and leaves out the blanks around it. */
static const char *read_plain(reader *r, const char *p, field *out) {
    const char *begin = p;
    for (; p < r->end && *p != r->separator && *p != '\n' && *p != '\r'; ++p)
        if (*p == '"')
            return fail(r, LEAT_EFORMAT, "a quote inside of a field: expected the whole field in quotes");
    const char *end = p;
    while (begin < end && (*begin == ' ' || *begin == '\t')) ++begin;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) --end;
    *out = (field){begin, (size_t)(end - begin), false};
    return p;
}

/* Cuts out a field and returns the text behind it; NULL on failure. */
static const char *read_field(reader *r, const char *p, field *out) {
    if (p == r->end || *p != '"') return read_plain(r, p, out);
    p = read_quoted(r, p, out);
    if (p && p < r->end && *p != r->separator && *p != '\n' && *p != '\r')
        return fail(r, LEAT_EFORMAT, "expected '%c' or the end of the line after a quote, found '%c'",
                    r->separator, *p);
    return p;
}

/* Returns true for the texts that pandas reads as missing. */
static bool is_missing(const field *f) {
    static const char *const words[] = {"",         "NA",      "NaN",    "nan",     "null",    "NULL", "None",
                                        "N/A",      "n/a",     "<NA>",   "#N/A",    "#NA",     "-nan", "-NaN",
                                        "#N/A N/A", "1.#QNAN", "1.#IND", "-1.#IND", "-1.#QNAN"};
    if (f->bytes > 9) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strlen(words[i]) == f->bytes && memcmp(words[i], f->text, f->bytes) == 0) return true;
    return false;
}

static const char *missing(reader *r, const leati_csv_column *c, const char *after) {
    r->drop_row = true;
    if (r->table->format.missing == LEATI_CSV_MISSING_SKIP) return after;
    return fail(r, LEAT_EFORMAT, "column '%s' has no value (option missing%s)", c->name,
                r->table->format.missing == LEATI_CSV_MISSING_FAIL ? "" : ": targets and integers need skip");
}

/* ---- Values ---- */

/* Reads the texts true and false. */
static bool read_truth(const field *f, float *out) {
    static const char *const words[] = {"false", "False", "FALSE", "true", "True", "TRUE"};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
        if (strlen(words[i]) != f->bytes || memcmp(words[i], f->text, f->bytes) != 0) continue;
        *out = i >= 3;
        return true;
    }
    return false;
}

static const char *not_a(reader *r, const leati_csv_column *c, const field *f, const char *kind) {
    const char *other = r->table->column_count == 1 ? strpbrk(c->name, ";\t|,") : NULL;
    if (other && *other != r->separator)
        return fail(r, LEAT_EFORMAT,
                    "the only column is '%.60s': is another separator meant (option separator=%s%.*s)?",
                    c->name, *other == '\t' ? "tab" : "", *other != '\t', other);
    return fail(r, LEAT_EFORMAT, "column '%s': expected %s, found '%.*s'%s", c->name, kind,
                (int)(f->bytes < SHOWN ? f->bytes : SHOWN), f->text,
                c->type == LEATI_CSV_NUMBER ? " (options categories, onehot_categories, exclude)" : "");
}

/* Reads a number that does not stand alone between separators. */
static const char *read_number_slowly(reader *r, const leati_csv_column *c, const char *p, float *out) {
    const leati_csv_format *format = &r->table->format;
    field f;
    p = read_field(r, p, &f);
    if (!p) return NULL;
    const char *after = is_missing(&f) ? NULL : leati_read_float(f.text, f.text + f.bytes, r->point, out);
    if (after == f.text + f.bytes && !isnan(*out)) return p;
    if (!is_missing(&f) && !(after == f.text + f.bytes))
        return read_truth(&f, out) ? p : not_a(r, c, &f, "a number");
    if (r->table->groups[c->group].part != LEAT_PART_INPUT || format->missing < LEATI_CSV_MISSING_MEAN)
        return missing(r, c, p);
    *out = format->missing == LEATI_CSV_MISSING_VALUE ? format->missing_value : NAN;
    return p;
}

static const char *read_integer(reader *r, const leati_csv_column *c, const char *p, int32_t *out) {
    field f;
    p = read_field(r, p, &f);
    if (!p) return NULL;
    const char *after = leati_read_int32(f.text, f.text + f.bytes, r->point, out);
    if (after && after == f.text + f.bytes) return p;
    if (!is_missing(&f)) return not_a(r, c, &f, "an integer of 32 bits");
    const leati_csv_format *format = &r->table->format;
    if (format->missing != LEATI_CSV_MISSING_VALUE || r->table->groups[c->group].part != LEAT_PART_INPUT)
        return missing(r, c, p);
    *out = (int32_t)format->missing_value;
    return p;
}

static const char *read_category(reader *r, int column, const char *p, int32_t *out) {
    const leati_csv_column *c = &r->table->columns[column];
    field f;
    p = read_field(r, p, &f);
    if (!p) return NULL;
    if (!f.quoted && is_missing(&f)) {
        if (r->table->format.missing < LEATI_CSV_MISSING_MEAN ||
            r->table->groups[c->group].part != LEAT_PART_INPUT)
            return missing(r, c, p);
        f.bytes = 0; /* a category of its own */
    }
    *out = leati_dictionary_add(&r->chunk->words[column], f.text, f.bytes, r->chunk->lines);
    return *out < 0 ? fail(r, LEAT_ENOMEM, "no memory for categories, or too many") : p;
}

/* ---- Rows ---- */

/* Reads the field of a column into its place in the current row. */
static const char *read_value(reader *r, int column, const char *p) {
    const leati_csv_column *c = &r->table->columns[column];
    const leati_csv_group *group = c->group < 0 ? NULL : &r->table->groups[c->group];
    field unused;
    float number = 0;
    int32_t integer = 0;
    if (!group) return read_field(r, p, &unused);
    uint32_t *to = r->chunk->data[c->group] + r->chunk->rows * group->width + c->place;
    if (c->type == LEATI_CSV_NUMBER) {
        const char *after = leati_read_float(p, r->end, r->point, &number);
        if (!after || number != number ||
            (after < r->end && *after != r->separator && *after != '\n' && *after != '\r'))
            after = read_number_slowly(r, c, p, &number);
        memcpy(to, &number, sizeof number);
        return after;
    }
    p = c->type == LEATI_CSV_INTEGER ? read_integer(r, c, p, &integer)
                                     : read_category(r, column, p, &integer);
    number = (float)integer;
    if (group->is_integer)
        memcpy(to, &integer, sizeof integer);
    else
        memcpy(to, &number, sizeof number);
    return p;
}

/* Returns the text behind the end of a line; NULL if no line ends here. */
static const char *end_of_line(const char *p, const char *end) {
    if (p == end) return p;
    if (*p == '\r' && p + 1 < end && p[1] == '\n') return p + 2;
    return *p == '\n' ? p + 1 : NULL;
}

static const char *read_row(reader *r, const char *p) {
    const int count = r->table->column_count;
    for (int i = 0; i < count; ++i) {
        p = read_value(r, i, p);
        if (!p) return NULL;
        if (i + 1 == count) break;
        if (p < r->end && *p == r->separator)
            ++p;
        else
            return fail(r, LEAT_EFORMAT, "expected %d columns, found %d", count, i + 1);
    }
    const char *after = end_of_line(p, r->end);
    if (!after) return fail(r, LEAT_EFORMAT, *p == '\r' ? "a CR without LF" : "more than %d columns", count);
    return after;
}

/* Returns the text behind a row that cannot be read, whose quotes are in pairs. */
static const char *behind_row(const reader *r, const char *p) {
    bool quoted = false;
    for (; p < r->end && (quoted || *p != '\n'); ++p) quoted ^= *p == '"';
    return p < r->end ? p + 1 : p;
}

/* Makes room for another row. */
static bool make_room(leati_csv_chunk *chunk, const leati_csv_table *table, int64_t first) {
    if (chunk->rows < chunk->capacity) return true;
    const int64_t capacity = chunk->capacity ? 2 * chunk->capacity : first;
    for (int g = 0; g < table->group_count; ++g) {
        uint32_t *data =
            leati_realloc(chunk->data[g], (size_t)(capacity * table->groups[g].width), sizeof *data);
        if (!data) return false;
        chunk->data[g] = data;
    }
    chunk->capacity = capacity;
    return true;
}

static void parse(reader *r) {
    leati_csv_chunk *chunk = r->chunk;
    const char *p = chunk->begin;
    while (p < r->end) {
        const char *blank = end_of_line(p, r->end), *begin = p;
        if (blank) {
            p = blank;
            ++chunk->lines;
            continue;
        }
        /* Ten bytes are a guess at the length of a value. */
        const int64_t guess = (r->end - p) / (10 * (int64_t)r->table->column_count) + 8;
        r->status = LEAT_OK;
        r->drop_row = false;
        r->inner_lines = 0;
        if (!make_room(chunk, r->table, guess)) {
            (void)fail(r, LEAT_ENOMEM, "no memory for the rows");
            chunk->status = LEAT_ENOMEM;
            return;
        }
        p = read_row(r, p);
        if (!p && (!r->table->format.skip_bad || r->status == LEAT_ENOMEM)) {
            chunk->status = r->status;
            return;
        }
        if (p && r->drop_row && chunk->skipped == 0) (void)fail(r, LEAT_OK, "a value is missing");
        if (p && !r->drop_row) {
            if (!leati_csv_runs_add(&chunk->runs, chunk->rows++, chunk->lines, 0)) {
                (void)fail(r, LEAT_ENOMEM, "no memory for the lines of rows");
                chunk->status = LEAT_ENOMEM;
                return;
            }
        } else {
            ++chunk->skipped;
        }
        chunk->lines += p ? 1 + r->inner_lines : 0;
        if (p) continue;
        p = behind_row(r, begin);
        chunk->lines += lines_between(begin, p);
    }
}

void leati_csv_chunk_parse(leati_csv_chunk *chunk, const leati_csv_table *table) {
    const size_t count = (size_t)table->column_count;
    reader r = {.chunk = chunk,
                .table = table,
                .end = chunk->end,
                .separator = table->format.separator,
                .point = table->format.point};
    chunk->words = leati_calloc(count, sizeof *chunk->words);
    if (!chunk->words) {
        chunk->status = LEAT_ENOMEM;
        snprintf(chunk->message, sizeof chunk->message, "no memory for %zu columns", count);
        return;
    }
    parse(&r);
    leati_free(r.scratch);
}

void leati_csv_chunk_fini(leati_csv_chunk *chunk, const leati_csv_table *table) {
    for (int g = 0; g < table->group_count; ++g) leati_free(chunk->data[g]);
    for (int i = 0; chunk->words && i < table->column_count; ++i) leati_dictionary_fini(&chunk->words[i]);
    leati_free(chunk->words);
    leati_csv_runs_fini(&chunk->runs);
    *chunk = (leati_csv_chunk){0};
}

/* ---- The header ---- */

static bool add_name(char ***names, int *count, const char *text, size_t bytes) {
    if ((*count & (*count - 1)) == 0) { /* a power of 2, or 0 */
        char **more = leati_realloc(*names, *count ? 2 * (size_t)*count : 1, sizeof *more);
        if (!more) return false;
        *names = more;
    }
    char *name = leati_calloc(bytes + 1, 1);
    if (!name) return false;
    if (bytes > 0) memcpy(name, text, bytes);
    (*names)[(*count)++] = name;
    return true;
}

static const char *read_header(reader *r, const char *p, char ***names, int *count) {
    for (;;) {
        field f = {"", 0, false};
        char number[24];
        p = read_field(r, p, &f);
        if (!p) return NULL;
        if (!r->table->format.has_header)
            f = (field){number, (size_t)snprintf(number, sizeof number, "%d", *count), false};
        if (*count == MAX_COLUMNS) return fail(r, LEAT_EFORMAT, "more than %d columns", MAX_COLUMNS);
        if (!add_name(names, count, f.text, f.bytes)) return fail(r, LEAT_ENOMEM, "no memory for the header");
        if (p == r->end || *p != r->separator) break;
        ++p;
    }
    const char *after = end_of_line(p, r->end);
    return after ? after : fail(r, LEAT_EFORMAT, "a CR without LF");
}

leat_status leati_csv_header_read(char ***names, int *count, const char **text, const char *end,
                                  int64_t *line, const leati_csv_format *format, leat_error *err) {
    const leati_csv_table table = {.format = *format};
    leati_csv_chunk chunk = {0};
    reader r = {.chunk = &chunk, .table = &table, .end = end, .separator = format->separator};
    const char *begin = *text;
    for (int64_t i = 0; begin < end && i < format->skipped_lines; ++i) {
        const char *stop = memchr(begin, '\n', (size_t)(end - begin));
        begin = stop ? stop + 1 : end;
    }
    *names = NULL;
    *count = 0;
    if (begin == end) return leati_fail(err, LEAT_EFORMAT, "the file is empty");
    const char *after = read_header(&r, begin, names, count);
    leati_free(r.scratch);
    if (!after) {
        for (int i = 0; i < *count; ++i) leati_free((*names)[i]);
        leati_free(*names);
        *names = NULL;
        *count = 0;
        return leati_fail(err, r.status, "the header: %s", chunk.message);
    }
    const char *next = format->has_header ? after : begin;
    *line = 1 + lines_between(*text, next);
    *text = next;
    return LEAT_OK;
}
