/* SPDX-License-Identifier: Apache-2.0 */
/* Things that workers, and programs that `get` starts, inherit from the program that opened the feed: signals,
 * unwritten output, descriptors. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, SIGWINCH, syscall numbers */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/procs.h"
#include "feed/source.h"

static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};
enum { mode_count = sizeof modes / sizeof *modes };

/* ---- faults ---- */

enum { handled = 42, unexpected = 100 };

static void on_fault(int number) {
    (void)number;
    _exit(handled);
}

/* Reads memory that is not accessible. */
static leat_status faulting_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                leat_error *err) {
    (void)user;
    (void)index;
    (void)rng;
    (void)err;
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return LEAT_ENOMEM;
    batch->size = *page;
    return LEAT_OK;
}

/* The program ends by its handler in a worker thread, or, with worker processes, by the feed's error. */
static int life_with_a_fault(const leat_sequence *sequence, feed_mode mode) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    signal(SIGSEGV, on_fault);
    leat_feed_options options = source_options(mode);
    options.faults.max_deaths = 1;
    leat_feed *feed = source_open(sequence, &options);
    leat_status status = leat_feed_get(feed, &batch, &err);
    leat_feed_close(&feed);
    return status == LEAT_EWORKER && strstr(err.message, "exited with status 42") ? handled : unexpected;
}

/* Crash reporters, and hosts such as Julia, the JVM and Go, handle faults in the thread that commits them. */
static void handler_of_faults_runs_in_workers(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    sequence.get = faulting_get;
    for (int m = 0; m < mode_count; ++m) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(60);
            _exit(life_with_a_fault(&sequence, modes[m]));
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != handled) fail_msg("status %x", (unsigned)status);
    }
    source_fini(&s);
}

/* ---- masks and dispositions ---- */

/* Starts grep with its output in a pipe.  It does not use popen, whose shell may change the mask. */
static pid_t start_grep(int output) {
    extern char **environ;
    char *arguments[] = {(char[]){"grep"}, (char[]){"-E"}, (char[]){"^Sig(Blk|Ign):"},
                         (char[]){"/proc/self/status"}, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (posix_spawnp(&pid, "grep", &actions, NULL, arguments, environ) != 0) pid = -1;
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* Reads the signals that a program started now blocks and ignores. */
static leat_status signals_of_a_program(int64_t out[2]) {
    int ends[2], status = -1;
    char text[256] = "";
    unsigned long long blocked = 0, ignored = 0;
    if (pipe(ends) != 0) return LEAT_EIO;
    pid_t pid = start_grep(ends[1]);
    close(ends[1]);
    if (pid > 0) waitpid(pid, &status, 0);
    ssize_t length = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    if (status != 0 || length <= 0 || sscanf(text, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored) != 2)
        return LEAT_EIO;
    out[0] = (int64_t)blocked;
    out[1] = (int64_t)ignored;
    return LEAT_OK;
}

static leat_status starting_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                leat_error *err) {
    (void)user;
    (void)index;
    (void)rng;
    if (signals_of_a_program(batch->tensors[1].data) != LEAT_OK)
        return leat_error_set(err, LEAT_EIO, "cannot start grep");
    memset(batch->tensors[0].data, 0, leat_tensor_bytes(&batch->tensors[0]));
    return LEAT_OK;
}

static void program_that_get_starts_has_the_callers_signals(void **state) {
    (void)state;
    source s;
    int64_t expected[2];
    sigset_t mask, before;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    sequence.get = starting_get;
    sigemptyset(&mask);
    sigaddset(&mask, SIGWINCH);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &mask, &before), 0);
    void (*old)(int) = signal(SIGHUP, SIG_IGN); /* like nohup */
    assert_int_equal(signals_of_a_program(expected), LEAT_OK);
    for (int m = 0; m < mode_count; ++m) {
        const leat_batch *batch = NULL;
        leat_error err = {0};
        leat_feed_options options = source_options(modes[m]);
        leat_feed *feed = source_open(&sequence, &options);
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        const int64_t *seen = batch->tensors[1].data;
        if (seen[0] != expected[0] || seen[1] != expected[1])
            fail_msg("mode %d: blocked %llx, expected %llx; ignored %llx, expected %llx", m,
                     (unsigned long long)seen[0], (unsigned long long)expected[0],
                     (unsigned long long)seen[1], (unsigned long long)expected[1]);
        leat_feed_release(feed);
        leat_feed_close(&feed);
    }
    signal(SIGHUP, old);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    source_fini(&s);
}

/* ---- output ---- */

enum { printed_batches = 6 };

static leat_status printing_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                leat_error *err) {
    source *s = user;
    (void)rng;
    (void)err;
    printf("get %d\n", (int)index);
    memset(batch->tensors[0].data, 0, leat_tensor_bytes(&batch->tensors[0]));
    memset(batch->tensors[1].data, 0, leat_tensor_bytes(&batch->tensors[1]));
    if (index == 0) atomic_store(&s->counts->last_pid, (int64_t)getpid());
    return LEAT_OK;
}

static leat_status printing_init(void *user, int worker, leat_error *err) {
    (void)user;
    (void)worker;
    (void)err;
    printf("init\n");
    return LEAT_OK;
}

static void printing_fini(void *user, int worker) {
    (void)user;
    (void)worker;
    printf("fini\n");
}

/* Prints while a feed is open, and ends like a program.  With `killed`, a worker dies after its batch was delivered. */
static void life_with_output(source *s, const leat_sequence *sequence, feed_mode mode, bool killed) {
    leat_feed_options options = source_options(mode);
    options.limit = printed_batches;
    printf("caller\n");
    leat_feed *feed = source_open(sequence, &options);
    for (int i = 0; i < printed_batches; ++i) {
        const leat_batch *batch = NULL;
        leat_error err = {0};
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) _exit(1);
        leat_feed_release(feed);
    }
    if (killed) kill((pid_t)atomic_load(&s->counts->last_pid), SIGKILL);
    leat_feed_close(&feed);
    exit(0);
}

static int count_of(const char *text, const char *line) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, line)); at += strlen(line)) ++count;
    return count;
}

/* Runs life_with_output in a child whose output goes to a file, and reads the file. */
static void output_of_a_life(source *s, const leat_sequence *sequence, feed_mode mode, bool killed,
                             char *text, size_t bytes) {
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(fileno(file), STDOUT_FILENO); /* stdio writes to a file only when its buffer is full */
        life_with_output(s, sequence, mode, killed);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    rewind(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static void what_workers_print_is_written_once(void **state) {
    (void)state;
    source s;
    char text[4096];
    source_init(&s, printed_batches, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    sequence.get = printing_get;
    sequence.worker_init = printing_init;
    sequence.worker_fini = printing_fini;
    for (int m = 0; m < mode_count; ++m) {
        int workers = modes[m].workers ? modes[m].workers : 1;
        output_of_a_life(&s, &sequence, modes[m], false, text, sizeof text);
        bool right = count_of(text, "caller\n") == 1 && count_of(text, "init\n") == workers &&
                     count_of(text, "fini\n") == workers;
        for (int i = 0; i < printed_batches; ++i) {
            char line[16];
            snprintf(line, sizeof line, "get %d\n", i);
            right = right && count_of(text, line) == 1;
        }
        if (!right) fail_msg("mode %d printed:\n%s", m, text);
    }
    source_fini(&s);
}

/* The output that get printed for a batch is written before the trainer gets the batch, even if the worker dies
 * later. */
static void output_of_a_delivered_batch_survives_its_worker(void **state) {
    (void)state;
    source s;
    char text[4096];
    source_init(&s, printed_batches, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    sequence.get = printing_get;
    output_of_a_life(&s, &sequence, modes[2], true, text, sizeof text);
    if (count_of(text, "get 0\n") != 1 || count_of(text, "caller\n") != 1) fail_msg("printed:\n%s", text);
    source_fini(&s);
}

/* ---- descriptors ---- */

typedef struct descriptors {
    source s;
    int listed, unlisted;
} descriptors;

/* Returns true if the descriptor is still the device: the helper may have reused the number of a closed descriptor. */
static bool is_device(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 && S_ISCHR(about.st_mode);
}

/* Puts into the batch which of the descriptors are open in the worker. */
static leat_status describing_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                  leat_error *err) {
    const descriptors *d = user;
    (void)index;
    (void)rng;
    (void)err;
    int64_t *y = batch->tensors[1].data;
    y[0] = is_device(d->listed);
    y[1] = is_device(d->unlisted);
    memset(batch->tensors[0].data, 0, leat_tensor_bytes(&batch->tensors[0]));
    return LEAT_OK;
}

static int64_t always_six(void *user) {
    (void)user;
    return 6;
}

static void descriptors_init(descriptors *d, leat_sequence *sequence) {
    source_init(&d->s, 6, 2, 3);
    *sequence = source_sequence(&d->s);
    sequence->user = d;
    sequence->get = describing_get;
    sequence->worker_init = NULL;
    sequence->worker_fini = NULL;
    sequence->length = always_six;
    d->listed = open("/dev/null", O_RDONLY);
    d->unlisted = open("/dev/null", O_RDONLY);
    assert_true(d->listed > 2 && d->unlisted > 2);
}

static void descriptors_fini(descriptors *d) {
    if (d->listed >= 0) close(d->listed);
    if (d->unlisted >= 0) close(d->unlisted);
    source_fini(&d->s);
}

static bool are_open(leat_feed *feed, bool listed, bool unlisted) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    const int64_t *y = batch->tensors[1].data;
    bool right = y[0] == listed && y[1] == unlisted;
    leat_feed_release(feed);
    return right;
}

static leat_feed_options closing_options(const descriptors *d) {
    leat_feed_options options = source_options(modes[2]);
    options.max_queue_size = 1;
    options.close_descriptors = true;
    options.kept_descriptors = &d->listed;
    options.kept_descriptor_count = 1;
    return options;
}

static void workers_have_all_descriptors_by_default(void **state) {
    (void)state;
    descriptors d;
    leat_sequence sequence;
    descriptors_init(&d, &sequence);
    leat_feed_options options = source_options(modes[2]);
    leat_feed *feed = source_open(&sequence, &options);
    assert_true(are_open(feed, true, true));
    leat_feed_close(&feed);
    descriptors_fini(&d);
}

/* Workers that replace dead ones have the same descriptors, also if the kernel has no close_range. */
static void life_with_few_descriptors(const descriptors *d, const leat_sequence *sequence) {
    leat_feed_options options = closing_options(d);
    leat_feed *feed = source_open(sequence, &options);
    if (!are_open(feed, true, false)) _exit(1);
    pid_t helper = helper_of(getpid()), workers[most_children];
    workers_of(helper, 2, workers);
    for (int i = 0; i < 2; ++i) kill(workers[i], SIGKILL);
    for (int i = 0; i < 10; ++i)
        if (!are_open(feed, true, false)) _exit(2);
    if (leat_feed_stats_get(feed).worker_deaths < 1) _exit(3);
    leat_feed_close(&feed);
    _exit(is_device(d->unlisted) ? 0 : 4); /* the program's descriptor stays open */
}

static void workers_close_what_is_not_kept(void **state) {
    (void)state;
    descriptors d;
    leat_sequence sequence;
    descriptors_init(&d, &sequence);
    for (int old_kernel = 0; old_kernel < 2; ++old_kernel) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(60);
            if (old_kernel) deny(SYS_close_range, ENOSYS, 0);
            life_with_few_descriptors(&d, &sequence);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip_because("no system call filters here");
        if (status != 0) fail_msg("old kernel %d: status %x", old_kernel, (unsigned)status);
    }
    descriptors_fini(&d);
}

static void lock_ends_with_the_callers_descriptor(void **state) {
    (void)state;
    descriptors d;
    leat_sequence sequence;
    descriptors_init(&d, &sequence);
    char path[] = "/tmp/leat-lock-XXXXXX";
    int first = mkstemp(path), second = open(path, O_RDWR);
    unlink(path);
    assert_true(first >= 0 && second >= 0);
    leat_feed_options options = closing_options(&d);
    options.kept_descriptors = &second;
    assert_int_equal(flock(first, LOCK_EX), 0);
    leat_feed *feed = source_open(&sequence, &options);
    assert_true(are_open(feed, false, false)); /* a worker runs, so the helper has closed the descriptors */
    close(first);
    assert_int_equal(flock(second, LOCK_EX | LOCK_NB), 0);
    leat_feed_close(&feed);
    close(second);
    descriptors_fini(&d);
}

static void pclose_sees_the_end_of_its_program(void **state) {
    (void)state;
    descriptors d;
    leat_sequence sequence;
    descriptors_init(&d, &sequence);
    FILE *program = popen("cat >/dev/null", "w");
    assert_non_null(program);
    leat_feed_options options = closing_options(&d);
    leat_feed *feed = source_open(&sequence, &options);
    assert_true(are_open(feed, true, false));
    assert_int_equal(pclose(program), 0); /* hangs while a worker holds the pipe; then alarm ends the test */
    leat_feed_close(&feed);
    descriptors_fini(&d);
}

/* If one of two feeds with the same workers keeps all descriptors, none is closed.  Then each feed keeps one. */
static void feeds_together_keep_what_each_keeps(void **state) {
    (void)state;
    descriptors d;
    leat_sequence sequence;
    descriptors_init(&d, &sequence);
    for (int all = 0; all < 2; ++all) {
        leat_feed_options options[2] = {closing_options(&d), closing_options(&d)};
        const leat_feed_config plans[2] = {{.sequence = &sequence, .options = &options[0]},
                                           {.sequence = &sequence, .options = &options[1]}};
        options[1].kept_descriptors = &d.unlisted;
        if (all) options[1] = source_options(modes[2]);
        leat_feed *feeds[2];
        leat_error err = {0};
        if (leat_feed_open_together(feeds, plans, 2, &err) != LEAT_OK) fail_msg("%s", err.message);
        for (int i = 0; i < 2; ++i) assert_true(are_open(feeds[i], true, true));
        for (int i = 0; i < 2; ++i) leat_feed_close(&feeds[i]);
    }
    descriptors_fini(&d);
}

static void kept_descriptors_are_checked(void **state) {
    (void)state;
    descriptors d;
    leat_sequence sequence;
    descriptors_init(&d, &sequence);
    leat_feed *feed = NULL;
    leat_error err = {0};
    int negative = -1;
    leat_feed_options options = closing_options(&d);
    options.kept_descriptors = &negative;
    assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "kept_descriptors[0] is -1"));
    options.kept_descriptors = NULL;
    assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "kept_descriptors is NULL"));
    options.kept_descriptor_count = -1;
    assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "kept_descriptor_count"));
    descriptors_fini(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handler_of_faults_runs_in_workers),
        cmocka_unit_test(program_that_get_starts_has_the_callers_signals),
        cmocka_unit_test(what_workers_print_is_written_once),
        cmocka_unit_test(output_of_a_delivered_batch_survives_its_worker),
        cmocka_unit_test(workers_have_all_descriptors_by_default),
        cmocka_unit_test(workers_close_what_is_not_kept),
        cmocka_unit_test(lock_ends_with_the_callers_descriptor),
        cmocka_unit_test(feeds_together_keep_what_each_keeps),
        cmocka_unit_test(kept_descriptors_are_checked),
        cmocka_unit_test(pclose_sees_the_end_of_its_program),
    };
    alarm(240); /* ends a test that hangs */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
