/* SPDX-License-Identifier: Apache-2.0 */
/* The code that all layers share: reads and writes configurations, infers shapes, declares weights and states.
 * Room: nn. */
#include "nn/layers/layer.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/config/name.h"
#include "nn/layers/types.h"
#include "tensor/number.h"

/* The keys that every layer has, which are not in the types' tables of fields. */
static const char *const common_keys[] = {
    "name", "trainable", "dtype", "batch_input_shape", "input_shape", "batch_size", "activity_regularizer",
    NULL};

const char *leati_shape_show(char out[LEATI_SHAPE_TEXT_BYTES], const leati_shape *shape) {
    return leati_shape_text(out, LEATI_SHAPE_TEXT_BYTES, shape->rank, shape->dims);
}

leat_status leati_shape_unexpected(const leati_shape *shape, const char *expected, leat_error *err) {
    char text[LEATI_SHAPE_TEXT_BYTES];
    return leati_fail(err, LEAT_ESHAPE, "expected %s, received %s", expected, leati_shape_show(text, shape));
}

struct leat_model *leati_layer_model(const leati_layer *layer) {
    return layer->type->model ? layer->type->model(layer) : NULL;
}

bool leati_layer_is_input(const leati_layer *layer) {
    return layer->type == &leati_layer_input;
}

bool leati_layer_has_key(const leati_layer_type *type, const char *key) {
    for (const leati_field *field = type->fields; field->key; ++field)
        if (strcmp(field->key, key) == 0) return true;
    return false;
}

/* ---- From a configuration ---- */

static leat_status read_name(leati_layer *layer, const json_t *config, leat_error *err) {
    const json_t *value = json_object_get(config, "name");
    const char *name = json_string_value(value);
    if (!value || json_is_null(value)) return LEAT_OK; /* the model chooses a name */
    LEATI_TRY(leati_name_check(name, err));
    memcpy(layer->name, name, strlen(name) + 1);
    return LEAT_OK;
}

static leat_status read_trainable(leati_layer *layer, const json_t *config, leat_error *err) {
    const json_t *value = json_object_get(config, "trainable");
    layer->trainable = !value || json_is_true(value);
    if (value && !json_is_boolean(value))
        return leati_fail(err, LEAT_EINVAL, "trainable: expected true or false");
    return LEAT_OK;
}

/* Says what cannot be read of a type that leat does not compute in, and what to do instead. */
static leat_status fail_dtype(const leati_layer *layer, const json_t *value, const char *name,
                              leat_error *err) {
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    if (class_name && !name)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "dtype: the layer is quantized (%s), which leat cannot read: save the model in Keras "
            "without quantize(); leat makes smaller weights of it for predictions "
            "(leat_predictor_options.weights_format, leat predict --weights-format int8)",
            class_name);
    if (name && strcmp(name, "string") == 0)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "dtype: the input has strings, which leat's tensors cannot have: save the model in Keras "
            "that begins behind the StringLookup or TextVectorization "
            "(keras.Model(layer.output, model.outputs)), and feed it the indices that the layer "
            "gives");
    if (!name || leati_layer_is_input(layer))
        return leati_fail(err, LEAT_ENOTSUP, "dtype: expected the name of a type, like \"float32\"");
    return leati_fail(
        err, LEAT_ENOTSUP,
        "dtype: expected \"float32\", \"" LEATI_MIXED_BFLOAT16 "\" or \"" LEATI_MIXED_FLOAT16
        "\", received \"%.32s\": build the model in Keras with one of these and load the weights "
        "into it",
        name);
}

static leat_status read_dtype(leati_layer *layer, const json_t *config, leat_error *err) {
    const json_t *value = json_object_get(config, "dtype");
    const json_t *policy =
        json_object_get(json_object_get(value, "config"), "name"); /* tf.keras's "Policy" */
    const char *name = json_string_value(policy ? policy : value);
    layer->dtype = LEAT_F32;
    if (!value || json_is_null(value)) return LEAT_OK;
    layer->mixed = name && strcmp(name, LEATI_MIXED_BFLOAT16) == 0 && !leati_layer_is_input(layer);
    layer->float16 = name && strcmp(name, LEATI_MIXED_FLOAT16) == 0 && !leati_layer_is_input(layer);
    if (layer->mixed || layer->float16) return LEAT_OK;
    if (!name || strcmp(name, "string") == 0 ||
        (strcmp(name, "bfloat16") == 0 && !leati_layer_is_input(layer)))
        return fail_dtype(layer, value, name, err);
    LEATI_TRY(leati_prefix(leat_dtype_parse(&layer->dtype, name, err), err, "dtype"));
    if (layer->dtype != LEAT_F32 && !leati_layer_is_input(layer) &&
        !(layer->type->integers && leati_dtype_is_integer(layer->dtype)))
        return fail_dtype(layer, value, name, err);
    return LEAT_OK;
}

static leat_status read_dimension(const json_t *value, const char *key, int64_t *out, leat_error *err) {
    *out = -1;
    if (!value || json_is_null(value)) return LEAT_OK;
    *out = json_is_integer(value) ? (int64_t)json_integer_value(value) : 0;
    if (*out > 0 && *out <= INT32_MAX) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "%s: expected numbers from 1 to 2147483647, or null", key);
}

/* Reads batch_input_shape, or the constructors' input_shape, which lacks the batch, and batch_size. */
static leat_status read_input_shape(leati_layer *layer, const json_t *config, leat_error *err) {
    const char *key = "batch_input_shape";
    const json_t *list = json_object_get(config, key);
    leati_shape *shape = &layer->batch_input_shape;
    if (!list || json_is_null(list)) {
        key = "input_shape";
        list = json_object_get(config, key);
        if (!list || json_is_null(list)) return LEAT_OK;
        LEATI_TRY(read_dimension(json_object_get(config, "batch_size"), "batch_size", &shape->dims[0], err));
        shape->rank = 1;
    }
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count + (size_t)shape->rank > LEAT_MAX_RANK)
        return leati_fail(err, LEAT_EINVAL, "%s: expected a list of at most %d dimensions", key,
                          LEAT_MAX_RANK);
    for (size_t i = 0; i < count; ++i)
        LEATI_TRY(read_dimension(json_array_get(list, i), key, &shape->dims[shape->rank++], err));
    if (shape->rank == 0)
        return leati_fail(err, LEAT_EINVAL, "%s: expected at least the batch dimension", key);
    layer->has_batch_input_shape = true;
    return LEAT_OK;
}

const leati_regularizer *leati_layer_activity(const leati_layer *layer) {
    for (const leati_field *field = layer->type->fields; field->key; ++field)
        if (field->kind == LEATI_FIELD_REGULARIZER && strcmp(field->key, "activity_regularizer") == 0)
            return (const void *)((const char *)layer->config + field->offset);
    return &layer->activity_regularizer;
}

static leat_status read_activity(leati_layer *layer, const json_t *config, const leati_layer_reader *reader,
                                 leat_error *err) {
    const json_t *value = json_object_get(config, "activity_regularizer");
    if (leati_layer_activity(layer) != &layer->activity_regularizer) return LEAT_OK;
    leat_status status =
        leati_regularizer_read_with(&layer->activity_regularizer, value, leati_parts_of(reader), err);
    return leati_prefix(status, err, "activity_regularizer");
}

static leat_status configure(leati_layer *layer, const json_t *config, const leati_layer_reader *reader,
                             leat_error *err) {
    if (!json_is_object(config)) return leati_fail(err, LEAT_EINVAL, "expected a configuration, an object");
    LEATI_TRY(read_name(layer, config, err));
    LEATI_TRY(read_trainable(layer, config, err));
    LEATI_TRY(read_dtype(layer, config, err));
    LEATI_TRY(read_input_shape(layer, config, err));
    LEATI_TRY(read_activity(layer, config, reader, err));
    LEATI_TRY(leati_fields_read_with(layer->type->fields, common_keys, config, reader, layer->config, err));
    if (!layer->type->check) return LEAT_OK;
    layer->reader = reader;
    leat_status status = layer->type->check(layer, err);
    layer->reader = NULL;
    return status;
}

leat_status leati_layer_create(leati_layer **out, const leati_layer_type *type, const json_t *config,
                               const leati_layer_reader *reader, leat_error *err) {
    *out = NULL;
    leati_layer *layer = leati_calloc(1, sizeof *layer);
    if (!layer) return leati_fail_memory(err, sizeof *layer, "a layer");
    layer->type = type;
    if (type->held) type->held(type, 1);
    layer->config = leati_calloc(1, type->config_bytes ? type->config_bytes : 1);
    leat_status status = layer->config
                             ? configure(layer, config, reader, err)
                             : leati_fail_memory(err, type->config_bytes, "a layer's configuration");
    if (status != LEAT_OK) leati_layer_destroy(&layer);
    *out = layer;
    return status;
}

void leati_layer_destroy(leati_layer **layer) {
    if (!*layer) return;
    if ((*layer)->config && (*layer)->type->fini) (*layer)->type->fini((*layer)->config);
    if ((*layer)->config) leati_fields_fini((*layer)->type->fields, (*layer)->config);
    leati_regularizer_fini(&(*layer)->activity_regularizer);
    leati_free((*layer)->config);
    leati_free((*layer)->weights);
    leati_free((*layer)->states);
    if ((*layer)->type->held) (*layer)->type->held((*layer)->type, -1);
    leati_free(*layer);
    *layer = NULL;
}

/* ---- To a configuration ---- */

json_t *leati_shape_json(const leati_shape *shape) {
    json_t *list = json_array();
    for (int i = 0; list && i < shape->rank; ++i) {
        json_t *value = shape->dims[i] < 0 ? json_null() : json_integer(shape->dims[i]);
        if (json_array_append_new(list, value) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static leat_status write_activity(const leati_layer *layer, json_t *config, leat_error *err) {
    json_t *value = NULL;
    if (layer->activity_regularizer.kind == LEATI_REGULARIZER_NONE) return LEAT_OK;
    LEATI_TRY(leati_regularizer_write(&layer->activity_regularizer, &value, err));
    if (json_object_set_new(config, "activity_regularizer", value) == 0) return LEAT_OK;
    return leati_fail(err, LEAT_ENOMEM, "no memory for the configuration of '%s'", layer->name);
}

const char *leati_layer_policy(const leati_layer *layer) {
    if (layer->float16) return LEATI_MIXED_FLOAT16;
    return layer->mixed ? LEATI_MIXED_BFLOAT16 : leat_dtype_name(layer->dtype);
}

leat_status leati_layer_config(const leati_layer *layer, json_t **out, leat_error *err) {
    json_t *config = json_object();
    bool added = config && json_object_set_new(config, "name", json_string(layer->name)) == 0;
    if (added && !leati_layer_is_input(layer))
        added = json_object_set_new(config, "trainable", json_boolean(layer->trainable)) == 0;
    if (added && layer->has_batch_input_shape)
        added = json_object_set_new(config, "batch_input_shape",
                                    leati_shape_json(&layer->batch_input_shape)) == 0;
    if (added) added = json_object_set_new(config, "dtype", json_string(leati_layer_policy(layer))) == 0;
    leat_status status =
        added ? LEAT_OK
              : leati_fail(err, LEAT_ENOMEM, "no memory for the configuration of '%s'", layer->name);
    if (status == LEAT_OK) status = write_activity(layer, config, err);
    if (status == LEAT_OK) status = leati_fields_write(layer->type->fields, layer->config, config, err);
    if (status != LEAT_OK) {
        json_decref(config);
        config = NULL;
    }
    *out = config;
    return status;
}

/* ---- Shapes and weights ---- */

leat_status leati_layer_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                              leati_shape *outputs, int *output_count, leat_error *err) {
    const leati_layer_type *type = layer->type;
    if (input_count < type->min_inputs || input_count > type->max_inputs) {
        if (type->min_inputs == type->max_inputs)
            return leati_fail(err, LEAT_EINVAL, "expected %d input%s, received %d", type->min_inputs,
                              type->min_inputs == 1 ? "" : "s", input_count);
        return leati_fail(err, LEAT_EINVAL, "expected %d to %d inputs, received %d", type->min_inputs,
                          type->max_inputs, input_count);
    }
    for (int i = 0; i < input_count && !type->scalars; ++i)
        if (inputs[i].rank < 1)
            return leati_shape_unexpected(&inputs[i], "inputs with a batch dimension", err);
    *output_count = 1;
    memset(outputs, 0, LEATI_LAYER_MAX_OUTPUTS * sizeof *outputs);
    return type->infer(layer, input_count, inputs, outputs, output_count, err);
}

/* The states keep the batch size of the first call. */
static leat_status compare_states(const leati_layer *has, const leati_layer *needs, leat_error *err) {
    for (int32_t i = 0; i < has->state_count && i < needs->state_count; ++i) {
        const leati_desc *a = &has->states[i].desc, *b = &needs->states[i].desc;
        char expected[LEATI_SHAPE_TEXT_BYTES], received[LEATI_SHAPE_TEXT_BYTES];
        if (leati_desc_same_shape(a, b)) continue;
        return leati_fail(
            err, LEAT_ESHAPE,
            "called before with another shape: this call needs a state of shape %s, the layer's has shape %s",
            leati_shape_text(expected, sizeof expected, b->rank, b->shape),
            leati_shape_text(received, sizeof received, a->rank, a->shape));
    }
    return LEAT_OK;
}

static leat_status compare_weights(const leati_layer *has, const leati_layer *needs, leat_error *err) {
    for (int32_t i = 0; i < has->weight_count; ++i) {
        const leati_desc *a = &has->weights[i].desc, *b = &needs->weights[i].desc;
        char expected[LEATI_SHAPE_TEXT_BYTES], received[LEATI_SHAPE_TEXT_BYTES];
        if (i < needs->weight_count && leati_desc_same_shape(a, b)) continue;
        return leati_fail(
            err, LEAT_ESHAPE,
            "called before with another shape: this call needs a %s of shape %s, the layer's has shape %s",
            has->weights[i].name, leati_shape_text(expected, sizeof expected, b->rank, b->shape),
            leati_shape_text(received, sizeof received, a->rank, a->shape));
    }
    return LEAT_OK;
}

leat_status leati_layer_build(leati_layer *layer, int input_count, const leati_shape *inputs,
                              leat_error *err) {
    if (!layer->type->build) {
        layer->built = true;
        return LEAT_OK;
    }
    if (!layer->built) {
        LEATI_TRY(layer->type->build(layer, input_count, inputs, err));
        layer->built = true;
        return LEAT_OK;
    }
    leati_layer again = *layer; /* borrows the configuration */
    again.weight_count = again.state_count = 0;
    again.weights = NULL;
    again.states = NULL;
    leat_status status = layer->type->build(&again, input_count, inputs, err);
    if (status == LEAT_OK) status = compare_weights(layer, &again, err);
    if (status == LEAT_OK) status = compare_states(layer, &again, err);
    leati_free(again.weights);
    leati_free(again.states);
    return status;
}

/* Makes room for one more element, for eight at a time; returns NULL without memory. */
static void *with_room(void *list, int32_t count, size_t size, leat_error *err) {
    if (count % 8 != 0) return list;
    void *more = leati_realloc(list, (size_t)count + 8, size);
    if (!more) leati_fail_memory(err, ((size_t)count + 8) * size, "a layer's weights");
    return more;
}

leat_status leati_layer_add_state(leati_layer *layer, int32_t rank, const int64_t *dims, leat_error *err) {
    int64_t count = (int64_t)sizeof(float);
    if (layer->outer) {
        ++layer->state_count;
        return leati_layer_add_state(layer->outer, rank, dims, err);
    }
    for (int i = 0; i < rank; ++i) {
        if (dims[i] >= 1 && leati_mul_i64(count, dims[i], &count)) continue;
        char text[LEATI_SHAPE_TEXT_BYTES];
        return leati_fail(err, LEAT_ESHAPE, "expected known sizes for a state, received %s",
                          leati_shape_text(text, sizeof text, rank, dims));
    }
    leati_state *states = with_room(layer->states, layer->state_count, sizeof *states, err);
    if (!states) return LEAT_ENOMEM;
    layer->states = states;
    states[layer->state_count++] = (leati_state){.desc = leati_desc_make(LEAT_F32, rank, dims)};
    return LEAT_OK;
}

leat_status leati_layer_add_weight(leati_layer *layer, const leati_weight_spec *spec, leat_error *err) {
    leati_shape shape = {.rank = spec->rank};
    int64_t count = (int64_t)sizeof(float);
    if (layer->outer) {
        ++layer->weight_count;
        return leati_layer_add_weight(layer->outer, spec, err);
    }
    memcpy(shape.dims, spec->dims, sizeof shape.dims);
    for (int i = 0; i < spec->rank; ++i) {
        if (spec->dims[i] >= 1 && leati_mul_i64(count, spec->dims[i], &count)) continue;
        char expected[LEAT_NAME_BYTES + 40];
        snprintf(expected, sizeof expected, "known sizes for the shape of '%s'", spec->name);
        return leati_shape_unexpected(&shape, expected, err);
    }
    if (!spec->initializer)
        return leati_fail(err, LEAT_EINVAL, "%s: expected an initializer, received null", spec->name);
    leati_weight *weights = with_room(layer->weights, layer->weight_count, sizeof *weights, err);
    if (!weights) return LEAT_ENOMEM;
    layer->weights = weights;
    leati_weight *weight = &weights[layer->weight_count++];
    *weight = (leati_weight){.trainable = !spec->fixed, .initializer = spec->initializer};
    snprintf(weight->name, sizeof weight->name, "%s", spec->name);
    weight->desc = leati_desc_make(LEAT_F32, spec->rank, spec->dims);
    if (spec->regularizer) weight->regularizer = *spec->regularizer;
    if (spec->constraint) weight->constraint = *spec->constraint;
    return LEAT_OK;
}

void leati_layer_weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    if (layer->type->weight_path)
        layer->type->weight_path(layer, index, out, bytes);
    else
        snprintf(out, bytes, "vars/%d", index);
}
