/* SPDX-License-Identifier: Apache-2.0 */
/* The state, the parent and the start time of a process, which Linux shows in /proc/PID/stat.  Room: base. */
#ifndef LEATI_BASE_OS_PROCESS_STAT_H
#define LEATI_BASE_OS_PROCESS_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct leati_process_stat {
    char
        state; /* 'R' runs, 'S' or 'D' sleeps, 'T' stopped by a signal, 't' stopped by a debugger, 'Z' dead */
    pid_t parent;
    uint64_t
        started; /* clock ticks (sysconf(_SC_CLK_TCK)) from the start of the machine to that of the process */
} leati_process_stat;

/* Reads the state of a process.  Returns false if there is no such process, or no /proc. */
bool leati_process_stat_read(leati_process_stat *out, pid_t pid);

/* Returns the bytes of memory of this process that no other process maps, apart from copies that fork shares; 0 if
 * there is no /proc. */
size_t leati_process_private_bytes(void);

/* Returns true if the process is stopped by a signal such as SIGSTOP. */
bool leati_process_is_stopped(pid_t pid);

#endif
