/* SPDX-License-Identifier: Apache-2.0 */
/* A Sequence describes data: how many batches a pass has, and what batch i is.  keras.utils.Sequence, with the
 * shape of a batch said beforehand, so that `get` writes straight into the memory that training reads. */
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

/** Bounds of a batch: its tensors, and the bytes of a tensor's name with its final 0. */
#define LEAT_BATCH_MAX_TENSORS 32
#define LEAT_NAME_BYTES        64

/** What a tensor of a batch is for. */
typedef enum leat_batch_part {
    LEAT_PART_INPUT = 0,
    LEAT_PART_TARGET = 1,
    LEAT_PART_SAMPLE_WEIGHT = 2
} leat_batch_part;

/** One tensor of every batch.  `shape` is that of one sample (no batch dimension); a dimension may be the
 *  maximum where `get` sets a smaller one.  `dtype` may be any of LEAT_DTYPE_LIST: the batch holds it, the model converts it.
 *  Inputs (and so targets, weights) that bear the names of the model's input (output) layers are matched by them; those that
 *  bear none of them, by position; to name only some is an error.  Frozen. */
typedef struct leat_tensor_spec {
    char name[LEAT_NAME_BYTES];
    leat_batch_part part;
    leat_dtype dtype;
    int32_t rank;
    int64_t shape[LEAT_MAX_RANK - 1];
} leat_tensor_spec;

/** The tensors of every batch: inputs first, then targets, then sample weights.  Frozen. */
typedef struct leat_batch_spec {
    int64_t batch_size; /* samples of a full batch; any batch may have fewer, none more */
    int32_t tensor_count;
    leat_tensor_spec tensors[LEAT_BATCH_MAX_TENSORS];
} leat_batch_spec;

/** A batch, in memory that the feed owns.  When `get` is called, size is spec->batch_size and each tensor has the
 *  specified shape with size in front.  `get` writes the data; for a short batch it sets size, and the feed
 *  shortens the tensors' first dimension to it.  Where samples vary in shape, `get` sets the tensor's own shape
 *  (dimensions up to the specified ones); data stays row-major for the shape that was set.
 *
 *  data is 64-byte aligned and holds an older batch's bytes: every element is to be written.  Instead, `get` may point
 *  a tensor's data at ready-made memory of its own that stays as it is until the feed is closed: worker threads hand
 *  it over uncopied, worker processes copy it into the slot.  Frozen. */
typedef struct leat_batch {
    int64_t size; /* samples */
    int32_t tensor_count;
    leat_tensor tensors[LEAT_BATCH_MAX_TENSORS];
} leat_batch;

/** A length without end: indices go on from 0, in one pass. */
#define LEAT_LENGTH_INFINITE INT64_MAX

/** Data by index, or one after the other.  All functions but length, samples and on_epoch_end run on a worker: a thread, a
 *  process, or the caller itself.  With worker threads `get` is called by several threads at once; with worker processes
 *  each has its own copy of *user, made when the process was forked.  A sequence has length and get (and may have samples
 *  and get_samples besides), a generator has next. */
typedef struct leat_sequence {
    size_t size; /* sizeof(leat_sequence) */
    void *user;
    void (*destroy)(void *user); /* frees *user; called by leat_sequence_destroy; may be NULL */
    leat_batch_spec spec;

    /** Batches of a pass.  Read before the first batch of each pass is made, on the trainer's thread: after
     *  on_epoch_end where there is one, up to max_queue_size batches before the end of the pass before otherwise.
     *  LEAT_LENGTH_INFINITE: no pass ends. */
    int64_t (*length)(void *user);

    /** Makes batch `index` (0 <= index < length).  Random choices are drawn from rng alone, which belongs to
     *  (seed, pass, index).  On failure return leat_error_set(err, LEAT_EUSER, ...): the message reaches the caller
     *  of fit with index and pass in front.  LEAT_ESKIPPED instead: there is no such batch; it is passed over and counted,
     *  and the pass is shorter by it. */
    leat_status (*get)(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err);

    /** Samples of a pass, read with the length; and a batch of `count` samples by their numbers (0 <= number < samples;
     *  count is spec.batch_size but for the last batch, and batch->size is already set to it).  Both or neither: with
     *  them a pass can be shuffled by samples; get is used otherwise.  Batch i without shuffling must be the samples
     *  from i * batch_size on, and length the samples by batch_size, rounded up. */
    int64_t (*samples)(void *user);
    leat_status (*get_samples)(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err);

    /** A generator instead: makes the batch that follows, or sets batch->size = 0 when there is none.  One worker owns it:
     *  calls come one after the other, in order, always from the same thread or process.  rng belongs to (seed, 0, how
     *  many batches came before).  After a failure that is passed over it is called again, for the next.  length, get
     *  and on_epoch_end are NULL then. */
    leat_status (*next)(void *user, leat_rng *rng, leat_batch *batch, leat_error *err);

    /** After each pass, on the trainer's thread, before any batch of the next is made.  Optional. */
    leat_status (*on_epoch_end)(void *user, int64_t pass, leat_error *err);

    /** Once in each worker, before its first batch and after its last.  Optional.  A killed process runs no fini.
     *  A host runtime attaches a worker thread in worker_init and detaches it in worker_fini: of what *user's functions run
     *  on that thread worker_init comes first and worker_fini last.  worker_fini is not called where worker_init failed.
     *  Feeds that are opened together share their threads, which then call worker_init once for each sequence that has
     *  one, and worker_fini in the reverse order. */
    leat_status (*worker_init)(void *user, int worker, leat_error *err);
    void (*worker_fini)(void *user, int worker);

    /** The memory that on_epoch_end may change (inside *user, say).  leat copies it into every worker process
     *  before the next pass.  NULL where the hook changes nothing; a sequence that has a hook and declares no state
     *  has its worker processes forked anew after each pass. */
    void *state;
    size_t state_bytes;
} leat_sequence;

/** Zeroes the `size` bytes of *sequence and sets sequence->size.
 *  @param size  sizeof *sequence.
 *  Threads: any. */
LEAT_API void leat_sequence_init(leat_sequence *sequence, size_t size);
/** A sequence without functions, by value. */
static inline leat_sequence leat_sequence_default(void) {
    leat_sequence sequence;
    leat_sequence_init(&sequence, sizeof sequence);
    return sequence;
}

/** Appends a tensor to a specification.  name may be NULL; shape (rank numbers) is that of one sample.
 *  Errors: LEAT_EINVAL too many tensors, a name that is too long, parts out of order; LEAT_ESHAPE a dimension < 1 or a
 *  rank that is too large; LEAT_EDTYPE unknown type.  Threads: externally synchronised. */
LEAT_API LEAT_CHECKED leat_status leat_batch_spec_add(leat_batch_spec *spec, leat_batch_part part,
                                                      const char *name, leat_dtype dtype, int rank,
                                                      const int64_t *shape, leat_error *err);

/** How many tensors of a part a specification has, and the index of its first. */
LEAT_API int leat_batch_spec_count(const leat_batch_spec *spec, leat_batch_part part);
LEAT_API int leat_batch_spec_first(const leat_batch_spec *spec, leat_batch_part part);

/** Calls destroy on *sequence's user and zeroes the struct.  NULL and zeroed structs are fine. */
LEAT_API void leat_sequence_destroy(leat_sequence *sequence);

#ifdef __cplusplus
}
#endif
#endif
