/* SPDX-License-Identifier: Apache-2.0 */
/* What the ring's memory needs beyond making and unmapping it. */
#ifndef LEATI_FEED_RING_MAP_H
#define LEATI_FEED_RING_MAP_H

#include "feed/ring.h"

/* Worker: makes sure that the slot has its memory.  Errors: LEAT_ENOMEM, where a first touch would be SIGBUS. */
leat_status leati_ring_back_slot(const leati_ring *ring, leati_slot *slot, leat_error *err);

/* Whether children that are forked from now on share the ring: only the feed's own helper is to keep its memory alive. */
void leati_ring_inherit(const leati_ring *ring, bool inherit);

#endif
