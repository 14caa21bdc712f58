/* SPDX-License-Identifier: Apache-2.0 */
/* Custom layers: layer types that a program defines by C functions on buffers and by a table of the keys of their
 * configuration.  A custom layer is registered by its class name.  Then models with this layer are read from
 * files, built, trained, saved and loaded like any other.  examples/custom_layer.c is a complete example. */
#ifndef LEAT_LAYER_H
#define LEAT_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/model.h"
#include "leat/rng.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The configuration ---- */

/** A list of integers in a configuration.  A single number is a list of one.  Frozen. */
typedef struct leat_layer_numbers {
    int32_t count; /* number of values */
    bool reserved; /* used by leat only */
    int64_t values[LEAT_MAX_RANK];
} leat_layer_numbers;

/** The kind of a key.  It determines the type of the member that holds the key's value in the layer's struct. */
typedef enum leat_layer_key_kind {
    LEAT_KEY_INT,     /* int64_t */
    LEAT_KEY_FLOAT,   /* double */
    LEAT_KEY_BOOL,    /* bool */
    LEAT_KEY_CHOICE,  /* int32_t: index in `choices` */
    LEAT_KEY_NUMBERS, /* leat_layer_numbers */
    /* this kind and the next two have no member: a weight names the key (leat_layer_weight) */
    LEAT_KEY_INITIALIZER,
    LEAT_KEY_REGULARIZER,
    LEAT_KEY_CONSTRAINT
} leat_layer_key_kind;

/** One key of the layer's get_config(), in addition to the keys that all layers have (name, trainable, ...).
 *  Reading, checking, the default value and writing follow from this description.  Frozen, since callers pass C
 *  arrays of this struct. */
typedef struct leat_layer_key {
    const char *key; /* the key's name; NULL ends a table */
    leat_layer_key_kind kind;
    size_t offset; /* offset of the member in the layer's struct */
    /* the default value as JSON ("0.5", "\"relu\"", "null"); NULL: the key is required */
    const char *preset;
    const char *const *choices; /* LEAT_KEY_CHOICE: the allowed names, ended by NULL */
    double minimum; /* LEAT_KEY_INT, _FLOAT, _NUMBERS: the smallest allowed number, if `limited` */
    bool limited;   /* true: `minimum` applies; default false */
} leat_layer_key;

/* ---- Weights ---- */

/** A weight of a custom layer.  In a file its name is "<layer>/<name>:0", as in Keras.  Initialize it by
 *  leat_layer_weight_default() or leat_layer_weight_init(), or set the size:
 *  `{.size = sizeof(leat_layer_weight), .name = "kernel", ...}`. */
typedef struct leat_layer_weight {
    size_t size;      /* sizeof(leat_layer_weight), set by leat_layer_weight_init */
    const char *name; /* required */
    int32_t rank;     /* number of dimensions; 0: a scalar */
    bool fixed;       /* true: training does not change the weight; default false */
    int64_t shape[LEAT_MAX_RANK];
    /** Each is the name of a key of this kind, or a fixed value in the form of Keras's files: a name ("zeros",
     *  "l2"), or JSON, in which strings may have single quotes.  initializer NULL means
     *  "glorot_uniform"; NULL for the others means none. */
    const char *initializer, *regularizer, *constraint;
} leat_layer_weight;

/** Zeroes the `size` bytes of *weight and sets weight->size.
 *  @param size  sizeof *weight.
 *  Threads: any. */
LEAT_API void leat_layer_weight_init(leat_layer_weight *weight, size_t size);
/** Returns a weight without a name. */
static inline leat_layer_weight leat_layer_weight_default(void) {
    leat_layer_weight weight;
    leat_layer_weight_init(&weight, sizeof weight);
    return weight;
}

/** The list to which `build` adds the layer's weights.  Opaque; valid during the call of `build`.
 *  Threads: externally synchronised: use it only on the thread that calls `build`. */
typedef struct leat_layer_weights leat_layer_weights;

/** Adds the next weight of the layer.  Only `build` may call it.
 *  Errors: LEAT_EINVAL the name is missing or too long, the rank is out of range, or there are too many weights;
 *  LEAT_ESHAPE a dimension is unknown; those of a wrong initializer, regularizer or constraint; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_layer_add_weight(leat_layer_weights *weights,
                                                        const leat_layer_weight *weight, leat_error *err);

/* ---- Running ---- */

/** One call of the layer on a batch.  All buffers are float32, row-major, with the batch dimension first; they
 *  are valid during the call.  A function must free everything that it allocates before it returns. */
typedef struct leat_layer_call {
    size_t size;        /* bytes of the members that the library has filled in */
    const void *config; /* the layer's struct, filled in from the configuration as the keys say */
    void *user;         /* leat_layer_definition.user */
    bool training;      /* true in a training step, unless the layer is called with training=False */
    /* random numbers, a function of the model's seed, the step and the layer; backward receives the same
     * numbers as forward */
    leat_rng *rng;
    int32_t input_count, weight_count, output_count;
    const leat_tensor *inputs, *weights; /* read only */
    const leat_tensor *outputs;          /* forward writes them, backward reads them */
    /** Only for backward: diff_outputs are the gradients of the loss with respect to the outputs.  backward
     *  writes the gradients with respect to the inputs and weights to diff_inputs and diff_weights, except where
     *  `data` is NULL.  diff_inputs and
     *  diff_weights contain zeros before the call. */
    const leat_tensor *diff_outputs, *diff_inputs, *diff_weights;
} leat_layer_call;

/** The definition of a custom layer.  Initialize it by leat_layer_definition_default().  The texts and tables
 *  that it points to must outlive the registry and all models that have the layer.  In the shapes that functions
 *  receive, `data` is NULL and an unknown dimension is -1.
 *  Threads: the struct is externally synchronised.  Several threads may call its functions at the same time
 *  (threads with predictors), each with buffers of its own. */
typedef struct leat_layer_definition {
    size_t size;                /* sizeof the struct, set by leat_layer_definition_init */
    const char *class_name;     /* Keras's name: of the Python class, or of a Lambda layer or its function */
    const leat_layer_key *keys; /* the keys of the configuration; NULL (default): none */
    size_t config_bytes;        /* size in bytes of the layer's struct; 0 (default) without keys */
    int32_t min_inputs, max_inputs; /* numbers of inputs; default 1, 1; at most 8 */
    int32_t outputs;                /* number of outputs; default 1; at most 6 */
    /* true: a mask is passed on to the next layer; false (default): a mask is an error */
    bool supports_masking;
    void *user; /* passed to functions; borrowed */
    /** Checks what the keys cannot express, and sets members that depend on others; may be NULL.  A message
     *  should begin with the name of the key. */
    leat_status (*check)(void *config, void *user, leat_error *err);
    /** Sets the shapes of the outputs, outputs[i].rank and .shape.  They are the shape of input 0 before the
     *  call, and remain so if infer is NULL.  leat also calls this function with complete shapes, including the
     *  batch dimension. */
    leat_status (*infer)(const void *config, int input_count, const leat_tensor *inputs, leat_tensor *outputs,
                         leat_error *err);
    /** Adds the layer's weights (leat_layer_add_weight); NULL: the layer has none.  leat calls this function
     *  several times, so its result must depend on its arguments only. */
    leat_status (*build)(const void *config, int input_count, const leat_tensor *inputs,
                         leat_layer_weights *weights, leat_error *err);
    /* computes the outputs; required */
    leat_status (*forward)(const leat_layer_call *call, leat_error *err);
    /** Computes gradients; NULL: a model with this layer cannot be trained. */
    leat_status (*backward)(const leat_layer_call *call, leat_error *err);
} leat_layer_definition;

/** Zeroes the `size` bytes of *definition, writes the defaults that the comments of the members give, and sets
 *  definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_layer_definition_init(leat_layer_definition *definition, size_t size);
/** Returns a definition with the default values. */
static inline leat_layer_definition leat_layer_definition_default(void) {
    leat_layer_definition definition;
    leat_layer_definition_init(&definition, sizeof definition);
    return definition;
}

/* ---- Registering ---- */

/** Creates an empty registry.
 *  @param[out] out  New registry, owned by the caller (leat_registry_destroy); NULL on failure.
 *  Errors: LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_registry_create(leat_registry **out, leat_error *err);

/** Destroys a registry and sets *registry to NULL; NULL is fine.  Models that were made with the registry remain
 *  valid. */
LEAT_API void leat_registry_destroy(leat_registry **registry);

/** Registers a custom layer by its class name.  A Lambda layer in a file is this layer if the Lambda layer's name
 *  or its function's name is the class name; the Lambda layer's `arguments` are then the keys.
 *  Errors: LEAT_EINVAL something in the definition is missing or out of range, the class name is already
 *  registered, or leat has a layer with this name; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add(leat_registry *registry,
                                                    const leat_layer_definition *definition, leat_error *err);

/** Loads a shared object and calls its leat_plugin_register, which registers custom layers.  The shared object
 *  stays loaded as long as a registry or a model has one of its layers.
 *  Errors: LEAT_EIO the shared object cannot be loaded; LEAT_ENOTFOUND it does not define leat_plugin_register;
 *  those of that function; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_registry_load(leat_registry *registry, const char *path,
                                                     leat_error *err);

/** Registers the custom layers of a plugin.  The plugin defines this function as LEAT_PLUGIN (leat/plugin.h);
 *  leat calls it.
 *  Errors: those that the plugin chooses: on failure return leat_error_set(err, LEAT_EUSER, ...), or the status
 *  of leat_registry_add.  Threads: leat calls it on the thread that called leat_registry_load. */
leat_status leat_plugin_register(leat_registry *registry, leat_error *err);

/* ---- Testing ---- */

/** Compares `backward` with finite differences of `forward` in training mode, on random inputs from [-1, 1] and
 *  on weights drawn by their initializers.
 *  @param config  The values of the keys: a JSON object in which strings may have single quotes; config NULL: the
 *  defaults.
 *  @param shapes  The shapes of the inputs, float32, all dimensions known, batch dimension first.
 *  @param[out] worst  The largest error of a partial derivative, relative to the largest partial derivative with
 *  respect to the same input or weight.  Rounding to float32 causes errors of about 1e-3 in a smooth layer.  A
 *  function that is not smooth at a point, such as |x| near 0, has larger errors there.
 *  Errors: LEAT_ENOTSUP there is no backward; LEAT_EDTYPE, LEAT_ESHAPE the shapes; those of leat_registry_add and
 *  of the layer's functions.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_layer_check_gradient(const leat_layer_definition *definition,
                                                            const char *config, int input_count,
                                                            const leat_tensor *shapes, double *worst,
                                                            leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
