/* SPDX-License-Identifier: Apache-2.0 */
/* The helper: a process with one thread, forked from the caller, that forks the worker processes.  Because the helper
 * forks them, a worker that replaces a dead one does not inherit a lock that a thread of the caller holds at that
 * time. */
#ifndef LEATI_FEED_WORKERS_HELPER_H
#define LEATI_FEED_WORKERS_HELPER_H

#include <poll.h>
#include <sys/types.h>

#include "feed/workers/descriptors.h"
#include "feed/workers/patience.h"
#include "feed/workers/worker.h"

/* When the workers must exit, the helper kills a worker that has not done so after this time, and one that is stopped
 * after the shorter time. */
#define LEATI_EXIT_PATIENCE_NS    INT64_C(10000000000)
#define LEATI_STOPPED_PATIENCE_NS INT64_C(1000000000)

/* What the caller writes to the control descriptor: the helper exits, or a helper program reads its record again. */
#define LEATI_CONTROL_EXIT  UINT64_C(1)
#define LEATI_CONTROL_RENEW (UINT64_C(1) << 32)

/* The helper's data about a worker process. */
typedef struct leati_child {
    pid_t pid;           /* 0: the worker does not run */
    int pidfd;           /* -1: there is none, or the kernel does not support pidfds */
    int early_deaths;    /* number of deaths in a row before worker_init had returned */
    bool late;           /* the helper has killed it, because its batch was late or it was stopped */
    bool stopped;        /* it is stopped by a signal */
    int64_t stopped_ns;  /* when the helper noticed that, by the clock of `patience` */
    leati_watched batch; /* the batch that it is making */
} leati_child;

typedef struct leati_helper {
    pid_t pid;                  /* of the helper, in the caller; 0: it does not run */
    pid_t caller;               /* the process that forked the helper */
    int control;                /* an eventfd; the caller writes to it to make the helper exit */
    int record;                 /* the memfd that tells a helper program its feeds; -1: none */
    int caller_pidfd;           /* used in the helper only; -1: the kernel does not support pidfds */
    const char *const *command; /* the program that the helper is; NULL: a copy of the caller's process */
    /* the program that each worker is (leat_helper_supervise); NULL: workers are forked */
    const char *const *worker_command;
    int *passed; /* descriptors that a worker program inherits; the first one is the record's */
    int passed_count;
    leati_descriptors descriptors; /* the caller's descriptors that the helper closes */
    leati_pool_work *work;
    uint32_t generation; /* of the workers */
    leati_patience patience;
    bool exiting;          /* the workers were told to exit */
    int64_t exiting_ns;    /* when the helper noticed that, by the clock of `patience` */
    leati_worker *workers; /* prepared before the fork, so that leat allocates nothing in a worker process */
    int worker_count;
    leati_child *children;
    struct pollfd *watched; /* descriptors for poll: control, caller, children */
} leati_helper;

/* Runs the helper until all workers are gone.  Returns the exit status of the helper process. */
int leati_helper_run(leati_helper *helper);

/* Starts the program of a worker.  Returns its process, or -1 with errno set. */
pid_t leati_spawn_worker(const leati_helper *helper, int number);

/* Calls pidfd_open.  Returns -1 with errno ENOSYS if the kernel does not have it. */
int leati_pidfd_open(pid_t pid);

#endif
