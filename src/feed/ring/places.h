/* SPDX-License-Identifier: Apache-2.0 */
/* The places of a ring.  A place is the part of the ring's mapping that has room for the tensors of one batch.  Each
 * slot has a place; spare places replace those that the caller keeps.  Only the caller's process uses this struct. */
#ifndef LEATI_FEED_RING_PLACES_H
#define LEATI_FEED_RING_PLACES_H

#include <stdatomic.h>

#include "feed/ring/mapping.h"
#include "leat/feed.h"

/* The states of a place. */
enum { LEATI_PLACE_OF_SLOT, LEATI_PLACE_SPARE, LEATI_PLACE_KEPT };

struct leat_kept {
    struct leati_places *places;
    _Atomic uint32_t state;
};

typedef struct leati_places {
    leati_mapping mapping; /* the ring's memory */
    _Atomic int holders;   /* the feed, and each batch that is kept */
    _Atomic int latest; /* the place that was released last: it is spare, and its memory is in the caches */
    int count;
    leat_kept kept[]; /* one for each place */
} leati_places;

/* Maps a ring's memory with `slots` places of slots and `spare` spare places.  Returns the places with one holder.
 * Errors: LEAT_ENOMEM, LEAT_EIO. */
leat_status leati_places_create(leati_places **out, const leati_mapping_request *request, int slots,
                                int spare, leat_error *err);

/* Takes a spare place.  Returns its number; -1 if there is none. */
int leati_places_take(leati_places *places);

/* Ends the use by one holder; the last one unmaps the memory.  NULL is allowed. */
void leati_places_let_go(leati_places *places);

#endif
