/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of the helper: it forks workers, watches them through pidfds, kills late ones, replaces dead ones,
 * and exits when it is told to or when the caller is gone.  Room: feed.
 *
 * A worker may die at any point and with any exit status.  The death is expected only if the worker was told to exit,
 * which the worker table and the rings say.  The slot that a dead worker had claimed keeps its number, and the worker
 * that replaces it makes this batch first, with the same index and seed. */
#include "feed/workers/helper.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "feed/workers/threads.h"

#define MOST_EARLY_DEATHS 10 /* deaths in a row of one worker before its first batch */
#define NO_PIDFD_MS       20 /* how often the helper looks for deaths if the kernel does not support pidfds */

enum { WATCH_CONTROL, WATCH_CALLER, WATCH_CHILDREN };

static bool must_exit(const leati_helper *helper) {
    return leati_pool_work_is_over(helper->work, helper->generation);
}

/* The main function of a worker process. */
static int worker_main(const leati_helper *helper, int number, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* Sent when the parent thread ends: the helper has only one thread. */
    if (getppid() != parent) return 1;
    leati_name_worker(number);
    leati_worker_entry *entry = &helper->work->table.workers[number];
    atomic_store(&entry->sleeping, 0); /* The worker that this one replaces may have died asleep. */
    leati_worker *worker = &helper->workers[number];
    worker->generation = helper->generation;
    leat_error err = {0};
    if (leati_worker_run(worker, &err) == LEAT_OK) return 0;
    entry->error = err;
    atomic_store(&entry->phase, LEATI_WORKER_REFUSED);
    return 1;
}

/* Starts a worker process by one attempt.  Returns -1 with errno set on failure. */
static pid_t try_to_start(const leati_helper *helper, int number) {
    if (helper->worker_command) return leati_spawn_worker(helper, number);
    pid_t self = getpid(), pid = fork();
    if (pid == 0) _exit(worker_main(helper, number, self));
    return pid;
}

static void spawn(leati_helper *helper, int number) {
    leati_child *child = &helper->children[number];
    leati_worker_entry *entry = &helper->work->table.workers[number];
    pid_t pid = -1;
    atomic_store(&entry->phase, LEATI_WORKER_STARTING);
    for (int tries = 0; tries < 10 && (pid = try_to_start(helper, number)) < 0 && errno == EAGAIN; ++tries)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (pid < 0) {
        leat_error err = {0};
        leati_fail_errno(&err, LEAT_EIO, errno, "cannot start worker process %d of %d", number,
                         helper->work->table.count);
        leati_pool_work_fail(helper->work, &err);
        return;
    }
    child->pid = pid;
    child->pidfd = leati_pidfd_open(pid);
    child->late = child->stopped = false;
    atomic_store(&entry->pid, (int32_t)pid);
}

/* Describes how a worker died, with a hint for the user. */
static void describe_death(char *text, size_t bytes, int status) {
    static const struct {
        int signal;
        const char *text;
    } known[] = {
        {SIGKILL, "SIGKILL: if nobody sent it, the kernel's OOM killer did, see dmesg"},
        {SIGSEGV, "SIGSEGV: a bug in get, or in a function that it calls"},
        {SIGBUS, "SIGBUS: a lack of memory, or a mapped file that was truncated"},
        {SIGABRT, "SIGABRT: a failed assertion or a damaged heap"},
        {SIGFPE, "SIGFPE: an integer division by zero"},
        {SIGILL, "SIGILL: an instruction that this CPU does not have"},
        {SIGXCPU, "SIGXCPU: the limit of CPU time was exceeded"},
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

static void publish_failure(leati_service *service, leati_slot *slot, leat_status code, const char *how) {
    const leat_faults *faults = &service->faults;
    slot->get_ns = 0;
    slot->retries = 0;
    if (code == LEAT_ETIMEOUT)
        leati_fail(&slot->error, code,
                   "it was late twice: its worker process needed more than %.3g s and was killed",
                   (double)faults->deadline_ms / 1e3);
    else
        leati_fail(&slot->error, code, "%u worker process%s died while making it; the last %s",
                   (unsigned)slot->deaths, slot->deaths == 1 ? "" : "es", how);
    slot->status = (int32_t)code;
    slot->ended_ns = leati_now_ns();
    leati_ring_publish(&service->ring, slot);
}

/* Counts a death on the batch that the worker was making.  The batch is made again, unless too many workers died of
 * it. */
static void count_death_on_batch(leati_service *service, leati_slot *slot, bool late, int status) {
    char how[160];
    describe_death(how, sizeof how, status);
    if (late && ++slot->timeouts > 1) {
        publish_failure(service, slot, LEAT_ETIMEOUT, how);
        return;
    }
    if (!late && ++slot->deaths >= (uint32_t)service->faults.max_deaths)
        publish_failure(service, slot, LEAT_EWORKER, how);
}

/* Fails a generator whose worker process has died, because its position is lost.  The process may have been killed
 * because it was late with the generator's batch or with a batch of another feed. */
static void count_death_of_generator(leati_service *service, const leati_child *child, bool in_hand,
                                     int status) {
    char how[160];
    leat_error err = {0};
    double deadline_s = (double)service->faults.deadline_ms / 1e3;
    bool in_time = !child->late || (!in_hand && !child->stopped);
    describe_death(how, sizeof how, status);
    if (child->late && in_hand)
        snprintf(how, sizeof how, "was late, more than %.3g s, and was killed", deadline_s);
    else if (child->late && child->stopped)
        snprintf(how, sizeof how, "was stopped for more than %.3g s and was killed", deadline_s);
    else if (child->late)
        snprintf(how, sizeof how, "was late with a batch of another feed, and was killed");
    leati_fail(
        &err, in_time ? LEAT_EWORKER : LEAT_ETIMEOUT,
        "the worker process of a generator %s, and the position of the generator is lost with it; use a "
        "sequence, which can make any batch again, to survive this",
        how);
    leati_ring_fail(&service->ring, &err);
}

/* Returns the index of the feed whose batch the worker was making, and the slot of the batch; -1 if there was none.  A
 * batch of a feed that has ended does not count: its slot stays claimed. */
static int find_in_hand(const leati_pool_work *work, int number, leati_slot **slot) {
    int found = -1;
    for (int i = 0; i < work->count; ++i) {
        const leati_ring *ring = &work->services[i]->ring;
        leati_slot *claimed = leati_ring_claimed_by(ring, number);
        if (claimed) atomic_store_explicit(&claimed->started_ns, 0, memory_order_relaxed);
        if (!claimed || !leati_ring_is_live(ring)) continue;
        found = i;
        *slot = claimed;
    }
    return found;
}

/* Returns the index of the feed on which the death of an idle worker is counted: the generator that the worker owns, or
 * otherwise the first feed. */
static int find_owned(const leati_pool_work *work, int number) {
    for (int i = 0; i < work->count; ++i)
        if (work->services[i]->ring.owner == number) return i;
    return 0;
}

static void count_death(const leati_helper *helper, int number, int status) {
    const leati_pool_work *work = helper->work;
    bool late = helper->children[number].late;
    leati_slot *slot = NULL;
    int in_hand = find_in_hand(work, number, &slot);
    leati_service *blamed = work->services[in_hand >= 0 ? in_hand : find_owned(work, number)];
    atomic_fetch_add(&blamed->ring.shared->deaths, 1);
    if (late) atomic_fetch_add(&blamed->ring.shared->timeouts, 1);
    for (int i = 0; i < work->count; ++i)
        if (work->services[i]->ring.owner == number)
            count_death_of_generator(work->services[i], &helper->children[number], i == in_hand, status);
    /* A worker that replaces another one has not begun the batch of that one while it starts. */
    bool starting = atomic_load(&work->table.workers[number].phase) == LEATI_WORKER_STARTING;
    if (slot && blamed->ring.owner != number && !starting) count_death_on_batch(blamed, slot, late, status);
}

static void count_early_death(leati_helper *helper, int number, int status) {
    leati_child *child = &helper->children[number];
    leati_worker_entry *entry = &helper->work->table.workers[number];
    uint32_t phase = atomic_load(&entry->phase);
    if (phase == LEATI_WORKER_REFUSED) leati_pool_work_fail(helper->work, &entry->error);
    child->early_deaths = phase == LEATI_WORKER_STARTING ? child->early_deaths + 1 : 0;
    if (child->early_deaths < MOST_EARLY_DEATHS) return;
    char how[160];
    leat_error err = {0};
    describe_death(how, sizeof how, status);
    leati_fail(&err, LEAT_EWORKER,
               "worker process %d died %d times before its first batch; the last time it %s", number,
               child->early_deaths, how);
    leati_pool_work_fail(helper->work, &err);
}

static void on_death(leati_helper *helper, int number, int status) {
    leati_pool_work *work = helper->work;
    leati_child *child = &helper->children[number];
    if (child->pidfd >= 0) close(child->pidfd);
    child->pidfd = -1;
    child->pid = 0;
    atomic_store(&work->table.workers[number].pid, 0);
    if (must_exit(helper)) return;
    if (atomic_load(&work->table.workers[number].phase) != LEATI_WORKER_LARGE) {
        count_death(helper, number, status);
        count_early_death(helper, number, status);
    }
    for (int i = 0; i < work->count; ++i) leati_ring_nudge_consumer(&work->services[i]->ring);
    if (!must_exit(helper)) spawn(helper, number);
}

static void on_event(leati_helper *helper, int number, int status) {
    leati_child *child = &helper->children[number];
    if (!WIFSTOPPED(status) && !WIFCONTINUED(status)) {
        on_death(helper, number, status);
        return;
    }
    child->stopped = WIFSTOPPED(status);
    child->stopped_ns = helper->patience.watched_ns;
}

/* Handles the deaths of workers, and notes which workers are stopped. */
static void handle_events(leati_helper *helper) {
    int status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0)
        for (int i = 0; i < helper->work->table.count; ++i)
            if (helper->children[i].pid == pid) {
                on_event(helper, i, status);
                break;
            }
}

static int live_children(const leati_helper *helper) {
    int live = 0;
    for (int i = 0; i < helper->work->table.count; ++i) live += helper->children[i].pid > 0;
    return live;
}

static void kill_all(const leati_helper *helper) {
    for (int i = 0; i < helper->work->table.count; ++i)
        if (helper->children[i].pid > 0) kill(helper->children[i].pid, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) continue;
}

/* Returns how long until the worker misses its deadline with a batch of the feed; INT64_MAX if there is none.  A
 * worker that is stopped with no batch, or before it has begun its batch, has the same time until it must continue. */
static int64_t time_for_batch(const leati_helper *helper, int number, const leati_service *service,
                              int64_t now_ns) {
    leati_child *child = &helper->children[number];
    int64_t deadline_ns = service->faults.deadline_ms * 1000000;
    if (deadline_ns == 0) return INT64_MAX;
    const leati_slot *slot = leati_ring_claimed_by(&service->ring, number);
    int64_t started = slot ? atomic_load_explicit(&slot->started_ns, memory_order_relaxed) : 0;
    if (started) return leati_patience_left(&helper->patience, &child->batch, started, deadline_ns, now_ns);
    if (child->stopped) return child->stopped_ns + deadline_ns - helper->patience.watched_ns;
    return deadline_ns; /* A batch that is begun later than now cannot be late before a whole deadline has passed. */
}

/* Returns how long until a worker that was told to exit is killed. */
static int64_t time_for_exit(const leati_helper *helper, int number) {
    const leati_child *child = &helper->children[number];
    uint32_t phase = atomic_load(&helper->work->table.workers[number].phase);
    if (helper->worker_command && phase == LEATI_WORKER_STARTING) return 0; /* It may need long to begin. */
    int64_t left = helper->exiting_ns + LEATI_EXIT_PATIENCE_NS - helper->patience.watched_ns;
    int64_t since = child->stopped_ns > helper->exiting_ns ? child->stopped_ns : helper->exiting_ns;
    int64_t left_if_stopped = since + LEATI_STOPPED_PATIENCE_NS - helper->patience.watched_ns;
    return child->stopped && left_if_stopped < left ? left_if_stopped : left;
}

/* Returns how long until the worker must be killed; INT64_MAX if it has no deadline.  If the time has come, kills the
 * worker; SIGKILL also ends a process that is stopped. */
static int64_t enforce_deadline(leati_helper *helper, int number, int64_t now_ns) {
    leati_child *child = &helper->children[number];
    if (child->pid == 0 || child->late) return INT64_MAX;
    int64_t nearest = helper->exiting ? time_for_exit(helper, number) : INT64_MAX;
    for (int i = 0; i < helper->work->count; ++i) {
        int64_t left = time_for_batch(helper, number, helper->work->services[i], now_ns);
        if (left < nearest) nearest = left;
    }
    if (nearest > 0) return nearest;
    child->late = true;
    kill(child->pid, SIGKILL);
    return INT64_MAX;
}

/* Returns how long the helper may sleep, in ms, rounded up; -1: until something happens. */
static int sleep_length(leati_helper *helper) {
    int64_t nearest = INT64_MAX, now = leati_now_ns();
    for (int i = 0; i < helper->work->table.count; ++i) {
        int64_t left = enforce_deadline(helper, i, now);
        if (left < nearest) nearest = left;
    }
    if (nearest != INT64_MAX && nearest > LEATI_PATIENCE_TICK_NS) nearest = LEATI_PATIENCE_TICK_NS;
    int64_t timeout = nearest == INT64_MAX ? -1 : nearest / 1000000 + 1;
    bool polling = helper->caller_pidfd < 0;
    for (int i = 0; i < helper->work->table.count; ++i)
        polling = polling || (helper->children[i].pid > 0 && helper->children[i].pidfd < 0);
    if (polling && (timeout < 0 || timeout > NO_PIDFD_MS)) timeout = NO_PIDFD_MS;
    return timeout > INT_MAX ? INT_MAX : (int)timeout;
}

/* Sleeps until something happens.  Returns false if the caller is gone. */
static bool sleep_and_watch(leati_helper *helper) {
    int count = helper->work->table.count, timeout = sleep_length(helper);
    helper->watched[WATCH_CONTROL] =
        (struct pollfd){.fd = helper->exiting ? -1 : helper->control, .events = POLLIN};
    helper->watched[WATCH_CALLER] = (struct pollfd){.fd = helper->caller_pidfd, .events = POLLIN};
    for (int i = 0; i < count; ++i)
        helper->watched[WATCH_CHILDREN + i] =
            (struct pollfd){.fd = helper->children[i].pidfd, .events = POLLIN};
    leati_patience_sleep(&helper->patience, leati_now_ns(), timeout < 0 ? -1 : (int64_t)timeout * 1000000);
    int ready = poll(helper->watched, (nfds_t)count + WATCH_CHILDREN, timeout);
    if (ready < 0 &&
        errno != EINTR) /* RLIMIT_NOFILE is too low for poll: the helper looks from time to time instead. */
        nanosleep(&(struct timespec){.tv_nsec = NO_PIDFD_MS * 1000000}, NULL);
    leati_patience_wake(&helper->patience, leati_now_ns());
    return getppid() == helper->caller;
}

int leati_helper_run(leati_helper *helper) {
    prctl(PR_SET_NAME, "leat-helper");
    int count = helper->work->table.count;
    helper->exiting = false;
    for (int i = 0; i < count; ++i) helper->children[i] = (leati_child){.pidfd = -1};
    for (int i = 0; i < count; ++i) spawn(helper, i);
    while (!helper->exiting || live_children(helper) > 0) {
        if (!sleep_and_watch(helper)) {
            kill_all(helper);
            return 0;
        }
        if (!helper->exiting && (helper->watched[WATCH_CONTROL].revents || must_exit(helper))) {
            helper->exiting = true;
            helper->exiting_ns = helper->patience.watched_ns;
        }
        handle_events(helper);
    }
    return 0;
}
