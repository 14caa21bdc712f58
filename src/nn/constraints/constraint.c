/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes and lowers the constraints of weights.  The divisor has Keras's epsilon, so that MaxNorm shrinks
 * every weight a little. */
#include "nn/constraints/constraint.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/graph/build.h"
#include "nn/config/object.h"

/* The keys of a constraint, with the defaults of Keras 2.3.1. */
typedef struct descriptor {
    leati_constraint_kind kind;
    const char *names[4]; /* the first is written to files */
    bool has_min, has_max, has_rate, has_axis;
    double max_value;
} descriptor;

static const descriptor descriptors[] = {
    {LEATI_CONSTRAINT_MAX_NORM, {"MaxNorm", "max_norm", "maxnorm"}, false, true, false, true, 2.0},
    {LEATI_CONSTRAINT_NON_NEG, {"NonNeg", "non_neg", "nonneg"}, false, false, false, false, 0.0},
    {LEATI_CONSTRAINT_UNIT_NORM, {"UnitNorm", "unit_norm", "unitnorm"}, false, false, false, true, 0.0},
    {LEATI_CONSTRAINT_MIN_MAX_NORM, {"MinMaxNorm", "min_max_norm"}, true, true, true, true, 1.0},
};

#define DESCRIPTOR_COUNT     ((int)(sizeof(descriptors) / sizeof(descriptors[0])))
#define NAMES_PER_DESCRIPTOR 3

const char *leati_constraint_name_at(int index) {
    for (int i = 0; i < DESCRIPTOR_COUNT; ++i)
        for (int j = 0; j < NAMES_PER_DESCRIPTOR && descriptors[i].names[j]; ++j)
            if (index-- == 0) return descriptors[i].names[j];
    return NULL;
}

static const descriptor *find(const char *name) {
    for (int i = 0; i < DESCRIPTOR_COUNT; ++i) {
        for (int j = 0; j < NAMES_PER_DESCRIPTOR && descriptors[i].names[j]; ++j) {
            if (strcmp(descriptors[i].names[j], name) == 0) return &descriptors[i];
        }
    }
    return NULL;
}

static leat_status read_number(double *out, bool has, double preset, const json_t *config, const char *key,
                               leat_error *err) {
    const json_t *value = has && config ? json_object_get(config, key) : NULL;
    if (value && !json_is_number(value)) {
        return leati_fail(err, LEAT_EINVAL, "constraint: expected '%s' to be a number", key);
    }
    *out = value ? json_number_value(value) : preset;
    return LEAT_OK;
}

static leat_status read_axis(leati_constraint *out, const json_t *config, leat_error *err) {
    const json_t *axis = config ? json_object_get(config, "axis") : NULL;
    out->axis_count = 1;
    if (!axis) return LEAT_OK;
    if (json_is_integer(axis)) {
        out->axes[0] = (int32_t)json_integer_value(axis);
        return LEAT_OK;
    }
    size_t count = json_array_size(axis);
    if (!json_is_array(axis) || count < 1 || count > LEAT_MAX_RANK) {
        return leati_fail(err, LEAT_EINVAL, "constraint: expected 'axis' to be a number or a list of 1 to %d",
                          LEAT_MAX_RANK);
    }
    out->axis_listed = true;
    out->axis_count = (int32_t)count;
    for (size_t i = 0; i < count; ++i) {
        const json_t *item = json_array_get(axis, i);
        if (!json_is_integer(item)) {
            return leati_fail(err, LEAT_EINVAL, "constraint: expected integers in 'axis'");
        }
        out->axes[i] = (int32_t)json_integer_value(item);
    }
    return LEAT_OK;
}

static leat_status read_custom(leati_constraint *out, const leati_part *part, const leati_object *object,
                               leat_error *err) {
    LEATI_TRY(leati_part_object_create(&out->object, part, object, NULL, err));
    leati_custom_constraint_prepare(out->object);
    out->kind = LEATI_CONSTRAINT_CUSTOM;
    return LEAT_OK;
}

void leati_constraint_fini(leati_constraint *constraint) {
    leati_part_object_destroy(&constraint->object);
    *constraint = (leati_constraint){0};
}

leat_status leati_constraint_read_with(leati_constraint *out, const json_t *value, const leati_part *parts,
                                       leat_error *err) {
    *out = (leati_constraint){0};
    if (!value || json_is_null(value)) return LEAT_OK;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "constraint", err));
    const descriptor *found = find(object.name);
    const leati_part *part = leati_part_find(parts, LEATI_PART_CONSTRAINT, &object, found != NULL);
    if (part) return read_custom(out, part, &object, err);
    if (!found)
        return leati_part_unknown(err, parts, LEATI_PART_CONSTRAINT, object.name, leati_constraint_name_at);
    LEATI_TRY(read_number(&out->min_value, found->has_min, 0.0, object.config, "min_value", err));
    LEATI_TRY(
        read_number(&out->max_value, found->has_max, found->max_value, object.config, "max_value", err));
    if (found->kind == LEATI_CONSTRAINT_MAX_NORM && object.config && json_object_get(object.config, "m")) {
        LEATI_TRY(read_number(&out->max_value, true, 2.0, object.config, "m", err)); /* before Keras 2 */
    }
    LEATI_TRY(read_number(&out->rate, found->has_rate, 1.0, object.config, "rate", err));
    if (found->has_axis) LEATI_TRY(read_axis(out, object.config, err));
    out->kind = found->kind;
    return LEAT_OK;
}

static json_t *axis_json(const leati_constraint *constraint) {
    if (!constraint->axis_listed) return json_integer(constraint->axes[0]);
    json_t *list = json_array();
    for (int32_t i = 0; list && i < constraint->axis_count; ++i) {
        if (json_array_append_new(list, json_integer(constraint->axes[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Sets a key if the constraint has it; returns 0 on success, like jansson. */
static int put(json_t *config, bool has, const char *key, double value) {
    return has ? json_object_set_new(config, key, json_real(value)) : 0;
}

leat_status leati_constraint_write(const leati_constraint *constraint, json_t **out, leat_error *err) {
    const descriptor *found = NULL;
    if (constraint->object) return leati_part_object_write(constraint->object, NULL, NULL, out, err);
    for (int i = 0; i < DESCRIPTOR_COUNT; ++i) {
        if (descriptors[i].kind == constraint->kind) found = &descriptors[i];
    }
    if (!found) {
        *out = json_null();
        return LEAT_OK;
    }
    json_t *config = json_object();
    if (config && (put(config, found->has_min, "min_value", constraint->min_value) != 0 ||
                   put(config, found->has_max, "max_value", constraint->max_value) != 0 ||
                   put(config, found->has_rate, "rate", constraint->rate) != 0 ||
                   (found->has_axis && json_object_set_new(config, "axis", axis_json(constraint)) != 0))) {
        json_decref(config);
        config = NULL;
    }
    return leati_object_write(found->names[0], config, out, err);
}

/* Returns sqrt(sum w^2) over the constraint's axes, which become axes of length 1. */
static leati_value norms_of(const leati_constraint *constraint, leati_graph *graph, leati_value w) {
    int rank = leati_graph_desc(graph, w)->rank;
    uint32_t axes = 0;
    for (int32_t i = 0; i < constraint->axis_count; ++i) {
        int axis = constraint->axes[i] < 0 ? constraint->axes[i] + rank : constraint->axes[i];
        if (axis < 0 || axis >= rank) {
            return leati_graph_fail(graph, LEAT_ESHAPE,
                                    "constraint: axis %d is out of range for a weight of rank %d",
                                    (int)constraint->axes[i], rank);
        }
        axes |= 1u << axis;
    }
    leati_value square = leati_function_of(graph, w, LEATI_FN_SQUARE);
    return leati_function_of(graph, leati_reduce_of(graph, LEATI_REDUCE_SUM, square, axes, true),
                             LEATI_FN_SQRT);
}

/* w * desired / (epsilon + norms) */
static leati_value rescale(leati_graph *graph, leati_value w, leati_value desired, leati_value norms) {
    leati_value divisor = leati_linear(graph, norms, 1.0f, LEATI_EPSILON);
    return leati_mul(graph, w, leati_div(graph, desired, divisor));
}

leati_value leati_constraint_lower(const leati_constraint *constraint, leati_graph *graph, leati_value w) {
    if (constraint->kind == LEATI_CONSTRAINT_NONE) return w;
    if (constraint->object) return leati_part_lower(constraint->object, graph, w);
    if (constraint->kind == LEATI_CONSTRAINT_NON_NEG) {
        leati_value positive = leati_binary_of(graph, LEATI_GREATER_EQUAL, w, leati_scalar(graph, 0.0f));
        return leati_mul(graph, w, positive);
    }
    leati_value norms = norms_of(constraint, graph, w);
    if (constraint->kind == LEATI_CONSTRAINT_UNIT_NORM) {
        return leati_div(graph, w, leati_linear(graph, norms, 1.0f, LEATI_EPSILON));
    }
    float low = (float)constraint->min_value, high = (float)constraint->max_value;
    if (high < low) high = low; /* like Keras's clip */
    leati_value desired = leati_clip(graph, norms, low, high);
    if (constraint->kind == LEATI_CONSTRAINT_MIN_MAX_NORM) {
        leati_value strict = leati_linear(graph, desired, (float)constraint->rate, 0.0f);
        leati_value loose = leati_linear(graph, norms, (float)(1.0 - constraint->rate), 0.0f);
        desired = leati_add(graph, strict, loose);
    }
    return rescale(graph, w, desired, norms);
}

/* ---- A field of a configuration ---- */

static leat_status read_field(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    leat_status status = leati_constraint_read_with(member, value, leati_parts_of(context), err);
    return leati_prefix(status, err, "%s", field->key);
}

static leat_status write_field(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field;
    return leati_constraint_write(member, out, err);
}

static void fini_field(void *member) {
    leati_constraint_fini(member);
}

const leati_field_kind leati_field_constraint = {.read = read_field,
                                                 .write = write_field,
                                                 .fini = fini_field};
