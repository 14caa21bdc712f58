/* SPDX-License-Identifier: Apache-2.0 */
/* Crossentropies, with the numerics of Keras 2.3.1 on TensorFlow 2.1 and of current Keras on TensorFlow.  In 2.3.1, if
 * y_pred is the output of a sigmoid, or of a softmax of rank 2 (Keras computes a softmax of another rank as exp / sum),
 * the loss is computed from the logits, without clipping; otherwise the probabilities are clipped.  In current Keras
 * the tensor of a softmax or sigmoid carries its logits, whatever its rank and axis, and every crossentropy computes
 * from them: binary_crossentropy takes a softmax's logits for those of a sigmoid, and the reverse.  Where clipped
 * probabilities come from a softmax, SOFTMAX_XENT computes the loss and its gradient with respect to the logits. */
#include "nn/losses/types.h"

#include "engine/graph/build.h"

/* Returns the op that produced x and its node; LEATI_OP_COUNT if no op did. */
static leati_op producer_of(const leati_graph *g, leati_value x, const leati_node **node) {
    int32_t producer = x >= 0 ? leati_graph_value(g, x)->producer : -1;
    if (producer < 0) return LEATI_OP_COUNT;
    *node = leati_graph_node_at(g, producer);
    return (*node)->op;
}

/* Returns the logits if y_pred is the output of a softmax (of one axis); otherwise LEATI_NONE. */
static leati_value softmax_logits(const leati_graph *g, leati_value y_pred, bool as_keras3) {
    const leati_node *node;
    bool softmax = producer_of(g, y_pred, &node) == LEATI_OP_SOFTMAX && !node->attrs.softmax.log;
    bool last_of_two = softmax && leati_graph_desc(g, y_pred)->rank == 2 && node->attrs.softmax.axis == 1;
    return softmax && (as_keras3 || last_of_two) ? node->inputs[0] : LEATI_NONE;
}

static leati_value sigmoid_logits(const leati_graph *g, leati_value y_pred) {
    const leati_node *node;
    bool sigmoid = producer_of(g, y_pred, &node) == LEATI_OP_ELTWISE;
    return sigmoid && node->attrs.eltwise.function == LEATI_FN_SIGMOID ? node->inputs[0] : LEATI_NONE;
}

/* Returns the logits from which a crossentropy of classes (binary: of yes and no) is computed; LEATI_NONE if it is
 * computed from the probabilities. */
static leati_value logits_of(const leati_graph *g, const leati_measure_options *options, leati_value y_pred,
                             bool binary) {
    leati_value softmax = softmax_logits(g, y_pred, options->as_keras3), sigmoid = sigmoid_logits(g, y_pred);
    if (options->as_keras3) {
        leati_value carried = softmax != LEATI_NONE ? softmax : sigmoid;
        return carried == LEATI_NONE && options->from_logits ? y_pred : carried;
    }
    if (options->from_logits) return y_pred;
    return binary ? sigmoid : softmax;
}

/* Returns the logits, with the shape of y_pred, if y_pred is made by a softmax over its last axis, perhaps behind
 * layers that only change its shape; otherwise LEATI_NONE. */
static leati_value hidden_logits(leati_graph *g, leati_value y_pred) {
    const leati_desc desc = *leati_graph_desc(g, y_pred);
    const leati_node *node = NULL;
    leati_op op = producer_of(g, y_pred, &node);
    for (leati_value x = y_pred; op == LEATI_OP_RESHAPE; op = producer_of(g, x, &node)) {
        x = node->inputs[0];
        const leati_desc *before = leati_graph_desc(g, x);
        if (before->rank == 0 || before->shape[before->rank - 1] != desc.shape[desc.rank - 1])
            return LEATI_NONE;
    }
    if (!node || op != LEATI_OP_SOFTMAX || node->attrs.softmax.log) return LEATI_NONE;
    leati_value logits = node->inputs[0];
    if (node->attrs.softmax.axis != leati_graph_desc(g, logits)->rank - 1) return LEATI_NONE;
    return leati_reshape(g, logits, desc.rank, desc.shape);
}

static leati_value clipped(leati_graph *g, leati_value p) {
    return leati_clip(g, p, LEATI_EPSILON, 1.0f - LEATI_EPSILON);
}

/* Like Keras 2.3.1, the callers take the size of axis 1 as the number of classes, even if the classes are on another
 * axis; like current Keras, that of the last axis. */
leati_value leati_smoothed_labels(leati_graph *graph, leati_value y_true, double smoothing, float classes) {
    if (!(smoothing > 0.0)) return y_true;
    float s = (float)smoothing;
    return leati_linear(graph, y_true, 1.0f - s, s / classes);
}

static leati_value as_float(leati_graph *g, leati_value x) {
    return leati_graph_desc(g, x)->dtype == LEAT_F32 ? x : leati_cast(g, x, LEAT_F32, 1.0f);
}

/* Moves an axis of x to the end. */
static leati_value axis_last(leati_graph *g, leati_value x, int64_t axis) {
    int rank = leati_graph_desc(g, x)->rank;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
        return leati_graph_fail(g, LEAT_ESHAPE,
                                "crossentropy: axis %d is out of range for a prediction of rank %d",
                                (int)axis, rank);
    }
    if (axis == rank - 1) return x;
    int32_t perm[LEAT_MAX_RANK];
    for (int i = 0, next = 0; i < rank; ++i) {
        if (i != axis) perm[next++] = i;
    }
    perm[rank - 1] = (int32_t)axis;
    return leati_transpose(g, x, perm);
}

static leati_value categorical(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                               leati_value y_pred) {
    const leati_desc *desc = leati_graph_desc(g, y_true);
    float classes = desc->rank > 1 ? (float)desc->shape[options->as_keras3 ? desc->rank - 1 : 1] : 1.0f;
    leati_value labels =
        axis_last(g, leati_smoothed_labels(g, y_true, options->label_smoothing, classes), options->axis);
    leati_value logits = logits_of(g, options, y_pred, false);
    if (logits != LEATI_NONE)
        return leati_softmax_xent(g, axis_last(g, logits, options->axis), labels, LEATI_XENT_EXACT);
    y_pred = axis_last(g, y_pred, options->axis);
    logits = hidden_logits(g, y_pred);
    if (logits != LEATI_NONE) return leati_softmax_xent(g, logits, labels, LEATI_XENT_CLIPPED);
    leati_value sum = leati_reduce_last(g, LEATI_REDUCE_SUM, y_pred, true);
    leati_value log = leati_function_of(g, clipped(g, leati_div(g, y_pred, sum)), LEATI_FN_LOG);
    return leati_linear(g, leati_sum_last(g, leati_mul(g, labels, log)), -1.0f, 0.0f);
}

leati_value leati_class_rows(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                             leati_value like) {
    leati_desc desc = *leati_graph_desc(g, like);
    int64_t classes = desc.rank > 0 ? desc.shape[desc.rank - 1] : 1;
    leati_value kept = leati_kept_classes(g, options, y_true);
    if (kept != LEATI_NONE) y_true = leati_mul(g, as_float(g, y_true), kept);
    leati_value numbers = leati_reshape(g, y_true, desc.rank - 1, desc.shape);
    return leati_one_hot(g, numbers, classes);
}

leati_value leati_kept_classes(leati_graph *g, const leati_measure_options *options, leati_value y_true) {
    if (options->ignore_class == INT64_MIN || y_true < 0) return LEATI_NONE;
    leati_value ignored =
        leati_binary_of(g, LEATI_EQUAL, as_float(g, y_true), leati_scalar(g, (float)options->ignore_class));
    return leati_linear(g, ignored, -1.0f, 1.0f);
}

static leati_value sparse(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                          leati_value y_pred) {
    leati_value logits = logits_of(g, options, y_pred, false);
    leati_xent kind = LEATI_XENT_EXACT;
    if (logits == LEATI_NONE) {
        y_pred = axis_last(g, y_pred, options->axis);
        logits = hidden_logits(g, y_pred);
        kind = logits == LEATI_NONE ? LEATI_XENT_EXACT : LEATI_XENT_NORMALIZED;
        if (logits == LEATI_NONE) logits = leati_function_of(g, clipped(g, y_pred), LEATI_FN_LOG);
    } else {
        logits = axis_last(g, logits, options->axis);
    }
    return leati_softmax_xent(g, logits, leati_class_rows(g, options, y_true, logits), kind);
}

/* Returns t softplus(-x) + (1 - t) softplus(x).  No term cancels for a large |x|,
 * and the gradient is sigmoid(x) - t everywhere. */
static leati_value binary_from_logits(leati_graph *g, leati_value y_true, leati_value x) {
    leati_value miss = leati_function_of(g, leati_linear(g, x, -1.0f, 0.0f), LEATI_FN_SOFTPLUS);
    leati_value alarm = leati_function_of(g, x, LEATI_FN_SOFTPLUS);
    leati_value no = leati_linear(g, y_true, -1.0f, 1.0f);
    return leati_add(g, leati_mul(g, y_true, miss), leati_mul(g, no, alarm));
}

/* Returns -t log(p + e) - (1 - t) log(1 - p + e), with p clipped to [e, 1 - e] and `added` as e.  As in Keras's
 * training step, 1 - p is rounded before e is added.  (Without a gradient, TensorFlow's optimizer computes (1 + e) - p,
 * which is 2.4e-7 at the end and not 2.2e-7.)  Current Keras adds no e. */
static leati_value binary_from_probabilities(leati_graph *g, leati_value y_true, leati_value y_pred,
                                             float added) {
    leati_value p = clipped(g, y_pred);
    leati_value yes = leati_function_of(g, leati_linear(g, p, 1.0f, added), LEATI_FN_LOG);
    leati_value rest = leati_linear(g, leati_linear(g, p, -1.0f, 1.0f), 1.0f, added);
    leati_value no = leati_function_of(g, rest, LEATI_FN_LOG);
    leati_value misses = leati_mul(g, leati_linear(g, y_true, -1.0f, 1.0f), no);
    return leati_linear(g, leati_add(g, leati_mul(g, y_true, yes), misses), -1.0f, 0.0f);
}

leati_value leati_binary_values(leati_graph *g, const leati_measure_options *options, leati_value labels,
                                leati_value y_pred) {
    leati_value logits = logits_of(g, options, y_pred, true);
    float added = options->as_keras3 ? 0.0f : LEATI_EPSILON;
    return logits != LEATI_NONE ? binary_from_logits(g, labels, logits)
                                : binary_from_probabilities(g, labels, y_pred, added);
}

static leati_value binary(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                          leati_value y_pred) {
    leati_value labels = leati_smoothed_labels(g, y_true, options->label_smoothing, 2.0f);
    leati_value values = leati_binary_values(g, options, labels, y_pred);
    return leati_mean_last(g, axis_last(g, values, options->axis));
}

#define FROM_LOGITS                                                                                          \
    {                                                                                                        \
        .key = "from_logits", .kind = LEATI_FIELD_BOOL,                                                      \
        .offset = offsetof(leati_measure_options, from_logits), .preset = "false"                            \
    }
/* A key of Keras 3, and of the sparse metric of Keras 2.3.1. */
#define AXIS                                                                                                 \
    {                                                                                                        \
        .key = "axis", .kind = LEATI_FIELD_INT, .offset = offsetof(leati_measure_options, axis),             \
        .preset = "-1", .later = true                                                                        \
    }

static const leati_field dense_fields[] = {
    FROM_LOGITS,
    AXIS,
    {.key = "label_smoothing",
     .kind = LEATI_FIELD_FLOAT,
     .offset = offsetof(leati_measure_options, label_smoothing),
     .preset = "0"},
    {.key = NULL},
};

static const leati_field sparse_fields[] = {FROM_LOGITS,
                                            AXIS,
                                            {.key = "ignore_class",
                                             .kind = LEATI_FIELD_OPTIONAL_INT,
                                             .offset = offsetof(leati_measure_options, ignore_class),
                                             .preset = "null",
                                             .later = true},
                                            {.key = NULL}};

const leati_loss_type leati_loss_categorical_crossentropy = {
    .measure = {.name = "categorical_crossentropy",
                .class_name = "CategoricalCrossentropy",
                .fields = dense_fields,
                .lower = categorical}};
const leati_loss_type leati_loss_sparse_categorical_crossentropy = {
    .measure = {.name = "sparse_categorical_crossentropy",
                .class_name = "SparseCategoricalCrossentropy",
                .fields = sparse_fields,
                .lower = sparse},
    .sparse = true};
const leati_loss_type leati_loss_binary_crossentropy = {.measure = {.name = "binary_crossentropy",
                                                                    .class_name = "BinaryCrossentropy",
                                                                    .fields = dense_fields,
                                                                    .lower = binary}};
