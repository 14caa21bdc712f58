/* SPDX-License-Identifier: Apache-2.0 */
/* Allocates and frees the slabs of a model.  Room: nn. */
#include "nn/weights/weights.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/pages.h"

static void free_slab(leati_weights *weights, int i) {
    leati_free(weights->blocks[i] ? weights->blocks[i] : weights->slab[i]);
    weights->blocks[i] = weights->slab[i] = NULL;
}

/* Large gradients and slots are not resident before they are written: a rank never writes slots that it does not own,
 * nor a step the gradient of a table whose rows the update reads. */
static void *alloc_untouched(leati_weights *weights, int i, size_t bytes) {
    const size_t alignment = leati_block_alignment(bytes);
    weights->blocks[i] = leati_calloc(1, bytes + alignment);
    if (!weights->blocks[i]) return NULL;
    void *slab = (void *)(((uintptr_t)weights->blocks[i] + alignment - 1) / alignment * alignment);
    if (alignment > LEATI_ALIGNMENT) leati_pages_prefer_huge(slab, bytes);
    return slab;
}

void leati_weights_fini(leati_weights *weights) {
    for (int32_t i = 0; weights->names && i < weights->count; ++i)
        leati_free((void *)(uintptr_t)weights->names[i]);
    leati_free(weights->entries);
    leati_free(weights->names);
    leati_free(weights->order);
    leati_free(weights->lent);
    leati_free(weights->has_rows);
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) free_slab(weights, i);
    *weights = (leati_weights){0};
}

void *leati_weights_slab(const leati_weights *weights, leati_slab slab) {
    leati_mirror *mirror = weights->mirror;
    if (mirror && mirror->ahead[slab] && weights->slab[slab]) mirror->fetch(mirror, slab);
    return weights->slab[slab];
}

leat_status leati_weights_fetch(const leati_weights *weights, leat_error *err) {
    const leati_mirror *mirror = weights->mirror;
    for (int i = 0; mirror && i < LEATI_SLAB_SCALARS; ++i) (void)leati_weights_slab(weights, (leati_slab)i);
    if (!mirror || mirror->status == LEAT_OK) return LEAT_OK;
    return leati_fail(err, mirror->status, "the newest weights are lost: %s", mirror->err.message);
}

void leati_weights_changed(const leati_weights *weights, leati_slab slab) {
    if (weights->mirror) weights->mirror->behind[slab] = true;
}

void leati_weights_untrain(leati_weights *weights) {
    for (int i = LEATI_SLAB_GRADIENTS; i < LEATI_SLAB_COUNT; ++i) {
        free_slab(weights, i);
        if (weights->mirror) weights->mirror->ahead[i] = false;
    }
    leati_free(weights->has_rows);
    weights->has_rows = NULL;
    weights->row_bytes = 0;
}

leat_status leati_weights_set_rows(leati_weights *weights, bool *has_rows, size_t bytes, leat_error *err) {
    free_slab(weights, LEATI_SLAB_ROWS);
    leati_free(weights->has_rows);
    weights->has_rows = has_rows;
    weights->row_bytes = 0;
    if (bytes == 0) return LEAT_OK;
    weights->slab[LEATI_SLAB_ROWS] = leati_calloc_aligned(bytes);
    if (!weights->slab[LEATI_SLAB_ROWS]) return leati_fail_memory(err, bytes, "sums of gradients' rows");
    weights->row_bytes = bytes;
    return LEAT_OK;
}

leat_status leati_weights_train(leati_weights *weights, int slot_count, int scalar_count, leat_error *err) {
    size_t bytes[LEATI_SLAB_COUNT] = {0};
    bytes[LEATI_SLAB_GRADIENTS] = weights->trainable_bytes;
    for (int i = 0; i < slot_count; ++i) {
        bytes[LEATI_SLAB_SLOT0 + i] = weights->trainable_bytes;
    }
    bytes[LEATI_SLAB_SCALARS] = (size_t)scalar_count * sizeof(float);
    leati_weights_untrain(weights);
    weights->are_slots_spread = false;
    for (int i = LEATI_SLAB_GRADIENTS; i < LEATI_SLAB_COUNT; ++i) {
        if (bytes[i] == 0) continue;
        weights->slab[i] =
            i < LEATI_SLAB_SCALARS ? alloc_untouched(weights, i, bytes[i]) : leati_calloc_aligned(bytes[i]);
        if (!weights->slab[i]) {
            leati_weights_untrain(weights);
            return leati_fail_memory(err, bytes[i], "gradients and the optimizer's slots");
        }
        leati_weights_changed(weights, (leati_slab)i);
    }
    return LEAT_OK;
}

void leati_weights_populate(const leati_weights *weights, bool gradients) {
    for (int i = gradients ? LEATI_SLAB_GRADIENTS : LEATI_SLAB_SLOT0; i < LEATI_SLAB_SCALARS; ++i)
        if (weights->slab[i]) leati_pages_populate(weights->slab[i], weights->trainable_bytes);
}

leat_status leati_weights_check_slots(const leati_weights *weights, leat_error *err) {
    if (!weights->are_slots_spread) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTSUP,
        "this rank does not have the whole state of the optimizer, which shard_optimizer has spread "
        "over the ranks: rank 0 has it in hooks of epochs and after fit; compile the model again "
        "to train it here with a new optimizer");
}

size_t leati_weights_slab_bytes(const leati_weights *weights) {
    size_t bytes = weights->bytes + weights->state_bytes + weights->row_bytes;
    for (int i = LEATI_SLAB_GRADIENTS; i < LEATI_SLAB_SCALARS; ++i)
        if (weights->slab[i]) bytes += weights->trainable_bytes;
    return bytes;
}
