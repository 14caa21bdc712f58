/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with the same parent, in /proc.  Room: dist. */
#include "dist/siblings.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/os/process_stat.h"

static const int64_t longest_gap_ns = 1000000000; /* between two looks */

void leati_siblings_begin(leati_siblings *s) {
    *s = (leati_siblings){.parent = getppid(), .looked_ns = leati_now_ns()};
}

static bool is_stopped_sibling(const leati_siblings *s, pid_t pid) {
    leati_process_stat process;
    return pid != getpid() && leati_process_stat_read(&process, pid) && process.state == 'T' &&
           process.parent == s->parent;
}

static pid_t find(const leati_siblings *s) {
    pid_t found = 0;
    DIR *folder = opendir("/proc");
    if (!folder) return 0;
    for (const struct dirent *entry; found == 0 && (entry = readdir(folder));) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && is_stopped_sibling(s, pid)) found = pid;
    }
    (void)closedir(folder);
    return found;
}

pid_t leati_siblings_find_stopped(leati_siblings *s, int64_t timeout_ns) {
    const int64_t now = leati_now_ns();
    const bool was_away = now - s->looked_ns > longest_gap_ns;
    s->looked_ns = now;
    if (s->stopped == 0 || !is_stopped_sibling(s, s->stopped)) {
        s->stopped = find(s);
        s->since_ns = now;
    }
    if (was_away) s->since_ns = now;
    return s->stopped && now - s->since_ns >= timeout_ns ? s->stopped : 0;
}

bool leati_siblings_launcher_has_ended(const leati_siblings *s) {
    return getppid() != s->parent;
}
