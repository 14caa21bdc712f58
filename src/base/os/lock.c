/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of folders.  Room: base.
 *
 * A lock is a POSIX lock (fcntl): it belongs to the process, so that it ends with the process, and worker processes
 * that outlive the process do not hold it.  Two properties of POSIX locks need care.  They do not exclude threads of
 * the same process.  And as soon as the process closes any descriptor of the file, the lock is released.  Therefore
 * this file keeps a list of the locks of the process, and does not open a lock file that is in the list. */
#include "leat/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "base/os/fork.h"
#include "base/os/process_stat.h"

/* The line of a lock file: "leat lock: process 123 on HOST since 2026-11-23 06:00:49 UTC, start time 4567\n". */
#define LINE_BEGIN    "leat lock: "
#define PROCESS_BEGIN LINE_BEGIN "process "
#define LINE_END      ", start time "

enum { LINE_BYTES = 256, MOST_ATTEMPTS = 10 };

struct leat_lock {
    int fd;
    dev_t device; /* identifies the lock file together with inode */
    ino_t inode;
    pid_t
        process; /* the process that holds the lock; with the number of forks, since a pid can occur twice */
    uint32_t fork_depth;
    leat_lock *next;
};

/* The locks of the process and of the processes that it was forked from.  The list is static because POSIX locks
 * belong to the process.  `list_mutex` guards it, inside leati_fork_hold, so that no child inherits a locked mutex. */
static leat_lock *locks;
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;

static void begin_section(void) {
    leati_fork_hold();
    pthread_mutex_lock(&list_mutex);
}

static void end_section(void) {
    pthread_mutex_unlock(&list_mutex);
    leati_fork_release();
}

static bool is_own(const leat_lock *lock) {
    return lock->process == getpid() && lock->fork_depth == leati_fork_depth();
}

/* Returns true if this process holds a lock of the file. */
static bool is_held_here(const struct stat *file) {
    for (const leat_lock *lock = locks; lock; lock = lock->next)
        if (lock->device == file->st_dev && lock->inode == file->st_ino && is_own(lock)) return true;
    return false;
}

/* ---- The line in the file ---- */

static void read_line(int fd, char line[LINE_BYTES]) {
    ssize_t bytes = pread(fd, line, LINE_BYTES - 1, 0);
    line[bytes > 0 ? bytes : 0] = '\0';
}

/* The line only tells people who holds the lock, so a full disk is not an error. */
static void write_line(int fd) {
    char line[LINE_BYTES], host[65] = "", date[64] = "";
    leati_process_stat self = {0};
    time_t now = time(NULL);
    struct tm parts;
    (void)gethostname(host, sizeof host - 1);
    if (!gmtime_r(&now, &parts) || strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
        date[0] = '\0';
    (void)leati_process_stat_read(&self, getpid());
    int bytes = snprintf(line, sizeof line, PROCESS_BEGIN "%ld on %s since %s" LINE_END "%" PRIu64 "\n",
                         (long)getpid(), host, date, self.started);
    if (ftruncate(fd, 0) != 0 || leati_write_all(fd, line, (size_t)bytes, 0) != 0) (void)!ftruncate(fd, 0);
}

/* A file that is not empty must begin like a lock file, perhaps cut off by a full disk: leat does not overwrite a file
 * of somebody else. */
static leat_status check_line(int fd, const char *path, leat_error *err) {
    char line[LINE_BYTES];
    read_line(fd, line);
    size_t bytes = strlen(line), begin = sizeof LINE_BEGIN - 1;
    if (memcmp(line, LINE_BEGIN, bytes < begin ? bytes : begin) == 0) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "cannot lock the folder: expected that '%s' is absent or a lock file of leat, but it has other "
        "content; rename that file, or use another folder",
        path);
}

/* ---- Locking ---- */

static leat_status fail_held_here(const char *folder, leat_error *err) {
    return leati_fail(
        err, LEAT_EBUSY,
        "the folder '%s' is in use: this process (%ld) has locked it already; use another folder, or "
        "release the lock first",
        folder, (long)getpid());
}

static leat_status fail_held_elsewhere(int fd, const char *folder, leat_error *err) {
    char line[LINE_BYTES], holder[LINE_BYTES] = "another process";
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    read_line(fd, line);
    bool known = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid > 0;
    bool has_line = strncmp(line, PROCESS_BEGIN, sizeof PROCESS_BEGIN - 1) == 0;
    if (known) snprintf(holder, sizeof holder, "process %ld", (long)lock.l_pid);
    /* If the pids differ, a process that has died wrote the line.  The holder's pid is unknown here if the holder is
     * in another container or on another machine. */
    long in_line = has_line ? strtol(line + sizeof PROCESS_BEGIN - 1, NULL, 10) : 0;
    if (has_line && (!known || in_line == (long)lock.l_pid)) {
        char *end = strstr(line, LINE_END);
        if (end) *end = '\0';
        snprintf(holder, sizeof holder, "%s", line + sizeof LINE_BEGIN - 1);
    }
    return leati_fail(
        err, LEAT_EBUSY,
        "the folder '%s' is in use: %s holds its lock; wait until that process has ended, or end it, "
        "or use another folder",
        folder, holder);
}

static leat_status fail_to_open(const char *path, const char *folder, int error_number, leat_error *err) {
    struct stat info;
    if (stat(folder, &info) != 0)
        return leati_fail_errno(err, errno == ENOENT ? LEAT_ENOTFOUND : LEAT_EIO, errno,
                                "cannot lock the folder '%s'", folder);
    if (!S_ISDIR(info.st_mode))
        return leati_fail(err, LEAT_EINVAL, "cannot lock '%s': expected a folder, it is none", folder);
    return leati_fail_errno(err, LEAT_EIO, error_number,
                            "cannot lock the folder '%s': its file '%s' cannot be opened for writing", folder,
                            path);
}

static leat_status set_lock(int fd, const char *folder, leat_error *err) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int result;
    do result = fcntl(fd, F_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    if (result == 0) return LEAT_OK;
    if (errno == EACCES || errno == EAGAIN) return fail_held_elsewhere(fd, folder, err);
    return leati_fail_errno(
        err, LEAT_ENOTSUP, errno,
        "cannot lock the folder '%s': its file system gives no locks, so leat cannot prevent "
        "that two processes write into the folder; use a folder on another file system",
        folder);
}

/* Opens and locks the file.  *stale becomes true if somebody removed or replaced the file meanwhile. */
static leat_status lock_file(leat_lock *lock, const char *path, const char *folder, bool *stale,
                             leat_error *err) {
    struct stat info, now;
    *stale = false;
    if (stat(path, &info) == 0 && is_held_here(&info)) return fail_held_here(folder, err);
    lock->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (lock->fd < 0) return fail_to_open(path, folder, errno, err);
    if (fstat(lock->fd, &info) != 0)
        return leati_fail_errno(err, LEAT_EIO, errno, "cannot read the attributes of '%s'", path);
    if (!S_ISREG(info.st_mode))
        return leati_fail(err, LEAT_EINVAL, "cannot lock the folder: '%s' is not a regular file", path);
    LEATI_TRY(check_line(lock->fd, path, err));
    LEATI_TRY(set_lock(lock->fd, folder, err));
    lock->device = info.st_dev;
    lock->inode = info.st_ino;
    *stale = stat(path, &now) != 0 || now.st_dev != info.st_dev || now.st_ino != info.st_ino;
    return LEAT_OK;
}

static leat_status lock_path(leat_lock *lock, const char *path, const char *folder, leat_error *err) {
    bool stale = true;
    leat_status status = LEAT_OK;
    for (int attempt = 0; stale && status == LEAT_OK; ++attempt) {
        if (lock->fd >= 0) close(lock->fd);
        lock->fd = -1;
        if (attempt == MOST_ATTEMPTS)
            return leati_fail(err, LEAT_EIO, "cannot lock the folder '%s': somebody keeps removing '%s'",
                              folder, path);
        status = lock_file(lock, path, folder, &stale, err);
    }
    return status;
}

leat_status leat_folder_lock(leat_lock **out, const char *folder, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(folder, err);
    size_t bytes = strlen(folder) + sizeof "/lock";
    char *path = leati_calloc(bytes, 1);
    leat_lock *lock = leati_calloc(1, sizeof *lock);
    leat_status status = path && lock ? LEAT_OK : leati_fail_memory(err, bytes + sizeof *lock, "a lock");
    if (status == LEAT_OK) {
        *lock = (leat_lock){.fd = -1, .process = getpid(), .fork_depth = leati_fork_depth()};
        snprintf(path, bytes, "%s/lock", folder);
        begin_section();
        status = lock_path(lock, path, folder, err);
        if (status == LEAT_OK) {
            write_line(lock->fd);
            lock->next = locks;
            locks = lock;
            *out = lock;
        } else if (lock->fd >= 0)
            close(lock->fd);
        end_section();
    }
    if (status != LEAT_OK) leati_free(lock);
    leati_free(path);
    return status;
}

/* Closes the lock's descriptor, which releases this process's locks of the file.  In a child, a lock that is inherited
 * leaves its descriptor open if the child itself has locked the same file meanwhile. */
static void release(const leat_lock *lock) {
    struct stat file = {.st_dev = lock->device, .st_ino = lock->inode};
    if (is_own(lock))
        (void)!ftruncate(lock->fd, 0);
    else if (is_held_here(&file))
        return;
    close(lock->fd);
}

void leat_folder_unlock(leat_lock **lock) {
    if (!lock || !*lock) return;
    begin_section();
    release(*lock);
    for (leat_lock **at = &locks; *at; at = &(*at)->next) {
        if (*at != *lock) continue;
        *at = (*lock)->next;
        break;
    }
    end_section();
    leati_free(*lock);
    *lock = NULL;
}
