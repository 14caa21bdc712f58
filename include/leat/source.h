/* SPDX-License-Identifier: Apache-2.0 */
/* Ready-made sequences: arrays in memory, and files named by a SPEC.
 *
 *     SPEC = KIND:PATH[,PATH...][?KEY=VALUE[&KEY=VALUE...]]      idx:x.gz,y.gz?scale=1/255&onehot=10
 *
 * leat_source_help() has the kinds and options.  Files are mapped, not loaded: one that is shortened while it is in
 * use makes get fail with LEAT_EIO.  What all sources share: samples are the first dimension; a batch is a run of
 * samples, the last one short; a pass can be shuffled by samples (LEAT_SHUFFLE_SAMPLES of the feed); float64 becomes
 * float32, other data types stay as they are until the model reads them; an input or target with one number a sample has
 * shape (1,), as in Keras. */
#ifndef LEAT_SOURCE_H
#define LEAT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/sequence.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a source makes batches.  Start from leat_source_options_default(). */
typedef struct leat_source_options {
    size_t size;        /* sizeof the struct, set by leat_source_options_init */
    int64_t batch_size; /* default 32 */
} leat_source_options;

/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_source_options_init(leat_source_options *options, size_t size);
/** The defaults by value. */
static inline leat_source_options leat_source_options_default(void) {
    leat_source_options options;
    leat_source_options_init(&options, sizeof options);
    return options;
}

/** One array of samples.  Frozen, since arrays are given as an array. */
typedef struct leat_array {
    const char *name;   /* the model's layer it belongs to; NULL or "": by position */
    leat_tensor tensor; /* (samples, ...) */
    /* How the tensor's elements lie in memory: tensor.rank numbers, as leat_tensor_copy describes them (bytes; negative ones
     * and 0 are allowed).  NULL: row-major, contiguous.  The numbers are copied. */
    const int64_t *strides;
} leat_array;

/** Arrays with the same number of samples.  Frozen. */
typedef struct leat_arrays {
    const leat_array *inputs;
    const leat_array *targets;
    const leat_array *sample_weights;
    int32_t input_count;
    int32_t target_count;
    int32_t sample_weight_count;
} leat_arrays;

/** Batches of arrays in memory, as keras.Model.fit makes them.  The tensors' memory is borrowed until
 *  leat_sequence_destroy; names and structs are copied.  options NULL: the defaults.
 *  @param[out] out  Owned by the caller (leat_sequence_destroy); zeroed on failure.
 *  @param size  sizeof *out.
 *  Errors: LEAT_EINVAL no input, a batch size below 1; LEAT_ESHAPE no samples, numbers of samples that differ; LEAT_ENOMEM.
 *  Threads: get may be called by any number of threads. */
LEAT_API LEAT_CHECKED leat_status leat_arrays_open(leat_sequence *out, size_t size, const leat_arrays *arrays,
                                                   const leat_source_options *options, leat_error *err);

/** The sequence that SPEC names.  options NULL: the defaults.
 *  @param[out] out  Owned by the caller (leat_sequence_destroy); zeroed on failure.
 *  @param size  sizeof *out.
 *  Errors: LEAT_EINVAL the SPEC, with the nearest known word; LEAT_ENOTFOUND, LEAT_EIO a file; LEAT_EFORMAT a damaged
 *  file; LEAT_ESHAPE arrays that do not fit each other; LEAT_ENOMEM; a plugin's own.  Threads: as leat_arrays_open.
 *  The first file that is mapped installs a handler of SIGBUS, which passes on what does not concern such files. */
LEAT_API LEAT_CHECKED leat_status leat_source_open(leat_sequence *out, size_t size, const char *spec,
                                                   const leat_source_options *options, leat_error *err);

/** What SPECs can say: kinds, options, examples, as plain text.  Static.  Threads: any. */
LEAT_API const char *leat_source_help(void);

#ifdef __cplusplus
}
#endif
#endif
