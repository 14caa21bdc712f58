/* SPDX-License-Identifier: Apache-2.0 */
/* A predictor on a device has a queue of its own there, so that several threads predict at the same time, and a copy of
 * the weights.  Its states stay on the host, where the caller may read and write them, and travel with each run.
 * Room: train. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/predict/predictor.h"

leat_status leati_predictor_allocate(const leat_predictor *p, size_t bytes, void **out, leat_error *err) {
    if (p->device) return p->device->class->allocate_host(p->device, bytes, out, err);
    *out = leati_calloc_aligned(bytes);
    return *out ? LEAT_OK : leati_fail_memory(err, bytes, "a predictor");
}

void leati_predictor_release(const leat_predictor *p, void *memory) {
    if (p->device)
        p->device->class->release_host(p->device, memory);
    else
        leati_free(memory);
}

leat_status leati_predictor_place_slabs(leat_predictor *p, void *addresses[LEATI_SLAB_COUNT],
                                        leat_error *err) {
    const leati_device_class *class = p->device->class;
    LEATI_TRY(class->allocate(p->device, p->copy->bytes, &p->slabs[LEATI_SLAB_WEIGHTS], err));
    LEATI_TRY(class->allocate(p->device, p->carry.bytes, &p->slabs[LEATI_SLAB_STATES], err));
    addresses[LEATI_SLAB_WEIGHTS] = p->slabs[LEATI_SLAB_WEIGHTS];
    addresses[LEATI_SLAB_STATES] = p->slabs[LEATI_SLAB_STATES];
    return LEAT_OK;
}

/* The copy of the states back goes behind the run, so that there is one wait for both. */
leat_status leati_predictor_run_on_device(leat_predictor *p, const void *const *inputs, leat_error *err) {
    leati_device *device = p->device;
    void *states = p->slabs[LEATI_SLAB_STATES];
    LEATI_TRY(device->class->join(device, err)); /* this thread may be another one than before */
    LEATI_TRY(device->class->copy_in(device, states, p->states, p->carry.bytes, err));
    LEATI_TRY(leati_plan_start(p->plan, inputs, false, 0, 0, err));
    leat_status status = device->class->copy_out(device, p->states, states, p->carry.bytes, err);
    leat_status ended = leati_plan_finish(p->plan, status == LEAT_OK ? err : NULL);
    return status == LEAT_OK ? ended : status;
}

leat_status leati_predictor_adopt_on_device(leat_predictor *p, const leati_copy *copy,
                                            const void *const *inputs, leat_error *err) {
    leati_device *device = p->device;
    LEATI_TRY(device->class->join(device, err));
    LEATI_TRY(device->class->copy_in(device, p->slabs[LEATI_SLAB_WEIGHTS], copy->weights, copy->bytes, err));
    LEATI_TRY(device->class->wait(device, err)); /* the copy may be filled again once it has no user */
    leati_arena_set_version(p->arena, copy->number);
    return leati_predictor_run_on_device(p, inputs, err);
}

void leati_predictor_leave_device(leat_predictor *p) {
    if (!p->device) return;
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) p->device->class->release(p->device, p->slabs[i]);
    leati_device_close(&p->device);
}
