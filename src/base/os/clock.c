/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time and the number of usable cores.  Room: base. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/os/clock.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "base/os/cgroup.h"

int64_t leati_now_ns(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

leati_cores leati_cores_within(double quota) {
    cpu_set_t mask;
    leati_cores cores = {.affinity = 1, .quota = quota};
    if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0)
        cores.affinity = CPU_COUNT(&mask);
    cores.count = cores.affinity;
    if (quota > 0 && ceil(quota) < cores.count) cores.count = (int)ceil(quota);
    return cores;
}

leati_cores leati_cores_get(void) {
    return leati_cores_within(leati_cgroup_cpus(""));
}

int leati_core_count(void) {
    return leati_cores_get().count;
}

const char *leati_cores_text(char *out, size_t bytes, const leati_cores *cores) {
    int used = snprintf(out, bytes, "%d core%s", cores->count, cores->count == 1 ? "" : "s");
    if (cores->count < cores->affinity && used > 0 && (size_t)used < bytes)
        snprintf(out + used, bytes - (size_t)used, " (of %d: the control group's quota is %.3g CPUs)",
                 cores->affinity, cores->quota);
    return out;
}
