/* SPDX-License-Identifier: Apache-2.0 */
/* Custom losses, metrics, activations, initializers, regularizers, constraints, optimizers and cells: objects that a
 * program defines by C functions on arrays of float and registers by name (custom layers: leat/layer.h).  Models
 * that are made with the registry find the objects in files and in the arguments of leat_model_compile().
 * docs/custom.md, examples/custom_loss.c, examples/custom_parts.c and examples/custom_cell.c show how.
 *
 * All definitions begin with the same members:
 *
 * - `name`: "MyLoss" for a class, "my_loss" for a function; a name that begins with a capital letter is a class.  It
 *   may have a package, as in Keras's register_keras_serializable: "my_package>MyLoss".  A package that only the
 *   definition or only the file has is ignored.
 * - `keys` and `config_bytes`: the keys of the object's get_config() and the size of the C struct that receives their
 *   values, as in leat/layer.h, but only of the kinds LEAT_KEY_INT to LEAT_KEY_NUMBERS.
 * - `user`: a pointer that the functions receive.
 * - `check`: checks what the keys cannot express, and sets members that depend on others; may be NULL.
 *
 * The texts and tables that a definition points to must outlive the registry and all models that have the object.
 * Buffers that a function receives are valid during the call; all arrays are float32, row-major. */
#ifndef LEAT_CUSTOM_H
#define LEAT_CUSTOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/layer.h"
#include "leat/model.h"
#include "leat/rng.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Lets a model use the objects of a registry, in place of those of the registry that it was made with.  Needed only
 *  for a model that was loaded or built without this registry and is then compiled with the registry's losses, metrics
 *  or optimizers.  Objects that are registered later are not known to the model.
 *  Errors: LEAT_EINVAL model or registry is NULL. */
LEAT_API LEAT_CHECKED leat_status leat_model_use(leat_model *model, const leat_registry *registry,
                                                 leat_error *err);

/* ---- Losses ---- */

/** One call of a custom loss on a batch.  Value i belongs to row i, the elements
 *  [i * row_elements, (i + 1) * row_elements) of y_pred, and depends on no other row. */
typedef struct leat_loss_call {
    size_t size;                        /* bytes of the members that the library has filled in */
    const void *config;                 /* the struct that `keys` describes */
    void *user;                         /* leat_loss_definition.user */
    int64_t rows;                       /* number of values */
    int64_t row_elements;               /* elements of y_pred per row */
    int64_t target_elements;            /* elements of y_true per row */
    const leat_tensor *y_true, *y_pred; /* with their shapes, batch dimension first */
    float *values;                      /* (rows): written by `values`, read by `gradient` */
    float *gradient;                    /* (rows, row_elements): written by `gradient` */
} leat_loss_call;

/** The definition of a custom loss.  Initialize it by leat_loss_definition_default().
 *  Threads: the struct is externally synchronised.  Several threads may call its functions at the same time, each with
 *  buffers of its own. */
typedef struct leat_loss_definition {
    size_t size; /* sizeof the struct, set by leat_loss_definition_init */
    const char *name;
    const leat_layer_key *keys;
    size_t config_bytes;
    void *user;
    leat_status (*check)(void *config, void *user, leat_error *err);
    /** true: targets are class numbers, (..., 1) for an output (..., classes).  false (default): targets have the
     *  shape of the output. */
    bool class_numbers;
    /** The number of dimensions of y_pred that have a value each, batch dimension included: 1 is a value per sample.
     *  0 (default): all dimensions but the last, as in Keras's losses. */
    int32_t value_rank;
    /** Computes the values; required. */
    leat_status (*values)(const leat_loss_call *call, leat_error *err);
    /** Computes, for each element of y_pred, the derivative of its row's value.  NULL: a model with this loss cannot be
     *  trained. */
    leat_status (*gradient)(const leat_loss_call *call, leat_error *err);
} leat_loss_definition;

/** Zeroes the `size` bytes of *definition and sets definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_loss_definition_init(leat_loss_definition *definition, size_t size);
/** Returns a definition with the default values. */
static inline leat_loss_definition leat_loss_definition_default(void) {
    leat_loss_definition definition;
    leat_loss_definition_init(&definition, sizeof definition);
    return definition;
}

/** Registers a custom loss, which is a metric of this name, too: the mean of its values.
 *  Errors: LEAT_EINVAL something in the definition is missing or out of range, the name is already registered, or leat
 *  has a loss or a metric with this name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add_loss(leat_registry *registry,
                                                         const leat_loss_definition *definition,
                                                         leat_error *err);

/** Compares `gradient` with central differences of `values` on a batch.
 *  @param config  The values of the keys: a JSON object in which strings may have single quotes; config NULL: the
 *  defaults.
 *  @param y_true  The targets, float32, with data.
 *  @param y_pred  The predictions, float32, with data, batch dimension first.
 *  @param[out] worst  The largest error of a partial derivative, relative to the largest partial derivative.
 *  Errors: LEAT_ENOTSUP there is no gradient; LEAT_EDTYPE, LEAT_ESHAPE, LEAT_EINVAL the tensors; those of
 *  leat_registry_add_loss and of the loss's functions.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_loss_check_gradient(const leat_loss_definition *definition,
                                                           const char *config, const leat_tensor *y_true,
                                                           const leat_tensor *y_pred, double *worst,
                                                           leat_error *err);

/* ---- Metrics ---- */

/** One call of a custom metric's `update` on a batch. */
typedef struct leat_metric_call {
    size_t size;        /* bytes of the members that the library has filled in */
    const void *config; /* the struct that `keys` describes */
    void *user;         /* leat_metric_definition.user */
    /** The targets, as the output's loss reads them, and the predictions, with their shapes, batch dimension first. */
    const leat_tensor *y_true, *y_pred;
    /** The weight of each element of y_pred, from sample weights, class weights and masks; NULL: all weights are 1. */
    const leat_tensor *sample_weight;
    double *state;       /* (state_count): the sums so far */
    int64_t state_count; /* leat_metric_definition.state_count, or what count_states returned */
} leat_metric_call;

/** The definition of a custom metric.  Initialize it by leat_metric_definition_default().
 *  Threads: the struct is externally synchronised.  Several threads may call its functions at the same time, each with
 *  a state of its own.  `update` is called for one batch after the other, in the order of the data. */
typedef struct leat_metric_definition {
    size_t size; /* sizeof the struct, set by leat_metric_definition_init */
    const char *name;
    const leat_layer_key *keys;
    size_t config_bytes;
    void *user;
    leat_status (*check)(void *config, void *user, leat_error *err);
    int64_t state_count; /* the number of doubles of the state; default 0: count_states returns it */
    /** Returns the number of doubles of the state.  last_dimension is the last dimension of the output. */
    int64_t (*count_states)(const void *config, int64_t last_dimension, void *user);
    /** Sets the state at the beginning of each pass; NULL: it begins as zeros. */
    void (*reset)(const void *config, double *state, int64_t state_count, void *user);
    /** Adds a batch to the state; required. */
    leat_status (*update)(const leat_metric_call *call, leat_error *err);
    /** Returns the result of the batches so far; required. */
    double (*result)(const void *config, const double *state, int64_t state_count, void *user);
} leat_metric_definition;

/** Zeroes the `size` bytes of *definition and sets definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_metric_definition_init(leat_metric_definition *definition, size_t size);
/** Returns a definition with the default values. */
static inline leat_metric_definition leat_metric_definition_default(void) {
    leat_metric_definition definition;
    leat_metric_definition_init(&definition, sizeof definition);
    return definition;
}

/** Registers a custom metric.
 *  Errors: LEAT_EINVAL something in the definition is missing or out of range, the name is already registered, or leat
 *  has a metric with this name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add_metric(leat_registry *registry,
                                                           const leat_metric_definition *definition,
                                                           leat_error *err);

/* ---- Activations ---- */

/** One call of a custom activation. */
typedef struct leat_activation_call {
    size_t size;         /* bytes of the members that the library has filled in */
    const void *config;  /* the struct that `keys` describes */
    void *user;          /* leat_activation_definition.user */
    int64_t rows;        /* number of rows */
    int64_t width;       /* elements of a row, which is the last axis */
    const float *x;      /* (rows, width) */
    float *y;            /* (rows, width): written by `forward`, read by `backward` */
    const float *diff_y; /* (rows, width): the gradient of the loss with respect to y, for `backward` */
    float *diff_x;       /* (rows, width): written by `backward` */
} leat_activation_call;

/** The definition of a custom activation.  Initialize it by leat_activation_definition_default().
 *  Threads: the struct is externally synchronised.  Several threads may call its functions at the same time, each with
 *  buffers of its own. */
typedef struct leat_activation_definition {
    size_t size; /* sizeof the struct, set by leat_activation_definition_init */
    const char *name;
    const leat_layer_key *keys;
    size_t config_bytes;
    void *user;
    leat_status (*check)(void *config, void *user, leat_error *err);
    /** true: an element of y depends on its whole row, as in a softmax.  false (default): on one element of x. */
    bool whole_rows;
    leat_status (*forward)(const leat_activation_call *call, leat_error *err); /* required */
    /** Computes diff_x; NULL: a model with this activation cannot be trained. */
    leat_status (*backward)(const leat_activation_call *call, leat_error *err);
} leat_activation_definition;

/** Zeroes the `size` bytes of *definition and sets definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_activation_definition_init(leat_activation_definition *definition, size_t size);
/** Returns a definition with the default values. */
static inline leat_activation_definition leat_activation_definition_default(void) {
    leat_activation_definition definition;
    leat_activation_definition_init(&definition, sizeof definition);
    return definition;
}

/** Registers a custom activation.
 *  Errors: LEAT_EINVAL something in the definition is missing or out of range, the name is already registered, or leat
 *  has an activation with this name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add_activation(leat_registry *registry,
                                                               const leat_activation_definition *definition,
                                                               leat_error *err);

/** Compares `backward` with central differences of `forward`.
 *  @param config  Like leat_loss_check_gradient's.
 *  @param x  The arguments, float32, with data, at least one dimension.
 *  @param[out] worst  Like leat_loss_check_gradient's.
 *  Errors: LEAT_ENOTSUP there is no backward; LEAT_EDTYPE, LEAT_ESHAPE, LEAT_EINVAL the tensor; those of
 *  leat_registry_add_activation and of the activation's functions.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_activation_check_gradient(const leat_activation_definition *definition,
                                                                 const char *config, const leat_tensor *x,
                                                                 double *worst, leat_error *err);

/* ---- Initializers ---- */

/** One call of a custom initializer. */
typedef struct leat_initializer_call {
    size_t size;          /* bytes of the members that the library has filled in */
    const void *config;   /* the struct that `keys` describes */
    void *user;           /* leat_initializer_definition.user */
    int32_t rank;         /* of the weight */
    const int64_t *shape; /* (rank) */
    int64_t count;        /* number of elements */
    /** Random numbers, a function of the model's seed and the weight, or of the object's key "seed", which every custom
     *  initializer has. */
    leat_rng *rng;
    float *weight; /* (count): to be filled */
} leat_initializer_call;

/** The definition of a custom initializer.  Initialize it by leat_initializer_definition_default().
 *  Threads: the struct is externally synchronised.  Several threads may call its functions at the same time, each with
 *  buffers of its own. */
typedef struct leat_initializer_definition {
    size_t size; /* sizeof the struct, set by leat_initializer_definition_init */
    const char *name;
    const leat_layer_key *keys;
    size_t config_bytes;
    void *user;
    leat_status (*check)(void *config, void *user, leat_error *err);
    leat_status (*fill)(const leat_initializer_call *call,
                        leat_error *err); /* fills call->weight; required */
} leat_initializer_definition;

/** Zeroes the `size` bytes of *definition and sets definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_initializer_definition_init(leat_initializer_definition *definition, size_t size);
/** Returns a definition with the default values. */
static inline leat_initializer_definition leat_initializer_definition_default(void) {
    leat_initializer_definition definition;
    leat_initializer_definition_init(&definition, sizeof definition);
    return definition;
}

/** Registers a custom initializer.
 *  Errors: LEAT_EINVAL something in the definition is missing or out of range, the name is already registered, or leat
 *  has an initializer with this name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add_initializer(leat_registry *registry,
                                                                const leat_initializer_definition *definition,
                                                                leat_error *err);

/* ---- Regularizers ---- */

/** One call of a custom regularizer, on a weight or on the output of a layer. */
typedef struct leat_regularizer_call {
    size_t size;          /* bytes of the members that the library has filled in */
    const void *config;   /* the struct that `keys` describes */
    void *user;           /* leat_regularizer_definition.user */
    int32_t rank;         /* of x */
    const int64_t *shape; /* (rank) */
    int64_t count;        /* number of elements of x */
    const float *x;       /* (count) */
    double penalty;       /* written by `penalty`: the penalty of x, which is added to the loss */
    float *gradient;      /* (count): written by `gradient`: the derivatives of the penalty */
} leat_regularizer_call;

/** The definition of a custom regularizer.  Initialize it by leat_regularizer_definition_default().
 *  Threads: the struct is externally synchronised.  Several threads may call its functions at the same time, each with
 *  buffers of its own. */
typedef struct leat_regularizer_definition {
    size_t size; /* sizeof the struct, set by leat_regularizer_definition_init */
    const char *name;
    const leat_layer_key *keys;
    size_t config_bytes;
    void *user;
    leat_status (*check)(void *config, void *user, leat_error *err);
    leat_status (*penalty)(leat_regularizer_call *call, leat_error *err); /* sets call->penalty; required */
    /** Fills call->gradient; NULL: a model with this regularizer cannot be trained. */
    leat_status (*gradient)(leat_regularizer_call *call, leat_error *err);
} leat_regularizer_definition;

/** Zeroes the `size` bytes of *definition and sets definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_regularizer_definition_init(leat_regularizer_definition *definition, size_t size);
/** Returns a definition with the default values. */
static inline leat_regularizer_definition leat_regularizer_definition_default(void) {
    leat_regularizer_definition definition;
    leat_regularizer_definition_init(&definition, sizeof definition);
    return definition;
}

/** Registers a custom regularizer.
 *  Errors: LEAT_EINVAL something in the definition is missing or out of range, the name is already registered, or leat
 *  has a regularizer with this name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add_regularizer(leat_registry *registry,
                                                                const leat_regularizer_definition *definition,
                                                                leat_error *err);

/** Compares `gradient` with central differences of `penalty`.
 *  @param config  Like leat_loss_check_gradient's.
 *  @param x  A weight, float32, with data.
 *  @param[out] worst  Like leat_loss_check_gradient's.
 *  Errors: LEAT_ENOTSUP there is no gradient; LEAT_EDTYPE, LEAT_ESHAPE, LEAT_EINVAL the tensor; those of
 *  leat_registry_add_regularizer and of the regularizer's functions.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status
leat_regularizer_check_gradient(const leat_regularizer_definition *definition, const char *config,
                                const leat_tensor *x, double *worst, leat_error *err);

/* ---- Constraints ---- */

/** One call of a custom constraint. */
typedef struct leat_constraint_call {
    size_t size;          /* bytes of the members that the library has filled in */
    const void *config;   /* the struct that `keys` describes */
    void *user;           /* leat_constraint_definition.user */
    int32_t rank;         /* of the weight */
    const int64_t *shape; /* (rank) */
    int64_t count;        /* number of elements */
    float *weight;        /* (count): the weight after an update, to be changed in place */
} leat_constraint_call;

/** The definition of a custom constraint.  Initialize it by leat_constraint_definition_default().
 *  Threads: the struct is externally synchronised.  Several threads may call its functions at the same time, each with
 *  buffers of its own. */
typedef struct leat_constraint_definition {
    size_t size; /* sizeof the struct, set by leat_constraint_definition_init */
    const char *name;
    const leat_layer_key *keys;
    size_t config_bytes;
    void *user;
    leat_status (*check)(void *config, void *user, leat_error *err);
    leat_status (*apply)(const leat_constraint_call *call,
                         leat_error *err); /* changes call->weight; required */
} leat_constraint_definition;

/** Zeroes the `size` bytes of *definition and sets definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_constraint_definition_init(leat_constraint_definition *definition, size_t size);
/** Returns a definition with the default values. */
static inline leat_constraint_definition leat_constraint_definition_default(void) {
    leat_constraint_definition definition;
    leat_constraint_definition_init(&definition, sizeof definition);
    return definition;
}

/** Registers a custom constraint.
 *  Errors: LEAT_EINVAL something in the definition is missing or out of range, the name is already registered, or leat
 *  has a constraint with this name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add_constraint(leat_registry *registry,
                                                               const leat_constraint_definition *definition,
                                                               leat_error *err);

/* ---- Recurrent cells ---- */

/** Registers a custom recurrent cell: a custom layer that computes one step, in place of a cell of Keras in an RNN
 *  layer, {"class_name": "RNN", "config": {"cell": {"class_name": "MyCell", "config": {...}}}}, or in StackedRNNCells.
 *  Input 0 is a step (batch, features), and the other inputs are the states before it.  Output 0 is the output of the
 *  step (batch, units), and the other outputs are the states after it, so that min_inputs, max_inputs and outputs are 1
 *  more than the number of states.  `infer` is required; `infer` and `build` must not read the shapes of the states.
 *  leat_layer_check_gradient checks a step.
 *  Errors: those of leat_registry_add, and LEAT_EINVAL the numbers of inputs and outputs, or infer is missing. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add_cell(leat_registry *registry,
                                                         const leat_layer_definition *definition,
                                                         leat_error *err);

/* ---- Optimizers ---- */

/** One call of a custom optimizer's `update`: a range of a weight's elements, or a whole weight. */
typedef struct leat_optimizer_call {
    size_t size;        /* bytes of the members that the library has filled in */
    const void *config; /* the struct that `keys` describes */
    void *user;         /* leat_optimizer_definition.user */
    int64_t iterations; /* number of steps before this one */
    double
        learning_rate; /* of this step: learning rates that are schedules or set by callbacks are computed */
    int32_t rank;      /* of the weight, if whole_weights; otherwise 1 */
    const int64_t *shape;  /* (rank) */
    int64_t count;         /* number of elements */
    const float *gradient; /* (count), after clipping */
    float *weight;         /* (count): to be updated */
    float *const *slots;   /* the slots in the order of their names, (count) each: to be updated */
} leat_optimizer_call;

/** The definition of a custom optimizer.  Initialize it by leat_optimizer_definition_default().  leat reads and applies
 *  the options that all optimizers of current Keras have: learning_rate, weight_decay, clipnorm, clipvalue,
 *  global_clipnorm, use_ema, ema_momentum and ema_overwrite_frequency.
 *  Threads: the struct is externally synchronised.  Several threads may call `update` at the same time, each with
 *  other elements. */
typedef struct leat_optimizer_definition {
    size_t size; /* sizeof the struct, set by leat_optimizer_definition_init */
    const char *name;
    const leat_layer_key *keys;
    size_t config_bytes;
    void *user;
    leat_status (*check)(void *config, void *user, leat_error *err);
    double learning_rate; /* default of the option learning_rate; default 0.001 */
    /** Names of the slots, ended by NULL, at most 3; NULL (default): none.  A slot is an array of the weight's shape
     *  that files have; it begins as zeros. */
    const char *const *slots;
    /** true: each call has a whole weight.  false (default): a call has any elements of any weights, so that each
     *  element must be updated independently of the others. */
    bool whole_weights;
    leat_status (*update)(const leat_optimizer_call *call, leat_error *err); /* required */
} leat_optimizer_definition;

/** Zeroes the `size` bytes of *definition, writes the defaults that the comments of the members give, and sets
 *  definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_optimizer_definition_init(leat_optimizer_definition *definition, size_t size);
/** Returns a definition with the default values. */
static inline leat_optimizer_definition leat_optimizer_definition_default(void) {
    leat_optimizer_definition definition;
    leat_optimizer_definition_init(&definition, sizeof definition);
    return definition;
}

/** Registers a custom optimizer.
 *  Errors: LEAT_EINVAL something in the definition is missing or out of range, the name is already registered, or leat
 *  has an optimizer with this name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add_optimizer(leat_registry *registry,
                                                              const leat_optimizer_definition *definition,
                                                              leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
