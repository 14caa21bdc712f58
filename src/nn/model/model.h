/* SPDX-License-Identifier: Apache-2.0 */
/* A model inside: layers, the calls that join them, weights in slabs, and what compile said. */
#ifndef LEATI_NN_MODEL_MODEL_H
#define LEATI_NN_MODEL_MODEL_H

#include <stdatomic.h>

#include "leat/model.h"
#include "nn/layers/layer.h"
#include "nn/losses/loss.h"
#include "nn/metrics/metric.h"
#include "nn/optimizers/optimizer.h"

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

/* The slabs: trainable weights first, each 64-byte aligned, then the fixed ones.  Only the outermost model owns them;
 * nested layers' offsets point into the same slabs. */
typedef struct leati_weights {
    size_t bytes, trainable_bytes;
    bool *lent; /* the caller has a view of the weights, and may write through it at any time */
    void *slab[LEATI_SLAB_COUNT];
    size_t state_bytes;
    int32_t count;           /* all weights, in Keras's order of model.weights: trainable, then not */
    leati_weight **entries;  /* borrowed from the layers */
    const char **names;      /* "dense_1/kernel:0", owned */
    int32_t trainable_count; /* of the first entries */
    int32_t *order; /* model.get_weights(): places in entries, layer by layer, as `trainable` says now */
} leati_weights;

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

/* From and to Keras's JSON: {"class_name": "Sequential" | "Model" | "Functional", "config": ...}.  A "keras_version"
 * beside them says whose defaults count. */
leat_status leati_model_from_config(leat_model **out, const json_t *root, leat_error *err);
leat_status leati_model_from_config_with(leat_model **out, const json_t *root, const leat_registry *registry,
                                         leat_error *err);
leat_status leati_model_config(const leat_model *model, json_t **out, leat_error *err);
/* One that is to stand in the place of a layer: its weights have no memory yet. */
leat_status leati_model_read_inner(leat_model **out, const json_t *item, const leat_registry *registry,
                                   leat_error *err);

/* training_config of a file: {"optimizer_config": ..., "loss": ..., "metrics": ..., ...}. */
leat_status leati_model_compile_config(leat_model *model, const json_t *training_config, leat_error *err);
leat_status leati_model_training_config(const leat_model *model, json_t **out, leat_error *err);

/* Layers of the policy mixed_bfloat16. */
int32_t leati_model_count_mixed(const leat_model *model);

/* Whoever writes weights says so, plans excepted: kernels pack them anew. */
static inline void leati_model_weights_changed(leat_model *model) {
    ++model->weights_version;
}

/* What the layers carry from batch to batch (nn/model/states.c): bytes in all, and moving it into a new slab, which is zeroed.
 * A model that is nested in another has its states in that one's slab. */
size_t leati_states_bytes(const leat_model *model);
void leati_states_move(leat_model *model, void *slab);
/* The number of samples that its stateful layers work with, or -1. */
int64_t leati_model_stateful_batch(const leat_model *model);

/* Frees what compile made and zeroes it; zeroed is fine. */
void leati_compiled_fini(leati_compiled *compiled);

/* A member by itself: its name, and its weights as a file's group has them (a nested model's all in one group). */
const char *leati_member_name(const leat_model *model, int member);
int leati_member_weight_count(const leat_model *model, int member);
const leati_weight *leati_member_weight(const leat_model *model, int member, int index);
const char *leati_member_weight_name(const leat_model *model, int member, int index); /* "dense_1/kernel:0" */

const char *leati_model_input_name(const leat_model *model, int index);
const char *leati_model_output_name(const leat_model *model, int index);
leati_shape leati_model_input_shape(const leat_model *model, int index);
leati_shape leati_model_output_shape(const leat_model *model, int index);

/* Adds the model's ops: inputs[i] are values of the graph, outputs and output_masks (LEATI_NONE: none) receive one per
 * output. */
leat_status leati_model_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                              leati_value *outputs, leati_value *output_masks, leat_error *err);

#endif
