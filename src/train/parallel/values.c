/* SPDX-License-Identifier: Apache-2.0 */
/* The values that ranks add up, on the host and on a GPU.  Room: train. */
#include "train/parallel/values.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/model/model.h"

/* ---- Memory ---- */

/* Replaces host memory for sums: pinned if there is a device. */
static leat_status reserve_host(const leati_values *v, float **memory, size_t bytes, leat_error *err) {
    if (!v->device) {
        leati_free(*memory);
        *memory = leati_calloc_aligned(bytes);
        return *memory ? LEAT_OK : leati_fail_memory(err, bytes, "the sums of the ranks");
    }
    void *pinned = NULL;
    v->device->class->release_host(v->device, *memory);
    *memory = NULL;
    leat_status status = v->device->class->allocate_host(v->device, bytes, &pinned, err);
    *memory = pinned;
    return status;
}

static void free_host(const leati_values *v, float **memory) {
    if (v->device)
        v->device->class->release_host(v->device, *memory);
    else
        leati_free(*memory);
    *memory = NULL;
}

static void free_before(leati_values *v) {
    if (v->device)
        v->device->class->release(v->device, v->before);
    else
        leati_free(v->before);
    v->before = NULL;
}

/* Makes room for the written weights. */
static leat_status reserve_written(leati_values *v, size_t bytes, leat_error *err) {
    void *before = NULL;
    if (bytes <= v->written_bytes) return LEAT_OK;
    v->written_bytes = 0;
    LEATI_TRY(reserve_host(v, &v->moving, bytes, err));
    free_before(v);
    if (v->device) {
        LEATI_TRY(v->device->class->allocate(v->device, bytes, &before, err));
        v->before = before;
    } else {
        LEATI_TRY(reserve_host(v, &v->before, bytes, err));
    }
    v->written_bytes = bytes;
    return LEAT_OK;
}

leat_status leati_values_init(leati_values *v, leat_model *model, leati_trainer *trainer, leat_error *err) {
    const leati_weights *weights = &model->weights;
    *v = (leati_values){.model = model, .trainer = trainer, .device = leati_trainer_device(trainer)};
    leati_trainer_hold_device(trainer);
    v->gradients = weights->slab[LEATI_SLAB_GRADIENTS];
    v->rows = weights->slab[LEATI_SLAB_ROWS];
    if (!v->device || weights->trainable_bytes == 0) return LEAT_OK;
    v->gradients = NULL;
    LEATI_TRY(reserve_host(v, &v->gradients, weights->trainable_bytes, err));
    v->rows = NULL;
    return leati_values_resize_rows(v, err);
}

void leati_values_fini(leati_values *v) {
    if (v->in_group) v->device->groups->leave(v->device);
    free_before(v);
    free_host(v, &v->moving);
    if (v->device) {
        free_host(v, &v->gradients);
        free_host(v, &v->rows);
    }
    if (v->trainer) leati_trainer_release_device(v->trainer);
    *v = (leati_values){0};
}

leat_status leati_values_resize_rows(leati_values *v, leat_error *err) {
    const leati_weights *weights = &v->model->weights;
    if (!v->device) {
        v->rows = weights->slab[LEATI_SLAB_ROWS];
        return LEAT_OK;
    }
    if (weights->row_bytes == v->rows_bytes) return LEAT_OK;
    free_host(v, &v->rows);
    v->rows_bytes = 0;
    if (weights->row_bytes > 0) LEATI_TRY(reserve_host(v, &v->rows, weights->row_bytes, err));
    v->rows_bytes = weights->row_bytes;
    return LEAT_OK;
}

/* ---- Weights that the first part of a step writes ---- */

static float *weights_at(const leati_values *v, size_t offset_bytes) {
    return (float *)((char *)v->model->weights.slab[LEATI_SLAB_WEIGHTS] + offset_bytes);
}

static size_t count_written(const leati_plan *plan) {
    size_t offset = 0, bytes = 0, all = 0;
    for (int32_t i = 0; leati_plan_written_get(plan, i, &offset, &bytes); ++i) all += bytes / sizeof(float);
    return all;
}

/* The ways in which the written weights of the device's slab travel. */
typedef enum way { FROM_SLAB, TO_SLAB, OUT_OF_SLAB, INTO_SLAB } way;

/* Adds the copies of all written weights to the device's queue, between the slab and a block: on the device
 * (FROM_SLAB, TO_SLAB), or on the host. */
static leat_status copy_written(const leati_values *v, const leati_plan *plan, way which, float *block,
                                leat_error *err) {
    const leati_device_class *class = v->device->class;
    void *slabs[LEATI_SLAB_COUNT];
    size_t offset = 0, bytes = 0, at = 0;
    leati_trainer_slabs(v->trainer, slabs);
    for (int32_t i = 0; leati_plan_written_get(plan, i, &offset, &bytes); ++i) {
        void *slab = (char *)slabs[LEATI_SLAB_WEIGHTS] + offset, *beside = block + at;
        switch (which) {
        case FROM_SLAB: LEATI_TRY(class->copy(v->device, beside, slab, bytes, err)); break;
        case TO_SLAB: LEATI_TRY(class->copy(v->device, slab, beside, bytes, err)); break;
        case OUT_OF_SLAB: LEATI_TRY(class->copy_out(v->device, beside, slab, bytes, err)); break;
        case INTO_SLAB: LEATI_TRY(class->copy_in(v->device, slab, beside, bytes, err)); break;
        }
        at += bytes / sizeof *block;
    }
    return LEAT_OK;
}

static void read_written(const leati_values *v, const leati_plan *plan, float factor, float *to) {
    size_t offset = 0, bytes = 0, at = 0;
    for (int32_t i = 0; leati_plan_written_get(plan, i, &offset, &bytes); ++i) {
        const float *from = weights_at(v, offset);
        for (size_t j = 0; j < bytes / sizeof *to; ++j) to[at++] = factor * from[j];
    }
}

/* Plans that pack these weights have noted that the step before wrote them. */
static leat_status write_written(const leati_values *v, const leati_plan *plan, way which, float *from,
                                 leat_error *err) {
    size_t offset = 0, bytes = 0, at = 0;
    if (v->device) {
        LEATI_TRY(copy_written(v, plan, which, from, err));
        leati_trainer_wrote(v->trainer, LEATI_SLAB_WEIGHTS);
        return LEAT_OK;
    }
    for (int32_t i = 0; leati_plan_written_get(plan, i, &offset, &bytes); ++i) {
        memcpy(weights_at(v, offset), from + at, bytes);
        at += bytes / sizeof *from;
    }
    return LEAT_OK;
}

leat_status leati_values_begin(leati_values *v, const leati_plan *plan, size_t *written, leat_error *err) {
    *written = count_written(plan);
    if (*written == 0) return LEAT_OK;
    LEATI_TRY(reserve_written(v, *written * sizeof(float), err));
    memset(v->moving, 0, *written * sizeof *v->moving);
    if (v->device) return copy_written(v, plan, FROM_SLAB, v->before, err);
    read_written(v, plan, 1.0f, v->before);
    return LEAT_OK;
}

leat_status leati_values_restore(const leati_values *v, const leati_plan *plan, leat_error *err) {
    return write_written(v, plan, TO_SLAB, v->before, err);
}

void leati_values_weigh(const leati_values *v, const leati_plan *plan, float share, float *to) {
    if (!v->device) {
        read_written(v, plan, share, to);
        return;
    }
    const size_t count = count_written(plan);
    for (size_t i = 0; i < count; ++i) to[i] = share * v->moving[i];
}

/* ---- Sums in the memories of the devices ---- */

leat_status leati_values_clear(const leati_values *v, leat_error *err) {
    const size_t bytes = v->model->weights.trainable_bytes;
    void *slabs[LEATI_SLAB_COUNT];
    if (!v->in_group) {
        if (bytes > 0) memset(v->gradients, 0, bytes);
        if (v->rows) memset(v->rows, 0, v->model->weights.row_bytes);
        return LEAT_OK;
    }
    leati_trainer_slabs(v->trainer, slabs);
    if (bytes > 0) LEATI_TRY(v->device->class->fill(v->device, slabs[LEATI_SLAB_GRADIENTS], 0, bytes, err));
    if (!v->rows) return LEAT_OK;
    return v->device->class->fill(v->device, slabs[LEATI_SLAB_ROWS], 0, v->rows_bytes, err);
}

leat_status leati_values_sum(leati_values *v, leat_error *err) {
    const leati_device_class *class = v->device->class;
    const leati_group_class *groups = v->device->groups;
    void *slabs[LEATI_SLAB_COUNT];
    leati_trainer_slabs(v->trainer, slabs);
    LEATI_TRY(class->stamp(v->device, 0, err));
    LEATI_TRY(groups->sum(v->device, slabs[LEATI_SLAB_GRADIENTS],
                          v->model->weights.trainable_bytes / sizeof(float), err));
    if (v->rows)
        LEATI_TRY(groups->sum(v->device, slabs[LEATI_SLAB_ROWS], v->rows_bytes / sizeof(float), err));
    LEATI_TRY(class->stamp(v->device, 1, err));
    v->stamped = true;
    return LEAT_OK;
}

int64_t leati_values_summed_ns(leati_values *v) {
    int64_t ns = 0;
    if (!v->stamped) return 0;
    v->stamped = false;
    return v->device->class->read_stamps(v->device, 2, &ns, NULL) == LEAT_OK ? ns : 0;
}

void leati_values_give_up(leati_values *v) {
    if (v->in_group) v->device->groups->give_up(v->device);
    v->stamped = false;
}

/* ---- Steps on a device ---- */

/* Adds copies of the values to the host's memory to the queue. */
static leat_status fetch(const leati_values *v, const leati_plan *plan, leat_error *err) {
    const leati_device_class *class = v->device->class;
    const size_t bytes = v->model->weights.trainable_bytes;
    void *slabs[LEATI_SLAB_COUNT];
    LEATI_TRY(copy_written(v, plan, OUT_OF_SLAB, v->moving, err));
    if (v->in_group) return LEAT_OK;
    leati_trainer_slabs(v->trainer, slabs);
    if (bytes > 0)
        LEATI_TRY(class->copy_out(v->device, v->gradients, slabs[LEATI_SLAB_GRADIENTS], bytes, err));
    if (!v->rows) return LEAT_OK;
    return class->copy_out(v->device, v->rows, slabs[LEATI_SLAB_ROWS], v->rows_bytes, err);
}

leat_status leati_values_run(const leati_values *v, const leati_compiled_step *step,
                             const void *const *pointers, uint64_t seed, leat_error *err) {
    LEATI_TRY(leati_trainer_start(v->trainer, step, pointers, false, seed, err));
    leat_status status = fetch(v, step->plan, err);
    leat_status ended = leati_trainer_finish(v->trainer, step, status == LEAT_OK ? err : NULL);
    return status == LEAT_OK ? ended : status;
}

leat_status leati_values_put(const leati_values *v, const leati_plan *plan, bool written, leat_error *err) {
    const size_t bytes = v->model->weights.trainable_bytes;
    void *slabs[LEATI_SLAB_COUNT];
    if (written) LEATI_TRY(write_written(v, plan, INTO_SLAB, v->moving, err));
    if (!v->device) return LEAT_OK;
    if (v->in_group) {
        leati_trainer_wrote(v->trainer, LEATI_SLAB_GRADIENTS);
        return LEAT_OK;
    }
    leati_trainer_slabs(v->trainer, slabs);
    if (bytes > 0)
        LEATI_TRY(
            v->device->class->copy_in(v->device, slabs[LEATI_SLAB_GRADIENTS], v->gradients, bytes, err));
    leati_trainer_wrote(v->trainer, LEATI_SLAB_GRADIENTS);
    if (!v->rows) return LEAT_OK;
    return v->device->class->copy_in(v->device, slabs[LEATI_SLAB_ROWS], v->rows, v->rows_bytes, err);
}
