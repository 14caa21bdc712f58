/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of a steady prediction and of a steady training step: none.  The program traces itself with strace:
 * the calls between two that nobody else makes.  And what a steady prediction takes from the heap, libraries
 * included: nothing. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leat/predictor.h"
#include "support/heap_count.h"
#include "train/support.h"

enum { MARK = -1001, WARM = 50, STEADY = 200 };

static const char *self;
static int64_t heap_before, heap_used; /* between the marks */

/* ---- What is traced ---- */

static void mark(void) {
    close(MARK);
}

typedef enum net { DENSE, RECURRENT, CONVOLUTION } net;

static void build(leat_model **model, net kind, leat_error *err) {
    leat_builder *g = NULL;
    leat_node *x = NULL, *y = NULL;
    expect_ok(leat_builder_create(&g, err), err);
    switch (kind) {
    case DENSE:
        x = leat_input(g, (int64_t[]){64}, 1);
        y = leat_dense(leat_dense(x, 128, "relu"), 128, "relu");
        break;
    case RECURRENT:
        x = leat_input(g, (int64_t[]){5, 8}, 2);
        y = leat_lstm(x, 64, false);
        break;
    case CONVOLUTION: /* by products, and by Winograd's way */
        x = leat_input(g, (int64_t[]){8, 8, 16}, 3);
        y = leat_flatten(leat_conv2d(leat_conv2d(x, 32, 1, "relu"), 32, 3, "relu"));
        break;
    }
    y = leat_dense(y, 4, NULL);
    expect_ok(leat_model_create(model, &g, &x, 1, &y, 1, err), err);
}

static int predict(net kind) {
    leat_model *model = NULL;
    leat_predictor *predictor = NULL;
    leat_predictor_options options = leat_predictor_options_default();
    leat_error err = {0};
    float y[4];
    build(&model, kind, &err);
    options.streaming = kind == RECURRENT;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    for (int i = 0; i < WARM + STEADY; ++i) {
        if (i == WARM) {
            mark();
            heap_before = heap_calls();
        }
        expect_ok(leat_predictor_sync(predictor, &err), &err);
        expect_ok(leat_predictor_run(predictor, NULL, (void *[]){y}, &err), &err);
    }
    heap_used = heap_calls() - heap_before;
    mark();
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
    return 0;
}

static leat_status mark_steps(void *user, leat_training *training, int64_t batch, leat_logs *logs,
                              leat_error *err) {
    (void)user, (void)training, (void)logs, (void)err;
    if (batch == WARM || batch == WARM + STEADY) mark();
    return LEAT_OK;
}

static int train(int workers) {
    static float x[(WARM + STEADY + 10) * 8 * 64], y[(WARM + STEADY + 10) * 8 * 4];
    leat_error err = {0};
    leat_model *model = NULL;
    leat_compile_options compile = leat_compile_options_default();
    leat_callback callback = {.size = sizeof(leat_callback), .on_train_batch_end = mark_steps};
    leat_fit_options options = quiet_fit_with(1, (leat_callback *[]){&callback}, 1);
    int64_t samples = (WARM + STEADY + 10) * 8;
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 64}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 4}, y)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    build(&model, DENSE, &err);
    compile.optimizer = "adam";
    compile.loss = "mse";
    compile.metrics = "mae";
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    options.workers = workers;
    expect_ok(leat_model_fit(model, &arrays, 8, &options, NULL, &err), &err);
    leat_model_destroy(&model);
    return 0;
}

/* ---- Tracing ---- */

/* Runs argv with its output discarded, and returns the exit status. */
static int run(char *const *argv) {
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* LeakSanitizer does not work in a traced process */
        if (!freopen("/dev/null", "w", stderr)) _exit(126);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void need_strace(void) {
    int status = run((char *[]){"strace", "-f", "-o", "/dev/null", "true", NULL});
    if (status == 0) return;
    print_message("skipped: strace %s\n", status == 127 ? "is not installed" : "may not trace here");
    skip();
}

/* Returns true if a line of the trace is one of these waits, or a compute thread that leaves the core of another
 * thread. A line begins with the thread's number: "1234  futex(...". */
static bool is_wait(const char *line) {
    static const char *const waits[] = {"futex(",
                                        "sched_yield(",
                                        "clock_nanosleep(",
                                        "sched_getaffinity(",
                                        "sched_setaffinity(",
                                        "<... futex resumed>",
                                        "<... clock_nanosleep resumed>",
                                        "<... sched_yield resumed>"};
    line += strspn(line, "0123456789 ");
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; ++i)
        if (strncmp(line, waits[i], strlen(waits[i])) == 0) return true;
    return false;
}

static void expect_none(const char *mode, bool waits_aside) {
    char path[] = "/tmp/leat-calls-XXXXXX", line[1024], first[1024] = "";
    int marks = 0, calls = 0, file = mkstemp(path);
    need_strace();
    assert_int_equal(run((char *[]){"strace", "-f", "-o", path, (char *)(uintptr_t)self,
                                    (char *)(uintptr_t)mode, NULL}),
                     0);
    FILE *trace = fdopen(file, "r");
    assert_non_null(trace);
    while (fgets(line, sizeof line, trace)) {
        if (strstr(line, "close(-1001")) {
            ++marks; /* its end may be a line of its own, where another thread's call comes between */
        } else if (strstr(line, "<... close resumed>")) {
            continue;
        } else if (marks == 1 && !(waits_aside && is_wait(line))) {
            if (calls++ == 0) memcpy(first, line, sizeof line);
        }
    }
    fclose(trace);
    unlink(path);
    assert_int_equal(marks, 2);
    if (calls > 0) fail_msg("%d system calls in %d steps, the first: %s", calls, STEADY, first);
}

static void a_prediction_makes_none(void **state) {
    (void)state;
    expect_none("predict", false);
}

/* oneDNN's kernels take buffers from the heap, and a sanitizer's heap asks the system often. */
static void need_plain_heap(void) {
#ifdef __SANITIZE_ADDRESS__
    print_message("skipped: the address sanitizer's heap makes system calls of its own\n");
    skip();
#endif
}

static void a_prediction_with_convolutions_makes_none(void **state) {
    (void)state;
    need_plain_heap();
    expect_none("images", false);
}

static void a_step_of_a_recurrent_model_makes_none(void **state) {
    (void)state;
    expect_none("stream", false);
}

static void a_training_step_makes_none(void **state) {
    (void)state;
    need_plain_heap();
    expect_none("train", false);
}

static void with_a_worker_only_waits(void **state) {
    (void)state;
    need_plain_heap();
    expect_none("train-worker", true);
}

static void a_prediction_takes_nothing_from_the_heap(void **state) {
    (void)state;
    if (heap_calls() < 0) {
        print_message("skipped: the heap is a sanitizer's\n");
        skip();
    }
    for (net kind = DENSE; kind <= CONVOLUTION; ++kind) {
        int64_t before = heap_calls();
        predict(kind);
        assert_true(heap_calls() > before); /* making one does */
        assert_int_equal(heap_used, 0);
    }
}

int main(int argc, char **argv) {
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "predict") == 0) return predict(DENSE);
    if (argc > 1 && strcmp(argv[1], "stream") == 0) return predict(RECURRENT);
    if (argc > 1 && strcmp(argv[1], "images") == 0) return predict(CONVOLUTION);
    if (argc > 1 && strcmp(argv[1], "train") == 0) return train(0);
    if (argc > 1 && strcmp(argv[1], "train-worker") == 0) return train(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prediction_makes_none),
        cmocka_unit_test(a_prediction_with_convolutions_makes_none),
        cmocka_unit_test(a_step_of_a_recurrent_model_makes_none),
        cmocka_unit_test(a_training_step_makes_none),
        cmocka_unit_test(with_a_worker_only_waits),
        cmocka_unit_test(a_prediction_takes_nothing_from_the_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
