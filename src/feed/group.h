/* SPDX-License-Identifier: Apache-2.0 */
/* A group: feeds that were opened together, their memory, and the worker pool that serves them. */
#ifndef LEATI_FEED_GROUP_H
#define LEATI_FEED_GROUP_H

#include "feed/workers/worker_pool.h"

typedef struct leati_group {
    uint32_t fork_depth; /* of the process that opened the group */
    leat_feed *feeds;
    int feed_count;
    int open_count;                /* number of feeds that are not closed yet */
    leati_pool_work work;          /* the feeds with workers */
    leati_service **services;      /* the array to which `work` points */
    leati_worker_table no_workers; /* an empty worker table, for feeds without workers */
    leati_worker_pool pool;
    int64_t opened_ns;
    int64_t patience_ns; /* with threads: how long closing waits for them; -1: until all have returned */
} leati_group;

/* Returns true if this process inherited the group by a fork.  Then it has no workers, and if the workers are
 * processes, it does not have the ring's memory either. */
bool leati_group_is_inherited(const leati_group *group);

/* Creates a group of `count` zeroed feeds; nothing is started.  Errors: LEAT_ENOMEM. */
leat_status leati_group_create(leati_group **out, int count, leat_error *err);

/* Stops the workers and starts new ones, which are forked from the process in its present state.  Errors: LEAT_EIO,
 * LEAT_ENOMEM. */
leat_status leati_group_renew(leati_group *group, leat_error *err);

/* Stops and frees everything.  Memory that threads still use after patience_ns is freed when the last of them returns.
 * Returns the number of these threads. */
int leati_group_destroy(leati_group *group);

#endif
