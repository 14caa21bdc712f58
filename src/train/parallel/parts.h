/* SPDX-License-Identifier: Apache-2.0 */
/* One batch that several ranks compute in parts: which samples a part has, and where they are in this rank's memory.
 * Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_PARTS_H
#define LEATI_TRAIN_PARALLEL_PARTS_H

#include "train/parallel/parallel.h"

/* The largest number of values that the program of a part binds: tensors of the batch, and totals. */
#define LEATI_MAX_BOUND (3 * LEATI_PROGRAM_MAX_OUTPUTS + LEATI_TOTALS_MAX)

/* The state of one call of leati_parallel_run or leati_parallel_predict. */
typedef struct leati_parts {
    leati_parallel *p;
    const leati_parallel_batch *batch;
    leati_program_spec spec; /* of the samples that this rank has */
    const void *pointers[LEATI_MAX_BOUND];
    int64_t samples;           /* of the whole batch */
    int64_t from;              /* the place in the whole batch of the first sample that this rank has */
    leati_plan *plan;          /* of the first part that this rank has computed; NULL: it has none */
    size_t gradients, written; /* floats */
    size_t rows;               /* floats of LEATI_SLAB_ROWS */
    bool agreed_failure;       /* all ranks know that the batch has failed */
} leati_parts;

/* Returns the place in a batch of the first sample of a part. */
int64_t leati_first_sample(const leati_parallel *p, int part, int64_t samples);
/* Returns the number of samples of a rank in a batch. */
int64_t leati_samples_of(const leati_parallel *p, int rank, int64_t samples);
/* Returns the seed of a part: each draws other random numbers (dropout); part 0 draws those of a step that is not
 * cut. */
uint64_t leati_part_seed(uint64_t seed, int part);
/* Returns true if this rank was asked to stop. */
bool leati_is_requested(const leati_parallel *p);

/* Binds the batch of the call.  Errors: those of leati_binding_apply. */
leat_status leati_parts_bind(leati_parts *run, leat_error *err);
/* Sets the shapes and pointers of `count` samples, from sample `first` of the whole batch on, and the pointers of the
 * totals; *spec is a copy of run->spec. */
void leati_parts_cut(const leati_parts *run, leati_program_spec *spec, const void **pointers, int64_t first,
                     int64_t count);

/* Gives each rank the states of all samples behind a batch; every rank has computed those of its samples.  Errors:
 * those of the communicator; LEAT_ENOMEM. */
leat_status leati_parts_join_states(leati_parts *run, leat_error *err);

#endif
