/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes Keras objects in JSON: names, and objects with "class_name" and "config". */
#include "nn/config/object.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define MAX_NAMES 256

static leat_status read_dictionary(leati_object *out, const json_t *value, const char *what,
                                   leat_error *err) {
    const json_t *name = json_object_get(value, "class_name");
    const json_t *config = json_object_get(value, "config");
    if (!json_is_string(name)) {
        return leati_fail(err, LEAT_EINVAL, "%s: expected an object with a \"class_name\", received none",
                          what);
    }
    out->name = json_string_value(name);
    const char *registered = json_string_value(json_object_get(value, "registered_name"));
    if (registered && strchr(registered, '>')) out->registered_name = registered;
    if (strcmp(out->name, "__lambda__") == 0)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "%s: the file has a lambda, which is stored as Python code that leat does not run; expected "
            "a class or function by its name: give it a name in Keras that leat has, and save again",
            what);
    if (strcmp(out->name, "function") == 0 && json_is_string(config)) {
        out->name = json_string_value(config); /* Keras 3 */
        out->is_function = true;
        return LEAT_OK;
    }
    if (config && !json_is_null(config)) {
        if (!json_is_object(config)) {
            return leati_fail(err, LEAT_EINVAL, "%s '%s': expected \"config\" to be an object", what,
                              out->name);
        }
        out->config = config;
    }
    return LEAT_OK;
}

leat_status leati_object_read(leati_object *out, const json_t *value, const char *what, leat_error *err) {
    *out = (leati_object){0};
    if (json_is_string(value)) {
        out->name = json_string_value(value);
        out->is_function = true;
        return LEAT_OK;
    }
    if (json_is_object(value)) return read_dictionary(out, value, what, err);
    return leati_fail(err, LEAT_EINVAL, "%s: expected a name or {\"class_name\": ..., \"config\": ...}",
                      what);
}

leat_status leati_object_write(const char *name, json_t *config, json_t **out, leat_error *err) {
    *out = config ? json_pack("{s:s, s:o}", "class_name", name, "config", config) : NULL;
    return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for the configuration of '%s'", name);
}

leat_status leati_unknown_name(leat_error *err, const char *what, const char *name,
                               const char *(*name_at)(int index)) {
    const char *names[MAX_NAMES];
    size_t count = 0;
    for (const char *known; count < MAX_NAMES && (known = name_at((int)count)) != NULL;) {
        names[count++] = known;
    }
    const char *nearest = leati_nearest(name, names, count);
    if (nearest) {
        return leati_fail(err, LEAT_ENOTFOUND, "unknown %s '%s'; did you mean '%s'?", what, name, nearest);
    }
    return leati_fail(err, LEAT_ENOTFOUND, "unknown %s '%s'", what, name);
}

const char *leati_item_class(const json_t *item) {
    const char *name = json_string_value(json_object_get(item, "class_name"));
    return name ? name : "";
}

const char *leati_item_name(const json_t *item) {
    const char *name = json_string_value(json_object_get(json_object_get(item, "config"), "name"));
    if (!name) name = json_string_value(json_object_get(item, "name"));
    return name ? name : "";
}

bool leati_item_is_model(const json_t *item) {
    static const char *const names[] = {"Sequential", "Functional", "Model"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (strcmp(leati_item_class(item), names[i]) == 0) return true;
    return false;
}
