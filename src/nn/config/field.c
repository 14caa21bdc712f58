/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the kinds of fields that are plain values; reads and writes all fields of a configuration.  Room: nn. */
#include "nn/config/field.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "json/json.h"

#define VALUE_BYTES 64
#define MAX_KEYS    64

/* The largest dimension: the product of two still fits into 64 bits. */
#define MAX_DIMENSION INT32_MAX

/* Writes the value in a few characters, for messages. */
static const char *value_text(char out[VALUE_BYTES], const json_t *value) {
    char *text = NULL;
    if (leati_json_write_start(value, VALUE_BYTES, &text, NULL) != LEAT_OK) return "a value";
    snprintf(out, VALUE_BYTES, "%s", text);
    if (strlen(text) >= VALUE_BYTES) memcpy(out + VALUE_BYTES - 4, "...", 4);
    leati_free(text);
    return out;
}

static leat_status unexpected(const leati_field *field, const json_t *value, const char *expected,
                              leat_error *err) {
    char text[VALUE_BYTES];
    return leati_fail(err, LEAT_EINVAL, "%s: expected %s, received %s", field->key, expected,
                      value_text(text, value));
}

static leat_status too_small(const leati_field *field, const json_t *value, leat_error *err) {
    char expected[48];
    snprintf(expected, sizeof expected, "at least %.17g", field->minimum);
    return unexpected(field, value, expected, err);
}

/* Reads an integer; accepts 3.0 as 3. */
static bool read_integer(const json_t *value, int64_t *out) {
    double real;
    if (json_is_integer(value)) {
        *out = (int64_t)json_integer_value(value);
        return true;
    }
    if (!leati_json_number(value, &real) || !(fabs(real) <= 9007199254740992.0) || floor(real) != real)
        return false;
    *out = (int64_t)real;
    return true;
}

static leat_status read_int(const leati_field *field, const json_t *value, const void *context, void *member,
                            leat_error *err) {
    (void)context;
    int64_t number;
    if (json_is_null(value) && field->kind == LEATI_FIELD_OPTIONAL_INT) {
        *(int64_t *)member = INT64_MIN;
        return LEAT_OK;
    }
    if (!read_integer(value, &number)) return unexpected(field, value, "an integer", err);
    if (field->limited && (double)number < field->minimum) return too_small(field, value, err);
    if (field->limited && number > MAX_DIMENSION)
        return unexpected(field, value, "an integer below 2147483648", err);
    *(int64_t *)member = number;
    return LEAT_OK;
}

static leat_status read_float(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    (void)context;
    double number;
    if (json_is_null(value) && field->kind == LEATI_FIELD_OPTIONAL_FLOAT) {
        *(double *)member = (double)NAN;
        return LEAT_OK;
    }
    if (!leati_json_number(value, &number)) return unexpected(field, value, "a number", err);
    if (field->limited && !(number >= field->minimum)) return too_small(field, value, err);
    *(double *)member = number;
    return LEAT_OK;
}

static leat_status read_bool(const leati_field *field, const json_t *value, const void *context, void *member,
                             leat_error *err) {
    (void)context;
    bool number = json_is_integer(value) && json_integer_value(value) >> 1 == 0; /* Python's 0 and 1 */
    if (!json_is_boolean(value) && !number) return unexpected(field, value, "true or false", err);
    *(bool *)member = json_is_true(value) || (number && json_integer_value(value) == 1);
    return LEAT_OK;
}

static leat_status no_choice(const leati_field *field, const json_t *value, leat_error *err) {
    leati_text known = {0};
    for (int32_t i = 0; field->choices[i]; ++i)
        leati_text_add(&known, "%s\"%s\"", i > 0 ? " or " : "", field->choices[i]);
    leat_status status = unexpected(field, value, known.failed ? "another name" : known.data, err);
    leati_text_fini(&known);
    return status;
}

static leat_status read_choice(const leati_field *field, const json_t *value, const void *context,
                               void *member, leat_error *err) {
    (void)context;
    const char *name = json_string_value(value);
    for (int32_t i = 0; field->choices[i]; ++i) {
        if (!name || strcasecmp(name, field->choices[i]) != 0) continue;
        *(int32_t *)member = i;
        return LEAT_OK;
    }
    if (field->nullable && json_is_null(value)) {
        int32_t count = 0;
        while (field->choices[count]) ++count;
        *(int32_t *)member = count;
        return LEAT_OK;
    }
    return no_choice(field, value, err);
}

static bool is_null_preset(const leati_field *field) {
    return field->preset && strcmp(field->preset, "null") == 0;
}

static leat_status read_text(const leati_field *field, const json_t *value, const void *context, void *member,
                             leat_error *err) {
    (void)context;
    char expected[48];
    const char *text = json_string_value(value);
    if (json_is_null(value) && is_null_preset(field)) text = "";
    snprintf(expected, sizeof expected, "a text of at most %d bytes", LEATI_FIELD_TEXT_BYTES - 1);
    if (!text || strlen(text) >= LEATI_FIELD_TEXT_BYTES) return unexpected(field, value, expected, err);
    memcpy(member, text, strlen(text) + 1);
    return LEAT_OK;
}

/* ---- Lists of integers ---- */

static bool is_list(const leati_field *field) {
    return field->kind == LEATI_FIELD_LIST || field->kind == LEATI_FIELD_NUMBERS;
}

static leat_status read_element(const leati_field *field, const json_t *list, const json_t *value,
                                leati_ints *out, leat_error *err) {
    int64_t number = -1;
    bool unknown = json_is_null(value) && is_list(field);
    if (!unknown && !read_integer(value, &number)) return unexpected(field, list, "integers", err);
    if (!unknown && field->limited && (double)number < field->minimum) return too_small(field, list, err);
    if (number > MAX_DIMENSION || number < -MAX_DIMENSION)
        return unexpected(field, list, "integers below 2147483648", err);
    out->values[out->count++] = number;
    return LEAT_OK;
}

static leat_status read_ints(const leati_field *field, const json_t *value, const void *context, void *member,
                             leat_error *err) {
    (void)context;
    leati_ints *out = member, ints = {0};
    bool tuple = field->kind == LEATI_FIELD_TUPLE;
    size_t count = json_is_array(value) ? json_array_size(value) : tuple ? (size_t)field->arity : 1;
    if (json_is_null(value) && is_null_preset(field)) {
        *out = (leati_ints){.count = -1};
        return LEAT_OK;
    }
    if (tuple && count != (size_t)field->arity) {
        char expected[48];
        snprintf(expected, sizeof expected, "%d integer%s", (int)field->arity, field->arity == 1 ? "" : "s");
        return unexpected(field, value, expected, err);
    }
    if (count > LEAT_MAX_RANK) return unexpected(field, value, "at most 8 integers", err);
    ints.number = field->kind == LEATI_FIELD_NUMBERS && !json_is_array(value);
    for (size_t i = 0; i < count; ++i) {
        const json_t *element = json_is_array(value) ? json_array_get(value, i) : value;
        LEATI_TRY(read_element(field, value, element, &ints, err));
    }
    *out = ints;
    return LEAT_OK;
}

static leat_status read_reals(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    (void)context;
    static const char expected[] = "a number, or a list of 1 to 65536";
    leati_reals *out = member;
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    *out = (leati_reals){0};
    if (json_is_null(value) && is_null_preset(field)) return LEAT_OK;
    bool empty = count == 0 && is_null_preset(field);
    if ((count < 1 && !empty) || count > LEATI_MAX_REALS) return unexpected(field, value, expected, err);
    out->number = !json_is_array(value);
    out->values = leati_calloc(count + 1, sizeof *out->values);
    if (!out->values) return leati_fail_memory(err, count * sizeof *out->values, "a list of numbers");
    for (size_t i = 0; i < count; ++i) {
        const json_t *element = json_is_array(value) ? json_array_get(value, i) : value;
        if (!leati_json_number(element, &out->values[out->count++]))
            return unexpected(field, value, expected, err);
    }
    return LEAT_OK;
}

/* Reads n, (n, m) or ((a, b), (c, d)).  All forms are written as the last one. */
static leat_status read_pairs(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    (void)context;
    leati_ints *out = member, ints = {0};
    if (json_is_array(value) && json_array_size(value) != (size_t)field->arity)
        return unexpected(field, value, "one number or pair per axis", err);
    for (size_t i = 0; i < (size_t)field->arity; ++i) {
        const json_t *axis = json_is_array(value) ? json_array_get(value, i) : value;
        if (json_is_array(axis) && json_array_size(axis) != 2)
            return unexpected(field, value, "pairs of numbers", err);
        for (size_t j = 0; j < 2; ++j) {
            const json_t *element = json_is_array(axis) ? json_array_get(axis, j) : axis;
            LEATI_TRY(read_element(field, value, element, &ints, err));
        }
    }
    *out = ints;
    return LEAT_OK;
}

static leat_status read_json(const leati_field *field, const json_t *value, const void *context, void *member,
                             leat_error *err) {
    (void)field, (void)context, (void)err;
    *(json_t **)member = json_is_null(value) ? NULL : json_incref((json_t *)(uintptr_t)value);
    return LEAT_OK;
}

/* ---- All fields of a configuration ---- */

static leat_status read_preset(const leati_field *field, void *member, leat_error *err) {
    json_t *value = NULL;
    if (!field->preset) return leati_fail(err, LEAT_EINVAL, "the key '%s' is missing", field->key);
    LEATI_TRY(leati_json_parse(&value, field->preset, strlen(field->preset), err));
    leat_status status = field->kind->read(field, value, NULL, member, err);
    json_decref(value);
    return status;
}

/* True if the key is missing, or if its null stands for the default, like Keras's data_format=None. */
static bool means_preset(const leati_field *field, const json_t *value) {
    return !value ||
           (json_is_null(value) && field->kind == LEATI_FIELD_CHOICE && field->preset && !field->nullable);
}

static const leati_field *find_field(const leati_field *fields, const char *key) {
    for (; fields->key; ++fields)
        if (strcmp(fields->key, key) == 0) return fields;
    return NULL;
}

static bool is_listed(const char *const *names, const char *key) {
    for (; names && *names; ++names)
        if (strcmp(*names, key) == 0) return true;
    return false;
}

static leat_status unknown_key(const leati_field *fields, const char *key, leat_error *err) {
    const char *names[MAX_KEYS];
    size_t count = 0;
    for (; fields->key && count < MAX_KEYS; ++fields) names[count++] = fields->key;
    const char *nearest = leati_nearest(key, names, count);
    if (nearest) return leati_fail(err, LEAT_ENOTSUP, "unknown key '%s'; did you mean '%s'?", key, nearest);
    return leati_fail(err, LEAT_ENOTSUP, "unknown key '%s'", key);
}

static leat_status check_keys(const leati_field *fields, const char *const *ignored, const json_t *object,
                              leat_error *err) {
    const char *key;
    json_t *value;
    if (!json_is_object(object)) return leati_fail(err, LEAT_EINVAL, "expected a configuration, an object");
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        bool says_nothing = json_is_null(value); /* Python's None: an argument that was not given */
        if (!says_nothing && !find_field(fields, key) && !is_listed(ignored, key))
            return unknown_key(fields, key, err);
    }
    return LEAT_OK;
}

leat_status leati_fields_read_with(const leati_field *fields, const char *const *ignored,
                                   const json_t *object, const void *context, void *config, leat_error *err) {
    leat_status status = check_keys(fields, ignored, object, err);
    for (const leati_field *field = fields; status == LEAT_OK && field->key; ++field) {
        void *member = (char *)config + field->offset;
        const json_t *value = json_object_get(object, field->key);
        status = means_preset(field, value) ? read_preset(field, member, err)
                                            : field->kind->read(field, value, context, member, err);
    }
    if (status != LEAT_OK) leati_fields_fini(fields, config);
    return status;
}

leat_status leati_fields_read(const leati_field *fields, const char *const *ignored, const json_t *object,
                              void *config, leat_error *err) {
    return leati_fields_read_with(fields, ignored, object, NULL, config, err);
}

/* ---- Writing ---- */

/* Returns values[from...from + count) as a list. */
static json_t *ints_value(const leati_ints *ints, int from, int count) {
    json_t *list = json_array();
    for (int i = from; list && i < from + count; ++i) {
        if (json_array_append_new(list, json_integer(ints->values[i])) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

/* If the default of the field is null, an element of -1 is written as null; a target shape keeps its -1. */
static json_t *list_value(const leati_field *field, const leati_ints *ints) {
    if (field->kind == LEATI_FIELD_NUMBERS && ints->number) return json_integer(ints->values[0]);
    json_t *list = ints->count < 0 ? json_null() : ints_value(ints, 0, ints->count);
    bool nulls = list && is_list(field) && is_null_preset(field);
    for (int i = 0; nulls && i < ints->count; ++i)
        if (ints->values[i] == -1) json_array_set_new(list, (size_t)i, json_null());
    return list;
}

static json_t *reals_value(const leati_reals *reals) {
    if (!reals->values) return json_null();
    if (reals->number) return leati_json_real(reals->values[0]);
    json_t *list = json_array();
    for (int i = 0; list && i < reals->count; ++i) {
        if (json_array_append_new(list, leati_json_real(reals->values[i])) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static json_t *pairs_value(const leati_field *field, const leati_ints *ints) {
    json_t *list = json_array();
    for (int i = 0; list && i < field->arity; ++i) {
        if (json_array_append_new(list, ints_value(ints, 2 * i, 2)) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static leat_status finish(json_t *value, json_t **out) {
    *out = value;
    return value ? LEAT_OK : LEAT_ENOMEM;
}

static leat_status write_int(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    int64_t number = *(const int64_t *)member;
    (void)field, (void)err;
    return finish(number == INT64_MIN ? json_null() : json_integer(number), out);
}

static leat_status write_float(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field, (void)err;
    return finish(leati_json_real(*(const double *)member), out);
}

static leat_status write_optional_float(const leati_field *field, const void *member, json_t **out,
                                        leat_error *err) {
    double number = *(const double *)member;
    (void)field, (void)err;
    return finish(isnan(number) ? json_null() : leati_json_real(number), out);
}

static leat_status write_bool(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field, (void)err;
    return finish(json_boolean(*(const bool *)member), out);
}

static leat_status write_choice(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    const char *name = field->choices[*(const int32_t *)member];
    (void)err;
    return finish(name ? json_string(name) : json_null(), out);
}

static leat_status write_text(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    const char *text = member;
    (void)err;
    return finish(!text[0] && is_null_preset(field) ? json_null() : json_string(text), out);
}

static leat_status write_ints(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)err;
    return finish(list_value(field, member), out);
}

static leat_status write_pairs(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)err;
    return finish(pairs_value(field, member), out);
}

static leat_status write_reals(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field, (void)err;
    return finish(reals_value(member), out);
}

static leat_status write_json(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    json_t *value = *(json_t *const *)member;
    (void)field, (void)err;
    return finish(value ? json_incref(value) : json_null(), out);
}

static void fini_reals(void *member) {
    leati_reals *reals = member;
    leati_free(reals->values);
    *reals = (leati_reals){0};
}

static void fini_json(void *member) {
    json_decref(*(json_t **)member);
    *(json_t **)member = NULL;
}

const leati_field_kind leati_field_int = {.read = read_int, .write = write_int};
const leati_field_kind leati_field_optional_int = {.read = read_int, .write = write_int};
const leati_field_kind leati_field_float = {.read = read_float, .write = write_float};
const leati_field_kind leati_field_optional_float = {.read = read_float, .write = write_optional_float};
const leati_field_kind leati_field_bool = {.read = read_bool, .write = write_bool};
const leati_field_kind leati_field_choice = {.read = read_choice, .write = write_choice};
const leati_field_kind leati_field_text = {.read = read_text, .write = write_text};
const leati_field_kind leati_field_tuple = {.read = read_ints, .write = write_ints};
const leati_field_kind leati_field_pairs = {.read = read_pairs, .write = write_pairs};
const leati_field_kind leati_field_list = {.read = read_ints, .write = write_ints};
const leati_field_kind leati_field_numbers = {.read = read_ints, .write = write_ints};
const leati_field_kind leati_field_reals = {.read = read_reals, .write = write_reals, .fini = fini_reals};
const leati_field_kind leati_field_json = {.read = read_json, .write = write_json, .fini = fini_json};

/* Finds out whether a field that is `later` has its default; such a field is a plain value or JSON. */
static leat_status find_preset(const leati_field *field, const void *member, bool *out, leat_error *err) {
    union {
        int64_t whole_number;
        double real;
        bool truth;
        int32_t choice;
        leati_ints ints;
    } preset = {.ints = {0}};
    if (field->kind == LEATI_FIELD_JSON) {
        *out = !*(json_t *const *)member;
        return LEAT_OK;
    }
    LEATI_TRY(read_preset(field, &preset, err));
    json_t *value = NULL, *expected = NULL;
    bool known = field->kind->write(field, member, &value, err) == LEAT_OK &&
                 field->kind->write(field, &preset, &expected, err) == LEAT_OK;
    *out = known && json_equal(value, expected);
    json_decref(value);
    json_decref(expected);
    return known ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for the key '%s'", field->key);
}

leat_status leati_fields_write(const leati_field *fields, const void *config, json_t *object,
                               leat_error *err) {
    for (const leati_field *field = fields; field->key; ++field) {
        json_t *value = NULL;
        bool left_out = field->hidden;
        if (field->later) LEATI_TRY(find_preset(field, (const char *)config + field->offset, &left_out, err));
        if (left_out) continue;
        leat_status status = field->kind->write(field, (const char *)config + field->offset, &value, err);
        if (status == LEAT_OK && json_object_set_new(object, field->key, value) != 0) status = LEAT_ENOMEM;
        if (status == LEAT_ENOMEM)
            return leati_fail(err, LEAT_ENOMEM, "no memory for the key '%s'", field->key);
        LEATI_TRY(status);
    }
    return LEAT_OK;
}

void leati_fields_fini(const leati_field *fields, void *config) {
    for (const leati_field *field = fields; field->key; ++field)
        if (field->kind->fini) field->kind->fini((char *)config + field->offset);
}
