/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the activations of Keras 2.3.1 and of current Keras.  To add one, add its kind to the header and
 * its entry here. */
#include "nn/activations/activation.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "engine/graph/build.h"
#include "nn/config/object.h"

typedef struct descriptor {
    const char *name;
    leati_eltwise eltwise;
    leati_value (*chain)(leati_graph *g,
                         leati_value x); /* the ops of an activation that is not one element-wise function */
} descriptor;

static leati_value softmax(leati_graph *g, leati_value x) {
    return leati_softmax_of(g, x, -1);
}

static leati_value log_softmax(leati_graph *g, leati_value x) {
    return leati_log_softmax(g, x, -1);
}

/* -log(1 + e^-x) */
static leati_value log_sigmoid(leati_graph *g, leati_value x) {
    return leati_linear(g, leati_function_of(g, leati_linear(g, x, -1, 0), LEATI_FN_SOFTPLUS), -1, 0);
}

static leati_value tanh_shrink(leati_graph *g, leati_value x) {
    return leati_sub(g, x, leati_function_of(g, x, LEATI_FN_TANH));
}

static leati_value soft_shrink(leati_graph *g, leati_value x) {
    return leati_sub(g, x, leati_clip(g, x, -0.5f, 0.5f));
}

/* x where |x| > 1/2 */
static leati_value hard_shrink(leati_graph *g, leati_value x) {
    leati_value size = leati_function_of(g, x, LEATI_FN_ABS);
    return leati_mul(g, x, leati_binary_of(g, LEATI_GREATER, size, leati_scalar(g, 0.5f)));
}

/* (x + sqrt(x^2 + 4)) / 2 */
static leati_value squareplus(leati_graph *g, leati_value x) {
    leati_value square = leati_linear(g, leati_function_of(g, x, LEATI_FN_SQUARE), 1, 4);
    return leati_linear(g, leati_add(g, x, leati_function_of(g, square, LEATI_FN_SQRT)), 0.5f, 0);
}

/* 0 below -1, (x + 1)^2 / 4 up to 1, then x: ((clip(x) + 1) / 2)^2 + max(x, 1) - 1 */
static leati_value sparse_plus(leati_graph *g, leati_value x) {
    leati_value square =
        leati_function_of(g, leati_linear(g, leati_clip(g, x, -1, 1), 0.5f, 0.5f), LEATI_FN_SQUARE);
    leati_value above = leati_function_of(g, leati_linear(g, x, 1, -1), LEATI_FN_RELU);
    return leati_add(g, square, above);
}

/* (..., C) -> (..., 1, C) */
static leati_value in_columns(leati_graph *g, leati_value x) {
    leati_desc desc = *leati_graph_desc(g, x);
    int64_t dims[LEAT_MAX_RANK + 1] = {0};
    if (desc.rank < 1 || desc.rank >= LEAT_MAX_RANK) return LEATI_INVALID;
    for (int i = 0; i < desc.rank; ++i) dims[i < desc.rank - 1 ? i : i + 1] = desc.shape[i];
    dims[desc.rank - 1] = 1;
    return leati_reshape(g, x, desc.rank + 1, dims);
}

/* Returns max(x - tau, 0).  An element is in the support if the elements above it exceed it by less than 1 in
 * total; K elements are.  Martins and Astudillo (2016) define tau = (sum of the support - 1) / K.  Keras adds up
 * the running sums of the sorted support instead, so that an element counts once for each element that does not
 * exceed it. */
static leati_value sparsemax(leati_graph *g, leati_value x) {
    leati_value mine = leati_expand_last(g, x), others = in_columns(g, x);
    leati_value above = leati_function_of(g, leati_sub(g, others, mine), LEATI_FN_RELU);
    leati_value excess = leati_reduce_last(g, LEATI_REDUCE_SUM, above, false);
    leati_value support = leati_binary_of(g, LEATI_GREATER, leati_scalar(g, 1), excess);
    leati_value equal = leati_linear(g, leati_binary_of(g, LEATI_EQUAL, mine, others), 0.5f, 0);
    leati_value order = leati_add(g, leati_binary_of(g, LEATI_GREATER, mine, others), equal);
    leati_value times =
        leati_reduce_last(g, LEATI_REDUCE_SUM, leati_mul(g, order, in_columns(g, support)), false);
    times = leati_mul(g, leati_linear(g, times, 1, 0.5f), support);
    leati_value sum = leati_reduce_last(g, LEATI_REDUCE_SUM, leati_mul(g, x, times), true);
    leati_value number = leati_reduce_last(g, LEATI_REDUCE_SUM, support, true);
    leati_value tau = leati_div(g, leati_linear(g, sum, 1, -1), number);
    return leati_function_of(g, leati_sub(g, x, tau), LEATI_FN_RELU);
}

/* Returns the first half of the last axis times the sigmoid of the second half. */
static leati_value glu(leati_graph *g, leati_value x) {
    const leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank < 1) return LEATI_INVALID;
    int64_t half = desc.shape[desc.rank - 1] / 2;
    leati_value gate = leati_slice_axis(g, x, desc.rank - 1, half, half);
    return leati_mul(g, leati_slice_axis(g, x, desc.rank - 1, 0, half),
                     leati_function_of(g, gate, LEATI_FN_SIGMOID));
}

leati_value leati_gelu_approximate(leati_graph *g, leati_value x) {
    return leati_function_of(g, x, LEATI_FN_GELU_TANH);
}

static const descriptor descriptors[LEATI_ACTIVATION_COUNT] = {
    [LEATI_ACTIVATION_LINEAR] = {"linear", {LEATI_FN_LINEAR, 1.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_SOFTMAX] = {.name = "softmax", .chain = softmax},
    [LEATI_ACTIVATION_ELU] = {"elu", {LEATI_FN_ELU, 1.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_SELU] = {"selu", {LEATI_FN_SELU, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_SOFTPLUS] = {"softplus", {LEATI_FN_SOFTPLUS, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_SOFTSIGN] = {"softsign", {LEATI_FN_SOFTSIGN, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_RELU] = {"relu", {LEATI_FN_RELU, 0.0f, INFINITY, 0.0f}, NULL},
    [LEATI_ACTIVATION_TANH] = {"tanh", {LEATI_FN_TANH, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_SIGMOID] = {"sigmoid", {LEATI_FN_SIGMOID, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_HARD_SIGMOID] = {"hard_sigmoid", {LEATI_FN_HARD_SIGMOID, 0.2f, 0.5f, 0.0f}, NULL},
    [LEATI_ACTIVATION_EXPONENTIAL] = {"exponential", {LEATI_FN_EXP, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_HARD_SIGMOID3] = {"hard_sigmoid3",
                                        {LEATI_FN_HARD_SIGMOID, 1.0f / 6.0f, 0.5f, 0.0f},
                                        NULL},
    [LEATI_ACTIVATION_RELU6] = {"relu6", {LEATI_FN_RELU, 0.0f, 6.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_LEAKY_RELU] = {"leaky_relu", {LEATI_FN_RELU, 0.2f, INFINITY, 0.0f}, NULL},
    [LEATI_ACTIVATION_CELU] = {"celu", {LEATI_FN_ELU, 1.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_GELU] = {"gelu", {LEATI_FN_GELU, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_SILU] = {"silu", {LEATI_FN_SILU, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_SWISH] = {"swish", {LEATI_FN_SILU, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_HARD_SILU] = {"hard_silu", {LEATI_FN_HARD_SWISH, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_HARD_SWISH] = {"hard_swish", {LEATI_FN_HARD_SWISH, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_MISH] = {"mish", {LEATI_FN_MISH, 0.0f, 0.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_HARD_TANH] = {"hard_tanh", {LEATI_FN_CLIP, -1.0f, 1.0f, 0.0f}, NULL},
    [LEATI_ACTIVATION_SPARSE_SIGMOID] = {"sparse_sigmoid", {LEATI_FN_HARD_SIGMOID, 0.5f, 0.5f, 0.0f}, NULL},
    [LEATI_ACTIVATION_LOG_SOFTMAX] = {.name = "log_softmax", .chain = log_softmax},
    [LEATI_ACTIVATION_LOG_SIGMOID] = {.name = "log_sigmoid", .chain = log_sigmoid},
    [LEATI_ACTIVATION_TANH_SHRINK] = {.name = "tanh_shrink", .chain = tanh_shrink},
    [LEATI_ACTIVATION_SOFT_SHRINK] = {.name = "soft_shrink", .chain = soft_shrink},
    [LEATI_ACTIVATION_HARD_SHRINK] = {.name = "hard_shrink", .chain = hard_shrink},
    [LEATI_ACTIVATION_SQUAREPLUS] = {.name = "squareplus", .chain = squareplus},
    [LEATI_ACTIVATION_SPARSE_PLUS] = {.name = "sparse_plus", .chain = sparse_plus},
    [LEATI_ACTIVATION_SPARSEMAX] = {.name = "sparsemax", .chain = sparsemax},
    [LEATI_ACTIVATION_GLU] = {.name = "glu", .chain = glu},
    [LEATI_ACTIVATION_GELU_APPROXIMATE] = {.name = "keras_hub>gelu_approximate",
                                           .chain = leati_gelu_approximate},
};

const char *leati_activation_name(leati_activation_kind kind) {
    return (unsigned)kind < LEATI_ACTIVATION_COUNT ? descriptors[kind].name : "unknown";
}

const char *leati_activation_name_at(int index) {
    return index < (int)LEATI_ACTIVATION_COUNT ? descriptors[index].name : NULL;
}

leat_status leati_activation_from_name(leati_activation *out, const char *name, leat_error *err) {
    for (int i = 0; i < (int)LEATI_ACTIVATION_COUNT; ++i) {
        if (strcmp(descriptors[i].name, name) == 0) {
            out->kind = (leati_activation_kind)i;
            return LEAT_OK;
        }
    }
    return leati_unknown_name(err, "activation", name, leati_activation_name_at);
}

static bool is_builtin(const char *name) {
    for (int i = 0; i < (int)LEATI_ACTIVATION_COUNT; ++i)
        if (strcmp(descriptors[i].name, name) == 0) return true;
    return false;
}

leat_status leati_activation_read_with(leati_activation *out, const json_t *value, const leati_part *parts,
                                       leat_error *err) {
    static const char *const ignored[] = {"name", "dtype", "trainable", NULL};
    *out = (leati_activation){0};
    if (!value || json_is_null(value)) return LEAT_OK;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "activation", err));
    const bool builtin = is_builtin(object.name);
    const leati_part *part = leati_part_find(parts, LEATI_PART_ACTIVATION, &object, builtin);
    if (!part && !builtin)
        return leati_part_unknown(err, parts, LEATI_PART_ACTIVATION, object.name, leati_activation_name_at);
    if (!part) return leati_activation_from_name(out, object.name, err);
    LEATI_TRY(leati_part_object_create(&out->object, part, &object, ignored, err));
    leati_custom_activation_prepare(out->object);
    out->kind = LEATI_ACTIVATION_CUSTOM;
    return LEAT_OK;
}

void leati_activation_fini(leati_activation *activation) {
    leati_part_object_destroy(&activation->object);
    activation->kind = LEATI_ACTIVATION_LINEAR;
}

leat_status leati_activation_write(const leati_activation *activation, json_t **out, leat_error *err) {
    if (activation->object) return leati_part_object_write(activation->object, NULL, NULL, out, err);
    *out = json_string(leati_activation_name(activation->kind));
    return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for an activation's name");
}

bool leati_activation_eltwise(const leati_activation *activation, leati_eltwise *out) {
    *out = (leati_eltwise){0};
    if (activation->object) return false;
    *out = descriptors[activation->kind].eltwise;
    return !descriptors[activation->kind].chain;
}

bool leati_activation_reads_last_axis(const leati_activation *activation) {
    const leat_activation_definition *custom =
        activation->object ? activation->object->part->definition : NULL;
    if (custom) return custom->whole_rows;
    return activation->kind == LEATI_ACTIVATION_SOFTMAX || activation->kind == LEATI_ACTIVATION_LOG_SOFTMAX ||
           activation->kind == LEATI_ACTIVATION_SPARSEMAX || leati_activation_halves(activation);
}

bool leati_activation_halves(const leati_activation *activation) {
    return activation->kind == LEATI_ACTIVATION_GLU;
}

leati_value leati_activation_lower(const leati_activation *activation, leati_graph *graph, leati_value x) {
    if (activation->kind == LEATI_ACTIVATION_LINEAR) return x;
    if (activation->object) return leati_part_lower(activation->object, graph, x);
    if (descriptors[activation->kind].chain) return descriptors[activation->kind].chain(graph, x);
    return leati_eltwise_of(graph, x, descriptors[activation->kind].eltwise);
}

/* ---- A field of a configuration ---- */

static leat_status read_field(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    leat_status status = leati_activation_read_with(member, value, leati_parts_of(context), err);
    if (status == LEAT_OK && leati_activation_halves(member) && !field->reshapes)
        status = leati_fail(err, LEAT_ENOTSUP, "'glu' halves the last axis: use a separate Activation layer");
    return leati_prefix(status, err, "%s", field->key);
}

static leat_status write_field(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field;
    return leati_activation_write(member, out, err);
}

static void fini_field(void *member) {
    leati_activation_fini(member);
}

const leati_field_kind leati_field_activation = {.read = read_field,
                                                 .write = write_field,
                                                 .fini = fini_field};
