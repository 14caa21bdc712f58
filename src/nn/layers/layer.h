/* SPDX-License-Identifier: Apache-2.0 */
/* What a layer is.  A layer type is one file in nn/layers/: its configuration (a table of fields), its shapes, its
 * weights, and its lowering to ops.  Everything else (JSON, saving, summary, conformance tests) follows from the row in
 * nn/layers/types.c. */
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

#define LEATI_LAYER_MAX_OUTPUTS 10

/* A shape with the batch dimension in front; -1 where it is not known before a batch comes. */
typedef struct leati_shape {
    int32_t rank;
    int64_t dims[LEAT_MAX_RANK];
} leati_shape;

typedef enum leati_mode { LEATI_TRAIN, LEATI_TEST, LEATI_PREDICT } leati_mode;

/* What a layer carries from one batch to the next, for that many samples: a stateful recurrent layer's h and c.  Zero at
 * first, and no weight: no file has it. */
typedef struct leati_state {
    leati_desc desc;
    size_t offset_bytes; /* in the slab of states */
    bool placed;         /* the slab holds its value */
} leati_state;

struct leati_layer {
    const leati_layer_type *type;
    char name[LEAT_NAME_BYTES];
    bool trainable;
    bool
        trains; /* it is trainable, and all models around it are, since the weights were last laid out (compile) */
    bool built;
    bool has_batch_input_shape; /* the configuration gave one: first layer of a Sequential */
    leati_shape batch_input_shape;
    leat_dtype dtype;
    bool mixed; /* Keras's policy mixed_bfloat16: what it reads and makes may be bf16, its weights are f32 */
    void *config; /* type->config_bytes, laid out by type->fields */
    leati_regularizer
        activity_regularizer; /* of a type whose table has no such row: current Keras's layers all may */
    int32_t weight_count, state_count;
    leati_weight *weights;
    leati_state *states;
    /* That it is wrapped by, and that has its weights and states, from first_outer_weight and _state on; or NULL. */
    leati_layer *outer;
    int32_t first_outer_weight, first_outer_state;
};

/* What a lowering has at hand. */
typedef struct leati_lowering {
    leati_graph *graph;
    leati_mode mode;
    leati_value losses[64]; /* scalars that regularizers and layers add to the loss */
    int32_t loss_count;
    uint64_t
        stream; /* names the random numbers of the call being lowered: a function of its place in the model */
    /* Of the call being lowered: f32, 1 where a step counts and 0 where it does not, with the first axes of its tensor
     * (N, T); LEATI_NONE: all count. */
    leati_value input_masks[LEATI_MAX_INPUTS], output_masks[LEATI_LAYER_MAX_OUTPUTS];
    bool inside;               /* of a wrapper, which counts the outputs' penalties itself */
    struct leati_carry *carry; /* states of the program's own (nn/layers/carry.h); NULL: the model's */
} leati_lowering;

/* What becomes of a mask that an input has: Keras's supports_masking and compute_mask. */
typedef enum leati_masking {
    LEATI_MASK_REFUSED = 0, /* the layer cannot be called with one */
    LEATI_MASK_PASSED,      /* outputs have it, too; of several inputs' masks, all that say so must count */
    LEATI_MASK_OWN          /* lower reads input_masks and sets output_masks, which are LEATI_NONE before */
} leati_masking;

/* Whether a layer takes each step of a sequence (N, T, ...) by itself, so that one step at a time gives what all of them give.
 * Recurrent layers (recurrence.h) need not say. */
typedef enum leati_steps {
    LEATI_STEPS_JOINED = 0, /* no, or it is not known */
    LEATI_STEPS_BY_NUMBER,  /* even each number */
    LEATI_STEPS_APART,      /* what is behind the second axis */
    LEATI_STEPS_BY_AXIS     /* the same, if "axis" is none of the first two */
} leati_steps;

/* A default that older versions of Keras had: `preset` for files of versions below major.minor. */
typedef struct leati_old_preset {
    const char *key;
    int32_t major, minor;
    const char *preset;
} leati_old_preset;

struct leati_layer_type {
    const char *class_name;  /* Keras's */
    const char *name_prefix; /* of automatic names: "conv2d" */
    size_t config_bytes;
    const leati_field *fields; /* beside name, trainable, dtype, batch_input_shape, which every layer has */
    int32_t min_inputs, max_inputs;      /* 1, 1 for most */
    const leati_old_preset *old_presets; /* ended by key NULL; NULL: none */
    leati_masking masking;
    leati_steps steps;
    bool shares_trainable; /* the layer inside is frozen, and thawed, with it */
    /* The layer as JSON, if this is not {"class_name": ..., "config": ...} with the fields; NULL for most. */
    leat_status (*write)(const leati_layer *layer, json_t **out, leat_error *err);
    /* Freezes or thaws the model that the layer is; NULL: the layer is none. */
    void (*set_trainable)(leati_layer *layer, bool trainable);
    /* The model inside, which then has the weights and states; NULL: none is. */
    leat_model *(*model)(const leati_layer *layer);
    /* Checks what a row cannot say, and settles what depends on other rows (strides by pool_size); may be NULL. */
    leat_status (*check)(leati_layer *layer, leat_error *err);
    /* Frees what check made in the configuration; may be NULL. */
    void (*fini)(void *config);
    /* Shapes of the outputs; *output_count is 1 unless set. */
    leat_status (*infer)(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err);
    /* Declares weights through leati_layer_add_weight; NULL for a layer that has none. */
    leat_status (*build)(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err);
    /* Where current Keras keeps weight `index`, within the layer's group; NULL: "vars/<index>". */
    void (*place)(const leati_layer *layer, int index, char *out, size_t bytes);
    /* Of a type that is made while the program runs: one layer more (1) or less (-1) has it; NULL for the others. */
    void (*held)(const leati_layer_type *type, int change);
    /* Adds the ops.  Failures are kept by the graph.  An InputLayer's input is what the model is fed. */
    void (*lower)(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs);
};

/* Defines the descriptor of a layer type, leati_layer_<name>: Keras's class name, the prefix of automatic names, the struct of
 * its configuration and the table of its fields, then the other members of leati_layer_type. */
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

/* For build: declares the next weight, in Keras's order. */
typedef struct leati_weight_spec {
    const char *name;
    int32_t rank;
    int64_t dims[LEAT_MAX_RANK];
    const leati_initializer *initializer;
    const leati_regularizer *regularizer; /* may be NULL */
    const leati_constraint *constraint;   /* may be NULL */
    bool fixed;                           /* not trainable by nature */
} leati_weight_spec;
leat_status leati_layer_add_weight(leati_layer *layer, const leati_weight_spec *spec, leat_error *err);

/* For build: declares the next state.  dims[0] is the batch, which must be known. */
leat_status leati_layer_add_state(leati_layer *layer, int32_t rank, const int64_t *dims, leat_error *err);

/* For lower: weight i, or state i, as a value; the mode's flags; a loss to be added. */
leati_value leati_layer_weight(const leati_layer *layer, const leati_lowering *lowering, int index);
leati_value leati_layer_state(const leati_layer *layer, const leati_lowering *lowering, int index);
bool leati_lowering_trains(const leati_lowering *lowering,
                           const leati_layer *layer); /* train mode and trainable */
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
/* The mask of what is made of all inputs: a step counts where it does in each that has a mask. */
leati_value leati_lowering_joined_mask(const leati_lowering *lowering, int input_count);
/* The penalty of a call's outputs, one by one, as Keras counts it: not divided by the batch size, but by current Keras.
 * NULL: none. */
void leati_lowering_add_activity(leati_lowering *lowering, const leati_regularizer *regularizer,
                                 int output_count, const leati_value *outputs);

/* Shapes of the outputs, after a check of how many inputs there are. */
leat_status leati_layer_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                              leati_shape *outputs, int *output_count, leat_error *err);
/* Declares the weights at the first call; at a further one, checks that the same weights fit. */
leat_status leati_layer_build(leati_layer *layer, int input_count, const leati_shape *inputs,
                              leat_error *err);

/* Keras's name of how it computes: "float32", or of an InputLayer the type of what it is fed. */
#define LEATI_MIXED_BFLOAT16 "mixed_bfloat16"
const char *leati_layer_policy(const leati_layer *layer);

/* How layers inside a layer are read from its configuration: functions of the rooms above, which know custom layers and
 * models.  NULL in the place of a reader: leat's own layer types alone are known, and no models. */
typedef struct leati_layer_reader leati_layer_reader;
struct leati_layer_reader {
    const leat_registry *registry; /* the custom layers; NULL: none */
    /* Finds the type of a class name.  Errors: LEAT_ENOTSUP with the nearest known name. */
    const leati_layer_type *(*find_type)(const leati_layer_reader *reader, const char *class_name,
                                         const json_t *config, leat_error *err);
    /* Reads a model that stands in the place of a layer. */
    leat_status (*read_model)(const leati_layer_reader *reader, leati_layer **out, const json_t *item,
                              leat_error *err);
};

/* A layer from Keras's config object (name, trainable, ... and the type's fields). */
leat_status leati_layer_create(leati_layer **out, const leati_layer_type *type, const json_t *config,
                               const leati_layer_reader *reader, leat_error *err);
/* Its config object, new reference. */
leat_status leati_layer_config(const leati_layer *layer, json_t **out, leat_error *err);
void leati_layer_destroy(leati_layer **layer);

/* The place of weight `index` in current Keras's files: "vars/0", "cell/vars/0". */
void leati_layer_place(const leati_layer *layer, int index, char *out, size_t bytes);

/* Returns the layer's activity_regularizer: the field of the type, or the common key that every layer has. */
const leati_regularizer *leati_layer_activity(const leati_layer *layer);

/* The model that is inside a layer, as TimeDistributed may have one; NULL where there is none. */
leat_model *leati_layer_model(const leati_layer *layer);

/* Whether it is what a model is fed through. */
bool leati_layer_is_input(const leati_layer *layer);

/* For infer: the failure "expected <what>, received (None, 784)". */
leat_status leati_shape_unexpected(const leati_shape *shape, const char *expected, leat_error *err);
#define LEATI_SHAPE_TEXT_BYTES 128
const char *leati_shape_show(char out[LEATI_SHAPE_TEXT_BYTES], const leati_shape *shape);

#endif
