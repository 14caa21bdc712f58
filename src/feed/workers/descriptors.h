/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the caller's descriptors the helper and its workers close: none, or all but those that are kept. */
#ifndef LEATI_FEED_WORKERS_DESCRIPTORS_H
#define LEATI_FEED_WORKERS_DESCRIPTORS_H

#include <stdbool.h>

#include "leat/feed.h"

enum { LEATI_CUSTOM_DESCRIPTORS = 2 }; /* that the helper itself needs */

typedef struct leati_descriptors {
    bool keep_all; /* one of the feeds wants so */
    int *kept;     /* has room for LEATI_CUSTOM_DESCRIPTORS more */
    int count;
} leati_descriptors;

/* Adds what one feed keeps.  Errors: LEAT_ENOMEM. */
leat_status leati_descriptors_add(leati_descriptors *descriptors, const leat_feed_options *options,
                                  leat_error *err);

/* In the helper, once: closes what nobody keeps, but for 0, 1, 2 and the helper's own (negative ones are none). */
void leati_descriptors_close(leati_descriptors *descriptors, const int own[LEATI_CUSTOM_DESCRIPTORS]);

void leati_descriptors_fini(leati_descriptors *descriptors);

#endif
