/* SPDX-License-Identifier: Apache-2.0 */
/* The attempt of a run.  Room: cli. */
#include "cli/run/attempt.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { path_bytes = 4096, name_bytes = 256 };

json_t *cli_attempt_json(void) {
    return json_pack("{s:I, s:I}", "process", (json_int_t)getpid(), "since_s", (json_int_t)time(NULL));
}

/* Moves *text behind the prefix and the digits that follow it, and gives their number. */
static bool read_number(const char **text, const char *prefix, int64_t *out) {
    size_t length = strlen(prefix);
    char *end = NULL;
    if (strncmp(*text, prefix, length) != 0 || (*text)[length] < '0' || (*text)[length] > '9') return false;
    *out = strtoll(*text + length, &end, 10);
    *text = end;
    return true;
}

/* Returns true for the name of an event file that the process has begun at `since` or later, in s since 1970.  Another
 * run, whose process had the same pid earlier, may have files in the same folder. */
static bool is_of_process(const char *name, int64_t process, int64_t since) {
    int64_t seconds = 0, writer = 0, number = 0;
    return read_number(&name, "events.out.tfevents.", &seconds) && read_number(&name, ".leat.", &writer) &&
           read_number(&name, ".", &number) && strcmp(name, ".v2") == 0 && writer == process &&
           seconds >= since;
}

static void remove_events(const char *folder, int64_t process, int64_t since) {
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (const struct dirent *entry; (entry = readdir(directory));)
        if (is_of_process(entry->d_name, process, since)) (void)unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
}

void cli_attempt_remove_events(const json_t *attempt, const char *log_dir) {
    static const char *const runs[] = {"train", "validation"};
    const json_t *process = json_object_get(attempt, "process"), *since = json_object_get(attempt, "since_s");
    if (!json_is_integer(process) || !json_is_integer(since)) return;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; ++i) {
        char folder[path_bytes + name_bytes];
        snprintf(folder, sizeof folder, "%.*s/%s", path_bytes, log_dir, runs[i]);
        remove_events(folder, json_integer_value(process), json_integer_value(since));
    }
}
