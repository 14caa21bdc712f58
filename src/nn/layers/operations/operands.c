/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the operands of functions of keras.ops.  Room: nn. */
#include "nn/layers/operations/operands.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "json/json.h"
#include "nn/config/object.h"

leati_value leati_operand_fail(const leati_operands *o, leat_status code, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return leati_graph_fail(o->g, code, "%s: %s", o->operation->name, text);
}

int leati_argument_position(const char *signature, const char *name) {
    size_t length = strlen(name);
    int position = 0;
    for (const char *at = signature; *at; ++position) {
        size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, name, length) == 0) return position;
        at += word + (at[word] == ' ');
    }
    return -1;
}

/* Returns the argument as it is in the file, null included; NULL: it is not there. */
static const json_t *given(const leati_operands *o, const char *name) {
    int position = leati_argument_position(o->operation->signature, name);
    const json_t *value = position >= 0 ? json_array_get(o->args, (size_t)position) : NULL;
    if (!value) value = json_object_get(o->kwargs, name);
    return value ? value : json_object_get(o->options, name);
}

const json_t *leati_operand_json(const leati_operands *o, const char *name) {
    const json_t *value = given(o, name);
    return json_is_null(value) ? NULL : value;
}

bool leati_operand_is_none(const leati_operands *o, const char *name) {
    return json_is_null(given(o, name));
}

/* ---- Constants ---- */

/* Reads a number, which may be infinite or NaN, or true or false. */
static bool read_number(const json_t *value, double *out) {
    *out = json_is_true(value);
    return json_is_boolean(value) || leati_json_number(value, out);
}

/* Returns the nested lists of a {"class_name": "__numpy__" or "__tensor__"}, and other values as they are. */
static const json_t *plain(const json_t *value) {
    const char *class_name = leati_item_class(value);
    bool array = strcmp(class_name, "__numpy__") == 0 || strcmp(class_name, "__tensor__") == 0;
    return array ? json_object_get(json_object_get(value, "config"), "value") : value;
}

typedef struct array {
    leati_desc desc;
    float *values;
    int64_t filled;
} array;

/* Finds the shape of nested lists from their first elements. */
static bool find_shape(const json_t *value, leati_desc *desc) {
    while (json_is_array(value)) {
        if (desc->rank == LEAT_MAX_RANK) return false;
        desc->shape[desc->rank++] = (int64_t)json_array_size(value);
        value = json_array_get(value, 0);
    }
    return true;
}

static bool fill(array *a, const json_t *value, int depth) {
    double number;
    if (depth == a->desc.rank) {
        if (!read_number(value, &number)) return false;
        a->values[a->filled++] = (float)number;
        return true;
    }
    bool fits = (int64_t)json_array_size(value) == a->desc.shape[depth] && json_is_array(value);
    for (size_t i = 0; fits && i < json_array_size(value); ++i)
        fits = fill(a, json_array_get(value, i), depth + 1);
    return fits;
}

leati_value leati_operand_constant(leati_graph *g, const json_t *value) {
    const char *class_name = leati_item_class(value);
    value = plain(value);
    array a = {.desc = {.dtype = LEAT_F32}};
    if (!find_shape(value, &a.desc))
        return leati_graph_fail(g, LEAT_EINVAL, "expected a constant of at most %d axes", LEAT_MAX_RANK);
    int64_t count = leati_desc_count(&a.desc);
    if (count < 0 || !(a.values = leati_calloc((size_t)count + 1, sizeof *a.values)))
        return leati_graph_fail(g, LEAT_ENOMEM, "no memory for a constant");
    leati_value out =
        fill(&a, value, 0)
            ? leati_graph_constant(g, &a.desc, a.values)
            : leati_graph_fail(g, LEAT_EINVAL, "expected a tensor, a number, or lists of numbers%s%s",
                               class_name[0] ? ", received an object of the class " : "", class_name);
    leati_free(a.values);
    return out;
}

/* Returns a tensor or a constant as f32. */
static leati_value value_of(const leati_operands *o, const json_t *item) {
    const json_t *input = json_is_object(item) ? json_object_get(item, "input") : NULL;
    if (!input) return leati_operand_constant(o->g, item);
    json_int_t index = json_integer_value(input);
    if (index < 0 || index >= o->input_count)
        return leati_operand_fail(o, LEAT_EINVAL, "there is no input %lld", (long long)index);
    leati_value x = o->inputs[index];
    return leati_graph_desc(o->g, x)->dtype == LEAT_F32 ? x : leati_cast(o->g, x, LEAT_F32, 1);
}

leati_value leati_operand(const leati_operands *o, const char *name) {
    const json_t *item = leati_operand_json(o, name);
    if (!item) return leati_operand_fail(o, LEAT_EINVAL, "expected the argument '%s'", name);
    return value_of(o, item);
}

leati_value leati_operand_or(const leati_operands *o, const char *name, float preset) {
    return leati_operand_json(o, name) ? leati_operand(o, name) : leati_scalar(o->g, preset);
}

/* Returns true for a tensor, and for lists with one. */
static bool has_tensor(const json_t *value) {
    bool found = json_is_object(value) && json_object_get(value, "input");
    for (size_t i = 0; !found && i < json_array_size(value); ++i)
        found = has_tensor(json_array_get(value, i));
    return found;
}

bool leati_operand_is_constant(const leati_operands *o, const char *name) {
    return !has_tensor(leati_operand_json(o, name));
}

leati_value leati_operand_without_tensor(const leati_operands *o, const char *name) {
    return leati_operand_is_constant(o, name)
               ? leati_operand(o, name)
               : leati_operand_fail(o, LEAT_ENOTSUP, "%s: expected a constant, received a tensor", name);
}

int leati_operand_list(const leati_operands *o, const char *name, leati_value *out, int most) {
    const json_t *list = leati_operand_json(o, name);
    size_t count = json_array_size(list);
    if (count < 1 || count > (size_t)most) {
        leati_operand_fail(o, LEAT_EINVAL, "%s: expected a list of 1 to %d tensors", name, most);
        return 0;
    }
    for (size_t i = 0; i < count; ++i) out[i] = value_of(o, json_array_get(list, i));
    return (int)count;
}

/* ---- Numbers and texts ---- */

const json_t *leati_operand_plain(const leati_operands *o, const char *name) {
    return plain(leati_operand_json(o, name));
}

bool leati_operand_number(const leati_operands *o, const char *name, double *out) {
    double number;
    if (!read_number(leati_operand_plain(o, name), &number)) return false;
    *out = number;
    return true;
}

double leati_operand_number_or(const leati_operands *o, const char *name, double preset) {
    double number = preset;
    if (leati_operand_json(o, name) && !leati_operand_number(o, name, &number))
        leati_operand_fail(o, LEAT_ENOTSUP, "%s: expected a number", name);
    return number;
}

/* Reads an integer below 2^31, so that sums, and products with a length, do not overflow. */
static bool read_int(const json_t *value, int64_t *out) {
    const json_int_t number = json_integer_value(value);
    *out = (int64_t)number;
    return json_is_integer(value) && number >= -INT32_MAX && number <= INT32_MAX;
}

int64_t leati_operand_int(const leati_operands *o, const char *name, int64_t preset) {
    const json_t *value = leati_operand_json(o, name);
    int64_t number;
    if (!value) return preset;
    if (read_int(value, &number)) return number;
    leati_operand_fail(o, LEAT_EINVAL, "%s: expected an integer below 2^31", name);
    return preset;
}

bool leati_operand_flag(const leati_operands *o, const char *name) {
    return leati_operand_number_or(o, name, 0) != 0;
}

const char *leati_operand_text(const leati_operands *o, const char *name, const char *preset) {
    const json_t *value = leati_operand_json(o, name);
    if (!value) return preset;
    if (json_is_string(value)) return json_string_value(value);
    leati_operand_fail(o, LEAT_ENOTSUP, "%s: expected a text", name);
    return preset;
}

int leati_operand_choice(const leati_operands *o, const char *name, const char *const *choices) {
    const char *text = leati_operand_text(o, name, choices[0]);
    char all[160] = "";
    for (int i = 0; choices[i]; ++i) {
        const size_t length = strlen(all);
        if (strcmp(choices[i], text) == 0) return i;
        snprintf(all + length, sizeof all - length, "%s\"%s\"", i > 0 ? ", " : "", choices[i]);
    }
    leati_operand_fail(o, LEAT_ENOTSUP, "%s: expected one of %s, received \"%.32s\"", name, all, text);
    return 0;
}

int leati_operand_ints(const leati_operands *o, const char *name, int64_t out[LEAT_MAX_RANK]) {
    const json_t *value = leati_operand_plain(o, name);
    if (!leati_operand_json(o, name)) return -1;
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    bool fits = count <= LEAT_MAX_RANK;
    for (size_t i = 0; fits && i < count; ++i) {
        const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        fits = read_int(item, &out[i]) || json_is_null(item);
        if (json_is_null(item)) out[i] = -1;
    }
    if (fits) return (int)count;
    leati_operand_fail(o, LEAT_EINVAL, "%s: expected at most %d integers below 2^31", name, LEAT_MAX_RANK);
    return -2;
}

int leati_axis_from(int64_t axis, int rank) {
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

int leati_operand_axis(const leati_operands *o, const char *name, int rank, int64_t preset) {
    int64_t axis = leati_operand_int(o, name, preset);
    int found = leati_axis_from(axis, rank);
    if (axis == LEATI_AXIS_NEEDED)
        leati_operand_fail(o, LEAT_ENOTSUP, "%s: expected an axis", name);
    else if (found < 0)
        leati_operand_fail(o, LEAT_ESHAPE, "%s: a tensor of %d axes has no axis %lld", name, rank,
                           (long long)axis);
    return found;
}

uint32_t leati_operand_axes(const leati_operands *o, const char *name, int rank) {
    int64_t list[LEAT_MAX_RANK];
    uint32_t axes = 0;
    int count = leati_operand_ints(o, name, list);
    if (count == -1) return (UINT32_C(1) << rank) - 1;
    for (int i = 0; i < count; ++i) {
        int axis = leati_axis_from(list[i], rank);
        if (axis < 0) {
            leati_operand_fail(o, LEAT_ESHAPE, "%s: a tensor of %d axes has no axis %lld", name, rank,
                               (long long)list[i]);
            return 0;
        }
        axes |= UINT32_C(1) << axis;
    }
    return axes;
}
