/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and lowers penalties of weights and of outputs. */
#include "nn/regularizers/regularizer.h"

#include <string.h>

#include "base/error.h"
#include "engine/graph/build.h"
#include "nn/config/object.h"

/* A name, and its default factors. */
typedef struct descriptor {
    const char *name;
    double l1, l2;
    const char *keys[2]; /* the keys of l1 and l2 in the configuration; NULL: there is no such key */
} descriptor;

#define ORTHOGONAL "OrthogonalRegularizer"

static const descriptor descriptors[] = {
    {"L1L2", 0.0, 0.0, {"l1", "l2"}},
    {"l1_l2", 0.01, 0.01, {"l1", "l2"}},
    {"l1", 0.01, 0.0, {"l", NULL}},
    {"l2", 0.0, 0.01, {NULL, "l"}},
    {"L1", 0.01, 0.0, {"l1", NULL}},
    {"L2", 0.0, 0.01, {NULL, "l2"}}, /* Keras 3 */
    {ORTHOGONAL, 0.01, 0.0, {"factor", NULL}},
};

#define DESCRIPTOR_COUNT ((int)(sizeof(descriptors) / sizeof(descriptors[0])))

const char *leati_regularizer_name_at(int index) {
    return index < DESCRIPTOR_COUNT ? descriptors[index].name : NULL;
}

static const descriptor *find(const char *name) {
    for (int i = 0; i < DESCRIPTOR_COUNT; ++i) {
        if (strcmp(descriptors[i].name, name) == 0) return &descriptors[i];
    }
    return NULL;
}

static leat_status read_factor(float *out, double preset, const json_t *config, const char *key,
                               const char *name, leat_error *err) {
    const json_t *value = key && config ? json_object_get(config, key) : NULL;
    if (value && !json_is_number(value)) {
        return leati_fail(err, LEAT_EINVAL, "regularizer '%s': expected '%s' to be a number", name, key);
    }
    *out = (float)(value ? json_number_value(value) : preset);
    return LEAT_OK;
}

static leat_status read_custom(leati_regularizer *out, const leati_part *part, const leati_object *object,
                               leat_error *err) {
    static const char *const ignored[] = {"per_sample", NULL};
    LEATI_TRY(leati_part_object_create(&out->object, part, object, ignored, err));
    leati_custom_regularizer_prepare(out->object);
    out->per_sample = json_is_true(json_object_get(object->config, "per_sample"));
    out->kind = LEATI_REGULARIZER_CUSTOM;
    return LEAT_OK;
}

static leat_status read_orthogonal(leati_regularizer *out, const json_t *config, leat_error *err) {
    const json_t *value = json_object_get(config, "mode");
    const char *mode = value ? json_string_value(value) : "rows";
    out->kind = LEATI_REGULARIZER_ORTHOGONAL;
    out->columns = mode && strcmp(mode, "columns") == 0;
    if (mode && (out->columns || strcmp(mode, "rows") == 0)) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL,
                      "regularizer '" ORTHOGONAL "': mode: expected \"rows\" or \"columns\"");
}

void leati_regularizer_fini(leati_regularizer *regularizer) {
    leati_part_object_destroy(&regularizer->object);
    *regularizer = (leati_regularizer){0};
}

leat_status leati_regularizer_read_with(leati_regularizer *out, const json_t *value, const leati_part *parts,
                                        leat_error *err) {
    *out = (leati_regularizer){0};
    if (!value || json_is_null(value)) return LEAT_OK;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "regularizer", err));
    const descriptor *found = find(object.name);
    const leati_part *part = leati_part_find(parts, LEATI_PART_REGULARIZER, &object, found != NULL);
    if (part) return read_custom(out, part, &object, err);
    if (!found)
        return leati_part_unknown(err, parts, LEATI_PART_REGULARIZER, object.name, leati_regularizer_name_at);
    LEATI_TRY(read_factor(&out->l1, found->l1, object.config, found->keys[0], found->name, err));
    LEATI_TRY(read_factor(&out->l2, found->l2, object.config, found->keys[1], found->name, err));
    out->per_sample = json_is_true(json_object_get(object.config, "per_sample"));
    out->kind = LEATI_REGULARIZER_L1L2;
    return strcmp(found->name, ORTHOGONAL) == 0 ? read_orthogonal(out, object.config, err) : LEAT_OK;
}

static leat_status write_custom(const leati_regularizer *regularizer, json_t **out, leat_error *err) {
    LEATI_TRY(leati_part_object_write(regularizer->object, NULL, NULL, out, err));
    json_t *config = json_object_get(*out, "config");
    if (config && regularizer->per_sample && json_object_set_new(config, "per_sample", json_true()) != 0) {
        json_decref(*out);
        *out = NULL;
        return leati_fail(err, LEAT_ENOMEM, "no memory for a regularizer");
    }
    return LEAT_OK;
}

leat_status leati_regularizer_write(const leati_regularizer *regularizer, json_t **out, leat_error *err) {
    if (regularizer->kind == LEATI_REGULARIZER_NONE) {
        *out = json_null();
        return LEAT_OK;
    }
    if (regularizer->object) return write_custom(regularizer, out, err);
    if (regularizer->kind == LEATI_REGULARIZER_ORTHOGONAL)
        return leati_object_write(ORTHOGONAL,
                                  json_pack("{s:f, s:s}", "factor", (double)regularizer->l1, "mode",
                                            regularizer->columns ? "columns" : "rows"),
                                  out, err);
    json_t *config = json_pack("{s:f, s:f}", "l1", (double)regularizer->l1, "l2", (double)regularizer->l2);
    if (regularizer->per_sample && json_object_set_new(config, "per_sample", json_true()) != 0) {
        json_decref(config);
        config = NULL;
    }
    return leati_object_write("L1L2", config, out, err);
}

static leati_value penalty(leati_graph *graph, leati_value x, leati_function function, float factor) {
    leati_value sum = leati_reduce_all(graph, LEATI_REDUCE_SUM, leati_function_of(graph, x, function));
    return leati_linear(graph, sum, factor, 0.0f);
}

/* Computes the mean of the sizes of the products of two different vectors of length 1, times the factor. */
static leati_value orthogonal(const leati_regularizer *regularizer, leati_graph *g, leati_value x) {
    const leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank != 2)
        return leati_graph_fail(g, LEAT_ESHAPE,
                                "regularizer '" ORTHOGONAL "': expected a matrix, received rank %d",
                                (int)desc.rank);
    if (regularizer->columns) x = leati_transpose(g, x, (int32_t[]){1, 0});
    const double count = (double)desc.shape[regularizer->columns ? 1 : 0], pairs = count * (count - 1) / 2;
    leati_value squares = leati_function_of(g, x, LEATI_FN_SQUARE);
    leati_value sum = leati_reduce_of(g, LEATI_REDUCE_SUM, squares, 2u, true);
    leati_value length =
        leati_function_of(g, leati_binary_of(g, LEATI_MAX, sum, leati_scalar(g, 1e-14f)), LEATI_FN_SQRT);
    leati_value unit = leati_div(g, x, length);
    leati_value products = leati_matmul(g, unit, false, unit, true, LEATI_NONE);
    leati_value all = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_function_of(g, products, LEATI_FN_ABS));
    leati_value own = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_mul(g, unit, unit));
    const float factor = (float)((double)regularizer->l1 * 0.5 / pairs);
    return leati_linear(g, leati_sub(g, all, own), factor, 0.0f);
}

leati_value leati_regularizer_lower(const leati_regularizer *regularizer, leati_graph *graph, leati_value x) {
    leati_value total = LEATI_NONE;
    if (regularizer->kind == LEATI_REGULARIZER_NONE) return total;
    if (regularizer->object) return leati_part_lower(regularizer->object, graph, x);
    if (regularizer->kind == LEATI_REGULARIZER_ORTHOGONAL) return orthogonal(regularizer, graph, x);
    if (regularizer->l1 != 0.0f) total = penalty(graph, x, LEATI_FN_ABS, regularizer->l1);
    if (regularizer->l2 != 0.0f) {
        leati_value square = penalty(graph, x, LEATI_FN_SQUARE, regularizer->l2);
        total = total == LEATI_NONE ? square : leati_add(graph, total, square);
    }
    return total;
}

/* ---- A field of a configuration ---- */

static leat_status read_field(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    leat_status status = leati_regularizer_read_with(member, value, leati_parts_of(context), err);
    return leati_prefix(status, err, "%s", field->key);
}

static leat_status write_field(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field;
    return leati_regularizer_write(member, out, err);
}

static void fini_field(void *member) {
    leati_regularizer_fini(member);
}

const leati_field_kind leati_field_regularizer = {.read = read_field,
                                                  .write = write_field,
                                                  .fini = fini_field};
