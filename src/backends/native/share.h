/* SPDX-License-Identifier: Apache-2.0 */
/* Work in fixed parts, one for each thread that a kernel counts on.  Who does which is open (base/threads/thread_pool.h); what comes out
 * is not.  Work in more parts than threads calls leati_thread_pool_share itself. */
#ifndef LEATI_NATIVE_SHARE_H
#define LEATI_NATIVE_SHARE_H

#include "engine/backend.h"

/* Part t of a run. */
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
