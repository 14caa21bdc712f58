/* SPDX-License-Identifier: Apache-2.0 */
/* Models: a directed acyclic graph of Keras's layers, built in C, or loaded from Keras's files, and compiled with an
 * optimizer, a loss and metrics.  Training and prediction are in leat/train.h. */
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

/** Opaque.  Externally synchronised. */
typedef struct leat_model leat_model;

/** Layers of your own, by class name: leat/layer.h. */
typedef struct leat_registry leat_registry;

/** A network under construction; keeps its first error, so that a network reads as a network.  Externally synchronised. */
typedef struct leat_builder leat_builder;

/** One tensor of a network under construction.  Owned by its builder; valid until leat_model_create or
 *  leat_builder_destroy.  Functions given NULL return NULL. */
typedef struct leat_node leat_node;

/* ---- Building ---- */

/** A network without layers, and its end without a model.  @param[out] out  For leat_model_create or leat_builder_destroy; NULL on
 *  failure.  leat_builder_destroy takes NULL and sets *builder to NULL.  Errors: LEAT_ENOMEM. */
LEAT_API LEAT_CHECKED leat_status leat_builder_create(leat_builder **out, leat_error *err);
LEAT_API void leat_builder_destroy(leat_builder **builder);

/** leat_layer and leat_merge know these layers, too.  The registry is borrowed until the builder ends. */
LEAT_API void leat_builder_use(leat_builder *builder, const leat_registry *registry);

/** keras.layers.Input: shape is that of one sample (rank numbers; -1: None). */
LEAT_API leat_node *leat_input(leat_builder *builder, const int64_t *shape, int rank);

/** keras.layers.Input(batch_shape=...): the batch size in front, which stateful layers must know. */
LEAT_API leat_node *leat_batch_input(leat_builder *builder, const int64_t *batch_shape, int rank);

/** The name of the model that is being built; "model_1" without.  Kept as an error: none, or one that is too long. */
LEAT_API void leat_builder_set_name(leat_builder *builder, const char *name);

/** Any layer by Keras's class name, with the arguments of its constructor as a JSON object (NULL: defaults), in which
 *  strings may stand in single quotes: leat_layer(x, "Conv2D", "{'filters': 32, 'kernel_size': 3, 'padding': 'same'}"). */
LEAT_API leat_node *leat_layer(leat_node *x, const char *class_name, const char *config);

/** The same for a layer that joins several tensors: Add, Concatenate; or a layer with several inputs. */
LEAT_API leat_node *leat_merge(leat_node *const *x, int count, const char *class_name, const char *config);

/** Both with arguments that are printed: leat_layerf(x, "Conv2D", "{'filters': %d, 'name': '%s_conv'}", 64, block).
 *  %s must bring no quotes, and %f and %g print what JSON reads in locales alone whose decimal point is a point.
 *  leat_layer and leat_merge are the forms without `...`, for other languages. */
LEAT_API leat_node *leat_layerf(leat_node *x, const char *class_name, const char *format, ...)
    LEAT_PRINTF(3, 4);
LEAT_API leat_node *leat_mergef(leat_node *const *x, int count, const char *class_name, const char *format,
                                ...) LEAT_PRINTF(4, 5);

/** Calls the layer that made `made` again, on other tensors: its weights are shared. */
LEAT_API leat_node *leat_call(leat_node *made, leat_node *const *x, int count);

/** Uses a whole model as a layer.  Takes *inner over (and sets it to NULL), whether it succeeds or fails. */
LEAT_API leat_node *leat_call_model(leat_model **inner, leat_node *const *x, int count);

/** Another output of the layer that made `made`: an LSTM's states (return_state) are outputs 1 and 2. */
LEAT_API leat_node *leat_output(leat_node *made, int index);

/** Layers by their usual arguments (activation NULL: "linear"); all others have Keras's defaults.  leat_layer takes any
 *  argument of any layer. */
LEAT_API leat_node *leat_dense(leat_node *x, int64_t units, const char *activation);
LEAT_API leat_node *leat_conv2d(leat_node *x, int64_t filters, int64_t kernel_size, const char *activation);
LEAT_API leat_node *leat_max_pooling2d(leat_node *x, int64_t pool_size);
LEAT_API leat_node *leat_average_pooling2d(leat_node *x, int64_t pool_size);
LEAT_API leat_node *leat_flatten(leat_node *x);
LEAT_API leat_node *leat_dropout(leat_node *x, double rate);
LEAT_API leat_node *leat_batch_normalization(leat_node *x);
LEAT_API leat_node *leat_activation(leat_node *x, const char *activation);
LEAT_API leat_node *leat_lstm(leat_node *x, int64_t units, bool return_sequences);

/** keras.Model(inputs, outputs): finishes the network and draws its weights (seed 0).  Takes *builder over (and sets it
 *  to NULL), whether it succeeds or fails.
 *  Errors: the builder's first error, with the layer's name; LEAT_EINVAL an output that does not follow from the inputs. */
LEAT_API LEAT_CHECKED leat_status leat_model_create(leat_model **out, leat_builder **builder,
                                                    leat_node *const *inputs, int input_count,
                                                    leat_node *const *outputs, int output_count,
                                                    leat_error *err);

/** keras.models.model_from_json: an architecture, weights drawn with seed 0.  A text may come from anywhere: at most 64 MiB of
 *  it, 256 levels, 4096 layers of a model, 8 dimensions below 2^31, and weights that fit into the machine's memory; beyond that
 *  it is refused (LEAT_EFORMAT, LEAT_ENOTSUP, LEAT_EINVAL, LEAT_ESHAPE, LEAT_ENOMEM). */
LEAT_API LEAT_CHECKED leat_status leat_model_from_json(leat_model **out, const char *json, leat_error *err);

/** The same with layers of your own (registry NULL: none). */
LEAT_API LEAT_CHECKED leat_status leat_model_from_json_with(leat_model **out, const char *json,
                                                            const leat_registry *registry, leat_error *err);

/** keras.models.clone_model: a new model of the same layers with the same names, custom layers included.  copy_weights false:
 *  weights are drawn with seed 0, as leat_model_create does (leat_model_initialize draws others; Keras draws other ones at each
 *  call).  True: the weights are copies.  As in Keras, the clone is not compiled; states of stateful layers are zero.  The
 *  settings of leat_model_set_deterministic, _gradient_checkpointing, _folding and _tuning are copied.
 *  @param[out] out  New model, for leat_model_destroy; NULL on failure.
 *  Errors: LEAT_EINVAL two different custom layers with one class name; LEAT_ENOMEM.
 *  Threads: a call on `model`, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_clone(leat_model **out, const leat_model *model,
                                                   bool copy_weights, leat_error *err);

/** model.to_json(): a string for leat_string_free. */
LEAT_API LEAT_CHECKED leat_status leat_model_to_json(const leat_model *model, char **out, leat_error *err);

/** model.summary(): Keras's table, a string for leat_string_free. */
LEAT_API LEAT_CHECKED leat_status leat_model_summary(const leat_model *model, char **out, leat_error *err);

/** The same as one JSON object, as docs/formats/summary.md has it: a string for leat_string_free. */
LEAT_API LEAT_CHECKED leat_status leat_model_summary_json(const leat_model *model, char **out,
                                                          leat_error *err);

/** Frees a string that leat returned; NULL is fine.  Threads: any. */
LEAT_API void leat_string_free(char *string);

/** NULL is fine; sets *model to NULL. */
LEAT_API void leat_model_destroy(leat_model **model);

/* ---- Files ---- */

/** keras.models.load_model: a .h5 file (architecture, weights, and compilation with optimizer state where it has them),
 *  or a .json architecture.  Errors: LEAT_EIO; LEAT_EFORMAT names the object in the file; LEAT_ENOTSUP names the layer. */
LEAT_API LEAT_CHECKED leat_status leat_model_load(leat_model **out, const char *path, leat_error *err);

/** The same with layers of your own (registry NULL: none): keras.models.load_model(path, custom_objects). */
LEAT_API LEAT_CHECKED leat_status leat_model_load_with(leat_model **out, const char *path,
                                                       const leat_registry *registry, leat_error *err);

/** model.save(path, include_optimizer): replaces the file atomically, by the rule of leat_file_replace: links are followed,
 *  what is no regular file is refused (LEAT_EINVAL).  On failure the old file is untouched. */
LEAT_API LEAT_CHECKED leat_status leat_model_save(const leat_model *model, const char *path,
                                                  bool include_optimizer, leat_error *err);

/** model.load_weights(path, by_name) and model.save_weights(path).  A full model file will do to load from. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_weights(leat_model *model, const char *path, bool by_name,
                                                          leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_save_weights(const leat_model *model, const char *path,
                                                          leat_error *err);

/* ---- Files in memory ---- */

/** The format of a file that leat writes into memory.  (leat_model_to_json gives an architecture alone.) */
typedef enum leat_model_format {
    LEAT_MODEL_FORMAT_H5 = 0 /**< Keras's .h5 file, as leat_model_save and leat_model_save_weights write it */
} leat_model_format;

/** Like leat_model_load_with (registry NULL: no custom layers), but the file's content is the `bytes` bytes at `data`: a .h5
 *  file, a .keras archive or a JSON architecture, recognised by its first bytes.  `data` may have any alignment and is borrowed
 *  for the call.  What docs/caveats.md says of untrusted .h5 files holds here, too.
 *  @param[out] out  New model, for leat_model_destroy; NULL on failure.
 *  Errors: LEAT_EFORMAT names the object in the file; LEAT_ENOTSUP names the layer; LEAT_ENOMEM; those of
 *  leat_model_from_json.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_memory(leat_model **out, const void *data, size_t bytes,
                                                         const leat_registry *registry, leat_error *err);

/** Like leat_model_save, but the file is written into memory; its bytes are those that leat_model_save writes.
 *  @param[out] out  The file's content, for leat_bytes_free; NULL on failure.  @param[out] bytes  Its length; 0 on failure.
 *  Errors: LEAT_EINVAL a format that is not in the list; LEAT_ENOMEM.
 *  Threads: a call on `model`, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_save_memory(const leat_model *model, leat_model_format format,
                                                         bool include_optimizer, void **out, size_t *bytes,
                                                         leat_error *err);

/** Like leat_model_load_weights, but the file's content is the `bytes` bytes at `data`: a .h5 file of weights or of a full
 *  model.  `data` may have any alignment and is borrowed for the call.
 *  Errors: LEAT_EFORMAT, LEAT_ESHAPE name the layer; LEAT_ENOMEM.  After a failure some weights may have changed.
 *  Threads: a call on `model`. */
LEAT_API LEAT_CHECKED leat_status leat_model_load_weights_memory(leat_model *model, const void *data,
                                                                 size_t bytes, bool by_name, leat_error *err);

/** Like leat_model_save_weights, but the file is written into memory; its bytes are those that leat_model_save_weights writes.
 *  @param[out] out  The file's content, for leat_bytes_free; NULL on failure.  @param[out] bytes  Its length; 0 on failure.
 *  Errors: LEAT_EINVAL a format that is not in the list; LEAT_ENOMEM.
 *  Threads: a call on `model`, which is not changed. */
LEAT_API LEAT_CHECKED leat_status leat_model_save_weights_memory(const leat_model *model,
                                                                 leat_model_format format, void **out,
                                                                 size_t *bytes, leat_error *err);

/** Frees the content of a file that leat wrote into memory; NULL is fine.  Threads: any. */
LEAT_API void leat_bytes_free(void *bytes);

/* ---- Compiling ---- */

/** model.compile(...).  Each text is a name or a class with arguments by name, as in Python ("AUC(curve=PR)"), several of
 *  them with commas between, or JSON as Keras's training_config holds it (an optimizer's {"class_name": ..., "config":
 *  ...}, a dict by output name, a list by output), in which strings may stand in single quotes. */
typedef struct leat_compile_options {
    size_t size;                    /* sizeof the struct, set by leat_compile_options_init */
    const char *optimizer;          /* "adam", or JSON; default "rmsprop" */
    const char *loss;               /* required to train and evaluate */
    const char *metrics;            /* default NULL */
    const char *weighted_metrics;   /* default NULL */
    const char *loss_weights;       /* default NULL */
    const char *sample_weight_mode; /* NULL or "temporal" */
} leat_compile_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_compile_options_init(leat_compile_options *options, size_t size);
/** The defaults by value. */
static inline leat_compile_options leat_compile_options_default(void) {
    leat_compile_options options;
    leat_compile_options_init(&options, sizeof options);
    return options;
}

/** Forgets the optimizer's state.  Errors: LEAT_ENOTFOUND an unknown name, with the nearest known one; LEAT_EINVAL a
 *  value; LEAT_ESHAPE a loss that does not fit its output. */
LEAT_API LEAT_CHECKED leat_status leat_model_compile(leat_model *model, const leat_compile_options *options,
                                                     leat_error *err);

/** Whether leat_model_compile succeeded, or the model was read from a file together with its optimizer and loss. */
LEAT_API bool leat_model_is_compiled(const leat_model *model);

/** What a configuration or leat_model_compile may name. */
typedef enum leat_name_kind {
    LEAT_NAMES_LAYERS = 0, /**< what leat_layer takes; layers of your own are not in the list */
    LEAT_NAMES_LOSSES,
    LEAT_NAMES_METRICS,    /**< losses are metrics, too */
    LEAT_NAMES_OPTIMIZERS, /**< upper and lower case are the same in these alone: adam is Adam */
    LEAT_NAMES_ACTIVATIONS,
    LEAT_NAMES_INITIALIZERS,
    LEAT_NAMES_REGULARIZERS,
    LEAT_NAMES_CONSTRAINTS
} leat_name_kind;

/** Number of names of a kind that leat knows, with Keras's other names for the same thing: mean_squared_error,
 *  MeanSquaredError, mse and MSE are four.  0 where there is no such kind.  Threads: any. */
LEAT_API int leat_name_count(leat_name_kind kind);

/** One of them, sorted by the bytes of the names, without repetitions; static.  NULL out of range.  Threads: any. */
LEAT_API const char *leat_name_get(leat_name_kind kind, int index);

/** The optimizer's learning rate, now. */
LEAT_API double leat_model_learning_rate(const leat_model *model);
LEAT_API void leat_model_set_learning_rate(leat_model *model, double learning_rate);

/* ---- Looking inside ---- */

/** Draws every weight anew, as its initializer says, from this seed; training's own random choices follow it too. */
LEAT_API LEAT_CHECKED leat_status leat_model_initialize(leat_model *model, uint64_t seed, leat_error *err);

/** Weights in the order of Keras's model.get_weights().  The memory of the view and the text of the name belong to the model.
 *  They are valid until leat_model_compile (also one that fails), until the model becomes a layer of another model
 *  (leat_call_model), and until leat_model_destroy; training, loading, copying and drawing weights, freezing and saving leave
 *  them where they are.  Writing through the view changes the model.  As long as one is out, convolutions bring their weights into their own layout at
 *  every prediction, instead of once after they have changed. */
LEAT_API int leat_model_weight_count(const leat_model *model);
LEAT_API leat_tensor leat_model_weight(const leat_model *model, int index);
/** leat_model_weight through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL the index. */
LEAT_API LEAT_CHECKED leat_status leat_model_weight_into(const leat_model *model, int index, leat_tensor *out,
                                                         leat_error *err);
LEAT_API const char *leat_model_weight_name(const leat_model *model, int index); /* "dense_1/kernel:0" */

/** model.set_weights(from.get_weights()): what a target network of reinforcement learning is brought up to date with.
 *  Weights are matched by their order; names may differ.  A failure changes nothing.
 *  Errors: LEAT_EINVAL another number of weights; LEAT_ESHAPE a weight of another shape, with both names. */
LEAT_API LEAT_CHECKED leat_status leat_model_copy_weights(leat_model *model, const leat_model *from,
                                                          leat_error *err);

/** model.reset_states(): what stateful layers carry from batch to batch becomes zero.  Training, evaluating and predicting
 *  all carry it on and none resets it, as in Keras; a fit of several epochs wants this in a callback. */
LEAT_API void leat_model_reset_states(leat_model *model);

/** One state of a stateful layer: 0 is h, 1 an LSTM's c; of Bidirectional those of the forward layer come first.  The memory
 *  of the view belongs to the model and is valid as long as that of leat_model_weight; writing through it is Keras's
 *  layer.reset_states(states).  Its data is NULL where there is no such state. */
LEAT_API leat_tensor leat_model_state(const leat_model *model, const char *layer, int index);
/** leat_model_state through a pointer: *out is zeroed on failure.  Errors: LEAT_ENOTFOUND no such state. */
LEAT_API LEAT_CHECKED leat_status leat_model_state_into(const leat_model *model, const char *layer, int index,
                                                        leat_tensor *out, leat_error *err);

/** Inputs and outputs: how many, names of their layers, shapes with -1 for None (batch dimension in front).
 *  The names belong to the model, until leat_model_destroy or leat_call_model. */
LEAT_API int leat_model_input_count(const leat_model *model);
LEAT_API int leat_model_output_count(const leat_model *model);
LEAT_API const char *leat_model_input_name(const leat_model *model, int index);
LEAT_API const char *leat_model_output_name(const leat_model *model, int index);
LEAT_API leat_tensor leat_model_input_shape(const leat_model *model, int index); /* data is NULL */
LEAT_API leat_tensor leat_model_output_shape(const leat_model *model, int index);
/** Both through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL the index. */
LEAT_API LEAT_CHECKED leat_status leat_model_input_shape_into(const leat_model *model, int index,
                                                              leat_tensor *out, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_model_output_shape_into(const leat_model *model, int index,
                                                               leat_tensor *out, leat_error *err);

/** keras.config.set_dtype_policy as if it had stood before the model was made: "float32", as at first, or "mixed_bfloat16",
 *  of all layers but inputs, nested ones too.  Under mixed_bfloat16 a layer reads and makes bfloat16; weights, their
 *  gradients, losses, metrics and predictions are f32.  The layers' configurations say it (dtype), so files do.
 *  Errors: LEAT_ENOTSUP another policy.  Not while a fit runs; predictors are as it was when they were made. */
LEAT_API LEAT_CHECKED leat_status leat_model_set_dtype_policy(leat_model *model, const char *policy,
                                                              leat_error *err);

/** Whether layers of the policy mixed_bfloat16 would be faster in float32, unless memory is the limit: this CPU does not
 *  multiply bfloat16 faster. */
LEAT_API bool leat_model_prefers_float32(const leat_model *model);

/** Freezes or thaws a layer (layer.trainable = ...).  Takes effect at the next compile, as in Keras.
 *  Errors: LEAT_ENOTFOUND no such layer, with the nearest name. */
LEAT_API LEAT_CHECKED leat_status leat_model_set_trainable(leat_model *model, const char *layer,
                                                           bool trainable, leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
