/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's loop: fork workers, watch them through pidfds, replace the dead, leave when told or when the caller is
 * gone.  Layer: feed.
 *
 * A worker may die anywhere, with any status; only the ring says whether it was to leave.  The slot that it had claimed
 * keeps its number, and its replacement makes that batch first, under the same index and seed. */
#include "feed/helper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "feed/threads.h"

#define MOST_DEATHS       3  /* on one batch */
#define MOST_EARLY_DEATHS 10 /* in a row, of one worker before it ever asked for a batch */
#define NO_PIDFD_MS       20 /* how often to look where the kernel tells no deaths */

enum { WATCH_CONTROL, WATCH_CALLER, WATCH_CHILDREN };

static bool told_to_leave(const leati_helper *helper) {
    const leati_ring_shared *shared = helper->worker.ring->shared;
    return atomic_load(&shared->stop) || atomic_load(&shared->generation) != helper->worker.generation;
}

/* A worker process, from its first instruction on. */
static int worker_main(const leati_helper *helper, int number, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the helper's only thread is the parent, so this means the process */
    if (getppid() != parent) return 1;
    leati_name_worker(number);
    leati_worker worker = helper->worker;
    worker.number = number;
    leati_worker_entry *entry = &worker.ring->workers[number];
    atomic_store(&entry->sleeping, 0); /* of the one before */
    leat_error err = {0};
    if (leati_worker_run(&worker, &err) == LEAT_OK) return 0;
    entry->error = err;
    atomic_store(&entry->phase, LEATI_WORKER_REFUSED);
    return 1;
}

static void fail_feed(const leati_helper *helper, const leat_error *err) {
    leati_ring_fail(helper->worker.ring, err);
}

static void spawn(leati_helper *helper, int number) {
    leati_child *child = &helper->children[number];
    leati_worker_entry *entry = &helper->worker.ring->workers[number];
    pid_t self = getpid(), pid = -1;
    atomic_store(&entry->phase, LEATI_WORKER_STARTING);
    for (int tries = 0; tries < 10 && (pid = fork()) < 0 && errno == EAGAIN; ++tries)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (pid == 0) _exit(worker_main(helper, number, self));
    if (pid < 0) {
        leat_error err = {0};
        leati_fail_errno(&err, LEAT_EIO, errno, "cannot fork worker process %d of %d", number,
                         helper->worker.ring->worker_count);
        fail_feed(helper, &err);
        return;
    }
    child->pid = pid;
    child->pidfd = leati_pidfd_open(pid);
    atomic_store(&entry->pid, (int32_t)pid);
}

/* What a user can do about it. */
static void describe_death(char *text, size_t bytes, int status) {
    static const struct {
        int signal;
        const char *text;
    } known[] = {
        {SIGKILL, "SIGKILL: where nobody sent it, the kernel's OOM killer did, see dmesg"},
        {SIGSEGV, "SIGSEGV: a bug in get, or in what it calls"},
        {SIGBUS, "SIGBUS: memory that could not be had, or a mapped file that was cut short"},
        {SIGABRT, "SIGABRT: a failed assertion or a damaged heap"},
        {SIGFPE, "SIGFPE: an integer division by zero"},
        {SIGILL, "SIGILL: an instruction that this CPU does not have"},
        {SIGXCPU, "SIGXCPU: the limit of CPU time"},
    };
    if (WIFEXITED(status)) {
        snprintf(text, bytes, "exited with status %d: get must return, not exit", WEXITSTATUS(status));
        return;
    }
    int number = WTERMSIG(status);
    snprintf(text, bytes, "was killed by signal %d", number);
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if (known[i].signal == number)
            snprintf(text, bytes, "was killed by signal %d (%s)", number, known[i].text);
}

/* The batch that the worker had in hand is made again, unless it has cost too many. */
static void count_death_on_batch(const leati_helper *helper, leati_slot *slot, int status) {
    if (++slot->deaths < MOST_DEATHS) return;
    char how[160];
    describe_death(how, sizeof how, status);
    slot->get_ns = 0;
    slot->status = leati_fail(&slot->error, LEAT_EWORKER, "%u worker processes died making it; the last %s",
                              (unsigned)slot->deaths, how);
    leati_ring_publish(helper->worker.ring, slot);
}

static void count_early_death(leati_helper *helper, int number, int status) {
    leati_child *child = &helper->children[number];
    leati_worker_entry *entry = &helper->worker.ring->workers[number];
    uint32_t phase = atomic_load(&entry->phase);
    if (phase == LEATI_WORKER_REFUSED) fail_feed(helper, &entry->error);
    child->early_deaths = phase == LEATI_WORKER_STARTING ? child->early_deaths + 1 : 0;
    if (child->early_deaths < MOST_EARLY_DEATHS) return;
    char how[160];
    leat_error err = {0};
    describe_death(how, sizeof how, status);
    leati_fail(&err, LEAT_EWORKER,
               "worker process %d died %d times before its first batch; the last time it %s", number,
               child->early_deaths, how);
    fail_feed(helper, &err);
}

static void on_death(leati_helper *helper, int number, int status) {
    leati_ring *ring = helper->worker.ring;
    leati_child *child = &helper->children[number];
    if (child->pidfd >= 0) close(child->pidfd);
    child->pidfd = -1;
    child->pid = 0;
    atomic_store(&ring->workers[number].pid, 0);
    if (told_to_leave(helper)) return;
    atomic_fetch_add(&ring->shared->deaths, 1);
    leati_slot *slot = leati_ring_claimed_by(ring, number);
    if (slot) count_death_on_batch(helper, slot, status);
    count_early_death(helper, number, status);
    leati_ring_nudge_consumer(ring);
    if (!atomic_load(&ring->shared->failed)) spawn(helper, number);
}

static void reap(leati_helper *helper) {
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < helper->worker.ring->worker_count; ++i)
            if (helper->children[i].pid == pid) {
                on_death(helper, i, status);
                break;
            }
}

static int live_children(const leati_helper *helper) {
    int live = 0;
    for (int i = 0; i < helper->worker.ring->worker_count; ++i) live += helper->children[i].pid > 0;
    return live;
}

static void kill_all(const leati_helper *helper) {
    for (int i = 0; i < helper->worker.ring->worker_count; ++i)
        if (helper->children[i].pid > 0) kill(helper->children[i].pid, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) continue;
}

/* Sleeps until something happens.  False when the caller is gone. */
static bool watch(leati_helper *helper, bool leaving) {
    int count = helper->worker.ring->worker_count, timeout = -1;
    helper->watched[WATCH_CONTROL] = (struct pollfd){.fd = leaving ? -1 : helper->control, .events = POLLIN};
    helper->watched[WATCH_CALLER] = (struct pollfd){.fd = helper->caller_pidfd, .events = POLLIN};
    if (helper->caller_pidfd < 0) timeout = NO_PIDFD_MS;
    for (int i = 0; i < count; ++i) {
        const leati_child *child = &helper->children[i];
        helper->watched[WATCH_CHILDREN + i] = (struct pollfd){.fd = child->pidfd, .events = POLLIN};
        if (child->pid > 0 && child->pidfd < 0) timeout = NO_PIDFD_MS;
    }
    int ready = poll(helper->watched, (nfds_t)count + WATCH_CHILDREN, timeout);
    if (ready < 0 && errno != EINTR) /* a limit below what poll is to watch: look from time to time instead */
        nanosleep(&(struct timespec){.tv_nsec = NO_PIDFD_MS * 1000000}, NULL);
    return getppid() == helper->caller;
}

int leati_helper_run(leati_helper *helper) {
    prctl(PR_SET_NAME, "leat-helper");
    int count = helper->worker.ring->worker_count;
    for (int i = 0; i < count; ++i) helper->children[i] = (leati_child){.pidfd = -1};
    for (int i = 0; i < count; ++i) spawn(helper, i);
    for (bool leaving = false; !leaving || live_children(helper) > 0;) {
        if (!watch(helper, leaving)) {
            kill_all(helper);
            return 0;
        }
        leaving = leaving || helper->watched[WATCH_CONTROL].revents || told_to_leave(helper);
        reap(helper);
    }
    return 0;
}
