/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU quota of the process's control groups, which is how containers limit CPU time.  Room: base. */
#ifndef LEATI_BASE_OS_CGROUP_H
#define LEATI_BASE_OS_CGROUP_H

/* Returns the smallest quota, in CPUs, of the process's control group and the mounted groups above it: 1.5 means 150
 * ms of CPU time in each 100 ms.  Returns 0 if there is no quota or it cannot be read.  Reads cpu.max (version 2 of
 * control groups) and cpu.cfs_quota_us and cpu.cfs_period_us (version 1), and takes the smallest of all if both
 * versions are mounted.  `root` is put in front of each path: "" for the machine, another folder in tests. */
double leati_cgroup_cpus(const char *root);

#endif
