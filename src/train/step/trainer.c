/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles, caches and runs the steps of a model.  Room: train. */
#include "train/step/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/cgroup.h"
#include "base/os/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "leat/train.h"

/* Samples of many shapes need many plans: beyond this number, the least recently used plan is dropped. */
enum { max_steps = 64 };

/* Memory or a sequence that must live longer than its feed. */
typedef struct leftover {
    void *memory;
    leat_sequence sequence;
    struct leftover *next;
} leftover;

struct leati_trainer {
    leat_model *model;
    leftover *leftovers;
    leati_arena *arena;
    leati_compiled_step *steps; /* most recently used first */
    int threads;                /* 0: all cores */
    unsigned char *gathered;    /* contiguous copies of the arrays of a call on one batch */
    size_t gathered_bytes;
    double quota; /* CPUs of the cgroup, for leati_cores_within: read once, since calls may be short */
};

static void step_destroy(leati_compiled_step *step) {
    leati_plan_destroy(&step->plan);
    leati_graph_destroy(&step->program.graph);
    leati_free(step);
}

static void trainer_destroy(void **handle) {
    leati_trainer *trainer = *handle;
    if (!trainer) return;
    while (trainer->steps) {
        leati_compiled_step *step = trainer->steps;
        trainer->steps = step->next;
        step_destroy(step);
    }
    leati_arena_destroy(&trainer->arena);
    leati_free(trainer->gathered);
    while (trainer->leftovers) {
        leftover *left = trainer->leftovers;
        trainer->leftovers = left->next;
        leat_sequence_destroy(&left->sequence);
        leati_free(left->memory);
        leati_free(left);
    }
    leati_free(trainer);
    *handle = NULL;
}

/* Without memory for the list entry, the memory and the sequence leak: a stuck thread may still read them. */
void leati_trainer_keep(leati_trainer *trainer, void *memory, const leat_sequence *sequence) {
    leftover *left = leati_calloc(1, sizeof *left);
    if (!left) return;
    left->memory = memory;
    if (sequence) left->sequence = *sequence;
    left->next = trainer->leftovers;
    trainer->leftovers = left;
}

leat_status leati_trainer_of(leat_model *model, leati_trainer **out, leat_error *err) {
    if (!model->session) {
        leati_trainer *trainer = leati_calloc(1, sizeof *trainer);
        if (!trainer) return leati_fail_memory(err, sizeof *trainer, "a trainer");
        trainer->model = model;
        trainer->quota = leati_cgroup_cpus("");
        model->session = trainer;
        model->session_destroy = trainer_destroy;
        leat_status status = leati_arena_create(&trainer->arena, err);
        if (status != LEAT_OK) {
            trainer_destroy(&model->session);
            return status;
        }
    }
    *out = model->session;
    return LEAT_OK;
}

leat_status leati_trainer_reserve(leati_trainer *trainer, size_t bytes, unsigned char **out,
                                  leat_error *err) {
    if (bytes > trainer->gathered_bytes) {
        unsigned char *memory = leati_calloc_aligned(bytes);
        if (!memory) return leati_fail_memory(err, bytes, "a contiguous copy of a batch");
        leati_free(trainer->gathered);
        trainer->gathered = memory;
        trainer->gathered_bytes = bytes;
    }
    *out = trainer->gathered;
    return LEAT_OK;
}

size_t leati_trainer_activation_bytes(const leati_trainer *trainer) {
    return leati_arena_bytes(trainer->arena);
}

int leati_trainer_threads(const leati_trainer *trainer) {
    return trainer->threads > 0 ? trainer->threads : leati_cores_within(trainer->quota).count;
}

void leat_model_set_threads(leat_model *model, int threads) {
    if (!model) return;
    leati_trainer *trainer = NULL;
    if (leati_trainer_of(model, &trainer, NULL) == LEAT_OK) trainer->threads = threads;
}

void leat_model_set_gradient_checkpointing(leat_model *model, bool on) {
    if (!model || model->gradient_checkpointing == on) return;
    model->gradient_checkpointing = on;
    ++model->version;
}

void leat_model_set_deterministic(leat_model *model, bool on) {
    if (!model || model->deterministic == on) return;
    model->deterministic = on;
    ++model->version;
}

void leat_model_set_folding(leat_model *model, bool on) {
    if (!model || model->unfolded == !on) return;
    model->unfolded = !on;
    ++model->version;
}

void leat_model_set_tuning(leat_model *model, leat_tuning tuning) {
    if (!model || (int)tuning < LEAT_TUNE_OFF || (int)tuning > LEAT_TUNE_MEASURE) return;
    if (model->tuning == (int)tuning) return;
    model->tuning = (int)tuning;
    ++model->version;
}

void leat_model_set_measuring_progress(leat_model *model, leat_progress watch, void *user) {
    if (!model) return;
    model->watch = watch;
    model->watcher = user;
}

static bool matches(const leati_compiled_step *step, const leati_program_spec *spec, int threads,
                    uint64_t version) {
    return step->threads == threads && step->version == version &&
           memcmp(&step->spec, spec, sizeof *spec) == 0;
}

/* Sends a description of the plan to the log if the environment has LEAT_VERBOSE=1. */
static void log_plan(const leati_compiled_step *step) {
    const char *verbose = getenv("LEAT_VERBOSE");
    if (!leati_log_is_set() || !verbose || strcmp(verbose, "1") != 0) return;
    leati_text text = {0};
    leati_plan_describe(step->plan, &text);
    if (text.data && !text.failed) {
        if (text.length > 0 && text.data[text.length - 1] == '\n') text.data[text.length - 1] = '\0';
        leati_log_text(LEAT_LOG_DEBUG, text.data);
    }
    leati_text_fini(&text);
}

leati_plan_options leati_plan_options_of(const leat_model *model, int threads, leati_arena *arena) {
    return (leati_plan_options){.threads = threads,
                                .backends = leati_backends,
                                .arena = arena,
                                .recalls = model->tuning >= LEAT_TUNE_KNOWN,
                                .measures = model->tuning == LEAT_TUNE_MEASURE,
                                .watch = model->watch,
                                .watcher = model->watcher,
                                .unfolded = model->unfolded,
                                .deterministic = model->deterministic};
}

static leat_status compile(leati_trainer *trainer, leati_compiled_step *step, leat_error *err) {
    leati_plan_options options = leati_plan_options_of(trainer->model, step->threads, trainer->arena);
    memcpy(options.slabs, trainer->model->weights.slab, sizeof options.slabs);
    LEATI_TRY(leati_program_build(trainer->model, &step->spec, &step->program, err));
    LEATI_TRY(leati_plan_create(&step->plan, &step->program.graph, &options, err));
    log_plan(step);
    return LEAT_OK;
}

/* Drops old steps to make room for a new one.  Also drops the steps that were compiled before the model changed,
 * since the weights may have moved. */
static void drop_stale(leati_trainer *trainer) {
    int kept = 0;
    for (leati_compiled_step **link = &trainer->steps; *link;) {
        leati_compiled_step *step = *link;
        if (step->version == trainer->model->version && ++kept < max_steps) {
            link = &step->next;
            continue;
        }
        *link = step->next;
        step_destroy(step);
    }
}

leat_status leati_trainer_step(leati_trainer *trainer, const leati_program_spec *spec, int threads,
                               const leati_compiled_step **out, leat_error *err) {
    uint64_t version = trainer->model->version;
    for (leati_compiled_step **link = &trainer->steps; *link; link = &(*link)->next) {
        leati_compiled_step *step = *link;
        if (!matches(step, spec, threads, version)) continue;
        *link = step->next;
        step->next = trainer->steps;
        trainer->steps = step;
        *out = step;
        return LEAT_OK;
    }
    drop_stale(trainer);
    leati_compiled_step *step = leati_calloc(1, sizeof *step);
    if (!step) return leati_fail_memory(err, sizeof *step, "a step");
    step->spec = *spec;
    step->threads = threads;
    step->version = version;
    leat_status status = compile(trainer, step, err);
    if (status != LEAT_OK) {
        step_destroy(step);
        return leati_prefix(status, err, "model '%s'", trainer->model->name);
    }
    step->next = trainer->steps;
    trainer->steps = step;
    *out = step;
    return LEAT_OK;
}

static bool prepare_run(leati_trainer *trainer, const leati_compiled_step *step) {
    leat_model *model = trainer->model;
    leati_arena_set_version(trainer->arena, *model->weights.lent ? 0 : model->weights_version);
    if (step->spec.mode != LEATI_TRAIN) return false;
    leati_optimizer_scalars(model->compiled.optimizer, model->iterations,
                            model->weights.slab[LEATI_SLAB_SCALARS]);
    return true;
}

leat_status leati_trainer_run(leati_trainer *trainer, const leati_compiled_step *step,
                              const void *const *pointers, uint64_t seed, leat_error *err) {
    leat_model *model = trainer->model;
    bool is_training = prepare_run(trainer, step);
    LEATI_TRY(leati_plan_run(step->plan, pointers, seed, (uint64_t)model->iterations, err));
    if (is_training) ++model->iterations;
    return LEAT_OK;
}

leat_status leati_trainer_run_timed(leati_trainer *trainer, const leati_compiled_step *step,
                                    const void *const *pointers, int64_t *step_ns, leat_error *err) {
    leat_model *model = trainer->model;
    bool is_training = prepare_run(trainer, step);
    LEATI_TRY(leati_plan_run_timed(step->plan, pointers, 0, (uint64_t)model->iterations, step_ns, err));
    if (is_training) ++model->iterations;
    return LEAT_OK;
}
