/* SPDX-License-Identifier: Apache-2.0 */
/* Tests every key of every layer, from the layer's table of fields.  A missing key has its default or is required.
 * A value of another type, a value that is too small or an unknown key is refused, and the message names the
 * layer, its class and the key. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "nn/examples.h"
#include "nn/activations/activation.h"
#include "nn/layers/types.h"
#include "nn/layers/wrapping.h"
#include "nn/model/model.h"
#include "nn/run.h"

enum { MOST_VALUES = 16, VALUE_BYTES = 160 };

/* JSON texts that a field must refuse. */
typedef struct wrong {
    char values[MOST_VALUES][VALUE_BYTES];
    int count;
} wrong;

static void add(wrong *w, const char *value) {
    assert_true(w->count < MOST_VALUES && strlen(value) < VALUE_BYTES);
    strcpy(w->values[w->count++], value);
}

static void add_all(wrong *w, const char *const *values) {
    for (; *values; ++values) add(w, *values);
}

/* Adds a list of `count` times `element`. */
static void add_list(wrong *w, const char *element, int count) {
    char text[VALUE_BYTES] = "[";
    for (int i = 0; i < count; ++i) {
        assert_true(strlen(text) + strlen(element) + 4 < sizeof text);
        strcat(strcat(text, i > 0 ? ", " : ""), element);
    }
    add(w, strcat(text, "]"));
}

static bool has_null_preset(const leati_field *field) {
    return field->preset && strcmp(field->preset, "null") == 0;
}

/* True for a field that must be a list or an object of the layer Operation. */
static bool has_object_preset(const leati_field *field) {
    return field->preset && strpbrk(field->preset, "{") != NULL;
}

/* Adds a number that is too small for the field. */
static void add_too_small(wrong *w, const leati_field *field) {
    char text[64];
    if (!field->limited) return;
    snprintf(text, sizeof text, "%.17g", field->minimum - 1);
    add(w, text);
}

static void add_wrong_ints(wrong *w, const leati_field *field) {
    static const char *const never[] = {"\"x\"", "1.5", "{}", "true", "3000000000", "[\"x\"]", NULL};
    const bool list = field->kind == LEATI_FIELD_LIST || field->kind == LEATI_FIELD_NUMBERS;
    add_all(w, never);
    add_too_small(w, field);
    add_list(w, "1", list ? LEAT_MAX_RANK + 1 : field->arity + 1);
    if (!list) add(w, "[]");
    if (!list && !has_null_preset(field)) add(w, "null");
}

static wrong wrong_values(const leati_field *field) {
    static const char *const no_number[] = {"\"x\"", "[]", "{}", "[1]", "true", NULL};
    static const char *const no_truth[] = {"\"x\"", "[]", "2", "1.5", "null", NULL};
    static const char *const no_text[] = {"3", "[]", "{}", "true", NULL};
    static const char *const no_choice[] = {"\"no such choice\"", "[]", "3", "true", NULL};
    static const char *const no_reals[] = {"\"x\"", "{}", "[\"x\"]", "true", NULL};
    static const char *const no_object[] = {"\"no_such_thing\"",
                                            "3",
                                            "[]",
                                            "true",
                                            "{}",
                                            "{\"class_name\": \"NoSuchThing\", \"config\": {}}",
                                            NULL};
    static const char *const no_container[] = {"\"x\"", "3", "true", NULL};
    wrong w = {.count = 0};
    const leati_field_kind *kind = field->kind;
    if (kind == LEATI_FIELD_INT || kind == LEATI_FIELD_FLOAT) add(&w, "null");
    if (kind == LEATI_FIELD_INT || kind == LEATI_FIELD_OPTIONAL_INT) {
        add_all(&w, no_number);
        add(&w, "1.5");
        add_too_small(&w, field);
    } else if (kind == LEATI_FIELD_FLOAT || kind == LEATI_FIELD_OPTIONAL_FLOAT) {
        add_all(&w, no_number);
        add_too_small(&w, field);
    } else if (kind == LEATI_FIELD_BOOL) {
        add_all(&w, no_truth);
    } else if (kind == LEATI_FIELD_CHOICE) {
        add_all(&w, no_choice);
    } else if (kind == LEATI_FIELD_TEXT) {
        add_all(&w, no_text);
    } else if (kind == LEATI_FIELD_TUPLE || kind == LEATI_FIELD_PAIRS || kind == LEATI_FIELD_LIST ||
               kind == LEATI_FIELD_NUMBERS) {
        add_wrong_ints(&w, field);
    } else if (kind == LEATI_FIELD_REALS) {
        add_all(&w, no_reals);
        if (!has_null_preset(field)) add(&w, "[]");
    } else if (kind != LEATI_FIELD_JSON) {
        add_all(&w, no_object);
    } else if (has_object_preset(field)) { /* others allow every JSON value */
        add_all(&w, no_container);
    }
    return w;
}

/* ---- Layers with changed configurations ---- */

static json_t *parsed(const char *text) {
    leat_error err = {0};
    json_t *value = NULL;
    assert_ok(leati_json_parse(&value, text, strlen(text), &err), &err);
    return value;
}

static json_t *config_of(const example *e) {
    char text[4096];
    snprintf(text, sizeof text, "{\"name\": \"it\"%s%s}", e->config[0] ? ", " : "", e->config);
    return parsed(text);
}

/* Builds a model of one layer, whose configuration must be refused; the message must name the layer, and then
 * contain `said`. */
static void must_fail(const example *e, const json_t *config, const char *said, const char *what) {
    leat_error err = {0};
    leat_model *model = NULL;
    char called[256];
    json_t *root = json_pack("{s:s, s:{s:s, s:[{s:s, s:O, s:[]}], s:[], s:[]}}", "class_name", "Model",
                             "config", "name", "m", "layers", "class_name", e->class_name, "config", config,
                             "inbound_nodes", "input_layers", "output_layers");
    assert_non_null(root);
    assert_int_not_equal(leati_model_from_config(&model, root, &err), LEAT_OK);
    json_decref(root);
    const char *name = json_string_value(json_object_get(config, "name"));
    snprintf(called, sizeof called, "'%s' (%s): %s", name ? name : "", e->class_name, said);
    if (!strstr(err.message, called))
        fail_msg("%s, %s: expected \"%s...\" in: %s", e->class_name, what, called, err.message);
}

/* Returns the written configuration of a layer that must be accepted; NULL if another key refuses it. */
static json_t *written(const leati_layer_type *type, const json_t *config) {
    leat_error err = {0};
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    leati_layer *layer = NULL;
    json_t *out = NULL;
    if (leati_layer_create(&layer, type, config, &reader, &err) != LEAT_OK) return NULL;
    assert_ok(leati_layer_config(layer, &out, &err), &err);
    leati_layer_destroy(&layer);
    return out;
}

static void check_missing(const example *e, const leati_layer_type *type, const leati_field *field) {
    json_t *config = config_of(e);
    json_object_del(config, field->key);
    if (!field->preset) {
        char missing[128];
        snprintf(missing, sizeof missing, "the key '%s' is missing", field->key);
        must_fail(e, config, missing, "left out");
    } else {
        json_t *without = written(type, config);
        json_object_set_new(config, field->key, parsed(field->preset));
        json_t *with = written(type, config);
        if ((without || with) && !json_equal(without, with))
            fail_msg("%s: '%s' left out is not %s", e->class_name, field->key, field->preset);
        json_decref(without);
        json_decref(with);
    }
    json_decref(config);
}

static void check_wrong(const example *e, const leati_field *field) {
    const wrong w = wrong_values(field);
    assert_true(w.count > 0 || (field->kind == LEATI_FIELD_JSON && !has_object_preset(field)));
    for (int i = 0; i < w.count; ++i) {
        json_t *config = config_of(e);
        json_object_set_new(config, field->key, parsed(w.values[i]));
        must_fail(e, config, field->key, w.values[i]);
        json_decref(config);
    }
}

/* Tests a key that differs from one of the layer's keys in one letter. */
static void check_unknown(const example *e, const leati_field *field) {
    char key[128], question[160];
    json_t *config = config_of(e);
    snprintf(key, sizeof key, "%sx", field->key);
    snprintf(question, sizeof question, "unknown key '%s'", key);
    json_object_set_new(config, key, json_integer(1));
    must_fail(e, config, question, "added");
    json_decref(config);
}

static void test_custom_keys(void **state) {
    (void)state;
    int keys = 0;
    for (const example *e = examples; e->class_name; ++e) {
        const leati_layer_type *type = leati_layer_find(e->class_name);
        assert_non_null(type);
        for (const leati_field *field = type->fields; field->key; ++field, ++keys) {
            check_missing(e, type, field);
            check_wrong(e, field);
            check_unknown(e, field);
        }
    }
    assert_true(keys > 1000);
}

/* Tests the keys that every layer has. */
static void test_common_keys(void **state) {
    static const struct {
        const char *key, *value;
    } rows[] = {
        {"name", "3"},
        {"name", "\"\""},
        {"trainable", "\"yes\""},
        {"trainable", "null"},
        {"dtype", "3"},
        {"dtype", "\"float99\""},
        {"batch_input_shape", "3"},
        {"batch_input_shape", "[]"},
        {"batch_input_shape", "[null, 0]"},
        {"batch_input_shape", "[null, -1]"},
        {"batch_input_shape", "[null, \"x\"]"},
        {"batch_input_shape", "[null, 3000000000]"},
        {"batch_input_shape", "[1, 1, 1, 1, 1, 1, 1, 1, 1]"},
        {"input_shape", "[1.5]"},
    };
    (void)state;
    for (const example *e = examples; e->class_name; ++e) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
            json_t *config = config_of(e);
            if (strcmp(rows[i].key, "input_shape") == 0) json_object_del(config, "batch_input_shape");
            json_object_set_new(config, rows[i].key, parsed(rows[i].value));
            must_fail(e, config, rows[i].key, rows[i].value);
            json_decref(config);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_custom_keys),
        cmocka_unit_test(test_common_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
