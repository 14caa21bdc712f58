/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in the folder of a run: full disks, damaged checkpoints, changed data, other processes, leftovers.  After
 * each, `leat fit --resume` ends with the bytes of a run without faults, or says what is wrong and deletes nothing.
 * tools/kill-runs has the kills at random instants. */
#include "cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "data/files.h"
#include "feed/procs.h"
#include "feed/source.h"
#include "leat/npz.h"

#define QUIET FIT "--verbose 0 --seed 3 "
/* The paths of checkpoints; an epoch has 3 steps. */
#define STEP(steps) "run/checkpoints/step-0000000000" steps ".leat"

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static int leave(void **state) {
    if (system("rm -rf run* whole small .chmod") != 0) return -1;
    return files_leave(state);
}

static void remove_run(void) {
    assert_int_equal(system("rm -rf run"), 0);
}

/* Removes what a test has left. */
static int remove_all(void **state) {
    (void)state;
    return system("chmod -R u+rwx run* 2>.chmod; rm -rf run*");
}

/* Reads a file into memory that the caller frees. */
static char *read_bytes(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *length = (size_t)ftell(file);
    rewind(file);
    char *data = malloc(*length + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *length, file), *length);
    fclose(file);
    return data;
}

static void expect_same_file(const char *a, const char *b) {
    size_t length = 0, other = 0;
    char *first = read_bytes(a, &length), *second = read_bytes(b, &other);
    if (length != other || memcmp(first, second, length) != 0) fail_msg("%s and %s differ", a, b);
    free(first);
    free(second);
}

/* Checks that the model and the log of a folder are those of whole/, a run of 4 epochs without faults. */
static void expect_whole(const char *folder) {
    char path[128];
    snprintf(path, sizeof path, "%s/model.h5", folder);
    expect_same_file(path, "whole/model.h5");
    snprintf(path, sizeof path, "%s/log.csv", folder);
    expect_same_file(path, "whole/log.csv");
}

static int enter_with_whole(void **state) {
    if (enter(state) != 0) return -1;
    runs(QUIET "--epochs 4 --out whole");
    return 0;
}

/* Overwrites bytes in the middle of a file. */
static void flip(const char *path) {
    struct stat info = {0};
    char byte = 0;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &info) == 0);
    assert_int_equal(pread(fd, &byte, 1, info.st_size / 2), 1);
    byte = (char)~byte;
    assert_int_equal(pwrite(fd, &byte, 1, info.st_size / 2), 1);
    close(fd);
}

static void copy(const char *from, const char *to) {
    size_t length = 0;
    char *data = read_bytes(from, &length);
    FILE *file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, length, file), length);
    fclose(file);
    free(data);
}

static pid_t dead_process(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return child;
}

/* ---- Leftovers ---- */

static void a_resume_removes_unfinished_files(void **state) {
    (void)state;
    char model[128], checkpoint[128];
    pid_t dead = dead_process();
    snprintf(model, sizeof model, "run/model.h5.leat-%d-0.tmp", (int)dead);
    snprintf(checkpoint, sizeof checkpoint, STEP("06") ".leat-%d-0.tmp", (int)dead);
    runs(QUIET "--epochs 1 --out run");
    write_text(model, "half");
    write_text(checkpoint, "half");
    write_text("run/mine.tmp", "of the user");
    runs("fit --resume run --epochs 4");
    assert_false(exists(model) || exists(checkpoint));
    assert_true(exists("run/mine.tmp"));
    expect_whole("run");
}

/* Returns the number of event files in run-board/train; *filled becomes true if one of them is not empty. */
static int count_events(bool *filled) {
    struct dirent **names = NULL;
    int count = scandir("run-board/train", &names, NULL, NULL), files = 0;
    *filled = false;
    for (int i = 0; i < count; ++i) {
        char path[512];
        struct stat info;
        snprintf(path, sizeof path, "run-board/train/%s", names[i]->d_name);
        if (strstr(names[i]->d_name, ".leat.") && stat(path, &info) == 0) {
            ++files;
            *filled = *filled || info.st_size > 0;
        }
        free(names[i]);
    }
    free(names);
    return files;
}

/* TensorBoard would show the steps of both attempts. */
static void a_run_that_begins_anew_removes_its_event_files(void **state) {
    (void)state;
    bool filled = false;
    pid_t child = start(QUIET "--epochs 100000 --checkpoint-every 1h --out run --tensorboard run-board");
    for (int tries = 0; tries < 10000 && !filled; ++tries, sleep_us(1000)) (void)count_events(&filled);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(filled && !exists(STEP("03")));
    copy("d.npz", "run-board/train/events.out.tfevents.1000000000.leat.1.0.v2"); /* of another run */
    child = start("fit --resume run --verbose 1");
    for (int tries = 0; tries < 10000 && !catches(child); ++tries) sleep_us(1000);
    assert_int_equal(kill(child, SIGINT), 0);
    assert_int_equal(finish(child), 130);
    assert_int_equal(count_events(&filled), 2);
    assert_true(exists("run-board/train/events.out.tfevents.1000000000.leat.1.0.v2"));
}

/* Returns true if run/checkpoints has a file of a checkpoint, perhaps an unfinished one. */
static bool has_checkpoint(void) {
    struct dirent **names = NULL;
    int count = scandir("run/checkpoints", &names, NULL, NULL), found = 0;
    for (int i = 0; i < count; ++i) {
        found += strncmp(names[i]->d_name, "step-", 5) == 0;
        free(names[i]);
    }
    free(names);
    return found > 0;
}

/* A run that continues from a checkpoint before best.h5 would replace it by the best model of earlier epochs. */
static void a_new_best_model_is_followed_by_a_checkpoint(void **state) {
    (void)state;
    pid_t child = start(QUIET "--epochs 1000000 --validation npz:d.npz --checkpoint-every 1h --out run");
    bool found = false;
    for (int tries = 0; tries < 10000 && !found; ++tries, sleep_us(1000)) found = has_checkpoint();
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(found && exists("run/best.h5"));
}

/* ---- Runs that have ended ---- */

static void a_finished_run_is_not_trained_again(void **state) {
    (void)state;
    runs(QUIET "--epochs 2 --out run");
    copy("run/model.h5", "run/before.h5");
    copy("run/log.csv", "run/before.csv");
    for (int i = 0; i < 3; ++i) {
        runs("fit --resume run");
        expect_same_file("run/before.h5", "run/model.h5");
        expect_same_file("run/before.csv", "run/log.csv");
    }
    runs("fit --resume run --epochs 4 --workers 2 --use-multiprocessing");
    expect_whole("run");
}

/* Each resume writes the last checkpoint again, which must still say that a callback has ended the run. */
static void a_run_that_a_callback_ended_stays_ended(void **state) {
    (void)state;
    runs(QUIET "--epochs 9 --out run "
               "--early-stopping monitor=loss,min_delta=100,patience=2,restore_best_weights=true");
    copy("run/model.h5", "run/before.h5");
    copy("run/log.csv", "run/before.csv");
    for (int i = 0; i < 3; ++i) {
        runs(i < 2 ? "fit --resume run" : "fit --resume run --epochs 20");
        expect_same_file("run/before.h5", "run/model.h5");
        expect_same_file("run/before.csv", "run/log.csv");
    }
}

static void a_folder_with_a_run_is_refused(void **state) {
    (void)state;
    char unfinished[128];
    runs(QUIET "--epochs 1 --out run");
    copy("run/model.h5", "run/before.h5");
    fails(QUIET "--epochs 2 --out run", "leat fit --resume run; to replace it, add --overwrite");
    expect_same_file("run/before.h5", "run/model.h5");
    snprintf(unfinished, sizeof unfinished, "run/best.h5.leat-%d-0.tmp", (int)dead_process());
    write_text(unfinished, "half");
    runs(QUIET "--epochs 4 --out run --overwrite");
    assert_false(exists(unfinished));
    expect_whole("run");
    remove_run();
    fails("fit --resume run", "run");
    assert_false(exists("run"));
}

/* ---- Damaged checkpoints ---- */

static void the_checkpoint_before_a_damaged_one_is_taken(void **state) {
    (void)state;
    for (int truncates = 0; truncates < 2; ++truncates) {
        runs(QUIET "--epochs 1 --out run");
        runs("fit --resume run --epochs 2");
        assert_true(exists(STEP("03")));
        if (truncates)
            assert_int_equal(truncate(STEP("06"), 1000), 0);
        else
            flip(STEP("06"));
        runs("fit --resume run --epochs 4 --verbose 2");
        if (!strstr(errors, "skipped a checkpoint: ") || !strstr(errors, "step-000000000006.leat"))
            fail_msg("%s", errors);
        if (!strstr(errors, "continuing after step 3 ")) fail_msg("%s", errors);
        expect_whole("run");
        remove_run();
    }
}

static void damaged_checkpoints_are_refused_and_kept(void **state) {
    (void)state;
    runs(QUIET "--epochs 2 --out run");
    assert_true(exists(STEP("06")));
    (void)!system("for f in run/checkpoints/step-*; do : > $f; done");
    copy("run/model.h5", "run/before.h5");
    fails("fit --resume run --epochs 4", "step-0000000000");
    assert_true(exists(STEP("06")));
    expect_same_file("run/before.h5", "run/model.h5");
}

/* ---- Data and options ---- */

static void changed_data_is_refused(void **state) {
    (void)state;
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    copy("d.npz", "run.npz");
    copy("d.npz", "run-before.npz");
#define WITH_COPY                                                                                            \
    "fit small.json --train npz:run.npz --loss categorical_crossentropy --optimizer adam --metrics "         \
    "accuracy "                                                                                              \
    "--verbose 0 --seed 3 --epochs 2 --out run"
    runs(WITH_COPY);
    copy("run/model.h5", "run/before.h5");
    assert_int_equal(utimensat(AT_FDCWD, "run.npz", times, 0), 0);
    fails("fit --resume run --epochs 4", "add --data-changed");
    flip("run.npz");
    fails("fit --resume run --epochs 4", "run.npz");
    assert_int_equal(truncate("run.npz", 100), 0);
    fails("fit --resume run --epochs 4", "add --data-changed");
    assert_int_equal(unlink("run.npz"), 0);
    fails("fit --resume run --epochs 4", "run.npz");
    expect_same_file("run/before.h5", "run/model.h5");
    copy("run-before.npz", "run.npz");
    runs("fit --resume run --epochs 3 --data-changed");
    runs("fit --resume run --epochs 4"); /* data that was accepted once is not refused again */
    expect_whole("run");
}

static void options_that_change_the_result_are_refused(void **state) {
    (void)state;
    static const char *const others[] = {
        "--batch-size 16",     "--seed 4",         "--optimizer sgd",    "--loss mse",
        "--shuffle batches",   "--no-shuffle",     "--metrics mae",      "--steps-per-epoch 2",
        "--validation-freq 2", "--save-best loss", "--class-weight 0:2", "--dtype-policy mixed_bfloat16",
        "--deterministic",     "--check-finite",   "--train npz:e.npz",  "--early-stopping patience=2",
        "--device auto",
    };
    runs(QUIET "--epochs 1 --out run");
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        char line[128], name[64], says[128];
        snprintf(line, sizeof line, "fit --resume run --epochs 4 %s", others[i]);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(others[i], " "), others[i]);
        snprintf(says, sizeof says, "leat fit: %s", name);
        refused(line, says);
        if (!strstr(errors, "would change the result of the run")) fail_msg("%s: %s", line, errors);
    }
    runs("fit --resume run --epochs 4 --seed 3 --threads 1 --workers 0"); /* the seed is that of the run */
    expect_whole("run");
}

/* ---- Other processes ---- */

static void a_second_process_is_refused_until_the_first_is_dead(void **state) {
    (void)state;
    pid_t workers[most_children];
    char holder[64];
    runs(QUIET "--epochs 200 --checkpoint-every 1h --out run-long");
    pid_t first = start(QUIET "--epochs 200 --out run --use-multiprocessing --workers 2");
    pid_t helper = helper_of(first);
    workers_of(helper, 2, workers);
    assert_int_equal(kill(helper, SIGSTOP), 0); /* the dying workers stay for a while */
    assert_int_equal(kill(first, SIGSTOP), 0);
    snprintf(holder, sizeof holder, "process %d", (int)first);
    fails("fit --resume run", holder);
    fails(QUIET "--epochs 4 --out run", holder);
    fails(QUIET "--epochs 4 --out run --overwrite", holder);
    assert_int_equal(kill(first, SIGKILL), 0);
    assert_int_equal(waitpid(first, NULL, 0), first);
    runs("fit --resume run");
    kill(helper, SIGCONT);
    for (int tries = 0; tries < 1000 && (kill(workers[0], 0) == 0 || kill(workers[1], 0) == 0); ++tries)
        sleep_us(10000);
    assert_int_not_equal(kill(workers[0], 0), 0);
    assert_int_not_equal(kill(workers[1], 0), 0);
    expect_same_file("run/model.h5", "run-long/model.h5");
    expect_same_file("run/log.csv", "run-long/log.csv");
}

/* ---- Disks ---- */

/* A run whose files may not be larger than 4 KB: neither its checkpoints nor the model can be written. */
static void a_run_survives_files_that_cannot_be_written(void **state) {
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pid_t child = start(FIT "--verbose 2 --seed 3 --epochs 4 --out run");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(finish(child), 1);
    static const char *const said[] = {"Epoch 4/4", "checkpoint was not written",
                                       "/run/model.h5': File too large"};
    for (size_t i = 0; i < sizeof said / sizeof *said; ++i)
        if (!strstr(errors, said[i])) fail_msg("expected '%s': %s", said[i], errors);
    assert_false(exists("run/model.h5"));
    runs("fit --resume run");
    expect_whole("run");
}

/* On a file system of 60 KB the run keeps its checkpoints, but there is no space for the model. */
static void a_full_disk_leaves_a_run_that_can_be_resumed(void **state) {
    (void)state;
    assert_int_equal(mkdir("small", 0777), 0);
    if (mount("tmpfs", "small", "tmpfs", 0, "size=32k") != 0) {
        assert_int_equal(rmdir("small"), 0);
        skip();
    }
    int code = run(QUIET "--epochs 4 --out small/run");
    bool saved = exists("small/run/model.h5"), state_saved = strstr(errors, "leat fit --resume small/run\n");
    int grown = mount("tmpfs", "small", "tmpfs", MS_REMOUNT, "size=4m");
    int resumed = run("fit --resume small/run");
    int copied = system("cp -r small/run run");
    assert_int_equal(umount("small"), 0);
    assert_int_equal(rmdir("small"), 0);
    assert_int_equal(code, 1);
    assert_false(saved);
    assert_true(state_saved);
    assert_true(grown == 0 && resumed == 0 && copied == 0);
    expect_whole("run");
}

/* Runs a command as another user, for whom the permissions of folders hold. */
static int run_as_nobody(const char *line) {
    enum { nobody = 65534 };
    int code = 0;
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(nobody) != 0 || setuid(nobody) != 0)) _exit(98);
        _exit(access(LEAT_COMMAND, X_OK) == 0 ? run(line) : 98);
    }
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFEXITED(code));
    return WEXITSTATUS(code);
}

/* A run does not go on where it cannot write checkpoints, and it is left as it was. */
static void a_read_only_folder_is_refused(void **state) {
    (void)state;
    runs(QUIET "--epochs 1 --out run");
    copy("run/model.h5", "run-before.h5");
    assert_int_equal(chmod("run/checkpoints", 0555), 0);
    assert_int_equal(system("chmod a+rwx . run && chmod a+rw run/lock run/[a-z]*.*"), 0);
    assert_int_equal(chmod("run", 0555), 0);
    int refusal = run_as_nobody("fit --resume run --epochs 4");
    expect_same_file("run-before.h5", "run/model.h5");
    assert_int_equal(chmod("run", 0777), 0);
    int code = run_as_nobody("fit --resume run --epochs 4");
    assert_int_equal(chmod("run/checkpoints", 0755), 0);
    if (code == 98) LEAT_SKIP("another user cannot run leat here");
    assert_int_equal(refusal, 1);
    assert_int_equal(code, 1);
    assert_true(exists(STEP("03")) && !exists(STEP("12")));
    expect_same_file("run-before.h5", "run/model.h5");
    runs("fit --resume run --epochs 4");
    expect_whole("run");
}

/* ---- NaN ---- */

/* Writes run.npz, whose third batch of 30 samples has a NaN. */
static void write_data_with_nan(void) {
    enum { samples = 90 };
    static float x[samples][4], y[samples][3];
    for (int i = 0; i < samples; ++i) y[i][i % 3] = 1;
    x[75][2] = NAN;
    leat_tensor tensors[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 4}, x),
                             leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 3}, y)};
    assert_int_equal(leat_npz_write("run.npz", (const char *[]){"x", "y"}, tensors, 2, NULL), LEAT_OK);
}

static void a_loss_of_nan_ends_the_run_before_the_model_is_written(void **state) {
    (void)state;
    write_data_with_nan();
    fails("fit small.json --train npz:run.npz --loss mse --no-shuffle --batch-size 30 --verbose 0 --epochs 4 "
          "--checkpoint-every 1 --out run",
          "the loss is not finite after step 3 of epoch 1");
    assert_non_null(strstr(errors, "the last checkpoint, after step "));
    assert_true(exists(STEP("01")) || exists(STEP("02")));
    assert_false(exists(STEP("03")) || exists("run/model.h5"));
    fails("fit --resume run", "the loss is not finite after step 3 of epoch 1");
    assert_true(exists(STEP("01")) || exists(STEP("02")));
    assert_false(exists(STEP("03")) || exists("run/model.h5"));
}

int main(void) {
#define test(name) cmocka_unit_test_teardown(name, remove_all)
    const struct CMUnitTest tests[] = {
        test(a_resume_removes_unfinished_files),
        test(a_run_that_begins_anew_removes_its_event_files),
        test(a_new_best_model_is_followed_by_a_checkpoint),
        test(a_finished_run_is_not_trained_again),
        test(a_run_that_a_callback_ended_stays_ended),
        test(a_folder_with_a_run_is_refused),
        test(the_checkpoint_before_a_damaged_one_is_taken),
        test(damaged_checkpoints_are_refused_and_kept),
        test(changed_data_is_refused),
        test(options_that_change_the_result_are_refused),
        test(a_second_process_is_refused_until_the_first_is_dead),
        test(a_run_survives_files_that_cannot_be_written),
        test(a_full_disk_leaves_a_run_that_can_be_resumed),
        test(a_read_only_folder_is_refused),
        test(a_loss_of_nan_ends_the_run_before_the_model_is_written),
    };
    alarm(240);
    return cmocka_run_group_tests(tests, enter_with_whole, leave);
}
