/* SPDX-License-Identifier: Apache-2.0 */
/* inputs[0] + inputs[1] * scale, in the blocks of keras.applications' InceptionResNetV2: CustomScaleLayer in current
 * Keras, and a Lambda in Keras 2, lambda inputs, scale: inputs[0] + inputs[1] * scale, which is recognised by its
 * marshalled code and written back unchanged.
 * Source: keras.src.applications.inception_resnet_v2; keras_applications 1.0.8. */
#include <string.h>

#include "base/error.h"
#include "engine/graph/build.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct scaled_sum_config {
    json_t *function, *function_type, *output_shape, *output_shape_type, *arguments;
    json_t *module, *output_shape_module;
} scaled_sum_config;

#define KEY(name, is_later)                                                                                  \
    {                                                                                                        \
        .key = #name, .kind = LEATI_FIELD_JSON, .preset = "null", .later = is_later,                         \
        .offset = offsetof(scaled_sum_config, name)                                                          \
    }
static const leati_field fields[] = {KEY(function, false),           KEY(function_type, false),
                                     KEY(output_shape, false),       KEY(output_shape_type, false),
                                     KEY(arguments, false),          KEY(module, true),
                                     KEY(output_shape_module, true), {.key = NULL}};

/* ---- The code ---- */

enum { code_bytes = 96 };

static int digit_of(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Decodes the beginning of a base64 text with line breaks; returns the number of bytes. */
static size_t decode(const char *text, unsigned char out[code_bytes]) {
    unsigned bits = 0;
    int held = 0;
    size_t count = 0;
    for (; *text && count < code_bytes; ++text) {
        int digit = digit_of(*text);
        if (digit < 0) continue;
        bits = (bits << 6 | (unsigned)digit) & 0xffffff;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out[count++] = (unsigned char)(bits >> held);
    }
    return count;
}

/* The function's bytecode, behind the type and length of a bytes object, and then its constants None, 0 and 1.  A bit
 * of a type (0x80) that only matters to references is cleared.  Python 3.6 to 3.10, 3.5, and 2.7. */
static const unsigned char word_code[] =
    "s\x14\0\0\0\x7c\0d\x01\x19\0\x7c\0d\x02\x19\0\x7c\x01\x14\0\x17\0S\0)\x03Ni\0\0\0\0i\x01\0\0";
static const unsigned char byte_code[] =
    "s\x14\0\0\0\x7c\0\0d\x01\0\x19\x7c\0\0d\x02\0\x19\x7c\x01\0\x14\x17S)\x03Ni\0\0\0\0i\x01\0\0";
static const unsigned char old_code[] =
    "s\x14\0\0\0\x7c\0\0d\x01\0\x19\x7c\0\0d\x02\0\x19\x7c\x01\0\x14\x17S(\x03\0\0\0Ni\0\0\0\0i\x01\0\0";

/* Compares `length` bytes; a byte of the file may have the bit of references. */
static bool same_bytes(const unsigned char *have, const unsigned char *want, size_t length) {
    for (size_t i = 0; i < length; ++i)
        if (have[i] != want[i] && have[i] != (want[i] | 0x80)) return false;
    return true;
}

/* True if a code object of two arguments has one of the codes; the numbers before the code (16, 20 or 24 bytes) differ
 * between versions of Python. */
static bool is_scaled_sum(const unsigned char *data, size_t count) {
    static const struct {
        const unsigned char *code;
        size_t length;
    } codes[] = {{word_code, sizeof word_code}, {byte_code, sizeof byte_code}, {old_code, sizeof old_code}};
    static const unsigned char start[] = {'c', 2, 0, 0, 0};
    if (count < sizeof start || !same_bytes(data, start, sizeof start)) return false;
    for (size_t at = 17; at <= 25; at += 4)
        for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i)
            if (at + codes[i].length <= count && same_bytes(data + at, codes[i].code, codes[i].length))
                return true;
    return false;
}

/* Returns the number that is the only argument; NULL if there is another argument, or none. */
static const json_t *only_number(const json_t *arguments) {
    void *first = json_object_iter((json_t *)(uintptr_t)arguments);
    const json_t *value = first && json_object_size(arguments) == 1 ? json_object_iter_value(first) : NULL;
    return json_is_number(value) ? value : NULL;
}

const leati_layer_type *leati_layer_find_lambda(const json_t *config) {
    unsigned char data[code_bytes];
    const json_t *function = json_object_get(config, "function");
    const char *text = json_string_value(json_array_get(function, 0));
    bool plain =
        text && json_is_null(json_array_get(function, 1)) && json_is_null(json_array_get(function, 2));
    if (!plain || !only_number(json_object_get(config, "arguments"))) return NULL;
    return is_scaled_sum(data, decode(text, data)) ? &leati_layer_scaled_sum : NULL;
}

/* ---- The layers ---- */

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    bool same = inputs[0].rank == inputs[1].rank;
    (void)layer, (void)input_count, (void)output_count;
    for (int i = 1; same && i < inputs[0].rank; ++i) same = inputs[0].dims[i] == inputs[1].dims[i];
    if (!same) return leati_shape_unexpected(&inputs[1], "two inputs of one shape", err);
    outputs[0] = inputs[0];
    return LEAT_OK;
}

/* Multiplies x by a number: in predictions as a normalization with mean 0 and variance 1, which the plan folds into the
 * weights of a convolution before it, together with the sum that follows. */
static leati_value scaled(const leati_lowering *lowering, leati_value x, double scale) {
    leati_graph *g = lowering->graph;
    const leati_desc *desc = leati_graph_desc(g, x);
    if (lowering->mode != LEATI_PREDICT || desc->dtype != LEAT_F32 || desc->rank < 2)
        return leati_linear(g, x, (float)scale, 0.0f);
    const int64_t channels = desc->shape[desc->rank - 1];
    leati_value gamma = leati_full(g, 1, &channels, (float)scale), mean = leati_full(g, 1, &channels, 0.0f);
    leati_value variance = leati_full(g, 1, &channels, 1.0f);
    leati_value inputs[] = {x, gamma, LEATI_NONE, mean, variance};
    return leati_graph_node(g, LEATI_OP_BATCH_NORM_APPLY, &(leati_attrs){.batch_norm = {.epsilon = 0.0f}}, 5,
                            inputs, NULL);
}

static leati_value scaled_sum(const leati_lowering *lowering, const leati_value *inputs, double scale) {
    return leati_add(lowering->graph, inputs[0], scaled(lowering, inputs[1], scale));
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const scaled_sum_config *c = layer->config;
    (void)input_count;
    outputs[0] = scaled_sum(lowering, inputs, json_number_value(only_number(c->arguments)));
}

LEATI_LAYER_TYPE(scaled_sum, "Lambda", "lambda", scaled_sum_config, fields, .min_inputs = 2, .max_inputs = 2,
                 .masking = LEATI_MASK_PASSED, .steps = LEATI_STEPS_BY_NUMBER, .infer = infer,
                 .lower = lower);

typedef struct custom_scale_config {
    double scale;
} custom_scale_config;

static const leati_field custom_scale_fields[] = {LEATI_FIELD(custom_scale_config, scale, LEATI_FIELD_FLOAT,
                                                              NULL),
                                                  {.key = NULL}};

static void lower_custom_scale(const leati_layer *layer, leati_lowering *lowering, int input_count,
                               const leati_value *inputs, leati_value *outputs) {
    const custom_scale_config *c = layer->config;
    (void)input_count;
    outputs[0] = scaled_sum(lowering, inputs, c->scale);
}

LEATI_LAYER_TYPE(custom_scale_layer, "CustomScaleLayer", "custom_scale_layer", custom_scale_config,
                 custom_scale_fields, .module = "keras.src.applications.inception_resnet_v2", .min_inputs = 2,
                 .max_inputs = 2, .steps = LEATI_STEPS_BY_NUMBER, .infer = infer,
                 .lower = lower_custom_scale);
