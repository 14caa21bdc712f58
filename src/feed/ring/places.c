/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that the caller keeps longer than until the next one.  Room: feed. */
#include "feed/ring/places.h"

#include "base/error.h"
#include "base/memory.h"

leat_status leati_places_create(leati_places **out, const leati_mapping_request *request, int slots,
                                int spare, leat_error *err) {
    size_t count = (size_t)slots + (size_t)spare, bytes = sizeof(leati_places) + count * sizeof(leat_kept);
    leati_places *places = leati_calloc(1, bytes);
    if (!places) return leati_fail_memory(err, bytes, "the places of a feed's ring");
    leat_status status = leati_mapping_create(&places->mapping, request, err);
    if (status != LEAT_OK) {
        leati_free(places);
        return status;
    }
    atomic_store(&places->holders, 1);
    places->count = (int)count;
    for (int i = 0; i < places->count; ++i) {
        places->kept[i].places = places;
        atomic_store(&places->kept[i].state, i < slots ? LEATI_PLACE_OF_SLOT : LEATI_PLACE_SPARE);
    }
    *out = places;
    return LEAT_OK;
}

static bool take(leati_places *places, int i) {
    if (atomic_load_explicit(&places->kept[i].state, memory_order_acquire) != LEATI_PLACE_SPARE) return false;
    atomic_store_explicit(&places->kept[i].state, LEATI_PLACE_OF_SLOT, memory_order_relaxed);
    return true;
}

int leati_places_take(leati_places *places) {
    int latest = atomic_load_explicit(&places->latest, memory_order_relaxed);
    if (take(places, latest)) return latest;
    for (int i = 0; i < places->count; ++i)
        if (take(places, i)) return i;
    return -1;
}

void leati_places_let_go(leati_places *places) {
    if (!places || atomic_fetch_sub(&places->holders, 1) > 1) return;
    leati_mapping_destroy(&places->mapping);
    leati_free(places);
}

void leat_kept_release(leat_kept **kept) {
    if (!kept || !*kept) return;
    leati_places *places = (*kept)->places;
    atomic_store_explicit(&places->latest, (int)(*kept - places->kept), memory_order_relaxed);
    atomic_store_explicit(&(*kept)->state, LEATI_PLACE_SPARE, memory_order_release);
    *kept = NULL;
    leati_places_let_go(places);
}
