/* SPDX-License-Identifier: Apache-2.0 */
/* A model at work: its plans, found by mode and shapes, the arena that they share, and the step of one batch.
 * A trainer belongs to its model and is as externally synchronised as that. */
#ifndef LEATI_TRAIN_STEP_TRAINER_H
#define LEATI_TRAIN_STEP_TRAINER_H

#include "engine/plan/plan.h"
#include "leat/sequence.h"
#include "nn/program/program.h"

typedef struct leati_trainer leati_trainer;

/* One compiled step. */
typedef struct leati_compiled_step {
    leati_program_spec spec;
    int threads;
    uint64_t version; /* of the model when it was compiled */
    leati_program program;
    leati_plan *plan;
    struct leati_compiled_step *next;
} leati_compiled_step;

/* The model's trainer, made at the first call. */
leat_status leati_trainer_of(leat_model *model, leati_trainer **out, leat_error *err);

/* The step for these shapes: from the cache, or compiled now.  Borrowed until the next call. */
leat_status leati_trainer_step(leati_trainer *trainer, const leati_program_spec *spec, int threads,
                               const leati_compiled_step **out, leat_error *err);

/* How the model wants its plans: without slabs. */
leati_plan_options leati_plan_options_of(const leat_model *model, int threads, leati_arena *arena);

/* Runs it on bound data.  In train mode it writes the optimizer's scalars first and counts the iteration after. */
leat_status leati_trainer_run(leati_trainer *trainer, const leati_compiled_step *step,
                              const void *const *pointers, uint64_t seed, leat_error *err);

/* The same, with the time of each step of the plan (engine/plan/plan.h); seed 0. */
leat_status leati_trainer_run_timed(leati_trainer *trainer, const leati_compiled_step *step,
                                    const void *const *pointers, int64_t *step_ns, leat_error *err);

/* Activations and scratch of all its plans, which share them. */
size_t leati_trainer_activation_bytes(const leati_trainer *trainer);

/* Memory for the arrays of a call on one batch that a plan cannot read where they lie.  Borrowed until the next call. */
leat_status leati_trainer_reserve(leati_trainer *trainer, size_t bytes, unsigned char **out, leat_error *err);

/* Memory, or a sequence, that worker threads which cannot be ended may still look at: freed with the model. */
void leati_trainer_keep(leati_trainer *trainer, void *memory, const leat_sequence *sequence);

/* Compute threads for calls on one batch: what leat_model_set_threads said, or all cores. */
int leati_trainer_threads(const leati_trainer *trainer);

#endif
