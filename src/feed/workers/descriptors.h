/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's descriptors that the helper and its workers close: none, or all except those that are kept. */
#ifndef LEATI_FEED_WORKERS_DESCRIPTORS_H
#define LEATI_FEED_WORKERS_DESCRIPTORS_H

#include <stdbool.h>

#include "leat/feed.h"

enum { LEATI_CUSTOM_DESCRIPTORS = 2 }; /* number of descriptors that the helper itself needs */

typedef struct leati_descriptors {
    bool keep_all; /* close nothing, because a feed has close_descriptors off */
    int *kept;     /* has room for LEATI_CUSTOM_DESCRIPTORS more than `count` */
    int count;
} leati_descriptors;

/* Adds the descriptors that one feed keeps.  Errors: LEAT_ENOMEM. */
leat_status leati_descriptors_add(leati_descriptors *descriptors, const leat_feed_options *options,
                                  leat_error *err);

/* In the helper, once: closes all descriptors except 0, 1, 2, the kept ones and the helper's own (a negative one is
 * none). */
void leati_descriptors_close(leati_descriptors *descriptors,
                             const int helper_descriptors[LEATI_CUSTOM_DESCRIPTORS]);

void leati_descriptors_fini(leati_descriptors *descriptors);

#endif
