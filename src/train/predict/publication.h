/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a model's weights that predictors read while the model trains.  A copy never changes while somebody uses it, and
 * is used again afterwards: as many are made as predictors see different ones, and two more. */
#ifndef LEATI_TRAIN_PREDICT_PUBLICATION_H
#define LEATI_TRAIN_PREDICT_PUBLICATION_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/plan/plan.h"
#include "nn/model/model.h"

typedef struct leati_copy {
    struct leati_copy *next;
    int users;       /* predictors, the newest's place, whoever fills it; guarded by the publication's lock */
    uint64_t number; /* counts what was published; changes only while nobody uses it */
    uint64_t layout; /* of the weights: leati_weights_layout_id */
    size_t bytes;
    void *weights;
    leati_prepacked_set *packs;
    pthread_mutex_t packing; /* guards packs, and what adopts them */
} leati_copy;

typedef struct leati_publication {
    pthread_mutex_t lock; /* guards copies, users, newest */
    leati_copy *copies;
    leati_copy *newest;
    _Atomic uint64_t number; /* the newest's */
} leati_publication;

/* The model's, made at the first call, with the weights as they are if nothing was published or they have changed since. */
leat_status leati_publication_of(leat_model *model, leati_publication **out, leat_error *err);

/* The newest copy, for leati_publication_release. */
leati_copy *leati_publication_newest(leati_publication *publication);
void leati_publication_release(leati_publication *publication, leati_copy *copy);

/* Locks and unlocks one of the mutexes above.  No other thread forks in between: a child would inherit a lock that is held by
 * a thread that it does not have. */
void leati_publication_lock(pthread_mutex_t *lock);
void leati_publication_unlock(pthread_mutex_t *lock);

/* A number for where the weights lie in their slab. */
uint64_t leati_weights_layout_id(const leat_model *model);

#endif
