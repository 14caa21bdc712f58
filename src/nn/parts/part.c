/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and finds custom parts, reads their configurations and writes them.  Room: nn. */
#include "nn/parts/part.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"

enum { MAX_KEYS = 64, MAX_NAMES = 256 };

static const struct {
    const char *noun, *function;
} kinds[] = {
    [LEATI_PART_LOSS] = {"loss", "leat_registry_add_loss"},
    [LEATI_PART_METRIC] = {"metric", "leat_registry_add_metric"},
    [LEATI_PART_ACTIVATION] = {"activation", "leat_registry_add_activation"},
    [LEATI_PART_INITIALIZER] = {"initializer", "leat_registry_add_initializer"},
    [LEATI_PART_REGULARIZER] = {"regularizer", "leat_registry_add_regularizer"},
    [LEATI_PART_CONSTRAINT] = {"constraint", "leat_registry_add_constraint"},
    [LEATI_PART_OPTIMIZER] = {"optimizer", "leat_registry_add_optimizer"},
};

const char *leati_part_noun(leati_part_kind kind) {
    return kinds[kind].noun;
}

/* ---- Making ---- */

static const struct {
    const leati_field_kind *kind;
    size_t bytes; /* size of the member */
} key_kinds[] = {
    [LEAT_KEY_INT] = {LEATI_FIELD_INT, sizeof(int64_t)},
    [LEAT_KEY_FLOAT] = {LEATI_FIELD_FLOAT, sizeof(double)},
    [LEAT_KEY_BOOL] = {LEATI_FIELD_BOOL, sizeof(bool)},
    [LEAT_KEY_CHOICE] = {LEATI_FIELD_CHOICE, sizeof(int32_t)},
    [LEAT_KEY_NUMBERS] = {LEATI_FIELD_NUMBERS, sizeof(leat_layer_numbers)},
};

size_t leati_align_for_any(size_t offset) {
    const size_t step = _Alignof(max_align_t);
    return (offset + step - 1) / step * step;
}

/* Returns the offset of the user's struct in an object. */
static size_t settings_offset(void) {
    return leati_align_for_any(sizeof(leati_part_object));
}

leat_status leati_key_check(const leat_layer_key *keys, int index, size_t bytes, size_t config_bytes,
                            leat_error *err) {
    const leat_layer_key *key = &keys[index];
    if (bytes > 0 && (key->offset > config_bytes || config_bytes - key->offset < bytes))
        return leati_fail(err, LEAT_EINVAL, "key '%s': its member lies outside of config_bytes (%zu)",
                          key->key, config_bytes);
    if (key->kind == LEAT_KEY_CHOICE && !key->choices)
        return leati_fail(err, LEAT_EINVAL, "key '%s': its choices are missing", key->key);
    for (int before = 0; before < index; ++before)
        if (strcmp(keys[before].key, key->key) == 0)
            return leati_fail(err, LEAT_EINVAL, "key '%s' is listed twice", key->key);
    return LEAT_OK;
}

leati_field leati_key_field(const leat_layer_key *key, const leati_field_kind *kind, size_t offset) {
    return (leati_field){.key = key->key,
                         .kind = kind,
                         .offset = offset,
                         .preset = key->preset,
                         .choices = key->choices,
                         .minimum = key->minimum,
                         .limited = key->limited};
}

static leat_status check_key(const leati_part_spec *spec, int index, leat_error *err) {
    const leat_layer_key *key = &spec->keys[index];
    if ((unsigned)key->kind > LEAT_KEY_NUMBERS)
        return leati_fail(err, LEAT_EINVAL,
                          "key '%s': expected the kind INT, FLOAT, BOOL, CHOICE or NUMBERS, received %d",
                          key->key, (int)key->kind);
    return leati_key_check(spec->keys, index, key_kinds[key->kind].bytes, spec->config_bytes, err);
}

static leat_status check_keys(const leati_part_spec *spec, int *count, leat_error *err) {
    for (*count = 0; spec->keys && spec->keys[*count].key; ++*count) {
        if (*count == MAX_KEYS) return leati_fail(err, LEAT_EINVAL, "expected at most %d keys", MAX_KEYS);
        LEATI_TRY(check_key(spec, *count, err));
    }
    return LEAT_OK;
}

static leat_status make_fields(leati_part *part, leat_error *err) {
    const leati_part_spec *spec = &part->spec;
    int count;
    if (spec->config_bytes > PTRDIFF_MAX / 2)
        return leati_fail(err, LEAT_EINVAL, "config_bytes: %zu is out of range", spec->config_bytes);
    LEATI_TRY(check_keys(spec, &count, err));
    part->fields = leati_calloc((size_t)count + 1, sizeof *part->fields);
    if (!part->fields) return leati_fail_memory(err, ((size_t)count + 1) * sizeof *part->fields, "keys");
    for (int i = 0; i < count; ++i) {
        const leat_layer_key *key = &spec->keys[i];
        part->fields[i] = leati_key_field(key, key_kinds[key->kind].kind, settings_offset() + key->offset);
    }
    return LEAT_OK;
}

static leat_status fill(leati_part *part, leat_error *err) {
    part->definition = leati_calloc(1, part->spec.definition_bytes);
    part->type = leati_calloc(1, part->spec.type_bytes ? part->spec.type_bytes : 1);
    if (!part->definition || !part->type)
        return leati_fail_memory(err, part->spec.definition_bytes + part->spec.type_bytes, "a definition");
    memcpy(part->definition, part->spec.definition, part->spec.definition_bytes);
    part->spec.definition = part->definition;
    return make_fields(part, err);
}

leat_status leati_part_create(leati_part **out, const leati_part_spec *spec, leati_library *library,
                              leat_error *err) {
    *out = NULL;
    const size_t length = spec->name ? strlen(spec->name) : 0;
    if (length == 0 || length >= LEAT_NAME_BYTES || !leati_bare_name(spec->name)[0])
        return leati_fail(err, LEAT_EINVAL, "%s: name: expected 1 to %d bytes, and some after a '>'",
                          leati_part_noun(spec->kind), LEAT_NAME_BYTES - 1);
    leati_part *part = leati_calloc(1, sizeof *part);
    if (!part) return leati_fail_memory(err, sizeof *part, leati_part_noun(spec->kind));
    atomic_init(&part->holders, 1);
    part->kind = spec->kind;
    part->spec = *spec;
    part->library = leati_library_hold(library);
    memcpy(part->name, spec->name, length + 1);
    part->spec.name = part->name;
    leat_status status =
        leati_prefix(fill(part, err), err, "%s '%s'", leati_part_noun(part->kind), part->name);
    if (status != LEAT_OK) {
        const leati_part *made = part;
        leati_part_release(&made);
        return status;
    }
    *out = part;
    return LEAT_OK;
}

const leati_part *leati_part_hold(const leati_part *part) {
    if (part) atomic_fetch_add(&((leati_part *)(uintptr_t)part)->holders, 1);
    return part;
}

void leati_part_release(const leati_part **part) {
    leati_part *held = (leati_part *)(uintptr_t)*part;
    *part = NULL;
    while (held && atomic_fetch_sub(&held->holders, 1) == 1) {
        leati_part *next = (leati_part *)(uintptr_t)held->next;
        leati_library_close(&held->library);
        leati_free(held->fields);
        leati_free(held->definition);
        leati_free(held->type);
        leati_free(held);
        held = next;
    }
}

/* ---- Finding ---- */

const char *leati_bare_name(const char *name) {
    const char *mark = strrchr(name, '>');
    return mark ? mark + 1 : name;
}

bool leati_is_class_name(const char *name) {
    return isupper((unsigned char)leati_bare_name(name)[0]);
}

void leati_snake_name(const char *name, char out[LEAT_NAME_BYTES]) {
    const char *bare = leati_bare_name(name);
    size_t used = 0;
    for (const char *c = bare; *c && used + 2 < LEAT_NAME_BYTES; ++c) {
        const bool capital = isupper((unsigned char)*c);
        if (capital && c != bare && !isupper((unsigned char)c[-1]) && c[-1] != '_') out[used++] = '_';
        out[used++] = (char)tolower((unsigned char)*c);
    }
    out[used] = '\0';
}

bool leati_name_matches(const char *a, const char *b, bool bare) {
    const char *bare_a = leati_bare_name(a), *bare_b = leati_bare_name(b);
    if (!bare || strcmp(a, b) == 0) return strcmp(a, b) == 0;
    return (bare_a == a || bare_b == b) && strcmp(bare_a, bare_b) == 0;
}

const leati_part *leati_part_find(const leati_part *parts, leati_part_kind kind, const leati_object *object,
                                  bool is_builtin) {
    const char *full = object->registered_name ? object->registered_name : object->name;
    for (const leati_part *part = parts; part; part = part->next)
        if (part->kind == kind && strcmp(part->name, full) == 0) return part;
    for (const leati_part *part = is_builtin ? NULL : parts; part; part = part->next)
        if (part->kind == kind && leati_name_matches(part->name, full, true)) return part;
    return NULL;
}

leat_status leati_part_unknown(leat_error *err, const leati_part *parts, leati_part_kind kind,
                               const char *name, const char *(*name_at)(int index)) {
    const char *noun = leati_part_noun(kind), *names[MAX_NAMES] = {NULL};
    size_t count = 0;
    for (const leati_part *part = parts; part && count < MAX_NAMES / 2; part = part->next)
        if (part->kind == kind) names[count++] = leati_bare_name(part->name);
    const char *nearest = leati_nearest(leati_bare_name(name), names, count);
    if (nearest)
        return leati_fail(err, LEAT_ENOTFOUND, "unknown %s '%.64s'; did you mean the registered '%s'?", noun,
                          name, nearest);
    count = 0;
    for (const char *known; count < MAX_NAMES && (known = name_at((int)count)) != NULL;)
        names[count++] = known;
    if (leati_nearest(name, names, count)) return leati_unknown_name(err, noun, name, name_at);
    return leati_fail(
        err, LEAT_ENOTFOUND,
        "unknown %s '%.64s': one of your own is written in C and registered under this name (%s "
        "in leat/custom.h; a plugin for the command: --layers)",
        noun, name, kinds[kind].function);
}

/* ---- Objects ---- */

const void *leati_part_settings(const leati_part_object *object) {
    return (const char *)object + settings_offset();
}

static leat_status read_keys(leati_part_object *object, const json_t *config, const char *const *ignored,
                             leat_error *err) {
    const leati_part_spec *spec = &object->part->spec;
    json_t *empty = config ? NULL : json_object();
    if (!config && !empty) return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
    leat_status status =
        leati_fields_read(object->part->fields, ignored, config ? config : empty, object, err);
    json_decref(empty);
    LEATI_TRY(status);
    return spec->check ? spec->check((char *)object + settings_offset(), spec->user, err) : LEAT_OK;
}

leat_status leati_part_object_create(leati_part_object **out, const leati_part *part,
                                     const leati_object *object, const char *const *ignored,
                                     leat_error *err) {
    const size_t bytes = settings_offset() + part->spec.config_bytes;
    const char *full = object->registered_name ? object->registered_name : object->name;
    if (!strchr(full, '>')) full = part->name;
    leati_part_object *made = leati_calloc(1, bytes);
    *out = NULL;
    if (!made) return leati_fail_memory(err, bytes, leati_part_noun(part->kind));
    made->part = leati_part_hold(part);
    made->is_function = object->is_function && !leati_is_class_name(full);
    memcpy(made->registered_name, full, strnlen(full, LEAT_NAME_BYTES - 1));
    leat_status status = read_keys(made, object->config, ignored, err);
    if (status != LEAT_OK) leati_part_object_destroy(&made);
    *out = made;
    return leati_prefix(status, err, "%s '%s'", leati_part_noun(part->kind), part->name);
}

void leati_part_object_destroy(leati_part_object **object) {
    leati_part_object *held = *object;
    *object = NULL;
    if (!held) return;
    leati_fields_fini(held->part->fields, held);
    leati_part_release(&held->part);
    leati_free(held);
}

static leat_status write_config(const leati_part_object *object, const char *const *kept,
                                const json_t *source, json_t *config, leat_error *err) {
    for (int i = 0; kept && kept[i]; ++i) {
        json_t *value = json_object_get(source, kept[i]);
        if (value && json_object_set(config, kept[i], value) != 0) return LEAT_ENOMEM;
    }
    return leati_fields_write(object->part->fields, object, config, err);
}

leat_status leati_part_object_write(const leati_part_object *object, const char *const *kept,
                                    const json_t *source, json_t **out, leat_error *err) {
    const char *name = object->registered_name;
    json_t *config = object->is_function ? NULL : json_object();
    *out = object->is_function ? json_string(name) : NULL;
    if (config && write_config(object, kept, source, config, err) == LEAT_OK)
        *out = json_pack("{s:n, s:s, s:O, s:s}", "module", "class_name", leati_bare_name(name), "config",
                         config, "registered_name", name);
    json_decref(config);
    return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for the configuration of '%s'", name);
}

json_t *leati_part_value_keras3(const leati_part *parts, leati_part_kind kind, const json_t *value) {
    leati_object object;
    if (json_is_object(value) && json_object_get(value, "registered_name")) return json_deep_copy(value);
    if (!json_is_string(value) || leati_object_read(&object, value, "object", NULL) != LEAT_OK) return NULL;
    if (!leati_part_find(parts, kind, &object, false)) return NULL;
    return json_pack("{s:s, s:s, s:O, s:s}", "module", "builtins", "class_name", "function", "config", value,
                     "registered_name", "function");
}

/* ---- Ops ---- */

leat_status leati_part_infer_same(const leati_callee *callee, int input_count, const leati_desc *inputs,
                                  leati_desc *outputs, leat_error *err) {
    (void)callee;
    (void)input_count;
    (void)err;
    outputs[0] = inputs[0];
    return LEAT_OK;
}

leati_value leati_part_lower(const leati_part_object *object, leati_graph *graph, leati_value x) {
    leati_value y = LEATI_INVALID;
    if (x < 0) return LEATI_INVALID;
    leati_graph_call(graph, &object->callee, false, 0, 1, &x, &y);
    return y;
}
