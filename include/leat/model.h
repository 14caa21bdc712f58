/* SPDX-License-Identifier: Apache-2.0 */
/* Models: directed acyclic graphs of Keras's layers.  A model is built in C or loaded from Keras's files, and
 * compiled with an optimizer, a loss and metrics.  Training and prediction are in leat/train.h. */
#ifndef LEAT_MODEL_H
#define LEAT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A model.  Opaque.  Threads: externally synchronised, except leat_model_stop_training, which any thread may call. */
typedef struct leat_model leat_model;

/** A registry: the custom layers (leat/layer.h) that files and builders may name.  Opaque.  Threads: externally
 *  synchronised while layers are registered, immutable afterwards. */
typedef struct leat_registry leat_registry;

/** A builder: a network under construction.  Opaque.  It keeps the first error and ignores calls after it, so
 *  that a program checks for errors only once, in leat_model_create.  Threads: externally synchronised, together
 *  with its nodes. */
typedef struct leat_builder leat_builder;

/** A tensor of a network under construction.  Opaque.  It belongs to its builder and is valid until
 *  leat_model_create or leat_builder_destroy.  A function that receives a node NULL returns NULL.
 *  Threads: externally synchronised, together with its builder. */
typedef struct leat_node leat_node;

/* ---- Building ---- */

/** Create an empty builder, and destroy a builder that was not given to leat_model_create.
 *  @param[out] out  New builder, owned by the caller (leat_model_create or leat_builder_destroy); NULL on failure.
 *
 *  leat_builder_destroy takes NULL and sets *builder to NULL.
 *  Errors: LEAT_ENOMEM.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_builder_create(leat_builder **out, leat_error *err);
LEAT_API void leat_builder_destroy(leat_builder **builder);

/** Makes the custom layers of a registry known to leat_layer and leat_merge.
 *  @param registry  Borrowed until leat_model_create or leat_builder_destroy. */
LEAT_API void leat_builder_use(leat_builder *builder, const leat_registry *registry);

/** Adds an input, like keras.layers.Input(shape).
 *  @param shape  The shape of one sample: `rank` numbers, -1 for None. */
LEAT_API leat_node *leat_input(leat_builder *builder, const int64_t *shape, int rank);

/** Adds an input, like keras.layers.Input(batch_shape=...).  Stateful layers need the batch size.
 *  @param batch_shape  The batch size, then the shape of one sample: `rank` numbers, -1 for None. */
LEAT_API leat_node *leat_batch_input(leat_builder *builder, const int64_t *batch_shape, int rank);

/** Sets the name of the model; without this call it is "model_1".  The text is copied.  An empty or too long name
 *  is an error, which the builder keeps. */
LEAT_API void leat_builder_set_name(leat_builder *builder, const char *name);

/** Adds a layer by its class name in Keras.
 *  @param config  The arguments of its constructor as a JSON object, in which strings may have single quotes:
 *  leat_layer(x, "Conv2D", "{'filters': 32, 'kernel_size': 3, 'padding': 'same'}").  config NULL: the defaults.
 *  @return The output of the layer (its first output, if it has several: leat_output); NULL after an error. */
LEAT_API leat_node *leat_layer(leat_node *x, const char *class_name, const char *config);

/** Like leat_layer, but for a layer with several inputs, such as Add or Concatenate.
 *  @param x  The inputs: `count` nodes. */
LEAT_API leat_node *leat_merge(leat_node *const *x, int count, const char *class_name, const char *config);

/** Like leat_layer and leat_merge, but with a format of printf for the arguments: leat_layerf(x, "Conv2D",
 *  "{'filters': %d, 'name': '%s_conv'}", 64, block).  A text for %s must not contain quotes.  %f and %g print
 *  valid JSON only in locales whose decimal separator is a point.  Languages that cannot call a function with
 *  `...` use leat_layer and leat_merge. */
LEAT_API leat_node *leat_layerf(leat_node *x, const char *class_name, const char *format, ...)
    LEAT_PRINTF(3, 4);
LEAT_API leat_node *leat_mergef(leat_node *const *x, int count, const char *class_name, const char *format,
                                ...) LEAT_PRINTF(4, 5);

/** Calls the layer that made the node `made` again, on other inputs; both calls share the weights.
 *  @param x  The inputs: `count` nodes. */
LEAT_API leat_node *leat_call(leat_node *made, leat_node *const *x, int count);

/** Adds a model as a layer (a nested model).  Takes *inner over and sets it to NULL, whether it succeeds or fails.
 *  @param x  The inputs: `count` nodes. */
LEAT_API leat_node *leat_call_model(leat_model **inner, leat_node *const *x, int count);

/** Returns output number `index` of the layer that made the node `made`: the states of an LSTM with return_state
 *  are its outputs 1 and 2. */
LEAT_API leat_node *leat_output(leat_node *made, int index);

/** Add a layer by its most common arguments.  Other arguments have Keras's defaults; leat_layer accepts all of them.
 *  activation NULL: "linear". */
LEAT_API leat_node *leat_dense(leat_node *x, int64_t units, const char *activation);
LEAT_API leat_node *leat_conv2d(leat_node *x, int64_t filters, int64_t kernel_size, const char *activation);
LEAT_API leat_node *leat_max_pooling2d(leat_node *x, int64_t pool_size);
LEAT_API leat_node *leat_average_pooling2d(leat_node *x, int64_t pool_size);
LEAT_API leat_node *leat_flatten(leat_node *x);
LEAT_API leat_node *leat_dropout(leat_node *x, double rate);
LEAT_API leat_node *leat_batch_normalization(leat_node *x);
LEAT_API leat_node *leat_activation(leat_node *x, const char *activation);
LEAT_API leat_node *leat_lstm(leat_node *x, int64_t units, bool return_sequences);

/** Creates the model, like keras.Model(inputs, outputs), and draws its weights with seed 0.  Takes *builder over
 *  and sets it to NULL, whether it succeeds or fails.
 *  @param[out] out  New model, owned by the caller (leat_model_destroy); NULL on failure.
 *  @param inputs  `input_count` nodes.  A node that is not that of an input is replaced by one, which is called
 *  "<layer>_output" after the layer that made the node: the model begins there.
 *  Errors: the builder's first error, with the layer's name; LEAT_EINVAL an output does not depend on the inputs;
 *  LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_create(leat_model **out, leat_builder **builder,
                                                    leat_node *const *inputs, int input_count,
                                                    leat_node *const *outputs, int output_count,
                                                    leat_error *err);

/** Creates a model from an architecture, like keras.models.model_from_json, and draws its weights with seed 0.
 *  The text may come from an untrusted source.  Its limits are 64 MiB of text, 256 levels of nesting, 4096 layers
 *  of a model, 8 dimensions below 2^31, and weights that fit into the machine's memory.
 *  @param[out] out  New model, owned by the caller (leat_model_destroy); NULL on failure.
 *  Errors: LEAT_EFORMAT the text is not JSON or not an architecture; LEAT_ENOTSUP leat does not support a layer
 *  or an argument; LEAT_ENOTFOUND an unknown name; LEAT_EINVAL an argument of a layer; LEAT_ESHAPE shapes do not
 *  agree; LEAT_ENOMEM.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_model_from_json(leat_model **out, const char *json, leat_error *err);

/** Like leat_model_from_json, but with custom layers.
 *  @param registry  NULL: no custom layers.
 *  Errors: as in leat_model_from_json.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_model_from_json_with(leat_model **out, const char *json,
                                                            const leat_registry *registry, leat_error *err);

/** Creates a new model of the same layers with the same names, including custom layers, like
 *  keras.models.clone_model.  As in Keras the clone is not compiled; the states of its stateful layers are zero.
 *  The settings of leat_model_set_deterministic, _tf32, _gradient_checkpointing, _folding and _tuning are copied.
 *  @param[out] out  New model, owned by the caller (leat_model_destroy); NULL on failure.
 *  @param copy_weights  True: the weights are copied.  False: they are drawn with seed 0 as in leat_model_create
 *  (Keras draws other weights at each call); leat_model_initialize draws them with another seed.
 *  Errors: LEAT_EINVAL two different custom layers have the same class name; LEAT_ENOMEM.
 *  Threads: a call on the model, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_clone(leat_model **out, const leat_model *model,
                                                   bool copy_weights, leat_error *err);

/* ---- Surgery: docs/surgery.md has examples ---- */

/** Creates a new model that ends at inner layers of another model, begins at inner layers, or both, like
 *  keras.Model(inputs, outputs) with tensors of a model.  Layers that are not needed are left out.  The new model has
 *  copies of the weights: unlike Keras's, the two models share nothing.  It is not compiled, and has the settings that
 *  leat_model_clone copies.
 *
 *  A layer is named by its name, or by its index in Keras's model.layers as text ("-2" is the last layer but one).
 *  "name:1" is call 1 of a layer that is called several times.  In `outputs`, "outer/inner" is the layer "inner" of the
 *  nested model "outer", which gets another output; its outputs that nothing reads are dropped.
 *  @param[out] out  New model, owned by the caller (leat_model_destroy); NULL on failure.
 *  @param inputs  Names of the layers that the new model begins with: `input_count` texts.  The tensors that such a
 *  layer reads become inputs, which are called "<layer>_input".  An input of the model stays itself.  NULL with
 *  input_count 0: the inputs of the model.
 *  @param outputs  Names of the layers whose outputs are those of the new model: `output_count` texts.  NULL with
 *  output_count 0: the outputs of the model.
 *  Errors: LEAT_ENOTFOUND no such layer, the message has the nearest name; LEAT_EINVAL a name is NULL, a layer is
 *  called several times and the name does not say which call, or an output needs another input; LEAT_ENOTSUP too many
 *  inputs or outputs, or `inputs` names a layer of a nested model; LEAT_ENOMEM.
 *  Threads: a call on the model, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_cut(leat_model **out, const leat_model *model,
                                                 const char *const *inputs, int input_count,
                                                 const char *const *outputs, int output_count,
                                                 leat_error *err);

/** Creates a new Sequential without the last layers of another one, like Sequential.pop().  It has copies of the
 *  weights, and is not compiled.
 *  @param[out] out  New model, owned by the caller (leat_model_destroy); NULL on failure.
 *  @param count  The number of layers to leave out; at least one layer remains.
 *  Errors: LEAT_EINVAL the model is not a Sequential, or `count`; LEAT_ENOMEM.
 *  Threads: a call on the model, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_pop(leat_model **out, const leat_model *model, int count,
                                                 leat_error *err);

/** Creates a builder that has all layers of a model, with copies of their weights.  New layers can be added to any of
 *  its tensors, and leat_model_create makes a functional model of what the outputs need.  Layers of the model keep
 *  their names and weights; the weights of new layers are drawn with the model's seed.
 *  @param[out] out  New builder, owned by the caller (leat_model_create or leat_builder_destroy); NULL on failure.
 *  Errors: as in leat_model_clone.  Threads: a call on the model, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_builder_create_from(leat_builder **out, const leat_model *model,
                                                           leat_error *err);

/** Returns the output of a layer of the builder, like model.get_layer(name).output (its first output, if it has
 *  several: leat_output).
 *  @param name  As in `outputs` of leat_model_cut.
 *  @return NULL after an error, which the builder keeps. */
LEAT_API leat_node *leat_builder_layer(leat_builder *builder, const char *name);

/** Return input or output number `index` of the model from which leat_builder_create_from made the builder, like
 *  model.inputs[index] and model.outputs[index].
 *  @return NULL after an error, which the builder keeps. */
LEAT_API leat_node *leat_builder_input(leat_builder *builder, int index);
LEAT_API leat_node *leat_builder_output(leat_builder *builder, int index);

/** Gives the architecture as JSON, like model.to_json(), in the form of the Keras that the model came from.
 *  @param[out] out  A string for leat_string_free; NULL on failure.
 *  Errors: LEAT_ENOTSUP as in leat_model_save; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_to_json(const leat_model *model, char **out, leat_error *err);

/** Gives Keras's table of the layers, like model.summary().
 *  @param[out] out  A string for leat_string_free; NULL on failure.  Errors: LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_summary(const leat_model *model, char **out, leat_error *err);

/** Gives the content of the summary as a JSON object, which docs/formats/summary.md describes.
 *  @param[out] out  A string for leat_string_free; NULL on failure.  Errors: LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_summary_json(const leat_model *model, char **out,
                                                          leat_error *err);

/** Frees a string that leat returned; NULL is fine.  Threads: any. */
LEAT_API void leat_string_free(char *string);

/** Destroys a model and sets *model to NULL; NULL is fine. */
LEAT_API void leat_model_destroy(leat_model **model);

/* ---- Files ---- */

/** Loads a model from a file, like keras.models.load_model: a .h5 file or a .keras archive (architecture, weights
 *  and, if the file has them, the arguments of compile and the optimizer's state), an ONNX file (the prediction of a
 *  model, also of another program, with its weights: docs/formats/onnx.md), or an architecture as JSON.
 *  @param[out] out  New model, owned by the caller (leat_model_destroy); NULL on failure.
 *  Errors: LEAT_ENOTFOUND, LEAT_EIO the file; LEAT_EFORMAT the file is damaged or has another format, the message
 *  names the object in the file; LEAT_ENOTSUP names the layer or the node; LEAT_ENOMEM; those of leat_model_from_json;
 *  those of leat_model_compile for a loss, a metric or an optimizer that leat does not have (leat_model_load_using
 *  opens such a file).
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_model_load(leat_model **out, const char *path, leat_error *err);

/** Like leat_model_load, but with custom layers, like keras.models.load_model(path, custom_objects).
 *  @param registry  NULL: no custom layers.
 *  Errors: as in leat_model_load.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_with(leat_model **out, const char *path,
                                                       const leat_registry *registry, leat_error *err);

/** How a model is loaded. */
typedef struct leat_model_load_options {
    size_t size;                   /* sizeof the struct, set by leat_model_load_options_init */
    const leat_registry *registry; /* custom layers; default NULL: none */
    /* true (default): the model is compiled as the file says, and gets the file's optimizer state.  false: the model is
     * not compiled, like keras.models.load_model(path, compile=False): the loss, metrics and optimizer of the file may
     * be any.  leat_model_training_config gives them, and leat_compile_options.keep uses them. */
    bool compile;
    int unused; /* 0; the struct has no padding at its end */
} leat_model_load_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_model_load_options_init(leat_model_load_options *options, size_t size);
/** Returns the default options. */
static inline leat_model_load_options leat_model_load_options_default(void) {
    leat_model_load_options options;
    leat_model_load_options_init(&options, sizeof options);
    return options;
}

/** Like leat_model_load, but with options.
 *  @param options  NULL: the defaults.
 *  Errors: as in leat_model_load, and LEAT_EINVAL an option.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_using(leat_model **out, const char *path,
                                                        const leat_model_load_options *options,
                                                        leat_error *err);

/** Saves the model, like model.save(path, include_optimizer).  A path that ends in ".keras" gets an archive of current
 *  Keras; a path that ends in ".onnx" gets the prediction of the model for other programs (docs/formats/onnx.md); any
 *  other path gets a .h5 file, in the form of the Keras that the model came from (2.3.1 for a
 *  model that was built in C).  The file is replaced atomically (leat_file_replace): symbolic links are followed, and
 *  on failure the old file is unchanged.
 *  @param include_optimizer  True: the file also contains the arguments of compile and the optimizer's state, if
 *  the model is compiled.
 *  Errors: LEAT_EINVAL the path is not a regular file; LEAT_EIO; LEAT_ENOTSUP current Keras does not have a layer, or
 *  computes it in another way, or ONNX cannot represent it: the message names the layer; LEAT_ENOMEM.
 *  Threads: a call on the model, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_save(const leat_model *model, const char *path,
                                                  bool include_optimizer, leat_error *err);

/** Loads the weights from a .h5 file of weights or of a whole model, or from a .weights.h5 file of current Keras, like
 *  model.load_weights(path, by_name), or from a safetensors file (docs/formats/safetensors.md), whose tensors are
 *  always matched by name.
 *  @param by_name  True: layers are matched by name, and layers that are not in the file keep their weights.
 *  False: layers are matched by their order; those of a .weights.h5 file by their classes and order; a safetensors
 *  file must have the weights of the model and no other tensors.
 *  Errors: LEAT_ENOTFOUND, LEAT_EIO the file; LEAT_EFORMAT the file is damaged, or its layers or weights are not
 *  those of the model; LEAT_ESHAPE a weight has another shape; LEAT_EINVAL by_name with a .weights.h5 file, which has
 *  no names; LEAT_EDTYPE a tensor of a safetensors file is not of a type for weights; LEAT_ENOMEM.  After a failure
 *  some weights may have changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_weights(leat_model *model, const char *path, bool by_name,
                                                          leat_error *err);

/** The arguments of model.load_weights. */
typedef struct leat_load_weights_options {
    size_t size;  /* sizeof the struct, set by leat_load_weights_options_init */
    bool by_name; /* as in leat_model_load_weights; default false */
    /* true: layers with another number of weights in the file, and weights with another shape, keep their values,
     * with a message in the log; default false */
    bool skip_mismatch;
    bool reshape; /* true: a weight of another shape with as many numbers is reshaped; default false */
    int unused;   /* 0; the struct has no padding at its end */
} leat_load_weights_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_load_weights_options_init(leat_load_weights_options *options, size_t size);
/** Returns the default options. */
static inline leat_load_weights_options leat_load_weights_options_default(void) {
    leat_load_weights_options options;
    leat_load_weights_options_init(&options, sizeof options);
    return options;
}

/** Like leat_model_load_weights, but with all options.
 *  @param options  NULL: the defaults.
 *  Errors: as in leat_model_load_weights, and LEAT_EINVAL an option.  After a failure some weights may have changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_weights_using(leat_model *model, const char *path,
                                                                const leat_load_weights_options *options,
                                                                leat_error *err);

/** Saves the weights as a .h5 file, like model.save_weights(path).  A path that ends in ".weights.h5" gets the layout
 *  of current Keras, with the optimizer's state if the model is compiled, as Keras writes it; one that ends in
 *  ".safetensors" gets the weights by name (docs/formats/safetensors.md).  The file is replaced
 *  atomically (leat_file_replace).
 *  Errors: as in leat_model_save.  Threads: a call on the model, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_save_weights(const leat_model *model, const char *path,
                                                          leat_error *err);

/* ---- Files in memory ---- */

/** The format of a file that leat writes into memory.  (leat_model_to_json gives the architecture only.) */
typedef enum leat_model_format {
    /** Keras's .h5 file, as leat_model_save and leat_model_save_weights write it for a path that ends in ".h5". */
    LEAT_MODEL_FORMAT_H5 = 0,
    /** The file of current Keras: the archive that leat_model_save writes for a path that ends in ".keras", and the
     *  weights that leat_model_save_weights writes for a path that ends in ".weights.h5". */
    LEAT_MODEL_FORMAT_KERAS = 1,
    /** ONNX, as leat_model_save writes it for a path that ends in ".onnx".  Only for leat_model_save_memory. */
    LEAT_MODEL_FORMAT_ONNX = 2,
    /** safetensors, as leat_model_save_weights writes it for a path that ends in ".safetensors".  Only for
     *  leat_model_save_weights_memory. */
    LEAT_MODEL_FORMAT_SAFETENSORS = 3
} leat_model_format;

/** Like leat_model_load_with, but the content of the file is in memory: a .h5 file, a .keras archive or an
 *  architecture as JSON, recognised by its first bytes.  The caveats on untrusted .h5 files in docs/caveats.md
 *  apply here, too.
 *  @param[out] out  New model, owned by the caller (leat_model_destroy); NULL on failure.
 *  @param data  The content: `bytes` bytes of any alignment, borrowed for the call.
 *  @param registry  NULL: no custom layers.
 *  Errors: LEAT_EFORMAT names the object in the file; LEAT_ENOTSUP names the layer; LEAT_ENOMEM; those of
 *  leat_model_from_json.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_memory(leat_model **out, const void *data, size_t bytes,
                                                         const leat_registry *registry, leat_error *err);

/** Like leat_model_load_memory, but with options.
 *  @param options  NULL: the defaults.
 *  Errors: as in leat_model_load_memory, and LEAT_EINVAL an option.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_memory_using(leat_model **out, const void *data,
                                                               size_t bytes,
                                                               const leat_model_load_options *options,
                                                               leat_error *err);

/** Like leat_model_save, but writes the same bytes into memory.
 *  @param[out] out  The content of the file, for leat_bytes_free; NULL on failure.
 *  @param[out] bytes  Its length; 0 on failure.
 *  Errors: LEAT_EINVAL unknown format; LEAT_ENOTSUP as in leat_model_save; LEAT_ENOMEM.
 *  Threads: a call on the model, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_save_memory(const leat_model *model, leat_model_format format,
                                                         bool include_optimizer, void **out, size_t *bytes,
                                                         leat_error *err);

/** Like leat_model_load_weights, but the content of the file is in memory.
 *  @param data  The content: `bytes` bytes of any alignment, borrowed for the call.
 *  Errors: LEAT_EFORMAT, LEAT_ESHAPE name the layer; LEAT_EINVAL as in leat_model_load_weights; LEAT_ENOMEM.
 *  After a failure some weights may have changed.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_weights_memory(leat_model *model, const void *data,
                                                                 size_t bytes, bool by_name, leat_error *err);

/** Like leat_model_save_weights, but writes the same bytes into memory.
 *  @param[out] out  The content of the file, for leat_bytes_free; NULL on failure.
 *  @param[out] bytes  Its length; 0 on failure.
 *  Errors: LEAT_EINVAL unknown format; LEAT_ENOMEM.
 *  Threads: a call on the model, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_save_weights_memory(const leat_model *model,
                                                                 leat_model_format format, void **out,
                                                                 size_t *bytes, leat_error *err);

/** Frees bytes that leat returned through a `void **`; NULL is fine.  Threads: any. */
LEAT_API void leat_bytes_free(void *bytes);

/* ---- Compiling ---- */

/** The arguments of model.compile.  Each text is a name ("adam"), or a class with its arguments by name as in
 *  Python ("AUC(curve=PR)"), or several of these separated by commas, or JSON in the form of training_config in
 *  Keras's files (an optimizer as {"class_name": ..., "config": ...}, a dictionary by output name, a list by
 *  output), in which strings may have single quotes.  The texts are borrowed for the call. */
typedef struct leat_compile_options {
    size_t size;                  /* sizeof the struct, set by leat_compile_options_init */
    const char *optimizer;        /* default "rmsprop" */
    const char *loss;             /* required for training and evaluation; default NULL: none */
    const char *metrics;          /* metrics of all samples; default NULL: none */
    const char *weighted_metrics; /* metrics that sample weights apply to; default NULL: none */
    const char *loss_weights;     /* factors of the outputs' losses; default NULL: 1 */
    /* "temporal": sample weights have a time dimension; default NULL: they have none */
    const char *sample_weight_mode;
    /* The version of Keras whose arithmetic optimizers and losses have: "keras2", that of Keras 2.3.1, or "keras3",
     * that of current Keras with TensorFlow; default NULL: that of the model's file, "keras2" for a model that was not
     * loaded.  Files keep it. */
    const char *arithmetic;
    /* true: a member above that is NULL (set the optimizer to NULL, too) keeps what the model is compiled with or, if
     * the model was loaded without its compilation, what its file says; default false */
    bool keep;
    int unused; /* 0; the struct has no padding at its end */
} leat_compile_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_compile_options_init(leat_compile_options *options, size_t size);
/** Returns the default options. */
static inline leat_compile_options leat_compile_options_default(void) {
    leat_compile_options options;
    leat_compile_options_init(&options, sizeof options);
    return options;
}

/** Compiles the model, like model.compile, with a new optimizer state.
 *  Errors: LEAT_ENOTFOUND an unknown name, the message has the nearest known one; LEAT_EINVAL an argument;
 *  LEAT_ESHAPE a loss does not fit its output; LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_model_compile(leat_model *model, const leat_compile_options *options,
                                                     leat_error *err);

/** Returns true if leat_model_compile succeeded, or the model was loaded from a file that has its optimizer and
 *  loss. */
LEAT_API bool leat_model_is_compiled(const leat_model *model);

/** The kinds of names that a configuration or leat_model_compile may contain. */
typedef enum leat_name_kind {
    LEAT_NAMES_LAYERS = 0, /**< class names for leat_layer, without custom layers */
    LEAT_NAMES_LOSSES,
    LEAT_NAMES_METRICS,    /**< includes losses, which are metrics, too */
    LEAT_NAMES_OPTIMIZERS, /**< the only kind whose names ignore case: adam is Adam */
    LEAT_NAMES_ACTIVATIONS,
    LEAT_NAMES_INITIALIZERS,
    LEAT_NAMES_REGULARIZERS,
    LEAT_NAMES_CONSTRAINTS
} leat_name_kind;

/** Returns the number of names of a kind that leat knows, including synonyms: mean_squared_error,
 *  MeanSquaredError, mse and MSE are four names.  0 for an unknown kind.  Threads: any. */
LEAT_API int leat_name_count(leat_name_kind kind);

/** Returns name number `index` of a kind.  The names are sorted by their bytes; none occurs twice.  The text is
 *  static.  NULL if the index is out of range.  Threads: any. */
LEAT_API const char *leat_name_get(leat_name_kind kind, int index);

/** Return and set the optimizer's current learning rate.  If the learning rate is a schedule, such as
 *  "Adam(learning_rate=ExponentialDecay(initial_learning_rate=0.1, decay_steps=100, decay_rate=0.9))", the first
 *  function returns the rate of the next step.  The second then does nothing, because Keras refuses to set such a
 *  rate, too: compile again with a number. */
LEAT_API double leat_model_learning_rate(const leat_model *model);
LEAT_API void leat_model_set_learning_rate(leat_model *model, double learning_rate);

/* ---- Looking inside ---- */

/** Draws all weights by their initializers with this seed.  The random numbers of training depend on the seed,
 *  too.
 *  Errors: LEAT_ESHAPE an initializer does not fit the shape of its weight; LEAT_ENOMEM.  After a failure some
 *  weights may have been drawn. */
LEAT_API LEAT_CHECKED leat_status leat_model_initialize(leat_model *model, uint64_t seed, leat_error *err);

/** The number of weights, and a view and the name of a weight, in the order of Keras's model.get_weights().  The
 *  memory of the view and the name belong to the model.  They are valid until leat_model_compile (even if it
 *  fails), until the model becomes a layer of another model (leat_call_model), and until leat_model_destroy.
 *  Training, loading, copying and drawing weights, freezing and saving do not move them.  Writing through the
 *  view changes the model.  While a view of any weight is valid, convolutions pack their weights at
 *  every prediction, not only after the weights have changed.  If the index is out of range, the view is zeroed and the
 *  name is NULL. */
LEAT_API int leat_model_weight_count(const leat_model *model);
LEAT_API leat_tensor leat_model_weight(const leat_model *model, int index);
/** Like leat_model_weight, but writes through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL the index. */
LEAT_API LEAT_CHECKED leat_status leat_model_weight_into(const leat_model *model, int index, leat_tensor *out,
                                                         leat_error *err);
LEAT_API const char *leat_model_weight_name(const leat_model *model, int index);

/** Copies a weight into the caller's memory.  Unlike leat_model_weight this function lends no memory of the model, so
 *  that convolutions keep their packed weights.
 *  @param index  As in leat_model_weight.
 *  @param dst  A contiguous tensor with the weight's shape; data types are converted as by leat_tensor_copy.
 *  Errors: LEAT_EINVAL the index, or data is NULL; LEAT_ESHAPE another shape; LEAT_EDTYPE unknown data type. */
LEAT_API LEAT_CHECKED leat_status leat_model_weight_get(const leat_model *model, int index,
                                                        const leat_tensor *dst, leat_error *err);
/** Copies the caller's memory into a weight.
 *  @param src  As `dst` of leat_model_weight_get.  Errors: as in leat_model_weight_get. */
LEAT_API LEAT_CHECKED leat_status leat_model_weight_set(leat_model *model, int index, const leat_tensor *src,
                                                        leat_error *err);
/** Gives the data type and the shape of a weight; `data` is NULL.
 *  @param[out] out  The shape; zeroed on failure.  Errors: LEAT_EINVAL the index. */
LEAT_API LEAT_CHECKED leat_status leat_model_weight_shape(const leat_model *model, int index,
                                                          leat_tensor *out, leat_error *err);

/** Copies all weights of the model `from`, like model.set_weights(from.get_weights()); this updates a target network in
 *  reinforcement learning.  Weights are matched by their order; names may differ.  After a failure nothing has changed.
 *  Errors: LEAT_EINVAL the numbers of weights differ; LEAT_ESHAPE two shapes differ, the message has both names.
 *  Threads: a call on both models; `from` is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_copy_weights(leat_model *model, const leat_model *from,
                                                          leat_error *err);

/** Sets the states of all stateful layers to zero, like model.reset_states().  As in Keras, training, evaluation
 *  and prediction carry these states from batch to batch and never reset them: for a fit of several epochs call
 *  this in a callback. */
LEAT_API void leat_model_reset_states(leat_model *model);

/** Returns a view of a state of a stateful layer: index 0 is h, index 1 is the c of an LSTM; Bidirectional has
 *  the states of its forward layer first.  The memory belongs to the model and is valid as long as that of
 *  leat_model_weight.  Writing through the view is Keras's layer.reset_states(states).  `data` is NULL if there
 *  is no such state. */
LEAT_API leat_tensor leat_model_state(const leat_model *model, const char *layer, int index);
/** Like leat_model_state, but writes through a pointer: *out is zeroed on failure.  Errors: LEAT_ENOTFOUND no
 *  such state. */
LEAT_API LEAT_CHECKED leat_status leat_model_state_into(const leat_model *model, const char *layer, int index,
                                                        leat_tensor *out, leat_error *err);

/** The numbers of inputs and outputs, their names, and their shapes: batch dimension first, -1 for None, `data` is
 *  NULL.  A name is that of the layer, or the key in a model of current Keras whose inputs or outputs are a dictionary.
 *  The names belong to the model and are valid until leat_model_destroy or leat_call_model. */
LEAT_API int leat_model_input_count(const leat_model *model);
LEAT_API int leat_model_output_count(const leat_model *model);
LEAT_API const char *leat_model_input_name(const leat_model *model, int index);
LEAT_API const char *leat_model_output_name(const leat_model *model, int index);
LEAT_API leat_tensor leat_model_input_shape(const leat_model *model, int index);
LEAT_API leat_tensor leat_model_output_shape(const leat_model *model, int index);
/** Like leat_model_input_shape and leat_model_output_shape, but write through a pointer: *out is zeroed on failure.
 *  Errors: LEAT_EINVAL the index. */
LEAT_API LEAT_CHECKED leat_status leat_model_input_shape_into(const leat_model *model, int index,
                                                              leat_tensor *out, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_output_shape_into(const leat_model *model, int index,
                                                               leat_tensor *out, leat_error *err);

/** Sets the dtype policy of all layers except inputs, including those of nested models, as if
 *  keras.config.set_dtype_policy had been called before the model was created.  With mixed_bfloat16 the inputs
 *  and outputs of layers are bfloat16; weights, their gradients, losses, metrics and predictions are float32.
 *  The policy is a part of the layers' configurations (dtype), and so of saved files.  Do not call it during a
 *  fit.  Existing predictors keep the policy that they were created with.
 *  @param policy  "float32" (initial) or "mixed_bfloat16".
 *  Errors: LEAT_ENOTSUP another policy. */
LEAT_API LEAT_CHECKED leat_status leat_model_set_dtype_policy(leat_model *model, const char *policy,
                                                              leat_error *err);

/** Returns true if the model has layers with the policy mixed_bfloat16 that would be faster in float32, since
 *  this CPU does not multiply bfloat16 faster. */
LEAT_API bool leat_model_prefers_float32(const leat_model *model);

/** Sets layer.trainable: freezes a layer or makes it trainable.  As in Keras this takes effect at the next compile.
 *  Errors: LEAT_ENOTFOUND there is no such layer, the message has the nearest name. */
LEAT_API LEAT_CHECKED leat_status leat_model_set_trainable(leat_model *model, const char *layer,
                                                           bool trainable, leat_error *err);

/** Freezes, or makes trainable, all layers whose names match a pattern, also those of nested models.  A pattern that
 *  matches a nested model means all layers in it.  Only the layers that match change: to make a layer of a frozen
 *  nested model trainable, leat marks the model as trainable and freezes its other layers one by one.  This takes
 *  effect at the next compile.
 *  @param pattern  A glob pattern for the names of layers, such as "block[1-4]_*", or for their paths, such as
 *  "base/conv*": "*" matches any text, "?" any character, "[a-c]" one of these characters.
 *  @param[out] count  NULL allowed; the number of layers that match; 0 on failure.
 *  Errors: LEAT_ENOTFOUND no layer matches; LEAT_ENOMEM, after which some layers may have changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_set_trainable_matching(leat_model *model, const char *pattern,
                                                                    bool trainable, int *count,
                                                                    leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
