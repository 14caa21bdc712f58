/* SPDX-License-Identifier: Apache-2.0 */
/* Predictors: a model compiled for one batch size, for programs that predict often and little, several threads beside the
 * one that trains.  A run allocates nothing, takes no lock and makes no system call.  docs/predictors.md. */
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

/** Opaque.  Externally synchronised; several of one model may run at the same time, also while the model trains. */
typedef struct leat_predictor leat_predictor;

/** How a predictor computes.  Start from leat_predictor_options_default(). */
typedef struct leat_predictor_options {
    size_t size;        /* sizeof the struct, set by leat_predictor_options_init */
    int64_t batch_size; /* default 1 */
    int threads;        /* to compute with; default 1 */
    /* Default false: a run takes whole inputs.  True: a run takes one step of each sequence (the input's second dimension is
     * 1), and recurrent layers, stateful or not, carry their states from run to run: the steps of a window, one by one
     * after a reset, end with what the window gives.  For models whose other layers take each step by itself. */
    bool streaming;
    /* NULL (default): f32, shapes as the model says.  Otherwise the type and the whole shape of each input; data is ignored.
     * Borrowed for the call of leat_predictor_create. */
    const leat_tensor *inputs;
} leat_predictor_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_predictor_options_init(leat_predictor_options *options, size_t size);
/** The defaults by value. */
static inline leat_predictor_options leat_predictor_options_default(void) {
    leat_predictor_options options;
    leat_predictor_options_init(&options, sizeof options);
    return options;
}

/** Compiles the model; the predictor sees the weights as they are now.  options NULL: the defaults.  The predictor keeps the
 *  model: the memory of one that is destroyed first is freed with its last predictor.
 *  @param[out] out  For leat_predictor_destroy; NULL on failure.
 *  Errors: LEAT_EINVAL an option; LEAT_EDTYPE, LEAT_ESHAPE inputs that the model cannot take, or that have a dimension which
 *  neither says; LEAT_ENOTSUP streaming through a layer that looks at several steps at once, naming it; LEAT_ENOMEM.
 *  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_create(leat_predictor **out, leat_model *model,
                                                        const leat_predictor_options *options,
                                                        leat_error *err);

/** NULL is fine; sets *predictor to NULL. */
LEAT_API void leat_predictor_destroy(leat_predictor **predictor);

/** Inputs and outputs, one for each of the model's: type, shape, and memory of the predictor's own that may be used instead
 *  of the caller's (leat_predictor_run).  An input's memory stays the same until leat_predictor_destroy.  An output's memory
 *  holds the last run's prediction until the next leat_predictor_run or leat_predictor_sync, which may also move it: ask for
 *  the view again after each of them. */
LEAT_API leat_tensor leat_predictor_input(const leat_predictor *predictor, int index);
LEAT_API leat_tensor leat_predictor_output(const leat_predictor *predictor, int index);
/** Both through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL the index. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_input_into(const leat_predictor *predictor, int index,
                                                            leat_tensor *out, leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_predictor_output_into(const leat_predictor *predictor, int index,
                                                             leat_tensor *out, leat_error *err);

/** Predicts.  inputs[i]: the data of input i, contiguous and of its data type (leat_tensor_copy brings any other into the memory
 *  of leat_predictor_input); NULL, as all of it or one: what leat_predictor_input points to.  outputs[i]: where
 *  output i is copied; NULL, as all of it or one: nowhere.  Errors: what a layer reports of its input (an Embedding, of an
 *  index); states are then undefined until a reset. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_run(leat_predictor *predictor, const void *const *inputs,
                                                     void *const *outputs, leat_error *err);

/** leat_predictor_run with a check of types and shapes: inputs[i] and outputs[i] must be as leat_predictor_input and
 *  leat_predictor_output say.  NULL for all of them, or data NULL for one: as in leat_predictor_run.
 *  Errors: as leat_predictor_run; LEAT_EDTYPE, LEAT_ESHAPE another type or shape, before anything is computed. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_run_into(leat_predictor *predictor,
                                                          const leat_tensor *inputs,
                                                          const leat_tensor *outputs, leat_error *err);

/* ---- Weights ---- */

/** Makes a copy of the model's weights as they are now, and offers it to all predictors of the model.
 *  Errors: LEAT_ENOMEM, after which the one before is still on offer.  Threads: a call on the model. */
LEAT_API LEAT_CHECKED leat_status leat_model_publish(leat_model *model, leat_error *err);

/** From its next run on the predictor sees the weights that were published last: all of them or, after a failure, none.
 *  States stay.  Without news it costs one load.  Errors: LEAT_EINVAL the model was compiled anew since the predictor was made, with
 *  other layers frozen; LEAT_ENOMEM.  Threads: externally synchronised per predictor, whatever the model does. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_sync(leat_predictor *predictor, leat_error *err);

/** Counts what was published: the number of the weights that it sees.  Grows. */
LEAT_API uint64_t leat_predictor_version(const leat_predictor *predictor);

/* ---- States ---- */

/** All states are zero again; or those of one sample of the batch.  A predictor begins so, whatever the model's states. */
LEAT_API void leat_predictor_reset(leat_predictor *predictor);
LEAT_API void leat_predictor_reset_sample(leat_predictor *predictor, int64_t sample);

/** States as a block of bytes, to go back to; it fits every predictor of this model with these options. */
LEAT_API size_t leat_predictor_state_bytes(const leat_predictor *predictor);
LEAT_API void leat_predictor_save(const leat_predictor *predictor, void *state);
LEAT_API void leat_predictor_restore(leat_predictor *predictor, const void *state);

/** One state of a layer: 0 is h, 1 an LSTM's c.  The memory of the view belongs to the predictor, until
 *  leat_predictor_destroy, and may be written.  Its data is NULL where there is no such state. */
LEAT_API leat_tensor leat_predictor_state(const leat_predictor *predictor, const char *layer, int index);
/** leat_predictor_state through a pointer: *out is zeroed on failure.  Errors: LEAT_ENOTFOUND no such state. */
LEAT_API LEAT_CHECKED leat_status leat_predictor_state_into(const leat_predictor *predictor,
                                                            const char *layer, int index, leat_tensor *out,
                                                            leat_error *err);

#ifdef __cplusplus
}
#endif
#endif
