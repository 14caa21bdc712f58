/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines that do not count the time while the program was stopped.  If the watcher's sleep ends much later than
 * planned, the whole program was stopped, and its workers did not run either; then only the planned length counts. */
#ifndef LEATI_FEED_WORKERS_PATIENCE_H
#define LEATI_FEED_WORKERS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define LEATI_PATIENCE_TICK_NS 50000000 /* the longest sleep of a watcher of deadlines */

/* A delay after the planned end of a sleep counts up to this length, because a busy machine may delay a sleep so
 * long. */
#define LEATI_PAUSE_NS 50000000

/* The clock of a watcher, which stands still while the program is stopped. */
typedef struct leati_patience {
    int64_t slept_ns, planned_ns; /* begin and planned length (< 0: any) of the last sleep */
    int64_t last_ns;              /* the part of the last sleep that counts */
    int64_t watched_ns;           /* the time of this clock: the sum of all parts that count */
} leati_patience;

/* A batch that may be late. */
typedef struct leati_watched {
    int64_t started_ns; /* when it was begun, by the real clock; it identifies the batch */
    int64_t since_ns;   /* when it was begun, by the watcher's clock */
} leati_watched;

/* Call leati_patience_sleep before a sleep of at most planned_ns, and leati_patience_wake after the sleep. */
static inline void leati_patience_sleep(leati_patience *patience, int64_t now_ns, int64_t planned_ns) {
    patience->slept_ns = now_ns;
    patience->planned_ns = planned_ns;
}
static inline void leati_patience_wake(leati_patience *patience, int64_t now_ns) {
    int64_t slept = now_ns - patience->slept_ns, most = patience->planned_ns + LEATI_PAUSE_NS;
    patience->last_ns = patience->planned_ns >= 0 && slept > most ? most : slept;
    patience->watched_ns += patience->last_ns;
}

/* Returns how long until the batch that was begun at started_ns is late; <= 0: it is late.  Call it after each sleep:
 * for a batch that was begun during the last sleep, a part of that sleep counts. */
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
