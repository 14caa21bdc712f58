/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning: a backend whose first implementation is slow on purpose, and the file of the tuning cache. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/ref/ref.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "engine/plan/plan.h"
#include "support/memory_failing.h"

enum { WIDE = 64, MOST_LINES = 2000, TEXT = 1 << 20 };

static int runs;          /* number of runs of all kernels */
static unsigned asked_of; /* bit t: a slow kernel for t threads ran */
static char folder[] = "/tmp/leat-tune-XXXXXX", path[64];
static char text[TEXT];

/* ---- A backend of two implementations ---- */

/* Computes nothing: the fast kernel takes microseconds, so that load on the machine does not change the result. */
static leat_status run_product(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const int *slow = kernel->state;
    (void)args, (void)run, (void)err;
    ++runs;
    if (*slow) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (*slow) asked_of |= 1u << *slow;
    return LEAT_OK;
}

/* slow: number of threads of the slow kernel; 0: the kernel is fast. */
static leat_status prepare(leati_kernel *kernel, int slow, leat_error *err) {
    int *state = leati_memdup(&slow, sizeof slow);
    if (!state) return leat_error_set(err, LEAT_ENOMEM, "no memory for a product");
    kernel->state = state;
    kernel->destroy = leati_free;
    kernel->run = run_product;
    snprintf(kernel->implementation, sizeof kernel->implementation, slow ? "own slow" : "own fast");
    return LEAT_OK;
}

static leat_status prepare_slow(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return prepare(kernel, task->threads, err);
}

/* Without measuring, it refuses the task. */
static leat_status prepare_fast(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    if (task->measured) return prepare(kernel, 0, err);
    snprintf(why, LEATI_REASON_BYTES, "a rule of thumb");
    return LEAT_OK;
}

static const leati_implementation implementations[] = {
    {.op = LEATI_OP_MATMUL, .prepare = prepare_fast},
    {.op = LEATI_OP_MATMUL, .prepare = prepare_slow},
};
static const leati_backend own = {.name = "own", .implementations = implementations, .count = 2};
static const leati_backend *const backends[] = {&own, &leati_backend_ref, NULL};

/* ---- Plans ---- */

static const leati_plan_options off = {0}, known = {.recalls = true},
                                measure = {.recalls = true, .measures = true};

/* Compiles a product of (rows, WIDE) and (WIDE, WIDE). */
static leat_status compile(leati_plan **plan, leati_arena *arena, const leati_plan_options *how, int64_t rows,
                           leat_error *err) {
    leati_graph *g = NULL;
    leat_status status = leati_graph_create(&g, err);
    if (status != LEAT_OK) return status;
    leati_desc left = {LEAT_F32, 2, {rows, WIDE}}, right = {LEAT_F32, 2, {WIDE, WIDE}};
    leati_value a = leati_graph_input(g, 0, &left), b = leati_graph_input(g, 1, &right);
    leati_graph_keep(g, leati_matmul(g, a, false, b, false, LEATI_NONE));
    leati_plan_options options = *how;
    options.threads = how->threads ? how->threads : 1;
    options.backends = backends;
    options.arena = arena;
    return leati_plan_create(plan, &g, &options, err);
}

/* Returns the name of the kernel that the plan has chosen for the product; with `given` NULL, the plan has a new arena.
 * *measured is true if the kernel was chosen by measuring; `runs` counts the runs. */
static const char *chosen_kernel(leati_arena *given, const leati_plan_options *how, int64_t rows,
                                 bool *measured) {
    static char name[64];
    leati_arena *arena = given;
    leati_plan *plan = NULL;
    leati_plan_step step;
    leat_error err = {0};
    runs = 0;
    if (!arena) assert_int_equal(leati_arena_create(&arena, &err), LEAT_OK);
    if (compile(&plan, arena, how, rows, &err) != LEAT_OK) fail_msg("%s", err.message);
    leati_plan_step_get(plan, 0, &step);
    snprintf(name, sizeof name, "%s", step.implementation);
    if (measured) *measured = step.measured;
    leati_plan_destroy(&plan);
    if (!given) leati_arena_destroy(&arena);
    return name;
}

static void expect(const leati_plan_options *how, int64_t rows, const char *who, bool measured,
                   bool runs_any) {
    bool was = !measured;
    assert_string_equal(chosen_kernel(NULL, how, rows, &was), who);
    assert_int_equal(was, measured);
    assert_int_equal(runs > 0, runs_any);
}

/* ---- The file ---- */

static bool read_file(void) {
    FILE *file = fopen(path, "r");
    if (!file) return false;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    return true;
}

static void write_file(const char *data, size_t bytes) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* Returns the number of lines after the heading, each of which must have four fields. */
static int lines(void) {
    int count = 0;
    assert_true(read_file());
    assert_int_equal(strncmp(text, "leat kernels 1\n", 15), 0);
    for (const char *at = text + 15; *at; ++count) {
        int tabs = 0;
        for (; *at != '\n'; ++at) {
            assert_true(*at != '\0');
            tabs += *at == '\t';
        }
        assert_int_equal(tabs, 3);
        ++at;
    }
    return count;
}

static int begin(void **state) {
    (void)state;
    assert_int_equal(setenv("LEAT_CACHE_DIR", folder, 1), 0);
    (void)unlink(path);
    return 0;
}

/* ---- Tests ---- */

static void what_was_measured_is_remembered(void **state) {
    (void)state;
    expect(&measure, 64, "own fast", true, true);
    assert_int_equal(lines(), 1);
    assert_non_null(strstr(text, "\tmatmul 64x64,64x64, > 64x64 threads 1\town fast\t1\n"));
    expect(&measure, 64, "own fast", true, false);
    expect(&known, 64, "own fast", true, false);
    expect(&known, 65, "own slow", false, false);
    expect(&measure, 65, "own fast", true, true);
    assert_int_equal(lines(), 2);
}

static void nothing_is_measured_unasked(void **state) {
    (void)state;
    leati_plan_options deterministic = measure;
    deterministic.deterministic = true;
    expect(&off, 64, "own slow", false, false);
    expect(&known, 64, "own slow", false, false);
    expect(&deterministic, 64, "own slow", false, false);
    assert_false(read_file());
    expect(&measure, 64, "own fast", true, true);
    expect(&off, 64, "own slow", false, false);
    expect(&deterministic, 64, "own slow", false, false);
    expect(&measure, 8, "own slow", false, false); /* too little work */
}

/* Only the implementation knows how many threads it uses for little work, so fewer threads are measured, too. */
static void fewer_threads_are_tried_where_there_is_little_work(void **state) {
    (void)state;
    leati_plan_options two = measure;
    two.threads = 2;
    asked_of = 0;
    expect(&two, 64, "own fast", true, true);
    assert_int_equal(asked_of, 1u << 1 | 1u << 2);
    asked_of = 0;
    expect(&two, 512, "own fast", true, true); /* 4 million operations */
    assert_int_equal(asked_of, 1u << 1 | 1u << 2);
    asked_of = 0;
    expect(&two, 1024, "own fast", true, true);
    assert_int_equal(asked_of, 1u << 2);
}

/* With any damage in the file, the product is measured, and the file is valid again. */
static void a_damaged_file_is_measured_anew(void **state) {
    (void)state;
    expect(&measure, 64, "own fast", true, true);
    assert_true(read_file());
    char good[1024], bad[2048];
    size_t length = strlen(text);
    assert_true(length < sizeof good);
    memcpy(good, text, length + 1);
    for (size_t i = 0; i < length; i += i < 20 ? 5 : 19) { /* cut off, so that the last line is incomplete */
        write_file(good, i);
        expect(&measure, 64, "own fast", true, true);
        assert_int_equal(lines(), 1);
    }
    char *threads = strrchr(good, '\t') + 1, *name = strstr(good, "own fast");
    for (const char **end = (const char *[]){"", "\n", "0x\n", "-1\n", "2\n", "99999999999\n", "1", NULL};
         *end; ++end) {
        snprintf(bad, sizeof bad, "%.*s%s", (int)(threads - good), good, *end);
        write_file(bad, strlen(bad));
        expect(&known, 64, "own slow", false, false);
    }
    snprintf(bad, sizeof bad, "%.*sown lost\t1\n", (int)(name - good), good);
    write_file(bad, strlen(bad));
    expect(&known, 64, "own slow", false, false);
    memset(bad, 0, sizeof bad);
    write_file(bad, sizeof bad);
    expect(&measure, 64, "own fast", true, true);
    assert_int_equal(lines(), 1);
}

static void no_file_is_no_failure(void **state) {
    (void)state;
    const char *nowhere[] = {"", "/proc/none", "/dev/null/x", "/dev/null"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; ++i) {
        leati_arena *arena = NULL;
        leat_error err = {0};
        bool measured = false;
        assert_int_equal(setenv("LEAT_CACHE_DIR", nowhere[i], 1), 0);
        assert_int_equal(leati_arena_create(&arena, &err), LEAT_OK);
        assert_string_equal(chosen_kernel(arena, &measure, 64, NULL), "own fast");
        assert_true(runs > 0);
        assert_string_equal(chosen_kernel(arena, &measure, 64, &measured),
                            "own fast"); /* the arena still has the tuning cache */
        assert_true(measured);
        assert_int_equal(runs, 0);
        leati_arena_destroy(&arena);
    }
    assert_false(read_file());
}

static void the_file_lies_where_caches_lie(void **state) {
    (void)state;
    char name[128];
    assert_int_equal(unsetenv("LEAT_CACHE_DIR"), 0);
    snprintf(name, sizeof name, "%s/home", folder);
    assert_int_equal(setenv("HOME", name, 1), 0);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    expect(&measure, 64, "own fast", true, true);
    snprintf(name, sizeof name, "%s/home/.cache/leat/kernels", folder);
    assert_int_equal(access(name, F_OK), 0);
    snprintf(name, sizeof name, "%s/cache", folder);
    assert_int_equal(setenv("XDG_CACHE_HOME", name, 1), 0);
    expect(&measure, 64, "own fast", true, true);
    snprintf(name, sizeof name, "%s/cache/leat/kernels", folder);
    assert_int_equal(access(name, F_OK), 0);
}

static void the_file_is_bounded(void **state) {
    (void)state;
    char *many = malloc(TEXT);
    size_t at = 0;
    assert_non_null(many);
    at += (size_t)snprintf(many, TEXT, "leat kernels 1\n");
    for (int i = 0; i < MOST_LINES + 5; ++i)
        at += (size_t)snprintf(many + at, TEXT - at, "another CPU\tmatmul %d\town fast\t1\n", i);
    write_file(many, at);
    expect(&measure, 64, "own fast", true, true);
    assert_int_equal(lines(), MOST_LINES);
    assert_null(strstr(text, "matmul 5\t"));
    assert_non_null(strstr(text, "matmul 6\t"));
    expect(&known, 64, "own fast", true, false);
    assert_int_equal(truncate(path, 3 << 20), 0); /* far too large: some other file */
    expect(&measure, 64, "own fast", true, true);
    assert_int_equal(lines(), 1);
    free(many);
}

/* The last process to save wins, and no process reads an incomplete file. */
static void processes_share_the_file(void **state) {
    (void)state;
    enum { PROCESSES = 4, ROUNDS = 8 };
    for (int i = 0; i < PROCESSES; ++i)
        if (fork() == 0) {
            for (int k = 0; k < ROUNDS; ++k)
                if (strcmp(chosen_kernel(NULL, &measure, 64 + i * ROUNDS + k, NULL), "own fast") != 0)
                    _exit(1);
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; ++i) {
        int end = -1;
        assert_true(wait(&end) > 0);
        assert_int_equal(end, 0);
        lines();
    }
    assert_true(lines() >= ROUNDS);
}

/* A forked child has its own thread pool, and measures like its parent. */
static void a_forked_child_measures_like_its_parent(void **state) {
    (void)state;
    leati_arena *arena = NULL;
    leat_error err = {0};
    int end = -1;
    assert_int_equal(leati_arena_create(&arena, &err), LEAT_OK);
    assert_string_equal(chosen_kernel(arena, &measure, 64, NULL), "own fast");
    if (fork() == 0) _exit(strcmp(chosen_kernel(arena, &measure, 65, NULL), "own fast") != 0 || runs == 0);
    assert_true(wait(&end) > 0);
    assert_int_equal(end, 0);
    leati_arena_destroy(&arena);
}

/* Creating the plan fails, or chooses any of the kernels; nothing leaks. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    int64_t before = memory_live(), n = 1;
    for (bool failed = true; failed; ++n) {
        leati_plan *plan = NULL;
        leati_arena *arena = NULL;
        leat_error err = {0};
        (void)unlink(path);
        assert_int_equal(leati_arena_create(&arena, &err), LEAT_OK);
        memory_fail_at(n);
        leat_status status = compile(&plan, arena, &measure, 64, &err);
        failed = memory_failed();
        memory_fail_at(0);
        assert_true(status == LEAT_OK || (failed && status == LEAT_ENOMEM));
        assert_true((plan == NULL) == (status != LEAT_OK));
        leati_plan_destroy(&plan);
        leati_arena_destroy(&arena);
        assert_int_equal(memory_live(), before);
    }
    assert_true(n > 20);
}

/* Removes the folder.  Returns false if it still contains files, such as unfinished ones. */
static bool clean(void) {
    const char *made[] = {"kernels", "home/.cache/leat/kernels", "home/.cache/leat", "home/.cache",
                          "home",    "cache/leat/kernels",       "cache/leat",       "cache",
                          ""};
    bool all = true;
    for (size_t i = 0; i < sizeof made / sizeof *made; ++i) {
        char name[128];
        snprintf(name, sizeof name, "%s/%s", folder, made[i]);
        all = (remove(name) == 0 || i == 0) && all;
    }
    return all;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_was_measured_is_remembered, begin),
        cmocka_unit_test_setup(nothing_is_measured_unasked, begin),
        cmocka_unit_test_setup(fewer_threads_are_tried_where_there_is_little_work, begin),
        cmocka_unit_test_setup(a_damaged_file_is_measured_anew, begin),
        cmocka_unit_test_setup(no_file_is_no_failure, begin),
        cmocka_unit_test_setup(the_file_lies_where_caches_lie, begin),
        cmocka_unit_test_setup(the_file_is_bounded, begin),
        cmocka_unit_test_setup(processes_share_the_file, begin),
        cmocka_unit_test_setup(a_forked_child_measures_like_its_parent, begin),
        cmocka_unit_test_setup(every_allocation_may_fail, begin),
    };
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/kernels", folder);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    return clean() ? failures : 1;
}
