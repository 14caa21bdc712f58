/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of an optimizer that are spread over the ranks.  Room: train. */
#include "train/parallel/shards.h"

#include <limits.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/pages.h"

leat_status leati_shards_init(leati_shards *s, leat_dist *dist, leat_model *model, leat_error *err) {
    const size_t ranks = (size_t)dist->size;
    *s = (leati_shards){.model = model, .is_whole = true};
    s->shares = leati_calloc(ranks, sizeof *s->shares);
    s->requests = leati_calloc(ranks, sizeof *s->requests);
    if (!s->shares || !s->requests)
        return leati_fail_memory(err, ranks * (sizeof *s->shares + sizeof *s->requests),
                                 "the shares of ranks");
    for (int i = 0; i < dist->size; ++i)
        s->shares[i] = leati_optimizer_share(model->compiled.optimizer, &model->weights, i, dist->size);
    s->dist = dist;
    return LEAT_OK;
}

void leati_shards_fini(leati_shards *s) {
    leati_free(s->shares);
    leati_free(s->requests);
    *s = (leati_shards){0};
}

static int slab_count(const leati_shards *s) {
    return leati_optimizer_shared_slabs(s->model->compiled.optimizer);
}

static char *slot_slab(const leati_shards *s, int slot) {
    return leati_weights_slab(&s->model->weights, (leati_slab)(LEATI_SLAB_SLOT0 + slot));
}

/* Frees the memory of the slots of other shares. */
static void drop_others(const leati_shards *s) {
    const leati_share *mine = &s->shares[s->dist->rank];
    for (int i = 0; i < slab_count(s); ++i) {
        char *slab = slot_slab(s, i);
        leati_pages_drop(slab, mine->from);
        leati_pages_drop(slab + mine->end, s->model->weights.trainable_bytes - mine->end);
    }
}

size_t leati_shards_absent_bytes(const leati_shards *s) {
    if (!s->dist) return 0;
    const leati_share *mine = &s->shares[s->dist->rank];
    return (size_t)slab_count(s) * (s->model->weights.trainable_bytes - (mine->end - mine->from));
}

/* ---- Requests ---- */

static void begin(leati_shards *s, leati_dist_request request) {
    leati_dist_request *begun = &s->requests[s->begun++];
    *begun = request;
    s->dist->class->start(s->dist, begun);
}

static leat_status finish(leati_shards *s, leat_error *err) {
    leat_status status = LEAT_OK;
    for (int i = 0; i < s->begun; ++i) {
        leat_status one = s->dist->class->wait(s->dist, &s->requests[i], status == LEAT_OK ? err : NULL);
        if (status == LEAT_OK) status = one;
    }
    s->begun = 0;
    return status;
}

/* Sends a share of a slab between rank 0 and its owner. */
static void begin_message(leati_shards *s, char *slab, int owner, bool to_owner) {
    const leati_share *share = &s->shares[owner];
    const bool leads = s->dist->rank == 0, sends = leads == to_owner;
    if (owner == 0 || share->from == share->end || (!leads && owner != s->dist->rank)) return;
    begin(s, (leati_dist_request){.op = sends ? LEATI_DIST_SEND : LEATI_DIST_RECEIVE,
                                  .data = slab + share->from,
                                  .bytes = share->end - share->from,
                                  .peer = leads ? owner : 0});
}

static leat_status move_slots(leati_shards *s, bool to_owners, leat_error *err) {
    leat_status status = LEAT_OK;
    for (int i = 0; i < slab_count(s) && status == LEAT_OK; ++i) {
        for (int owner = 0; owner < s->dist->size; ++owner)
            begin_message(s, slot_slab(s, i), owner, to_owners);
        status = finish(s, err);
        leati_weights_changed(&s->model->weights, (leati_slab)(LEATI_SLAB_SLOT0 + i));
    }
    return status;
}

/* ---- The life of a fit ---- */

leat_status leati_shards_spread(leati_shards *s, leat_error *err) {
    if (!s->dist) return LEAT_OK;
    LEATI_TRY(move_slots(s, true, err));
    if (s->dist->rank != 0) drop_others(s);
    s->model->weights.are_slots_spread = s->dist->rank != 0;
    return LEAT_OK;
}

leati_share leati_shards_begin(leati_shards *s) {
    if (!s->dist) return (leati_share){0};
    if (s->is_whole && s->dist->rank == 0) drop_others(s);
    s->is_whole = false;
    s->model->weights.are_slots_spread = true;
    return s->shares[s->dist->rank];
}

/* Equal shares are gathered by one request.  The last rank has the remainder behind them. */
static size_t begin_gather(leati_shards *s, char *weights) {
    const size_t block = s->shares[0].end;
    for (int i = 0; i < s->dist->size; ++i)
        if (s->shares[i].from != (size_t)i * block || s->shares[i].end < s->shares[i].from + block) return 0;
    if (block == 0 || block > INT_MAX) return 0;
    begin(s, (leati_dist_request){.op = LEATI_DIST_ALL_GATHER, .data = weights, .bytes = block});
    return block;
}

leat_status leati_shards_join(leati_shards *s, leat_error *err) {
    if (!s->dist) return LEAT_OK;
    char *weights = leati_weights_slab(&s->model->weights, LEATI_SLAB_WEIGHTS);
    const size_t block = begin_gather(s, weights);
    for (int i = 0; i < s->dist->size; ++i) {
        const size_t from = s->shares[i].from + block, end = s->shares[i].end;
        if (from < end)
            begin(s, (leati_dist_request){
                         .op = LEATI_DIST_BROADCAST, .data = weights + from, .bytes = end - from, .peer = i});
    }
    LEATI_TRY(finish(s, err));
    ++s->model->weights_version;
    leati_weights_changed(&s->model->weights, LEATI_SLAB_WEIGHTS);
    return LEAT_OK;
}

leat_status leati_shards_collect(leati_shards *s, leat_error *err) {
    if (!s->dist || s->is_whole) return LEAT_OK;
    LEATI_TRY(move_slots(s, false, err));
    s->is_whole = true;
    s->model->weights.are_slots_spread = s->dist->rank != 0;
    return LEAT_OK;
}
