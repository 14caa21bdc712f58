/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes copies of a model's weights.  Room: train. */
#include "train/predict/publication.h"

#include <string.h>

#include "base/error.h"
#include "base/os/fork.h"
#include "base/memory.h"
#include "leat/predictor.h"

uint64_t leati_weights_layout_id(const leat_model *model) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a over 64-bit words */
    const leati_weights *weights = &model->weights;
    for (int32_t i = 0; i < weights->count; ++i) {
        /* The address tells two weights of equal size apart, which may have exchanged their positions. */
        hash = (hash ^ weights->entries[i]->offset_bytes) * UINT64_C(0x100000001b3);
        hash = (hash ^ (uint64_t)(uintptr_t)weights->entries[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

void leati_publication_lock(pthread_mutex_t *lock) {
    leati_fork_hold();
    pthread_mutex_lock(lock);
}

void leati_publication_unlock(pthread_mutex_t *lock) {
    pthread_mutex_unlock(lock);
    leati_fork_release();
}

static void copy_destroy(leati_copy *copy) {
    leati_prepacked_set_destroy(&copy->packs);
    leati_free(copy->weights);
    pthread_mutex_destroy(&copy->packing);
    leati_free(copy);
}

static void publication_destroy(void **handle) {
    leati_publication *publication = *handle;
    if (!publication) return;
    while (publication->copies) {
        leati_copy *copy = publication->copies;
        publication->copies = copy->next;
        copy_destroy(copy);
    }
    pthread_mutex_destroy(&publication->lock);
    leati_free(publication);
    *handle = NULL;
}

static leat_status copy_create(leati_copy **out, size_t bytes, leat_error *err) {
    leati_copy *copy = leati_calloc(1, sizeof *copy);
    void *weights = copy ? leati_calloc_aligned(bytes) : NULL;
    if (!weights || leati_prepacked_set_create(&copy->packs, NULL) != LEAT_OK) {
        leati_free(weights);
        leati_free(copy);
        return leati_fail_memory(err, bytes, "a copy of the weights");
    }
    pthread_mutex_init(&copy->packing, NULL);
    copy->weights = weights;
    copy->bytes = bytes;
    *out = copy;
    return LEAT_OK;
}

/* Takes a copy without users, or creates one.  The caller becomes its user. */
static leat_status take_free(leati_publication *publication, size_t bytes, leati_copy **out,
                             leat_error *err) {
    leati_copy *copy = NULL;
    leati_publication_lock(&publication->lock);
    for (copy = publication->copies; copy && (copy->users > 0 || copy->bytes != bytes);) copy = copy->next;
    if (copy) copy->users = 1;
    leati_publication_unlock(&publication->lock);
    if (!copy) {
        LEATI_TRY(copy_create(&copy, bytes, err));
        copy->users = 1;
        leati_publication_lock(&publication->lock);
        copy->next = publication->copies;
        publication->copies = copy;
        leati_publication_unlock(&publication->lock);
    }
    *out = copy;
    return LEAT_OK;
}

static leat_status publish(leat_model *model, leati_publication *publication, leat_error *err) {
    const leati_weights *weights = &model->weights;
    leati_copy *copy = NULL;
    LEATI_TRY(leati_weights_fetch(weights, err));
    LEATI_TRY(take_free(publication, weights->bytes, &copy, err));
    memcpy(copy->weights, leati_weights_slab(weights, LEATI_SLAB_WEIGHTS), weights->bytes);
    copy->layout = leati_weights_layout_id(model);
    leati_publication_lock(&publication->lock);
    copy->number = atomic_load(&publication->number) + 1;
    if (publication->newest) --publication->newest->users;
    publication->newest = copy;
    atomic_store(&publication->number, copy->number);
    leati_publication_unlock(&publication->lock);
    return LEAT_OK;
}

static leat_status find_or_make(leat_model *model, leati_publication **out, leat_error *err) {
    if (!model->publication) {
        leati_publication *publication = leati_calloc(1, sizeof *publication);
        if (!publication) return leati_fail_memory(err, sizeof *publication, "published weights");
        pthread_mutex_init(&publication->lock, NULL);
        model->publication = publication;
        model->publication_destroy = publication_destroy;
    }
    *out = model->publication;
    return LEAT_OK;
}

leat_status leati_publication_of(leat_model *model, leati_publication **out, leat_error *err) {
    LEATI_TRY(find_or_make(model, out, err));
    const leati_weights *weights = &model->weights;
    const leati_copy *newest = (*out)->newest;
    bool same = newest && newest->bytes == weights->bytes &&
                newest->layout == leati_weights_layout_id(model) &&
                memcmp(newest->weights, leati_weights_slab(weights, LEATI_SLAB_WEIGHTS), weights->bytes) == 0;
    return same ? LEAT_OK : publish(model, *out, err);
}

leat_status leat_model_publish(leat_model *model, leat_error *err) {
    LEATI_GIVEN(model, err);
    leati_publication *publication = NULL;
    LEATI_TRY(find_or_make(model, &publication, err));
    return leati_prefix(publish(model, publication, err), err, "model '%s'", model->name);
}

leati_copy *leati_publication_newest(leati_publication *publication) {
    leati_publication_lock(&publication->lock);
    leati_copy *newest = publication->newest;
    ++newest->users;
    leati_publication_unlock(&publication->lock);
    return newest;
}

void leati_publication_release(leati_publication *publication, leati_copy *copy) {
    leati_publication_lock(&publication->lock);
    --copy->users;
    leati_publication_unlock(&publication->lock);
}
