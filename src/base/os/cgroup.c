/* SPDX-License-Identifier: Apache-2.0 */
/* CPU quotas of control groups.  /proc/self/cgroup names the process's group in each hierarchy; /proc/self/mountinfo
 * names the folder where a hierarchy is mounted, and the group that is the root of the mount (proc(5), cgroups(7)).
 * Room: base. */
#include "base/os/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    path_bytes = 1024
}; /* longer paths, and lines of more than twice as many bytes, are skipped: no container has them */

typedef struct quota_search {
    const char *root;
    char group[2][path_bytes]; /* the process's group, indexed by version - 1; "": none */
    double smallest;           /* smallest quota so far, in CPUs; 0: none */
} quota_search;

/* Reads the next line that fits, without its line break; returns false at the end of the file. */
static bool next_line(FILE *file, char *line, int bytes) {
    bool at_line_start = true;
    while (fgets(line, bytes, file)) {
        char *end = strchr(line, '\n');
        bool ends = end != NULL || feof(file);
        if (end) *end = '\0';
        if (ends && at_line_start) return true;
        at_line_start = ends;
    }
    return false;
}

static FILE *open_below(const char *root, const char *path) {
    char full[2 * path_bytes];
    if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full) return NULL;
    return fopen(full, "re");
}

/* Returns true if the list, whose words are separated by commas, contains the word. */
static bool list_contains(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    }
    return false;
}

/* Sets s->group.  A line of the file is "id:controllers:path"; version 2 has the id 0 and no controllers. */
static void find_groups(quota_search *s) {
    char line[2 * path_bytes];
    FILE *file = open_below(s->root, "/proc/self/cgroup");
    while (file && next_line(file, line, sizeof line)) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || path[1] != '/' || strlen(path + 1) >= path_bytes) continue;
        *controllers++ = *path++ = '\0';
        bool is_v2 = strcmp(line, "0") == 0 && *controllers == '\0';
        if (is_v2 || list_contains(controllers, "cpu")) snprintf(s->group[is_v2], path_bytes, "%s", path);
    }
    if (file) fclose(file);
}

/* Reads up to two integers from the first line of a file; returns how many it read. */
static int read_numbers(const quota_search *s, const char *folder, const char *name, int64_t numbers[2]) {
    char path[path_bytes + 32], line[128];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
    FILE *file = open_below(s->root, path);
    int count = 0;
    if (file && next_line(file, line, sizeof line)) {
        char *at = line, *end = line;
        for (; count < 2; at = end) {
            numbers[count] = strtoll(at, &end, 10);
            if (end == at) break;
            ++count;
        }
    }
    if (file) fclose(file);
    return count;
}

/* Reads the quota of one group's folder.  "max 100000" (version 2) and -1 (version 1) mean that there is none. */
static void read_quota(quota_search *s, const char *folder, bool is_v2) {
    int64_t numbers[2], period[2];
    int count = read_numbers(s, folder, is_v2 ? "cpu.max" : "cpu.cfs_quota_us", numbers);
    if (!is_v2 && count == 1 && read_numbers(s, folder, "cpu.cfs_period_us", period) == 1) {
        numbers[1] = period[0];
        count = 2;
    }
    if (count < 2 || numbers[0] <= 0 || numbers[1] <= 0) return;
    double cpus = (double)numbers[0] / (double)numbers[1];
    if (s->smallest == 0 || cpus < s->smallest) s->smallest = cpus;
}

/* Reads the quotas of the group's folder and of each folder above it, up to the one where the
 * hierarchy is mounted. */
static void read_quotas_upwards(quota_search *s, const char *mount, const char *path, bool is_v2) {
    char folder[path_bytes];
    size_t mount_length = strlen(mount);
    if (snprintf(folder, sizeof folder, "%s%s", mount, path) >= (int)sizeof folder) return;
    for (;;) {
        read_quota(s, folder, is_v2);
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= mount_length || !slash || (size_t)(slash - folder) < mount_length) return;
        *slash = '\0';
    }
}

/* Undoes mountinfo's octal escapes: "\040" is a blank. */
static void unescape(char *text) {
    char *to = text;
    for (const char *from = text; *from; ++to) {
        bool escaped = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
                       from[2] <= '7' && from[3] >= '0' && from[3] <= '7';
        *to = escaped ? (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + from[3] - '0') : *from;
        from += escaped ? 4 : 1;
    }
    *to = '\0';
}

/* Returns the group's path relative to the root of the mount.  In a container, the group may have its path on the
 * host, although the root of the mount is this group; the result is then "". */
static const char *path_below_root(const char *group, const char *root) {
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strstr(group, "/..")) return ""; /* outside of the namespace */
    if (strncmp(group, root, length) != 0 || (group[length] != '/' && group[length] != '\0')) return "";
    return strcmp(group + length, "/") == 0 ? "" : group + length;
}

/* Reads the quotas of one mount.  The line is "id parent device root mount options [...] - type source
 * super-options". */
static void read_mount(quota_search *s, char *line) {
    char *rest = strstr(line, " - "), *next = NULL, *fields[8] = {0};
    if (!rest) return;
    *rest = '\0';
    char *word = strtok_r(line, " ", &next);
    for (int i = 0; i < 5 && word; word = strtok_r(NULL, " ", &next)) fields[i++] = word;
    word = strtok_r(rest + 3, " ", &next);
    for (int i = 5; i < 8 && word; word = strtok_r(NULL, " ", &next)) fields[i++] = word;
    if (!fields[4] || !fields[7]) return;
    bool is_v2 = strcmp(fields[5], "cgroup2") == 0;
    if (!is_v2 && (strcmp(fields[5], "cgroup") != 0 || !list_contains(fields[7], "cpu"))) return;
    if (!s->group[is_v2][0]) return;
    unescape(fields[3]);
    unescape(fields[4]);
    read_quotas_upwards(s, fields[4], path_below_root(s->group[is_v2], fields[3]), is_v2);
}

double leati_cgroup_cpus(const char *root) {
    char line[2 * path_bytes];
    quota_search s = {.root = root};
    find_groups(&s);
    FILE *file = s.group[0][0] || s.group[1][0] ? open_below(root, "/proc/self/mountinfo") : NULL;
    while (file && next_line(file, line, sizeof line)) read_mount(&s, line);
    if (file) fclose(file);
    return s.smallest;
}
