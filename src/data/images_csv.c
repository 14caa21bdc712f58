/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a list of pictures from a CSV file with a header, as Keras's flow_from_dataframe takes it.  Room: data. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/images.h"

enum { MAX_COLUMNS = 256 };

/* The rest of the file, and the fields of the current row, which are cut out of it in place. */
typedef struct rows {
    char *at;
    char *fields[MAX_COLUMNS];
    int count;
    int64_t line, row; /* the next line, and that of the current row; the first is 1 */
} rows;

/* Reads a field in quotes, whose doubled quotes become single.  Returns the end of the field; NULL if there is no
 * closing quote. */
static char *read_quoted(char *at, int64_t *line) {
    char *to = at;
    for (++at; *at; ++at) {
        if (*at == '"' && at[1] != '"') {
            *to = '\0';
            return at + 1;
        }
        if (*at == '"') ++at;
        if (*at == '\n') ++*line;
        *to++ = *at;
    }
    return NULL;
}

/* Reads the next row; count is 0 at the end of the file. */
static leat_status read_row(rows *r, leat_error *err) {
    for (r->count = 0; *r->at == '\n' || *r->at == '\r'; ++r->at) r->line += *r->at == '\n';
    if (*r->at == '\0') return LEAT_OK;
    r->row = r->line;
    for (;;) {
        if (r->count == MAX_COLUMNS)
            return leati_fail(err, LEAT_EFORMAT, "line %lld: expected at most %d columns", (long long)r->row,
                              MAX_COLUMNS);
        r->fields[r->count++] = r->at;
        char *end = *r->at == '"' ? read_quoted(r->at, &r->line) : r->at + strcspn(r->at, ",\r\n");
        if (!end) return leati_fail(err, LEAT_EFORMAT, "line %lld: a quote is not closed", (long long)r->row);
        const char separator = *end;
        if (separator && !strchr(",\r\n", separator))
            return leati_fail(err, LEAT_EFORMAT, "line %lld: expected a comma after a quote, found '%c'",
                              (long long)r->row, separator);
        *end = '\0';
        r->at = separator ? end + 1 : end;
        if (separator == ',') continue;
        r->line += separator == '\n';
        return LEAT_OK;
    }
}

static leat_status find_column(int *out, const rows *header, const char *name, leat_error *err) {
    for (int i = 0; i < header->count; ++i) {
        if (strcmp(header->fields[i], name) != 0) continue;
        *out = i;
        return LEAT_OK;
    }
    const char *near = leati_nearest(name, (const char *const *)header->fields, (size_t)header->count);
    leati_text all = {0};
    leati_text_add_names(&all, (const char *const *)header->fields, (size_t)header->count, 16);
    const leat_status status =
        leati_fail(err, LEAT_EINVAL,
                   "the header has no column '%s'%s%s%s (options x_col, y_col); it has: %.200s", name,
                   near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "",
                   all.data ? all.data : "none");
    leati_text_fini(&all);
    return status;
}

/* The columns that are read. */
typedef struct columns {
    int path, labels[32], label_count, mask, width;
} columns;

static leat_status find_columns(columns *out, const rows *header, const leati_image_choices *choices,
                                leat_error *err) {
    static char default_label[] = "class";
    out->width = header->count;
    LEATI_TRY(find_column(&out->path, header, choices->x_column ? choices->x_column : "filename", err));
    if (choices->mask_column) LEATI_TRY(find_column(&out->mask, header, choices->mask_column, err));
    if (choices->labels == LEATI_LABELS_NONE || choices->labels == LEATI_LABELS_INPUT) return LEAT_OK;
    out->label_count = choices->y_count ? choices->y_count : 1;
    for (int i = 0; i < out->label_count; ++i)
        LEATI_TRY(find_column(&out->labels[i], header,
                              choices->y_count ? choices->y_columns[i] : default_label, err));
    return LEAT_OK;
}

static leat_status add_raw(leati_image_list *list, const rows *r, const columns *c,
                           const leati_image_choices *choices, leat_error *err) {
    const size_t used = (size_t)(list->count - 1) * (size_t)c->label_count;
    float *raw = leati_realloc(list->raw, used + (size_t)c->label_count, sizeof *raw);
    if (!raw) return leati_fail_memory(err, used * sizeof *raw, "the labels of a list");
    list->raw = raw;
    for (int i = 0; i < c->label_count; ++i) {
        char *end = NULL;
        const char *text = r->fields[c->labels[i]];
        raw[used + (size_t)i] = strtof(text, &end);
        if (end == text || *end)
            return leati_fail(err, LEAT_EFORMAT, "line %lld: labels=%s expects numbers, found '%s'",
                              (long long)r->row, choices->labels == LEATI_LABELS_RAW ? "raw" : "multi_output",
                              text);
    }
    return LEAT_OK;
}

/* Returns the number of a class of the current row; -1 on failure. */
static int find_class(leati_image_list *list, const rows *r, const char *name,
                      const leati_image_choices *choices, leat_error *err) {
    const int known = list->class_count, number = leati_image_list_class(list, name);
    if (number < 0) (void)leati_fail_memory(err, 0, "the names of classes");
    if (number < 0 || choices->class_count == 0 || number < known) return number;
    (void)leati_fail(err, LEAT_EINVAL, "line %lld: '%s' is none of the names in classes", (long long)r->row,
                     name);
    return -1;
}

/* Reads the classes of a row, with separators between them; an empty text has none. */
static leat_status add_classes(leati_image_list *list, const rows *r, char *text,
                               const leati_image_choices *choices, leat_error *err) {
    leati_image_file *file = &list->files[list->count - 1];
    file->first_number = list->number_count;
    while (text && *text) {
        char *next = strchr(text, choices->label_separator);
        if (next) *next++ = '\0';
        while (*text == ' ') ++text;
        for (size_t length = strlen(text); length > 0 && text[length - 1] == ' ';) text[--length] = '\0';
        const int number = find_class(list, r, text, choices, err);
        if (number < 0) return choices->class_count ? LEAT_EINVAL : LEAT_ENOMEM;
        if (list->number_count == list->number_capacity) {
            const int64_t capacity = list->number_capacity ? 2 * list->number_capacity : 64;
            int32_t *numbers = leati_realloc(list->numbers, (size_t)capacity, sizeof *numbers);
            if (!numbers)
                return leati_fail_memory(err, (size_t)capacity * sizeof *numbers, "the labels of a list");
            list->numbers = numbers;
            list->number_capacity = capacity;
        }
        list->numbers[list->number_count++] = number;
        ++file->label_count;
        text = next;
    }
    return LEAT_OK;
}

/* Returns the length of the part of *base that names the folder to which the paths of a list are relative; 0: none.
 * *base is the list's path or the option. */
static size_t folder_of(const char **base, const char *list, const leati_image_choices *choices) {
    const char *slash = strrchr(list, '/');
    *base = choices->directory ? choices->directory : list;
    size_t length = choices->directory ? strlen(choices->directory) : slash ? (size_t)(slash - list) : 0;
    while (length > 1 && (*base)[length - 1] == '/') --length;
    return length;
}

/* Returns the path of a picture, for leati_free. */
static char *path_of(const char *list, const leati_image_choices *choices, const char *name) {
    const char *base = NULL;
    const size_t length = folder_of(&base, list, choices);
    leati_text path = {0};
    if (name[0] == '/' || length == 0)
        leati_text_add(&path, "%s", name);
    else
        leati_text_add(&path, "%.*s/%s", (int)length, base, name);
    return path.failed ? NULL : path.data;
}

static leat_status add_mask(leati_image_list *list, const rows *r, const columns *c, leat_error *err) {
    const char *name = r->fields[c->mask];
    if (*name == '\0') return leati_fail(err, LEAT_EFORMAT, "line %lld has no mask", (long long)r->row);
    char *copy = leati_strdup(name);
    if (!copy) return leati_fail_memory(err, strlen(name), "the path of a mask");
    list->files[list->count - 1].mask = copy;
    return LEAT_OK;
}

static leat_status add_row(leati_image_list *list, const char *list_path, const rows *r, const columns *c,
                           const leati_image_choices *choices, leat_error *err) {
    int label = 0;
    if (r->count != c->width)
        return leati_fail(err, LEAT_EFORMAT, "line %lld has %d columns, the header has %d", (long long)r->row,
                          r->count, c->width);
    if (r->fields[c->path][0] == '\0')
        return leati_fail(err, LEAT_EFORMAT, "line %lld has no path", (long long)r->row);
    if (choices->labels < LEATI_LABELS_RAW) {
        label = find_class(list, r, r->fields[c->labels[0]], choices, err);
        if (label < 0) return choices->class_count ? LEAT_EINVAL : LEAT_ENOMEM;
    }
    char *path = path_of(list_path, choices, r->fields[c->path]);
    if (!path) return leati_fail_memory(err, 0, "a list of files");
    LEATI_TRY(leati_image_list_add(list, path, label, err));
    if (choices->mask_column) LEATI_TRY(add_mask(list, r, c, err));
    if (choices->labels == LEATI_LABELS_MULTIHOT)
        return add_classes(list, r, r->fields[c->labels[0]], choices, err);
    if (choices->labels == LEATI_LABELS_RAW || choices->labels == LEATI_LABELS_MULTI)
        return add_raw(list, r, c, choices, err);
    return LEAT_OK;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(**(char **const *)a, **(char **const *)b);
}

/* Sorts the classes by name, as Keras does, and numbers the files' labels accordingly. */
static leat_status sort_classes(leati_image_list *list, leat_error *err) {
    const size_t count = (size_t)list->class_count;
    char ***order = leati_calloc(count, sizeof *order), **sorted = leati_calloc(count, sizeof *sorted);
    int32_t *number = leati_calloc(count, sizeof *number);
    const bool fits = order && sorted && number;
    if (fits) {
        for (size_t i = 0; i < count; ++i) order[i] = &list->classes[i];
        qsort(order, count, sizeof *order, compare_names);
        for (size_t i = 0; i < count; ++i) {
            sorted[i] = *order[i];
            number[order[i] - list->classes] = (int32_t)i;
        }
        memcpy(list->classes, sorted, count * sizeof *sorted);
        for (int64_t i = 0; i < list->count; ++i) list->files[i].label = number[list->files[i].label];
        for (int64_t i = 0; i < list->number_count; ++i) list->numbers[i] = number[list->numbers[i]];
    }
    leati_free(order);
    leati_free(sorted);
    leati_free(number);
    return fits ? LEAT_OK : leati_fail_memory(err, count * sizeof *sorted, "the names of classes");
}

static leat_status read_rows(leati_image_list *list, rows *r, const char *path,
                             const leati_image_choices *choices, leat_error *err) {
    columns c = {0};
    LEATI_TRY(read_row(r, err));
    LEATI_TRY(find_columns(&c, r, choices, err));
    for (int i = 0; i < choices->class_count; ++i)
        if (leati_image_list_class(list, choices->classes[i]) < 0)
            return leati_fail_memory(err, 0, "the names of classes");
    for (;;) {
        LEATI_TRY(read_row(r, err));
        if (r->count == 0) break;
        LEATI_TRY(add_row(list, path, r, &c, choices, err));
    }
    const char *base = NULL;
    list->prefix = list->root = folder_of(&base, path, choices);
    list->from_csv = true;
    list->raw_columns = c.label_count;
    for (int64_t i = 0; list->raw && i < list->count; ++i) list->files[i].raw = list->raw + i * c.label_count;
    return list->class_count > 0 && choices->class_count == 0 ? sort_classes(list, err) : LEAT_OK;
}

leat_status leati_image_list_read_csv(leati_image_list *list, const char *path,
                                      const leati_image_choices *choices, leat_error *err) {
    unsigned char *text = NULL;
    size_t bytes = 0;
    LEATI_TRY(leati_image_read_file(&text, &bytes, path, err));
    const bool marked = bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0; /* a byte order mark */
    rows r = {.at = (char *)text + (marked ? 3 : 0), .line = 1};
    leat_status status = memchr(text, 0, bytes)
                             ? leati_fail(err, LEAT_EFORMAT, "expected a CSV list, found a byte 00")
                             : read_rows(list, &r, path, choices, err);
    leati_free(text);
    return leati_prefix(status, err, "'%s'", path);
}
