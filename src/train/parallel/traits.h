/* SPDX-License-Identifier: Apache-2.0 */
/* What must be the same on all ranks of a run.  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_TRAITS_H
#define LEATI_TRAIN_PARALLEL_TRAITS_H

#include "dist/dist.h"
#include "leat/train.h"

/* A property of the run, as a number. */
typedef struct leati_trait {
    const char *name;
    int64_t value;
    bool is_hash; /* the value means nothing to people */
} leati_trait;

/* Hashes of the architecture, of the compilation, and of the values of the weights and states. */
int64_t leati_trait_model(const leat_model *model);
int64_t leati_trait_compilation(const leat_model *model);
int64_t leati_trait_weights(const leat_model *model);

/* Returns the number of batches; -1: the sequence is absent or has no length. */
int64_t leati_trait_length(const leat_sequence *sequence);

/* FNV-1a: hashes begin with leati_hash_start. */
static const uint64_t leati_hash_start = UINT64_C(0xcbf29ce484222325);
uint64_t leati_hash_bytes(uint64_t hash, const void *data, size_t bytes);

/* Errors: LEAT_EINVAL two ranks differ in a trait, which the message names; those of the communicator. */
leat_status leati_traits_compare(leat_dist *dist, const leati_trait *traits, int count, leat_error *err);

#endif
