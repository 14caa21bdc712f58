/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a network: layers, the calls that join them, weights in slabs, and what compile said.  Functions that make a
 * network (members, then calls, then the whole), lay out its weights, infer its shapes and lower it to ops.  A model that
 * is being made may be destroyed at any point. */
#ifndef LEATI_NN_NETWORK_NETWORK_H
#define LEATI_NN_NETWORK_NETWORK_H

#include <stdatomic.h>

#include "leat/model.h"
#include "nn/layers/layer.h"
#include "nn/losses/loss.h"
#include "nn/metrics/metric.h"
#include "nn/optimizers/optimizer.h"

#define LEATI_NETWORK_MAX_OUTPUTS 16 /* of a model that is compiled or run; also of its inputs */
#define LEATI_NETWORK_MAX_METRICS 48

/* Where a tensor of the model comes from: output `tensor` of call `call` of layer `layer`, as in Keras's
 * ["dense_1", 0, 0]. */
typedef struct leati_source {
    int32_t layer, call, tensor;
} leati_source;

typedef struct leati_call {
    int32_t input_count;
    leati_source *inputs;
    int32_t output_count;
    leati_shape outputs[LEATI_LAYER_MAX_OUTPUTS];
    int32_t depth; /* Keras's: 0 for an output, one more than the deepest that reads it */
} leati_call;

/* A layer in the model with its calls; an InputLayer has one call without inputs.  A nested model stands in place of a
 * layer: then `model` is set and `layer` is NULL. */
typedef struct leati_member {
    leati_layer *layer;
    struct leat_model *model;
    int32_t call_count;
    leati_call *calls;
    int32_t first_call; /* calls of the members before this one */
    int32_t first_weight,
        weight_count; /* its weights in the order of model.get_weights(), which is that of files */
} leati_member;

/* The model that a member is or has inside; NULL: a layer alone. */
static inline struct leat_model *leati_member_model(const leati_member *member) {
    return member->model ? member->model : leati_layer_model(member->layer);
}

/* One call in an order in which each finds its inputs made. */
typedef struct leati_scheduled_call {
    int32_t member, call;
} leati_scheduled_call;

typedef struct leati_compiled {
    bool ready;
    leati_optimizer *optimizer;
    int32_t output_count;
    leati_output_loss *losses; /* one per output */
    int32_t metric_count;
    leati_metric *metrics; /* in Keras's order, each with its output and its name */
    json_t *arguments;     /* what was asked for, as a training_config holds it (without the optimizer) */
} leati_compiled;

struct leat_model {
    char name[LEAT_NAME_BYTES];
    char class_name[16]; /* "Sequential" or "Model": what it is written back as */
    int32_t member_count;
    leati_member
        *members; /* in the order of Keras's model.layers; a Sequential has its InputLayer in front */
    int32_t schedule_count;
    leati_scheduled_call *schedule; /* all calls */
    int32_t input_count, output_count;
    leati_source *inputs, *outputs;
    bool trainable;
    bool gradient_checkpointing;                /* leat_model_set_gradient_checkpointing */
    bool deterministic;                         /* leat_model_set_deterministic */
    bool unfolded;                              /* leat_model_set_folding: off */
    int tuning;                                 /* leat_model_set_tuning */
    void (*watch)(void *watcher, double share); /* leat_model_set_measuring_progress; NULL: nobody does */
    void *watcher;
    leati_weights weights;
    leati_compiled compiled;
    uint64_t seed;
    int64_t iterations;         /* training steps done: the optimizer's counter */
    uint64_t weights_version;   /* counts what changes weights: leati_model_weights_changed */
    uint64_t version;           /* changes when plans made before must not be used: compile, trainable, ... */
    atomic_int holders;         /* predictors; whoever goes last frees it, they or the owner */
    atomic_bool stop_requested; /* leat_model_stop_training */
    int32_t runs;               /* fits, evaluations and predictions in progress, one inside another's hook */
    void *session;              /* the trainer's plans and feeds' caches (train/session.h), made on demand */
    void (*session_destroy)(void **session);
    void
        *publication; /* copies of the weights for predictors (train/predict/publication.h), made on demand */
    void (*publication_destroy)(void **publication);
};

/* Whoever writes weights says so, plans excepted: kernels pack them anew. */
static inline void leati_model_weights_changed(leat_model *model) {
    ++model->weights_version;
}

/* Frees what compile made and zeroes it; zeroed is fine. */
void leati_compiled_fini(leati_compiled *compiled);

/* ---- Making a network ---- */

/* class_name: "Sequential" or "Model". */
leat_status leati_network_create(leat_model **out, const char *class_name, leat_error *err);

/* Take *layer or *inner over (and set it to NULL), whether they succeed or fail; *member is its place.  One without a
 * name gets one.  An InputLayer has its call at once.
 * Errors: LEAT_EINVAL a name that is taken; LEAT_ENOTSUP more than LEATI_NETWORK_MAX_MEMBERS. */
#define LEATI_NETWORK_MAX_MEMBERS 4096
leat_status leati_network_add_layer(leat_model *model, leati_layer **layer, int32_t *member, leat_error *err);
leat_status leati_network_add_model(leat_model *model, leat_model **inner, int32_t *member, leat_error *err);

/* "dense_1", "dense_2", ...: the first that is free. */
void leati_network_free_name(const leat_model *model, const char *prefix, char out[LEAT_NAME_BYTES]);
/* The member of that name, or -1. */
int32_t leati_network_find(const leat_model *model, const char *name);

/* Calls a member on tensors of the model: infers shapes, declares weights at the first call.  Errors name the layer. */
leat_status leati_network_call(leat_model *model, int32_t member, int32_t count, const leati_source *inputs,
                               leat_error *err);

/* Whether a source is a tensor of the model so far. */
bool leati_network_has(const leat_model *model, const leati_source *source);
leati_shape leati_network_shape(const leat_model *model, const leati_source *source);

/* Says what goes in and out; drops what the outputs do not need, and sorts members and steps as Keras does.
 * Errors: LEAT_EINVAL an input that is no InputLayer, an InputLayer that is not among the inputs. */
leat_status leati_network_finish(leat_model *model, int32_t input_count, const leati_source *inputs,
                                 int32_t output_count, const leati_source *outputs, leat_error *err);

/* Joins the members of a Sequential that has been waiting for its input's shape.  It has none yet: input_count is 0. */
leat_status leati_sequential_connect(leat_model *model, const leati_shape *shape, leat_error *err);

/* The shapes that a model makes where it is called as a layer: a Sequential may have waited for its input's.
 * Errors: LEAT_EINVAL the number of inputs; LEAT_ENOTSUP more outputs than a layer can have. */
leat_status leati_network_infer_call(leat_model *model, int count, const leati_shape *inputs,
                                     leati_shape *outputs, int *output_count, leat_error *err);

/* The shapes that a finished model makes of others.  Errors: LEAT_ESHAPE with the layer's name. */
leat_status leati_network_infer(const leat_model *model, const leati_shape *inputs, leati_shape *outputs,
                                leat_error *err);

/* Adds the ops of such a call, with masks (LEATI_NONE: none) of what goes in and comes out. */
leat_status leati_network_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                                const leati_value *masks, leati_value *outputs, leati_value *output_masks,
                                leat_error *err);

/* Frees members, steps, inputs and outputs. */
void leati_network_fini(leat_model *model);

/* Adds the model's ops: inputs[i] are values of the graph, outputs and output_masks (LEATI_NONE: none) receive one per
 * output. */
leat_status leati_model_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                              leati_value *outputs, leati_value *output_masks, leat_error *err);

/* ---- Members, inputs and outputs ---- */

/* A member by itself: its name, and its weights as a file's group has them (a nested model's all in one group). */
const char *leati_member_name(const leat_model *model, int member);
int leati_member_weight_count(const leat_model *model, int member);
const leati_weight *leati_member_weight(const leat_model *model, int member, int index);
const char *leati_member_weight_name(const leat_model *model, int member, int index); /* "dense_1/kernel:0" */

const char *leati_model_input_name(const leat_model *model, int index);
const char *leati_model_output_name(const leat_model *model, int index);
leati_shape leati_model_input_shape(const leat_model *model, int index);
leati_shape leati_model_output_shape(const leat_model *model, int index);

/* ---- Weights and states ---- */

/* Lists the model's weights by what is trainable now, gives each its place (64-byte aligned, trainable ones first) and
 * allocates LEATI_SLAB_WEIGHTS; values of weights that had a place are kept, others are drawn from the model's seed; so with states,
 * which begin as zeros.  Frees the other slabs: their offsets are no longer true.  On failure the model is as before. */
leat_status leati_weights_layout(leat_model *model, leat_error *err);

/* Finds the order of files anew, after a change of `trainable` that the layout does not know yet. */
leat_status leati_weights_reorder(leat_model *model, leat_error *err);

/* What the layers carry from batch to batch (nn/network/states.c): bytes in all, and moving it into a new slab, which is zeroed.
 * A model that is nested in another has its states in that one's slab. */
size_t leati_states_bytes(const leat_model *model);
void leati_states_move(leat_model *model, void *slab);
/* The number of samples that its stateful layers work with, or -1. */
int64_t leati_model_stateful_batch(const leat_model *model);

#endif
