/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of your own: C functions on buffers, with Keras's configuration around them.  Registered by class name, such a layer
 * is read from files, built, trained, saved and loaded like any other.  examples/custom_layer.c is a whole one. */
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

/** Integers of a configuration: a number is a list of one.  Frozen. */
typedef struct leat_layer_numbers {
    int32_t count;
    bool reserved;
    int64_t values[LEAT_MAX_RANK];
} leat_layer_numbers;

/** The kind of a key, and the type of the member that holds its value in the layer's config. */
typedef enum leat_layer_key_kind {
    LEAT_KEY_INT,         /* int64_t */
    LEAT_KEY_FLOAT,       /* double */
    LEAT_KEY_BOOL,        /* bool */
    LEAT_KEY_CHOICE,      /* int32_t: place in `choices` */
    LEAT_KEY_NUMBERS,     /* leat_layer_numbers */
    LEAT_KEY_INITIALIZER, /* these three have no member; a weight names the key */
    LEAT_KEY_REGULARIZER,
    LEAT_KEY_CONSTRAINT
} leat_layer_key_kind;

/** One key of the layer's get_config(), beside those that all layers have (name, trainable, ...).  Reading, checking,
 *  the default and writing follow from it.  Frozen, since keys are given as an array. */
typedef struct leat_layer_key {
    const char *key; /* NULL ends a table */
    leat_layer_key_kind kind;
    size_t offset;      /* of the member in the configuration's struct */
    const char *preset; /* the default, as JSON ("0.5", "\"relu\"", "null"); NULL: the key is required */
    const char *const *choices; /* CHOICE: names, ended by NULL */
    double minimum;             /* INT, FLOAT, NUMBERS: the least, where `limited` */
    bool limited;
} leat_layer_key;

/* ---- Weights ---- */

/** A weight.  Keras's names are those of the file: "<layer>/<name>:0".  Start from leat_layer_weight_default() or
 *  leat_layer_weight_init(), or set the size: `{.size = sizeof(leat_layer_weight), .name = "kernel", ...}`. */
typedef struct leat_layer_weight {
    size_t size; /* sizeof(leat_layer_weight) */
    const char *name;
    int32_t rank;
    bool fixed; /* no training changes it */
    int64_t shape[LEAT_MAX_RANK];
    /** The name of a key of that kind, or what Keras's files have in its place: a name ("zeros", "l2"), or JSON, in which strings
     * may stand in single quotes.
     *  initializer NULL: "glorot_uniform"; the others NULL: none. */
    const char *initializer, *regularizer, *constraint;
} leat_layer_weight;

/** Zeroes the `size` bytes of *weight and sets weight->size.
 *  @param size  sizeof *weight.
 *  Threads: any. */
LEAT_API void leat_layer_weight_init(leat_layer_weight *weight, size_t size);
/** A weight without a name, by value. */
static inline leat_layer_weight leat_layer_weight_default(void) {
    leat_layer_weight weight;
    leat_layer_weight_init(&weight, sizeof weight);
    return weight;
}

/** Where `build` declares weights.  Opaque. */
typedef struct leat_layer_weights leat_layer_weights;

/** For `build`: the next weight.  Errors: LEAT_ESHAPE a dimension that is not known. */
LEAT_API LEAT_CHECKED leat_status leat_layer_add_weight(leat_layer_weights *weights,
                                                        const leat_layer_weight *weight, leat_error *err);

/* ---- Running ---- */

/** One call of the layer on a batch.  Every buffer is f32, row-major, with the batch in front; `data` is valid during the call.
 *  Nothing may be allocated that is not freed before the function returns. */
typedef struct leat_layer_call {
    size_t size;        /* bytes of the members that the library has filled in */
    const void *config; /* laid out by the definition's keys */
    void *user;         /* the definition's */
    bool training;
    leat_rng *rng; /* a function of the model's seed, the step and the layer; the same numbers in backward */
    int32_t input_count, weight_count, output_count;
    const leat_tensor *inputs, *weights; /* to be read */
    const leat_tensor *outputs;          /* forward fills them; backward reads them */
    /** backward: the loss's gradient by each output is given, that by each input and weight is asked for, where `data` is not
     *  NULL; it is 0 before. */
    const leat_tensor *diff_outputs, *diff_inputs, *diff_weights;
} leat_layer_call;

/** What a layer is.  Start from leat_layer_definition_default().  The texts and tables that it points to must outlive the
 *  registry and every model that has the layer; the functions may be called by several threads at once (predictors, and the
 *  threads of actors), each with buffers of its own.  Tensors without data are shapes, -1 for what is not known. */
typedef struct leat_layer_definition {
    size_t size; /* sizeof the struct, set by leat_layer_definition_init */
    const char
        *class_name; /* Keras's: the name of the Python class; or that of a Lambda layer or its function */
    const leat_layer_key *keys;     /* NULL: none */
    size_t config_bytes;            /* of the struct; 0 without keys */
    int32_t min_inputs, max_inputs; /* default 1, 1; at most 8 */
    int32_t outputs;                /* default 1; at most 6 */
    bool supports_masking;          /* a mask is passed on; default false: it is refused */
    void *user;                     /* borrowed */
    /** What no key can say, and what one key settles for another; may be NULL.  Start a message with the key. */
    leat_status (*check)(void *config, void *user, leat_error *err);
    /** Shapes of the outputs, in outputs[i].rank and .shape, which are those of input 0 before; NULL: they stay so.
     *  Called with shapes that are known, too, the batch's included. */
    leat_status (*infer)(const void *config, int input_count, const leat_tensor *inputs, leat_tensor *outputs,
                         leat_error *err);
    /** Declares the weights; NULL: there are none.  Called more than once: it must depend on its arguments alone. */
    leat_status (*build)(const void *config, int input_count, const leat_tensor *inputs,
                         leat_layer_weights *weights, leat_error *err);
    leat_status (*forward)(const leat_layer_call *call, leat_error *err); /* required */
    /** NULL: a model cannot be trained through it. */
    leat_status (*backward)(const leat_layer_call *call, leat_error *err);
} leat_layer_definition;

/** Zeroes the `size` bytes of *definition, writes the defaults that the members' comments name, and sets definition->size.
 *  @param size  sizeof *definition.
 *  Threads: any. */
LEAT_API void leat_layer_definition_init(leat_layer_definition *definition, size_t size);
/** The defaults by value. */
static inline leat_layer_definition leat_layer_definition_default(void) {
    leat_layer_definition definition;
    leat_layer_definition_init(&definition, sizeof definition);
    return definition;
}

/* ---- Registering ---- */

/** An empty registry.  Externally synchronised while layers are registered, then immutable: any number of threads may use it. */
LEAT_API LEAT_CHECKED leat_status leat_registry_create(leat_registry **out, leat_error *err);

/** NULL is fine; sets *registry to NULL.  Models that were made with it live on. */
LEAT_API void leat_registry_destroy(leat_registry **registry);

/** Makes a layer known by its class name.  A Lambda layer whose function, or which itself, is called so in a file is this
 *  layer, too; its `arguments` are the keys.
 *  Errors: LEAT_EINVAL what is missing in the definition, a name that is taken or that leat has a layer of, with it. */
LEAT_API LEAT_CHECKED leat_status leat_registry_add(leat_registry *registry,
                                                    const leat_layer_definition *definition, leat_error *err);

/** Loads a shared object and lets it register layers: it defines leat_plugin_register .  It stays loaded
 *  as long as anything has its layers.  Errors: LEAT_EIO; LEAT_ENOTFOUND the function is not there; those of the function. */
LEAT_API LEAT_CHECKED leat_status leat_registry_load(leat_registry *registry, const char *path,
                                                     leat_error *err);

/** What such an object defines, as LEAT_PLUGIN (leat/plugin.h): registers its layers.  On failure return
 *  leat_error_set(err, LEAT_EUSER, ...) or what leat_registry_add said. */
leat_status leat_plugin_register(leat_registry *registry, leat_error *err);

/* ---- Testing ---- */

/** Compares `backward` with finite differences of `forward` in training mode, on inputs drawn from [-1, 1] of the given shapes
 *  (all dimensions known, batch in front) and weights as their initializers draw them: *worst is the largest difference of a
 *  partial derivative, relative to the largest one of that input or weight.  float32 leaves some 1e-3 of a smooth layer; what
 *  is not smooth where it is asked, such as |x| near 0, differs.  config: the keys' values, a JSON object in which strings may stand in
 *  single quotes; NULL: defaults.
 *  Errors: LEAT_ENOTSUP no backward; those of the layer. */
LEAT_API LEAT_CHECKED leat_status leat_layer_check_gradient(const leat_layer_definition *definition,
                                                            const char *config, int input_count,
                                                            const leat_tensor *shapes, double *worst,
                                                            leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
