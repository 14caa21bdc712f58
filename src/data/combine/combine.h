/* SPDX-License-Identifier: Apache-2.0 */
/* What all combinations of sequences have in common: their parts, and the functions of a sequence. */
#ifndef LEATI_DATA_COMBINE_COMBINE_H
#define LEATI_DATA_COMBINE_COMBINE_H

#include "data/numbered/numbered.h"
#include "leat/combine.h"
#include "leat/source.h"

typedef struct leati_combined leati_combined;

/* The random numbers of a batch. */
typedef struct leati_draws {
    leat_rng rng;
    bool is_plain; /* the parts make their samples without random changes */
} leati_draws;

/* The rows of a part that the samples of a combination need: sample i needs those from offset + i * step on, and all of
 * them lie within `span` rows. */
typedef struct leati_rows {
    int64_t offset, step, span;
} leati_rows;

/* The beginning of each combination's own struct, which is the `user` of its sequence. */
struct leati_combined {
    leati_numbered own;
    leat_sequence *parts; /* owned after leati_combined_finish */
    int part_count;
    /* Makes the samples with these numbers; sets batch->size. */
    leat_status (*make)(leati_combined *c, const int64_t *numbers, int64_t count, leati_draws *draws,
                        leat_batch *batch, leat_error *err);
    /* Returns the first sample of a part that a sample needs; -1: it needs none.
     * @param[in,out] key  Of the random numbers of the combination, then of the part. */
    int64_t (*locate)(const leati_combined *c, int64_t number, uint64_t *key, int part);
    /* Sets wanted[n] for each sample n of a part that the samples i need for which own_wanted[i] is set; NULL:
     * those that `locate` finds. */
    void (*trace)(const leati_combined *c, int part, const unsigned char *own_wanted, unsigned char *wanted);
    /* Chooses the same samples in each pass; NULL: it always does. */
    void (*fix)(leati_combined *c);
    /* Returns the rows of a part; NULL: sample i needs row i. */
    leati_rows (*rows)(const leati_combined *c, int part);
    int64_t block_samples, blocks_at_once; /* of the sequence; 0: leati_combined_finish chooses them */
    /* Frees what the combination owns beside its parts; NULL: nothing. */
    void (*fini)(leati_combined *c);
    /* leat_source_note_sizes: of the samples, borrowed, and of those of each part; NULL: nobody asked. */
    int64_t *sizes, **part_sizes;
};

/* Has a combination note the sizes of the pictures of its parts.  Errors: LEAT_ENOTSUP no part has pictures whose sizes
 * are known; LEAT_ENOMEM. */
leat_status leati_combined_note_sizes(leati_combined *c, int64_t *sizes, leat_error *err);

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

/* Chooses blocks for a combination whose parts have blocks. */
void leati_combined_choose_blocks(leati_combined *c);

/* A `locate` for combinations whose sample i needs sample i of each part. */
int64_t leati_locate_same(const leati_combined *c, int64_t number, uint64_t *key, int part);

/* Finds the source that a sample of a sequence comes from, the first one if there are several, and its number there.
 * @param key  Of the random numbers with which the sample is made.
 * Returns `whole` itself if it is no combination. */
const leat_sequence *leati_combined_locate(const leat_sequence *whole, int64_t *number, uint64_t key);

/* Calls visit(source, wanted, options) for each sequence in `whole` that is not a combination, in order, until one
 * fails.  wanted[i] is not 0 if sample i is meant: of `whole`, and of the source the samples that those need. */
leat_status leati_combined_visit(const leat_sequence *whole, const unsigned char *wanted,
                                 leat_status (*visit)(const leat_sequence *source,
                                                      const unsigned char *wanted,
                                                      const leat_source_options *options, leat_error *err),
                                 const leat_source_options *options, leat_error *err);

/* Sets the batch size of a combination, at most its number of samples. */
void leati_combined_set_batch_size(leat_sequence *combination, int64_t batch_size);

/* Checks that the samples of all parts have the same tensors.  Errors: LEAT_ESHAPE. */
leat_status leati_combined_check_equal(const leati_combined *c, leat_error *err);

/* Returns the number of samples of a part. */
int64_t leati_part_samples(const leat_sequence *part);

/* Returns random numbers for the part, or the repetition, with this index, which are independent of those with other
 * indices.  For index 0 they are those of `draws`. */
leati_draws leati_draws_of_part(const leati_draws *draws, uint64_t index);

/* Returns the key of the random numbers that leati_draws_of_part gives. */
uint64_t leati_key_of_part(uint64_t key, uint64_t index);

/* Returns the combination that a sequence is; NULL for other sequences. */
leati_combined *leati_combined_of(const leat_sequence *sequence);

/* Has a sequence, if it is a combination, consist of the same samples in each pass, so that a part of their numbers is
 * a part of the samples: mix() then draws them in one order.  Not after the first sample was made. */
void leati_sequence_fix(const leat_sequence *sequence);

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
leat_status leati_part_make(const leat_sequence *part, const int64_t *numbers, int64_t count,
                            leati_draws *draws, leati_target *target, int64_t *made, leat_error *err);

/* Sets the size of a batch.  Errors: LEAT_ESKIPPED the batch has no samples. */
leat_status leati_batch_finish(leat_batch *batch, int64_t made, leat_error *err);

#endif
