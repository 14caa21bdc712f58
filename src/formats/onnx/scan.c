/* SPDX-License-Identifier: Apache-2.0 */
/* Emits recurrent cells as a Scan with the formulas of the cell (op_semantics/op.h, RNN).  The products with the input
 * are computed for all steps before the Scan.  Room: formats. */
#include <stddef.h>

#include "engine/op_semantics/geometry.h"
#include "formats/onnx/exporter.h"

/* The tensors of the body; the weights are tensors of the graph around it. */
typedef struct body {
    leati_cell cell;
    const leati_eltwise *f, *g; /* recurrent activation, activation */
    const char *x;              /* (N, gates units): x K + b of the step */
    const char *h, *c;
    const char *kernels[2]; /* recurrent kernel; GRU: of the gates z and r, and of the last gate */
    const char *bias;       /* GRU_RESET_AFTER: of the state; NULL: none */
} body;

/* ---- Nodes ---- */

/* Splits a tensor into `count` parts along an axis.  sizes: NULL: equal parts. */
static void split(leati_onnx *x, const char *name, int axis, int count, const int64_t *sizes,
                  const char **parts) {
    const leati_onnx_attr attrs[] = {LEATI_ATTR_INT("axis", axis), LEATI_ATTR_END};
    for (int i = 0; i < count; ++i) parts[i] = leati_onnx_output(x, "Split");
    const char *const inputs[] = {name, sizes ? leati_onnx_ints(x, count, sizes) : ""};
    leati_onnx_node_to(x, "Split", sizes ? 2 : 1, inputs, count, parts, attrs);
}

static const char *mul(leati_onnx *x, const char *a, const char *b) {
    return leati_onnx_binary(x, "Mul", a, b);
}
static const char *add(leati_onnx *x, const char *a, const char *b) {
    return leati_onnx_binary(x, "Add", a, b);
}
static const char *product(leati_onnx *x, const char *a, const char *b) {
    return leati_onnx_binary(x, "MatMul", a, b);
}

/* ---- Cells: set the new h and c ---- */

static void lstm(leati_onnx *x, const body *b, const char **h, const char **c) {
    const char *gates[4];
    split(x, add(x, b->x, product(x, b->h, b->kernels[0])), -1, 4, NULL, gates);
    const char *i = leati_onnx_function(x, b->f, gates[0]), *f = leati_onnx_function(x, b->f, gates[1]);
    const char *o = leati_onnx_function(x, b->f, gates[3]), *new = leati_onnx_function(x, b->g, gates[2]);
    *c = add(x, mul(x, f, b->c), mul(x, i, new));
    *h = mul(x, o, leati_onnx_function(x, b->g, *c));
}

/* Returns z h + (1 - z) new. */
static const char *updated(leati_onnx *x, const char *z, const char *h, const char *new) {
    const char *rest = leati_onnx_binary(x, "Sub", leati_onnx_scalar(x, 1), z);
    return add(x, mul(x, z, h), mul(x, rest, new));
}

static void gru(leati_onnx *x, const body *b, const char **h) {
    const char *gates[3], *hidden[2];
    split(x, b->x, -1, 3, NULL, gates);
    split(x, product(x, b->h, b->kernels[0]), -1, 2, NULL, hidden);
    const char *z = leati_onnx_function(x, b->f, add(x, gates[0], hidden[0]));
    const char *r = leati_onnx_function(x, b->f, add(x, gates[1], hidden[1]));
    const char *last = add(x, gates[2], product(x, mul(x, r, b->h), b->kernels[1]));
    *h = updated(x, z, b->h, leati_onnx_function(x, b->g, last));
}

static void gru_reset_after(leati_onnx *x, const body *b, const char **h) {
    const char *gates[3], *hidden[3], *inner = product(x, b->h, b->kernels[0]);
    if (b->bias) inner = add(x, inner, b->bias);
    split(x, b->x, -1, 3, NULL, gates);
    split(x, inner, -1, 3, NULL, hidden);
    const char *z = leati_onnx_function(x, b->f, add(x, gates[0], hidden[0]));
    const char *r = leati_onnx_function(x, b->f, add(x, gates[1], hidden[1]));
    const char *last = add(x, gates[2], mul(x, r, hidden[2]));
    *h = updated(x, z, b->h, leati_onnx_function(x, b->g, last));
}

static void compute(leati_onnx *x, const body *b, const char **h, const char **c) {
    switch (b->cell) {
    case LEATI_CELL_LSTM: lstm(x, b, h, c); break;
    case LEATI_CELL_GRU: gru(x, b, h); break;
    case LEATI_CELL_GRU_RESET_AFTER: gru_reset_after(x, b, h); break;
    default: *h = leati_onnx_function(x, b->g, add(x, b->x, product(x, b->h, b->kernels[0]))); break;
    }
}

/* ---- The body: GraphProto ---- */

enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { MAX_TENSORS = 6 };

/* The inputs and outputs of the body: states h, c (LSTM), the last output (masked), then tensors of the step. */
typedef struct tensors {
    const char *in[MAX_TENSORS], *out[MAX_TENSORS];
    int states, in_count, out_count;
} tensors;

static void put_tensor(leati_message *graph, int field, const char *name) {
    leati_message value = {0}, type = {0}, tensor = {0};
    leati_message_int(&tensor, 1, LEATI_ONNX_TYPE_FLOAT);
    leati_message_inner(&type, 1, &tensor);
    leati_message_text(&value, VALUE_NAME, name);
    leati_message_inner(&value, VALUE_TYPE, &type);
    leati_message_inner(graph, field, &value);
    leati_message_fini(&value);
    leati_message_fini(&type);
    leati_message_fini(&tensor);
}

/* Adds the rule of masked steps: the states stay, and the output is that of the step before. */
static void mask_step(leati_onnx *x, const tensors *t, const char *mask, const char **new) {
    const int64_t last = -1;
    const char *column = leati_onnx_binary(x, "Unsqueeze", mask, leati_onnx_ints(x, 1, &last));
    const char *counts = leati_onnx_cast(x, column, LEATI_ONNX_TYPE_BOOL);
    for (int i = 0; i < t->states; ++i)
        new[i] = leati_onnx_node(x, "Where", 3, (const char *[]){counts, new[i], t->in[i]}, NULL);
}

/* Writes the nodes of the body into *graph. */
static void fill_body(leati_onnx *x, body *b, tensors *t, bool masked, leati_message *graph) {
    const bool has_c = b->cell == LEATI_CELL_LSTM;
    const char *new[3] = {"", "", ""};
    x->into = graph;
    for (int i = 0; i < t->in_count; ++i) t->in[i] = leati_onnx_output(x, "Step");
    b->h = t->in[0], b->c = has_c ? t->in[1] : NULL, b->x = t->in[t->states];
    compute(x, b, &new[0], &new[1]);
    if (masked) new[t->states - 1] = new[0];
    if (masked) mask_step(x, t, t->in[t->states + 1], new);
    const char *output = masked ? new[t->states - 1] : new[0];
    for (int i = 0; i < t->states; ++i) t->out[i] = leati_onnx_unary(x, "Identity", new[i]);
    t->out[t->states] = leati_onnx_unary(x, "Identity", output);
    leati_message_text(graph, GRAPH_NAME, "step");
    for (int i = 0; i < t->in_count; ++i) put_tensor(graph, GRAPH_INPUT, t->in[i]);
    for (int i = 0; i < t->out_count; ++i) put_tensor(graph, GRAPH_OUTPUT, t->out[i]);
    x->into = &x->nodes;
}

/* ---- The node ---- */

/* Returns an initial state (N, units): zeros where it is absent. */
static const char *initial(leati_onnx *x, const leati_node *node, leati_value state, int64_t units) {
    if (state != LEATI_NONE) return leati_onnx_plain(x, state);
    const leati_onnx_size sizes[] = {leati_onnx_size_of(x, node->inputs[LEATI_RNN_X], 0), {{units, units}}};
    return leati_onnx_binary(x, "Expand", leati_onnx_scalar(x, 0), leati_onnx_shape(x, 2, sizes));
}

/* Makes the weights of the body, and the products of all steps with the input. */
static const char *prepare(leati_onnx *x, const leati_node *node, const leati_rnn_shape *shape, body *b) {
    const leati_value bias = node->inputs[LEATI_RNN_BIAS];
    const int64_t sizes[] = {2 * shape->units, shape->units};
    const char *biases[2] = {NULL, NULL};
    const char *recurrent = leati_onnx_plain(x, node->inputs[LEATI_RNN_RECURRENT]);
    const char *all = product(x, leati_onnx_plain(x, node->inputs[LEATI_RNN_X]),
                              leati_onnx_plain(x, node->inputs[LEATI_RNN_KERNEL]));
    *b = (body){.cell = shape->cell, .f = &shape->recurrent_activation, .g = &shape->activation};
    b->kernels[0] = recurrent;
    if (shape->cell == LEATI_CELL_GRU) split(x, recurrent, 1, 2, sizes, b->kernels);
    if (bias == LEATI_NONE) return all;
    biases[0] = leati_onnx_plain(x, bias);
    if (shape->biases == 2) split(x, biases[0], 0, 2, NULL, biases);
    b->bias = biases[1];
    return add(x, all, biases[0]);
}

void leati_onnx_scan(leati_onnx *x, const leati_node *node) {
    const leati_value *in = node->inputs;
    const leati_rnn_shape shape =
        leati_rnn_shape_of(&node->attrs, leati_graph_desc(x->graph, in[LEATI_RNN_X]),
                           leati_graph_desc(x->graph, in[LEATI_RNN_RECURRENT]));
    const bool masked = in[LEATI_RNN_STEPS] != LEATI_NONE, has_c = shape.cell == LEATI_CELL_LSTM;
    const int steps = masked ? 2 : 1, states = 1 + has_c + masked;
    const int64_t axes[] = {1, 1}, directions[] = {1, 1};
    const char *inputs[MAX_TENSORS], *outputs[MAX_TENSORS];
    tensors t = {.states = states, .in_count = states + steps, .out_count = states + 1};
    leati_message graph = {0};
    body b;
    inputs[states] = prepare(x, node, &shape, &b);
    inputs[0] = initial(x, node, in[LEATI_RNN_H0], shape.units);
    if (has_c) inputs[1] = initial(x, node, in[LEATI_RNN_C0], shape.units);
    if (masked) inputs[states - 1] = initial(x, node, LEATI_NONE, shape.units);
    if (masked) inputs[states + 1] = leati_onnx_plain(x, in[LEATI_RNN_STEPS]);
    fill_body(x, &b, &t, masked, &graph);
    const leati_onnx_attr attrs[] = {{.name = "body", .kind = LEATI_ONNX_GRAPH, .graph = &graph},
                                     LEATI_ATTR_INT("num_scan_inputs", steps),
                                     LEATI_ATTR_INTS("scan_input_axes", steps, axes),
                                     LEATI_ATTR_INTS("scan_output_axes", 1, axes),
                                     node->attrs.rnn.go_backwards
                                         ? LEATI_ATTR_INTS("scan_input_directions", steps, directions)
                                         : LEATI_ATTR_END,
                                     LEATI_ATTR_END};
    for (int i = 0; i < t.out_count; ++i) outputs[i] = leati_onnx_output(x, "Scan");
    leati_onnx_node_to(x, "Scan", t.in_count, inputs, t.out_count, outputs, attrs);
    leati_onnx_set_plain(x, node->outputs[LEATI_RNN_OUT_SEQUENCE], outputs[states]);
    leati_onnx_set_plain(x, node->outputs[LEATI_RNN_OUT_H_LAST], outputs[0]);
    if (has_c) leati_onnx_set_plain(x, node->outputs[LEATI_RNN_OUT_C_LAST], outputs[1]);
    leati_message_fini(&graph);
}
