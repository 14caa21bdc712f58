/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a model's weights that predictors read while the model trains.  A copy does not change while it has
 * users, and is reused afterwards.  There are at most two more copies than predictors use at a time.  Room: train. */
#ifndef LEATI_TRAIN_PREDICT_PUBLICATION_H
#define LEATI_TRAIN_PREDICT_PUBLICATION_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/plan/plan.h"
#include "nn/model/model.h"

typedef struct leati_copy {
    struct leati_copy *next;
    int users; /* predictors, plus 1 for the newest copy or while it is filled; guarded by the publication's lock */
    uint64_t number; /* number of the publication, from 1; changes only while the copy is filled */
    uint64_t layout; /* leati_weights_layout_id of the weights */
    size_t bytes;
    void *weights;
    leati_prepacked_set *packs;
    pthread_mutex_t packing; /* guards packs, also while a plan adopts them */
} leati_copy;

typedef struct leati_publication {
    pthread_mutex_t lock; /* guards copies, users, newest */
    leati_copy *copies;
    leati_copy *newest;
    _Atomic uint64_t number; /* number of the newest copy */
} leati_publication;

/* Gets the model's publication, which is created at the first call.  Publishes the current weights if the newest
 * copy differs from them. */
leat_status leati_publication_of(leat_model *model, leati_publication **out, leat_error *err);

/* Returns the newest copy and adds a user; leati_publication_release removes the user. */
leati_copy *leati_publication_newest(leati_publication *publication);
void leati_publication_release(leati_publication *publication, leati_copy *copy);

/* Lock and unlock one of the mutexes above.  No other thread can fork in between: the child would inherit a mutex
 * that is locked by a thread which does not exist in the child. */
void leati_publication_lock(pthread_mutex_t *lock);
void leati_publication_unlock(pthread_mutex_t *lock);

/* Returns a hash of the positions of all weights in their slab. */
uint64_t leati_weights_layout_id(const leat_model *model);

#endif
