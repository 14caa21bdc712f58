/* SPDX-License-Identifier: Apache-2.0 */
/* Predictors: models compiled for one batch size, for programs that make many small predictions, possibly in
 * several threads beside the thread that trains.  A prediction with one thread allocates nothing, takes no lock
 * and makes no system call.  See docs/predictors.md. */
#ifndef LEAT_PREDICTOR_H
#define LEAT_PREDICTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/model.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A predictor.  Opaque.  Threads: externally synchronised; several predictors of one model may run at the same
 *  time, even while the model is being trained. */
typedef struct leat_predictor leat_predictor;

/** How a predictor keeps the weights of Dense layers and of the recurrent layers.  All other weights, the biases among
 *  them, are always kept in f32, and all results are f32. */
typedef enum leat_weights_format {
    LEAT_WEIGHTS_F32,  /**< as the model has them */
    LEAT_WEIGHTS_BF16, /**< rounded to 16 bits, of which 8 are the significand's: half of the memory */
    LEAT_WEIGHTS_INT8  /**< integers from -127 to 127 with one scale for each unit: a quarter of the memory */
} leat_weights_format;

/** Finds the format of a name: "f32", "bf16" or "int8".
 *  Errors: LEAT_EINVAL another name; *out is then LEAT_WEIGHTS_F32.  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_weights_format_parse(leat_weights_format *out, const char *name,
                                                            leat_error *err);

/** Options of a predictor.  Initialize them by leat_predictor_options_default(). */
typedef struct leat_predictor_options {
    size_t size;        /* sizeof the struct, set by leat_predictor_options_init */
    int64_t batch_size; /* samples of each prediction; default 1 */
    int threads;        /* number of compute threads; default 1 */
    /* False (default): each run reads whole inputs.  True: each run reads one time step of each sequence (the
     * second dimension of the inputs is 1), and all recurrent layers, stateful or not, carry their states from
     * run to run: after a reset, the time steps of a window, one per run, end with the prediction for the whole
     * window.  All other layers must process each time step independently. */
    bool streaming;
    /* NULL (default): inputs are float32, with the shapes of the model.  Otherwise the data type and the complete
     * shape of each input; `data` is ignored.  Borrowed for the call of leat_predictor_create. */
    const leat_tensor *inputs;
    /* LEAT_WEIGHTS_F32 (default): predictions are those of the model.  Otherwise they differ from them a little, and
     * by how much depends on the model: compare the predictions with those of a predictor with f32. */
    leat_weights_format weights_format;
    int32_t reserved; /* 0 */
    /* Where the predictor computes, by the names of leat_model_set_device; the model's device does not matter.  NULL
     * (default) or "cpu": the CPU.  "cuda": a GPU, for large batches: each run copies inputs there and outputs back.
     * "auto": measured when the predictor is created; without a GPU the CPU.  Borrowed for the call of
     * leat_predictor_create. */
    const char *device;
} leat_predictor_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_predictor_options_init(leat_predictor_options *options, size_t size);
/** Returns the default options. */
static inline leat_predictor_options leat_predictor_options_default(void) {
    leat_predictor_options options;
    leat_predictor_options_init(&options, sizeof options);
    return options;
}

/** Compiles the model for predictions with the weights that it has now.
 *  @param[out] out  New predictor, owned by the caller (leat_predictor_destroy); NULL on failure.
 *  @param model  May be destroyed before its predictors: its memory is freed with the last of them.
 *  @param options  NULL: the defaults.
 *  Errors: LEAT_EINVAL an option; LEAT_EDTYPE, LEAT_ESHAPE the model cannot read such inputs, or neither the
 *  model nor the options give a dimension; LEAT_ENOTSUP streaming through a layer that reads several time steps
 *  at once (the message names it), too many inputs or outputs, a device that this build or machine does not have, or
 *  weights of another format than f32 on a GPU; LEAT_EIO the GPU failed; LEAT_ENOMEM.
 *  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_create(leat_predictor **out, leat_model *model,
                                                        const leat_predictor_options *options,
                                                        leat_error *err);

/** Returns where the predictor computes: "cpu" or "cuda:<number>"; NULL if `predictor` is NULL.  The text belongs to
 *  the predictor. */
LEAT_API const char *leat_predictor_device(const leat_predictor *predictor);

/** Destroys a predictor and sets *predictor to NULL; NULL is fine. */
LEAT_API void leat_predictor_destroy(leat_predictor **predictor);

/** Return a view of an input or output of the predictor: data type, shape, and memory of the predictor that may
 *  be used instead of the caller's memory (leat_predictor_run).  `index` counts the inputs or outputs of the
 *  model; out of range: all zero.  The memory of an input does not move until leat_predictor_destroy.  The memory
 *  of an output contains the prediction of the last run until the next leat_predictor_run or leat_predictor_sync.
 *  These may also move it, so get the view again after each of them. */
LEAT_API leat_tensor leat_predictor_input(const leat_predictor *predictor, int index);
LEAT_API leat_tensor leat_predictor_output(const leat_predictor *predictor, int index);
/** Like leat_predictor_input and leat_predictor_output, but write through a pointer: *out is zeroed on failure.
 *  Errors: LEAT_EINVAL the index is out of range. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_input_into(const leat_predictor *predictor, int index,
                                                            leat_tensor *out, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_predictor_output_into(const leat_predictor *predictor, int index,
                                                             leat_tensor *out, leat_error *err);

/** Computes a prediction.
 *  @param inputs  inputs[i] is the data of input i, contiguous and of the input's data type (leat_tensor_copy
 *  copies other data into the memory of leat_predictor_input).  inputs NULL, or inputs[i] NULL: the memory of
 *  leat_predictor_input is read.
 *  @param outputs  Output i is copied to outputs[i].  outputs NULL, or outputs[i] NULL: the output is not copied.
 *  Errors: those that a layer reports for its input, such as an index that an Embedding does not have; LEAT_EIO a GPU
 *  failed.  After a failure states are undefined until a reset. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_run(leat_predictor *predictor, const void *const *inputs,
                                                     void *const *outputs, leat_error *err);

/** Like leat_predictor_run, but checks data types and shapes: inputs[i] and outputs[i] must have those of
 *  leat_predictor_input and leat_predictor_output.  NULL for all tensors, or data NULL for one, has the same
 *  meaning as in leat_predictor_run.
 *  Errors: as in leat_predictor_run; LEAT_EDTYPE, LEAT_ESHAPE another type or shape, found before anything is
 *  computed. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_run_into(leat_predictor *predictor,
                                                          const leat_tensor *inputs,
                                                          const leat_tensor *outputs, leat_error *err);

/* ---- Weights ---- */

/** Publishes the model's current weights: copies them and offers the copy to all predictors of the model.
 *  Errors: LEAT_ENOMEM; the weights that were published before are then still offered.  Threads: a call on the
 *  model. */
LEAT_API LEAT_CHECKED leat_status leat_model_publish(leat_model *model, leat_error *err);

/** Makes the predictor use the weights that were published last, from its next run on; on failure it uses its old
 *  weights.  States are unchanged.  If there are no newer weights, the call costs one load from memory.
 *  Errors: LEAT_EINVAL other layers were frozen and the model was compiled again since the predictor was created;
 *  LEAT_ENOMEM.
 *  Threads: externally synchronised per predictor; the model may be in use at the same time. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_sync(leat_predictor *predictor, leat_error *err);

/** Returns the number of the published weights that the predictor uses; a later publication has a larger number. */
LEAT_API uint64_t leat_predictor_version(const leat_predictor *predictor);

/** Returns how many of the model's weights the predictor keeps in the format of its options: 0 with
 *  LEAT_WEIGHTS_F32.  A layer that is called twice counts twice. */
LEAT_API int64_t leat_predictor_narrow_weights(const leat_predictor *predictor);

/* ---- States ---- */

/** Set the states of all samples, or of one sample of the batch, to zero.  The states of a new predictor are zero, too,
 *  whatever the states of the model are. */
LEAT_API void leat_predictor_reset(leat_predictor *predictor);
LEAT_API void leat_predictor_reset_sample(leat_predictor *predictor, int64_t sample);

/** Save and restore all states.  A saved block has leat_predictor_state_bytes bytes, in the caller's memory, and
 *  fits all predictors of the same model with the same options. */
LEAT_API size_t leat_predictor_state_bytes(const leat_predictor *predictor);
LEAT_API void leat_predictor_save(const leat_predictor *predictor, void *state);
LEAT_API void leat_predictor_restore(leat_predictor *predictor, const void *state);

/** Returns a view of a state of the layer with this name: index 0 is h, index 1 is the c of an LSTM.  The memory
 *  belongs to the predictor, is valid until leat_predictor_destroy, and may be written to.  `data` is NULL if
 *  there is no such state. */
LEAT_API leat_tensor leat_predictor_state(const leat_predictor *predictor, const char *layer, int index);
/** Like leat_predictor_state, but writes through a pointer: *out is zeroed on failure.  Errors: LEAT_ENOTFOUND no
 *  such state. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_state_into(const leat_predictor *predictor,
                                                            const char *layer, int index, leat_tensor *out,
                                                            leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
