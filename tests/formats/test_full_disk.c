/* SPDX-License-Identifier: Apache-2.0 */
/* Files that cannot be written completely give an error.  The tests set a limit of file sizes: a write beyond the
 * limit fails as on a full disk, if SIGXFSZ, which the kernel also sends, does not end the program. */
#include "cmocka_all.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leat/callback.h"
#include "leat/file.h"
#include "leat/model.h"
#include "leat/npz.h"
#include "leat/trace.h"
#include "leat/train.h"

enum { samples = 64, width = 32 };

static char folder[] = "/tmp/leat-full-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static int entries(const char *path) {
    int count = -2; /* . and .. */
    DIR *directory = opendir(path);
    for (; directory && readdir(directory);) ++count;
    if (directory) closedir(directory);
    return count;
}

static leat_model *make_model(void) {
    leat_error err = {0};
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    assert_int_equal(leat_builder_create(&builder, &err), LEAT_OK);
    leat_node *x = leat_input(builder, (int64_t[]){width}, 1), *y = leat_dense(x, width, NULL);
    assert_int_equal(leat_model_create(&model, &builder, &x, 1, &y, 1, &err), LEAT_OK);
    leat_compile_options options = leat_compile_options_default();
    options.loss = "mse";
    assert_int_equal(leat_model_compile(model, &options, &err), LEAT_OK);
    return model;
}

static leat_status fit(leat_model *model, leat_callback *callback, leat_trace *trace, leat_error *err) {
    static float x[samples * width];
    leat_array array = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, width}, x)};
    leat_arrays arrays = {.inputs = &array, .targets = &array, .input_count = 1, .target_count = 1};
    leat_fit_options options = leat_fit_options_default();
    options.verbose = 0;
    options.callbacks = &callback;
    options.callback_count = callback ? 1 : 0;
    options.trace = trace;
    return leat_model_fit(model, &arrays, 4, &options, NULL, err);
}

static leat_status save_model(leat_model *model, leat_error *err) {
    return leat_model_save(model, "out", true, err);
}

static leat_status save_weights(leat_model *model, leat_error *err) {
    return leat_model_save_weights(model, "out", err);
}

static leat_status save_array(leat_model *model, leat_error *err) {
    leat_tensor kernel = leat_model_weight(model, 0);
    return leat_npy_write("out", &kernel, err);
}

static leat_status save_arrays(leat_model *model, leat_error *err) {
    leat_tensor kernel = leat_model_weight(model, 0);
    return leat_npz_write("out", &(const char *){"kernel"}, &kernel, 1, err);
}

static leat_status save_bytes(leat_model *model, leat_error *err) {
    leat_tensor kernel = leat_model_weight(model, 0);
    return leat_file_replace("out", kernel.data, leat_tensor_bytes(&kernel), err);
}

static leat_status log_csv(leat_model *model, leat_error *err) {
    leat_callback callback;
    leat_status status = leat_csv_logger_create(&callback, sizeof callback, "out", NULL, false, err);
    if (status == LEAT_OK) status = fit(model, &callback, NULL, err);
    leat_callback_destroy(&callback);
    return status;
}

static leat_status write_trace(leat_model *model, leat_error *err) {
    leat_trace *trace = NULL;
    leat_status status = leat_trace_open(&trace, "out", err);
    if (status == LEAT_OK) status = fit(model, NULL, trace, err);
    leat_status closed = leat_trace_close(&trace, err);
    return status == LEAT_OK ? closed : status;
}

static const struct {
    leat_status (*write)(leat_model *model, leat_error *err);
    bool in_place; /* the part that was written before the failure stays */
} writers[] = {{save_model, false}, {save_weights, false}, {save_array, false}, {save_arrays, false},
               {save_bytes, false}, {log_csv, true},       {write_trace, true}};
enum { writer_count = sizeof writers / sizeof *writers };

static void limit(rlim_t bytes) {
    struct rlimit now;
    getrlimit(RLIMIT_FSIZE, &now);
    now.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &now);
}

/* Expects that the write fails with a message and leaves no descriptor and no unfinished file.  Returns 0, or the
 * number of the expectation that failed. */
static int fail_to_write(leat_model *model, int writer, rlim_t bytes) {
    leat_error err = {0};
    int before = entries("/proc/self/fd");
    limit(bytes);
    leat_status status = writers[writer].write(model, &err);
    limit(RLIM_INFINITY);
    sigset_t pending;
    sigpending(&pending);
    if (status != LEAT_EIO) return 1;
    if (!strstr(err.message, "File too large") || !strstr(err.message, "out")) return 2;
    if (entries("/proc/self/fd") != before) return 3;
    if (sigismember(&pending, SIGXFSZ)) return 4;
    if (entries(".") != (writers[writer].in_place ? 1 : 0)) return 5;
    unlink("out");
    return 0;
}

/* Runs in a child process, which must also exit normally: at exit HDF5 closes the files that are still open. */
static void expect_failure(int writer, rlim_t bytes) {
    pid_t child = fork();
    if (child == 0) {
        leat_model *model = make_model();
        int wrong = fail_to_write(model, writer, bytes);
        leat_error err = {0};
        if (wrong == 0 && writers[writer].write(model, &err) != LEAT_OK) wrong = 6;
        leat_model_destroy(&model);
        exit(wrong);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink("out");
    if (WIFSIGNALED(status)) fail_msg("writer %d, limit %d: signal %d", writer, (int)bytes, WTERMSIG(status));
    if (status) fail_msg("writer %d, limit %d: exit %d", writer, (int)bytes, WEXITSTATUS(status));
}

static void a_file_that_grows_too_large_is_an_error(void **state) {
    (void)state;
    const rlim_t limits[] = {0, 50, 1000, 4000};
    for (int writer = 0; writer < writer_count; ++writer)
        for (size_t i = 0; i < sizeof limits / sizeof *limits; ++i)
            if (writers[writer].write != log_csv || limits[i] == 0) expect_failure(writer, limits[i]);
}

/* Tries all limits in steps of 512 bytes up to the length of the model's file. */
static void a_model_can_fail_to_be_saved_anywhere(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_model();
    assert_int_equal(leat_model_save(model, "out", true, &err), LEAT_OK);
    FILE *file = fopen("out", "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    fclose(file);
    unlink("out");
    for (long most = 512; most < bytes; most += 512)
        assert_int_equal(fail_to_write(model, 0, (rlim_t)most), 0);
    leat_model_destroy(&model);
}

static void count(int number) {
    (void)number;
}

/* The program's handler and signal mask do not change. */
static void a_handler_of_the_program_stays(void **state) {
    (void)state;
    struct sigaction own = {.sa_handler = count}, before, after;
    sigset_t mask;
    assert_int_equal(sigaction(SIGXFSZ, &own, &before), 0);
    leat_model *model = make_model();
    assert_int_equal(fail_to_write(model, 0, 1000), 0);
    assert_int_equal(sigaction(SIGXFSZ, &before, &after), 0);
    assert_ptr_equal(after.sa_handler, count);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGXFSZ), 0);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_grows_too_large_is_an_error),
        cmocka_unit_test(a_model_can_fail_to_be_saved_anywhere),
        cmocka_unit_test(a_handler_of_the_program_stays),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
