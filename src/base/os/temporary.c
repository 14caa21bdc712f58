/* SPDX-License-Identifier: Apache-2.0 */
/* Names of unfinished files, and the removal of those that a killed process has left.  Room: base. */
#include "base/os/temporary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/process_stat.h"
#include "leat/file.h"

#define MARK ".leat-"

void leati_temporary_name(char *out, const char *path, size_t kept, int attempt) {
    snprintf(out, kept + LEATI_TEMPORARY_SUFFIX_BYTES, "%.*s" MARK "%ld-%d.tmp", (int)kept, path,
             (long)getpid(), attempt);
}

/* Reads a number below `end`, as printf writes it, and moves *text behind it.  Returns -1 if there is none. */
static long read_number(const char **text, long end) {
    const char *begin = *text;
    long number = 0;
    for (; **text >= '0' && **text <= '9' && number < end; ++*text) number = 10 * number + (**text - '0');
    bool leading_zero = begin[0] == '0' && *text - begin > 1;
    return *text == begin || leading_zero || number >= end ? -1 : number;
}

pid_t leati_temporary_owner(const char *name) {
    const char *at = NULL;
    for (const char *mark = name; (mark = strstr(mark, MARK)); ++mark) at = mark;
    if (!at || at == name) return 0;
    at += sizeof MARK - 1;
    long process = read_number(&at, INT_MAX);
    if (process < 1 || *at++ != '-' || read_number(&at, LEATI_TEMPORARY_ATTEMPTS) < 0) return 0;
    return strcmp(at, ".tmp") == 0 ? (pid_t)process : 0;
}

/* ---- Removal ---- */

/* Returns when a process was started, by the clock of files, in s since 1970. */
static int64_t start_time(const leati_process_stat *process) {
    struct timespec since_boot, now;
    long ticks = sysconf(_SC_CLK_TCK);
    clock_gettime(CLOCK_BOOTTIME, &since_boot);
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec - (int64_t)since_boot.tv_sec +
           (int64_t)process->started / (ticks > 0 ? ticks : 100);
}

/* Returns true if another process may be writing the file.  A process that was started after the last change of the
 * file is not the process that made it, but has the same pid. */
static bool is_being_written(pid_t process, const struct stat *file) {
    enum { inexact_s = 2 }; /* start_time is computed from rounded times */
    leati_process_stat stat;
    if (process == getpid() || (kill(process, 0) != 0 && errno == ESRCH)) return false;
    if (!leati_process_stat_read(&stat, process)) return true;
    return stat.state != 'Z' && start_time(&stat) <= (int64_t)file->st_mtim.tv_sec + inexact_s;
}

/* Removes the file if it is an unfinished file that no process is writing.  Returns 0 or errno's value. */
static int clean_file(int folder, const char *name) {
    struct stat info;
    pid_t owner = leati_temporary_owner(name);
    if (owner == 0) return 0;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
    if (!S_ISREG(info.st_mode) || is_being_written(owner, &info)) return 0;
    return unlinkat(folder, name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

leat_status leat_folder_clean(const char *folder, leat_error *err) {
    leat_status status = LEAT_OK;
    LEATI_GIVEN(folder, err);
    DIR *directory = opendir(folder);
    if (!directory) {
        leat_status code = errno == ENOENT ? LEAT_ENOTFOUND : errno == ENOTDIR ? LEAT_EINVAL : LEAT_EIO;
        return leati_fail_errno(err, code, errno, "cannot read the folder '%s'", folder);
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(directory);
        int error_number = entry ? clean_file(dirfd(directory), entry->d_name) : errno;
        if (error_number && status == LEAT_OK)
            status =
                leati_fail_errno(err, LEAT_EIO, error_number, "cannot remove '%s/%s', an unfinished file",
                                 folder, entry ? entry->d_name : "*");
        if (!entry) break;
    }
    closedir(directory);
    return status;
}
