/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers categories, fills in means, and keeps both in a file, so that other files get the same numbers.
 * Room: data. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "data/table/csv.h"
#include "json/json.h"

#define MAPPING_FORMAT "leat csv mapping 1"

/* ---- Numbers of categories ---- */

/* Replaces each number of a column of categories by numbers[old]. */
static void renumber(const leati_csv_table *table, const leati_csv_column *c, const int32_t *numbers) {
    const leati_csv_group *group = &table->groups[c->group];
    for (int64_t row = 0; row < table->rows; ++row) {
        if (group->is_integer) {
            int32_t *at = (int32_t *)group->data + row * group->width + c->place;
            *at = numbers[*at];
        } else {
            float *at = (float *)group->data + row * group->width + c->place;
            *at = (float)numbers[(int32_t)*at];
        }
    }
}

static leat_status number_categories(leati_csv_table *table, leati_csv_column *c, leat_error *err) {
    if (c->words_are_fixed) return LEAT_OK;
    int32_t *numbers = leati_calloc((size_t)c->words.count + 1, sizeof *numbers);
    if (!numbers) return leati_fail_memory(err, (size_t)c->words.count * sizeof *numbers, "categories");
    leati_dictionary_sort(&c->words, numbers);
    renumber(table, c, numbers);
    leati_free(numbers);
    return LEAT_OK;
}

/* ---- Means ---- */

/* Computes the mean of the numbers that are present, in the order of the rows. */
static leat_status compute_mean(const leati_csv_table *table, leati_csv_column *c, leat_error *err) {
    const leati_csv_group *group = &table->groups[c->group];
    const float *at = (const float *)group->data;
    int64_t count = 0;
    double sum = 0;
    for (int64_t row = 0; row < table->rows; ++row) {
        const float number = at[row * group->width + c->place];
        if (isnan(number)) continue;
        sum += number;
        ++count;
    }
    if (count == 0) return leati_fail(err, LEAT_EINVAL, "column '%s' has no number, and so no mean", c->name);
    c->mean = sum / (double)count;
    return LEAT_OK;
}

static leat_status fill_in(leati_csv_table *table, leati_csv_column *c, leat_error *err) {
    const leati_csv_group *group = &table->groups[c->group];
    if (!c->mean_is_fixed) LEATI_TRY(compute_mean(table, c, err));
    for (int64_t row = 0; row < table->rows; ++row) {
        float *at = (float *)group->data + row * group->width + c->place;
        if (isnan(*at)) *at = (float)c->mean;
    }
    return LEAT_OK;
}

/* ---- One-hot categories ---- */

static int64_t final_width(const leati_csv_table *table, const leati_csv_group *group) {
    int64_t width = 0;
    for (int i = 0; i < group->width; ++i) {
        const leati_csv_column *c = &table->columns[group->columns[i]];
        width += c->type == LEATI_CSV_ONEHOT_CATEGORY ? c->words.count : 1;
    }
    return width;
}

static leat_status widen(leati_csv_table *table, leati_csv_group *group, leat_error *err) {
    group->final_width = final_width(table, group);
    if (group->is_integer || group->final_width < 1) return LEAT_OK;
    bool has_categories = false;
    for (int i = 0; i < group->width; ++i)
        has_categories =
            has_categories || table->columns[group->columns[i]].type == LEATI_CSV_ONEHOT_CATEGORY;
    if (!has_categories) return LEAT_OK;
    const int64_t count = leati_mul_saturated(table->rows, group->final_width);
    float *wide = leati_calloc(leati_count_bytes(count, sizeof *wide), 1), *to = wide;
    if (!wide) return leati_fail_memory(err, leati_count_bytes(count, sizeof *wide), "one-hot categories");
    const float *from = group->data;
    for (int64_t row = 0; row < table->rows; ++row)
        for (int i = 0; i < group->width; ++i, ++from) {
            const leati_csv_column *c = &table->columns[group->columns[i]];
            if (c->type == LEATI_CSV_ONEHOT_CATEGORY) {
                to[(int64_t)*from] = 1;
                to += c->words.count;
            } else {
                *to++ = *from;
            }
        }
    leati_free(group->data);
    group->data = wide;
    return LEAT_OK;
}

leat_status leati_csv_table_finish(leati_csv_table *table, leat_error *err) {
    for (int i = 0; i < table->column_count; ++i) {
        leati_csv_column *c = &table->columns[i];
        if (c->group < 0) continue;
        if (c->type >= LEATI_CSV_CATEGORY) LEATI_TRY(number_categories(table, c, err));
        if (c->type == LEATI_CSV_NUMBER && table->format.missing == LEATI_CSV_MISSING_MEAN &&
            table->groups[c->group].part == LEAT_PART_INPUT)
            LEATI_TRY(fill_in(table, c, err));
    }
    for (int g = 0; g < table->group_count; ++g) LEATI_TRY(widen(table, &table->groups[g], err));
    return LEAT_OK;
}

/* ---- The file ---- */

static leat_status take_categories(leati_csv_column *c, json_t *list, leat_error *err) {
    size_t i;
    json_t *text;
    if (!json_is_array(list))
        return leati_fail(err, LEAT_EFORMAT, "categories of '%s': expected an array", c->name);
    json_array_foreach(list, i, text) {
        const int32_t number = json_is_string(text) ? leati_dictionary_add(&c->words, json_string_value(text),
                                                                           json_string_length(text), 0)
                                                    : -1;
        if (number != (int32_t)i)
            return leati_fail(err, LEAT_EFORMAT, "categories of '%s': expected texts that differ", c->name);
    }
    c->words_are_fixed = true;
    return LEAT_OK;
}

/* Takes from the file what the table's columns need. */
static leat_status take_mapping(leati_csv_table *table, json_t *root, leat_error *err) {
    const char *format = json_string_value(json_object_get(root, "format"));
    if (!format || strcmp(format, MAPPING_FORMAT) != 0)
        return leati_fail(err, LEAT_EFORMAT, "expected \"format\": \"" MAPPING_FORMAT "\"");
    for (int i = 0; i < table->column_count; ++i) {
        leati_csv_column *c = &table->columns[i];
        if (c->group < 0) continue;
        json_t *list = json_object_get(json_object_get(root, "categories"), c->name);
        json_t *mean = json_object_get(json_object_get(root, "means"), c->name);
        const bool is_input = table->groups[c->group].part == LEAT_PART_INPUT;
        if (c->type >= LEATI_CSV_CATEGORY) {
            if (!list)
                return leati_fail(err, LEAT_EINVAL, "the file has no categories of column '%s'", c->name);
            LEATI_TRY(take_categories(c, list, err));
        }
        if (c->type != LEATI_CSV_NUMBER || table->format.missing != LEATI_CSV_MISSING_MEAN || !is_input)
            continue;
        c->mean_is_fixed = leati_json_number(mean, &c->mean);
        if (!c->mean_is_fixed)
            return leati_fail(err, LEAT_EINVAL, "the file has no mean of column '%s'", c->name);
    }
    return LEAT_OK;
}

leat_status leati_csv_mapping_read(leati_csv_table *table, const char *path, bool *found, leat_error *err) {
    struct stat info;
    leati_map map;
    json_t *root = NULL;
    *found = stat(path, &info) == 0;
    if (!*found && errno == ENOENT) return LEAT_OK;
    LEATI_TRY(leati_map_open(&map, path, err));
    leat_status status = leati_json_parse(&root, (const char *)map.data, map.size, err);
    if (status == LEAT_OK) status = take_mapping(table, root, err);
    json_decref(root);
    leati_map_close(&map);
    return leati_prefix(status, err, "mapping '%s'", path);
}

static json_t *list_of(const leati_dictionary *words) {
    json_t *list = json_array();
    for (int32_t i = 0; i < words->count; ++i)
        if (json_array_append_new(list, json_stringn(words->words[i].text, words->words[i].bytes)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static leat_status describe(const leati_csv_table *table, json_t *root, leat_error *err) {
    json_t *categories = json_object(), *means = json_object();
    if (json_object_set_new(root, "format", json_string(MAPPING_FORMAT)) != 0 ||
        json_object_set_new(root, "categories", categories) != 0 ||
        json_object_set_new(root, "means", means) != 0)
        return leati_fail_memory(err, 0, "a mapping");
    for (int i = 0; i < table->column_count; ++i) {
        const leati_csv_column *c = &table->columns[i];
        if (c->group < 0) continue;
        if (c->type >= LEATI_CSV_CATEGORY &&
            json_object_set_new(categories, c->name, list_of(&c->words)) != 0)
            return leati_fail(err, LEAT_EINVAL, "column '%s': a mapping needs names and categories in UTF-8",
                              c->name);
        if (c->type == LEATI_CSV_NUMBER && table->format.missing == LEATI_CSV_MISSING_MEAN &&
            table->groups[c->group].part == LEAT_PART_INPUT &&
            json_object_set_new(means, c->name, leati_json_real(c->mean)) != 0)
            return leati_fail(err, LEAT_EINVAL, "column '%s': a mapping needs names in UTF-8", c->name);
    }
    return LEAT_OK;
}

static leat_status write_text(const char *path, const char *text, leat_error *err) {
    leati_replacement file;
    LEATI_TRY(leati_replace_begin(&file, path, err));
    leat_status status = leati_replace_write(&file, text, strlen(text), err);
    if (status == LEAT_OK) return leati_replace_commit(&file, err);
    leati_replace_abandon(&file);
    return status;
}

leat_status leati_csv_mapping_write(const leati_csv_table *table, const char *path, leat_error *err) {
    char *text = NULL;
    json_t *root = json_object();
    leat_status status = root ? describe(table, root, err) : leati_fail_memory(err, 0, "a mapping");
    if (status == LEAT_OK) status = leati_json_write(root, &text, err);
    if (status == LEAT_OK) status = write_text(path, text, err);
    leati_free(text);
    json_decref(root);
    return leati_prefix(status, err, "mapping '%s'", path);
}
