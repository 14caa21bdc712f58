/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines that a pause of the watcher itself does not use up: after a stopped program goes on, what its watcher then
 * finds late has not been running either. */
#ifndef LEATI_FEED_PATIENCE_H
#define LEATI_FEED_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* So much later than asked for, a sleep has not just been delayed by a busy machine. */
#define LEATI_PAUSE_NS 50000000

typedef struct leati_patience {
    int64_t wake_ns;    /* when the watcher meant to wake; 0: whenever */
    int64_t resumed_ns; /* when it last found itself late */
} leati_patience;

/* Before a sleep of at most sleep_ns (< 0: any length), and after it. */
static inline void leati_patience_sleep(leati_patience *patience, int64_t now_ns, int64_t sleep_ns) {
    patience->wake_ns = sleep_ns < 0 ? 0 : now_ns + sleep_ns;
}
static inline void leati_patience_wake(leati_patience *patience, int64_t now_ns) {
    if (patience->wake_ns && now_ns > patience->wake_ns + LEATI_PAUSE_NS) patience->resumed_ns = now_ns;
    patience->wake_ns = 0;
}

/* How long until a batch that was begun then is late; <= 0: it is. */
static inline int64_t leati_patience_left(const leati_patience *patience, int64_t started_ns,
                                          int64_t deadline_ns, int64_t now_ns) {
    int64_t from = started_ns > patience->resumed_ns ? started_ns : patience->resumed_ns;
    return from + deadline_ns - now_ns;
}

#endif
