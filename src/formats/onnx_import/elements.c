/* SPDX-License-Identifier: Apache-2.0 */
/* Reads operators that treat each element by itself, and softmax.  Room: formats. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"
#include "json/json.h"

/* Returns the first view of input 0; a constant becomes a tensor. */
static leati_view any_view(leati_import *x) {
    leati_import_value *value = leati_import_need(x, 0);
    if (leati_import_ok(x) && !value->constant && value->view_count > 0) return value->views[0];
    return leati_import_settle(x, value, NULL);
}

static leati_import_value *set(leati_import *x, leati_view view, bool positive) {
    leati_import_value *out = leati_import_set(x, 0, &view);
    if (out) out->positive = positive;
    return out;
}

static void read_activation(leati_import *x) {
    const char *name = leati_import_operator_of(x->node->op)->detail;
    const leati_view view = any_view(x);
    const bool positive =
        strcmp(name, "relu") == 0 || strcmp(name, "sigmoid") == 0 || strcmp(name, "softplus") == 0;
    set(x, leati_import_activation(x, name, &view), positive);
}

static void read_unary(leati_import *x) {
    const leati_view view = any_view(x);
    set(x, leati_import_unary(x, leati_import_operator_of(x->node->op)->detail, &view), false);
}

static void read_identity(leati_import *x) {
    leati_import_value *value = leati_import_need(x, 0);
    if (leati_import_is_read(x, 1)) leati_import_refuse(x, "its mask is not supported");
    if (leati_import_ok(x)) leati_import_alias(x, 0, value);
}

/* ---- Functions with numbers ---- */

/* Adds a layer with one number. */
static leati_view with_key(leati_import *x, const char *class_name, const char *key, double number) {
    const leati_view view = any_view(x);
    json_t *config = json_pack("{s:f}", key, number);
    return leati_view_with(x, &view, leati_import_layer(x, class_name, config, 1, &view.source));
}

static void read_elu(leati_import *x) {
    set(x, with_key(x, "ELU", "alpha", (double)leati_import_real(x, "alpha", 1)), false);
}

static void read_celu(leati_import *x) {
    const leati_view view = any_view(x);
    json_t *options = json_pack("{s:f}", "alpha", (double)leati_import_real(x, "alpha", 1));
    const leati_source source = leati_import_operation(x, "Celu", json_pack("[o]", leati_import_argument(0)),
                                                       options, 1, &view.source);
    set(x, leati_view_with(x, &view, source), false);
}

static void read_leaky_relu(leati_import *x) {
    set(x, with_key(x, "LeakyReLU", "alpha", (double)leati_import_real(x, "alpha", 0.01f)), false);
}

static void read_thresholded_relu(leati_import *x) {
    set(x, with_key(x, "ThresholdedReLU", "theta", (double)leati_import_real(x, "alpha", 1)), true);
}

static void read_gelu(leati_import *x) {
    const leati_view view = any_view(x);
    const bool approximate = strcmp(leati_import_string(x, "approximate", "none"), "tanh") == 0;
    json_t *options = json_pack("{s:b}", "approximate", (int)approximate);
    const leati_source source = leati_import_operation(x, "Gelu", json_pack("[o]", leati_import_argument(0)),
                                                       options, 1, &view.source);
    set(x, leati_view_with(x, &view, source), false);
}

static leati_view clipped(leati_import *x, const leati_view *view, double low, double high) {
    json_t *options = json_pack("{s:o, s:o}", "x_min", leati_json_real(low), "x_max", leati_json_real(high));
    return leati_view_with(x, view,
                           leati_import_operation(x, "Clip", json_pack("[o]", leati_import_argument(0)),
                                                  options, 1, &view->source));
}

/* max(0, min(1, alpha x + beta)) */
static void read_hard_sigmoid(leati_import *x) {
    const float alpha = leati_import_real(x, "alpha", 0.2f), beta = leati_import_real(x, "beta", 0.5f);
    leati_view view = any_view(x);
    if (beta == 0.5f && fabsf(alpha - 1.0f / 6) < 1e-7f) {
        set(x, leati_import_activation(x, "hard_sigmoid3", &view), true);
        return;
    }
    view = leati_import_with_number(x, "Multiply", &view, (double)alpha, false);
    view = leati_import_with_number(x, "Add", &view, (double)beta, false);
    set(x, clipped(x, &view, 0, 1), true);
}

static bool bound(leati_import *x, const char *name, int index, double *out) {
    const leati_import_attr *attr = leati_import_attr_of(x->node, name);
    const leati_import_tensor *tensor = attr ? NULL : leati_import_constant_in(x, index, name);
    if (attr) *out = (double)attr->real;
    if (tensor && tensor->count == 1) *out = leati_import_number(tensor, 0);
    if (tensor && tensor->count != 1) leati_import_refuse(x, "%s: expected one number", name);
    return attr || tensor;
}

static void read_clip(leati_import *x) {
    double low = -INFINITY, high = INFINITY;
    const leati_view view = any_view(x);
    (void)bound(x, "min", 1, &low);
    (void)bound(x, "max", 2, &high);
    if (low == 0 && high > 0) {
        json_t *config = isinf(high) ? json_object() : json_pack("{s:f}", "max_value", high);
        set(x, leati_view_with(x, &view, leati_import_layer(x, "ReLU", config, 1, &view.source)), true);
        return;
    }
    leati_view out = view;
    if (isfinite(low) && isfinite(high))
        out = clipped(x, &view, low, high);
    else if (isfinite(low))
        out = leati_import_with_number(x, "Maximum", &view, low, false);
    else if (isfinite(high))
        out = leati_import_with_number(x, "Minimum", &view, high, false);
    set(x, out, low >= 0);
}

/* One slope for each channel, or one for all. */
static void read_prelu(leati_import *x) {
    leati_import_value *value = leati_import_need(x, 0);
    const leati_import_tensor *slope = leati_import_constant_in(x, 1, "slope");
    const int rank = value->view_count > 0 ? value->views[0].rank : 0;
    const leati_view view = rank > 2 ? leati_import_channels_last(x, value) : leati_import_natural(x, value);
    if (!leati_import_ok(x) || !slope) return;
    const int64_t channels = view.shape.dims[view.shape.rank - 1];
    if (slope->count != 1 &&
        (slope->count != channels || slope->dims[slope->rank == rank ? 1 : 0] != channels)) {
        leati_import_refuse(x, "expected one slope, or one for each of the %lld channels",
                            (long long)channels);
        return;
    }
    leati_import_weight weight = leati_import_weight_of(slope);
    weight.rank = 1, weight.dims[0] = channels, weight.perm[0] = 0;
    if (slope->count == 1 && channels > 1) {
        float *numbers = leati_import_memory(x, channels, sizeof *numbers);
        for (int64_t i = 0; numbers && i < channels; ++i) numbers[i] = (float)leati_import_number(slope, 0);
        weight.numbers = numbers;
    }
    json_t *shared = json_array();
    for (int i = 1; shared && i + 1 < view.shape.rank; ++i) leati_import_append(&shared, json_integer(i));
    json_t *config = json_pack("{s:o}", "shared_axes", shared);
    const leati_source source = leati_import_weighted(x, "PReLU", config, 1, &view.source, 1, &weight);
    set(x, leati_view_with(x, &view, source), false);
}

/* ---- Softmax ---- */

static void read_softmax(leati_import *x) {
    const bool log = strcmp(x->node->op, "LogSoftmax") == 0;
    leati_import_value *value = leati_import_need(x, 0);
    const leati_view view = leati_import_settle(x, value, NULL);
    if (!leati_import_ok(x)) return;
    const int axis =
        leati_import_axis(x, leati_import_int(x, "axis", x->file->opset < 13 ? 1 : -1), view.rank);
    if (x->file->opset < 13 && axis != view.rank - 1)
        for (int i = axis + 1; i < view.rank; ++i)
            if (leati_view_size(&view, i).count != 1)
                leati_import_refuse(x, "softmax over several axes, as before opset 13, is not supported");
    const int stored = leati_import_stored(x, &view, axis);
    leati_source source;
    if (!log && stored == view.shape.rank - 1) {
        set(x, leati_import_activation(x, "softmax", &view), true);
        return;
    }
    if (log)
        source = leati_import_operation(x, "LogSoftmax", json_pack("[o]", leati_import_argument(0)),
                                        json_pack("{s:i}", "axis", stored), 1, &view.source);
    else
        source = leati_import_layer(x, "Softmax", json_pack("{s:i}", "axis", stored), 1, &view.source);
    set(x, leati_view_with(x, &view, source), !log);
}

/* ---- Functions of several tensors ---- */

static bool is_integer(const leati_import_value *value) {
    return value->type != 0 && !leati_import_is_real(value->type);
}

static void read_function(leati_import *x) {
    leati_import_value *values[] = {leati_import_need(x, 0), leati_import_need(x, 1)};
    const char *name = leati_import_operator_of(x->node->op)->detail;
    if (!leati_import_ok(x)) return;
    const bool division = strcmp(x->node->op, "Div") == 0,
               integers = is_integer(values[0]) && is_integer(values[1]);
    leati_view out = leati_import_function(x, name, 2, values);
    if (division && integers) out = leati_import_unary(x, "Trunc", &out);
    leati_import_value *made =
        set(x, out, strcmp(x->node->op, "Add") == 0 && values[0]->positive && values[1]->positive);
    if (made) made->type = values[values[0]->constant ? 1 : 0]->type;
}

/* A comparison gives 0 or 1. */
static void read_comparison(leati_import *x) {
    leati_import_value *values[] = {leati_import_need(x, 0), leati_import_need(x, 1)};
    if (!leati_import_ok(x)) return;
    const leati_view out = leati_import_function(x, leati_import_operator_of(x->node->op)->detail, 2, values);
    leati_import_value *made = set(x, out, true);
    if (made) made->type = LEATI_IMPORT_BOOL;
}

/* Min, Max, Sum and Mean of any number of tensors. */
static void read_list(leati_import *x) {
    const char *name = leati_import_operator_of(x->node->op)->detail;
    leati_import_value sum = *leati_import_need(x, 0);
    for (int i = 1; i < x->node->input_count && leati_import_ok(x); ++i) {
        leati_import_value *values[] = {&sum, leati_import_need(x, i)};
        if (values[0]->constant && leati_import_ok(x) && values[1]->constant)
            leati_import_refuse(x, "expected the tensors before the constants");
        const leati_view view = leati_import_function(x, name, 2, values);
        sum = (leati_import_value){.type = sum.type, .view_count = 1, .views = {view}, .made = true};
    }
    if (!leati_import_ok(x) || sum.view_count == 0) return;
    leati_view out = sum.views[0];
    if (strcmp(x->node->op, "Mean") == 0)
        out = leati_import_with_number(x, "Multiply", &out, 1.0 / x->node->input_count, false);
    set(x, out, false);
}

static void read_where(leati_import *x) {
    leati_import_value *values[] = {leati_import_need(x, 0), leati_import_need(x, 1),
                                    leati_import_need(x, 2)};
    if (!leati_import_ok(x)) return;
    const leati_view out = leati_import_function(x, "Where", 3, values);
    leati_import_value *made = set(x, out, false);
    if (made) made->type = values[1]->type;
}

/* x ^ n, for which a number n is best. */
static void read_pow(leati_import *x) {
    leati_import_value *values[] = {leati_import_need(x, 0), leati_import_need(x, 1)};
    if (!leati_import_ok(x)) return;
    const leati_import_tensor *n = values[1]->constant;
    const leati_view view = any_view(x);
    if (n && n->count == 1 && leati_import_number(n, 0) == 2)
        set(x, leati_import_unary(x, "Square", &view), true);
    else
        set(x, leati_import_function(x, "Power", 2, values), false);
}

/* A cast to integers rounds towards zero; integers and truth values are numbers in leat. */
static void read_cast(leati_import *x) {
    leati_import_value *value = leati_import_need(x, 0);
    const int to = (int)leati_import_int(x, "to", LEATI_IMPORT_FLOAT);
    if (!leati_import_ok(x)) return;
    leati_import_alias(x, 0, value);
    leati_import_value *out = leati_import_find(x, x->node->outputs[0]);
    const leati_view view = any_view(x);
    if (to == LEATI_IMPORT_BOOL && value->type != LEATI_IMPORT_BOOL)
        out = set(x, leati_import_with_number(x, "NotEqual", &view, 0, false), true);
    else if (!leati_import_is_real(to) && leati_import_is_real(value->type))
        out = set(x, leati_import_unary(x, "Trunc", &view), false);
    if (out) out->type = to;
}

const leati_import_operator leati_import_element_operators[] = {
    {"Relu", read_activation, "relu"},
    {"Sigmoid", read_activation, "sigmoid"},
    {"Tanh", read_activation, "tanh"},
    {"Softplus", read_activation, "softplus"},
    {"Softsign", read_activation, "softsign"},
    {"Selu", read_activation, "selu"},
    {"Mish", read_activation, "mish"},
    {"HardSwish", read_unary, "HardSilu"},
    {"Abs", read_unary, "Abs"},
    {"Neg", read_unary, "Negative"},
    {"Exp", read_unary, "Exp"},
    {"Log", read_unary, "Log"},
    {"Sqrt", read_unary, "Sqrt"},
    {"Reciprocal", read_unary, "Reciprocal"},
    {"Erf", read_unary, "Erf"},
    {"Floor", read_unary, "Floor"},
    {"Ceil", read_unary, "Ceil"},
    {"Round", read_unary, "Round"},
    {"Sign", read_unary, "Sign"},
    {"Sin", read_unary, "Sin"},
    {"Cos", read_unary, "Cos"},
    {"Tan", read_unary, "Tan"},
    {"Asin", read_unary, "Arcsin"},
    {"Acos", read_unary, "Arccos"},
    {"Atan", read_unary, "Arctan"},
    {"Sinh", read_unary, "Sinh"},
    {"Cosh", read_unary, "Cosh"},
    {"Asinh", read_unary, "Arcsinh"},
    {"Acosh", read_unary, "Arccosh"},
    {"Atanh", read_unary, "Arctanh"},
    {"Not", read_unary, "LogicalNot"},
    {"IsNaN", read_unary, "Isnan"},
    {"IsInf", read_unary, "Isinf"},
    {"Identity", read_identity, NULL},
    {"Dropout", read_identity, NULL},
    {"Elu", read_elu, NULL},
    {"Celu", read_celu, NULL},
    {"LeakyRelu", read_leaky_relu, NULL},
    {"ThresholdedRelu", read_thresholded_relu, NULL},
    {"PRelu", read_prelu, NULL},
    {"Gelu", read_gelu, NULL},
    {"HardSigmoid", read_hard_sigmoid, NULL},
    {"Clip", read_clip, NULL},
    {"Softmax", read_softmax, NULL},
    {"LogSoftmax", read_softmax, NULL},
    {"Add", read_function, "Add"},
    {"Sub", read_function, "Subtract"},
    {"Mul", read_function, "Multiply"},
    {"Div", read_function, "Divide"},
    {"Mod", read_function, "Mod"},
    {"Equal", read_comparison, "Equal"},
    {"Less", read_comparison, "Less"},
    {"Greater", read_comparison, "Greater"},
    {"LessOrEqual", read_comparison, "LessEqual"},
    {"GreaterOrEqual", read_comparison, "GreaterEqual"},
    {"And", read_comparison, "LogicalAnd"},
    {"Or", read_comparison, "LogicalOr"},
    {"Xor", read_comparison, "LogicalXor"},
    {"Min", read_list, "Minimum"},
    {"Max", read_list, "Maximum"},
    {"Sum", read_list, "Add"},
    {"Mean", read_list, "Add"},
    {"Pow", read_pow, NULL},
    {"Where", read_where, NULL},
    {"Cast", read_cast, NULL},
    {.name = NULL},
};
