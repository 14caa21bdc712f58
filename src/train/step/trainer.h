/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer runs the steps of a model.  It has a cache of the model's plans by mode and shapes, and the arena that
 * the plans share.  A trainer belongs to its model and, like the model, is externally synchronised.  Room: train. */
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
    uint64_t version; /* the model's version when the step was compiled */
    leati_program program;
    leati_plan *plan;
    bool on_host; /* the plan runs on the host, although the trainer has a device ("auto") */
    bool tried;   /* a trial of whole iterations has chosen the place (place_trial.h) */
    struct leati_compiled_step *next;
} leati_compiled_step;

/* Gets the model's trainer, which is created at the first call. */
leat_status leati_trainer_of(leat_model *model, leati_trainer **out, leat_error *err);

/* Gets the compiled step for these shapes from the cache, or compiles it.  *out is borrowed until the next call. */
leat_status leati_trainer_step(leati_trainer *trainer, const leati_program_spec *shapes, int threads,
                               const leati_compiled_step **out, leat_error *err);

/* Returns the options with which the model's plans are compiled, but without the slabs. */
leati_plan_options leati_plan_options_of(const leat_model *model, int threads, leati_arena *arena);

/* Runs the step on bound data.  In train mode, first writes the optimizer's scalars, and afterwards counts the
 * iteration. */
leat_status leati_trainer_run(leati_trainer *trainer, const leati_compiled_step *step,
                              const void *const *pointers, uint64_t seed, leat_error *err);

/* Like leati_trainer_run, but tells `watch` which values of a slab are final (leati_plan_run_watched). */
leat_status leati_trainer_run_watched(leati_trainer *trainer, const leati_compiled_step *step,
                                      const void *const *pointers, uint64_t seed,
                                      const leati_slab_watch *watch, leat_error *err);

/* leati_trainer_run in two parts (leati_plan_start), between which the caller may stage the next batch. */
leat_status leati_trainer_start(leati_trainer *trainer, const leati_compiled_step *step,
                                const void *const *pointers, bool staged, uint64_t seed, leat_error *err);
leat_status leati_trainer_finish(leati_trainer *trainer, const leati_compiled_step *step, leat_error *err);
/* For the device "auto", around each training step of a fit that waits for its batches.  Where these need predictions
 * of the same model, the times of whole iterations decide where steps run (place_trial.h).  `begins`: the first step of
 * a fit; `queue`: the batches that are made ahead.  count_iteration takes the time of the wait and of the step. */
void leati_trainer_try_places(leati_trainer *trainer, bool begins, int64_t queue);
void leati_trainer_count_iteration(leati_trainer *trainer, const leati_compiled_step *step, int64_t ns);
/* Returns the device on which the steps run; NULL: the host. */
leati_device *leati_trainer_device(const leati_trainer *trainer);
/* Moves the trainer to another GPU if its device was chosen as "cuda", without a number: the GPUs of a host are dealt
 * out to the processes there, and `place` is this one's number among them.  Errors: those of leati_device_open. */
leat_status leati_trainer_take_gpu(leati_trainer *trainer, int place, leat_error *err);
/* Between the two calls, leat_model_set_device fails: the caller has memory on the device, or on the host, and would
 * not notice another one. */
void leati_trainer_hold_device(leati_trainer *trainer);
void leati_trainer_release_device(leati_trainer *trainer);
/* Returns the addresses of the slabs on the trainer's device, for the steps that were compiled last. */
void leati_trainer_slabs(const leati_trainer *trainer, void *out[LEATI_SLAB_COUNT]);
/* Must be called after the caller has given the device's queue work that writes a slab. */
void leati_trainer_wrote(leati_trainer *trainer, leati_slab slab);

/* Like leati_trainer_run with seed 0, but also writes the time of each step of the plan (engine/plan/plan.h) to
 * step_ns. */
leat_status leati_trainer_run_timed(leati_trainer *trainer, const leati_compiled_step *step,
                                    const void *const *pointers, int64_t *step_ns, leat_error *err);

/* Returns the size of the arena, in which all plans of the trainer have their activations and scratch memory. */
size_t leati_trainer_activation_bytes(const leati_trainer *trainer);

/* Gets memory for contiguous copies of the arrays of one batch that a plan cannot read in place.  Borrowed until
 * the next call. */
leat_status leati_trainer_reserve(leati_trainer *trainer, size_t bytes, unsigned char **out, leat_error *err);

/* Keeps memory, or a sequence, that stuck worker threads may still read.  It is freed together with the model. */
void leati_trainer_keep(leati_trainer *trainer, void *memory, const leat_sequence *sequence);

/* Returns where the sums of the metrics of calls on one batch are kept, for on_batch.c; *destroy frees them with the
 * trainer. */
typedef struct leati_kept {
    void *data; /* NULL: none */
    void (*destroy)(void *data);
} leati_kept;
leati_kept *leati_trainer_kept(leati_trainer *trainer);

/* Returns the number of compute threads for calls on one batch: the number of leat_model_set_threads, or of all
 * cores. */
int leati_trainer_threads(const leati_trainer *trainer);

#endif
