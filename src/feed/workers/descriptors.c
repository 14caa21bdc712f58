/* SPDX-License-Identifier: Apache-2.0 */
/* Closes the caller's descriptors in the helper.  Room: feed. */
#define _GNU_SOURCE /* syscall */
#include "feed/workers/descriptors.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

leat_status leati_descriptors_add(leati_descriptors *descriptors, const leat_feed_options *options,
                                  leat_error *err) {
    if (!options->close_descriptors) descriptors->keep_all = true;
    int added = options->close_descriptors ? options->kept_descriptor_count : 0;
    size_t room = (size_t)descriptors->count + (size_t)added + LEATI_CUSTOM_DESCRIPTORS;
    int *kept = leati_realloc(descriptors->kept, room, sizeof *kept);
    if (!kept) return leati_fail_memory(err, room * sizeof *kept, "a list of descriptors");
    if (added) memcpy(kept + descriptors->count, options->kept_descriptors, (size_t)added * sizeof *kept);
    descriptors->kept = kept;
    descriptors->count += added;
    return LEAT_OK;
}

/* Returns the lowest descriptor that is kept, at least `from`; INT_MAX if there is none. */
static int next_kept(const leati_descriptors *descriptors, int from) {
    int next = INT_MAX;
    for (int i = 0; i < descriptors->count; ++i)
        if (descriptors->kept[i] >= from && descriptors->kept[i] < next) next = descriptors->kept[i];
    return next;
}

static bool close_range_between(int first, int last) {
#ifdef SYS_close_range
    return syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0) == 0;
#else
    return false;
#endif
}

/* Closes the descriptors that /proc lists, for Linux before 5.9, which has no close_range. */
static void close_listed(const leati_descriptors *descriptors) {
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        long fd = strtol(entry->d_name, NULL, 10);
        if (fd > STDERR_FILENO && fd != dirfd(folder) && next_kept(descriptors, (int)fd) != fd)
            close((int)fd);
    }
    closedir(folder);
}

void leati_descriptors_close(leati_descriptors *descriptors,
                             const int helper_descriptors[LEATI_CUSTOM_DESCRIPTORS]) {
    if (descriptors->keep_all) return;
    for (int i = 0; i < LEATI_CUSTOM_DESCRIPTORS; ++i)
        if (helper_descriptors[i] >= 0) descriptors->kept[descriptors->count++] = helper_descriptors[i];
    bool closed = true;
    for (int first = STDERR_FILENO + 1, kept = 0; closed && kept < INT_MAX; first = kept + 1) {
        kept = next_kept(descriptors, first);
        if (kept > first) closed = close_range_between(first, kept - 1);
        if (kept == INT_MAX) break;
    }
    if (!closed) close_listed(descriptors);
}

void leati_descriptors_fini(leati_descriptors *descriptors) {
    leati_free(descriptors->kept);
    *descriptors = (leati_descriptors){0};
}
