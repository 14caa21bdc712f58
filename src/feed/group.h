/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds that were opened together: their memory, and the one pool that serves them. */
#ifndef LEATI_FEED_GROUP_H
#define LEATI_FEED_GROUP_H

#include "feed/workers/worker_pool.h"

typedef struct leati_group {
    uint32_t fork_depth; /* of the process that opened it */
    leat_feed *feeds;
    int feed_count;
    int open_count;                /* of them, not yet closed */
    leati_works works;             /* of the feeds with workers */
    leati_service **services;      /* that works points at */
    leati_worker_table no_workers; /* of the others */
    leati_worker_pool pool;
    int64_t opened_ns;
    int64_t patience_ns; /* with threads: how long closing waits; -1: until all batches are made */
} leati_group;

/* Whether this process inherited the group by a fork.  It has no workers then, nor, where workers are processes, the ring. */
bool leati_group_is_inherited(const leati_group *group);

/* A group of `count` zeroed feeds, with nothing started.  Errors: LEAT_ENOMEM. */
leat_status leati_group_create(leati_group **out, int count, leat_error *err);

/* Sends the workers home and has new ones, which are copies of the process as it is now.  Errors: LEAT_EIO, LEAT_ENOMEM. */
leat_status leati_group_renew(leati_group *group, leat_error *err);

/* Ends and frees everything, but for what threads that cannot be ended still use: returns how many there are. */
int leati_group_destroy(leati_group *group);

#endif
