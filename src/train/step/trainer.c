/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles, caches and runs the steps of a model.  Room: train. */
#include "train/step/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os/cgroup.h"
#include "base/os/clock.h"
#include "dist/launcher.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "leat/train.h"
#include "nn/model/model.h"
#include "train/step/choose_place.h"
#include "train/step/mirror.h"
#include "train/step/place_trial.h"

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
    leati_device *device;      /* NULL: the host */
    leati_device_slabs *slabs; /* on the device */
    leati_arena *arena;        /* on the device, if there is one */
    bool said_no_tf32;         /* the log says that this device has no TF32 */
    bool has_no_number;        /* the device is any GPU: "cuda" */
    int place;                 /* which one: the number of this process among those of the host */
    int holders;               /* calls of leati_trainer_hold_device without their counterpart */
    bool is_auto;              /* each step runs on the host or on the device, where it is faster */
    leati_place_trial trial; /* with "auto", of training steps whose batches need predictions of the model */
    uint64_t trial_version;  /* the model's version in the trial; 0: no trial */
    int64_t queue;           /* of the fit in the trial */
    leati_arena *host_arena; /* of the steps that run on the host beside a device; NULL: none yet */
    leati_arena *after[2]; /* as these two, of updates with a loss scale, which keep the gradients' results */
    uint64_t whole_version;     /* the model's version whose step a loss scale cannot divide; 0: none yet */
    leati_compiled_step *steps; /* most recently used first */
    int threads;                /* 0: all cores */
    leati_kept kept;            /* by the calls on one batch */
    unsigned char *gathered;    /* contiguous copies of the arrays of a call on one batch */
    size_t gathered_bytes;
    double quota; /* CPUs of the cgroup, for leati_cores_within: read once, since calls may be short */
};

static void step_destroy(leati_compiled_step *step) {
    leati_plan_destroy(&step->plan);
    leati_graph_destroy(&step->program.graph);
    leati_free(step);
}

static void drop_all_steps(leati_trainer *trainer) {
    while (trainer->steps) {
        leati_compiled_step *step = trainer->steps;
        trainer->steps = step->next;
        step_destroy(step);
    }
}

static void leave_device(leati_trainer *trainer, leat_model *model) {
    drop_all_steps(trainer);
    for (int i = 0; i < 2; ++i) leati_arena_destroy(&trainer->after[i]);
    leati_arena_destroy(&trainer->host_arena);
    leati_arena_destroy(&trainer->arena);
    leati_device_slabs_destroy(&trainer->slabs, model);
    leati_device_close(&trainer->device);
}

static void trainer_destroy(void **handle) {
    leati_trainer *trainer = *handle;
    if (!trainer) return;
    leave_device(trainer, trainer->model);
    leati_free(trainer->gathered);
    if (trainer->kept.data) trainer->kept.destroy(trainer->kept.data);
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

/* Gives the trainer another device (NULL: the host), which it owns from now on. */
static leat_status move_to(leati_trainer *trainer, leati_device *device, leat_error *err) {
    leati_arena *arena = NULL;
    leati_device_slabs *slabs = NULL;
    leat_status status = leati_arena_create_on(&arena, device, err);
    if (status == LEAT_OK && device) status = leati_device_slabs_create(&slabs, device, err);
    if (status != LEAT_OK) {
        leati_arena_destroy(&arena);
        leati_device_close(&device);
        return status;
    }
    leave_device(trainer, trainer->model);
    trainer->device = device;
    trainer->arena = arena;
    trainer->slabs = slabs;
    trainer->is_auto = false;
    trainer->said_no_tf32 = false;
    trainer->trial_version = 0;
    return LEAT_OK;
}

/* Moves to the device with a name; place: which of several GPUs, if the name has no number.  "auto" is a GPU and the
 * host; without a GPU the host alone. */
static leat_status move_to_named(leati_trainer *trainer, const char *name, int place, leat_error *err) {
    leati_device *device = NULL;
    bool is_auto = strcmp(name, "auto") == 0;
    leat_error why = {0};
    leat_status status = LEAT_OK;
    if (strcmp(name, "cpu") != 0) status = leati_device_open(is_auto ? "cuda" : name, place, &device, &why);
    if (status != LEAT_OK && is_auto) {
        leati_log(LEAT_LOG_INFO, "leat: '%s' computes on the CPU: %s", trainer->model->name, why.message);
    } else if (status != LEAT_OK) {
        if (err) *err = why;
        return status;
    }
    LEATI_TRY(move_to(trainer, device, err));
    trainer->is_auto = is_auto && device;
    trainer->has_no_number = strcmp(name, "cuda") == 0;
    trainer->place = place;
    return LEAT_OK;
}

/* Gives the trainer the device that the environment names in LEAT_DEVICE, else the host. */
static leat_status move_to_default(leati_trainer *trainer, leat_error *err) {
    const char *name = getenv("LEAT_DEVICE");
    if (!name || !*name) return move_to(trainer, NULL, err);
    return leati_prefix(move_to_named(trainer, name, leati_launcher_place(), err), err, "LEAT_DEVICE");
}

/* Makes the model's trainer, on the device with a name; NULL: on the default device. */
static leat_status create_trainer(leat_model *model, const char *device, leat_error *err) {
    leati_trainer *trainer = leati_calloc(1, sizeof *trainer);
    if (!trainer) return leati_fail_memory(err, sizeof *trainer, "a trainer");
    trainer->model = model;
    trainer->quota = leati_cgroup_cpus("");
    model->session = trainer;
    model->session_destroy = trainer_destroy;
    leat_status status =
        device ? move_to_named(trainer, device, leati_launcher_place(), err) : move_to_default(trainer, err);
    if (status != LEAT_OK) trainer_destroy(&model->session);
    return status;
}

leat_status leati_trainer_of(leat_model *model, leati_trainer **out, leat_error *err) {
    if (!model->session) LEATI_TRY(create_trainer(model, NULL, err));
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

leati_kept *leati_trainer_kept(leati_trainer *trainer) {
    return &trainer->kept;
}

int leati_trainer_threads(const leati_trainer *trainer) {
    return trainer->threads > 0 ? trainer->threads : leati_cores_within(trainer->quota).count;
}

void leat_model_set_threads(leat_model *model, int threads) {
    if (!model) return;
    leati_trainer *trainer = NULL;
    if (leati_trainer_of(model, &trainer, NULL) == LEAT_OK) trainer->threads = threads;
}

leat_status leat_model_set_device(leat_model *model, const char *name, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(name, err);
    if (!model->session) return create_trainer(model, name, err);
    if (strcmp(name, leat_model_device(model)) == 0) return LEAT_OK;
    if (((leati_trainer *)model->session)->holders > 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "device '%.64s': several ranks train '%s' on %s until their fit ends", name,
                          model->name, leat_model_device(model));
    return move_to_named(model->session, name, leati_launcher_place(), err);
}

leat_status leati_trainer_take_gpu(leati_trainer *trainer, int place, leat_error *err) {
    if (!trainer->device || !trainer->has_no_number || trainer->place == place) return LEAT_OK;
    return move_to_named(trainer, "cuda", place, err);
}

const char *leat_model_device(const leat_model *model) {
    if (!model) return NULL;
    const leati_trainer *trainer = model->session;
    if (!trainer || !trainer->device) return "cpu";
    return trainer->is_auto ? "auto" : trainer->device->name;
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

void leat_model_set_tf32(leat_model *model, bool on) {
    if (!model || model->tf32 == on) return;
    model->tf32 = on;
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

static bool has_loss_scale(const leati_trainer *trainer) {
    const leati_optimizer *optimizer = trainer->model->compiled.optimizer;
    return trainer->model->compiled.ready && optimizer->scale.growth_steps > 0;
}

/* Returns where the trainer keeps the arena of a step that runs on the host beside a device, or at the usual place. */
static leati_arena **arena_of(leati_trainer *trainer, const leati_compiled_step *step) {
    if (step->spec.part_of_step == LEATI_STEP_UPDATE && has_loss_scale(trainer))
        return &trainer->after[step->on_host ? 1 : 0];
    return step->on_host ? &trainer->host_arena : &trainer->arena;
}

/* Tells the device, before a plan is made for it, if products of float32 may be computed in TF32. */
static void choose_tf32(leati_trainer *trainer) {
    leati_device *device = trainer->device;
    const leat_model *model = trainer->model;
    device->tf32 = model->tf32 && device->has_tf32;
    if (!model->tf32 || device->has_tf32 || trainer->said_no_tf32) return;
    trainer->said_no_tf32 = true;
    leati_log(LEAT_LOG_WARNING, "leat: '%s': %s (%s) has no TF32: products of float32 keep their precision",
              model->name, device->name, device->description);
}

/* Builds and compiles the step for the host or for the trainer's device. */
static leat_status compile_on(leati_trainer *trainer, leati_compiled_step *step, bool on_host,
                              leat_error *err) {
    step->on_host = on_host && trainer->device;
    leati_arena **arena = arena_of(trainer, step);
    if (!*arena) LEATI_TRY(leati_arena_create_on(arena, step->on_host ? NULL : trainer->device, err));
    leati_plan_options options = leati_plan_options_of(trainer->model, step->threads, *arena);
    options.writes_nothing = step->spec.part_of_step == LEATI_STEP_TOTALS;
    if (step->spec.mode == LEATI_PREDICT) options.samples = step->spec.inputs[0].shape[0];
    memcpy(options.slabs, trainer->model->weights.slab, sizeof options.slabs);
    if (trainer->device && !on_host) choose_tf32(trainer);
    if (trainer->slabs && !on_host) leati_device_slabs_addresses(trainer->slabs, options.slabs);
    leati_program_spec spec = step->spec;
    spec.on_host = on_host || !trainer->device;
    LEATI_TRY(leati_program_build(trainer->model, &spec, &step->program, err));
    if (spec.on_host && spec.mode == LEATI_TRAIN && spec.part_of_step == LEATI_STEP_WHOLE)
        leati_weights_populate(&trainer->model->weights, !step->program.joins_gradients);
    return leati_plan_create(&step->plan, &step->program.graph, &options, err);
}

/* Compiles the step for both places, and keeps the faster one.  A host that needs ten times as long as the device is
 * not measured to the end. */
static leat_status compile_faster(leati_trainer *trainer, leati_compiled_step *step, leat_error *err) {
    enum { hopeless = 10 };
    leati_compiled_step other = *step;
    int64_t device_ns = 0, host_ns = 0;
    LEATI_TRY(compile_on(trainer, step, false, err));
    LEATI_TRY(leati_measure_step(trainer, trainer->model, step, 0, &device_ns, err));
    leat_status status = compile_on(trainer, &other, true, err);
    if (status == LEAT_OK)
        status = leati_measure_step(trainer, trainer->model, &other, hopeless * device_ns, &host_ns, err);
    if (status == LEAT_OK && host_ns <= device_ns) {
        const leati_compiled_step slower = *step;
        *step = other;
        other = slower;
    }
    leati_plan_destroy(&other.plan);
    leati_graph_destroy(&other.program.graph);
    if (status == LEAT_OK)
        leati_log_place(trainer->model, &step->spec, trainer->device->name, device_ns, host_ns);
    return status;
}

/* Returns true if a trial of whole iterations says where the step runs. */
static bool is_tried(const leati_trainer *trainer, const leati_program_spec *spec) {
    return spec->mode == LEATI_TRAIN && trainer->trial_version > 0 &&
           trainer->trial_version == trainer->model->version;
}

static leat_status compile(leati_trainer *trainer, leati_compiled_step *step, leat_error *err) {
    step->tried = is_tried(trainer, &step->spec);
    LEATI_TRY(
        trainer->is_auto && !step->tried
            ? compile_faster(trainer, step, err)
            : compile_on(trainer, step, !trainer->device || (step->tried && trainer->trial.on_host), err));
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

/* Finds a compiled step and makes it the most recently used one; NULL: there is none. */
static leati_compiled_step *find_step(leati_trainer *trainer, const leati_program_spec *spec, int threads) {
    uint64_t version = trainer->model->version;
    const bool tried = is_tried(trainer, spec);
    for (leati_compiled_step **link = &trainer->steps; *link; link = &(*link)->next) {
        leati_compiled_step *step = *link;
        if (!matches(step, spec, threads, version)) continue;
        if (tried && step->on_host != trainer->trial.on_host) continue;
        *link = step->next;
        step->next = trainer->steps;
        return trainer->steps = step;
    }
    return NULL;
}

/* Brings the device's copy of the weights up to date for a step that runs there, or may run there.  If the copy has
 * moved, older plans are invalid, and *step becomes NULL. */
static leat_status update_slabs(leati_trainer *trainer, leati_compiled_step **step, leat_error *err) {
    bool moved = false;
    if (!trainer->slabs || (*step && (*step)->on_host)) return LEAT_OK;
    LEATI_TRY(leati_device_slabs_update(trainer->slabs, trainer->model, &moved, err));
    if (!moved) return LEAT_OK;
    drop_all_steps(trainer);
    *step = NULL;
    return LEAT_OK;
}

static leat_status get_step(leati_trainer *trainer, const leati_program_spec *shapes, int threads,
                            const leati_compiled_step **out, leat_error *err) {
    leati_program_spec spec = *shapes;
    const bool updates = spec.mode == LEATI_TRAIN && spec.part_of_step != LEATI_STEP_GRADIENTS &&
                         spec.part_of_step != LEATI_STEP_TOTALS;
    if (updates || spec.mode != LEATI_TRAIN) spec.phase = leati_program_phase(trainer->model, spec.mode);
    if (updates && spec.share.ranks == 0) LEATI_TRY(leati_weights_check_slots(&trainer->model->weights, err));
    leati_compiled_step *step = find_step(trainer, &spec, threads);
    LEATI_TRY(update_slabs(trainer, &step, err));
    *out = step;
    if (step) return LEAT_OK;
    drop_stale(trainer);
    step = leati_calloc(1, sizeof *step);
    if (!step) return leati_fail_memory(err, sizeof *step, "a step");
    step->spec = spec;
    step->threads = threads;
    step->version = trainer->model->version;
    leat_status status = compile(trainer, step, err);
    if (status != LEAT_OK) {
        step_destroy(step);
        return leati_prefix(status, err, "model '%s'", trainer->model->name);
    }
    step->next = trainer->steps;
    trainer->steps = step;
    *out = step;
    /* Measuring has changed the weights and restored them. */
    return trainer->is_auto && !step->tried ? update_slabs(trainer, &(leati_compiled_step *){step}, err)
                                            : LEAT_OK;
}

/* With a loss scale, the gradients are a step of their own, after which run_update decides.  The update that reads the
 * rows of an Embedding's gradient cannot be separated from them: then there is no scale. */
leat_status leati_trainer_step(leati_trainer *trainer, const leati_program_spec *shapes, int threads,
                               const leati_compiled_step **out, leat_error *err) {
    const leat_model *model = trainer->model;
    const bool trains = shapes->mode == LEATI_TRAIN && shapes->part_of_step == LEATI_STEP_WHOLE;
    if (trains && has_loss_scale(trainer) && trainer->whole_version != model->version) {
        leati_program_spec spec = *shapes;
        leat_error why = {0};
        spec.part_of_step = LEATI_STEP_GRADIENTS;
        leat_status status = get_step(trainer, &spec, threads, out, &why);
        if (status != LEAT_ENOTSUP) {
            if (status != LEAT_OK && err) *err = why;
            return status;
        }
        trainer->whole_version = model->version;
    }
    return get_step(trainer, shapes, threads, out, err);
}

/* Copies what a step on the device has changed to the host's slabs.  Packed weights are then out of date. */
static void fetch_slabs(leat_model *model) {
    const leati_mirror *mirror = model->weights.mirror;
    if (mirror && mirror->ahead[LEATI_SLAB_WEIGHTS]) ++model->weights_version;
    for (int i = 0; mirror && i < LEATI_SLAB_SCALARS; ++i)
        if (mirror->ahead[i]) (void)leati_weights_slab(&model->weights, (leati_slab)i);
}

static void prepare_run(leati_trainer *trainer, const leati_compiled_step *step) {
    leat_model *model = trainer->model;
    if (step->on_host) fetch_slabs(model);
    leati_arena_set_version(*arena_of(trainer, step), *model->weights.lent ? 0 : model->weights_version);
    if (step->spec.mode != LEATI_TRAIN) return;
    leati_optimizer_scalars(model->compiled.optimizer, model->iterations,
                            model->weights.slab[LEATI_SLAB_SCALARS]);
}

static leat_status run_update(leati_trainer *trainer, const leati_compiled_step *gradients, leat_error *err);

static leat_status finish_run(leati_trainer *trainer, const leati_compiled_step *step, leat_error *err) {
    bool is_training = step->spec.mode == LEATI_TRAIN;
    leat_model *model = trainer->model;
    if (step->spec.part_of_step == LEATI_STEP_TOTALS) return LEAT_OK;
    if (is_training && step->spec.part_of_step != LEATI_STEP_GRADIENTS) {
        ++model->iterations;
        if (step->spec.part_of_step == LEATI_STEP_UPDATE)
            leati_loss_scale_count(&model->compiled.optimizer->scale);
    }
    if (step->on_host)
        leati_weights_ran(&model->weights, is_training);
    else if (trainer->slabs)
        leati_device_slabs_ran(trainer->slabs, model, is_training);
    if (step->spec.part_of_step == LEATI_STEP_GRADIENTS && trainer->slabs && !step->on_host)
        leati_device_slabs_wrote(trainer->slabs, model, LEATI_SLAB_GRADIENTS);
    return step->spec.part_of_step == LEATI_STEP_GRADIENTS && step->spec.whole_batch == 0
               ? run_update(trainer, step, err)
               : LEAT_OK;
}

leat_status leati_trainer_run(leati_trainer *trainer, const leati_compiled_step *step,
                              const void *const *pointers, uint64_t seed, leat_error *err) {
    leat_model *model = trainer->model;
    prepare_run(trainer, step);
    LEATI_TRY(leati_plan_run(step->plan, pointers, seed, (uint64_t)model->iterations, err));
    return finish_run(trainer, step, err);
}

/* Makes the update of a step with a loss scale, unless a gradient is not finite. */
static leat_status run_update(leati_trainer *trainer, const leati_compiled_step *gradients, leat_error *err) {
    const leati_compiled_step *step = NULL;
    leati_program_spec spec;
    if (leati_model_skips_update(trainer->model)) return LEAT_OK;
    memset(&spec, 0, sizeof spec);
    spec.mode = LEATI_TRAIN;
    spec.part_of_step = LEATI_STEP_UPDATE;
    LEATI_TRY(get_step(trainer, &spec, gradients->threads, &step, err));
    ++trainer->model->weights_version; /* packed weights are in the arena of the gradients' step */
    return leati_trainer_run(trainer, step, NULL, 0, err);
}

leat_status leati_trainer_run_watched(leati_trainer *trainer, const leati_compiled_step *step,
                                      const void *const *pointers, uint64_t seed,
                                      const leati_slab_watch *watch, leat_error *err) {
    prepare_run(trainer, step);
    LEATI_TRY(
        leati_plan_run_watched(step->plan, pointers, seed, (uint64_t)trainer->model->iterations, watch, err));
    return finish_run(trainer, step, err);
}

leat_status leati_trainer_start(leati_trainer *trainer, const leati_compiled_step *step,
                                const void *const *pointers, bool staged, uint64_t seed, leat_error *err) {
    prepare_run(trainer, step);
    return leati_plan_start(step->plan, pointers, staged, seed, (uint64_t)trainer->model->iterations, err);
}

leat_status leati_trainer_finish(leati_trainer *trainer, const leati_compiled_step *step, leat_error *err) {
    LEATI_TRY(leati_plan_finish(step->plan, err));
    return finish_run(trainer, step, err);
}

void leati_trainer_try_places(leati_trainer *trainer, bool begins, int64_t queue) {
    const leat_model *model = trainer->model;
    if (!trainer->is_auto || atomic_load(&model->holders) == 0) return;
    if (trainer->trial_version != model->version) {
        trainer->trial = (leati_place_trial){0};
        trainer->trial_version = model->version;
        leati_place_trial_begin(&trainer->trial, queue);
    } else if (begins) {
        leati_place_trial_go_on(&trainer->trial);
    }
    trainer->queue = queue;
}

void leati_trainer_count_iteration(leati_trainer *trainer, const leati_compiled_step *step, int64_t ns) {
    leati_place_trial *trial = &trainer->trial;
    if (!trainer->is_auto || !is_tried(trainer, &step->spec)) return;
    if (leati_place_trial_add(trial, trainer->queue, ns))
        leati_log_iterations(trainer->model, &step->spec, trainer->device->name,
                             leati_place_trial_mean(trial, false), leati_place_trial_mean(trial, true));
}

leati_device *leati_trainer_device(const leati_trainer *trainer) {
    return trainer->device;
}

void leati_trainer_hold_device(leati_trainer *trainer) {
    ++trainer->holders;
}

void leati_trainer_release_device(leati_trainer *trainer) {
    --trainer->holders;
}

void leati_trainer_slabs(const leati_trainer *trainer, void *out[LEATI_SLAB_COUNT]) {
    leati_device_slabs_addresses(trainer->slabs, out);
}

void leati_trainer_wrote(leati_trainer *trainer, leati_slab slab) {
    leati_device_slabs_wrote(trainer->slabs, trainer->model, slab);
}

leat_status leati_trainer_run_timed(leati_trainer *trainer, const leati_compiled_step *step,
                                    const void *const *pointers, int64_t *step_ns, leat_error *err) {
    leat_model *model = trainer->model;
    prepare_run(trainer, step);
    LEATI_TRY(leati_plan_run_timed(step->plan, pointers, 0, (uint64_t)model->iterations, step_ns, err));
    return finish_run(trainer, step, err);
}
