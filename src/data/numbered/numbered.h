/* SPDX-License-Identifier: Apache-2.0 */
/* What all sources have in common whose samples have numbers: a batch is a list of such numbers, and the functions of
 * a sequence follow from one function that makes a batch of a list. */
#ifndef LEATI_DATA_NUMBERED_H
#define LEATI_DATA_NUMBERED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "leat/sequence.h"

typedef struct leati_numbered leati_numbered;

/* The beginning of a source's own struct, which is the `user` of its sequence. */
struct leati_numbered {
    leat_batch_spec spec;
    int64_t samples; /* of a pass */
    bool depends;    /* samples depend on each other or may be left out, against independent_samples */
    /* Makes the samples with these numbers; batch->size is `count`, and smaller afterwards if samples are left out. */
    leat_status (*make)(leati_numbered *source, const int64_t *numbers, int64_t count, leat_rng *rng,
                        leat_batch *batch, leat_error *err);
    void (*destroy)(leati_numbered *source);
    /* `make` changes samples at random, but not if its rng is NULL. */
    bool is_random;
    /* Called on the trainer's thread before each pass; NULL: nothing. */
    void (*before_pass)(leati_numbered *source);
};

/* Returns the sequence of a source whose members are set; the sequence owns the source.  The batch size becomes at most
 * the number of samples. */
leat_sequence leati_numbered_sequence(leati_numbered *source);

/* The `get` of such a sequence, for a source that has a `get` of its own and uses this one for some batches. */
leat_status leati_numbered_get(void *source, int64_t index, leat_rng *rng, leat_batch *batch,
                               leat_error *err);

/* Returns the source of a sequence that leati_numbered_sequence() has made with this `make`; NULL for others. */
leati_numbered *leati_numbered_of(const leat_sequence *sequence,
                                  leat_status (*make)(leati_numbered *, const int64_t *, int64_t, leat_rng *,
                                                      leat_batch *, leat_error *));

/* Returns the bytes of a sample of a tensor. */
size_t leati_sample_bytes(const leat_tensor_spec *spec);

/* Checks the batch size that a caller gives.  Errors: LEAT_EINVAL. */
leat_status leati_check_batch_size(int64_t batch_size, leat_error *err);

/* Returns how many of the samples leat_sequence_split gives to its first part. */
int64_t leati_split_count(int64_t samples, double share);

/* The numbers of the samples of a batch.  The struct must not be moved. */
typedef struct leati_numbers {
    int64_t *at; /* points to `few`, or to memory */
    int64_t few[64];
} leati_numbers;

/* Gets memory for `count` numbers, and writes first, first + 1, ...  Errors: LEAT_ENOMEM. */
leat_status leati_numbers_init(leati_numbers *out, int64_t first, int64_t count, leat_error *err);
void leati_numbers_fini(leati_numbers *numbers);

/* What a source does about samples that cannot be read. */
typedef struct leati_bad_samples {
    bool skipped;                  /* they are left out; otherwise their batch fails */
    _Atomic int64_t skipped_count; /* by this process */
    const char *what;              /* "pictures", for messages */
} leati_bad_samples;

/* Says what becomes of a sample that could not be read because of `problem`: LEAT_OK and a warning in the log if it is
 * left out, otherwise `status`.  Memory that is missing is not the sample's fault. */
leat_status leati_bad_sample(leati_bad_samples *rule, leat_status status, const leat_error *problem,
                             leat_error *err);

/* Returns LEAT_ESKIPPED, for a batch of `count` samples that were all left out; first: the problem of the first one. */
leat_status leati_bad_batch(const leati_bad_samples *rule, int64_t count, const leat_error *first,
                            leat_error *err);

#endif
