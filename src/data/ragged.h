/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that vary in length: one array with the time steps of all samples, and the offset of each sample in it. */
#ifndef LEATI_DATA_RAGGED_H
#define LEATI_DATA_RAGGED_H

#include "data/array.h"
#include "leat/sequence.h"

enum { LEATI_RAGGED_MAX_BUCKETS = 64 };

typedef struct leati_ragged_choices {
    int64_t maxlen; /* 0: that of the longest sample */
    bool pad_after, cut_after;
    double value; /* of the padding */
    bool has_buckets;
    bool shuffled; /* the samples of a bucket are in another order in each pass */
    int bucket_count;
    int64_t buckets[LEATI_RAGGED_MAX_BUCKETS]; /* ascending lengths, to which samples are padded */
} leati_ragged_choices;

/* The data of a source.  The arrays are borrowed from `owner`. */
typedef struct leati_ragged_parts {
    const leati_array *values;  /* (values, ...) */
    const leati_array *offsets; /* (samples + 1,) integers */
    const char *path;           /* of the file */
    leat_sequence rest;         /* targets and sample weights, with get_samples; zeroed: none */
    void *owner;
    void (*release)(void *owner);
} leati_ragged_parts;

/* Returns the path of the file that has the samples, borrowed; NULL: the sequence is of another kind. */
const char *leati_ragged_path(const leat_sequence *sequence);

/* Makes a sequence, which owns parts->rest and parts->owner, also on failure.  With buckets it has no numbered
 * samples: batch i is a function of (seed, pass, i).  Errors: LEAT_ESHAPE, LEAT_EFORMAT, LEAT_ENOTSUP the arrays;
 * LEAT_EIO a file was shortened; LEAT_ENOMEM. */
leat_status leati_ragged_open(leat_sequence *out, leati_ragged_parts *parts,
                              const leati_ragged_choices *choices, int64_t batch_size, leat_error *err);

#endif
