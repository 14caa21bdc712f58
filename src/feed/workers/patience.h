/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines in time that somebody watched.  A sleep that ends much later than it was to, because the whole program was
 * stopped, counts as long as it was meant to be: the workers were not running either. */
#ifndef LEATI_FEED_WORKERS_PATIENCE_H
#define LEATI_FEED_WORKERS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define LEATI_PATIENCE_TICK_NS 50000000 /* the longest sleep of one who watches a deadline */

/* So much of a sleep's lateness counts: a busy machine delays it so far. */
#define LEATI_PAUSE_NS 50000000

/* A watcher's clock, which stands while it is stopped. */
typedef struct leati_patience {
    int64_t slept_ns, planned_ns; /* its sleep: when it began, how long it was to be (< 0: any time) */
    int64_t last_ns;              /* how much of it counted */
    int64_t watched_ns;           /* all that counted */
} leati_patience;

/* Something that may be late. */
typedef struct leati_watched {
    int64_t started_ns; /* by the real clock; it says which one it is */
    int64_t since_ns;   /* by the watcher's */
} leati_watched;

/* Before a sleep of at most planned_ns, and after it. */
static inline void leati_patience_sleep(leati_patience *patience, int64_t now_ns, int64_t planned_ns) {
    patience->slept_ns = now_ns;
    patience->planned_ns = planned_ns;
}
static inline void leati_patience_wake(leati_patience *patience, int64_t now_ns) {
    int64_t slept = now_ns - patience->slept_ns, most = patience->planned_ns + LEATI_PAUSE_NS;
    patience->last_ns = patience->planned_ns >= 0 && slept > most ? most : slept;
    patience->watched_ns += patience->last_ns;
}

/* How long until a batch that was begun then is late; <= 0: it is.  Call it after each sleep: what was begun during the
 * last one has been watched for a part of it. */
static inline int64_t leati_patience_left(const leati_patience *patience, leati_watched *watched,
                                          int64_t started_ns, int64_t deadline_ns, int64_t now_ns) {
    if (watched->started_ns != started_ns) {
        int64_t age = now_ns - started_ns;
        watched->started_ns = started_ns;
        watched->since_ns = patience->watched_ns - (age < patience->last_ns ? age : patience->last_ns);
    }
    return watched->since_ns + deadline_ns - patience->watched_ns;
}

#endif
