/* SPDX-License-Identifier: Apache-2.0 */
/* Work shared by threads.  An OpenMP region is entered where there are several alone: one for a single thread still makes a
 * team, and a system call. */
#ifndef LEATI_NATIVE_SHARE_H
#define LEATI_NATIVE_SHARE_H

#include "engine/backend.h"

/* What thread t does of a run. */
typedef void (*leati_part_run)(const leati_kernel *kernel, void *const *args, const leati_run *run, int t);

static inline void leati_share(int threads, leati_part_run part, const leati_kernel *kernel,
                               void *const *args, const leati_run *run) {
    if (threads == 1) {
        part(kernel, args, run, 0);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++) part(kernel, args, run, t);
}

#endif
