/* SPDX-License-Identifier: Apache-2.0 */
/* EinsumDense: activation(einsum(equation, src, kernel) + bias), as in "abc,cd->abd"; "..." stands for the axes that
 * the equation does not name, before or after the named axes.
 * Source: keras.layers.EinsumDense. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/layers/core/einsum.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    char equation[LEATI_FIELD_TEXT_BYTES], bias_axes[LEATI_FIELD_TEXT_BYTES];
    leati_ints output_shape; /* without the batch and the axes that "..." stands for */
    leati_activation activation;
    leati_weight_config kernel, bias;
    leati_regularizer activity_regularizer;
} config;

static const leati_field fields[] = {LEATI_FIELD(config, equation, LEATI_FIELD_TEXT, NULL),
                                     LEATI_SIZES_FIELD(config, output_shape),
                                     LEATI_FIELD(config, activation, LEATI_FIELD_ACTIVATION, "\"linear\""),
                                     LEATI_FIELD(config, bias_axes, LEATI_FIELD_TEXT, "null"),
                                     LEATI_WEIGHT_FIELDS(config, kernel, "kernel", "\"glorot_uniform\""),
                                     LEATI_WEIGHT_FIELDS(config, bias, "bias", "\"zeros\""),
                                     LEATI_FIELD(config, activity_regularizer, LEATI_FIELD_REGULARIZER,
                                                 "null"),
                                     {.key = NULL}};

/* The equation for an input of known rank: each axis has a name; the names of the axes of "..." are digits. */
typedef struct equation {
    char in[LEAT_MAX_RANK + 1], kernel[LEAT_MAX_RANK + 1], out[LEAT_MAX_RANK + 1];
    int elided;
    bool left; /* the axes of "..." are before the named axes */
} equation;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Reads letters up to `end`, with "..." before or after them; *dots: 1 before, 2 after. */
static bool read_part(char out[LEAT_MAX_RANK + 1], int *dots, const char *start, const char *end) {
    int count = 0;
    *dots = 0;
    if (end - start >= 3 && memcmp(start, "...", 3) == 0) *dots |= 1, start += 3;
    if (end - start >= 3 && memcmp(end - 3, "...", 3) == 0) *dots |= 2, end -= 3;
    for (; start < end; ++start) {
        if (!is_letter(*start) || count == LEAT_MAX_RANK || memchr(out, *start, (size_t)count)) return false;
        out[count++] = *start;
    }
    out[count] = '\0';
    return count > 0 && *dots != 3;
}

static bool elide(char part[LEAT_MAX_RANK + 1], int elided, bool left) {
    static const char digits[] = "01234567";
    size_t length = strlen(part);
    if (length + (size_t)elided > LEAT_MAX_RANK) return false;
    if (left) memmove(part + elided, part, length + 1);
    memcpy(left ? part : part + length, digits, (size_t)elided);
    part[length + (size_t)elided] = '\0';
    return true;
}

static leat_status parse(const config *c, int rank, equation *e, leat_error *err) {
    const char *comma = strchr(c->equation, ','), *arrow = strstr(c->equation, "->");
    int in = 0, kernel = 0, out = 0;
    memset(e, 0, sizeof *e);
    bool right = comma && arrow && comma < arrow && read_part(e->in, &in, c->equation, comma) &&
                 read_part(e->kernel, &kernel, comma + 1, arrow) &&
                 read_part(e->out, &out, arrow + 2, c->equation + strlen(c->equation)) && kernel == 0 &&
                 in == out;
    if (!right)
        return leati_fail(
            err, LEAT_EINVAL,
            "equation: expected \"ab,bc->ac\", \"...ab,bc->...ac\" or \"ab...,bc->ac...\", received '%s'",
            c->equation);
    e->left = in == 1;
    e->elided = rank - (int)strlen(e->in);
    if (e->elided < 0 || (in == 0 && e->elided > 0) || !elide(e->in, e->elided, e->left) ||
        !elide(e->out, e->elided, e->left))
        return leati_fail(err, LEAT_ESHAPE,
                          "equation '%s': expected an input of its axes, received one of %d", c->equation,
                          rank);
    return LEAT_OK;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    equation e;
    char digits[LEAT_MAX_RANK + 1] = "";
    int none = 0;
    const char *comma = strchr(c->equation, ',');
    c->activity_regularizer.per_sample = true; /* as in current Keras */
    if (c->output_shape.count < 1)
        return leati_fail(err, LEAT_EINVAL, "output_shape: expected a list of integers or null");
    if (comma && read_part(digits, &none, c->equation, comma))
        LEATI_TRY(parse(c, (int)strlen(digits), &e, err));
    else
        LEATI_TRY(parse(c, 1, &e, err));
    for (const char *axis = c->bias_axes; *axis; ++axis)
        if (!is_letter(*axis) || !strchr(e.out, *axis))
            return leati_fail(err, LEAT_EINVAL, "bias_axes: expected axes of the result, received '%s'",
                              c->bias_axes);
    return LEAT_OK;
}

/* Infers the shape of the result; an axis that output_shape leaves open has the length of the input's axis of that
 * name. */
static leat_status shape_of(const config *c, const leati_shape *input, const equation *e, leati_shape *out,
                            leat_error *err) {
    const leati_ints *output_shape = &c->output_shape;
    int front = e->left ? (e->elided > 1 ? e->elided : 1) : 1, behind = e->left ? 0 : e->elided;
    *out = (leati_shape){.rank = (int32_t)strlen(e->out)};
    if (front + output_shape->count + behind != out->rank)
        return leati_fail(err, LEAT_EINVAL, "output_shape: expected %d numbers for '%s', received %d",
                          (int)out->rank - front - behind, c->equation, (int)output_shape->count);
    for (int i = 0; i < out->rank; ++i) {
        const char *at = strchr(e->in, e->out[i]);
        int64_t named_dim = at ? input->dims[at - e->in] : -1;
        bool is_listed = i >= front && i < front + output_shape->count;
        int64_t listed_dim = is_listed   ? output_shape->values[i - front]
                             : i < front ? input->dims[i]
                                         : input->dims[input->rank - out->rank + i];
        if (named_dim >= 0 && listed_dim >= 0 && named_dim != listed_dim)
            return leati_shape_unexpected(input, "an input that agrees with output_shape", err);
        out->dims[i] = listed_dim >= 0 ? listed_dim : named_dim;
    }
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    equation e;
    (void)input_count, (void)output_count;
    LEATI_TRY(parse(layer->config, inputs[0].rank, &e, err));
    return shape_of(layer->config, &inputs[0], &e, &outputs[0], err);
}

static int64_t size_of(const equation *e, const leati_shape *in, const leati_shape *out, char name) {
    const char *at = strchr(e->out, name);
    if (at) return out->dims[at - e->out];
    at = strchr(e->in, name);
    return at ? in->dims[at - e->in] : -1;
}

/* Computes the shape of the bias, from its first axis to its last: axes without a bias have length 1. */
static int bias_shape(const config *c, const equation *e, const leati_shape *out, int64_t *dims) {
    int rank = 0;
    for (const char *at = e->out; *at; ++at) {
        bool named_dim = strchr(c->bias_axes, *at) != NULL;
        if (named_dim || rank > 0) dims[rank++] = named_dim ? out->dims[at - e->out] : 1;
    }
    return rank;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    equation e;
    leati_shape out;
    int64_t dims[LEAT_MAX_RANK] = {0};
    (void)input_count;
    LEATI_TRY(parse(c, inputs[0].rank, &e, err));
    LEATI_TRY(shape_of(c, &inputs[0], &e, &out, err));
    for (int i = 0; e.kernel[i]; ++i) dims[i] = size_of(&e, &inputs[0], &out, e.kernel[i]);
    LEATI_TRY(leati_weight_config_add(layer, "kernel", &c->kernel, (int)strlen(e.kernel), dims, err));
    if (!c->bias_axes[0]) return LEAT_OK;
    int rank = bias_shape(c, &e, &out, dims);
    return leati_weight_config_add(layer, "bias", &c->bias, rank, dims, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    char text[3 * LEAT_MAX_RANK + 8];
    equation e;
    leat_error err = {0};
    (void)input_count;
    leat_status status = parse(c, leati_graph_desc(g, inputs[0])->rank, &e, &err);
    if (status != LEAT_OK) {
        outputs[0] = leati_graph_fail(g, status, "%s", err.message);
        return;
    }
    snprintf(text, sizeof text, "%s,%s->%s", e.in, e.kernel, e.out);
    leati_value y = leati_einsum(g, text, inputs[0], leati_layer_weight(layer, lowering, 0));
    if (c->bias_axes[0]) y = leati_add(g, y, leati_layer_weight(layer, lowering, 1));
    outputs[0] = leati_activation_lower(&c->activation, g, y);
    leati_lowering_add_activity(lowering, &c->activity_regularizer, 1, outputs);
}

LEATI_LAYER_TYPE(einsum_dense, "EinsumDense", "einsum_dense", config, fields, LEATI_ONE_INPUT, .check = check,
                 .infer = infer, .build = build, .lower = lower);
