/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that writes checkpoints: what it writes is complete, a failure is told once, and an older checkpoint is
 * removed only after a newer one was written. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/support.h"
#include "checkpoint/writer.h"

#define EXPECT_STEPS(...)                                                                                    \
    expect_steps((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void write_with(leati_writer *writer, int64_t steps) {
    leati_writer_wait(writer);
    fill(leati_writer_snapshot(writer), steps);
    leati_writer_begin(writer, steps);
}

static void the_newest_are_kept(void **state) {
    (void)state;
    leati_writer *writer = NULL;
    leat_checkpoint_info info;
    leat_error err = {0};
    empty_folder();
    expect_ok(leati_writer_create(&writer, folder, 2, &err), &err);
    assert_true(leati_writer_is_idle(writer));
    for (int64_t steps = 1; steps <= 30; ++steps) {
        write_with(writer, steps);
        expect_ok(leati_writer_result(writer, &err), &err);
        assert_true(leati_writer_is_idle(writer));
        expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
        assert_int_equal(info.steps, steps);
    }
    EXPECT_STEPS(29, 30);
    leati_writer_destroy(&writer);
    assert_null(writer);
}

/* The checkpoint that was begun last is written even if nobody waits for it. */
static void destroy_finishes_the_work(void **state) {
    (void)state;
    leati_writer *writer = NULL;
    leat_error err = {0};
    empty_folder();
    for (int64_t steps = 1; steps <= 20; ++steps) {
        expect_ok(leati_writer_create(&writer, folder, 1, &err), &err);
        write_with(writer, steps);
        leati_writer_destroy(&writer);
        expect_steps(&steps, 1);
    }
    expect_ok(leati_writer_create(&writer, folder, 1, &err), &err);
    leati_writer_destroy(&writer);
    leati_writer_destroy(&writer);
}

/* A checkpoint that cannot be written costs no older one, and the writer goes on when the cause is gone. */
static void failures_are_told_once(void **state) {
    (void)state;
    leati_writer *writer = NULL;
    leat_error err = {0};
    char path[512];
    empty_folder();
    expect_ok(leati_writer_create(&writer, folder, 1, &err), &err);
    write_with(writer, 1);
    expect_ok(leati_writer_result(writer, &err), &err);
    snprintf(path, sizeof path, "%s/step-000000000002.leat", folder);
    assert_int_equal(mkdir(path, 0700), 0); /* a folder is not replaced by a file */
    write_with(writer, 2);
    assert_int_equal(leati_writer_result(writer, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "step-000000000002.leat"));
    expect_ok(leati_writer_result(writer, &err), &err);
    assert_int_equal(rmdir(path), 0);
    EXPECT_STEPS(1);
    write_with(writer, 2);
    expect_ok(leati_writer_result(writer, &err), &err);
    EXPECT_STEPS(2);
    leati_writer_destroy(&writer);
}

/* The checkpoint is not written if a file that belongs to it cannot be flushed to the disk. */
static void files_come_first(void **state) {
    (void)state;
    leati_writer *writer = NULL;
    leat_error err = {0};
    char path[512];
    empty_folder();
    write_text("log.csv", "epoch,loss\n");
    snprintf(path, sizeof path, "%s/log.csv", folder);
    expect_ok(leati_writer_create(&writer, folder, 2, &err), &err);
    fill(leati_writer_snapshot(writer), 1);
    expect_ok(leati_snapshot_add_file(leati_writer_snapshot(writer), path, &err), &err);
    leati_writer_begin(writer, 1);
    expect_ok(leati_writer_result(writer, &err), &err);
    fill(leati_writer_snapshot(writer), 2);
    expect_ok(leati_snapshot_add_file(leati_writer_snapshot(writer), path, &err), &err);
    unlink(path);
    leati_writer_begin(writer, 2);
    assert_int_equal(leati_writer_result(writer, &err), LEAT_EIO);
    EXPECT_STEPS(1);
    write_with(writer, 3); /* a new snapshot has no files of the one before */
    expect_ok(leati_writer_result(writer, &err), &err);
    EXPECT_STEPS(1, 3);
    leati_writer_destroy(&writer);
}

static void the_folder_disappears(void **state) {
    (void)state;
    leati_writer *writer = NULL;
    leat_error err = {0};
    char path[512];
    empty_folder();
    snprintf(path, sizeof path, "%s/inner", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    expect_ok(leati_writer_create(&writer, path, 2, &err), &err);
    assert_int_equal(rmdir(path), 0);
    write_with(writer, 1);
    assert_int_not_equal(leati_writer_result(writer, &err), LEAT_OK);
    leati_writer_destroy(&writer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_are_kept),    cmocka_unit_test(destroy_finishes_the_work),
        cmocka_unit_test(failures_are_told_once), cmocka_unit_test(files_come_first),
        cmocka_unit_test(the_folder_disappears),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
