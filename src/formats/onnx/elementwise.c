/* SPDX-License-Identifier: Apache-2.0 */
/* Emits element-wise ops, casts and softmax.  They keep the order of axes of their inputs.  Room: formats. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "engine/graph/callee.h"
#include "formats/onnx/exporter.h"

/* ---- Functions of one variable ---- */

/* Returns x op number. */
static const char *with_number(leati_onnx *x, const char *op, const char *name, float number) {
    return leati_onnx_binary(x, op, name, leati_onnx_scalar(x, number));
}

static const char *with_alpha(leati_onnx *x, const char *op, const char *name, float alpha) {
    const leati_onnx_attr attrs[] = {LEATI_ATTR_FLOAT("alpha", alpha), LEATI_ATTR_END};
    return leati_onnx_node(x, op, 1, &name, attrs);
}

/* Returns a x + b. */
static const char *linear(leati_onnx *x, const char *name, float a, float b) {
    if (a != 1) name = with_number(x, "Mul", name, a);
    return b == 0 ? name : with_number(x, "Add", name, b);
}

static const char *clip(leati_onnx *x, const char *name, float low, float high) {
    const char *const inputs[] = {name, leati_onnx_scalar(x, low), leati_onnx_scalar(x, high)};
    return leati_onnx_node(x, "Clip", 3, inputs, NULL);
}

/* x >= c ? min(x, b) : a (x - c) */
static const char *relu(leati_onnx *x, const leati_eltwise *f, const char *name) {
    const bool bounded = isfinite(f->b);
    if (f->c == 0 && f->a == 0) return bounded ? clip(x, name, 0, f->b) : leati_onnx_unary(x, "Relu", name);
    if (f->c == 0 && !bounded) return with_alpha(x, "LeakyRelu", name, f->a);
    const char *above = with_number(x, "GreaterOrEqual", name, f->c);
    const char *upper = bounded ? with_number(x, "Min", name, f->b) : name;
    const char *lower = with_number(x, "Mul", with_number(x, "Sub", name, f->c), f->a);
    return leati_onnx_node(x, "Where", 3, (const char *[]){above, upper, lower}, NULL);
}

/* x (1 + erf(x / sqrt 2)) / 2 */
static const char *gelu(leati_onnx *x, const char *name) {
    const char *erf = leati_onnx_unary(x, "Erf", with_number(x, "Div", name, 1.4142135623730951f));
    const char *both = leati_onnx_binary(x, "Mul", name, with_number(x, "Add", erf, 1));
    return with_number(x, "Mul", both, 0.5f);
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
static const char *gelu_tanh(leati_onnx *x, const char *name) {
    const char *factor = linear(x, leati_onnx_binary(x, "Mul", name, name), 0.044715f, 1);
    const char *inner = with_number(x, "Mul", leati_onnx_binary(x, "Mul", name, factor), 0.7978845608028654f);
    return leati_onnx_binary(x, "Mul", name, linear(x, leati_onnx_unary(x, "Tanh", inner), 0.5f, 0.5f));
}

static const char *hard_sigmoid(leati_onnx *x, const leati_eltwise *f, const char *name) {
    const leati_onnx_attr attrs[] = {LEATI_ATTR_FLOAT("alpha", f->a), LEATI_ATTR_FLOAT("beta", f->b),
                                     LEATI_ATTR_END};
    return leati_onnx_node(x, "HardSigmoid", 1, &name, attrs);
}

const char *leati_onnx_function(leati_onnx *x, const leati_eltwise *f, const char *name) {
    switch (f->function) {
    case LEATI_FN_RELU: return relu(x, f, name);
    case LEATI_FN_ELU: return with_alpha(x, "Elu", name, f->a);
    case LEATI_FN_SELU: return leati_onnx_unary(x, "Selu", name);
    case LEATI_FN_SOFTPLUS: return leati_onnx_unary(x, "Softplus", name);
    case LEATI_FN_SOFTSIGN: return leati_onnx_unary(x, "Softsign", name);
    case LEATI_FN_TANH: return leati_onnx_unary(x, "Tanh", name);
    case LEATI_FN_SIGMOID: return leati_onnx_unary(x, "Sigmoid", name);
    case LEATI_FN_HARD_SIGMOID: return hard_sigmoid(x, f, name);
    case LEATI_FN_EXP: return leati_onnx_unary(x, "Exp", name);
    case LEATI_FN_LOG: return leati_onnx_unary(x, "Log", name);
    case LEATI_FN_SQRT: return leati_onnx_unary(x, "Sqrt", name);
    case LEATI_FN_SQUARE: return leati_onnx_binary(x, "Mul", name, name);
    case LEATI_FN_ABS: return leati_onnx_unary(x, "Abs", name);
    case LEATI_FN_LINEAR: return linear(x, name, f->a, f->b);
    case LEATI_FN_CLIP: return clip(x, name, f->a, f->b);
    case LEATI_FN_POW: return with_number(x, "Pow", name, f->a);
    case LEATI_FN_GELU: return gelu(x, name);
    case LEATI_FN_SILU: return leati_onnx_binary(x, "Mul", name, leati_onnx_unary(x, "Sigmoid", name));
    case LEATI_FN_MISH:
        name = leati_onnx_binary(x, "Mul", name,
                                 leati_onnx_unary(x, "Tanh", leati_onnx_unary(x, "Softplus", name)));
        return name;
    case LEATI_FN_HARD_SWISH: return leati_onnx_unary(x, "HardSwish", name);
    case LEATI_FN_SIN: return leati_onnx_unary(x, "Sin", name);
    case LEATI_FN_COS: return leati_onnx_unary(x, "Cos", name);
    case LEATI_FN_TAN: return leati_onnx_unary(x, "Tan", name);
    case LEATI_FN_ASIN: return leati_onnx_unary(x, "Asin", name);
    case LEATI_FN_ACOS: return leati_onnx_unary(x, "Acos", name);
    case LEATI_FN_ATAN: return leati_onnx_unary(x, "Atan", name);
    case LEATI_FN_SINH: return leati_onnx_unary(x, "Sinh", name);
    case LEATI_FN_COSH: return leati_onnx_unary(x, "Cosh", name);
    case LEATI_FN_ASINH: return leati_onnx_unary(x, "Asinh", name);
    case LEATI_FN_ACOSH: return leati_onnx_unary(x, "Acosh", name);
    case LEATI_FN_ATANH: return leati_onnx_unary(x, "Atanh", name);
    case LEATI_FN_ERF: return leati_onnx_unary(x, "Erf", name);
    case LEATI_FN_LOG1P: return leati_onnx_unary(x, "Log", with_number(x, "Add", name, 1));
    case LEATI_FN_GELU_TANH: return gelu_tanh(x, name);
    case LEATI_FN_EXPM1: return with_number(x, "Sub", leati_onnx_unary(x, "Exp", name), 1);
    case LEATI_FN_COUNT: break;
    }
    return leati_onnx_refuse(x, "ONNX has no function '%s'", leati_function_name(f->function));
}

void leati_onnx_eltwise(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const bool first = leati_onnx_is_first(x, node->inputs[0]);
    const char *name = leati_onnx_form(x, node->inputs[0], first);
    leati_onnx_set_form(x, node->outputs[0], first, leati_onnx_function(x, &node->attrs.eltwise, name));
}

void leati_onnx_copy(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const bool first = leati_onnx_is_first(x, node->inputs[0]);
    if (leati_onnx_data_of(x, node->outputs[0])) return; /* the first reader makes the initializer */
    leati_onnx_set_form(x, node->outputs[0], first, leati_onnx_form(x, node->inputs[0], first));
}

/* ---- Two operands ---- */

static const char *op_of(leati_binary kind) {
    switch (kind) {
    case LEATI_ADD: return "Add";
    case LEATI_SUB: return "Sub";
    case LEATI_MUL: return "Mul";
    case LEATI_DIV: return "Div";
    case LEATI_MAX: return "Max";
    case LEATI_MIN: return "Min";
    case LEATI_EQUAL: return "Equal";
    case LEATI_GREATER: return "Greater";
    case LEATI_GREATER_EQUAL: return "GreaterOrEqual";
    }
    return NULL;
}

/* True if the operand of a result of that rank can be had with the channels first: it has all axes, or at most the last
 * one. */
static bool can_be_first(const leati_onnx *x, leati_value operand, int rank) {
    const int own = leati_graph_desc(x->graph, operand)->rank;
    return own == rank || own <= 1;
}

/* Returns an operand with the channels first.  A vector of channels gets axes of size 1 behind it. */
static const char *first_operand(leati_onnx *x, leati_value operand, int rank) {
    const leati_desc *desc = leati_graph_desc(x->graph, operand);
    int64_t axes[LEAT_MAX_RANK];
    if (desc->rank == 0) return leati_onnx_plain(x, operand);
    if (desc->rank == rank) return leati_onnx_first(x, operand);
    for (int i = 0; i < rank - 2; ++i) axes[i] = i + 1;
    return leati_onnx_binary(x, "Unsqueeze", leati_onnx_plain(x, operand),
                             leati_onnx_ints(x, rank - 2, axes));
}

void leati_onnx_binary_op(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const leati_value a = node->inputs[0], b = node->inputs[1];
    const int rank = leati_graph_desc(x->graph, node->outputs[0])->rank;
    const char *op = op_of(node->attrs.binary.kind);
    const bool first = rank >= 3 && (leati_onnx_is_first(x, a) || leati_onnx_is_first(x, b)) &&
                       can_be_first(x, a, rank) && can_be_first(x, b, rank);
    const char *left = first ? first_operand(x, a, rank) : leati_onnx_plain(x, a);
    const char *right = first ? first_operand(x, b, rank) : leati_onnx_plain(x, b);
    const char *name = leati_onnx_binary(x, op, left, right);
    if (node->attrs.binary.kind >= LEATI_EQUAL) name = leati_onnx_cast(x, name, LEATI_ONNX_TYPE_FLOAT);
    leati_onnx_set_form(x, node->outputs[0], first, name);
}

/* Emits a call of one of C's functions; ONNX cannot hold other code. */
void leati_onnx_call(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const char *op = node->attrs.call.callee->onnx_op, *inputs[LEATI_CALLEE_MAX_INPUTS];
    const leati_onnx_attr signed_as_dividend[] = {LEATI_ATTR_INT("fmod", 1), LEATI_ATTR_END};
    if (!op) {
        leati_onnx_refuse(x, "a custom layer, or a lookup of integers, whose C code ONNX cannot hold; "
                             "replace it by other layers, or "
                             "end the model before it");
        return;
    }
    for (int i = 0; i < node->input_count; ++i) inputs[i] = leati_onnx_plain(x, node->inputs[i]);
    leati_onnx_set_plain(x, node->outputs[0],
                         leati_onnx_node(x, op, node->input_count, inputs,
                                         strcmp(op, "Mod") == 0 ? signed_as_dividend : NULL));
}

/* ---- Casts and softmax ---- */

void leati_onnx_cast_op(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const bool first = leati_onnx_is_first(x, node->inputs[0]);
    const char *name = leati_onnx_form(x, node->inputs[0], first);
    const int type = leati_onnx_type_of(node->attrs.cast.dtype);
    if (type == 0) leati_onnx_refuse(x, "ONNX has no such data type");
    if (leati_graph_desc(x->graph, node->inputs[0])->dtype != node->attrs.cast.dtype)
        name = leati_onnx_cast(x, name, type);
    if (node->attrs.cast.dtype == LEAT_F32) name = linear(x, name, node->attrs.cast.scale, 0);
    leati_onnx_set_form(x, node->outputs[0], first, name);
}

void leati_onnx_softmax(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    const bool first = leati_onnx_is_first(x, node->inputs[0]);
    const char *name = leati_onnx_form(x, node->inputs[0], first);
    const int rank = leati_graph_desc(x->graph, node->inputs[0])->rank;
    const int axis = leati_onnx_axis(rank, node->attrs.softmax.axis, first);
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("axis", axis), LEATI_ATTR_END};
    name = leati_onnx_node(x, node->attrs.softmax.log ? "LogSoftmax" : "Softmax", 1, &name, attrs);
    leati_onnx_set_form(x, node->outputs[0], first, name);
}
