/* SPDX-License-Identifier: Apache-2.0 */
/* Saves and loads what training changes in a model.  Room: train. */
#include "train/state/model_state.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "json/json.h"
#include "leat/train.h"
#include "nn/model/model.h"
#include "nn/optimizers/optimizer.h"
#include "tensor/finite.h"

/* The numbers of the optimizer that change from step to step. */
typedef struct optimizer_numbers {
    int64_t iterations, schedule_at;
    double learning_rate;
    float m_schedule;
    float reserved; /* 0 */
} optimizer_numbers;

/* Those of a LossScaleOptimizer. */
static const char scale_key[] = "loss_scale";
typedef struct scale_numbers {
    int64_t counter;
    float value;
    float reserved; /* 0 */
} scale_numbers;

/* Writes one line for each weight: its name, its shape and its place in the slab.  Two models whose layouts have the
 * same text have slabs of the same layout. */
static leat_status describe_layout(const leat_model *model, leati_text *text, leat_error *err) {
    const leati_weights *weights = &model->weights;
    char shape[128];
    for (int32_t i = 0; i < weights->count; ++i) {
        const leati_weight *weight = weights->entries[i];
        leati_text_add(text, "%s %s %s at %zu\n", weights->names[i],
                       leati_shape_text(shape, sizeof shape, weight->desc.rank, weight->desc.shape),
                       i < weights->trainable_count ? "trained" : "not trained", weight->offset_bytes);
    }
    leati_text_add(text, "states %zu bytes\n", weights->state_bytes);
    return text->failed ? leati_fail_memory(err, 0, "the layout of the weights") : LEAT_OK;
}

/* Writes one line for each argument of compile, as JSON, without the learning rate, which callbacks change. */
static leat_status write_arguments(json_t *arguments, leati_text *text, leat_error *err) {
    const char *name = NULL;
    json_t *value = NULL;
    json_t *options = json_object_get(json_object_get(arguments, "optimizer_config"), "config");
    json_t *inner = json_object_get(options, "inner_optimizer");
    json_object_del(inner ? json_object_get(inner, "config") : options, "learning_rate");
    json_object_foreach(arguments, name, value) {
        char *json = NULL;
        LEATI_TRY(leati_json_write(value, &json, err));
        leati_text_add(text, "%s %s\n", name, json);
        leati_free(json);
    }
    return text->failed ? leati_fail_memory(err, 0, "the arguments of compile") : LEAT_OK;
}

static leat_status describe_training(const leat_model *model, leati_text *text, leat_error *err) {
    json_t *arguments = NULL;
    LEATI_TRY(leati_model_training_config(model, &arguments, err));
    leat_status status = write_arguments(arguments, text, err);
    json_decref(arguments);
    return status;
}

/* What must be the same in the fit that continues. */
typedef struct descriptions {
    leati_text layout, metrics; /* metrics: the names of loss and metrics, one in each line */
    leati_text training;        /* the arguments of compile, one in each line */
} descriptions;

static leat_status describe(const leat_model *model, descriptions *out, leat_error *err) {
    *out = (descriptions){0};
    LEATI_TRY(describe_layout(model, &out->layout, err));
    for (int i = 0; i < leat_model_metric_count(model); ++i) {
        char name[LEAT_LOG_NAME_BYTES];
        LEATI_TRY(leat_model_metric_name(model, i, name, err));
        leati_text_add(&out->metrics, "%s\n", name);
    }
    if (out->metrics.failed) return leati_fail_memory(err, 0, "the names of the metrics");
    return describe_training(model, &out->training, err);
}

static void descriptions_fini(descriptions *all) {
    leati_text_fini(&all->layout);
    leati_text_fini(&all->metrics);
    leati_text_fini(&all->training);
}

/* ---- Saving ---- */

static leat_status save_descriptions(const leat_model *model, leat_state *state, leat_error *err) {
    descriptions all;
    leat_status status = describe(model, &all, err);
    if (status == LEAT_OK) status = leati_state_put_text(state, "layout", all.layout.data, err);
    if (status == LEAT_OK) status = leati_state_put_text(state, "metrics", all.metrics.data, err);
    if (status == LEAT_OK) status = leati_state_put_text(state, "training", all.training.data, err);
    descriptions_fini(&all);
    return status;
}

/* Gives the name, the memory and the size of a slab that a checkpoint holds.  Returns false for a slab that it does not
 * hold: gradients and scalars are computed anew in each step. */
static bool slab_of(const leat_model *model, int index, char name[24], void **data, size_t *bytes) {
    const leati_weights *weights = &model->weights;
    *bytes = index == LEATI_SLAB_WEIGHTS  ? weights->bytes
             : index == LEATI_SLAB_STATES ? weights->state_bytes
                                          : weights->trainable_bytes;
    if (index == LEATI_SLAB_WEIGHTS)
        snprintf(name, 24, "weights");
    else if (index == LEATI_SLAB_STATES)
        snprintf(name, 24, "states");
    else
        snprintf(name, 24, "slot.%d", index - LEATI_SLAB_SLOT0);
    bool held = index == LEATI_SLAB_WEIGHTS || index == LEATI_SLAB_STATES ||
                (index >= LEATI_SLAB_SLOT0 && index < LEATI_SLAB_SCALARS);
    if (!held || *bytes == 0) return false;
    *data = leati_weights_slab(weights, (leati_slab)index);
    return *data != NULL;
}

bool leati_model_state_is_finite(const leat_model *model) {
    const leati_weights *weights = &model->weights;
    for (int32_t i = 0; i < weights->trainable_count; ++i) {
        const leati_weight *weight = weights->entries[i];
        const char *slab = leati_weights_slab(weights, LEATI_SLAB_WEIGHTS);
        int64_t count = 1;
        for (int d = 0; d < weight->desc.rank; ++d) count *= weight->desc.shape[d];
        const void *values = slab + weight->offset_bytes;
        if (weight->desc.dtype == LEAT_F32 && !leati_all_finite(values, (size_t)count)) return false;
    }
    return true;
}

leat_status leati_model_state_save(const leat_model *model, leat_state *state, leat_error *err) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    const optimizer_numbers numbers = {.iterations = model->iterations,
                                       .schedule_at = optimizer->schedule_at,
                                       .learning_rate = optimizer->config.learning_rate,
                                       .m_schedule = optimizer->m_schedule};
    char name[24];
    void *data = NULL;
    size_t bytes = 0;
    LEATI_TRY(leati_weights_fetch(&model->weights, err));
    LEATI_TRY(save_descriptions(model, state, err));
    LEATI_TRY(leat_state_put(state, "numbers", &numbers, sizeof numbers, err));
    if (optimizer->scale.growth_steps > 0) {
        const scale_numbers scale = {.counter = optimizer->scale.counter, .value = optimizer->scale.value};
        LEATI_TRY(leat_state_put(state, scale_key, &scale, sizeof scale, err));
    }
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i)
        if (slab_of(model, i, name, &data, &bytes)) LEATI_TRY(leat_state_put(state, name, data, bytes, err));
    return LEAT_OK;
}

/* ---- Loading ---- */

/* Fails with the first line in which the two texts differ. */
static leat_status fail_different(const char *what, const char *then, const char *now, leat_error *err) {
    while (*then && *then == *now) {
        const char *end = strchr(then, '\n');
        size_t length = end ? (size_t)(end - then + 1) : strlen(then);
        if (strncmp(then, now, length) != 0) break;
        then += length;
        now += length;
    }
    if (!*then) then = "nothing more";
    if (!*now) now = "nothing more";
    return leati_fail(err, LEAT_EINVAL,
                      "the model's %s is not that of the checkpoint: expected %.*s, received %.*s", what,
                      (int)strcspn(then, "\n"), then, (int)strcspn(now, "\n"), now);
}

static leat_status check_text(const leat_state *state, const char *name, const char *what, const char *now,
                              leat_error *err) {
    const char *then = leati_state_find_text(state, name);
    if (!then) return leati_fail(err, LEAT_EFORMAT, "the checkpoint does not describe the %s", what);
    return strcmp(then, now) == 0 ? LEAT_OK : fail_different(what, then, now, err);
}

static leat_status check_descriptions(const leat_model *model, const leat_state *state, leat_error *err) {
    descriptions all;
    leat_status status = describe(model, &all, err);
    if (status == LEAT_OK) status = check_text(state, "layout", "list of weights", all.layout.data, err);
    if (status == LEAT_OK) status = check_text(state, "metrics", "list of metrics", all.metrics.data, err);
    if (status == LEAT_OK)
        status = check_text(state, "training", "list of arguments of compile", all.training.data, err);
    descriptions_fini(&all);
    return status;
}

static leat_status check_slabs(const leat_model *model, const leat_state *state, leat_error *err) {
    char name[24];
    void *data = NULL;
    size_t bytes = 0, found = 0;
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) {
        if (!slab_of(model, i, name, &data, &bytes)) continue;
        if (!leat_state_find(state, name, &found) || found != bytes)
            return leati_fail(err, LEAT_EFORMAT, "the checkpoint has %zu bytes of '%s', expected %zu", found,
                              name, bytes);
    }
    return LEAT_OK;
}

leat_status leati_model_state_check(const leat_model *model, const leat_state *state, leat_error *err) {
    LEATI_TRY(check_descriptions(model, state, err));
    return check_slabs(model, state, err);
}

leat_status leati_model_state_load(leat_model *model, const leat_state *state, leat_error *err) {
    leati_optimizer *optimizer = model->compiled.optimizer;
    optimizer_numbers numbers;
    char name[24];
    void *data = NULL;
    size_t bytes = 0;
    scale_numbers scale = {.value = (float)optimizer->scale.initial};
    LEATI_TRY(leat_state_get(state, "numbers", &numbers, sizeof numbers, err));
    if (leat_state_find(state, scale_key, &bytes))
        LEATI_TRY(leat_state_get(state, scale_key, &scale, sizeof scale, err));
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i)
        if (slab_of(model, i, name, &data, &bytes)) {
            LEATI_TRY(leat_state_get(state, name, data, bytes, err));
            leati_weights_changed(&model->weights, (leati_slab)i);
        }
    model->iterations = numbers.iterations;
    optimizer->schedule_at = numbers.schedule_at;
    optimizer->m_schedule = numbers.m_schedule;
    optimizer->scale.counter = scale.counter;
    optimizer->scale.value = scale.value;
    optimizer->config.learning_rate = numbers.learning_rate;
    leati_model_weights_changed(model);
    return LEAT_OK;
}
