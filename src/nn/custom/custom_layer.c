/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a layer type of a custom layer: calls the user's functions with views of the tensors.  Room: nn. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/memory.h"
#include "base/text.h"
#include "json/json.h"
#include "nn/custom/custom.h"

#define MOST_TENSORS (LEATI_CUSTOM_MAX_INPUTS + LEATI_CUSTOM_MAX_WEIGHTS)
_Static_assert(MOST_TENSORS <= LEATI_CALLEE_MAX_INPUTS &&
                   LEATI_CALLEE_MAX_INPUTS + 2 * LEATI_CALLEE_MAX_OUTPUTS <= LEATI_MAX_INPUTS,
               "a node holds inputs, weights, outputs and what arrives at these");

struct leat_layer_weights {
    leati_layer *layer;
};

/* The keys of Keras's Lambda.  Keras 2.3.1 writes those that are not `later`; tf.keras has more. */
#define LAMBDA_FIELD(index, key_, later_)                                                                    \
    {                                                                                                        \
        .key = key_, .kind = LEATI_FIELD_JSON, .preset = "null", .later = later_,                            \
        .offset = offsetof(leati_custom_config, lambda) + (index) * sizeof(json_t *)                         \
    }
enum { LAMBDA_ARGUMENTS = 4 };
static const leati_field lambda_fields[LEATI_LAMBDA_KEYS] = {LAMBDA_FIELD(0, "function", false),
                                                             LAMBDA_FIELD(1, "function_type", false),
                                                             LAMBDA_FIELD(2, "output_shape", false),
                                                             LAMBDA_FIELD(3, "output_shape_type", false),
                                                             LAMBDA_FIELD(LAMBDA_ARGUMENTS, "arguments",
                                                                          false),
                                                             LAMBDA_FIELD(5, "module", true),
                                                             LAMBDA_FIELD(6, "output_shape_module", true),
                                                             {.key = NULL}};

/* ---- Shapes ---- */

static leat_tensor view_of(const leati_desc *desc, void *data) {
    return leat_tensor_view(desc->dtype, desc->rank, desc->shape, data);
}

static leat_tensor shape_view(const leati_shape *shape) {
    return leat_tensor_view(LEAT_F32, shape->rank, shape->dims, NULL);
}

static leat_status check_output(const leat_tensor *output, int index, int64_t least, leat_error *err) {
    char text[LEATI_SHAPE_TEXT_BYTES];
    bool right = output->rank >= 1 && output->rank <= LEAT_MAX_RANK;
    int64_t count = (int64_t)sizeof(float);
    for (int i = 0; right && i < output->rank; ++i)
        right = output->shape[i] >= least &&
                (output->shape[i] < 0 || leati_mul_i64(count, output->shape[i], &count));
    if (right) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "its infer gave output %d an invalid shape: %s", index,
                      output->rank >= 0 && output->rank <= LEAT_MAX_RANK
                          ? leati_shape_text(text, sizeof text, output->rank, output->shape)
                          : "the rank is out of range");
}

/* Infers the shapes of the outputs; no dimension may be below `least`. */
static leat_status infer_views(const leati_custom_config *c, int input_count, const leat_tensor *inputs,
                               leat_tensor *outputs, int64_t least, leat_error *err) {
    const leat_layer_definition *d = &c->custom->definition;
    for (int i = 0; i < d->outputs; ++i) outputs[i] = inputs[0];
    if (d->infer) LEATI_TRY(d->infer(leati_custom_settings(c), input_count, inputs, outputs, err));
    for (int i = 0; i < d->outputs; ++i) LEATI_TRY(check_output(&outputs[i], i, least, err));
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const leati_custom_config *c = layer->config;
    leat_tensor in[LEATI_CUSTOM_MAX_INPUTS], out[LEATI_CALLEE_MAX_OUTPUTS] = {0};
    for (int i = 0; i < input_count; ++i) in[i] = shape_view(&inputs[i]);
    LEATI_TRY(infer_views(c, input_count, in, out, -1, err));
    *output_count = c->custom->definition.outputs;
    for (int i = 0; i < *output_count; ++i) {
        outputs[i].rank = out[i].rank;
        memcpy(outputs[i].dims, out[i].shape, sizeof outputs[i].dims);
    }
    return LEAT_OK;
}

/* ---- Configuration ---- */

static leat_status infer_call(const leati_callee *callee, int input_count, const leati_desc *inputs,
                              leati_desc *outputs, leat_error *err);
static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err);
static leat_status backward(const leati_callee *callee, const leati_callee_run *run, leat_error *err);

static leat_status check_settings(leati_layer *layer, const leati_custom *custom, leat_error *err) {
    leati_custom_config *c = layer->config;
    const leat_layer_definition *d = &custom->definition;
    c->custom = custom;
    c->callee = (leati_callee){.output_count = d->outputs,
                               .infer = infer_call,
                               .forward = forward,
                               .backward = d->backward ? backward : NULL};
    return d->check ? d->check((char *)c + custom->settings, d->user, err) : LEAT_OK;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    return check_settings(layer, (const leati_custom *)(const void *)layer->type, err); /* its first member */
}

/* Reads the keys of the definition from a Lambda's "arguments". */
static leat_status check_lambda(leati_layer *layer, leat_error *err) {
    leati_custom_config *c = layer->config;
    const leati_custom *custom = (const void *)((const char *)layer->type - offsetof(leati_custom, lambda));
    json_t *none = json_object(), *given = c->lambda[LAMBDA_ARGUMENTS];
    if (!none) return leati_fail(err, LEAT_ENOMEM, "no memory for arguments");
    leat_status status = leati_fields_read(custom->fields, NULL, given ? given : none, c, err);
    json_decref(none);
    LEATI_TRY(leati_prefix(status, err, "arguments"));
    return check_settings(layer, custom, err);
}

static void fini(void *config) {
    leati_custom_config *c = config;
    for (int i = 0; i < LEATI_CUSTOM_MAX_WEIGHTS; ++i) leati_initializer_destroy(&c->drawn[i]);
}

static void fini_lambda(void *config) {
    leati_custom_config *c = config;
    if (c->custom) leati_fields_fini(c->custom->fields, c);
    fini(config);
}

/* ---- Weights ---- */

/* Returns the part of the key that a weight names; NULL if there is no such key. */
static const leati_custom_part *part_of(const leati_custom_config *c, const char *name,
                                        const leati_field_kind *kind) {
    for (const leati_field *field = c->custom->fields; name && field->key; ++field)
        if (field->kind == kind && strcmp(field->key, name) == 0)
            return (const void *)((const char *)c + field->offset);
    return NULL;
}

/* Parses a name or a JSON object. */
static leat_status parse(const char *text, json_t **out, leat_error *err) {
    if (text[0] == '{') return leati_json_parse_argument(out, text, strlen(text), err);
    *out = json_string(text);
    return *out ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for '%s'", text);
}

static leat_status find_initializer(leati_custom_config *c, int index, const char *text,
                                    const leati_initializer **out, leat_error *err) {
    const leati_custom_part *part = part_of(c, text, LEATI_FIELD_INITIALIZER);
    json_t *value = NULL;
    *out = part ? part->initializer : c->drawn[index];
    if (part || *out) return LEAT_OK;
    LEATI_TRY(parse(text ? text : "glorot_uniform", &value, err));
    leat_status status = leati_initializer_read(&c->drawn[index], value, err);
    json_decref(value);
    *out = c->drawn[index];
    return leati_prefix(status, err, "initializer");
}

static leat_status find_regularizer(const leati_custom_config *c, const char *text, leati_regularizer *out,
                                    leat_error *err) {
    const leati_custom_part *part = part_of(c, text, LEATI_FIELD_REGULARIZER);
    json_t *value = NULL;
    if (part) *out = part->regularizer;
    if (part || !text) return LEAT_OK;
    LEATI_TRY(parse(text, &value, err));
    leat_status status = leati_regularizer_read(out, value, err);
    json_decref(value);
    return leati_prefix(status, err, "regularizer");
}

static leat_status find_constraint(const leati_custom_config *c, const char *text, leati_constraint *out,
                                   leat_error *err) {
    const leati_custom_part *part = part_of(c, text, LEATI_FIELD_CONSTRAINT);
    json_t *value = NULL;
    if (part) *out = part->constraint;
    if (part || !text) return LEAT_OK;
    LEATI_TRY(parse(text, &value, err));
    leat_status status = leati_constraint_read(out, value, err);
    json_decref(value);
    return leati_prefix(status, err, "constraint");
}

static leat_status add_weight(leati_layer *layer, const leat_layer_weight *weight, leat_error *err) {
    leati_custom_config *c = layer->config;
    leati_regularizer regularizer = {.kind = LEATI_REGULARIZER_NONE};
    leati_constraint constraint = {.kind = LEATI_CONSTRAINT_NONE};
    leati_weight_spec spec = {.name = weight->name,
                              .rank = weight->rank,
                              .regularizer = &regularizer,
                              .constraint = &constraint,
                              .fixed = weight->fixed};
    LEATI_TRY(find_initializer(c, layer->weight_count, weight->initializer, &spec.initializer, err));
    LEATI_TRY(find_regularizer(c, weight->regularizer, &regularizer, err));
    LEATI_TRY(find_constraint(c, weight->constraint, &constraint, err));
    memcpy(spec.dims, weight->shape, sizeof spec.dims);
    return leati_layer_add_weight(layer, &spec, err);
}

static const leati_growing weight_type = LEATI_GROWING(leat_layer_weight, shape, NULL);

void leat_layer_weight_init(leat_layer_weight *weight, size_t size) {
    leati_growing_init(&weight_type, weight, size);
}

leat_status leat_layer_add_weight(leat_layer_weights *weights, const leat_layer_weight *weight,
                                  leat_error *err) {
    LEATI_GIVEN(weights, err);
    LEATI_GIVEN(weight, err);
    leat_layer_weight read;
    LEATI_TRY(leati_growing_read(&weight_type, weight, &read, err));
    const char *name = read.name;
    if (!name || !name[0] || strlen(name) >= LEAT_NAME_BYTES)
        return leati_fail(err, LEAT_EINVAL, "a weight's name: expected 1 to %d bytes", LEAT_NAME_BYTES - 1);
    if (read.rank < 0 || read.rank > LEAT_MAX_RANK)
        return leati_fail(err, LEAT_EINVAL, "weight '%s': expected a rank of 0 to %d, received %d", name,
                          LEAT_MAX_RANK, (int)read.rank);
    if (weights->layer->weight_count == LEATI_CUSTOM_MAX_WEIGHTS)
        return leati_fail(err, LEAT_EINVAL, "weight '%s': expected at most %d weights", name,
                          LEATI_CUSTOM_MAX_WEIGHTS);
    return leati_prefix(add_weight(weights->layer, &read, err), err, "weight '%s'", name);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    leati_custom_config *c = layer->config;
    const leat_layer_definition *d = &c->custom->definition;
    leat_layer_weights weights = {layer};
    leat_tensor in[LEATI_CUSTOM_MAX_INPUTS];
    if (!d->build) return LEAT_OK;
    for (int i = 0; i < input_count; ++i) in[i] = shape_view(&inputs[i]);
    LEATI_TRY(d->build(leati_custom_settings(c), input_count, in, &weights, err));
    c->weight_count = layer->weight_count;
    return LEAT_OK;
}

/* ---- Computing ---- */

static leat_status infer_call(const leati_callee *callee, int input_count, const leati_desc *inputs,
                              leati_desc *outputs, leat_error *err) {
    const leati_custom_config *c = (const void *)callee; /* its first member */
    leat_tensor in[LEATI_CUSTOM_MAX_INPUTS], out[LEATI_CALLEE_MAX_OUTPUTS] = {0};
    int count = input_count - c->weight_count;
    for (int i = 0; i < count; ++i) in[i] = view_of(&inputs[i], NULL);
    LEATI_TRY(infer_views(c, count, in, out, 0, err));
    for (int i = 0; i < callee->output_count; ++i)
        outputs[i] = leati_desc_make(LEAT_F32, out[i].rank, out[i].shape);
    return LEAT_OK;
}

typedef leat_status user_function(const leat_layer_call *call, leat_error *err);

static leat_status run_user_function(user_function *function, const leati_callee *callee,
                                     const leati_callee_run *run, leat_error *err) {
    const leati_custom_config *c = (const void *)callee;
    leat_tensor in[MOST_TENSORS], diff_in[MOST_TENSORS], out[LEATI_CALLEE_MAX_OUTPUTS],
        diff_out[LEATI_CALLEE_MAX_OUTPUTS];
    const int inputs = run->input_count - c->weight_count;
    for (int i = 0; i < run->input_count; ++i) {
        in[i] = view_of(&run->inputs[i], run->args[i]);
        diff_in[i] = view_of(&run->inputs[i], run->diff_args ? run->diff_args[i] : NULL);
    }
    for (int i = 0; i < run->output_count; ++i) {
        out[i] = view_of(&run->outputs[i], run->results[i]);
        diff_out[i] = view_of(&run->outputs[i], run->diff_results ? run->diff_results[i] : NULL);
    }
    const leat_layer_call call = {.size = sizeof call,
                                  .config = leati_custom_settings(c),
                                  .user = c->custom->definition.user,
                                  .training = run->training,
                                  .rng = run->rng,
                                  .input_count = inputs,
                                  .weight_count = c->weight_count,
                                  .output_count = run->output_count,
                                  .inputs = in,
                                  .weights = in + inputs,
                                  .outputs = out,
                                  .diff_outputs = diff_out,
                                  .diff_inputs = diff_in,
                                  .diff_weights = diff_in + inputs};
    return leati_prefix(function(&call, err), err, "%s", c->custom->class_name);
}

static leat_status forward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    return run_user_function(((const leati_custom_config *)(const void *)callee)->custom->definition.forward,
                             callee, run, err);
}

static leat_status backward(const leati_callee *callee, const leati_callee_run *run, leat_error *err) {
    return run_user_function(((const leati_custom_config *)(const void *)callee)->custom->definition.backward,
                             callee, run, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const leati_custom_config *c = layer->config;
    leati_value all[MOST_TENSORS];
    for (int i = 0; i < input_count; ++i) all[i] = inputs[i];
    for (int i = 0; i < c->weight_count; ++i) all[input_count + i] = leati_layer_weight(layer, lowering, i);
    leati_graph_call(lowering->graph, &c->callee, leati_lowering_in_training(lowering), lowering->stream,
                     input_count + c->weight_count, all, outputs);
}

/* ---- The types ---- */

static void hold(leati_custom *custom, int change) {
    if (change > 0)
        atomic_fetch_add(&custom->holders, 1);
    else
        leati_custom_release(&custom);
}

static void held(const leati_layer_type *type, int change) {
    hold((leati_custom *)(uintptr_t)type, change);
}

static void held_lambda(const leati_layer_type *type, int change) {
    hold((leati_custom *)((uintptr_t)type - offsetof(leati_custom, lambda)), change);
}

leati_custom *leati_custom_of(const leati_layer_type *type) {
    if (type->held == held) return (leati_custom *)(uintptr_t)type;
    if (type->held == held_lambda) return (leati_custom *)((uintptr_t)type - offsetof(leati_custom, lambda));
    return NULL;
}

void leati_custom_fill(leati_custom *custom) {
    const leat_layer_definition *d = &custom->definition;
    custom->type = (leati_layer_type){.class_name = custom->class_name,
                                      .name_prefix = custom->name_prefix,
                                      .config_bytes = custom->settings + d->config_bytes,
                                      .fields = custom->fields,
                                      .min_inputs = d->min_inputs,
                                      .max_inputs = d->max_inputs,
                                      .masking = d->supports_masking ? LEATI_MASK_PASSED : LEATI_MASK_REFUSED,
                                      .check = check,
                                      .fini = fini,
                                      .infer = infer,
                                      .build = build,
                                      .held = held,
                                      .lower = lower};
    custom->lambda = custom->type;
    custom->lambda.class_name = "Lambda";
    custom->lambda.name_prefix = "lambda";
    custom->lambda.fields = lambda_fields;
    custom->lambda.check = check_lambda;
    custom->lambda.fini = fini_lambda;
    custom->lambda.held = held_lambda;
}
