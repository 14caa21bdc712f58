/* SPDX-License-Identifier: Apache-2.0 */
/* The helper: a process with one thread, forked from the caller, from which the worker processes descend.  A worker born
 * later, in the place of a dead one, so never inherits a lock that some thread of the caller held. */
#ifndef LEATI_FEED_WORKERS_HELPER_H
#define LEATI_FEED_WORKERS_HELPER_H

#include <poll.h>
#include <sys/types.h>

#include "feed/workers/descriptors.h"
#include "feed/workers/patience.h"
#include "feed/workers/worker.h"

/* What the helper knows of a worker. */
typedef struct leati_child {
    pid_t pid;           /* 0: none runs */
    int pidfd;           /* -1: none, or the kernel has none to give */
    int early_deaths;    /* in a row, before worker_init was through */
    bool late;           /* killed for it */
    leati_watched batch; /* that it has in hand */
} leati_child;

typedef struct leati_helper {
    pid_t pid;                     /* 0: none runs */
    pid_t caller;                  /* who forked it */
    int control;                   /* an eventfd that says: leave */
    int caller_pidfd;              /* in the helper alone; -1 when the kernel has none to give */
    leati_descriptors descriptors; /* of the caller's, that the helper closes */
    leati_works *works;
    uint32_t generation; /* of the workers */
    leati_patience patience;
    leati_worker *workers; /* as each begins: a worker process never allocates before get is called */
    int worker_count;
    leati_child *children;
    struct pollfd *watched; /* control, caller, children */
} leati_helper;

/* The helper's life.  Returns its exit status when every worker is gone. */
int leati_helper_run(leati_helper *helper);

/* pidfd_open; -1 with errno where the kernel lacks it. */
int leati_pidfd_open(pid_t pid);

#endif
