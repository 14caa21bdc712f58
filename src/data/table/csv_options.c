/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the options of CSV sources, and finds the columns that the options name.  Room: data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/table/csv.h"
#include "data/table/number.h"
#include "tensor/sequence.h"

/* ---- The format ---- */

static leat_status read_character(char *out, const char *key, char *text, leat_error *err) {
    if (!text) return LEAT_OK;
    LEATI_TRY(leati_spec_decode(text, err));
    if (strcmp(text, "tab") == 0 || strcmp(text, "space") == 0) {
        *out = text[0] == 't' ? '\t' : ' ';
        return LEAT_OK;
    }
    if (text[0] == '\0' || text[1] != '\0' || text[0] == '"' || text[0] == '\n' || text[0] == '\r')
        return leati_fail(err, LEAT_EINVAL, "%s=%s: expected one character, or tab or space", key, text);
    *out = text[0];
    return LEAT_OK;
}

static leat_status read_missing(leati_csv_format *out, char *text, leat_error *err) {
    static const char *const words[] = {"fail", "skip", "mean"};
    if (!text) return LEAT_OK;
    LEATI_TRY(leati_spec_decode(text, err));
    for (int i = 0; i < 3; ++i) {
        if (strcmp(text, words[i]) != 0) continue;
        out->missing = (leati_csv_missing)i;
        return LEAT_OK;
    }
    out->missing = LEATI_CSV_MISSING_VALUE;
    const char *end = text + strlen(text);
    if (leati_read_float(text, end, '.', &out->missing_value) == end) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "missing=%s: expected fail, skip, mean or a number", text);
}

leat_status leati_csv_format_read(leati_csv_format *out, const leati_spec *spec, leat_error *err) {
    *out = (leati_csv_format){.separator = ',', .point = '.', .has_header = true};
    char *header = leati_spec_value(spec, "header"), *bad = leati_spec_value(spec, "bad");
    char *lines = leati_spec_value(spec, "skip_lines");
    LEATI_TRY(read_character(&out->separator, "separator", leati_spec_value(spec, "separator"), err));
    LEATI_TRY(read_character(&out->point, "decimal", leati_spec_value(spec, "decimal"), err));
    LEATI_TRY(read_missing(out, leati_spec_value(spec, "missing"), err));
    if (out->separator == out->point)
        return leati_fail(err, LEAT_EINVAL, "separator and decimal are the same character");
    if (header && strcmp(header, "true") != 0 && strcmp(header, "false") != 0)
        return leati_fail(err, LEAT_EINVAL, "header=%s: expected true or false", header);
    if (bad && strcmp(bad, "fail") != 0 && strcmp(bad, "skip") != 0)
        return leati_fail(err, LEAT_EINVAL, "bad=%s: expected fail or skip", bad);
    out->has_header = !header || strcmp(header, "true") == 0;
    out->skip_bad = bad && strcmp(bad, "skip") == 0;
    for (const char *p = lines; p && *p; ++p) {
        if (*p < '0' || *p > '9' || out->skipped_lines > INT32_MAX)
            return leati_fail(err, LEAT_EINVAL, "skip_lines=%s: expected a number of lines", lines);
        out->skipped_lines = 10 * out->skipped_lines + (*p - '0');
    }
    return LEAT_OK;
}

/* ---- Columns ---- */

/* Finds a column by its name, or by its position from 0 if no column has the name. */
static leat_status find_column(int *out, const leati_csv_table *table, const char *name, leat_error *err) {
    int found = 0;
    for (int i = 0; i < table->column_count; ++i)
        if (strcmp(table->columns[i].name, name) == 0 && ++found == 1) *out = i;
    if (found == 1) return LEAT_OK;
    if (found > 1)
        return leati_fail(err, LEAT_EINVAL,
                          "%d columns have the name '%s': expected one, or a position from 0", found, name);
    char *end = NULL;
    const long position = strtol(name, &end, 10);
    if (*name >= '0' && *name <= '9' && *end == '\0' && position < table->column_count) {
        *out = (int)position;
        return LEAT_OK;
    }
    const char **names = leati_calloc((size_t)table->column_count, sizeof *names);
    if (!names)
        return leati_fail_memory(err, (size_t)table->column_count * sizeof *names, "the names of columns");
    for (int i = 0; i < table->column_count; ++i) names[i] = table->columns[i].name;
    const char *near = leati_nearest(name, names, (size_t)table->column_count);
    leati_text all = {0};
    leati_text_add_names(&all, names, (size_t)table->column_count, 16);
    leat_status status = leati_fail(err, LEAT_EINVAL, "there is no column '%s'%s%s%s; there are: %.200s",
                                    name, near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "",
                                    all.data ? all.data : "none");
    leati_text_fini(&all);
    leati_free(names);
    return status;
}

/* What happens with each column of a list. */
typedef leat_status (*visit_column)(leati_csv_table *table, int column, int value, leat_error *err);

/* Visits the columns that an element of a list names: a column, or FIRST..LAST. */
static leat_status visit_element(leati_csv_table *table, char *element, visit_column visit, int value,
                                 leat_error *err) {
    int first = 0, last = 0;
    char *range = strstr(element, "..");
    if (range) *range = '\0';
    LEATI_TRY(leati_spec_decode(element, err));
    LEATI_TRY(find_column(&first, table, element, err));
    last = first;
    if (range) {
        LEATI_TRY(leati_spec_decode(range + 2, err));
        LEATI_TRY(find_column(&last, table, range + 2, err));
        if (last < first)
            return leati_fail(err, LEAT_EINVAL, "%s..%s: the second column is before the first", element,
                              range + 2);
    }
    for (int i = first; i <= last; ++i) LEATI_TRY(visit(table, i, value, err));
    return LEAT_OK;
}

/* Visits the columns of a list, whose commas become zero bytes; NULL: none. */
static leat_status visit_list(leati_csv_table *table, char *list, visit_column visit, int value,
                              leat_error *err) {
    while (list) {
        char *comma = strchr(list, ',');
        if (comma) *comma = '\0';
        LEATI_TRY(visit_element(table, list, visit, value, err));
        list = comma ? comma + 1 : NULL;
    }
    return LEAT_OK;
}

static leat_status add_to_group(leati_csv_table *table, int column, int group, leat_error *err) {
    leati_csv_column *c = &table->columns[column];
    leati_csv_group *g = &table->groups[group];
    if (c->group >= 0 || c->type != LEATI_CSV_UNUSED)
        return leati_fail(err, LEAT_EINVAL, "column '%s' is named twice", c->name);
    if ((g->width & (g->width - 1)) == 0) { /* a power of 2, or 0 */
        int *columns = leati_realloc(g->columns, g->width ? 2 * (size_t)g->width : 1, sizeof *columns);
        if (!columns)
            return leati_fail_memory(err, (size_t)g->width * sizeof *columns, "the columns of a tensor");
        g->columns = columns;
    }
    c->group = group;
    c->place = g->width;
    c->type = LEATI_CSV_NUMBER;
    g->columns[g->width++] = column;
    return LEAT_OK;
}

/* Excluded columns have a type and no group while the groups are made. */
static leat_status exclude(leati_csv_table *table, int column, int unused, leat_error *err) {
    (void)unused;
    if (table->columns[column].group >= 0)
        return leati_fail(err, LEAT_EINVAL, "column '%s' is named twice", table->columns[column].name);
    table->columns[column].type = LEATI_CSV_NUMBER;
    return LEAT_OK;
}

static leat_status set_type(leati_csv_table *table, int column, int type, leat_error *err) {
    leati_csv_column *c = &table->columns[column];
    if (c->group < 0)
        return leati_fail(err, LEAT_EINVAL,
                          "column '%s' has a type, but is no input, target or sample weight", c->name);
    if (c->type != LEATI_CSV_NUMBER)
        return leati_fail(err, LEAT_EINVAL, "column '%s' has two types", c->name);
    if (table->groups[c->group].part == LEAT_PART_SAMPLE_WEIGHT)
        return leati_fail(err, LEAT_EINVAL, "sample weights are numbers: column '%s' has another type",
                          c->name);
    c->type = (leati_csv_type)type;
    return LEAT_OK;
}

/* ---- Groups ---- */

static leat_status new_group(leati_csv_table *table, leat_batch_part part, leat_error *err) {
    if (table->group_count == LEAT_BATCH_MAX_TENSORS) return leati_fail_tensors(err);
    table->groups[table->group_count++] = (leati_csv_group){.part = part};
    return LEAT_OK;
}

/* Makes the tensors that an option names, with | between them. */
static leat_status add_groups(leati_csv_table *table, char *list, leat_batch_part part, leat_error *err) {
    while (list) {
        char *bar = strchr(list, '|');
        if (bar) *bar = '\0';
        LEATI_TRY(new_group(table, part, err));
        LEATI_TRY(visit_list(table, list, add_to_group, table->group_count - 1, err));
        list = bar ? bar + 1 : NULL;
    }
    return LEAT_OK;
}

/* Makes a tensor of all columns that have no other purpose. */
static leat_status add_others(leati_csv_table *table, leat_error *err) {
    LEATI_TRY(new_group(table, LEAT_PART_INPUT, err));
    for (int i = 0; i < table->column_count; ++i)
        if (table->columns[i].type == LEATI_CSV_UNUSED)
            LEATI_TRY(add_to_group(table, i, table->group_count - 1, err));
    if (table->columns[0].name[0] == '\0' && table->columns[0].group == table->group_count - 1)
        leati_log(LEAT_LOG_WARNING,
                  "the first column has no name, and is an input: if it is the index that pandas "
                  "writes, exclude=0 leaves it out");
    if (table->groups[table->group_count - 1].width > 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "no column is left for the inputs");
}

/* Puts the inputs in front; the groups of targets and sample weights are in order already. */
static void order_groups(leati_csv_table *table, int first_input) {
    leati_csv_group inputs[LEAT_BATCH_MAX_TENSORS];
    const int count = table->group_count - first_input;
    if (count == 0 || first_input == 0) return;
    memcpy(inputs, table->groups + first_input, (size_t)count * sizeof *inputs);
    memmove(table->groups + count, table->groups, (size_t)first_input * sizeof *inputs);
    memcpy(table->groups, inputs, (size_t)count * sizeof *inputs);
    for (int g = 0; g < table->group_count; ++g)
        for (int i = 0; i < table->groups[g].width; ++i)
            table->columns[table->groups[g].columns[i]].group = g;
}

/* Makes the columns of targets integers that become one-hot rows. */
static void set_labels(leati_csv_table *table) {
    for (int g = 0; g < table->group_count; ++g) {
        const leati_csv_group *group = &table->groups[g];
        leati_csv_column *c = &table->columns[group->columns[0]];
        if (group->part == LEAT_PART_TARGET && group->width == 1 && c->type == LEATI_CSV_NUMBER)
            c->type = LEATI_CSV_INTEGER;
    }
}

leat_status leati_csv_groups_read(leati_csv_table *table, const leati_spec *spec, leat_error *err) {
    char *inputs = leati_spec_value(spec, "inputs");
    LEATI_TRY(add_groups(table, leati_spec_value(spec, "targets"), LEAT_PART_TARGET, err));
    LEATI_TRY(add_groups(table, leati_spec_value(spec, "sample_weights"), LEAT_PART_SAMPLE_WEIGHT, err));
    LEATI_TRY(visit_list(table, leati_spec_value(spec, "exclude"), exclude, 0, err));
    const int first_input = table->group_count;
    LEATI_TRY(inputs ? add_groups(table, inputs, LEAT_PART_INPUT, err) : add_others(table, err));
    order_groups(table, first_input);
    LEATI_TRY(visit_list(table, leati_spec_value(spec, "integers"), set_type, LEATI_CSV_INTEGER, err));
    LEATI_TRY(visit_list(table, leati_spec_value(spec, "categories"), set_type, LEATI_CSV_CATEGORY, err));
    LEATI_TRY(visit_list(table, leati_spec_value(spec, "onehot_categories"), set_type,
                         LEATI_CSV_ONEHOT_CATEGORY, err));
    if (leati_spec_value(spec, "onehot")) set_labels(table);
    for (int g = 0; g < table->group_count; ++g) {
        leati_csv_group *group = &table->groups[g];
        group->is_integer = true;
        for (int i = 0; i < group->width; ++i) {
            const leati_csv_type type = table->columns[group->columns[i]].type;
            group->is_integer =
                group->is_integer && (type == LEATI_CSV_INTEGER || type == LEATI_CSV_CATEGORY);
            if (group->part == LEAT_PART_SAMPLE_WEIGHT && group->width != 1)
                return leati_fail(err, LEAT_EINVAL, "sample_weights: expected one column for each target");
        }
    }
    return LEAT_OK;
}
