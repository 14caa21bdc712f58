/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what the ranks of a run have.  Room: train. */
#include "train/parallel/traits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "leat/inspect.h"
#include "nn/model/model.h"

uint64_t leati_hash_bytes(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3); /* FNV-1a */
    return hash;
}

/* Returns a hash of a text that leat made, which is freed; 0 without a text. */
static int64_t hash_text(char *text) {
    int64_t hash = text ? (int64_t)(leati_hash_bytes(leati_hash_start, text, strlen(text)) >> 1) : 0;
    leat_string_free(text);
    return hash;
}

int64_t leati_trait_model(const leat_model *model) {
    char *text = NULL;
    return leat_model_to_json(model, &text, NULL) == LEAT_OK ? hash_text(text) : 0;
}

int64_t leati_trait_compilation(const leat_model *model) {
    char *text = NULL;
    return leat_model_training_config(model, &text, NULL) == LEAT_OK ? hash_text(text) : 0;
}

int64_t leati_trait_length(const leat_sequence *sequence) {
    return sequence && sequence->length ? sequence->length(sequence->user) : -1;
}

int64_t leati_trait_weights(const leat_model *model) {
    const leati_weights *weights = &model->weights;
    const void *data = leati_weights_slab(weights, LEATI_SLAB_WEIGHTS),
               *states = leati_weights_slab(weights, LEATI_SLAB_STATES);
    if (!data) return 0;
    uint64_t hash = leati_hash_bytes(leati_hash_start, data, weights->bytes);
    if (states) hash = leati_hash_bytes(hash, states, weights->state_bytes);
    return (int64_t)(hash >> 1);
}

static leat_status compare(const leat_dist *dist, const leati_trait *traits, int count, const int64_t *all,
                           leat_error *err) {
    for (int i = 0; i < count; ++i)
        for (int rank = 1; rank < dist->size; ++rank) {
            const int64_t a = all[i], b = all[rank * count + i];
            char values[64] = "";
            if (a == b) continue;
            if (!traits[i].is_hash) snprintf(values, sizeof values, ": %" PRId64 " and %" PRId64, a, b);
            return leati_fail(
                err, LEAT_EINVAL,
                "rank 0 (host %s) and rank %d (host %s) differ in %s%s: start all ranks with the same "
                "model, data and options",
                dist->peers[0].host, rank, dist->peers[rank].host, traits[i].name, values);
        }
    return LEAT_OK;
}

leat_status leati_traits_compare(leat_dist *dist, const leati_trait *traits, int count, leat_error *err) {
    const size_t bytes = (size_t)count * sizeof(int64_t);
    int64_t *all = leati_calloc((size_t)dist->size + 1, bytes);
    if (!all) return leati_fail_memory(err, (size_t)dist->size * bytes, "the options of the ranks");
    int64_t *mine = all + (size_t)dist->size * (size_t)count;
    for (int i = 0; i < count; ++i) mine[i] = traits[i].value;
    leat_status status = leati_dist_all_gather(dist, mine, bytes, all, err);
    if (status == LEAT_OK) status = compare(dist, traits, count, all, err);
    leati_free(all);
    return status;
}
