/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/stat, which has a line for each core with the columns user, nice, system, idle, iowait, irq, softirq
 * and steal, in ticks.  Room: train. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "train/history/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { columns = 8, idle = 3, iowait = 4 };

/* Returns the ticks that the line's core was in use; 0 for lines of no core, and for cores not in `mine`. */
static int64_t ticks_of(const char *line, const cpu_set_t *mine) {
    char *next = NULL;
    int64_t used = 0;
    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9') return 0;
    unsigned long core = strtoul(line + 3, &next, 10);
    if (core >= CPU_SETSIZE || !CPU_ISSET(core, mine)) return 0;
    for (int i = 0; i < columns; ++i) {
        int64_t ticks = strtoll(next, &next, 10);
        if (i != idle && i != iowait) used += ticks;
    }
    return used;
}

bool leati_cores_used_ns(int64_t *out) {
    char line[512];
    cpu_set_t mine;
    int64_t used = 0, hertz = sysconf(_SC_CLK_TCK);
    if (hertz < 1 || sched_getaffinity(0, sizeof mine, &mine) != 0) return false;
    FILE *file = fopen("/proc/stat", "re");
    if (!file) return false;
    while (fgets(line, sizeof line, file)) used += ticks_of(line, &mine);
    fclose(file);
    *out = used * (1000000000 / hertz);
    return used > 0;
}
