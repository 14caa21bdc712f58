/* SPDX-License-Identifier: Apache-2.0 */
/* Fields, weights and shape rules that several layers share, so that no key, default or rule is written twice. */
#ifndef LEATI_NN_LAYERS_COMMON_FIELDS_H
#define LEATI_NN_LAYERS_COMMON_FIELDS_H

#include "nn/activations/activation.h"
#include "nn/layers/layer.h"

/* A field whose member is named like its key. */
#define LEATI_FIELD(config, member, kind_, preset_)                                                          \
    { .key = #member, .kind = kind_, .offset = offsetof(config, member), .preset = preset_ }

/* An integer, or a tuple of `arity_` integers, each at least `least` (in a tuple, 1). */
#define LEATI_INT_FIELD(config, member, least, preset_)                                                      \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_INT, .offset = offsetof(config, member), .preset = preset_,      \
        .minimum = least, .limited = true                                                                    \
    }
#define LEATI_TUPLE_FIELD(config, member, arity_, preset_)                                                   \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_TUPLE, .offset = offsetof(config, member), .preset = preset_,    \
        .arity = arity_, .minimum = 1, .limited = true                                                       \
    }
/* A list of sizes, or null. */
#define LEATI_SIZES_FIELD(config, member)                                                                    \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_LIST, .offset = offsetof(config, member), .preset = "null",      \
        .minimum = 1, .limited = true                                                                        \
    }
#define LEATI_CHOICE_FIELD(config, member, choices_, preset_)                                                \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_CHOICE, .offset = offsetof(config, member), .preset = preset_,   \
        .choices = choices_                                                                                  \
    }

/* Selects the computation of current Keras where it differs from that of Keras 2.3.1; true in files of current
 * Keras. */
#define LEATI_AS_KERAS3_FIELD(config)                                                                        \
    {                                                                                                        \
        .key = "as_keras3", .kind = LEATI_FIELD_BOOL, .offset = offsetof(config, as_keras3),                 \
        .preset = "false", .later = true                                                                     \
    }

/* The configuration of one weight: three keys, "kernel_initializer", "kernel_regularizer" and "kernel_constraint". */
typedef struct leati_weight_config {
    leati_initializer *initializer;
    leati_regularizer regularizer;
    leati_constraint constraint;
} leati_weight_config;

#define LEATI_WEIGHT_FIELDS(config, member, prefix, initializer_)                                            \
    {.key = prefix "_initializer",                                                                           \
     .kind = LEATI_FIELD_INITIALIZER,                                                                        \
     .offset = offsetof(config, member) + offsetof(leati_weight_config, initializer),                        \
     .preset = initializer_},                                                                                \
        {.key = prefix "_regularizer",                                                                       \
         .kind = LEATI_FIELD_REGULARIZER,                                                                    \
         .offset = offsetof(config, member) + offsetof(leati_weight_config, regularizer),                    \
         .preset = "null"},                                                                                  \
    {                                                                                                        \
        .key = prefix "_constraint", .kind = LEATI_FIELD_CONSTRAINT,                                         \
        .offset = offsetof(config, member) + offsetof(leati_weight_config, constraint), .preset = "null"     \
    }

/* The configuration of the ops that follow the product in Dense and in the convolutions. */
typedef struct leati_affine {
    leati_activation activation;
    bool use_bias;
    leati_weight_config bias;
    leati_regularizer activity_regularizer;
} leati_affine;

#define LEATI_AFFINE_FIELD(config, member, key_, kind_, preset_)                                             \
    {                                                                                                        \
        .key = key_, .kind = kind_, .offset = offsetof(config, affine) + offsetof(leati_affine, member),     \
        .preset = preset_                                                                                    \
    }
#define LEATI_AFFINE_FIELDS(config)                                                                          \
    LEATI_AFFINE_FIELD(config, activation, "activation", LEATI_FIELD_ACTIVATION, "\"linear\""),              \
        LEATI_AFFINE_FIELD(config, use_bias, "use_bias", LEATI_FIELD_BOOL, "true"),                          \
        LEATI_WEIGHT_FIELDS(config, affine.bias, "bias", "\"zeros\""),                                       \
        LEATI_AFFINE_FIELD(config, activity_regularizer, "activity_regularizer", LEATI_FIELD_REGULARIZER,    \
                           "null")

/* For build: declare a weight as its configuration says, and the bias if there is one. */
leat_status leati_weight_config_add(leati_layer *layer, const char *name, const leati_weight_config *config,
                                    int rank, const int64_t *dims, leat_error *err);
leat_status leati_affine_add_bias(leati_layer *layer, const leati_affine *affine, int64_t units,
                                  leat_error *err);

/* For lower: returns the bias, which is the last weight; LEATI_NONE if there is none. */
leati_value leati_affine_bias(const leati_layer *layer, const leati_affine *affine,
                              const leati_lowering *lowering);

/* For infer: the output has the shape of the input. */
leat_status leati_infer_same(const leati_layer *layer, int input_count, const leati_shape *inputs,
                             leati_shape *outputs, int *output_count, leat_error *err);

/* For infer: returns the axes as bits.  Negative axes count from the end; axes below `first` are not allowed.
 * Errors: LEAT_ESHAPE the input does not have one of the axes. */
leat_status leati_axes_find(const leati_ints *axes, const leati_shape *input, int first, uint32_t *out,
                            leat_error *err);
/* For lower, after infer has checked the axes: returns the axes as bits. */
uint32_t leati_axes_of(const leati_ints *axes, int rank);

/* Multiplies the dimensions from `from` on; *out is -1 if one is not known.  Errors: LEAT_ESHAPE overflow. */
leat_status leati_shape_product(const leati_shape *shape, int from, int64_t *out, leat_error *err);

#endif
