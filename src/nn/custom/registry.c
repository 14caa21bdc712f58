/* SPDX-License-Identifier: Apache-2.0 */
/* Registers custom layers, and finds layer types by their names.  Room: nn. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/custom/custom.h"
#include "nn/custom/registry.h"
#include "nn/layers/types.h"

struct leat_registry {
    leati_custom *layers;
    leati_library *opening;  /* the library whose function is registering layers now; NULL: none */
    const leati_part *parts; /* held: the part that was registered last; NULL: none */
    leati_custom **lent;     /* layers that the registry does not hold: leati_registry_lend */
    int lent_count;
};

static const leat_layer_definition defaults = {.min_inputs = 1, .max_inputs = 1, .outputs = 1};
static const leati_growing definition_type = LEATI_GROWING(leat_layer_definition, forward, &defaults);

void leat_layer_definition_init(leat_layer_definition *definition, size_t size) {
    leati_growing_init(&definition_type, definition, size);
}

/* ---- One layer ---- */

static const struct {
    const leati_field_kind *kind;
    size_t bytes; /* of the member; 0: the key has no member */
} key_kinds[] = {
    [LEAT_KEY_INT] = {LEATI_FIELD_INT, sizeof(int64_t)},
    [LEAT_KEY_FLOAT] = {LEATI_FIELD_FLOAT, sizeof(double)},
    [LEAT_KEY_BOOL] = {LEATI_FIELD_BOOL, sizeof(bool)},
    [LEAT_KEY_CHOICE] = {LEATI_FIELD_CHOICE, sizeof(int32_t)},
    [LEAT_KEY_NUMBERS] = {LEATI_FIELD_NUMBERS, sizeof(leat_layer_numbers)},
    [LEAT_KEY_INITIALIZER] = {LEATI_FIELD_INITIALIZER, 0},
    [LEAT_KEY_REGULARIZER] = {LEATI_FIELD_REGULARIZER, 0},
    [LEAT_KEY_CONSTRAINT] = {LEATI_FIELD_CONSTRAINT, 0},
};

_Static_assert(sizeof(leat_layer_numbers) == sizeof(leati_ints) &&
                   offsetof(leat_layer_numbers, values) == offsetof(leati_ints, values),
               "fields of kind NUMBERS are read into the user's struct");

static leat_status check_key(const leat_layer_definition *d, int index, leat_error *err) {
    const leat_layer_key *key = &d->keys[index];
    if ((unsigned)key->kind > LEAT_KEY_CONSTRAINT)
        return leati_fail(err, LEAT_EINVAL, "key '%s': unknown kind %d", key->key, (int)key->kind);
    return leati_key_check(d->keys, index, key_kinds[key->kind].bytes, d->config_bytes, err);
}

static leat_status check_keys(const leat_layer_definition *d, int *count, leat_error *err) {
    for (*count = 0; d->keys && d->keys[*count].key; ++*count) {
        if (*count == LEATI_CUSTOM_MAX_KEYS)
            return leati_fail(err, LEAT_EINVAL, "expected at most %d keys", LEATI_CUSTOM_MAX_KEYS);
        LEATI_TRY(check_key(d, *count, err));
    }
    return LEAT_OK;
}

static leat_status check_definition(const leat_layer_definition *d, leat_error *err) {
    if (!d->forward) return leati_fail(err, LEAT_EINVAL, "forward is missing");
    if (d->config_bytes > PTRDIFF_MAX / 2)
        return leati_fail(err, LEAT_EINVAL, "config_bytes: %zu is out of range", d->config_bytes);
    if (d->min_inputs < 1 || d->max_inputs < d->min_inputs || d->max_inputs > LEATI_CUSTOM_MAX_INPUTS)
        return leati_fail(err, LEAT_EINVAL,
                          "expected 1 <= min_inputs <= max_inputs <= %d, received %d and %d",
                          LEATI_CUSTOM_MAX_INPUTS, (int)d->min_inputs, (int)d->max_inputs);
    if (d->outputs < 1 || d->outputs > LEATI_CALLEE_MAX_OUTPUTS)
        return leati_fail(err, LEAT_EINVAL, "expected 1 to %d outputs, received %d", LEATI_CALLEE_MAX_OUTPUTS,
                          (int)d->outputs);
    return LEAT_OK;
}

static leat_status make_fields(leati_custom *custom, leat_error *err) {
    const leat_layer_definition *d = &custom->definition;
    int count;
    LEATI_TRY(check_keys(d, &count, err));
    custom->parts = leati_align_for_any(sizeof(leati_custom_config));
    custom->settings = leati_align_for_any(custom->parts + (size_t)count * sizeof(leati_custom_part));
    custom->fields = leati_calloc((size_t)count + 1, sizeof *custom->fields);
    if (!custom->fields)
        return leati_fail_memory(err, ((size_t)count + 1) * sizeof *custom->fields, "a layer's keys");
    for (int i = 0; i < count; ++i) {
        const leat_layer_key *key = &d->keys[i];
        bool member = key_kinds[key->kind].bytes > 0;
        size_t offset =
            member ? custom->settings + key->offset : custom->parts + (size_t)i * sizeof(leati_custom_part);
        custom->fields[i] = leati_key_field(key, key_kinds[key->kind].kind, offset);
    }
    return LEAT_OK;
}

/* Makes "my_scale" of "MyScale", like Keras. */
static void make_prefix(leati_custom *custom) {
    size_t used = 0;
    for (const char *c = custom->class_name; *c && used + 2 < sizeof custom->name_prefix; ++c) {
        bool capital = isupper((unsigned char)*c);
        if (capital && c != custom->class_name && !isupper((unsigned char)c[-1]))
            custom->name_prefix[used++] = '_';
        custom->name_prefix[used++] = (char)tolower((unsigned char)*c);
    }
}

static leat_status fill(leati_custom *custom, leat_error *err) {
    LEATI_TRY(check_definition(&custom->definition, err));
    LEATI_TRY(make_fields(custom, err));
    make_prefix(custom);
    leati_custom_fill(custom);
    return LEAT_OK;
}

leat_status leati_custom_create(leati_custom **out, const leat_layer_definition *definition,
                                leati_library *library, leat_error *err) {
    leat_layer_definition read;
    *out = NULL;
    LEATI_TRY(leati_growing_read(&definition_type, definition, &read, err));
    const char *name = read.class_name;
    if (!name || !name[0] || strlen(name) >= LEAT_NAME_BYTES)
        return leati_fail(err, LEAT_EINVAL, "class_name: expected 1 to %d bytes", LEAT_NAME_BYTES - 1);
    leati_custom *custom = leati_calloc(1, sizeof *custom);
    if (!custom) return leati_fail_memory(err, sizeof *custom, "a layer");
    atomic_init(&custom->holders, 1);
    custom->definition = read;
    custom->library = leati_library_hold(library);
    memcpy(custom->class_name, name, strlen(name) + 1);
    leat_status status = leati_prefix(fill(custom, err), err, "%s", name);
    if (status != LEAT_OK) leati_custom_release(&custom);
    *out = custom;
    return status;
}

void leati_custom_release(leati_custom **custom) {
    leati_custom *held = *custom;
    *custom = NULL;
    if (!held || atomic_fetch_sub(&held->holders, 1) > 1) return;
    leati_library_close(&held->library);
    leati_free(held->fields);
    leati_free(held);
}

/* ---- The registry ---- */

leat_status leat_registry_create(leat_registry **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = leati_calloc(1, sizeof **out);
    return *out ? LEAT_OK : leati_fail_memory(err, sizeof **out, "a registry");
}

void leat_registry_destroy(leat_registry **registry) {
    if (!registry || !*registry) return;
    leat_registry *r = *registry;
    *registry = NULL;
    while (r->layers) {
        leati_custom *custom = r->layers;
        r->layers = custom->next;
        leati_custom_release(&custom);
    }
    leati_part_release(&r->parts);
    leati_free(r->lent);
    leati_free(r);
}

/* Returns the layer of this name, with its package unless `bare`. */
static leati_custom *find_named(const leat_registry *registry, const char *class_name, bool bare) {
    leati_custom *custom = registry->layers;
    while (custom && !leati_name_matches(custom->class_name, class_name, bare)) custom = custom->next;
    for (int i = 0; !custom && i < registry->lent_count; ++i)
        if (leati_name_matches(registry->lent[i]->class_name, class_name, bare)) custom = registry->lent[i];
    return custom;
}

static leati_custom *find(const leat_registry *registry, const char *class_name) {
    if (!registry || !class_name) return NULL;
    leati_custom *custom = find_named(registry, class_name, false);
    return custom ? custom : find_named(registry, class_name, true);
}

static leat_status add(leat_registry *registry, const leat_layer_definition *definition, bool cell,
                       leat_error *err) {
    static const char *const taken[] = {"Lambda", "Sequential", "Model", "Functional"};
    leati_custom *custom = NULL;
    LEATI_TRY(leati_custom_create(&custom, definition, registry->opening, err));
    bool known = leati_layer_find(custom->class_name) != NULL;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; ++i)
        known |= strcmp(custom->class_name, taken[i]) == 0;
    leat_status status = cell ? leati_custom_make_cell(custom, err) : LEAT_OK;
    if (status == LEAT_OK && known)
        status = leati_fail(err, LEAT_EINVAL, "%s: Keras has a layer of this name", custom->class_name);
    else if (status == LEAT_OK && find(registry, custom->class_name))
        status = leati_fail(err, LEAT_EINVAL, "%s: a layer of this name is registered already",
                            custom->class_name);
    if (status != LEAT_OK) {
        leati_custom_release(&custom);
        return status;
    }
    custom->next = registry->layers;
    registry->layers = custom;
    return LEAT_OK;
}

leat_status leat_registry_add(leat_registry *registry, const leat_layer_definition *definition,
                              leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    return add(registry, definition, false, err);
}

leat_status leati_custom_make_cell(leati_custom *custom, leat_error *err) {
    const leat_layer_definition *d = &custom->definition;
    if (d->outputs < 2 || d->min_inputs != d->outputs || d->max_inputs != d->outputs)
        return leati_fail(err, LEAT_EINVAL,
                          "%s: expected one input and one output more than the cell has states (min_inputs = "
                          "max_inputs = outputs, at least 2), received %d, %d and %d",
                          custom->class_name, (int)d->min_inputs, (int)d->max_inputs, (int)d->outputs);
    if (!d->infer) return leati_fail(err, LEAT_EINVAL, "%s: infer is missing", custom->class_name);
    custom->type.cell_states = d->outputs - 1;
    return LEAT_OK;
}

leat_status leat_registry_add_cell(leat_registry *registry, const leat_layer_definition *definition,
                                   leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(definition, err);
    return add(registry, definition, true, err);
}

leat_status leat_registry_load(leat_registry *registry, const char *path, leat_error *err) {
    LEATI_GIVEN(registry, err);
    LEATI_GIVEN(path, err);
    leat_status (*entry)(leat_registry * registry, leat_error * err) = NULL;
    leati_library *library = NULL;
    LEATI_TRY(leati_library_open(&library, path, err));
    leat_status status = leati_library_function(library, "leat_plugin_register", &entry, sizeof entry, err);
    if (status == LEAT_OK) {
        leati_library *outer = registry->opening;
        registry->opening = library;
        status = leati_prefix(entry(registry, err), err, "plugin '%s'", path);
        registry->opening = outer;
    }
    leati_library_close(&library);
    return status;
}

leat_status leati_registry_lend(leat_registry *registry, const leati_layer_type *type, leat_error *err) {
    leati_custom *custom = leati_custom_of(type);
    const leati_custom *known = custom ? find(registry, custom->class_name) : NULL;
    if (known && known != custom)
        return leati_fail(err, LEAT_EINVAL,
                          "%s: the model has two custom layers of this class name, from two registries",
                          custom->class_name);
    if (!custom || known) return LEAT_OK;
    size_t count = (size_t)registry->lent_count + 1;
    leati_custom **lent = leati_realloc(registry->lent, count, sizeof(leati_custom *));
    if (!lent) return leati_fail_memory(err, count * sizeof(leati_custom *), "a registry");
    lent[registry->lent_count++] = custom;
    registry->lent = lent;
    return LEAT_OK;
}

/* ---- Custom parts ---- */

const leati_part *leati_registry_parts(const leat_registry *registry) {
    return registry ? registry->parts : NULL;
}

void leati_registry_share(leat_registry *registry, const leati_part *parts) {
    leati_part_release(&registry->parts);
    registry->parts = leati_part_hold(parts);
}

leati_library *leati_registry_opening(const leat_registry *registry) {
    return registry->opening;
}

leat_status leati_registry_add_part(leat_registry *registry, leati_part *part, leat_error *err) {
    const leati_part *added = part;
    for (const leati_part *known = registry->parts; known; known = known->next) {
        if (known->kind != part->kind || strcmp(known->name, part->name) != 0) continue;
        leat_status status = leati_fail(err, LEAT_EINVAL, "%s '%s' is already registered",
                                        leati_part_noun(part->kind), part->name);
        leati_part_release(&added);
        return status;
    }
    part->next = registry->parts;
    registry->parts = added;
    return LEAT_OK;
}

/* ---- What a file names ---- */

/* Finds the layer of a Lambda by the name of its function, or else by the name of the Lambda. */
static const leati_custom *find_lambda(const leat_registry *registry, const json_t *config) {
    const leati_custom *custom = find(registry, json_string_value(json_object_get(config, "function")));
    return custom ? custom : find(registry, json_string_value(json_object_get(config, "name")));
}

static const leati_layer_type *find_custom(const leat_registry *registry, const char *class_name,
                                           const json_t *config) {
    bool lambda = strcmp(class_name, "Lambda") == 0;
    const leati_custom *custom = lambda ? find_lambda(registry, config) : find(registry, class_name);
    const char *package_end = lambda ? NULL : strrchr(class_name, '>'); /* "Custom>MyLayer" of tf.keras */
    if (!custom && package_end) custom = find(registry, package_end + 1);
    return !custom ? NULL : lambda ? &custom->lambda : &custom->type;
}

/* Returns a registered name that is similar to class_name; NULL if there is none. */
static const char *nearest_custom(const leat_registry *registry, const char *class_name) {
    const char *near = NULL;
    for (const leati_custom *custom = registry ? registry->layers : NULL; custom && !near;
         custom = custom->next) {
        const char *name = custom->class_name;
        near = leati_nearest(class_name, &name, 1);
    }
    return near;
}

const leati_layer_type *leati_registry_find(const leat_registry *registry, const char *class_name,
                                            const json_t *config, leat_error *err) {
    const leati_layer_type *type = find_custom(registry, class_name, config);
    const char *name = json_string_value(json_object_get(config, "name"));
    if (!type && strcmp(class_name, "Lambda") == 0) type = leati_layer_find_lambda(config);
    if (type) return type;
    if (strcmp(class_name, "Lambda") != 0) {
        const char *custom = nearest_custom(registry, class_name);
        type = leati_layer_find(class_name);
        if (!type) leati_layer_unknown(class_name, err);
        if (!type && custom)
            leati_fail(err, LEAT_ENOTSUP,
                       "no layer '%s' in leat or among the custom layers; did you mean '%s'?", class_name,
                       custom);
        return type;
    }
    leati_fail(
        err, LEAT_ENOTSUP,
        "a file has the Python code of a Lambda, which leat cannot run: write the layer in C and register it "
        "under the name '%.64s' (leat/layer.h; a plugin for the command: --layers)",
        name ? name : "of the layer");
    return NULL;
}
