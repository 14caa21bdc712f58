/* SPDX-License-Identifier: Apache-2.0 */
/* Operation: a function of keras.ops that a functional model calls as a layer, with its constants.  Keras saves the
 * function under its own class name; nn/keras3 translates.  Shapes are inferred by lowering to a graph.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/operations/operations.h"
#include "nn/layers/types.h"

typedef leati_operation_config config;

static const leati_field fields[] = {LEATI_FIELD(config, function, LEATI_FIELD_TEXT, NULL),
                                     LEATI_FIELD(config, options, LEATI_FIELD_JSON, "{}"),
                                     LEATI_FIELD(config, args, LEATI_FIELD_JSON, "[{\"input\": 0}]"),
                                     LEATI_FIELD(config, kwargs, LEATI_FIELD_JSON, "{}"),
                                     {.key = NULL}};

/* ---- The tables ---- */

static const leati_operation *const tables[] = {leati_elementwise_operations, leati_moving_operations,
                                                leati_reducing_operations,    leati_ordering_operations,
                                                leati_product_operations,     leati_nn_operations,
                                                leati_image_operations,       leati_choice_operations,
                                                leati_part_operations,        leati_window_operations,
                                                leati_fourier_operations,     leati_matrix_operations,
                                                leati_statistic_operations,   leati_pair_operations};
enum { table_count = sizeof tables / sizeof tables[0] };

const leati_operation *leati_operation_find(const char *name) {
    for (int i = 0; i < table_count; ++i)
        for (const leati_operation *at = tables[i]; at->name; ++at)
            if (strcmp(at->name, name) == 0) return at;
    return NULL;
}

/* Functions whose results have no axis for the batch, or mix samples, or have a shape that depends on the values. */
static const char *const mixing[] = {"AllClose",    "Bincount",   "Corrcoef",      "Correlate",  "Diag",
                                     "Diagflat",    "Flipud",     "Histogram",     "Meshgrid",   "Nonzero",
                                     "Outer",       "Scatter",    "ScatterUpdate", "SegmentMax", "SegmentMin",
                                     "SegmentProd", "SegmentSum", "Size",          "Unique",     "Vander",
                                     "Vdot",        "Vsplit",     "Vstack",        "PSNR"};

leat_status leati_operation_unknown(const char *name, leat_error *err) {
    for (size_t i = 0; i < sizeof mixing / sizeof mixing[0]; ++i)
        if (strcmp(mixing[i], name) == 0)
            return leati_fail(
                err, LEAT_ENOTSUP,
                "the function '%.64s' of keras.ops mixes the samples of a batch, or has no axis for them, "
                "which "
                "functions in leat's models cannot do; in Keras, put it into a layer class of your own and "
                "register a custom layer of that name with leat (leat/layer.h)",
                name);
    return leati_fail(
        err, LEAT_ENOTSUP,
        "leat has no function '%.64s' of keras.ops; in Keras, put it into a layer class of your own and "
        "register a custom layer of that name with leat (leat/layer.h), or use functions of "
        "docs/operations.md",
        name);
}

bool leati_operation_has(const leati_operation *operation, const char *argument) {
    return leati_argument_position(operation->signature, argument) >= 0;
}

const char *leati_operation_module(const char *function) {
    const leati_operation *operation = leati_operation_find(function);
    return operation ? operation->module : NULL;
}

/* ---- The layer ---- */

/* Counts the tensors of the arguments: 1 + the largest index. */
static int count_inputs(const json_t *value, int count) {
    const json_t *input = json_is_object(value) ? json_object_get(value, "input") : NULL;
    if (json_is_integer(input) && json_integer_value(input) >= count &&
        json_integer_value(input) < LEATI_MAX_INPUTS)
        return (int)json_integer_value(input) + 1;
    for (size_t i = 0; i < json_array_size(value); ++i) count = count_inputs(json_array_get(value, i), count);
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key, item) count = count_inputs(item, count);
    return count;
}

/* Checks that the function has arguments of these names. */
static leat_status check_names(const leati_operation *operation, const json_t *object, const char *key,
                               leat_error *err) {
    const char *name;
    json_t *value;
    if (object && !json_is_object(object)) return leati_fail(err, LEAT_EINVAL, "%s: expected an object", key);
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        if (!json_is_null(value) && !json_is_false(value) && !leati_operation_has(operation, name))
            return leati_fail(err, LEAT_ENOTSUP,
                              "%s: leat's function '%s' has no argument '%.64s'; its arguments are: %s", key,
                              operation->name, name, operation->signature);
    }
    return LEAT_OK;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    c->operation = leati_operation_find(c->function);
    if (!c->operation) return leati_prefix(leati_operation_unknown(c->function, err), err, "function");
    if (c->args && !json_is_array(c->args)) return leati_fail(err, LEAT_EINVAL, "args: expected a list");
    LEATI_TRY(check_names(c->operation, c->options, "options", err));
    LEATI_TRY(check_names(c->operation, c->kwargs, "kwargs", err));
    c->input_count = count_inputs(c->kwargs, count_inputs(c->args, 0));
    if (c->input_count < 1)
        return leati_fail(err, LEAT_EINVAL, "args: expected at least one tensor, as {\"input\": 0}");
    return LEAT_OK;
}

static int lower_call(const config *c, leati_graph *g, int input_count, const leati_value *inputs,
                      leati_value *outputs) {
    leati_operands o = {.g = g,
                        .operation = c->operation,
                        .args = c->args,
                        .kwargs = c->kwargs,
                        .options = c->options,
                        .input_count = input_count,
                        .output_count = 1,
                        .inputs = inputs,
                        .outputs = outputs};
    outputs[0] = LEATI_INVALID;
    c->operation->lower(&o);
    return o.output_count;
}

/* The lengths that stand for axes of unknown length while shapes are inferred: of the batch, of all others. */
static const int64_t probes[2][2] = {{11, 13}, {17, 19}};

/* Lowers the function for inputs whose unknown dimensions have the lengths of a probe. */
static leat_status probe(const config *c, int index, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    leati_graph *g = NULL;
    leati_value values[LEATI_MAX_INPUTS], results[LEATI_LAYER_MAX_OUTPUTS];
    LEATI_TRY(leati_graph_create(&g, err));
    for (int i = 0; i < input_count; ++i) {
        leati_desc desc = {.dtype = LEAT_F32, .rank = inputs[i].rank};
        for (int k = 0; k < desc.rank; ++k)
            desc.shape[k] = inputs[i].dims[k] < 0 ? probes[index][k > 0] : inputs[i].dims[k];
        values[i] = leati_graph_input(g, i, &desc);
    }
    *output_count = lower_call(c, g, input_count, values, results);
    leat_status status = leati_graph_check(g, err);
    for (int i = 0; status == LEAT_OK && i < *output_count; ++i) {
        const leati_desc *desc = leati_graph_desc(g, results[i]);
        outputs[i] = (leati_shape){.rank = desc->rank};
        memcpy(outputs[i].dims, desc->shape, sizeof outputs[i].dims);
    }
    leati_graph_destroy(&g);
    return status;
}

/* Checks that the first axis of an output is the batch, or that it is a scalar. */
static leat_status check_batch(const config *c, const leati_shape *input, const leati_shape *a,
                               const leati_shape *b, leat_error *err) {
    int64_t batch[2];
    for (int i = 0; i < 2; ++i)
        batch[i] = input->rank > 0 && input->dims[0] < 0 ? probes[i][0] : input->dims[0];
    if (a->rank == 0 && b->rank == 0) return LEAT_OK; /* for an AddLoss: nn/network/order.c */
    if (a->rank > 0 && input->rank > 0 && a->dims[0] == batch[0] && b->dims[0] == batch[1]) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTSUP,
        "%s: expected a result whose first axis is the batch, as leat's layers need it; write the "
        "part of the model that mixes samples as a custom layer (leat/layer.h)",
        c->function);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape other[LEATI_LAYER_MAX_OUTPUTS] = {{0}};
    int other_count = 0;
    if (input_count != c->input_count)
        return leati_fail(err, LEAT_EINVAL, "expected %d inputs, as in args and kwargs, received %d",
                          (int)c->input_count, input_count);
    LEATI_TRY(probe(c, 0, input_count, inputs, outputs, output_count, err));
    LEATI_TRY(probe(c, 1, input_count, inputs, other, &other_count, err));
    for (int i = 0; i < *output_count; ++i) {
        LEATI_TRY(check_batch(c, &inputs[0], &outputs[i], &other[i], err));
        for (int k = 0; k < outputs[i].rank; ++k)
            if (outputs[i].dims[k] != other[i].dims[k]) outputs[i].dims[k] = -1;
    }
    return LEAT_OK;
}

/* The mask of an input ends here, as in Keras. */
static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    (void)lower_call(layer->config, lowering->graph, input_count, inputs, outputs);
}

LEATI_LAYER_TYPE(operation, "Operation", "operation", config, fields, .min_inputs = 1,
                 .max_inputs = LEATI_MAX_INPUTS, .scalars = true, .masking = LEATI_MASK_COMPUTED,
                 .check = check, .infer = infer, .lower = lower);
