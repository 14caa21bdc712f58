/* SPDX-License-Identifier: Apache-2.0 */
/* Moves and resets the states of stateful layers.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/network/network.h"

size_t leati_states_bytes(const leat_model *model) {
    size_t bytes = 0;
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_layer *layer = model->members[i].layer;
        const leat_model *inner = leati_member_model(&model->members[i]);
        if (inner) bytes += leati_states_bytes(inner);
        for (int32_t j = 0; layer && j < layer->state_count; ++j)
            bytes += leati_align(leati_desc_bytes(&layer->states[j].desc));
    }
    return bytes;
}

static size_t move_layer(leati_layer *layer, const char *from, char *to, size_t offset) {
    for (int32_t i = 0; i < layer->state_count; ++i) {
        leati_state *state = &layer->states[i];
        size_t bytes = leati_desc_bytes(&state->desc);
        if (state->placed && from) memcpy(to + offset, from + state->offset_bytes, bytes);
        state->offset_bytes = offset;
        state->placed = true;
        offset += leati_align(bytes);
    }
    return offset;
}

static size_t move_model(leat_model *model, const char *from, char *to, size_t offset) {
    const char *own_slab = leati_weights_slab(&model->weights, LEATI_SLAB_STATES);
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_member *member = &model->members[i];
        leat_model *inner = leati_member_model(member);
        offset = inner ? move_model(inner, own_slab ? own_slab : from, to, offset)
                       : move_layer(member->layer, own_slab ? own_slab : from, to, offset);
    }
    return offset;
}

void leati_states_move(leat_model *model, void *slab) {
    move_model(model, NULL, slab, 0);
}

int64_t leati_model_stateful_batch(const leat_model *model) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_layer *layer = model->members[i].layer;
        if (layer && layer->state_count > 0) return layer->states[0].desc.shape[0];
        const leat_model *inner = leati_member_model(&model->members[i]);
        int64_t batch = inner ? leati_model_stateful_batch(inner) : -1;
        if (batch > 0) return batch;
    }
    return -1;
}

/* ---- States of some samples ---- */

typedef struct samples {
    char *slab;
    int64_t batch, first, count;
    char *packed;
    size_t width; /* bytes of a sample in `packed` */
    bool unpacks; /* copies to the slab */
} samples;

/* Copies the states of a model, whose first one is at `at` of each sample; returns where the next one is. */
static size_t copy_samples(const leat_model *model, const samples *s, size_t at) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_layer *layer = model->members[i].layer;
        const leat_model *inner = leati_member_model(&model->members[i]);
        if (inner) at = copy_samples(inner, s, at);
        for (int32_t j = 0; layer && j < layer->state_count; ++j) {
            const size_t bytes = leati_desc_bytes(&layer->states[j].desc) / (size_t)s->batch;
            char *state = s->slab ? s->slab + layer->states[j].offset_bytes : NULL;
            for (int64_t k = 0; k < s->count; ++k) {
                char *in_slab = state + (size_t)(s->first + k) * bytes,
                     *in_sample = s->packed + (size_t)k * s->width + at;
                memcpy(s->unpacks ? in_slab : in_sample, s->unpacks ? in_sample : in_slab, bytes);
            }
            at += bytes;
        }
    }
    return at;
}

size_t leati_states_width(const leat_model *model, int64_t batch) {
    return copy_samples(model, &(samples){.batch = batch}, 0);
}

void leati_states_pack(const leat_model *model, int64_t batch, int64_t first, int64_t count, void *packed) {
    const samples s = {leati_weights_slab(&model->weights, LEATI_SLAB_STATES),
                       batch,
                       first,
                       count,
                       packed,
                       leati_states_width(model, batch),
                       false};
    copy_samples(model, &s, 0);
}

void leati_states_unpack(const leat_model *model, int64_t batch, int64_t first, int64_t count,
                         const void *packed) {
    const samples s = {leati_weights_slab(&model->weights, LEATI_SLAB_STATES),
                       batch,
                       first,
                       count,
                       (char *)(uintptr_t)packed,
                       leati_states_width(model, batch),
                       true};
    copy_samples(model, &s, 0);
    leati_weights_changed(&model->weights, LEATI_SLAB_STATES);
}

void leat_model_reset_states(leat_model *model) {
    if (!model || model->weights.state_bytes == 0) return;
    ++model->states_version;
    memset(leati_weights_slab(&model->weights, LEATI_SLAB_STATES), 0, model->weights.state_bytes);
    leati_weights_changed(&model->weights, LEATI_SLAB_STATES);
}

/* Finds a layer by name, in this model before its nested models. */
static const leati_layer *find_layer(const leat_model *model, const char *name) {
    int32_t member = leati_network_find(model, name);
    if (member >= 0) return model->members[member].layer;
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leat_model *inner = leati_member_model(&model->members[i]);
        const leati_layer *found = inner ? find_layer(inner, name) : NULL;
        if (found) return found;
    }
    return NULL;
}

leat_tensor leat_model_state(const leat_model *model, const char *layer, int index) {
    const leati_layer *found = model && layer ? find_layer(model, layer) : NULL;
    if (!found || index < 0 || index >= found->state_count) return (leat_tensor){0};
    const leati_state *state = &found->states[index];
    char *slab = leati_weights_slab(&model->weights, LEATI_SLAB_STATES);
    leati_weights_changed(&model->weights, LEATI_SLAB_STATES); /* the caller may write to the view */
    if (model->weights.states_lent) *model->weights.states_lent = true;
    return leat_tensor_view(LEAT_F32, state->desc.rank, state->desc.shape, slab + state->offset_bytes);
}

leat_status leat_model_state_into(const leat_model *model, const char *layer, int index, leat_tensor *out,
                                  leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(layer, err);
    *out = leat_model_state(model, layer, index);
    if (out->data) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTFOUND, "model '%s': layer '%s' has no state %d", model->name, layer,
                      index);
}
