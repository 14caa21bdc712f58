/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/layer_pages.h"

#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "json/json.h"
#include "nn/examples.h"
#include "nn/layers/types.h"
#include "nn/layers/wrapping.h"
#include "nn/model/model.h"
#include "nn/activations/activation.h"

void layer_pages_open(layer_pages *pages) {
    pages->seen = json_object();
    assert_non_null(pages->seen);
}

void layer_pages_close(layer_pages *pages) {
    json_decref(pages->seen);
}

/* ---- What the cases cover ---- */

/* Returns object[key]; creates it if it does not exist. */
static json_t *member(json_t *object, const char *key, json_t *fresh) {
    if (!json_object_get(object, key)) json_object_set(object, key, fresh);
    json_decref(fresh);
    json_t *found = json_object_get(object, key);
    assert_non_null(found);
    return found;
}

static json_t *entry_of(const layer_pages *pages, const char *class_name) {
    json_t *fresh = json_pack("{s:i, s:i, s:f, s:{}}", "cases", 0, "later", 0, "worst", 0.0, "keys");
    return member(pages->seen, class_name, fresh);
}

/* Returns a value as the field writes it (NULL: the field's default); NULL if the field refuses the value. */
static json_t *as_written(const leati_layer_type *type, const leati_field *field, const json_t *value) {
    leati_field fields[] = {*field, {.key = NULL}};
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    json_t *in = json_object(), *out = json_object(), *written = NULL;
    void *config = leati_calloc(1, type->config_bytes);
    fields[0].later = fields[0].hidden = false;
    if (value) json_object_set(in, field->key, (json_t *)(uintptr_t)value);
    if (leati_fields_read_with(fields, NULL, in, &reader, config, NULL) == LEAT_OK) {
        if (leati_fields_write(fields, config, out, NULL) == LEAT_OK)
            written = json_incref(json_object_get(out, field->key));
        leati_fields_fini(fields, config);
    }
    leati_free(config);
    json_decref(in);
    json_decref(out);
    return written;
}

static void add_value(json_t *values, json_t *value) {
    for (size_t i = 0; i < json_array_size(values); ++i)
        if (json_equal(json_array_get(values, i), value)) return;
    json_array_append(values, value);
}

static void add_layer(const layer_pages *pages, const leati_layer_type *type, const json_t *config) {
    json_t *keys = json_object_get(entry_of(pages, type->class_name), "keys");
    for (const leati_field *field = type->fields; field->key; ++field) {
        json_t *value = json_object_get(config, field->key);
        json_t *written = as_written(type, field, value);
        if (written) add_value(member(keys, field->key, json_array()), written);
        json_decref(written);
    }
}

/* Adds all layers of a configuration, at any depth. */
static void add_layers(const layer_pages *pages, const json_t *value) {
    const json_t *config = json_object_get(value, "config");
    const char *class_name = json_string_value(json_object_get(value, "class_name")), *key;
    const char *registered = json_string_value(json_object_get(value, "registered_name"));
    if (registered && strchr(registered, '>')) class_name = registered; /* a layer of KerasHub */
    const leati_layer_type *type = class_name && json_is_object(config) ? leati_layer_find(class_name) : NULL;
    json_t *item;
    if (type) add_layer(pages, type, config);
    json_object_foreach((json_t *)(uintptr_t)value, key, item) add_layers(pages, item);
    for (size_t i = 0; i < json_array_size(value); ++i) add_layers(pages, json_array_get(value, i));
}

void layer_pages_add(layer_pages *pages, const char *about, const json_t *model, double worst, bool later) {
    json_t *entry = entry_of(pages, about), *cases = json_object_get(entry, later ? "later" : "cases");
    json_t *so_far = json_object_get(entry, "worst");
    json_integer_set(cases, json_integer_value(cases) + 1);
    json_real_set(so_far, fmax(worst, json_real_value(so_far)));
    add_layers(pages, model);
}

/* ---- One key ---- */

static const char *kind_of(const leati_field *field, char text[64]) {
    static const struct {
        const leati_field_kind *kind;
        const char *name;
    } names[] = {
        {LEATI_FIELD_INT, "integer"},
        {LEATI_FIELD_OPTIONAL_INT, "integer or null"},
        {LEATI_FIELD_FLOAT, "number"},
        {LEATI_FIELD_OPTIONAL_FLOAT, "number or null"},
        {LEATI_FIELD_BOOL, "true or false"},
        {LEATI_FIELD_CHOICE, "name"},
        {LEATI_FIELD_TEXT, "text"},
        {LEATI_FIELD_TUPLE, "integer, or %d of them"},
        {LEATI_FIELD_PAIRS, "integer, or one or two for each of %d axes"},
        {LEATI_FIELD_LIST, "list of integers"},
        {LEATI_FIELD_NUMBERS, "integer, or a list"},
        {LEATI_FIELD_REALS, "number, or a list"},
        {LEATI_FIELD_ACTIVATION, "activation"},
        {LEATI_FIELD_INITIALIZER, "initializer"},
        {LEATI_FIELD_REGULARIZER, "regularizer"},
        {LEATI_FIELD_CONSTRAINT, "constraint"},
        {LEATI_FIELD_LAYER, "layer"},
        {LEATI_FIELD_LAYERS, "list of layers"},
        {LEATI_FIELD_JSON, "anything"},
    };
    size_t index = 0;
    while (names[index].kind != field->kind) ++index;
    const char *format = names[index].name, *at = strstr(format, "%d");
    if (field->kind == LEATI_FIELD_PAIRS && field->arity == 1) return "integer, or two";
    if (field->kind == LEATI_FIELD_TUPLE && field->arity == 1) return "integer, or a list of one";
    if (!at) return format;
    snprintf(text, 64, "%.*s%d%s", (int)(at - format), format, (int)field->arity, at + 2);
    return text;
}

static void add_kind(leati_text *out, const leati_field *field) {
    char text[64];
    for (int i = 0; field->kind == LEATI_FIELD_CHOICE && field->choices[i]; ++i)
        leati_text_add(out, "%s\"%s\"", i > 0 ? ", " : "", field->choices[i]);
    if (field->kind == LEATI_FIELD_CHOICE && field->nullable) leati_text_add(out, ", null");
    if (field->kind != LEATI_FIELD_CHOICE) leati_text_add(out, "%s", kind_of(field, text));
    if (field->limited) leati_text_add(out, ", from %.17g", field->minimum);
}

static void add_json(leati_text *out, const json_t *value) {
    char *text = NULL;
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    if (class_name) {
        leati_text_add(out, "%s", class_name);
        return;
    }
    assert_int_equal(leati_json_write(value, &text, NULL), LEAT_OK);
    leati_text_add(out, "%s", text);
    leati_free(text);
}

static bool all_numbers(const json_t *values, double *least, double *most) {
    *least = INFINITY, *most = -INFINITY;
    for (size_t i = 0; i < json_array_size(values); ++i) {
        double number;
        if (!leati_json_number(json_array_get(values, i), &number)) return false;
        *least = fmin(*least, number), *most = fmax(*most, number);
    }
    return true;
}

/* Returns the distinct values, without the further configuration of a class. */
static json_t *distinct(const json_t *values) {
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(values); ++i) {
        json_t *value = json_array_get(values, i), *class_name = json_object_get(value, "class_name");
        add_value(out, class_name ? class_name : value);
    }
    return out;
}

static bool is_default_only(const leati_layer_type *type, const leati_field *field, const json_t *values) {
    json_t *preset = field->preset ? as_written(type, field, NULL) : NULL;
    bool only = json_array_size(values) == 0 ||
                (json_array_size(values) == 1 && preset && json_equal(preset, json_array_get(values, 0)));
    json_decref(preset);
    return only;
}

static void add_values(leati_text *out, const leati_layer_type *type, const leati_field *field,
                       const json_t *seen) {
    enum { MOST = 4, MOST_NAMES = 24 };
    double least, most;
    if (is_default_only(type, field, seen)) {
        leati_text_add(out, "%s", field->preset ? "the default" : "none");
        return;
    }
    json_t *values = distinct(seen);
    size_t count = json_array_size(values),
           shown = json_is_string(json_array_get(values, 0)) ? MOST_NAMES : MOST;
    if (count > shown && all_numbers(values, &least, &most)) {
        leati_text_add(out, "%.9g to %.9g", least, most);
    } else {
        for (size_t i = 0; i < count && i < shown; ++i) {
            leati_text_add(out, "%s", i > 0 ? ", " : "");
            add_json(out, json_array_get(values, i));
        }
        if (count > shown) leati_text_add(out, " and %zu more", count - shown);
    }
    json_decref(values);
}

/* ---- One layer ---- */

static void add_shapes(leati_text *out, int count, const leati_shape *shapes) {
    char text[LEATI_SHAPE_TEXT_BYTES];
    for (int i = 0; i < count; ++i)
        leati_text_add(out, "%s%s", i > 0 ? ", " : "", leati_shape_show(text, &shapes[i]));
}

/* Adds the shapes of the outputs and the weights for the first example of a type. */
static void add_example(leati_text *out, const leati_layer_type *type) {
    leat_error err = {0};
    const leati_layer_reader reader = leati_layer_reader_for(NULL);
    leati_layer *layer = NULL;
    leati_shape inputs[EXAMPLE_MAX_INPUTS], outputs[LEATI_LAYER_MAX_OUTPUTS];
    int input_count = 0, output_count = 0;
    const example *e = examples;
    while (strcmp(e->class_name, type->class_name) != 0) ++e;
    leati_text text = {0};
    json_t *config = NULL;
    leati_text_add(&text, "{\"name\": \"it\"%s%s}", e->config[0] ? ", " : "", e->config);
    assert_int_equal(leati_json_parse(&config, text.data, text.length, &err), LEAT_OK);
    assert_int_equal(leati_layer_create(&layer, type, config, &reader, &err), LEAT_OK);
    for (; input_count < example_input_count(e); ++input_count) {
        inputs[input_count] = (leati_shape){.rank = e->inputs[input_count].rank + 1, .dims = {-1}};
        memcpy(inputs[input_count].dims + 1, e->inputs[input_count].dims, sizeof e->inputs[0].dims);
    }
    if (!leati_layer_is_input(layer)) {
        assert_int_equal(leati_layer_infer(layer, input_count, inputs, outputs, &output_count, &err),
                         LEAT_OK);
        assert_int_equal(leati_layer_build(layer, input_count, inputs, &err), LEAT_OK);
        leati_text_add(out, "For example `{%s}`: ", e->config);
        add_shapes(out, input_count, inputs);
        leati_text_add(out, " → ");
        add_shapes(out, output_count, outputs);
        for (int i = 0; i < layer->weight_count; ++i) {
            const leati_weight *w = &layer->weights[i];
            char shape[LEATI_SHAPE_TEXT_BYTES];
            leati_text_add(out, "%s%s %s%s", i == 0 ? "; weights " : ", ", w->name,
                           leati_shape_text(shape, sizeof shape, w->desc.rank, w->desc.shape),
                           w->trainable ? "" : " (fixed)");
        }
        leati_text_add(out, ".\n");
    }
    leati_layer_destroy(&layer);
    json_decref(config);
    leati_text_fini(&text);
}

static void add_inputs(leati_text *out, const leati_layer_type *type) {
    static const char *const masking[] = {[LEATI_MASK_DROPPED] = "A mask is dropped.",
                                          [LEATI_MASK_REFUSED] = "A mask is refused.",
                                          [LEATI_MASK_PASSED] = "A mask is passed on.",
                                          [LEATI_MASK_COMPUTED] = "It computes its own masks."};
    if (type->min_inputs == type->max_inputs)
        leati_text_add(out, "%d input%s. ", (int)type->min_inputs, type->min_inputs == 1 ? "" : "s");
    else
        leati_text_add(out, "%d to %d inputs. ", (int)type->min_inputs, (int)type->max_inputs);
    leati_text_add(out, "%s", masking[type->masking]);
    for (const leati_old_preset *old = type->old_presets; old && old->key; ++old)
        leati_text_add(out, " In files of Keras before %d.%d, `%s` is %s where it is missing.",
                       (int)old->major, (int)old->minor, old->key, old->preset);
    leati_text_add(out, "\n");
}

static void add_layer_page(leati_text *out, const layer_pages *pages, const leati_layer_type *type) {
    json_t *keys = json_object_get(entry_of(pages, type->class_name), "keys");
    leati_text_add(out, "\n## %s\n\n", type->class_name);
    add_inputs(out, type);
    add_example(out, type);
    if (!type->fields[0].key) return;
    leati_text_add(out, "\n| Key | Value | Default | In golden cases |\n|---|---|---|---|\n");
    for (const leati_field *field = type->fields; field->key; ++field) {
        leati_text_add(out, "| `%s` | ", field->key);
        add_kind(out, field);
        leati_text_add(out, " | %s%s%s | ", field->preset ? "`" : "",
                       field->preset ? field->preset : "required", field->preset ? "`" : "");
        add_values(out, type, field, json_object_get(keys, field->key));
        leati_text_add(out, " |\n");
    }
}

/* ---- The file ---- */

/* Adds a number with one digit, rounded up. */
static void add_error(leati_text *out, double worst) {
    if (worst <= 0) {
        leati_text_add(out, "0");
        return;
    }
    int exponent = (int)floor(log10(worst));
    int digit = (int)ceil(worst / pow(10, exponent) - 1e-9);
    leati_text_add(out, "%de%d", digit == 10 ? 1 : digit, digit == 10 ? exponent + 1 : exponent);
}

static void add_overview(leati_text *out, const layer_pages *pages) {
    leati_text_add(out, "| Layer | Cases of 2.3.1 | of current Keras | Keys with other values than the "
                        "default | Worst error |\n"
                        "|---|---|---|---|---|\n");
    for (int i = 0; leati_layer_types[i]; ++i) {
        const leati_layer_type *type = leati_layer_types[i];
        json_t *entry = entry_of(pages, type->class_name), *keys = json_object_get(entry, "keys");
        int all = 0, covered = 0;
        for (const leati_field *field = type->fields; field->key; ++field, ++all)
            covered += !is_default_only(type, field, json_object_get(keys, field->key));
        leati_text_add(out, "| %s | %d | %d | %d of %d | ", type->class_name,
                       (int)json_integer_value(json_object_get(entry, "cases")),
                       (int)json_integer_value(json_object_get(entry, "later")), covered, all);
        add_error(out, json_real_value(json_object_get(entry, "worst")));
        leati_text_add(out, " |\n");
    }
}

void layer_pages_write(const layer_pages *pages, leati_text *out) {
    leati_text_add(out, "# Layers\n\n"
                        "Written by `tools/layer-pages` from the tables of the layers and from what the "
                        "golden cases have in them; a test\n"
                        "fails where it is not current. The worst error is the largest distance from Keras, "
                        "relative to the scale of the\n"
                        "array, that any array of the layer's cases had on the machine where this was "
                        "written: outputs, losses,\n"
                        "metrics, gradients, weights after training. The tests allow 1e-5.\n\n");
    add_overview(out, pages);
    for (int i = 0; leati_layer_types[i]; ++i) add_layer_page(out, pages, leati_layer_types[i]);
    assert_false(out->failed);
}

int layer_pages_without_case(const layer_pages *pages, leati_text *out) {
    int count = 0;
    for (int i = 0; leati_layer_types[i]; ++i) {
        const char *class_name = leati_layer_types[i]->class_name;
        json_t *entry = entry_of(pages, class_name);
        if (json_integer_value(json_object_get(entry, "cases")) > 0 ||
            json_integer_value(json_object_get(entry, "later")) > 0 || strcmp(class_name, "InputLayer") == 0)
            continue; /* every case has an InputLayer */
        leati_text_add(out, "%s ", class_name);
        ++count;
    }
    return count;
}
