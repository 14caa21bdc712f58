/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the slab of trainable weights among ranks of which each updates its share.  Room: nn. */
#include "nn/optimizers/optimizer.h"

#include "base/memory.h"

int leati_optimizer_shared_slabs(const leati_optimizer *optimizer) {
    return leati_optimizer_slab_count(optimizer) - (leati_optimizer_batches(optimizer) > 1 ? 1 : 0);
}

/* A constraint reads its whole weight after the update. */
static bool needs_whole_weights(const leati_optimizer *optimizer, const leati_weights *weights) {
    bool needs = optimizer->type->by_weight;
    for (int32_t i = 0; i < weights->trainable_count; ++i)
        needs = needs || weights->entries[i]->constraint.kind != LEATI_CONSTRAINT_NONE;
    return needs;
}

static size_t distance(size_t a, size_t b) {
    return a > b ? a - b : b - a;
}

/* Returns the begin of a weight, or the end of the slab, that is nearest to a place of the slab. */
static size_t nearest_boundary(const leati_weights *weights, size_t place) {
    size_t found = weights->trainable_bytes;
    for (int32_t i = 0; i < weights->trainable_count; ++i) {
        const size_t at = weights->entries[i]->offset_bytes;
        if (distance(at, place) < distance(found, place)) found = at;
    }
    return found;
}

/* Returns where the share of a rank begins; rank `ranks` begins at the end. */
static size_t begin_of(const leati_optimizer *optimizer, const leati_weights *weights, int rank, int ranks) {
    const size_t bytes = weights->trainable_bytes, r = (size_t)rank, count = (size_t)ranks;
    const size_t block = bytes / count / LEATI_ALIGNMENT * LEATI_ALIGNMENT;
    if (rank == 0) return 0;
    if (rank == ranks) return bytes;
    return needs_whole_weights(optimizer, weights) ? nearest_boundary(weights, bytes / count * r) : r * block;
}

leati_share leati_optimizer_share(const leati_optimizer *optimizer, const leati_weights *weights, int rank,
                                  int ranks) {
    return (leati_share){.ranks = (size_t)ranks,
                         .from = begin_of(optimizer, weights, rank, ranks),
                         .end = begin_of(optimizer, weights, rank + 1, ranks)};
}

bool leati_share_has(const leati_share *share, const leati_weight *weight) {
    return weight->offset_bytes >= share->from && weight->offset_bytes < share->end;
}
