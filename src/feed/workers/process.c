/* SPDX-License-Identifier: Apache-2.0 */
/* Forks the helper from the caller's process, and waits for its end.  Room: feed. */
#define _GNU_SOURCE /* syscall, NSIG */
#include "feed/workers/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "base/os/process_stat.h"
#include "base/os/signals.h"
#include "feed/workers/launch.h"

int leati_pidfd_open(pid_t pid) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    errno = ENOSYS;
    return -1;
#endif
}

static void do_nothing(int number) {
    (void)number;
}

/* Sets a handler that does nothing.  It does not set SIG_IGN, because a program that `get` starts would inherit SIG_IGN
 * and could not be interrupted.  A signal that the caller ignores stays ignored. */
static void install_empty_handler(int number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) return;
    action = (struct sigaction){.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    sigaction(number, &action, NULL);
}

void leati_processes_reset_signals(void) {
    static const int caller_signals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2};
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action;
        bool keep = sigaction(number, NULL, &action) != 0 || action.sa_handler == SIG_DFL ||
                    action.sa_handler == SIG_IGN || leati_is_fault(number) || number == SIGABRT;
        if (!keep) signal(number, SIG_DFL);
    }
    for (size_t i = 0; i < sizeof caller_signals / sizeof *caller_signals; ++i)
        install_empty_handler(caller_signals[i]);
    signal(SIGCHLD, SIG_DFL); /* If SIGCHLD is ignored, the exit status of workers is lost. */
}

/* Discards the unwritten output in the buffers of stdio: the caller will write it, and the copy must not be written,
 * too. */
static void drop_unwritten_output(void) {
    __fpurge(stdout);
    __fpurge(stderr);
}

static void share_mappings(const leati_pool_work *work, bool share) {
    leati_worker_table_inherit(&work->table, share);
    for (int i = 0; i < work->count; ++i) leati_service_inherit(work->services[i], share);
}

/* Forks the helper.  fork() runs the handlers of base/os/fork.c, which end the OpenMP threads of this thread, because
 * the helper would not have them.  Parallel regions of the workers start their own threads. */
static leat_status fork_helper(leati_helper *helper, leat_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    share_mappings(helper->work, true);
    pid_t pid = fork();
    int failed = pid < 0 ? errno : 0;
    if (pid == 0) {
        leati_descriptors_close(&helper->descriptors, (int[]){helper->control, helper->caller_pidfd});
        drop_unwritten_output();
        leati_processes_reset_signals();
        leati_mask_restore(&before);
        leati_mask_no_faults(NULL);
        _exit(leati_helper_run(helper));
    }
    share_mappings(helper->work, false);
    leati_mask_restore(&before);
    if (failed)
        return leati_fail_errno(err, LEAT_EIO, failed, "cannot fork the helper of the worker processes");
    helper->pid = pid;
    return LEAT_OK;
}

leat_status leati_processes_prepare(leati_helper *helper, leati_pool_work *work, leat_error *err) {
    size_t count = (size_t)work->table.count;
    if (helper->workers) return LEAT_OK; /* They were allocated for an earlier helper. */
    helper->children = leati_calloc(count, sizeof *helper->children);
    helper->watched = leati_calloc(count + 2, sizeof *helper->watched);
    helper->workers = leati_calloc(count, sizeof *helper->workers);
    helper->worker_count = (int)count;
    if (!helper->children || !helper->watched || !helper->workers)
        return leati_fail_memory(err, count * (sizeof *helper->children + sizeof *helper->watched),
                                 "the helper's table of workers");
    helper->work = work;
    for (int i = 0; i < helper->worker_count; ++i)
        LEATI_TRY(leati_worker_init(&helper->workers[i], work, i, err));
    return LEAT_OK;
}

static void close_descriptor(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* Starts the helper program.  It maps the rings by descriptors: no process that the caller forks needs the mappings. */
static leat_status launch_helper(leati_helper *helper, leat_error *err) {
    share_mappings(helper->work, false);
    atomic_store(&helper->work->table.shared->helper_runs, 0);
    atomic_store(&helper->work->table.shared->helper_renews, 0);
    return leati_launch(helper, err);
}

leat_status leati_processes_start(leati_helper *helper, leati_pool_work *work, leat_error *err) {
    LEATI_TRY(leati_processes_prepare(helper, work, err));
    for (int i = 0; i < work->table.count; ++i) {
        atomic_store(&work->table.workers[i].phase, LEATI_WORKER_STARTING);
        atomic_store(&work->table.workers[i].pid, 0);
    }
    helper->generation = atomic_load(&work->table.shared->generation);
    helper->caller = getpid();
    helper->caller_pidfd = leati_pidfd_open(helper->caller);
    if (helper->caller_pidfd < 0 && errno != ENOSYS && errno != EPERM)
        return leati_fail_errno(err, LEAT_EIO, errno,
                                "cannot make a descriptor of this process for its helper");
    helper->control = eventfd(0, EFD_CLOEXEC);
    leat_status status = LEAT_OK;
    if (helper->control < 0)
        status = leati_fail_errno(err, LEAT_EIO, errno, "cannot make the helper's control descriptor");
    if (status == LEAT_OK) status = helper->command ? launch_helper(helper, err) : fork_helper(helper, err);
    close_descriptor(&helper->caller_pidfd);
    if (status != LEAT_OK) close_descriptor(&helper->control);
    return status;
}

static void write_control(const leati_helper *helper, uint64_t value) {
    while (write(helper->control, &value, sizeof value) < 0 && errno == EINTR) continue;
}

bool leati_processes_renew(leati_helper *helper, leati_pool_work *work) {
    if (!helper->command || helper->pid == 0 || !atomic_load(&work->table.shared->helper_renews))
        return false;
    leati_worker_table_retire(&work->table);
    helper->generation = atomic_load(&work->table.shared->generation);
    if (leati_launch_again(helper, NULL) != LEAT_OK) return false;
    write_control(helper, LEATI_CONTROL_RENEW);
    return true;
}

leat_status leati_processes_check(leati_helper *helper, leat_error *err) {
    siginfo_t how = {0};
    int result = waitid(P_PID, (id_t)helper->pid, &how, WEXITED | WNOHANG | WNOWAIT);
    bool reaped_by_others = result != 0 && errno == ECHILD && kill(helper->pid, 0) != 0;
    if (!reaped_by_others && (result != 0 || how.si_pid == 0)) return LEAT_OK;
    if (reaped_by_others)
        return leati_fail(err, LEAT_EWORKER, "the helper process %d is gone, and the workers with it",
                          (int)helper->pid);
    bool by_signal = how.si_code != CLD_EXITED;
    return leati_fail(err, LEAT_EWORKER, "the helper process %d %s %d, and the workers are gone with it",
                      (int)helper->pid, by_signal ? "was killed by signal" : "exited with status",
                      how.si_status);
}

/* Kills the helper and its workers.  A worker is killed by the helper's death only after it has asked for that, and one
 * that was stopped as soon as it was forked has not asked yet. */
static bool kill_with_workers(const leati_helper *helper) {
    const leati_worker_table *table = &helper->work->table;
    for (int i = 0; i < table->count; ++i) {
        pid_t pid = (pid_t)atomic_load(&table->workers[i].pid);
        if (pid > 0) kill(pid, SIGKILL);
    }
    return kill(helper->pid, SIGKILL) == 0;
}

/* Waits for the workers of a helper that was killed.  The caller is not their parent. */
static void await_orphans(const leati_worker_table *table) {
    for (int i = 0; i < table->count; ++i) {
        pid_t pid = (pid_t)atomic_load(&table->workers[i].pid);
        for (int tries = 0; pid > 0 && tries < 5000 && kill(pid, 0) == 0; ++tries) {
            if (waitpid(pid, NULL, WNOHANG) == pid) break; /* The caller is init or a subreaper. */
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
}

/* Sleeps until the helper has ended, but not for longer than LEATI_PATIENCE_TICK_NS. */
static void sleep_until_ended(int pidfd) {
    struct pollfd watched = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0 || (poll(&watched, 1, LEATI_PATIENCE_TICK_NS / 1000000) < 0 && errno != EINTR))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Waits for the end of the helper, which kills workers that do not exit.  Kills the helper and its workers if it is
 * stopped, or takes longer than it may.  Time during which this process is stopped does not count.  Returns the result
 * of waitpid. */
static pid_t await_helper(const leati_helper *helper, int *status) {
    leati_patience patience = {0};
    int64_t stopped_ns = 0;
    bool killed = false;
    pid_t reaped;
    int pidfd = leati_pidfd_open(helper->pid);
    while ((reaped = waitpid(helper->pid, status, WNOHANG)) == 0 || (reaped < 0 && errno == EINTR)) {
        leati_patience_sleep(&patience, leati_now_ns(), LEATI_PATIENCE_TICK_NS);
        sleep_until_ended(pidfd);
        leati_patience_wake(&patience, leati_now_ns());
        stopped_ns = leati_process_is_stopped(helper->pid) ? stopped_ns + patience.last_ns : 0;
        bool overdue =
            stopped_ns > LEATI_STOPPED_PATIENCE_NS ||
            patience.watched_ns > 2 * LEATI_EXIT_PATIENCE_NS; /* the helper's patience, and as much more */
        /* A program that is still beginning does not look at its control descriptor. */
        if (helper->command && !atomic_load(&helper->work->table.shared->helper_runs)) overdue = true;
        if (overdue && !killed) killed = kill_with_workers(helper);
    }
    if (pidfd >= 0) close(pidfd);
    return reaped;
}

void leati_processes_dismiss(leati_helper *helper, const leati_worker_table *table) {
    if (helper->pid == 0) return;
    write_control(helper, LEATI_CONTROL_EXIT);
    int status = 0;
    pid_t reaped = await_helper(helper, &status);
    if (reaped != helper->pid || !WIFEXITED(status)) await_orphans(table);
    helper->pid = 0;
    close_descriptor(&helper->control);
    if (helper->command) close_descriptor(&helper->record);
}

void leati_processes_fini(leati_helper *helper) {
    for (int i = 0; helper->workers && i < helper->worker_count; ++i) leati_worker_fini(&helper->workers[i]);
    leati_free(helper->workers);
    leati_free(helper->children);
    leati_free(helper->watched);
    leati_free(helper->passed);
    leati_descriptors_fini(&helper->descriptors);
    *helper = (leati_helper){0};
}
