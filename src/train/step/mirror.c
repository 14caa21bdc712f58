/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the copy of a model's slabs on a device.  Room: train. */
#include "train/step/mirror.h"

#include "base/error.h"
#include "base/memory.h"

struct leati_device_slabs {
    leati_mirror mirror; /* first: leati_mirror.fetch gets its address */
    leati_device *device;
    void *memory[LEATI_SLAB_COUNT]; /* on the device */
    size_t bytes[LEATI_SLAB_COUNT];
    void *host[LEATI_SLAB_COUNT]; /* the host's slabs of which this is a copy */
};

static size_t bytes_of(const leati_weights *weights, int slab) {
    if (!weights->slab[slab] || slab == LEATI_SLAB_SCALARS) return 0;
    if (slab == LEATI_SLAB_WEIGHTS) return weights->bytes;
    if (slab == LEATI_SLAB_ROWS) return weights->row_bytes;
    return slab == LEATI_SLAB_STATES ? weights->state_bytes : weights->trainable_bytes;
}

static void fetch(leati_mirror *mirror, leati_slab slab) {
    leati_device_slabs *s = (leati_device_slabs *)(void *)mirror;
    const leati_device_class *device = s->device->class;
    leat_error err = {0};
    mirror->ahead[slab] = false;
    leat_status status = device->copy_out(s->device, s->host[slab], s->memory[slab], s->bytes[slab], &err);
    if (status == LEAT_OK) status = device->wait(s->device, &err);
    if (status == LEAT_OK || mirror->status != LEAT_OK) return;
    mirror->status = status;
    mirror->err = err;
}

leat_status leati_device_slabs_create(leati_device_slabs **out, leati_device *device, leat_error *err) {
    leati_device_slabs *s = leati_calloc(1, sizeof *s);
    *out = s;
    if (!s) return leati_fail_memory(err, sizeof *s, "a device's copy of the weights");
    s->device = device;
    s->mirror.fetch = fetch;
    return LEAT_OK;
}

void leati_device_slabs_destroy(leati_device_slabs **slabs, leat_model *model) {
    leati_device_slabs *s = *slabs;
    if (!s) return;
    for (int i = 0; model && model->weights.mirror == &s->mirror && i < LEATI_SLAB_COUNT; ++i)
        (void)leati_weights_slab(&model->weights, (leati_slab)i);
    if (model && model->weights.mirror == &s->mirror) model->weights.mirror = NULL;
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) s->device->class->release(s->device, s->memory[i]);
    leati_free(s);
    *slabs = NULL;
}

/* Makes slab i on the device as large as the host's.  A slab of another size, or of a new layout, is copied anew. */
static leat_status resize(leati_device_slabs *s, const leati_weights *weights, int i, bool *moved,
                          leat_error *err) {
    size_t bytes = bytes_of(weights, i);
    if (bytes == s->bytes[i] && weights->slab[i] == s->host[i] && weights->mirror == &s->mirror)
        return LEAT_OK;
    s->mirror.ahead[i] = false;
    s->mirror.behind[i] = bytes > 0;
    s->host[i] = weights->slab[i];
    if (bytes == s->bytes[i]) return LEAT_OK;
    s->device->class->release(s->device, s->memory[i]);
    s->memory[i] = NULL;
    s->bytes[i] = 0;
    *moved = true;
    if (bytes == 0) return LEAT_OK;
    LEATI_TRY(s->device->class->allocate(s->device, bytes, &s->memory[i], err));
    s->bytes[i] = bytes;
    return LEAT_OK;
}

leat_status leati_device_slabs_update(leati_device_slabs *s, leat_model *model, bool *moved,
                                      leat_error *err) {
    leati_weights *weights = &model->weights;
    leat_status status = s->mirror.status;
    *moved = false;
    s->mirror.status = LEAT_OK;
    if (status != LEAT_OK) return leati_fail(err, status, "%s", s->mirror.err.message);
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) LEATI_TRY(resize(s, weights, i, moved, err));
    weights->mirror = &s->mirror;
    if (*weights->lent) s->mirror.behind[LEATI_SLAB_WEIGHTS] = true;
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) {
        if (!s->mirror.behind[i] || s->bytes[i] == 0) continue;
        if (i == LEATI_SLAB_WEIGHTS) ++model->weights_version; /* a step on the host may have written them */
        LEATI_TRY(s->device->class->copy_in(s->device, s->memory[i], s->host[i], s->bytes[i], err));
        LEATI_TRY(s->device->class->wait(s->device, err)); /* the host's memory may change at any time */
        s->mirror.behind[i] = false;
    }
    return LEAT_OK;
}

void leati_device_slabs_addresses(const leati_device_slabs *s, void *out[LEATI_SLAB_COUNT]) {
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) out[i] = s->memory[i];
    out[LEATI_SLAB_SCALARS] = s->host[LEATI_SLAB_SCALARS];
}

static bool writes(int slab, bool trained) {
    return slab == LEATI_SLAB_STATES || (trained && slab != LEATI_SLAB_GRADIENTS);
}

void leati_weights_ran(const leati_weights *weights, bool trained) {
    for (int i = 0; i < LEATI_SLAB_SCALARS; ++i)
        if (writes(i, trained)) leati_weights_changed(weights, (leati_slab)i);
}

void leati_device_slabs_wrote(leati_device_slabs *s, const leat_model *model, leati_slab slab) {
    s->mirror.ahead[slab] = s->bytes[slab] > 0;
    if (*model->weights.lent && slab == LEATI_SLAB_WEIGHTS)
        (void)leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
}

void leati_device_slabs_ran(leati_device_slabs *s, const leat_model *model, bool trained) {
    for (int i = 0; i < LEATI_SLAB_SCALARS; ++i) {
        s->mirror.ahead[i] = s->mirror.ahead[i] || (writes(i, trained) && s->bytes[i] > 0);
    }
    if (*model->weights.lent) (void)leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
}
