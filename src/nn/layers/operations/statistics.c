/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops.nn for distributions: normalizations, crossentropies, classes; quantiles of the normal
 * distribution.  Room: nn. */
#include <math.h>

#include "base/memory.h"
#include "engine/graph/callee.h"
#include "nn/layers/operations/operations.h"
#include "nn/losses/types.h"

/* ---- Normalizations ---- */

static leati_value inverse_root(leati_graph *g, leati_value variance, double epsilon) {
    const leati_eltwise power = {.function = LEATI_FN_POW, .a = -0.5f};
    return leati_eltwise_of(g, leati_linear(g, variance, 1, (float)epsilon), power);
}

/* Returns a vector, or a tensor of the axes from `axis` on, in a shape that broadcasts to x. */
static leati_value along(const leati_operands *o, const char *name, const leati_desc *x, int axis) {
    leati_value value = leati_operand(o, name);
    const leati_desc own = *leati_graph_desc(o->g, value);
    int64_t dims[LEAT_MAX_RANK];
    if (own.rank != 1) return value;
    for (int i = 0; i < x->rank; ++i) dims[i] = i == axis ? own.shape[0] : 1;
    return leati_reshape(o->g, value, x->rank, dims);
}

/* (x - mean) / sqrt(variance + epsilon) scale + offset with given moments */
static void lower_batch_norm(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(g, x);
    const int axis = leati_operand_axis(o, "axis", desc.rank, -1);
    const double epsilon = leati_operand_number_or(o, "epsilon", 1e-3);
    if (axis < 0) return;
    x = leati_mul(g, leati_sub(g, x, along(o, "mean", &desc, axis)),
                  inverse_root(g, along(o, "variance", &desc, axis), epsilon));
    if (leati_operand_json(o, "scale")) x = leati_mul(g, x, along(o, "scale", &desc, axis));
    if (leati_operand_json(o, "offset")) x = leati_add(g, x, along(o, "offset", &desc, axis));
    o->outputs[0] = x;
}

/* Normalizes by the moments over axes; gamma and beta have these axes. */
static void lower_layer_norm(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    const leati_desc desc = *leati_graph_desc(g, x);
    const double epsilon = leati_operand_number_or(o, "epsilon", (double)LEATI_EPSILON);
    const uint32_t axes = leati_operand_json(o, "axis") ? leati_operand_axes(o, "axis", desc.rank)
                                                        : UINT32_C(1) << (desc.rank > 0 ? desc.rank - 1 : 0);
    int64_t dims[LEAT_MAX_RANK];
    for (int i = 0; i < desc.rank; ++i) dims[i] = axes >> i & 1u ? desc.shape[i] : 1;
    leati_value centered = leati_sub(g, x, leati_reduce_of(g, LEATI_REDUCE_MEAN, x, axes, true));
    leati_value variance =
        leati_reduce_of(g, LEATI_REDUCE_MEAN, leati_function_of(g, centered, LEATI_FN_SQUARE), axes, true);
    const bool scales = leati_operand_flag(o, "rms_scaling");
    x = leati_mul(g, scales ? x : centered, inverse_root(g, variance, epsilon));
    if (leati_operand_json(o, "gamma"))
        x = leati_mul(g, x, leati_reshape(g, leati_operand(o, "gamma"), desc.rank, dims));
    if (!scales && leati_operand_json(o, "beta"))
        x = leati_add(g, x, leati_reshape(g, leati_operand(o, "beta"), desc.rank, dims));
    o->outputs[0] = x;
}

/* ---- Crossentropies, one number for each distribution ---- */

/* The crossentropies are those of the losses.  As in Keras, the output of a softmax or sigmoid carries its logits. */
static void lower_binary_crossentropy(leati_operands *o) {
    const leati_measure_options options = {.from_logits = leati_operand_flag(o, "from_logits"),
                                           .as_keras3 = true};
    o->outputs[0] =
        leati_binary_values(o->g, &options, leati_operand(o, "target"), leati_operand(o, "output"));
}

enum { SHARES, CLASSES };

static void lower_crossentropy(leati_operands *o) {
    const leati_measure_options options = {.from_logits = leati_operand_flag(o, "from_logits"),
                                           .axis = leati_operand_int(o, "axis", -1),
                                           .ignore_class = INT64_MIN,
                                           .as_keras3 = true};
    const bool classes = o->operation->detail == CLASSES;
    const leati_loss_type *loss =
        classes ? &leati_loss_sparse_categorical_crossentropy : &leati_loss_categorical_crossentropy;
    leati_value target = leati_operand(o, "target");
    if (classes) target = leati_cast(o->g, target, LEAT_I32, 1);
    o->outputs[0] = loss->measure.lower(o->g, &options, target, leati_operand(o, "output"));
}

/* ---- Classes ---- */

/* Marks the classes that occur. */
static void lower_multi_hot(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "inputs");
    const int rank = leati_graph_desc(g, x)->rank + 1;
    const int64_t depth = leati_operand_int(o, "num_classes", 0);
    const int axis = rank <= LEAT_MAX_RANK ? leati_operand_axis(o, "axis", rank, -1) : -1;
    if (axis < 0 || depth < 1 || rank < 3) {
        o->outputs[0] =
            leati_operand_fail(o, LEAT_ENOTSUP, "expected num_classes, and a list for each sample");
        return;
    }
    leati_value y = leati_operation_one_hot(g, x, depth, axis);
    o->outputs[0] = leati_reduce_of(g, LEATI_REDUCE_MAX, y, 2u, false);
}

static void lower_in_top_k(leati_operands *o) {
    leati_value targets = leati_cast(o->g, leati_operand(o, "targets"), LEAT_I32, 1);
    o->outputs[0] =
        leati_in_top_k(o->g, leati_operand(o, "predictions"), targets, leati_operand_int(o, "k", 1));
}

/* ---- The inverse of the error function ---- */

/* Source: Winitzki's approximation, and four steps of Newton's method. */
static double inverse_erf(double x) {
    if (!(fabs(x) < 1)) return x == 1 ? INFINITY : x == -1 ? -INFINITY : NAN;
    const double slope = 1.12837916709551257, a = 0.147, log_rest = log1p(-x * x);
    const double half = 2 / (LEATI_PI * a) + log_rest / 2;
    double y = copysign(sqrt(sqrt(half * half - log_rest / a) - half), x);
    for (int i = 0; i < 4; ++i) y -= (erf(y) - x) / (slope * exp(-y * y));
    return y;
}

static leat_status erfinv_forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const float *x = run->args[0];
    float *y = run->results[0];
    const int64_t count = leati_desc_count(&run->inputs[0]);
    (void)callee, (void)err;
    for (int64_t i = 0; i < count; ++i) y[i] = (float)inverse_erf((double)x[i]);
    return LEAT_OK;
}

static leat_status erfinv_backward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    const float *y = run->results[0], *dy = run->diff_results[0];
    float *dx = run->diff_args[0];
    const int64_t count = leati_desc_count(&run->inputs[0]);
    (void)callee, (void)err;
    for (int64_t i = 0; i < count; ++i)
        dx[i] = (float)((double)dy[i] * 0.88622692545275801 * exp((double)y[i] * (double)y[i]));
    return LEAT_OK;
}

static const leati_callee erfinv = {.output_count = 1,
                                    .infer = leati_callee_infer_like,
                                    .forward = erfinv_forward,
                                    .backward = erfinv_backward};

static void lower_erfinv(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    leati_graph_call(o->g, &erfinv, false, 0, 1, &x, o->outputs);
}

#define NN "ops.nn"

const leati_operation leati_statistic_operations[] = {
    {"BatchNorm", NN, "x mean variance offset scale axis epsilon", lower_batch_norm, 0},
    {"LayerNorm", NN, "x gamma beta axis epsilon rms_scaling", lower_layer_norm, 0},
    {"BinaryCrossentropy", NN, "target output from_logits", lower_binary_crossentropy, 0},
    {"CategoricalCrossentropy", NN, "target output from_logits axis", lower_crossentropy, SHARES},
    {"SparseCategoricalCrossentropy", NN, "target output from_logits axis", lower_crossentropy, CLASSES},
    {"MultiHot", NN, "inputs num_classes axis dtype sparse", lower_multi_hot, 0},
    {"InTopK", "ops.math", "targets predictions k", lower_in_top_k, 0},
    {"Erfinv", "ops.math", "x", lower_erfinv, 0},
    {.name = NULL},
};
