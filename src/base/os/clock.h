/* SPDX-License-Identifier: Apache-2.0 */
/* Time and cores, as the machine counts them. */
#ifndef LEATI_BASE_OS_CLOCK_H
#define LEATI_BASE_OS_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t leati_now_ns(void); /* monotonic; a set-back of the wall clock does not touch it */

/* The cores that the process may use. */
typedef struct leati_cores {
    int count;    /* the lesser of the following, a part of a core counted as one; at least 1 */
    int affinity; /* cores on which the calling thread may run */
    double quota; /* CPUs that its control groups allow (base/os/cgroup.h); 0: no quota */
} leati_cores;

/* Reads some files of /proc, which takes about 0.1 ms. */
leati_cores leati_cores_get(void);
int leati_core_count(void);

/* The same with a quota that was read earlier: one system call. */
leati_cores leati_cores_within(double quota);

/* "2 cores", or "2 cores (of 64: the control group's quota is 1.5 CPUs)".  Returns `out`. */
const char *leati_cores_text(char *out, size_t bytes, const leati_cores *cores);

#endif
