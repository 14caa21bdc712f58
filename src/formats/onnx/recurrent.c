/* SPDX-License-Identifier: Apache-2.0 */
/* Emits recurrent cells as ONNX's LSTM, GRU and RNN where these compute the same; otherwise as a Scan.
 * Room: formats. */
#include <math.h>
#include <stddef.h>

#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "formats/onnx/exporter.h"

/* ---- Activations ---- */

/* The activations of a node, and their parameters in the order in which the activations consume them. */
typedef struct activations {
    const char *names[3];
    float alphas[3], betas[3];
    int count, alpha_count, beta_count;
} activations;

/* Adds an activation; returns false if ONNX's recurrent ops do not have it. */
static bool add_activation(activations *to, const leati_eltwise *f) {
    const bool linear = f->function == LEATI_FN_LINEAR, hard = f->function == LEATI_FN_HARD_SIGMOID;
    const char *name = NULL;
    switch (f->function) {
    case LEATI_FN_TANH: name = "Tanh"; break;
    case LEATI_FN_SIGMOID: name = "Sigmoid"; break;
    case LEATI_FN_SOFTSIGN: name = "Softsign"; break;
    case LEATI_FN_SOFTPLUS: name = "Softplus"; break;
    case LEATI_FN_ELU: name = "Elu"; break;
    case LEATI_FN_LINEAR: name = "Affine"; break;
    case LEATI_FN_HARD_SIGMOID: name = "HardSigmoid"; break;
    case LEATI_FN_RELU:
        if (f->a == 0 && f->c == 0 && !isfinite(f->b)) name = "Relu";
        break;
    default: break;
    }
    if (!name) return false;
    to->names[to->count++] = name;
    if (linear || hard || f->function == LEATI_FN_ELU) to->alphas[to->alpha_count++] = f->a;
    if (linear || hard) to->betas[to->beta_count++] = f->b;
    return true;
}

/* Lists the activations of a node as ONNX does: f, g, h for LSTM; f, g for GRU; f for RNN. */
static bool list_activations(activations *out, const leati_attrs *attrs) {
    *out = (activations){.count = 0};
    if (attrs->rnn.cell == LEATI_CELL_SIMPLE) return add_activation(out, &attrs->rnn.activation);
    if (!add_activation(out, &attrs->rnn.recurrent_activation)) return false;
    if (!add_activation(out, &attrs->rnn.activation)) return false;
    return attrs->rnn.cell != LEATI_CELL_LSTM || add_activation(out, &attrs->rnn.activation);
}

/* ---- Weights ---- */

/* The gates of leat that ONNX has as its first, second, ... gate. */
static int64_t gate_of(const leati_rnn_shape *shape, int64_t gate) {
    static const int64_t lstm[] = {0, 3, 1, 2};
    return shape->cell == LEATI_CELL_LSTM ? lstm[gate] : gate;
}

/* Returns a kernel (rows, gates units) as (1, gates units, rows), with ONNX's order of gates. */
static const char *kernel_of(leati_onnx *x, leati_value value, const leati_rnn_shape *shape, int64_t rows) {
    const int64_t width = shape->gates * shape->units, dims[] = {1, width, rows};
    const leati_desc desc = leati_desc_make(LEAT_F32, 3, dims);
    const float *src = leati_onnx_data_of(x, value);
    float *dst = leati_onnx_allocate(x, leati_desc_bytes(&desc));
    if (!dst) return "";
    for (int64_t i = 0; i < width; ++i) {
        const int64_t from = gate_of(shape, i / shape->units) * shape->units + i % shape->units;
        for (int64_t row = 0; row < rows; ++row) dst[i * rows + row] = src[row * width + from];
    }
    return leati_onnx_initialize(x, leati_onnx_wish_of(x, value), &desc, dst, dst);
}

/* Returns the bias as (1, 2 gates units): that of the input, then that of the state. */
static const char *bias_of(leati_onnx *x, leati_value value, const leati_rnn_shape *shape) {
    const int64_t width = shape->gates * shape->units, dims[] = {1, 2 * width};
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, dims);
    if (value == LEATI_NONE) return "";
    const float *src = leati_onnx_data_of(x, value);
    float *dst = leati_onnx_allocate(x, leati_desc_bytes(&desc));
    if (!dst) return "";
    for (int64_t i = 0; i < shape->biases * width; ++i) {
        const int64_t row = i / width, gate = gate_of(shape, i % width / shape->units);
        dst[i] = src[row * width + gate * shape->units + i % shape->units];
    }
    return leati_onnx_initialize(x, leati_onnx_wish_of(x, value), &desc, dst, dst);
}

/* ---- The node ---- */

static const char *unsqueezed(leati_onnx *x, leati_value value) {
    const int64_t axis = 0;
    if (value == LEATI_NONE) return "";
    return leati_onnx_binary(x, "Unsqueeze", leati_onnx_plain(x, value), leati_onnx_ints(x, 1, &axis));
}

static const char *squeezed(leati_onnx *x, const char *name, int64_t axis) {
    return leati_onnx_binary(x, "Squeeze", name, leati_onnx_ints(x, 1, &axis));
}

/* Returns the source as (T, N, F), in the order of processing. */
static const char *steps_first(leati_onnx *x, const leati_node *node) {
    const int64_t perm[] = {1, 0, 2}, start = -1, end = INT64_MIN, axis = 0, step = -1;
    const char *name = leati_onnx_transposed(x, leati_onnx_plain(x, node->inputs[LEATI_RNN_X]), 3, perm);
    if (!node->attrs.rnn.go_backwards) return name;
    const char *const inputs[] = {name, leati_onnx_ints(x, 1, &start), leati_onnx_ints(x, 1, &end),
                                  leati_onnx_ints(x, 1, &axis), leati_onnx_ints(x, 1, &step)};
    return leati_onnx_node(x, "Slice", 5, inputs, NULL);
}

static bool is_read(const leati_onnx *x, leati_value value) {
    for (int32_t i = 0; i < leati_graph_node_count(x->graph); ++i) {
        const leati_node *node = leati_graph_node_at(x->graph, i);
        for (int32_t j = 0; x->live[i] && j < node->input_count; ++j)
            if (node->inputs[j] == value) return true;
    }
    for (int32_t i = 0; i < x->model->output_count; ++i)
        if (x->probes[0].predictions[i] == value) return true;
    return false;
}

/* Adds the node and gives its outputs (T, 1, N, U) and (1, N, U) leat's shapes. */
static void emit_cell(leati_onnx *x, const leati_node *node, const char *op, const char *const *inputs,
                      const leati_onnx_attr *attrs) {
    const int64_t perm[] = {1, 0, 2};
    const int count = node->attrs.rnn.cell == LEATI_CELL_LSTM ? 3 : 2;
    const char *outputs[3];
    for (int i = 0; i < count; ++i) outputs[i] = is_read(x, node->outputs[i]) ? leati_onnx_output(x, op) : "";
    leati_onnx_node_to(x, op, count == 3 ? 7 : 6, inputs, count, outputs, attrs);
    if (outputs[0][0])
        leati_onnx_set_plain(x, node->outputs[0],
                             leati_onnx_transposed(x, squeezed(x, outputs[0], 1), 3, perm));
    for (int i = 1; i < count; ++i)
        if (outputs[i][0]) leati_onnx_set_plain(x, node->outputs[i], squeezed(x, outputs[i], 0));
}

void leati_onnx_rnn(leati_onnx *x, const leati_node *node, const leati_node *other) {
    (void)other;
    static const char *const ops[] = {"LSTM", "GRU", "GRU", "RNN"};
    const leati_value *in = node->inputs;
    activations f;
    const leati_rnn_shape shape =
        leati_rnn_shape_of(&node->attrs, leati_graph_desc(x->graph, in[LEATI_RNN_X]),
                           leati_graph_desc(x->graph, in[LEATI_RNN_RECURRENT]));
    const leati_value bias = in[LEATI_RNN_BIAS];
    const bool constant = leati_onnx_data_of(x, in[LEATI_RNN_KERNEL]) &&
                          leati_onnx_data_of(x, in[LEATI_RNN_RECURRENT]) &&
                          (bias == LEATI_NONE || leati_onnx_data_of(x, bias));
    if (in[LEATI_RNN_X_MASK] != LEATI_NONE || in[LEATI_RNN_H_MASK] != LEATI_NONE)
        leati_onnx_refuse(x, "dropout within the cell cannot be exported");
    if (!constant || in[LEATI_RNN_STEPS] != LEATI_NONE || !list_activations(&f, &node->attrs)) {
        leati_onnx_scan(x, node);
        return;
    }
    const char *const inputs[] = {steps_first(x, node),
                                  kernel_of(x, in[LEATI_RNN_KERNEL], &shape, shape.features),
                                  kernel_of(x, in[LEATI_RNN_RECURRENT], &shape, shape.units),
                                  bias_of(x, bias, &shape),
                                  "", /* sequence_lens */
                                  unsqueezed(x, in[LEATI_RNN_H0]),
                                  unsqueezed(x, in[LEATI_RNN_C0])};
    leati_onnx_attr attrs[6] = {
        LEATI_ATTR_INT("hidden_size", shape.units),
        {.name = "activations", .kind = LEATI_ONNX_TEXTS, .count = f.count, .texts = f.names}};
    int count = 2;
    if (f.alpha_count > 0)
        attrs[count++] = (leati_onnx_attr){.name = "activation_alpha",
                                           .kind = LEATI_ONNX_FLOATS,
                                           .count = f.alpha_count,
                                           .floats = f.alphas};
    if (f.beta_count > 0)
        attrs[count++] = (leati_onnx_attr){.name = "activation_beta",
                                           .kind = LEATI_ONNX_FLOATS,
                                           .count = f.beta_count,
                                           .floats = f.betas};
    if (shape.cell == LEATI_CELL_GRU_RESET_AFTER) attrs[count++] = LEATI_ATTR_INT("linear_before_reset", 1);
    emit_cell(x, node, ops[shape.cell], inputs, attrs);
}
