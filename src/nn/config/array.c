/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes fields that are numbers or arrays of numbers.  Room: nn. */
#include "nn/config/array.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"
#include "nn/config/object.h"

/* Takes the nested lists out of current Keras's objects for arrays. */
static const json_t *lists_of(const json_t *value) {
    static const char *const classes[] = {"__numpy__", "__tensor__"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; ++i)
        if (strcmp(leati_item_class(value), classes[i]) == 0)
            return json_object_get(json_object_get(value, "config"), "value");
    return value;
}

/* Gives the shape of nested lists by their first elements. */
static bool read_shape(const json_t *value, leati_value_array *out, size_t *count) {
    *count = 1;
    for (; json_is_array(value); value = json_array_get(value, 0)) {
        size_t size = json_array_size(value);
        if (out->rank == LEAT_MAX_RANK || size == 0 || size > INT32_MAX / *count) return false;
        out->dims[out->rank++] = (int64_t)size;
        *count *= size;
    }
    return true;
}

/* Copies the numbers below `value`, a list of dimension `axis`, and moves *next behind them.  The rank limits the
 * recursion. */
static bool copy_numbers(const json_t *value, const leati_value_array *shape, int axis, double **next) {
    if (axis == shape->rank) return leati_json_number(value, (*next)++);
    size_t size = (size_t)shape->dims[axis];
    bool right = json_is_array(value) && json_array_size(value) == size;
    for (size_t i = 0; right && i < size; ++i)
        right = copy_numbers(json_array_get(value, i), shape, axis + 1, next);
    return right;
}

static leat_status read_array(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    (void)context;
    leati_value_array array = {0};
    size_t count = 0;
    const json_t *lists = lists_of(value);
    bool right = lists && read_shape(lists, &array, &count);
    if (right) {
        array.values = leati_calloc(count, sizeof *array.values);
        if (!array.values) return leati_fail_memory(err, count * sizeof *array.values, field->key);
        double *next = array.values;
        right = copy_numbers(lists, &array, 0, &next);
    }
    if (!right) {
        leati_free(array.values);
        return leati_fail(
            err, LEAT_EINVAL,
            "%s: expected a number, or lists of numbers of equal lengths in at most %d dimensions%s%s",
            field->key, LEAT_MAX_RANK, leati_item_class(value)[0] ? ", received the object " : "",
            leati_item_class(value));
    }
    *(leati_value_array *)member = array;
    return LEAT_OK;
}

static json_t *lists_from(const leati_value_array *array, int axis, const double **next) {
    if (axis == array->rank) return leati_json_real(*(*next)++);
    json_t *list = json_array();
    for (int64_t i = 0; list && i < array->dims[axis]; ++i) {
        if (json_array_append_new(list, lists_from(array, axis + 1, next)) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static leat_status write_array(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field, (void)err;
    const leati_value_array *array = member;
    const double *next = array->values;
    *out = lists_from(array, 0, &next);
    return *out ? LEAT_OK : LEAT_ENOMEM;
}

static void fini_array(void *member) {
    leati_value_array *array = member;
    leati_free(array->values);
    *array = (leati_value_array){0};
}

const leati_field_kind leati_field_array = {.read = read_array, .write = write_array, .fini = fini_array};
