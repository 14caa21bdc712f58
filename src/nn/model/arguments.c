/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and checks the arguments of compile, and finds the part of each output.  Room: nn. */
#include "nn/model/arguments.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "json/json.h"
#include "nn/config/call_text.h"

#define MAX_OUTPUTS 64

static leat_status parse_names(const char *text, const char *what, json_t **out, leat_error *err) {
    json_t *list = json_array();
    leat_status status = list ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for %s", what);
    for (const char *from = text; status == LEAT_OK;) {
        size_t length = leati_call_item(from);
        json_t *item = NULL;
        status = leati_call_read(from, length, what, &item, err);
        if (status == LEAT_OK && json_array_append_new(list, item) != 0)
            status = leati_fail(err, LEAT_ENOMEM, "no memory for %s", what);
        if (from[length] == '\0') break;
        from += length + 1;
    }
    if (status == LEAT_OK) {
        *out = json_array_size(list) == 1 ? json_incref(json_array_get(list, 0)) : json_incref(list);
    }
    json_decref(list);
    return status;
}

static leat_status parse_json(const char *text, const char *what, json_t **out, leat_error *err) {
    leat_error parse_error = {0};
    leat_status status = leati_json_parse_argument(out, text, strlen(text), &parse_error);
    if (status == LEAT_OK) return LEAT_OK;
    if (status == LEAT_ENOMEM) return leati_fail(err, LEAT_ENOMEM, "no memory for %s", what);
    return leati_fail(err, LEAT_EINVAL, "%s: expected a name or JSON; %s", what, parse_error.message);
}

/* Parses one or several numbers or quoted strings: "1, 0.5". */
static leat_status parse_list(const char *text, const char *what, json_t **out, leat_error *err) {
    leati_text brackets = {0};
    leati_text_add(&brackets, "[%s]", text);
    leat_status status = brackets.failed ? leati_fail(err, LEAT_ENOMEM, "no memory for %s", what)
                                         : parse_json(brackets.data, what, out, err);
    leati_text_fini(&brackets);
    if (status != LEAT_OK || json_array_size(*out) != 1) return status;
    json_t *list = *out;
    *out = json_incref(json_array_get(list, 0));
    json_decref(list);
    return LEAT_OK;
}

leat_status leati_argument_parse(const char *text, const char *what, json_t **out, leat_error *err) {
    *out = NULL;
    const char *start = text ? text + strspn(text, " \t\r\n") : "";
    if (*start == '\0') {
        *out = json_null();
        return LEAT_OK;
    }
    if (strchr("{[", *start) || strcmp(start, "null") == 0) return parse_json(start, what, out, err);
    return strchr("'\"-0123456789", *start) ? parse_list(start, what, out, err)
                                            : parse_names(start, what, out, err);
}

bool leati_argument_is_dict(const json_t *value) {
    return json_is_object(value) && !json_object_get(value, "class_name");
}

static leat_status check_key(const char *key, const char *what, const leat_model *model, leat_error *err) {
    const char *names[MAX_OUTPUTS] = {0};
    size_t count = 0;
    for (int i = 0; i < model->output_count && count < MAX_OUTPUTS; ++i) {
        names[count++] = leati_model_output_name(model, i);
        if (strcmp(names[i], key) == 0) return LEAT_OK;
    }
    const char *nearest = leati_nearest(key, names, count);
    if (nearest)
        return leati_fail(err, LEAT_ENOTFOUND, "%s: the model has no output '%s'; did you mean '%s'?", what,
                          key, nearest);
    char list[256] = "";
    for (size_t i = 0, used = 0; i < count && used < sizeof list; ++i)
        used += (size_t)snprintf(list + used, sizeof list - used, " '%s'", names[i]);
    return leati_fail(err, LEAT_ENOTFOUND, "%s: the model has no output '%s'; its outputs are%s", what, key,
                      list);
}

leat_status leati_argument_check(const json_t *value, const char *what, const leat_model *model,
                                 bool list_by_output, leat_error *err) {
    if (leati_argument_is_dict(value)) {
        const char *key;
        json_t *item;
        json_object_foreach((json_t *)(uintptr_t)value, key, item) {
            LEATI_TRY(check_key(key, what, model, err));
        }
    }
    if (json_is_array(value) && list_by_output && json_array_size(value) != (size_t)model->output_count) {
        return leati_fail(err, LEAT_EINVAL, "%s: expected one item for %s %d output%s, received %zu", what,
                          model->output_count == 1 ? "the model's" : "each of the model's",
                          (int)model->output_count, model->output_count == 1 ? "" : "s",
                          json_array_size(value));
    }
    return LEAT_OK;
}

const json_t *leati_argument_of(const json_t *value, const leat_model *model, int index,
                                bool list_by_output) {
    const json_t *item = value;
    if (leati_argument_is_dict(value)) item = json_object_get(value, leati_model_output_name(model, index));
    if (json_is_array(value) && list_by_output) item = json_array_get(value, (size_t)index);
    return json_is_null(item) ? NULL : item;
}

typedef leat_status (*write_object)(const json_t *, const leati_part *, json_t **, leat_error *);

static leat_status map_dict(const json_t *value, write_object write, const leati_part *parts, json_t *out,
                            leat_error *err) {
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key, item) {
        json_t *mapped = NULL;
        LEATI_TRY(leati_argument_map(item, write, parts, &mapped, err));
        if (json_object_set_new(out, key, mapped) != 0)
            return leati_fail(err, LEAT_ENOMEM, "no memory for '%s'", key);
    }
    return LEAT_OK;
}

static leat_status map_list(const json_t *value, write_object write, const leati_part *parts, json_t *out,
                            leat_error *err) {
    for (size_t i = 0; i < json_array_size(value); ++i) {
        json_t *mapped = NULL;
        LEATI_TRY(leati_argument_map(json_array_get(value, i), write, parts, &mapped, err));
        if (json_array_append_new(out, mapped) != 0)
            return leati_fail(err, LEAT_ENOMEM, "no memory for a list");
    }
    return LEAT_OK;
}

leat_status leati_argument_map(const json_t *value, write_object write, const leati_part *parts, json_t **out,
                               leat_error *err) {
    *out = NULL;
    bool dict = leati_argument_is_dict(value);
    if ((json_is_object(value) && !dict) || json_is_string(value)) return write(value, parts, out, err);
    json_t *made = dict ? json_object() : json_is_array(value) ? json_array() : json_deep_copy(value);
    leat_status status = made ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for arguments");
    if (made && dict) status = map_dict(value, write, parts, made, err);
    if (made && !dict && json_is_array(value)) status = map_list(value, write, parts, made, err);
    if (status != LEAT_OK) {
        json_decref(made);
        return status;
    }
    *out = made;
    return LEAT_OK;
}
