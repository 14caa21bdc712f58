/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops.nn and keras.activations: activations, softmax, one-hot vectors.  Room: nn. */
#include <math.h>
#include <string.h>

#include "nn/activations/activation.h"
#include "nn/layers/operations/operations.h"

static void lower_activation(leati_operands *o) {
    leati_activation activation = {.kind = (leati_activation_kind)o->operation->detail};
    o->outputs[0] = leati_activation_lower(&activation, o->g, leati_operand(o, "x"));
}

/* soft_shrink: x moved towards 0 by the threshold; hard_shrink: x, and 0 within the threshold */
static void lower_shrink(leati_operands *o) {
    leati_graph *g = o->g;
    const float threshold = (float)leati_operand_number_or(o, "threshold", 0.5);
    if (threshold == 0.5f) {
        lower_activation(o);
        return;
    }
    leati_value x = leati_operand(o, "x");
    leati_value above = leati_binary_of(g, LEATI_GREATER, x, leati_scalar(g, threshold));
    leati_value below = leati_binary_of(g, LEATI_GREATER, leati_scalar(g, -threshold), x);
    leati_value y = leati_mul(g, x, leati_add(g, above, below));
    if (o->operation->detail == LEATI_ACTIVATION_SOFT_SHRINK)
        y = leati_add(g, y, leati_linear(g, leati_sub(g, below, above), threshold, 0));
    o->outputs[0] = y;
}

/* (x + sqrt(x^2 + b)) / 2 */
static void lower_squareplus(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    leati_value square = leati_linear(g, leati_function_of(g, x, LEATI_FN_SQUARE), 1,
                                      (float)leati_operand_number_or(o, "b", 4));
    o->outputs[0] = leati_linear(g, leati_add(g, x, leati_function_of(g, square, LEATI_FN_SQRT)), 0.5f, 0);
}

/* Computes elu and leaky_relu, with their slopes. */
static void lower_elu(leati_operands *o) {
    leati_eltwise f = {.function = LEATI_FN_ELU, .a = (float)leati_operand_number_or(o, "alpha", 1)};
    o->outputs[0] = leati_eltwise_of(o->g, leati_operand(o, "x"), f);
}

/* x above 0, and alpha (e^(x / alpha) - 1) elsewhere */
static void lower_celu(leati_operands *o) {
    leati_graph *g = o->g;
    const double alpha = leati_operand_number_or(o, "alpha", 1);
    leati_value x = leati_operand(o, "x");
    leati_value y = leati_function_of(g, leati_linear(g, x, (float)(1 / alpha), 0), LEATI_FN_ELU);
    o->outputs[0] = leati_linear(g, y, (float)alpha, 0);
}

static void lower_leaky_relu(leati_operands *o) {
    const double slope = leati_operand_number_or(o, "negative_slope", 0.2);
    leati_eltwise f = {.function = LEATI_FN_RELU, .a = (float)slope, .b = INFINITY};
    o->outputs[0] = leati_eltwise_of(o->g, leati_operand(o, "x"), f);
}

/* Computes keras.activations.relu, with its options. */
static void lower_relu(leati_operands *o) {
    leati_eltwise f = {LEATI_FN_RELU, (float)leati_operand_number_or(o, "negative_slope", 0),
                       (float)leati_operand_number_or(o, "max_value", (double)INFINITY),
                       (float)leati_operand_number_or(o, "threshold", 0)};
    o->outputs[0] = leati_eltwise_of(o->g, leati_operand(o, "x"), f);
}

/* x where it is above the threshold, and a number elsewhere.  The maximum replaces -infinity, whose product with 0 is
 * NaN. */
static void lower_threshold(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x"),
                least = leati_scalar(g, (float)leati_operand_number_or(o, "threshold", 0));
    leati_value above = leati_binary_of(g, LEATI_GREATER, x, least);
    const float other = (float)leati_operand_number_or(o, "default_value", 0);
    if (!isfinite(other)) {
        o->outputs[0] = leati_operation_select(o, above, x, leati_scalar(g, other));
        return;
    }
    leati_value y = leati_mul(g, leati_binary_of(g, LEATI_MAX, x, least), above);
    o->outputs[0] = other == 0 ? y : leati_add(g, y, leati_linear(g, above, -other, other));
}

/* Computes GELU, or its approximation. */
static void lower_gelu(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    o->outputs[0] = leati_operand_flag(o, "approximate") ? leati_gelu_approximate(o->g, x)
                                                         : leati_function_of(o->g, x, LEATI_FN_GELU);
}

/* Computes an activation of the last axis along another one. */
static leati_value along_axis(leati_graph *g, const leati_activation *activation, leati_value x, int axis) {
    const int last = leati_graph_desc(g, x)->rank - 1;
    int32_t perm[LEAT_MAX_RANK];
    if (axis < 0 || axis == last) return leati_activation_lower(activation, g, x);
    for (int i = 0; i <= last; ++i) perm[i] = i == axis ? last : i == last ? axis : i;
    return leati_transpose(g, leati_activation_lower(activation, g, leati_transpose(g, x, perm)), perm);
}

static void lower_softmax(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    int rank = leati_graph_desc(o->g, x)->rank;
    if (leati_operand_is_none(o, "axis")) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP,
                               "axis=None mixes the samples of a batch: expected an axis, or a list of axes");
        return;
    }
    if (o->operation->detail == LEATI_ACTIVATION_SOFTMAX) {
        if (!leati_operand_json(o, "axis"))
            o->outputs[0] = leati_softmax_of(o->g, x, rank - 1);
        else
            o->outputs[0] = leati_softmax_over(o->g, x, leati_operand_axes(o, "axis", rank));
        return;
    }
    int axis = leati_operand_axis(o, "axis", rank, -1);
    leati_activation activation = {.kind = (leati_activation_kind)o->operation->detail};
    if (o->operation->detail == LEATI_ACTIVATION_LOG_SOFTMAX)
        o->outputs[0] = leati_log_softmax(o->g, x, axis);
    else
        o->outputs[0] = along_axis(o->g, &activation, x, axis);
}

/* Divides x by its norm over an axis, but at least by epsilon. */
static void lower_normalize(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    const double epsilon = leati_operand_number_or(o, "epsilon", (double)LEATI_EPSILON),
                 order = leati_operand_number_or(o, "order", 2);
    int axis = leati_operand_axis(o, "axis", leati_graph_desc(g, x)->rank, -1);
    if (axis < 0) return;
    if (!(order > 0)) {
        o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "order: expected a number above 0");
        return;
    }
    if (order != 2) {
        leati_value norm = leati_operation_norm(g, x, UINT32_C(1) << axis, true, order);
        norm = leati_binary_of(g, LEATI_MAX, norm, leati_scalar(g, (float)epsilon));
        o->outputs[0] = leati_div(g, x, norm);
        return;
    }
    leati_value squares = leati_function_of(g, x, LEATI_FN_SQUARE);
    leati_value sum = leati_reduce_of(g, LEATI_REDUCE_SUM, squares, UINT32_C(1) << axis, true);
    leati_value least = leati_binary_of(g, LEATI_MAX, sum, leati_scalar(g, (float)(epsilon * epsilon)));
    leati_eltwise inverse = {.function = LEATI_FN_POW, .a = -0.5f};
    o->outputs[0] = leati_mul(g, x, leati_eltwise_of(g, least, inverse));
}

leati_value leati_operation_one_hot(leati_graph *g, leati_value classes, int64_t depth, int axis) {
    const int last = leati_graph_desc(g, classes)->rank;
    leati_value y = leati_one_hot(g, leati_cast(g, classes, LEAT_I32, 1), depth);
    int32_t perm[LEAT_MAX_RANK];
    for (int i = 0; i <= last; ++i) perm[i] = i == axis ? last : i < axis ? i : i - 1;
    return axis == last ? y : leati_transpose(g, y, perm);
}

static void lower_one_hot(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    int64_t classes = leati_operand_int(o, "num_classes", 0);
    int rank = leati_graph_desc(o->g, x)->rank + 1;
    int axis = rank <= LEAT_MAX_RANK ? leati_operand_axis(o, "axis", rank, -1) : -1;
    if (classes < 1 || axis < 0) {
        o->outputs[0] = leati_operand_fail(o, LEAT_EINVAL, "num_classes: expected at least 1");
        return;
    }
    o->outputs[0] = leati_operation_one_hot(o->g, x, classes, axis);
}

#define NN            "ops.nn"
#define ACTIVATION(x) lower_activation, LEATI_ACTIVATION_##x

const leati_operation leati_nn_operations[] = {
    {"Relu", NN, "x", ACTIVATION(RELU)},
    {"Relu6", NN, "x", ACTIVATION(RELU6)},
    {"Sigmoid", NN, "x", ACTIVATION(SIGMOID)},
    {"SparseSigmoid", NN, "x", ACTIVATION(SPARSE_SIGMOID)},
    {"Softplus", NN, "x", ACTIVATION(SOFTPLUS)},
    {"Softsign", NN, "x", ACTIVATION(SOFTSIGN)},
    {"SparsePlus", NN, "x", ACTIVATION(SPARSE_PLUS)},
    {"Silu", NN, "x", ACTIVATION(SILU)},
    {"LogSigmoid", NN, "x", ACTIVATION(LOG_SIGMOID)},
    {"HardSigmoid", NN, "x", ACTIVATION(HARD_SIGMOID3)},
    {"HardSilu", NN, "x", ACTIVATION(HARD_SILU)},
    {"HardTanh", NN, "x", ACTIVATION(HARD_TANH)},
    {"Selu", NN, "x", ACTIVATION(SELU)},
    {"TanhShrink", NN, "x", ACTIVATION(TANH_SHRINK)},
    {"Glu", NN, "x axis", lower_softmax, LEATI_ACTIVATION_GLU},
    {"SoftShrink", NN, "x threshold", lower_shrink, LEATI_ACTIVATION_SOFT_SHRINK},
    {"HardShrink", NN, "x threshold", lower_shrink, LEATI_ACTIVATION_HARD_SHRINK},
    {"Squareplus", NN, "x b", lower_squareplus, LEATI_ACTIVATION_SQUAREPLUS},
    {"Elu", NN, "x alpha", lower_elu, 0},
    {"Celu", NN, "x alpha", lower_celu, 0},
    {"LeakyRelu", NN, "x negative_slope", lower_leaky_relu, 0},
    {"ReLU", "activations.activations", "x negative_slope max_value threshold", lower_relu, 0},
    {"Threshold", NN, "x threshold default_value", lower_threshold, 0},
    {"Gelu", NN, "x approximate", lower_gelu, 0},
    {"Softmax", NN, "x axis", lower_softmax, LEATI_ACTIVATION_SOFTMAX},
    {"LogSoftmax", NN, "x axis", lower_softmax, LEATI_ACTIVATION_LOG_SOFTMAX},
    {"Sparsemax", NN, "x axis", lower_softmax, LEATI_ACTIVATION_SPARSEMAX},
    {"Normalize", NN, "x axis order epsilon", lower_normalize, 0},
    {"OneHot", NN, "x num_classes axis dtype sparse", lower_one_hot, 0},
    {.name = NULL},
};
