/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU time that the process's control groups allow: what a container was given.  Layer: base. */
#ifndef LEATI_BASE_OS_CGROUP_H
#define LEATI_BASE_OS_CGROUP_H

/* The least quota of the process's control group and of those above it, as far as they are mounted, in CPUs: 1.5 is 150 ms of
 * CPU time in 100 ms.  Reads cpu.max (version 2) and cpu.cfs_quota_us over cpu.cfs_period_us (version 1); where both versions
 * are mounted, the least of all.  0: there is no quota, or it cannot be read.
 * `root` stands before each path that is read: "" for the machine, another folder in tests. */
double leati_cgroup_cpus(const char *root);

#endif
