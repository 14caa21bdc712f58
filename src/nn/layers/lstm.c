/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM: gates i, f, c, o; outputs the last step or all, and the states where asked.  Further inputs are the initial
 * states.  `implementation` chooses how dropout draws (1: per gate, 2: one mask for all); `unroll` changes nothing.
 * Source: keras.layers.LSTM; Hochreiter and Schmidhuber 1997. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/rows.h"
#include "nn/layers/types.h"

enum { GATES = 4 };

typedef struct config {
    int64_t units;
    leati_activation activation, recurrent_activation;
    bool use_bias, unit_forget_bias;
    leati_part kernel, recurrent, bias;
    leati_regularizer activity_regularizer;
    double dropout, recurrent_dropout;
    int64_t implementation;
    bool return_sequences, return_state, go_backwards, stateful, unroll;
    leati_initializer forget_bias, recurrent_identity; /* made by build */
} config;

static const leati_field fields[] = {LEATI_ROW(config, return_sequences, LEATI_FIELD_BOOL, "false"),
                                     LEATI_ROW(config, return_state, LEATI_FIELD_BOOL, "false"),
                                     LEATI_ROW(config, go_backwards, LEATI_FIELD_BOOL, "false"),
                                     LEATI_ROW(config, stateful, LEATI_FIELD_BOOL, "false"),
                                     LEATI_ROW(config, unroll, LEATI_FIELD_BOOL, "false"),
                                     LEATI_INT_ROW(config, units, 1, NULL),
                                     LEATI_ROW(config, activation, LEATI_FIELD_ACTIVATION, "\"tanh\""),
                                     LEATI_ROW(config, recurrent_activation, LEATI_FIELD_ACTIVATION,
                                               "\"sigmoid\""),
                                     LEATI_ROW(config, use_bias, LEATI_FIELD_BOOL, "true"),
                                     LEATI_ROW(config, unit_forget_bias, LEATI_FIELD_BOOL, "true"),
                                     LEATI_PART_ROWS(config, kernel, "kernel", "\"glorot_uniform\""),
                                     LEATI_PART_ROWS(config, recurrent, "recurrent", "\"orthogonal\""),
                                     LEATI_PART_ROWS(config, bias, "bias", "\"zeros\""),
                                     LEATI_ROW(config, activity_regularizer, LEATI_FIELD_REGULARIZER, "null"),
                                     LEATI_ROW(config, dropout, LEATI_FIELD_FLOAT, "0.0"),
                                     LEATI_ROW(config, recurrent_dropout, LEATI_FIELD_FLOAT, "0.0"),
                                     LEATI_INT_ROW(config, implementation, 0, "2"),
                                     {.key = NULL}};

static const leati_old_preset old_presets[] = {{"recurrent_activation", 2, 3, "\"hard_sigmoid\""},
                                               {"implementation", 2, 3, "1"},
                                               {.key = NULL}};

static double between_0_and_1(double rate) {
    return rate > 1 ? 1 : rate > 0 ? rate : 0; /* as Keras does; NaN is 0 */
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    leati_eltwise ignored;
    if (c->stateful)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "stateful: expected false, received true; pass the states instead: return_state gives "
            "them, and further inputs take them");
    if (!leati_activation_eltwise(&c->activation, &ignored) ||
        !leati_activation_eltwise(&c->recurrent_activation, &ignored))
        return leati_fail(err, LEAT_ENOTSUP, "expected activations of single numbers, received softmax");
    if (c->implementation > 2)
        return leati_fail(err, LEAT_EINVAL, "implementation: expected 1 or 2, received %lld",
                          (long long)c->implementation);
    if (c->implementation == 0) c->implementation = 1; /* as Keras does */
    c->dropout = between_0_and_1(c->dropout);
    c->recurrent_dropout = between_0_and_1(c->recurrent_dropout);
    return LEAT_OK;
}

static leat_status check_states(const config *c, int input_count, const leati_shape *inputs,
                                leat_error *err) {
    if (input_count == 2)
        return leati_fail(err, LEAT_EINVAL, "expected 1 input, or 3 with the initial states, received 2");
    for (int i = 1; i < input_count; ++i)
        if (inputs[i].rank != 2 || (inputs[i].dims[1] >= 0 && inputs[i].dims[1] != c->units))
            return leati_shape_unexpected(&inputs[i], "initial states of shape (batch, units)", err);
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape state = {.rank = 2, .dims = {inputs[0].dims[0], c->units}};
    if (inputs[0].rank != 3)
        return leati_shape_unexpected(&inputs[0], "a sequence (batch, steps, features)", err);
    LEATI_TRY(check_states(c, input_count, inputs, err));
    outputs[0] = state;
    if (c->return_sequences)
        outputs[0] = (leati_shape){.rank = 3, .dims = {inputs[0].dims[0], inputs[0].dims[1], c->units}};
    if (!c->return_state) return LEAT_OK;
    outputs[1] = outputs[2] = state;
    *output_count = 3;
    return LEAT_OK;
}

/* ---- First values ---- */

/* Keras's unit_forget_bias: the forget gate's quarter is 1. */
static leat_status draw_bias(const void *layer_config, int rank, const int64_t *dims, leat_rng *rng,
                             float *out, leat_error *err) {
    const config *c = layer_config;
    const int64_t one = c->units, two = 2 * c->units;
    (void)rank, (void)dims;
    LEATI_TRY(leati_initializer_draw(c->bias.initializer, 1, &one, leat_rng_u64(rng), 0, out, err));
    for (int64_t i = one; i < two; ++i) out[i] = 1.0f;
    return leati_initializer_draw(c->bias.initializer, 1, &two, leat_rng_u64(rng), 0, out + two, err);
}

/* Keras takes an Identity for each gate, and forgets its gain. */
static leat_status draw_identity(const void *layer_config, int rank, const int64_t *dims, leat_rng *rng,
                                 float *out, leat_error *err) {
    (void)layer_config, (void)rank, (void)rng, (void)err;
    memset(out, 0, (size_t)(dims[0] * dims[1]) * sizeof *out);
    for (int64_t row = 0; row < dims[0]; ++row)
        for (int64_t column = row; column < dims[1]; column += dims[0]) out[row * dims[1] + column] = 1.0f;
    return LEAT_OK;
}

static const leati_initializer_type bias_type = {.class_name = "LSTM's bias",
                                                 .seed_offset = SIZE_MAX,
                                                 .draw = draw_bias};
static const leati_initializer_type identity_type = {.class_name = "LSTM's identity",
                                                     .seed_offset = SIZE_MAX,
                                                     .draw = draw_identity};

static bool is_identity(const leati_initializer *initializer) {
    return initializer && strcmp(initializer->type->class_name, "Identity") == 0;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    config *c = layer->config;
    const int64_t in = inputs[0].dims[2], width = GATES * c->units;
    leati_part recurrent = c->recurrent, bias = c->bias;
    (void)input_count;
    if (in < 1) return leati_shape_unexpected(&inputs[0], "a sequence whose features are known", err);
    if (c->units > INT32_MAX / GATES)
        return leati_fail(err, LEAT_EINVAL, "units: expected fewer than 536870912");
    c->recurrent_identity = (leati_initializer){&identity_type, c};
    c->forget_bias = (leati_initializer){&bias_type, c};
    if (is_identity(recurrent.initializer)) recurrent.initializer = &c->recurrent_identity;
    if (c->unit_forget_bias && bias.initializer) bias.initializer = &c->forget_bias;
    LEATI_TRY(leati_part_add(layer, "kernel", &c->kernel, 2, (int64_t[]){in, width}, err));
    LEATI_TRY(leati_part_add(layer, "recurrent_kernel", &recurrent, 2, (int64_t[]){c->units, width}, err));
    return c->use_bias ? leati_part_add(layer, "bias", &bias, 1, &width, err) : LEAT_OK;
}

/* ---- Lowering ---- */

/* Factors (4, N, size), constant over time; LEATI_NONE where nothing is dropped. */
static leati_value mask(const config *c, leati_lowering *lowering, double rate, int64_t n, int64_t size,
                        uint64_t stream) {
    if (lowering->mode != LEATI_TRAIN || !(rate > 0 && rate < 1)) return LEATI_NONE;
    leati_value ones = leati_full(lowering->graph, 3, (int64_t[]){GATES, n, size}, 1.0f);
    uint32_t shared = c->implementation == 2 ? 1u : 0u; /* axis 0: the gates */
    return leati_dropout(lowering->graph, ones, (float)rate, shared, stream);
}

static leati_value last_step(leati_graph *g, leati_value sequence) {
    const leati_desc *desc = leati_graph_desc(g, sequence);
    if (desc->rank != 3) return LEATI_INVALID;
    int64_t n = desc->shape[0], steps = desc->shape[1], units = desc->shape[2];
    leati_value last = leati_slice_axis(g, sequence, 1, steps - 1, 1);
    return leati_reshape(g, last, 2, (int64_t[]){n, units});
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc *desc = leati_graph_desc(g, inputs[0]);
    leati_value args[8], out[LEATI_MAX_OUTPUTS] = {LEATI_INVALID, LEATI_INVALID};
    leati_attrs attrs = {
        .lstm = {.go_backwards = c->go_backwards, .training = lowering->mode == LEATI_TRAIN}};
    leati_activation_eltwise(&c->activation, &attrs.lstm.activation);
    leati_activation_eltwise(&c->recurrent_activation, &attrs.lstm.recurrent_activation);
    args[0] = inputs[0];
    args[1] = leati_layer_weight(layer, lowering, 0);
    args[2] = leati_layer_weight(layer, lowering, 1);
    args[3] = c->use_bias ? leati_layer_weight(layer, lowering, 2) : LEATI_NONE;
    args[4] = input_count == 3 ? inputs[1] : LEATI_NONE;
    args[5] = input_count == 3 ? inputs[2] : LEATI_NONE;
    int64_t n = desc->shape[0], features = desc->shape[2];
    args[6] = mask(c, lowering, c->dropout, n, features, lowering->stream);
    args[7] = mask(c, lowering, c->recurrent_dropout, n, c->units, lowering->stream + 1);
    leati_graph_node(g, LEATI_OP_LSTM, &attrs, 8, args, out);
    leati_value last = c->return_sequences && !c->return_state ? LEATI_NONE : last_step(g, out[0]);
    outputs[0] = c->return_sequences ? out[0] : last;
    if (c->return_state) {
        outputs[1] = last;
        outputs[2] = out[1];
    }
    leati_lowering_add_activity(lowering, &c->activity_regularizer, c->return_state ? 3 : 1, outputs);
}

const leati_layer_type leati_layer_lstm = {.class_name = "LSTM",
                                           .name_prefix = "lstm",
                                           .config_bytes = sizeof(config),
                                           .fields = fields,
                                           .min_inputs = 1,
                                           .max_inputs = 3,
                                           .old_presets = old_presets,
                                           .check = check,
                                           .infer = infer,
                                           .build = build,
                                           .lower = lower};
