/* SPDX-License-Identifier: Apache-2.0 */
/* What all combinations of sequences have in common: their parts, and the functions of a sequence. */
#ifndef LEATI_DATA_COMBINE_COMBINE_H
#define LEATI_DATA_COMBINE_COMBINE_H

#include "data/numbered/numbered.h"
#include "leat/combine.h"

typedef struct leati_combined leati_combined;

/* The beginning of each combination's own struct, which is the `user` of its sequence. */
struct leati_combined {
    leati_numbered own;
    leat_sequence *parts; /* owned after leati_combined_finish */
    int part_count;
    /* Makes the samples with these numbers; sets batch->size. */
    leat_status (*make)(leati_combined *c, const int64_t *numbers, int64_t count, leat_rng *rng,
                        leat_batch *batch, leat_error *err);
    /* Frees what the combination owns beside its parts; NULL: nothing. */
    void (*fini)(leati_combined *c);
};

/* Allocates a combination of `bytes` bytes with copies of the parts, which it does not own yet.
 * @param[out] out  For leati_combined_finish or leati_combined_free.
 * Errors: those of leat/combine.h. */
leat_status leati_combined_create(void *out, size_t bytes, leat_sequence *const *parts, int count,
                                  leat_error *err);

/* Frees a combination that was not finished. */
void leati_combined_free(leati_combined *c);

/* Ends a public function: with LEAT_OK the combination becomes the sequence *out of the caller, and the caller's parts
 * are zeroed; otherwise the combination is freed.  Returns `status`. */
leat_status leati_combined_finish(leati_combined *c, leat_status status, leat_sequence *const *parts,
                                  leat_sequence *out, size_t size);

/* Sets the batch size of a combination, at most its number of samples. */
void leati_combined_set_batch_size(leat_sequence *combination, int64_t batch_size);

/* Checks that the samples of all parts have the same tensors.  Errors: LEAT_ESHAPE. */
leat_status leati_combined_check_equal(const leati_combined *c, leat_error *err);

/* Returns the number of samples of a part. */
int64_t leati_part_samples(const leat_sequence *part);

/* Returns random numbers for the part, or the repetition, with this index, which are independent of those with other
 * indices.  For index 0 they are those of `rng`. */
leat_rng leati_rng_of_part(const leat_rng *rng, uint64_t index);

/* Where leati_part_make writes the samples of a part. */
typedef struct leati_target {
    unsigned char *data[LEAT_BATCH_MAX_TENSORS]; /* for each tensor of the part */
    void *scratch; /* for samples that are not aligned; NULL at first; the caller frees this memory */
    size_t scratch_bytes;
} leati_target;

/* Makes the samples of a part with these numbers, in calls of at most the part's batch size, one behind the other.
 * @param made  The number of samples that the target has already; receives the new number.  It grows by less than
 * `count` if the part leaves out samples.
 * Errors: those of the part, but not LEAT_ESKIPPED; LEAT_ENOTSUP a sample has another shape than the specification. */
leat_status leati_part_make(const leat_sequence *part, const int64_t *numbers, int64_t count, leat_rng *rng,
                            leati_target *target, int64_t *made, leat_error *err);

/* Sets the size of a batch.  Errors: LEAT_ESKIPPED the batch has no samples. */
leat_status leati_batch_finish(leat_batch *batch, int64_t made, leat_error *err);

#endif
