/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time and the number of usable cores.  Layer: base. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/clock.h"

#include <sched.h>
#include <time.h>

int64_t leati_now_ns(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int leati_core_count(void) {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
    int count = CPU_COUNT(&cores);
    return count < 1 ? 1 : count;
}
