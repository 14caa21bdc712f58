/* SPDX-License-Identifier: Apache-2.0 */
/* Rescaling: x scale + offset, with numbers or one number for each channel.  Normalization: (x - mean) /
 * sqrt(variance), or its inverse; mean and variance are numbers in the configuration, or weights that are not
 * trained.
 * Source: current Keras. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

/* Converts an input of any type to float. */
static leati_value as_float(leati_graph *g, leati_value x) {
    return leati_graph_desc(g, x)->dtype == LEAT_F32 ? x : leati_cast(g, x, LEAT_F32, 1);
}

/* Returns a constant: one number, or a list of numbers for the last axis. */
static leati_value constant(leati_graph *g, const leati_reals *reals, int rank, const int64_t *dims) {
    if (reals->number) return leati_scalar(g, (float)reals->values[0]);
    float *values = leati_calloc((size_t)reals->count, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for %d numbers", (int)reals->count);
    for (int i = 0; i < reals->count; ++i) values[i] = (float)reals->values[i];
    leati_desc desc = leati_desc_make(LEAT_F32, 1, (int64_t[]){reals->count});
    leati_value row = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return rank > 0 ? leati_reshape(g, row, rank, dims) : row;
}

/* ---- Rescaling ---- */

typedef struct rescaling_config {
    leati_reals scale, offset;
} rescaling_config;

static const leati_field rescaling_fields[] = {LEATI_FIELD(rescaling_config, scale, LEATI_FIELD_REALS, NULL),
                                               LEATI_FIELD(rescaling_config, offset, LEATI_FIELD_REALS,
                                                           "0.0"),
                                               {.key = NULL}};

static bool fits(const leati_reals *reals, int64_t length) {
    return reals->number || reals->count == 1 || length < 0 || reals->count == length;
}

static leat_status infer_rescaling(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                   leati_shape *outputs, int *output_count, leat_error *err) {
    const rescaling_config *c = layer->config;
    int64_t last = inputs[0].rank > 0 ? inputs[0].dims[inputs[0].rank - 1] : 1;
    if (!fits(&c->scale, last) || !fits(&c->offset, last))
        return leati_shape_unexpected(&inputs[0], "a last axis as long as scale and offset", err);
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static void lower_rescaling(const leati_layer *layer, leati_lowering *lowering, int input_count,
                            const leati_value *inputs, leati_value *outputs) {
    const rescaling_config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value x = as_float(g, inputs[0]);
    (void)input_count;
    if (c->scale.number && c->offset.number) {
        outputs[0] = leati_linear(g, x, (float)c->scale.values[0], (float)c->offset.values[0]);
        return;
    }
    outputs[0] =
        leati_add(g, leati_mul(g, x, constant(g, &c->scale, 0, NULL)), constant(g, &c->offset, 0, NULL));
}

/* ---- Normalization ---- */

typedef struct normalization_config {
    leati_ints axis; /* axes that keep their own mean and variance; null: none */
    leati_reals mean, variance;
    bool invert;
} normalization_config;

static const leati_field normalization_fields[] = {
    {.key = "axis",
     .kind = LEATI_FIELD_NUMBERS,
     .offset = offsetof(normalization_config, axis),
     .preset = "-1"},
    LEATI_FIELD(normalization_config, invert, LEATI_FIELD_BOOL, "false"),
    LEATI_FIELD(normalization_config, mean, LEATI_FIELD_REALS, "null"),
    LEATI_FIELD(normalization_config, variance, LEATI_FIELD_REALS, "null"),
    {.key = NULL}};

static leat_status check_normalization(leati_layer *layer, leat_error *err) {
    const normalization_config *c = layer->config;
    if (c->mean.count != c->variance.count || c->mean.number != c->variance.number)
        return leati_fail(err, LEAT_EINVAL,
                          "mean and variance: expected both, with the same number of values, or neither");
    if (c->mean.count > 0 && !c->mean.number && c->axis.count != 1)
        return leati_fail(err, LEAT_EINVAL,
                          "mean: expected a number, because axis has %d axes, received a list",
                          (int)c->axis.count);
    return LEAT_OK;
}

/* Computes the shape to which mean and variance are broadcast, and which of its axes they have. */
static leat_status kept_shape(const normalization_config *c, const leati_shape *input, int64_t *dims,
                              uint32_t *axes, leat_error *err) {
    *axes = 0;
    for (int i = 0; i < input->rank; ++i) dims[i] = 1;
    for (int i = 0; i < c->axis.count; ++i) {
        int64_t axis = c->axis.values[i] < 0 ? c->axis.values[i] + input->rank : c->axis.values[i];
        if (axis < 1 || axis >= input->rank || input->dims[axis] < 1)
            return leati_shape_unexpected(input,
                                          "an input that has the axis (not the batch axis), of known length",
                                          err);
        dims[axis] = input->dims[axis];
        *axes |= UINT32_C(1) << axis;
        if (!c->mean.number && c->mean.count > 0 && c->mean.count != dims[axis])
            return leati_shape_unexpected(input, "an axis as long as mean and variance", err);
    }
    return LEAT_OK;
}

static leat_status infer_normalization(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                       leati_shape *outputs, int *output_count, leat_error *err) {
    int64_t dims[LEAT_MAX_RANK];
    uint32_t axes;
    LEATI_TRY(kept_shape(layer->config, &inputs[0], dims, &axes, err));
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static leat_status build_normalization(leati_layer *layer, int input_count, const leati_shape *inputs,
                                       leat_error *err) {
    const normalization_config *c = layer->config;
    int64_t dims[LEAT_MAX_RANK];
    uint32_t axes;
    (void)input_count;
    if (c->mean.count > 0) return LEAT_OK;
    LEATI_TRY(kept_shape(c, &inputs[0], dims, &axes, err));
    leati_weight_spec spec = {.name = "mean", .initializer = &leati_zeros, .fixed = true};
    for (int i = 0; i < inputs[0].rank; ++i)
        if (axes >> i & 1u) spec.dims[spec.rank++] = dims[i];
    LEATI_TRY(leati_layer_add_weight(layer, &spec, err));
    spec.name = "variance";
    spec.initializer = &leati_ones;
    LEATI_TRY(leati_layer_add_weight(layer, &spec, err));
    spec = (leati_weight_spec){.name = "count", .initializer = &leati_zeros, .fixed = true};
    return leati_layer_add_weight(layer, &spec, err); /* only in older files; not used */
}

static void lower_normalization(const leati_layer *layer, leati_lowering *lowering, int input_count,
                                const leati_value *inputs, leati_value *outputs) {
    const normalization_config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value x = as_float(g, inputs[0]), mean, variance;
    const leati_desc *desc = leati_graph_desc(g, x);
    leati_shape shape = {.rank = desc->rank};
    int64_t dims[LEAT_MAX_RANK];
    uint32_t axes;
    (void)input_count;
    for (int i = 0; i < desc->rank; ++i) shape.dims[i] = desc->shape[i];
    (void)kept_shape(c, &shape, dims, &axes, NULL); /* infer has checked it */
    if (c->mean.count > 0) {
        mean = constant(g, &c->mean, shape.rank, dims);
        variance = constant(g, &c->variance, shape.rank, dims);
    } else {
        mean = leati_reshape(g, leati_layer_weight(layer, lowering, 0), shape.rank, dims);
        variance = leati_reshape(g, leati_layer_weight(layer, lowering, 1), shape.rank, dims);
    }
    leati_value spread = leati_binary_of(g, LEATI_MAX, leati_function_of(g, variance, LEATI_FN_SQRT),
                                         leati_scalar(g, LEATI_EPSILON));
    outputs[0] =
        c->invert ? leati_add(g, leati_mul(g, x, spread), mean) : leati_div(g, leati_sub(g, x, mean), spread);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED

LEATI_LAYER_TYPE(rescaling, "Rescaling", "rescaling", rescaling_config, rescaling_fields,
                 .infer = infer_rescaling, .lower = lower_rescaling, COMMON_MEMBERS);
LEATI_LAYER_TYPE(normalization, "Normalization", "normalization", normalization_config, normalization_fields,
                 .check = check_normalization, .infer = infer_normalization, .build = build_normalization,
                 .lower = lower_normalization, COMMON_MEMBERS);
