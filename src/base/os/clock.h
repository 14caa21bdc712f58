/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time, and the number of cores that the process may use. */
#ifndef LEATI_BASE_OS_CLOCK_H
#define LEATI_BASE_OS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t leati_now_ns(void); /* monotonic: not affected when the wall clock is set */

/* The cores that the process may use. */
typedef struct leati_cores {
    int count;    /* the smaller of affinity and the quota rounded up; at least 1 */
    int affinity; /* cores on which the calling thread may run */
    double quota; /* CPUs that the process's control groups allow (base/os/cgroup.h); 0: no quota */
} leati_cores;

/* Both read files of /proc, which takes about 0.1 ms. */
leati_cores leati_cores_get(void);
int leati_core_count(void);

/* Like leati_cores_get(), but with a quota that the caller has read before: one system call. */
leati_cores leati_cores_within(double quota);

/* Writes "2 cores", or "2 cores (of 64: the control group's quota is 1.5 CPUs)".  Returns `out`. */
const char *leati_cores_text(char *out, size_t bytes, const leati_cores *cores);

#endif
