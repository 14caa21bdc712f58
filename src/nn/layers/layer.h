/* SPDX-License-Identifier: Apache-2.0 */
/* Layers and layer types.  Each layer type has its own file in a folder of nn/layers/ with its configuration (a
 * table of fields), its shapes, its weights and its lowering to ops.  JSON, saving, summary and conformance tests
 * follow from its descriptor. */
#ifndef LEATI_NN_LAYERS_LAYER_H
#define LEATI_NN_LAYERS_LAYER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/graph/build.h"
#include "leat/model.h"
#include "leat/sequence.h"
#include "nn/config/field.h"
#include "nn/weights/weights.h"

typedef struct leati_layer leati_layer;
typedef struct leati_layer_type leati_layer_type;

#define LEATI_LAYER_MAX_OUTPUTS 32

/* A shape with the batch in front; a dimension is -1 as long as it is not known. */
typedef struct leati_shape {
    int32_t rank;
    int64_t dims[LEAT_MAX_RANK];
} leati_shape;

typedef enum leati_mode { LEATI_TRAIN, LEATI_TEST, LEATI_PREDICT } leati_mode;

/* A tensor that a layer carries from one batch to the next, like h and c of a stateful recurrent layer.  Its batch
 * size is fixed.  It begins as zeros.  It is not a weight: files do not have it. */
typedef struct leati_state {
    leati_desc desc;
    size_t offset_bytes; /* in the slab of states */
    bool placed;         /* the slab holds the value of this state */
} leati_state;

struct leati_layer {
    const leati_layer_type *type;
    char name[LEAT_NAME_BYTES];
    bool trainable;
    bool
        trains; /* the layer and all models around it were trainable at the last layout of the weights (compile) */
    bool built;
    bool has_batch_input_shape; /* the configuration has the shape: the first layer of a Sequential */
    leati_shape batch_input_shape;
    leat_dtype dtype;
    bool float16; /* Keras's policy mixed_float16, which is computed in float32 and written back */
    bool mixed;   /* Keras's policy mixed_bfloat16: inputs and outputs may be bf16, weights are f32 */
    void *config; /* type->config_bytes, laid out by type->fields */
    leati_regularizer
        activity_regularizer; /* only of a type that has no such field: current Keras allows the key for every layer */
    int32_t weight_count, state_count;
    leati_weight *weights;
    leati_state *states;
    /* The layer around this one, or NULL.  It has the weights and states of this layer, from first_outer_weight
     * and first_outer_state on. */
    leati_layer *outer;
    int32_t first_outer_weight, first_outer_state;
    const struct leati_layer_reader
        *reader; /* for check: what the configuration was read with; otherwise NULL */
};

#define LEATI_LOWERING_MAX_ADDED 48

/* The BatchNormalization layers that compute statistics over the samples of all ranks, in training. */
typedef enum leati_norms {
    LEATI_NORMS_APART = 0, /* none: there are no other ranks */
    LEATI_NORMS_MARKED,    /* those with `synchronized` */
    LEATI_NORMS_JOINED     /* all */
} leati_norms;

/* The state of a lowering. */
typedef struct leati_lowering {
    leati_graph *graph;
    leati_mode mode;
    bool as_keras3;    /* the arithmetic of current Keras */
    bool inference;    /* the present call is inside a call with training=False */
    bool masked;       /* the present call has the argument `mask` */
    bool on_host;      /* ops that only the host's backends serve are allowed */
    leati_norms norms; /* which normalizations compute statistics over all ranks */
    /* The samples of the batch and of this part of it; 0: the batch is whole. */
    int64_t whole_batch, part_batch;
    /* The first axis has as many rows of each sample, and each row is a call of its own; 0: one. */
    int64_t apart_rows;
    int64_t first_sample;   /* of a part: its place in the batch, if the model has states */
    bool takes_masks;       /* set by lower: the inputs have no masks for the calls that follow */
    leati_value losses[64]; /* scalars that regularizers and layers add to the loss */
    int32_t loss_count;
    leati_value sums[64]; /* of a part of a batch: scalars that are sums over samples, not means */
    int32_t sum_count;
    uint64_t
        stream; /* stream of random numbers of the present call: depends on the call's position in the model */
    /* Masks of the present call, f32: 1 for a step that counts, 0 for a step that does not.  A mask has the first
     * axes of its tensor (N, T); LEATI_NONE: all steps count. */
    leati_value input_masks[LEATI_MAX_INPUTS], output_masks[LEATI_LAYER_MAX_OUTPUTS];
    /* Values of AddMetric layers, of one axis, with their layers. */
    leati_value added_metrics[LEATI_LOWERING_MAX_ADDED];
    const leati_layer *added_layers[LEATI_LOWERING_MAX_ADDED];
    int32_t added_count;
    leati_value added_losses[LEATI_LOWERING_MAX_ADDED]; /* of a part of a batch, by AddLoss */
    int32_t added_loss_count;
    bool inside; /* the call is inside a wrapper, which adds the penalties of the outputs itself */
    struct leati_carry
        *carry; /* states that belong to the program (nn/layers/carry.h); NULL: the model's states */
} leati_lowering;

/* Says what a layer does with the mask of an input: Keras's supports_masking and compute_mask. */
typedef enum leati_masking {
    LEATI_MASK_DROPPED = 0, /* the outputs have no mask: tf.keras's and current Keras's default */
    LEATI_MASK_REFUSED,     /* the layer cannot be called with a mask */
    LEATI_MASK_PASSED, /* the outputs get the mask; a step counts only if it does in the masks of all inputs */
    LEATI_MASK_COMPUTED /* lower reads input_masks and sets output_masks, which are LEATI_NONE before */
} leati_masking;

/* Says if a layer treats each step of a sequence (N, T, ...) independently: then single steps give the same
 * results as the whole sequence.  Recurrent layers (recurrence.h) need not say it. */
typedef enum leati_steps {
    LEATI_STEPS_JOINED = 0, /* no, or not known */
    LEATI_STEPS_BY_NUMBER,  /* it even treats each element independently */
    LEATI_STEPS_APART,      /* it treats the axes after the second one as one unit */
    LEATI_STEPS_BY_AXIS     /* like APART, if "axis" is not one of the first two axes */
} leati_steps;

/* A default of older versions of Keras: `preset` is for files of versions below major.minor. */
typedef struct leati_old_preset {
    const char *key;
    int32_t major, minor;
    const char *preset;
} leati_old_preset;

struct leati_layer_type {
    const char *class_name;  /* of Keras; "keras_hub>PositionEmbedding" for a layer of another package */
    const char *name_prefix; /* prefix of automatic names: "conv2d" */
    const char *module;      /* where Python has the class; NULL: keras.layers */
    size_t config_bytes;
    const leati_field
        *fields; /* without the keys that every layer has: name, trainable, dtype, batch_input_shape */
    int32_t min_inputs, max_inputs; /* 1, 1 for most */
    /* The names of the tensors in Keras's call, in its order; NULL-terminated.  The first is the first input.  If the
     * type has a field of the name of another one, calls have this input where the key is true.  NULL: all inputs are
     * positional. */
    const char *const *arguments;
    int32_t build_arguments; /* the number of arguments whose shapes Keras's build takes; 0: one */
    /* Keys of the configuration that are arguments of the call in Keras; NULL-terminated.  NULL: those that the
     * translation knows, like use_causal_mask. */
    const char *const *call_options;
    /* Above 0: the type is a custom cell, one step of an RNN, and this is the number of its states.  Its inputs are
     * (batch, features) and the states, its outputs the output of the step and the new states. */
    int32_t cell_states;
    const leati_old_preset *old_presets; /* ends with a NULL key; NULL: none */
    leati_masking masking;
    leati_steps steps;
    bool integers; /* the inputs are integers that keep all digits; the dtype may be an integer type */
    bool indices;  /* the inputs are indices, or only their shape counts: a mixed layer does not round them */
    bool scalars;  /* an input may be a scalar, without a batch */
    bool shares_trainable; /* freezing or thawing the layer does the same to the layer inside */
    /* Writes the layer as JSON, for a type that is not written as {"class_name": ..., "config": ...}; NULL for
     * most. */
    leat_status (*write)(const leati_layer *layer, json_t **out, leat_error *err);
    /* Freezes or thaws the model that this layer is; NULL: the layer is not a model. */
    void (*set_trainable)(leati_layer *layer, bool trainable);
    /* Returns the model inside, which has the weights and states; NULL: a type without a model inside. */
    leat_model *(*model)(const leati_layer *layer);
    /* Checks what a field cannot say, and computes what depends on several keys, like strides from pool_size; may
     * be NULL. */
    leat_status (*check)(leati_layer *layer, leat_error *err);
    /* Frees what check has allocated in the configuration; may be NULL. */
    void (*fini)(void *config);
    /* Infers the shapes of the outputs; *output_count is 1 unless set. */
    leat_status (*infer)(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err);
    /* Declares weights through leati_layer_add_weight; NULL for a layer without weights. */
    leat_status (*build)(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err);
    /* Writes the path of weight `index` within the layer's group in current Keras's files; NULL: "vars/<index>". */
    void (*weight_path)(const leati_layer *layer, int index, char *out, size_t bytes);
    /* Tells a type that is made at run time that one more (1) or one less (-1) layer has it; NULL for other types. */
    void (*held)(const leati_layer_type *type, int change);
    /* Adds the ops.  The graph keeps failures.  The input of an InputLayer is the input of the model. */
    void (*lower)(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs);
};

/* Defines the descriptor of a layer type, leati_layer_<name>: Keras's class name, the prefix of automatic names, the
 * struct of the configuration, the table of its fields, then other members of leati_layer_type. */
#define LEATI_LAYER_TYPE(name, class_name_, name_prefix_, config_, fields_, ...)                             \
    const leati_layer_type leati_layer_##name = {.class_name = class_name_,                                  \
                                                 .name_prefix = name_prefix_,                                \
                                                 .config_bytes = sizeof(config_),                            \
                                                 .fields = fields_,                                          \
                                                 __VA_ARGS__}
#define LEATI_ONE_INPUT .min_inputs = 1, .max_inputs = 1

/* For LEATI_LAYER_TYPE: the configuration of a layer without fields. */
typedef struct leati_no_config {
    char unused;
} leati_no_config;

/* For build: declares the next weight; the order is Keras's. */
typedef struct leati_weight_spec {
    const char *name;
    int32_t rank;
    int64_t dims[LEAT_MAX_RANK];
    const leati_initializer *initializer;
    const leati_regularizer *regularizer; /* may be NULL */
    const leati_constraint *constraint;   /* may be NULL */
    bool fixed;                           /* the weight is never trained */
} leati_weight_spec;
leat_status leati_layer_add_weight(leati_layer *layer, const leati_weight_spec *spec, leat_error *err);

/* For build: declares the next state. dims[0] is the batch size, which must be known. */
leat_status leati_layer_add_state(leati_layer *layer, int32_t rank, const int64_t *dims, leat_error *err);

/* For lower: gets a weight or a state as a value; tells if the layer is being trained; adds a loss. */
leati_value leati_layer_weight(const leati_layer *layer, const leati_lowering *lowering, int index);
leati_value leati_layer_state(const leati_layer *layer, const leati_lowering *lowering, int index);
bool leati_lowering_trains(const leati_lowering *lowering,
                           const leati_layer *layer); /* in train mode, and the layer trains */
/* Returns Keras's argument `training` of the present call: true in train mode, except inside a call with
 * training=False, where the weights may train, but dropout is off. */
static inline bool leati_lowering_in_training(const leati_lowering *lowering) {
    return lowering->mode == LEATI_TRAIN && !lowering->inference;
}
void leati_lowering_add_loss(leati_lowering *lowering, leati_value scalar);
/* One call of a layer, for leati_layer_lower.  Masks are LEATI_NONE where a tensor has none. */
typedef struct leati_layer_call {
    int input_count, output_count;
    const leati_value *inputs, *masks;
    leati_value *outputs, *output_masks; /* written by leati_layer_lower */
} leati_layer_call;
/* Adds the ops of a call: masks, mixed precision, penalties of the outputs and streaming, around type->lower. */
leat_status leati_layer_lower(const leati_layer *layer, leati_lowering *lowering,
                              const leati_layer_call *call, leat_error *err);

/* The stream of random numbers of `name` within the stream `parent`. */
uint64_t leati_stream(uint64_t parent, const char *name);
/* Returns the mask for an output that depends on all inputs: a step counts if it counts in every mask of an input. */
leati_value leati_lowering_joined_mask(const leati_lowering *lowering, int input_count);
/* Adds the penalty of each output of a call (NULL: none).  As in Keras, only current Keras's penalties are divided
 * by the batch size. */
void leati_lowering_add_activity(leati_lowering *lowering, const leati_regularizer *regularizer,
                                 int output_count, const leati_value *outputs);

/* Returns a shape as a JSON list with null for -1, a new reference; NULL without memory. */
json_t *leati_shape_json(const leati_shape *shape);

/* Infers the shapes of the outputs, after a check of the number of inputs. */
leat_status leati_layer_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                              leati_shape *outputs, int *output_count, leat_error *err);
/* Declares the weights at the first call; at a later call, checks that the same weights fit. */
leat_status leati_layer_build(leati_layer *layer, int input_count, const leati_shape *inputs,
                              leat_error *err);

/* Returns Keras's dtype or policy: "float32", "mixed_bfloat16"; for an InputLayer, the dtype of the input. */
#define LEATI_MIXED_BFLOAT16 "mixed_bfloat16"
#define LEATI_MIXED_FLOAT16  "mixed_float16"
const char *leati_layer_policy(const leati_layer *layer);

/* Reads layers inside a layer, through functions of the folders above, which know custom layers and models.  If a
 * reader is NULL, only leat's own layer types are known, and models are not. */
typedef struct leati_layer_reader leati_layer_reader;
struct leati_layer_reader {
    leati_part_scope scope;        /* the custom parts; first, because fields of all kinds read it */
    const leat_registry *registry; /* the custom layers; NULL: none */
    /* Finds the type of a class name.  Errors: LEAT_ENOTSUP with the nearest known name. */
    const leati_layer_type *(*find_type)(const leati_layer_reader *reader, const char *class_name,
                                         const json_t *config, leat_error *err);
    /* Reads a model that stands in the place of a layer. */
    leat_status (*read_model)(const leati_layer_reader *reader, leati_layer **out, const json_t *item,
                              leat_error *err);
};

/* Makes a layer from Keras's config object: name, trainable, ... and the type's fields. */
leat_status leati_layer_create(leati_layer **out, const leati_layer_type *type, const json_t *config,
                               const leati_layer_reader *reader, leat_error *err);
/* Makes the config object of a layer (new reference). */
leat_status leati_layer_config(const leati_layer *layer, json_t **out, leat_error *err);
void leati_layer_destroy(leati_layer **layer);

/* Writes the path of weight `index` in the layer's group in current Keras's files: "vars/0", "cell/vars/0". */
void leati_layer_weight_path(const leati_layer *layer, int index, char *out, size_t bytes);

/* Returns the layer's activity_regularizer: the field of the type, or the common key that every layer has. */
const leati_regularizer *leati_layer_activity(const leati_layer *layer);

/* True if a type has a field of this name. */
bool leati_layer_has_key(const leati_layer_type *type, const char *key);

/* Returns the model inside a layer, like that of a TimeDistributed; NULL if there is none. */
leat_model *leati_layer_model(const leati_layer *layer);

/* True if the layer is an InputLayer. */
bool leati_layer_is_input(const leati_layer *layer);

/* For infer: returns the failure "expected <expected>, received (None, 784)". */
leat_status leati_shape_unexpected(const leati_shape *shape, const char *expected, leat_error *err);
#define LEATI_SHAPE_TEXT_BYTES 128
const char *leati_shape_show(char out[LEATI_SHAPE_TEXT_BYTES], const leati_shape *shape);

#endif
