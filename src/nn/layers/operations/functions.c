/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops.nn and keras.activations: activations, softmax, pooling, one-hot vectors.  Room: nn. */
#include <math.h>
#include <string.h>

#include "engine/op_semantics/geometry.h"
#include "nn/activations/activation.h"
#include "nn/layers/operations/operations.h"
#include "nn/layers/spatial.h"

static void lower_activation(leati_operands *o) {
    leati_activation activation = {.kind = (leati_activation_kind)o->operation->detail};
    o->outputs[0] = leati_activation_lower(&activation, o->g, leati_operand(o, "x"));
}

/* Checks that a number of the function has the only value that leat computes. */
static bool is_only(leati_operands *o, const char *name, double preset, double only) {
    double value = preset;
    (void)leati_operand_number(o, name, &value);
    if (value == only) return true;
    o->outputs[0] = leati_operand_fail(o, LEAT_ENOTSUP, "%s: expected %g, received %g", name, only, value);
    return false;
}

/* Computes an activation whose option has its default. */
static void lower_shrink(leati_operands *o) {
    if (is_only(o, "threshold", 0.5, 0.5)) lower_activation(o);
}

static void lower_squareplus(leati_operands *o) {
    if (is_only(o, "b", 4, 4)) lower_activation(o);
}

/* Computes elu and leaky_relu, with their slopes. */
static void lower_elu(leati_operands *o) {
    double alpha = 1;
    (void)leati_operand_number(o, "alpha", &alpha);
    leati_eltwise f = {.function = LEATI_FN_ELU, .a = (float)alpha};
    o->outputs[0] = leati_eltwise_of(o->g, leati_operand(o, "x"), f);
}

/* x above 0, and alpha (e^(x / alpha) - 1) elsewhere */
static void lower_celu(leati_operands *o) {
    double alpha = 1;
    leati_graph *g = o->g;
    (void)leati_operand_number(o, "alpha", &alpha);
    leati_value x = leati_operand(o, "x");
    leati_value y = leati_function_of(g, leati_linear(g, x, (float)(1 / alpha), 0), LEATI_FN_ELU);
    o->outputs[0] = leati_linear(g, y, (float)alpha, 0);
}

static void lower_leaky_relu(leati_operands *o) {
    double slope = 0.2;
    (void)leati_operand_number(o, "negative_slope", &slope);
    leati_eltwise f = {.function = LEATI_FN_RELU, .a = (float)slope, .b = INFINITY};
    o->outputs[0] = leati_eltwise_of(o->g, leati_operand(o, "x"), f);
}

/* Computes keras.activations.relu, with its options. */
static void lower_relu(leati_operands *o) {
    double slope = 0, most = INFINITY, threshold = 0;
    (void)leati_operand_number(o, "negative_slope", &slope);
    (void)leati_operand_number(o, "max_value", &most);
    (void)leati_operand_number(o, "threshold", &threshold);
    leati_eltwise f = {LEATI_FN_RELU, (float)slope, (float)most, (float)threshold};
    o->outputs[0] = leati_eltwise_of(o->g, leati_operand(o, "x"), f);
}

/* x where it is above the threshold, and 0 elsewhere */
static void lower_threshold(leati_operands *o) {
    double threshold = 0;
    leati_graph *g = o->g;
    (void)leati_operand_number(o, "threshold", &threshold);
    if (!is_only(o, "default_value", 0, 0)) return;
    leati_value x = leati_operand(o, "x");
    leati_value above = leati_binary_of(g, LEATI_GREATER, x, leati_scalar(g, (float)threshold));
    o->outputs[0] = leati_mul(g, x, above);
}

/* Computes GELU, or its approximation. */
static void lower_gelu(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    o->outputs[0] = leati_operand_flag(o, "approximate") ? leati_gelu_approximate(o->g, x)
                                                         : leati_function_of(o->g, x, LEATI_FN_GELU);
}

static void lower_softmax(leati_operands *o) {
    leati_value x = leati_operand(o, "x");
    int rank = leati_graph_desc(o->g, x)->rank;
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
        o->outputs[0] = axis == rank - 1
                            ? leati_activation_lower(&activation, o->g, x)
                            : leati_operand_fail(o, LEAT_ENOTSUP, "axis: expected the last axis");
}

/* Divides x by its norm over an axis, but at least by epsilon. */
static void lower_normalize(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "x");
    double epsilon = 1e-7;
    (void)leati_operand_number(o, "epsilon", &epsilon);
    int axis = leati_operand_axis(o, "axis", leati_graph_desc(g, x)->rank, -1);
    if (axis < 0 || !is_only(o, "order", 2, 2)) return;
    leati_value squares = leati_function_of(g, x, LEATI_FN_SQUARE);
    leati_value sum = leati_reduce_of(g, LEATI_REDUCE_SUM, squares, UINT32_C(1) << axis, true);
    leati_value least = leati_binary_of(g, LEATI_MAX, sum, leati_scalar(g, (float)(epsilon * epsilon)));
    leati_eltwise inverse = {.function = LEATI_FN_POW, .a = -0.5f};
    o->outputs[0] = leati_mul(g, x, leati_eltwise_of(g, least, inverse));
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
    leati_value y = leati_one_hot(o->g, leati_cast(o->g, x, LEAT_I32, 1), classes);
    int32_t perm[LEAT_MAX_RANK];
    for (int i = 0; i < rank; ++i) perm[i] = i == axis ? rank - 1 : i < axis ? i : i - 1;
    o->outputs[0] = axis == rank - 1 ? y : leati_transpose(o->g, y, perm);
}

/* The options of a window that slides over an image. */
typedef struct window_options {
    leati_ints kernel, strides, dilation;
    int32_t data_format;
    bool same;
} window_options;

/* Makes the list as long as the image has axes: one number stands for all axes.  Returns false if that fails. */
static bool spread_over(leati_ints *list, int spatial) {
    for (int i = 0; i < spatial; ++i) {
        if (list->count == 1) list->values[i] = list->values[0];
        if ((list->count != 1 && i >= list->count) || list->values[i] < 1) return false;
    }
    list->count = spatial;
    return true;
}

/* Reads the options for an image with that number of axes.  After a failure it returns false. */
static bool read_window(leati_operands *o, const char *size_key, int spatial, window_options *w) {
    const char *format = leati_operand_text(o, "data_format", "channels_last");
    *w = (window_options){.same = strcmp(leati_operand_text(o, "padding", "valid"), "same") == 0};
    w->data_format = strcmp(format, "channels_first") == 0 ? LEATI_CHANNELS_FIRST : LEATI_CHANNELS_LAST;
    w->kernel.count = leati_operand_ints(o, size_key, w->kernel.values);
    w->strides.count = leati_operand_ints(o, "strides", w->strides.values);
    w->dilation = (leati_ints){.count = 1, .values = {1}};
    if (leati_operation_has(o->operation, "dilation_rate") && leati_operand_json(o, "dilation_rate"))
        w->dilation.count = leati_operand_ints(o, "dilation_rate", w->dilation.values);
    if (w->strides.count == -1) w->strides = w->kernel;
    if (spatial >= 1 && spatial <= 3 && spread_over(&w->kernel, spatial) &&
        spread_over(&w->strides, spatial) && spread_over(&w->dilation, spatial))
        return true;
    o->outputs[0] = leati_operand_fail(o, LEAT_EINVAL, "expected an image, %s and strides", size_key);
    return false;
}

static void lower_pooling(leati_operands *o) {
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "inputs");
    window_options w;
    if (!read_window(o, "pool_size", leati_graph_desc(g, x)->rank - 2, &w)) return;
    x = leati_image_value(g, x, w.data_format);
    leati_slide slide = {&w.kernel, &w.strides, NULL, w.same ? LEATI_PADDING_SAME : LEATI_PADDING_VALID};
    leati_attrs attrs = {.pooling = {.window = leati_slide_window(&slide, leati_graph_desc(g, x)),
                                     .kind = (leati_pooling)o->operation->detail}};
    leati_value y = leati_graph_node(g, LEATI_OP_POOLING, &attrs, 1, &x, NULL);
    o->outputs[0] = leati_image_value_back(g, y, w.data_format);
}

/* The pixels of each window become the channels of one pixel, in the order rows, columns, channels. */
static void lower_extract_patches(leati_operands *o) {
    static const int32_t batch_first[] = {1, 0, 2};
    leati_graph *g = o->g;
    leati_value x = leati_operand(o, "images");
    int spatial = leati_graph_desc(g, x)->rank - 2;
    window_options w;
    if (!read_window(o, "size", spatial, &w)) return;
    x = leati_image_value(g, x, w.data_format);
    leati_slide slide = {&w.kernel, &w.strides, &w.dilation,
                         w.same ? LEATI_PADDING_SAME : LEATI_PADDING_VALID};
    const leati_desc *desc = leati_graph_desc(g, x);
    leati_attrs attrs = {.conv = {.window = leati_slide_window(&slide, desc), .groups = 1}};
    leati_geometry geometry;
    leat_error err = {0};
    leat_status status = leati_geometry_make(&geometry, &attrs.conv.window, desc, &err);
    if (status != LEAT_OK) {
        o->outputs[0] = leati_operand_fail(o, status, "%s", err.message);
        return;
    }
    int64_t dims[LEAT_MAX_RANK] = {geometry.batch};
    for (int i = 0; i < spatial; ++i) dims[1 + i] = geometry.out[i + 3 - spatial];
    dims[1 + spatial] = geometry.taps * geometry.channels;
    leati_value patches = leati_graph_node(g, LEATI_OP_PATCHES, &attrs, 1, &x, NULL);
    leati_value y = leati_reshape(g, leati_transpose(g, patches, batch_first), spatial + 2, dims);
    o->outputs[0] = leati_image_value_back(g, y, w.data_format);
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
    {"MaxPool", NN, "inputs pool_size strides padding data_format", lower_pooling, LEATI_POOL_MAX},
    {"AveragePool", NN, "inputs pool_size strides padding data_format", lower_pooling, LEATI_POOL_AVERAGE},
    {"ExtractPatches", "ops.image", "images size strides dilation_rate padding data_format",
     lower_extract_patches, 0},
    {.name = NULL},
};
