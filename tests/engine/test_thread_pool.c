/* SPDX-License-Identifier: Apache-2.0 */
/* Every task runs once, whichever thread takes it; each member has its own number; a forked child has its own pool
 * threads; a pool thread leaves the caller's core, and flushes subnormal numbers to zero. */
#define _GNU_SOURCE /* sched_getcpu */
#include "cmocka_all.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/threads/thread_pool.h"

enum { THREADS = 4, TASKS = 1000 };

static void nap(long us) {
    nanosleep(&(struct timespec){.tv_nsec = 1000 * us}, NULL);
}

typedef struct counts {
    atomic_int done[TASKS], inside[THREADS];
    atomic_int trouble;
    int threads;
} counts;

static void count(void *of, int64_t task, int member) {
    counts *c = of;
    if (member < 0 || member >= c->threads || atomic_fetch_add(&c->inside[member], 1) != 0)
        atomic_fetch_add(&c->trouble, 1);
    atomic_fetch_add(&c->done[task], 1);
    atomic_fetch_sub(&c->inside[member], 1);
}

static bool all_done(counts *c, int64_t tasks) {
    bool right = atomic_load(&c->trouble) == 0;
    for (int64_t i = 0; i < tasks; i++) right = right && atomic_exchange(&c->done[i], 0) == 1;
    return right;
}

static leati_thread_pool *pool_of(int threads) {
    leati_thread_pool *pool = NULL;
    assert_int_equal(leati_thread_pool_create(&pool, NULL), LEAT_OK);
    assert_int_equal(leati_thread_pool_reserve(pool, threads, NULL), LEAT_OK);
    return pool;
}

static void test_each_task_once(void **state) {
    (void)state;
    static counts c;
    leati_thread_pool *pool = pool_of(THREADS);
    for (int threads = 1; threads <= THREADS; threads++)
        for (int i = 0; i < 2000; i++) {
            int64_t tasks = i % 7 == 0 ? TASKS : i % 13;
            c.threads = threads;
            leati_thread_pool_limit(pool, i % 2 ? threads : THREADS);
            leati_thread_pool_share(pool, i % 2 ? THREADS + 3 : threads, tasks, count, &c);
            assert_true(all_done(&c, tasks));
        }
    leati_thread_pool_destroy(&pool);
    assert_null(pool);
}

static void test_after_a_sleep(void **state) {
    (void)state;
    static counts c;
    leati_thread_pool *pool = pool_of(2);
    c.threads = 2;
    for (int i = 0; i < 20; i++) {
        leati_thread_pool_share(pool, 2, TASKS, count, &c);
        assert_true(all_done(&c, TASKS));
        nap(1000);
    }
    leati_thread_pool_destroy(&pool);
}

/* Task 0 waits for task 1, so two threads must work at the same time. */
static void meet(void *of, int64_t task, int member) {
    atomic_int *met = of;
    (void)task, (void)member;
    atomic_fetch_add(met, 1);
    while (atomic_load(met) < 2) nap(100);
}

static void test_two_at_once(void **state) {
    (void)state;
    leati_thread_pool *pool = pool_of(2);
    for (int i = 0; i < 10; i++) {
        atomic_int met = 0;
        leati_thread_pool_share(pool, 2, 2, meet, &met);
        assert_int_equal(met, 2);
        nap(500);
    }
    leati_thread_pool_destroy(&pool);
}

typedef struct products {
    float of_member[THREADS];
    atomic_int met;
} products;

/* Every task waits for the others, so each thread does one. */
static void multiply(void *of, int64_t task, int member) {
    products *p = of;
    volatile float tiny = 1e-30f;
    (void)task;
    p->of_member[member] = tiny * 1e-10f;
    atomic_fetch_add(&p->met, 1);
    while (atomic_load(&p->met) < THREADS) nap(100);
}

static void test_pool_threads_flush(void **state) {
    (void)state;
    leati_thread_pool *pool = pool_of(THREADS);
    products p = {.met = 0};
    leati_thread_pool_share(pool, THREADS, THREADS, multiply, &p);
    assert_true(p.of_member[0] > 0); /* member 0 is the caller, whose floating-point mode is not changed */
    for (int i = 1; i < THREADS; i++) assert_true(p.of_member[i] == 0);
    leati_thread_pool_destroy(&pool);
}

/* Lets all threads of the process except the caller run on `cores`. */
static void allow_pool_threads(const cpu_set_t *cores) {
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry = readdir(tasks); entry; entry = readdir(tasks)) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread > 0 && thread != getpid()) sched_setaffinity(thread, sizeof *cores, cores);
    }
    closedir(tasks);
}

typedef struct cores {
    atomic_int pool_thread; /* the core of the pool thread's latest task */
    atomic_bool met;
} cores;

/* Task 0 waits for task 1 of the pool thread, so that both threads work. */
static void note_core(void *of, int64_t task, int member) {
    cores *c = of;
    if (member == 1) atomic_store(&c->pool_thread, sched_getcpu());
    if (member == 1) atomic_store(&c->met, true);
    for (int i = 0; member == 0 && task == 0 && i < 50 && !atomic_load(&c->met); i++) nap(100);
}

/* A pool thread starts on the caller's core, because it inherits the affinity of the caller.  When other cores are
 * allowed, it must leave that core while the caller works. */
static void test_leaves_the_callers_core(void **state) {
    (void)state;
    cpu_set_t all, one;
    int core = sched_getcpu();
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2) LEAT_SKIP("one core");
    CPU_ZERO(&one);
    CPU_SET((size_t)core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0); /* the caller stays there */
    leati_thread_pool *pool = pool_of(2);
    allow_pool_threads(&all);
    cores c = {.pool_thread = core};
    for (int i = 0; i < 2000 && atomic_load(&c.pool_thread) == core; i++) {
        atomic_store(&c.met, false);
        leati_thread_pool_share(pool, 2, 2, note_core, &c);
    }
    assert_int_not_equal(c.pool_thread, core);
    leati_thread_pool_destroy(&pool);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void test_without_pool_threads(void **state) {
    (void)state;
    static counts c;
    c.threads = 1;
    leati_thread_pool_share(NULL, 3, TASKS, count, &c);
    assert_true(all_done(&c, TASKS));
    leati_thread_pool *pool = pool_of(1);
    leati_thread_pool_share(pool, 3, TASKS, count, &c);
    assert_true(all_done(&c, TASKS));
    leati_thread_pool_destroy(&pool);
}

static void test_in_a_forked_child(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    LEAT_SKIP("the thread sanitizer takes no new threads in a forked child");
#endif
    static counts c;
    leati_thread_pool *pool = pool_of(3);
    c.threads = 3;
    leati_thread_pool_share(pool, 3, TASKS, count, &c);
    assert_true(all_done(&c, TASKS));
    pid_t child = fork();
    if (child == 0) {
        bool right = true;
        atomic_int met = 0;
        alarm(60);
        leati_thread_pool_share(pool, 2, 2, meet, &met); /* returns only if the child has a pool thread */
        for (int i = 0; i < 10; i++) {
            leati_thread_pool_share(pool, 3, TASKS, count, &c);
            right = right && all_done(&c, TASKS);
        }
        leati_thread_pool_destroy(&pool);
        _exit(right ? 0 : 1);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    leati_thread_pool_destroy(&pool);
}

static void on_fault(int number) {
    (void)number;
    _exit(7);
}

static void touch(void *of, int64_t task, int member) {
    volatile char *page = of;
    (void)task;
    while (member == 0) nap(1000); /* leaves the other task to a pool thread */
    *page = 1;
}

/* The program's handler of faults also runs in a pool thread, as crash reporters and runtimes of languages require. */
static void test_pool_thread_hands_faults_over(void **state) {
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        signal(SIGSEGV, on_fault);
        leati_thread_pool_share(pool_of(2), 2, 2, touch, page);
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) fail_msg("status %x", (unsigned)status);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_task_once),     cmocka_unit_test(test_after_a_sleep),
        cmocka_unit_test(test_two_at_once),        cmocka_unit_test(test_without_pool_threads),
        cmocka_unit_test(test_in_a_forked_child),  cmocka_unit_test(test_leaves_the_callers_core),
        cmocka_unit_test(test_pool_threads_flush), cmocka_unit_test(test_pool_thread_hands_faults_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
