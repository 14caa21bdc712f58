/* SPDX-License-Identifier: Apache-2.0 */
/* Reads LSTM, GRU and RNN as Keras's layers.  ONNX orders the gates of an LSTM i, o, f, c, Keras i, f, c, o.
 * Room: formats. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "formats/onnx_import/import.h"

typedef struct recurrent {
    const char *class_name;
    int gates; /* 4, 3 or 1 */
    int64_t units, features;
    int directions; /* 1 or 2 */
    bool backward, reset_after, has_bias;
    const char *activation, *recurrent_activation;
    leati_view x; /* (N, T, features) */
    const leati_import_tensor *kernel, *recurrent_kernel, *bias;
} recurrent;

/* ---- Attributes ---- */

/* Returns Keras's name of activation `index` of the node; NULL after a failure. */
static const char *activation_of(leati_import *x, const leati_import_attr *names, int index,
                                 const char *preset) {
    const char *name = names && index < names->text_count ? names->texts[index] : preset;
    const leati_import_attr *alphas = leati_import_attr_of(x->node, "activation_alpha");
    const leati_import_attr *betas = leati_import_attr_of(x->node, "activation_beta");
    static const struct {
        const char *name, *keras;
        float alpha, beta; /* NAN: none */
    } known[] = {{"Sigmoid", "sigmoid", NAN, NAN},
                 {"Tanh", "tanh", NAN, NAN},
                 {"Relu", "relu", NAN, NAN},
                 {"Softsign", "softsign", NAN, NAN},
                 {"Softplus", "softplus", NAN, NAN},
                 {"HardSigmoid", "hard_sigmoid", 0.2f, 0.5f},
                 {"HardSigmoid", "hard_sigmoid3", 1.0f / 6, 0.5f},
                 {"Affine", "linear", 1, 0},
                 {"Elu", "elu", 1, NAN}};
    int alpha_at = 0, beta_at = 0;
    for (int i = 0; names && i < index && i < names->text_count;
         ++i) { /* the parameters of the activations before */
        const char *other = names->texts[i];
        const bool both = strcmp(other, "HardSigmoid") == 0 || strcmp(other, "Affine") == 0;
        alpha_at += both || strcmp(other, "Elu") == 0;
        beta_at += both;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
        if (strcmp(known[i].name, name) != 0) continue;
        const bool is_hard = strcmp(name, "HardSigmoid") == 0;
        const float alpha = alphas && alpha_at < alphas->real_count ? alphas->reals[alpha_at]
                            : is_hard                               ? 0.2f
                                                                    : 1.0f;
        const float beta = betas && beta_at < betas->real_count ? betas->reals[beta_at]
                           : is_hard                            ? 0.5f
                                                                : 0.0f;
        if ((isnan(known[i].alpha) || fabsf(alpha - known[i].alpha) < 1e-6f) &&
            (isnan(known[i].beta) || fabsf(beta - known[i].beta) < 1e-6f))
            return known[i].keras;
    }
    leati_import_refuse(x, "activation '%.32s' with its parameters is not supported", name);
    return NULL;
}

static void read_activations(leati_import *x, recurrent *r) {
    const leati_import_attr *names = leati_import_attr_of(x->node, "activations");
    const bool simple = r->gates == 1, lstm = r->gates == 4;
    const int each = simple ? 1 : lstm ? 3 : 2;
    r->activation = activation_of(x, names, simple ? 0 : 1, "Tanh");
    r->recurrent_activation = simple ? "sigmoid" : activation_of(x, names, 0, "Sigmoid");
    for (int d = 0; d < r->directions && leati_import_ok(x); ++d) {
        const char *f = simple ? r->recurrent_activation : activation_of(x, names, d * each, "Sigmoid");
        const char *g = activation_of(x, names, d * each + !simple, "Tanh");
        const char *h = lstm ? activation_of(x, names, d * each + 2, "Tanh") : g;
        if (leati_import_ok(x) && (strcmp(f, r->recurrent_activation) != 0 || strcmp(g, r->activation) != 0 ||
                                   strcmp(h, r->activation) != 0))
            leati_import_refuse(
                x, "different activations of the cell and its output, or of the directions, are not "
                   "supported");
    }
}

static void read_attributes(leati_import *x, recurrent *r) {
    const char *direction = leati_import_string(x, "direction", "forward");
    const bool lstm = strcmp(x->node->op, "LSTM") == 0, gru = strcmp(x->node->op, "GRU") == 0;
    r->class_name = lstm ? "LSTM" : gru ? "GRU" : "SimpleRNN";
    r->gates = lstm ? 4 : gru ? 3 : 1;
    r->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    r->backward = strcmp(direction, "reverse") == 0;
    r->reset_after = gru && leati_import_int(x, "linear_before_reset", 0) != 0;
    if (leati_import_attr_of(x->node, "clip")) leati_import_refuse(x, "clip is not supported");
    if (leati_import_int(x, "input_forget", 0) != 0) leati_import_refuse(x, "input_forget is not supported");
    if (leati_import_int(x, "layout", 0) != 0)
        leati_import_refuse(x, "layout 1 is not supported, as in ONNX Runtime; export with layout 0");
    if (leati_import_in(x, 7)) leati_import_refuse(x, "peepholes are not supported");
    read_activations(x, r);
}

/* sequence_lens may be absent, or say that all sequences have all steps. */
static void check_lengths(leati_import *x, const recurrent *r) {
    const leati_import_tensor *lengths = leati_import_constant_in(x, 4, "sequence_lens");
    const int64_t steps = r->x.shape.dims[1];
    for (int64_t i = 0; lengths && i < lengths->count; ++i)
        if (steps < 0 || leati_import_integer(lengths, i) != steps)
            leati_import_refuse(x, "sequences of different lengths (sequence_lens) are not supported");
}

static void read_inputs(leati_import *x, recurrent *r) {
    static const int order[] = {0, 2};
    leati_import_value *value = leati_import_need(x, 0);
    r->kernel = leati_import_constant_in(x, 1, "kernel W");
    r->recurrent_kernel = leati_import_constant_in(x, 2, "recurrent kernel R");
    r->bias = leati_import_constant_in(x, 3, "bias B");
    if (!leati_import_ok(x)) return;
    if (value->view_count < 1 || value->views[0].rank != 3 || leati_view_batch_axis(&value->views[0]) != 1 ||
        !r->kernel || !r->recurrent_kernel) {
        leati_import_refuse(
            x, "expected an input (steps, batch, features), where axis 1 is the batch, and weights");
        return;
    }
    r->x = leati_import_settle(x, value, order);
    r->units = r->recurrent_kernel->rank == 3 ? r->recurrent_kernel->dims[2] : 0;
    r->features = r->kernel->rank == 3 ? r->kernel->dims[2] : 0;
    r->has_bias = r->bias != NULL;
    const int64_t width = r->gates * r->units;
    const bool fits = r->units > 0 && r->features > 0 && r->kernel->dims[0] == r->directions &&
                      r->kernel->dims[1] == width && r->recurrent_kernel->dims[0] == r->directions &&
                      r->recurrent_kernel->dims[1] == width &&
                      (!r->bias || r->bias->count == r->directions * 2 * width);
    if (!fits) leati_import_refuse(x, "the shapes of its weights do not fit each other");
    if (leati_import_ok(x) && r->x.axes[1].count != 1)
        leati_import_refuse(x, "the batch is part of a joined axis");
    if (leati_import_ok(x)) check_lengths(x, r);
}

/* ---- Weights ---- */

/* Returns the place of Keras's gate among ONNX's. */
static int64_t gate_of(const recurrent *r, int64_t gate) {
    static const int64_t lstm[] = {0, 2, 3, 1};
    return r->gates == 4 ? lstm[gate] : gate;
}

/* Returns (rows, gates units) of a kernel (directions, gates units, rows). */
static leati_import_weight kernel_of(leati_import *x, const recurrent *r, const leati_import_tensor *from,
                                     int direction, int64_t rows) {
    const int64_t width = r->gates * r->units;
    float *out = leati_import_memory(x, rows * width, sizeof *out);
    for (int64_t i = 0; out && i < width; ++i) {
        const int64_t source = gate_of(r, i / r->units) * r->units + i % r->units + direction * width;
        for (int64_t row = 0; row < rows; ++row)
            out[row * width + i] = (float)leati_import_number(from, source * rows + row);
    }
    return (leati_import_weight){.tensor = from, .rank = 2, .dims = {rows, width}, .numbers = out};
}

/* Adds the two biases of ONNX; a GRU that resets after the product keeps both: (2, gates units). */
static leati_import_weight bias_of(leati_import *x, const recurrent *r, int direction) {
    const int64_t width = r->gates * r->units, biases = r->reset_after ? 2 : 1;
    float *out = leati_import_memory(x, biases * width, sizeof *out);
    for (int64_t i = 0; out && i < width; ++i) {
        const int64_t source = gate_of(r, i / r->units) * r->units + i % r->units + direction * 2 * width;
        const double input = leati_import_number(r->bias, source),
                     state = leati_import_number(r->bias, source + width);
        out[i] = (float)(r->reset_after ? input : input + state);
        if (r->reset_after) out[width + i] = (float)state;
    }
    return (leati_import_weight){.tensor = r->bias, .rank = 2, .dims = {biases, width}, .numbers = out};
}

static int weights_of(leati_import *x, const recurrent *r, leati_import_weight *out) {
    int count = 0;
    for (int d = 0; d < r->directions; ++d) {
        out[count++] = kernel_of(x, r, r->kernel, d, r->features);
        out[count++] = kernel_of(x, r, r->recurrent_kernel, d, r->units);
        if (r->has_bias) out[count++] = bias_of(x, r, d);
    }
    return count;
}

/* ---- The layer ---- */

/* Returns true if a constant is zero everywhere. */
static bool is_zero(const leati_import_tensor *tensor) {
    for (int64_t i = 0; i < tensor->count; ++i)
        if (leati_import_number(tensor, i) != 0) return false;
    return true;
}

/* Appends the initial states (directions, N, units) of input `index` as (N, units) for each direction. */
static void add_states(leati_import *x, const recurrent *r, leati_import_value *value, leati_source *sources,
                       int count, int stride) {
    static const int order[] = {0, 2};
    const leati_view view = leati_import_settle(x, value, order);
    if (leati_import_ok(x) &&
        (view.rank != 3 || leati_view_batch_axis(&view) != 1 || view.axes[1].count != 1))
        leati_import_refuse(x, "expected initial states (directions, batch, units)");
    for (int d = 0; d < r->directions && leati_import_ok(x); ++d) {
        json_t *whole = json_pack("{s:s, s:{s:n, s:n, s:n}}", "class_name", "__slice__", "config", "start",
                                  "stop", "step");
        json_t *key = json_pack("[o, i]", whole, d);
        sources[count + d * stride] =
            leati_import_operation(x, "GetItem", json_pack("[o, o]", leati_import_argument(0), key), NULL, 1,
                                   &view.source);
    }
}

/* Returns the inputs of the layer: the sequence, and the initial states unless they are zero. */
static int inputs_of(leati_import *x, const recurrent *r, leati_source sources[5]) {
    leati_import_value *h = leati_import_in(x, 5), *c = r->gates == 4 ? leati_import_in(x, 6) : NULL;
    const bool has_h = h && !(h->constant && is_zero(h->constant)),
               has_c = c && !(c->constant && is_zero(c->constant));
    sources[0] = r->x.source;
    if (!has_h && !has_c) return 1;
    if (r->gates == 4 && (!h || !c)) {
        leati_import_refuse(x, "expected both initial states, or none");
        return 1;
    }
    const int each = r->gates == 4 ? 2 : 1;
    add_states(x, r, h, sources, 1, each);
    if (r->gates == 4) add_states(x, r, c, sources, 2, each);
    return 1 + each * r->directions;
}

static json_t *config_of(const recurrent *r, bool sequences, bool states) {
    json_t *config = json_pack("{s:I, s:s, s:b, s:b, s:b}", "units", (json_int_t)r->units, "activation",
                               r->activation, "use_bias", (int)r->has_bias, "return_sequences",
                               (int)sequences, "return_state", (int)states);
    if (config && r->gates > 1)
        leati_import_put_key(&config, "recurrent_activation", json_string(r->recurrent_activation));
    if (config && r->gates == 3) leati_import_put_key(&config, "reset_after", json_boolean(r->reset_after));
    if (config && r->gates == 3) leati_import_put_key(&config, "as_keras3", json_true());
    if (config && r->backward) leati_import_put_key(&config, "go_backwards", json_true());
    if (!config || r->directions == 1) return config;
    leati_import_put_key(&config, "name", json_string("layer"));
    return json_pack("{s:{s:s, s:o}, s:s}", "layer", "class_name", r->class_name, "config", config,
                     "merge_mode", "concat");
}

/* Sets output Y (steps, directions, N, units) from (N, T, directions units). */
static void set_sequence(leati_import *x, const recurrent *r, leati_source source) {
    leati_view view = {.rank = 4, .axes = {{1, {1}}, {0}, {1, {0}}, {1, {2}}}};
    if (r->backward) /* Keras returns the steps in the order of processing */
        source = leati_import_operation(x, "Flip", json_pack("[o]", leati_import_argument(0)),
                                        json_pack("{s:i}", "axis", 1), 1, &source);
    if (r->directions == 2) {
        const leati_shape shape = {.rank = 4, .dims = {r->x.shape.dims[0], r->x.shape.dims[1], 2, r->units}};
        source = leati_import_to_shape(x, source, &shape);
        view = (leati_view){.rank = 4, .axes = {{1, {1}}, {1, {2}}, {1, {0}}, {1, {3}}}};
    }
    if (!leati_import_ok(x)) return;
    view = leati_view_with(x, &view, source);
    leati_import_set(x, 0, &view);
}

/* Sets output Y_h or Y_c (directions, N, units) from (N, units) of each direction. */
static void set_state(leati_import *x, const recurrent *r, int index, leati_source forward,
                      leati_source backward) {
    leati_view view = {.rank = 3, .axes = {{0}, {1, {0}}, {1, {1}}}};
    leati_source source = forward;
    if (r->directions == 2) {
        json_t *both = json_pack("[[o, o]]", leati_import_argument(0), leati_import_argument(1));
        source = leati_import_operation(x, "Stack", both, json_pack("{s:i}", "axis", 1), 2,
                                        (leati_source[]){forward, backward});
        view = (leati_view){.rank = 3, .axes = {{1, {1}}, {1, {0}}, {1, {2}}}};
    }
    if (!leati_import_ok(x)) return;
    view = leati_view_with(x, &view, source);
    leati_import_set(x, index, &view);
}

static void read_recurrent(leati_import *x) {
    recurrent r = {0};
    leati_source sources[5];
    leati_import_weight weights[LEATI_IMPORT_WEIGHTS];
    read_attributes(x, &r);
    if (leati_import_ok(x)) read_inputs(x, &r);
    if (!leati_import_ok(x)) return;
    const int input_count = inputs_of(x, &r, sources), count = weights_of(x, &r, weights);
    const bool sequences = leati_import_is_read(x, 0);
    const bool states = leati_import_is_read(x, 2) || (sequences && leati_import_is_read(x, 1)) ||
                        (r.directions == 2 && leati_import_is_read(x, 1));
    const leati_source source =
        leati_import_weighted(x, r.directions == 2 ? "Bidirectional" : r.class_name,
                              config_of(&r, sequences, states), input_count, sources, count, weights);
    const int each = r.gates == 4 ? 2 : 1;
    if (sequences) set_sequence(x, &r, source);
    for (int i = 0; i < each; ++i) {
        if (!leati_import_is_read(x, 1 + i)) continue;
        const int first = states ? 1 + i : 0;
        set_state(x, &r, 1 + i, leati_import_output(source, first),
                  leati_import_output(source, first + each));
    }
}

const leati_import_operator leati_import_recurrent_operators[] = {
    {"LSTM", read_recurrent, NULL},
    {"GRU", read_recurrent, NULL},
    {"RNN", read_recurrent, NULL},
    {.name = NULL},
};
