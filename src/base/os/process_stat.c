/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc/PID/stat.  Room: base. */
#include "base/os/process_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool leati_process_stat_read(leati_process_stat *out, pid_t pid) {
    char path[32], text[1024];
    ssize_t bytes;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    do bytes = read(fd, text, sizeof text - 1);
    while (bytes < 0 && errno == EINTR);
    close(fd);
    if (bytes <= 0) return false;
    text[bytes] = '\0';
    /* The second field is the program's name in parentheses, in which any character may be; the third field is the
     * state, the fourth is the parent, and the 22nd is the start time. */
    const char *field = strrchr(text, ')');
    if (!field || strlen(field) < 3) return false;
    out->state = field[2];
    out->parent = (pid_t)strtol(field + 3, NULL, 10);
    for (int number = 2; number < 22 && field; ++number) field = strchr(field + 1, ' ');
    out->started = field ? strtoull(field, NULL, 10) : 0;
    return field != NULL;
}

bool leati_process_is_stopped(pid_t pid) {
    leati_process_stat process;
    return leati_process_stat_read(&process, pid) && process.state == 'T';
}

size_t leati_process_private_bytes(void) {
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (bytes <= 0) return 0;
    text[bytes] = '\0';
    char *rest = text;
    strtoull(rest, &rest, 10); /* the size of the address space */
    unsigned long long resident = strtoull(rest, &rest, 10), shared = strtoull(rest, &rest, 10);
    if (resident < shared) return 0;
    return (size_t)(resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}
