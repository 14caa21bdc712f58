/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a run tell each other after a hook.  Room: train. */
#include "train/hooks/sync.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/model/model.h"
#include "train/parallel/parallel.h"

leat_status leati_share_slab(leat_dist *dist, leat_model *model, leati_slab slab, size_t bytes,
                             leat_error *err) {
    const leati_weights *weights = &model->weights;
    void *data = leati_weights_slab(weights, slab);
    if (!data || bytes == 0) return LEAT_OK;
    LEATI_TRY(leati_dist_broadcast(dist, data, bytes, 0, err));
    leati_weights_changed(weights, slab);
    return LEAT_OK;
}

/* What a rank tells after a hook.  Of rank 0 all members count, of the others only status and requested. */
typedef struct news {
    double rate;
    uint64_t version, states; /* versions of the weights and of the states of layers */
    int32_t status, requested, stop, on_request, lent, states_lent;
    char reason[128];
} news;

static news news_of(const leat_training *training, leat_status status) {
    const leat_model *model = training->model;
    news mine = {.rate = leat_model_learning_rate(model),
                 .version = model->weights_version,
                 .status = (int32_t)status,
                 .requested = atomic_load_explicit(&model->stop_requested, memory_order_relaxed),
                 .stop = training->stop,
                 .on_request = training->stopped_on_request,
                 .lent = *model->weights.lent,
                 .states = model->states_version,
                 .states_lent = *model->weights.states_lent};
    snprintf(mine.reason, sizeof mine.reason, "%s", training->stop_reason);
    return mine;
}

/* Applies what rank 0 has told. */
static void apply(leat_training *training, const news *told) {
    leat_model *model = training->model;
    if (leat_model_learning_rate(model) != told->rate) /* NaN, a schedule, is set by nobody */
        leat_model_set_learning_rate(model, told->rate);
    if (!told->stop || training->stop) return;
    training->stop = true;
    training->stopped_on_request = told->on_request != 0;
    snprintf(training->stop_reason, sizeof training->stop_reason, "%s", told->reason);
}

/* Copies the weights of rank 0 if a hook has changed them there: their version then differs from that of the last
 * hook, or the program has a view through which it may have written. */
static leat_status share_weights(leat_training *training, const news *told, leat_error *err) {
    leat_model *model = training->model;
    bool changed = told->lent || told->version != training->synced_version;
    training->synced_version = told->version;
    if (!changed) return LEAT_OK;
    ++model->weights_version;
    leat_status status =
        leati_share_slab(training->dist, model, LEATI_SLAB_WEIGHTS, model->weights.bytes, err);
    if (training->dist->rank == 0) model->weights_version = told->version;
    return status;
}

/* The same for the states of layers, and then for the weights. */
static leat_status share_changes(leat_training *training, const news *told, leat_error *err) {
    leat_model *model = training->model;
    const bool changed = told->states_lent || told->states != training->synced_states;
    training->synced_states = told->states;
    if (changed)
        LEATI_TRY(
            leati_share_slab(training->dist, model, LEATI_SLAB_STATES, model->weights.state_bytes, err));
    return share_weights(training, told, err);
}

leat_status leati_training_sync(leat_training *training, leat_status status, leat_error *err) {
    leat_dist *dist = training->dist;
    const news mine = news_of(training, status);
    news *all = leati_calloc((size_t)dist->size, sizeof *all);
    if (!all) return leati_fail_memory(err, (size_t)dist->size * sizeof *all, "the states of the ranks");
    leat_error why = {0};
    bool failed = false;
    leat_status told = leati_dist_all_gather(dist, &mine, sizeof mine, all, &why);
    for (int i = 0; told == LEAT_OK && i < dist->size; ++i) {
        failed = failed || all[i].status != LEAT_OK;
        training->requested = training->requested || all[i].requested;
    }
    if (told == LEAT_OK && !failed && dist->rank != 0) apply(training, &all[0]);
    if (told == LEAT_OK && !failed && dist->size > 1) told = share_changes(training, &all[0], &why);
    leati_free(all);
    if (told == LEAT_OK) return failed ? leati_parallel_agree(dist, status, err) : LEAT_OK;
    if (err) *err = why;
    return told;
}

leat_status leati_training_follow(leat_training *training, leat_status status, leat_error *err) {
    leat_dist *dist = training->dist;
    news told = news_of(training, status);
    leat_error why = {0};
    leat_status heard = leati_dist_broadcast(dist, &told, sizeof told, 0, &why);
    if (heard == LEAT_OK && told.status != LEAT_OK) return leati_parallel_agree(dist, status, err);
    if (heard == LEAT_OK) {
        training->requested = training->requested || told.requested;
        if (dist->rank != 0) apply(training, &told);
        if (dist->size > 1) heard = share_changes(training, &told, &why);
    }
    if (heard != LEAT_OK && err) *err = why;
    return heard;
}
