/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing the work of one kernel run among threads, in one fixed part per thread.  Which thread computes which
 * part is open (base/threads/thread_pool.h); the result does not depend on that.  A kernel that wants more parts
 * than threads calls leati_thread_pool_share() directly. */
#ifndef LEATI_NATIVE_SHARE_H
#define LEATI_NATIVE_SHARE_H

#include "engine/backend.h"

/* Returns a / b rounded up: the number of parts of size b that cover a. */
static inline int64_t leati_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Returns n rounded up to a multiple of unit. */
static inline int64_t leati_round_up(int64_t n, int64_t unit) {
    return leati_ceil_div(n, unit) * unit;
}

/* Returns the number of threads for `pieces` of work, of which each thread must have one: 1 to `most`. */
static inline int leati_threads_for(int64_t pieces, int most) {
    return pieces < 1 ? 1 : pieces < most ? (int)pieces : most;
}

/* Computes part t of a run. */
typedef void (*leati_part_run)(const leati_kernel *kernel, void *const *args, const leati_run *run, int t);

typedef struct leati_shared_run {
    leati_part_run part;
    const leati_kernel *kernel;
    void *const *args;
    const leati_run *run;
} leati_shared_run;

static inline void leati_run_part(void *of, int64_t task, int member) {
    const leati_shared_run *s = of;
    (void)member;
    s->part(s->kernel, s->args, s->run, (int)task);
}

static inline void leati_share(int threads, leati_part_run part, const leati_kernel *kernel,
                               void *const *args, const leati_run *run) {
    leati_shared_run shared = {.part = part, .kernel = kernel, .args = args, .run = run};
    leati_thread_pool_share(run->pool, threads, threads, leati_run_part, &shared);
}

#endif
