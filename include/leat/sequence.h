/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences: a sequence describes data by the number of batches in a pass and by a function that makes batch i,
 * like keras.utils.Sequence.  Unlike Keras, leat knows the shape of a batch in advance, so that `get` writes into
 * the memory from which training reads. */
#ifndef LEAT_SEQUENCE_H
#define LEAT_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/rng.h"
#include "leat/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of tensors of a batch, and the size in bytes of a tensor's name, including the final zero
 *  byte. */
#define LEAT_BATCH_MAX_TENSORS 32
#define LEAT_NAME_BYTES        64

/** The purpose of a tensor of a batch. */
typedef enum leat_batch_part {
    LEAT_PART_INPUT = 0,
    LEAT_PART_TARGET = 1,
    LEAT_PART_SAMPLE_WEIGHT = 2
} leat_batch_part;

/** The specification of one tensor, which is the same for all batches.  Tensors are matched with the layers of a
 *  model by name: if the names of the inputs are names of the model's input layers, each input goes to the layer
 *  with its name; if no input has such a name, inputs are matched by position; if only some have, this is an
 *  error.  Targets and sample weights are matched with the output layers in the same way.  Frozen. */
typedef struct leat_tensor_spec {
    char name[LEAT_NAME_BYTES]; /* "": no name */
    leat_batch_part part;
    leat_dtype dtype; /* of the batch; the model converts the numbers */
    int32_t rank;     /* dimensions of one sample, without the batch dimension */
    /* The shape of one sample.  If `get` sets smaller dimensions in some batches, this is the largest shape. */
    int64_t shape[LEAT_MAX_RANK - 1];
} leat_tensor_spec;

/** The specification of a batch: its tensors, inputs first, then targets, then sample weights.  Frozen. */
typedef struct leat_batch_spec {
    int64_t batch_size; /* samples of a full batch; a batch may have fewer samples, but not more */
    int32_t tensor_count;
    leat_tensor_spec tensors[LEAT_BATCH_MAX_TENSORS];
} leat_batch_spec;

/** A batch, in memory that belongs to the feed.  When `get` is called, `size` is spec->batch_size, and the shape
 *  of each tensor is the specified shape behind the batch dimension.  `get` writes the data.  If the batch is
 *  shorter, `get` sets `size`, and the feed sets the first dimension of all tensors to it.  If samples vary in
 *  shape, `get` sets the shape of the tensor (dimensions up to the specified ones) and writes the data
 *  contiguously in row-major order for this shape.
 *
 *  `data` is aligned to 64 bytes and contains an older batch: `get` must write every element.  Alternatively
 *  `get` may set a tensor's `data` to the address of memory of its own, which must not change until the feed is
 *  closed.  Worker threads pass this memory on without a copy; worker processes copy it into the slot.  Frozen. */
typedef struct leat_batch {
    int64_t size; /* the number of samples */
    int32_t tensor_count;
    leat_tensor tensors[LEAT_BATCH_MAX_TENSORS];
} leat_batch;

/** The length of a sequence without end: it has a single pass, whose indices count from 0 without limit. */
#define LEAT_LENGTH_INFINITE INT64_MAX

/** A sequence (with `length` and `get`, and possibly `samples` and `get_samples`) or a generator (with `next`).
 *  Initialize it by leat_sequence_default() or leat_sequence_init(), and set the functions that the data needs.
 *
 *  Threads: the struct is externally synchronised.  `length`, `samples` and `on_epoch_end` run on the trainer's
 *  thread, `destroy` on the thread that calls leat_sequence_destroy, and all other functions on a worker: a
 *  thread, a process, or the caller itself if there are no workers.  With worker threads several threads call
 *  `get` at the same time.  With worker processes each process has its own copy of *user, made when the process
 *  was forked. */
typedef struct leat_sequence {
    size_t size;                 /* sizeof(leat_sequence) */
    void *user;                  /* passed to all functions */
    void (*destroy)(void *user); /* frees *user; called by leat_sequence_destroy; may be NULL */
    leat_batch_spec spec;        /* the tensors of every batch */

    /** Returns the number of batches of a pass, or LEAT_LENGTH_INFINITE if no pass ends.  Called before the first
     *  batch of each pass is made: after on_epoch_end if the sequence has this function, otherwise up to
     *  max_queue_size batches before the end of the pass before. */
    int64_t (*length)(void *user);

    /** Makes batch `index` (0 <= index < length).  It must draw random numbers from rng only, which is a function
     *  of (seed, pass, index).  On failure return leat_error_set(err, LEAT_EUSER, ...): the caller of fit
     *  receives the message behind the batch's index and pass.  Return LEAT_ESKIPPED if this batch does not
     *  exist: the feed skips and counts it, and the pass is shorter by one batch. */
    leat_status (*get)(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err);

    /** `samples` returns the number of samples of a pass; it is called together with `length`.  `get_samples`
     *  makes a batch of the `count` samples with the given numbers (0 <= number < samples).  batch->size is
     *  already set to `count`, which is spec.batch_size except for the last batch.  A sequence has both functions
     *  or neither.  With them a pass can be shuffled by samples; otherwise leat calls `get`.  Without shuffling,
     *  batch i must consist of the samples from i * batch_size on, and `length` must be the number of samples
     *  divided by batch_size, rounded up. */
    int64_t (*samples)(void *user);
    leat_status (*get_samples)(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err);

    /** Only for a generator: makes the next batch, or sets batch->size = 0 if there are no more.  One worker
     *  makes all calls, one after the other, always on the same thread or in the same process.  rng is a function
     *  of (seed, 0, number of batches before).  If a failure is skipped (LEAT_BAD_BATCH_SKIP), `next` is called
     *  again for the following batch.  `length`, `get`, `samples`, `get_samples` and on_epoch_end must be NULL. */
    leat_status (*next)(void *user, leat_rng *rng, leat_batch *batch, leat_error *err);

    /** Called after each pass, on the trainer's thread, before any batch of the next pass is made.  May be NULL. */
    leat_status (*on_epoch_end)(void *user, int64_t pass, leat_error *err);

    /** worker_init is called once in each worker before its first batch, worker_fini after its last batch.  Both
     *  may be NULL.  A process that is killed does not call worker_fini.  A host language attaches a worker
     *  thread to its runtime in worker_init and detaches it in worker_fini: these are the first and the last
     *  function of *user that run on the thread.  If worker_init fails, worker_fini is not called.  Feeds that
     *  are opened together share their threads: each thread calls worker_init once for each sequence that has
     *  this function, and worker_fini in the reverse order. */
    leat_status (*worker_init)(void *user, int worker, leat_error *err);
    void (*worker_fini)(void *user, int worker);

    /** The memory that on_epoch_end may change, for example inside *user.  leat copies it into every worker
     *  process before the next pass.  NULL (default): on_epoch_end changes nothing that workers read.  If a
     *  sequence has on_epoch_end but declares no state, its worker processes are forked again after each pass. */
    void *state;
    size_t state_bytes;

    /** The number of neighbouring samples that are stored together, such as a chunk of HDF5, so that reading one of
     *  them costs as much as reading all.  Block b is the samples from b * block_samples on.  blocks_at_once is the
     *  number of blocks that the sequence keeps in memory.  LEAT_SHUFFLE_BLOCKS permutes such blocks, and
     *  LEAT_SHUFFLE_AUTO then does so.  0 (default): samples are as cheap in any order. */
    int64_t block_samples;
    int64_t blocks_at_once;

    /** A promise, with which several ranks divide the work on each batch, because each makes only the samples of its
     *  part: `get_samples` makes all samples that it is asked for, and each sample is a function of its number, of the
     *  pass and of the key of the batch's random numbers, not of the other samples of the batch, of their order, or of
     *  what `get_samples` has done before.  So a sample does not draw from rng, whose numbers depend on what has been
     *  drawn before, but from a generator of its own, leat_rng_for(seed, pass, number), or from
     *  leat_rng_for(rng->key, 0, number) for other numbers in each batch and pass.  `get` makes the same samples as
     *  `get_samples` of the consecutive numbers.  false (default): each rank makes whole batches. */
    bool independent_samples;

    /** Makes the samples that get_samples makes for the same arguments, but without random changes such as an
     *  augmentation: rng may only choose which samples these are.  leat_sequence_split makes the samples of *last by
     *  it, which are for validation.  NULL (default): get_samples makes no random changes. */
    leat_status (*get_plain)(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                             leat_batch *batch, leat_error *err);
} leat_sequence;

/** Zeroes the `size` bytes of *sequence and sets sequence->size.
 *  @param size  sizeof *sequence.
 *  Threads: any. */
LEAT_API void leat_sequence_init(leat_sequence *sequence, size_t size);
/** Returns a sequence without functions. */
static inline leat_sequence leat_sequence_default(void) {
    leat_sequence sequence;
    leat_sequence_init(&sequence, sizeof sequence);
    return sequence;
}

/** Appends a tensor to a specification.
 *  @param name  NULL: the tensor has no name.  The text is copied.
 *  @param rank  The number of dimensions of one sample, without the batch dimension.
 *  @param shape  The shape of one sample: `rank` numbers.
 *  Errors: LEAT_EINVAL there are too many tensors, the name is too long, or the parts are not in order;
 *  LEAT_ESHAPE a dimension is below 1, or the rank is out of range; LEAT_EDTYPE unknown data type.
 *  Threads: externally synchronised. */
LEAT_API LEAT_CHECKED leat_status leat_batch_spec_add(leat_batch_spec *spec, leat_batch_part part,
                                                      const char *name, leat_dtype dtype, int rank,
                                                      const int64_t *shape, leat_error *err);

/** Return the number of tensors that a specification has for this part, and the index of the first of them. */
LEAT_API int leat_batch_spec_count(const leat_batch_spec *spec, leat_batch_part part);
LEAT_API int leat_batch_spec_first(const leat_batch_spec *spec, leat_batch_part part);

/** Gets memory for the first `bytes` bytes of the tensor of a batch, in a feed with elastic slots; in other feeds
 *  the memory is there already.  To be called in `get`, get_samples or `next`, for the batch that they received.
 *  Errors: LEAT_EINVAL this thread is not making the batch; LEAT_ESHAPE the specification allows less; LEAT_ENOMEM.
 *  Threads: the thread on which `get` was called. */
LEAT_API LEAT_CHECKED leat_status leat_batch_reserve(const leat_batch *batch, size_t bytes, leat_error *err);

/** Calls the sequence's `destroy` and zeroes the struct.  NULL and zeroed structs are allowed. */
LEAT_API void leat_sequence_destroy(leat_sequence *sequence);

#ifdef __cplusplus
}
#endif
#endif
