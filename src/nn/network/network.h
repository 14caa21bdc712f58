/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a network of layers and calls, with its weights and what compile has set.  Functions make a network,
 * lay out its weights, infer its shapes and lower it to ops.  To make one: add members, call them, finish.  An
 * unfinished model may be destroyed at any time. */
#ifndef LEATI_NN_NETWORK_NETWORK_H
#define LEATI_NN_NETWORK_NETWORK_H

#include <stdatomic.h>

#include "leat/model.h"
#include "nn/layers/layer.h"
#include "nn/losses/loss.h"
#include "nn/metrics/metric.h"
#include "nn/optimizers/optimizer.h"

#define LEATI_NETWORK_MAX_OUTPUTS                                                                            \
    32 /* the most inputs, and the most outputs, of a model that is compiled or run */
#define LEATI_NETWORK_MAX_METRICS 48

/* A tensor of the model: output `tensor` of call `call` of member `layer`, like Keras's ["dense_1", 0, 0]. */
typedef struct leati_source {
    int32_t layer, call, tensor;
} leati_source;

typedef struct leati_call {
    int32_t input_count;
    leati_source *inputs;
    int32_t output_count;
    leati_shape outputs[LEATI_LAYER_MAX_OUTPUTS];
    bool
        inference; /* called with training=False: dropout is off, and moving averages are used, also in fit */
    bool masked; /* the last input is the argument `mask` of the call: (N, T), not 0 for a step that counts */
    int32_t depth; /* Keras's: 0 for an output of the model, otherwise one more than the deepest reader's */
} leati_call;

/* A layer of the model, with its calls; an InputLayer has one call without inputs.  A nested model takes the place
 * of a layer: then `model` is set and `layer` is NULL. */
typedef struct leati_member {
    leati_layer *layer;
    struct leat_model *model;
    int32_t call_count;
    leati_call *calls;
    int32_t first_call; /* the number of calls of all members before this one */
    bool
        added; /* only AddLoss and AddMetric layers need it; it comes after the members that the outputs need */
    int32_t first_weight,
        weight_count; /* range of its weights in model.get_weights(), whose order is that of files */
} leati_member;

/* Returns the model that a member is or has inside; NULL for a layer without a model inside. */
static inline struct leat_model *leati_member_model(const leati_member *member) {
    return member->model ? member->model : leati_layer_model(member->layer);
}

/* One call of the schedule, which makes the inputs of a call before the call. */
typedef struct leati_scheduled_call {
    int32_t member, call;
} leati_scheduled_call;

typedef struct leati_compiled {
    bool ready;
    bool as_keras3; /* the arithmetic of current Keras */
    leati_optimizer *optimizer;
    int32_t output_count;
    leati_output_loss *losses; /* one per output */
    int32_t metric_count;
    leati_metric *metrics; /* in Keras's order */
    json_t *arguments; /* the arguments of compile, in the form of a training_config, without the optimizer */
} leati_compiled;

struct leat_model {
    char name[LEAT_NAME_BYTES];
    char class_name[16]; /* "Sequential" or "Model": its class in files */
    int32_t member_count;
    leati_member *members; /* in the order of Keras's model.layers; a Sequential begins with its InputLayer */
    int32_t schedule_count;
    leati_scheduled_call *schedule; /* all calls, each after the calls that it reads */
    int32_t input_count, output_count;
    leati_source *inputs, *outputs;
    json_t *input_keys, *output_keys; /* their names in a dictionary of Keras; NULL: those of their layers */
    bool trainable;
    bool as_keras3;   /* computes as current Keras: the file's, or leat_compile_options.arithmetic */
    bool from_keras3; /* the configuration came from current Keras: .h5 files and JSON go back in its form */
    bool gradient_checkpointing;                /* leat_model_set_gradient_checkpointing */
    bool deterministic;                         /* leat_model_set_deterministic */
    bool tf32;                                  /* leat_model_set_tf32 */
    bool unfolded;                              /* leat_model_set_folding(false) */
    int tuning;                                 /* leat_model_set_tuning */
    void (*watch)(void *watcher, double share); /* set by leat_model_set_measuring_progress; NULL: none */
    void *watcher;
    leati_weights weights;
    leati_compiled compiled;
    const leati_part
        *parts; /* held: the custom parts of the registry that the model was made with; NULL: none */
    json_t *file_compilation; /* the training_config of a file that was loaded without it; NULL: none */
    char added_loss[LEAT_NAME_BYTES]; /* the AddLoss of the file, which leat cannot compute; "": none */
    char added_reason[256];           /* why leat cannot compute it */
    json_t *layer_order;              /* leati_model_layer_order; NULL: the members' order */
    uint64_t seed;
    int64_t iterations;         /* training steps so far: the optimizer's counter */
    uint64_t weights_version;   /* counts changes of weights: leati_model_weights_changed */
    uint64_t states_version;    /* counts calls of leat_model_reset_states */
    uint64_t version;           /* changes when older plans become invalid: compile, trainable, ... */
    atomic_int holders;         /* the number of predictors; the last of them or the owner frees the model */
    atomic_bool stop_requested; /* leat_model_stop_training */
    int32_t runs;  /* fits, evaluations and predictions in progress: a callback of one may run another */
    void *session; /* the trainer's plans and caches (train/session.h); NULL until needed */
    void (*session_destroy)(void **session);
    void *
        publication; /* copies of the weights for predictors (train/predict/publication.h); NULL until needed */
    void (*publication_destroy)(void **publication);
};

/* Must be called after each change of weights, except by a plan: it makes kernels repack the weights. */
static inline void leati_model_weights_changed(leat_model *model) {
    ++model->weights_version;
    leati_weights_changed(&model->weights, LEATI_SLAB_WEIGHTS);
}

/* Frees what compile has set, and zeroes *compiled. */
void leati_compiled_fini(leati_compiled *compiled);

/* ---- Making a network ---- */

/* Creates an empty model. class_name is "Sequential" or "Model". */
leat_status leati_network_create(leat_model **out, const char *class_name, leat_error *err);

/* Add a member.  They consume *layer or *inner and set it to NULL, also on failure; *member is the member's
 * index.  A member without a name gets one.  An InputLayer gets its call at once.
 * Errors: LEAT_EINVAL the name is taken; LEAT_ENOTSUP more than LEATI_NETWORK_MAX_MEMBERS members. */
#define LEATI_NETWORK_MAX_MEMBERS 4096
leat_status leati_network_add_layer(leat_model *model, leati_layer **layer, int32_t *member, leat_error *err);
leat_status leati_network_add_model(leat_model *model, leat_model **inner, int32_t *member, leat_error *err);

/* Adds an InputLayer of this shape, with its call.
 * @param name  Its name; another one is chosen if the name is taken. */
leat_status leati_network_add_input(leat_model *model, const char *name, const leati_shape *shape,
                                    int32_t *member, leat_error *err);

/* Finds the first name among "dense_1", "dense_2", ... that is not taken. */
void leati_network_free_name(const leat_model *model, const char *prefix, char out[LEAT_NAME_BYTES]);
/* Fails if the model has more inputs or outputs than LEATI_NETWORK_MAX_OUTPUTS.  Errors: LEAT_ENOTSUP. */
leat_status leati_network_check_counts(const leat_model *model, leat_error *err);

/* Returns the index of the member of that name; -1 if there is none. */
int32_t leati_network_find(const leat_model *model, const char *name);

/* Calls a member on tensors of the model: infers shapes, and declares weights at the first call.  Errors name the
 * layer. */
/* Like leati_network_call(), but the last input is the argument `mask` of the call, which replaces the mask that the
 * first input has. */
leat_status leati_network_call_masked(leat_model *model, int32_t member, int32_t count,
                                      const leati_source *inputs, leat_error *err);
leat_status leati_network_call(leat_model *model, int32_t member, int32_t count, const leati_source *inputs,
                               leat_error *err);

/* True if the model has made the tensor so far. */
bool leati_network_has(const leat_model *model, const leati_source *source);
leati_shape leati_network_shape(const leat_model *model, const leati_source *source);

/* Sets the inputs and outputs, removes what the outputs do not need, and sorts members and calls as Keras does.
 * Errors: LEAT_EINVAL an input that is not an InputLayer's, or a needed InputLayer that is not among the inputs. */
leat_status leati_network_finish(leat_model *model, int32_t input_count, const leati_source *inputs,
                                 int32_t output_count, const leati_source *outputs, leat_error *err);
/* Like leati_network_finish, but also keeps the layers AddLoss and AddMetric, and what they need. */
leat_status leati_network_finish_added(leat_model *model, int32_t input_count, const leati_source *inputs,
                                       int32_t output_count, const leati_source *outputs, leat_error *err);
/* True if the model, or a model inside it, has a layer AddLoss or AddMetric. */
bool leati_network_has_added(const leat_model *model);

/* Joins the members of a Sequential that has no input yet (input_count is 0), now that the shape of its input is
 * known. */
leat_status leati_sequential_connect(leat_model *model, const leati_shape *shape, leat_error *err);

/* Infers the output shapes of a model that is called as a layer.  A Sequential without an input gets one.
 * Errors: LEAT_EINVAL the number of inputs; LEAT_ENOTSUP more outputs than a layer can have. */
leat_status leati_network_infer_call(leat_model *model, int count, const leati_shape *inputs,
                                     leati_shape *outputs, int *output_count, leat_error *err);

/* Infers the output shapes of a finished model.  Errors: LEAT_ESHAPE with the layer's name. */
leat_status leati_network_infer(const leat_model *model, const leati_shape *inputs, leati_shape *outputs,
                                leat_error *err);

/* Adds the ops of a nested model, with masks (LEATI_NONE: none) of its inputs and outputs. */
leat_status leati_network_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                                const leati_value *masks, leati_value *outputs, leati_value *output_masks,
                                leat_error *err);

/* Names the inputs and the outputs as their layers again. */
void leati_network_forget_keys(leat_model *model);

/* Frees members, steps, inputs and outputs. */
void leati_network_fini(leat_model *model);

/* Adds the ops of the outermost model and the penalties of its weights. inputs[i] are values of the graph; outputs
 * and output_masks (LEATI_NONE: none) receive one value per output. */
leat_status leati_model_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                              leati_value *outputs, leati_value *output_masks, leat_error *err);

/* ---- Members, inputs and outputs ---- */

/* The name of a member, and its weights as a group of a file has them: a nested model's weights are all in one
 * group. */
const char *leati_member_name(const leat_model *model, int member);
int leati_member_weight_count(const leat_model *model, int member);
const leati_weight *leati_member_weight(const leat_model *model, int member, int index);
const char *leati_member_weight_name(const leat_model *model, int member, int index); /* "dense_1/kernel:0" */

const char *leati_model_input_name(const leat_model *model, int index);
const char *leati_model_output_name(const leat_model *model, int index);
leati_shape leati_model_input_shape(const leat_model *model, int index);
leati_shape leati_model_output_shape(const leat_model *model, int index);

/* ---- Weights and states ---- */

/* Lists the model's weights by what is trainable now, gives each an offset (64-byte aligned, trainable ones first)
 * and allocates LEATI_SLAB_WEIGHTS.  Weights that have values keep them; the others are drawn from the model's
 * seed.  States keep their values, too, or begin as zeros.  Frees the other slabs, whose layout is no longer
 * valid.  On failure the model is unchanged. */
leat_status leati_weights_layout(leat_model *model, leat_error *err);

/* Recomputes the order of weights in files after a change of `trainable`, without a new layout. */
leat_status leati_weights_reorder(leat_model *model, leat_error *err);

/* The states of stateful layers (nn/network/states.c): their size, and moving them into a new, zeroed slab.  The
 * states of a nested model are in the slab of the outermost model. */
size_t leati_states_bytes(const leat_model *model);
void leati_states_move(leat_model *model, void *slab);
/* Returns the batch size that the stateful layers were built for; -1 if there is none. */
int64_t leati_model_stateful_batch(const leat_model *model);
/* Copies the states of `count` samples, from number `first` of a batch of `batch` samples on, to `packed`, which has
 * all states of one sample behind those of the sample before; leati_states_unpack copies them back.  leati_states_width
 * returns the bytes of one sample. */
size_t leati_states_width(const leat_model *model, int64_t batch);
void leati_states_pack(const leat_model *model, int64_t batch, int64_t first, int64_t count, void *packed);
void leati_states_unpack(const leat_model *model, int64_t batch, int64_t first, int64_t count,
                         const void *packed);

#endif
