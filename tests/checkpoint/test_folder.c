/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of checkpoints: which files count, which one is the newest, and which are removed. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "checkpoint/support.h"

#define EXPECT_STEPS(...)                                                                                    \
    expect_steps((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Damages the checkpoint after `steps` steps. */
static void damage(int64_t steps) {
    char *path = NULL;
    leat_error err = {0};
    expect_ok(leati_checkpoint_path(&path, folder, steps, &err), &err);
    assert_int_equal(truncate(path, 50), 0);
    leati_free(path);
}

static void only_exact_names_count(void **state) {
    (void)state;
    static const char *const others[] = {"step-7.leat",
                                         "step- 7.leat",
                                         "step-+00000000007.leat",
                                         "step--00000000007.leat",
                                         "step-000000000007.leat~",
                                         "step-000000000007.leat.leat-1-0.tmp",
                                         "step-000000000007",
                                         "step-0000000000007.leat",
                                         "xstep-000000000007.leat",
                                         "step-99999999999999999999.leat",
                                         "step-.leat",
                                         "lock"};
    empty_folder();
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) write_text(others[i], "x");
    expect_steps(NULL, 0);
    write_checkpoint(7);
    write_checkpoint(0);
    write_checkpoint(INT64_C(1234567890123)); /* 13 digits */
    EXPECT_STEPS(0, 7, INT64_C(1234567890123));
}

static void the_newest_is_found(void **state) {
    (void)state;
    leat_checkpoint_info info;
    leat_error err = {0};
    empty_folder();
    assert_int_equal(leat_checkpoint_find(folder, &info, sizeof info, &err), LEAT_ENOTFOUND);
    assert_int_equal(leat_checkpoint_find("/tmp/leat-there-is-no-such-folder", &info, sizeof info, &err),
                     LEAT_ENOTFOUND);
    for (int64_t steps = 5; steps <= 30; steps += 5) write_checkpoint(steps);
    expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
    assert_true(info.epoch == 3 && info.step == 0 && info.steps == 30 && info.ended && info.damaged == 0);
    assert_non_null(strstr(info.path, "/step-000000000030.leat"));
    damage(30);
    damage(25);
    damage(5);
    expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
    assert_true(info.epoch == 2 && info.steps == 20 && !info.ended && info.damaged == 2);
    damage(20);
    damage(15);
    damage(10);
    assert_int_equal(leat_checkpoint_find(folder, &info, sizeof info, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "step-000000000005.leat"));
    assert_int_equal(info.steps, 0);
}

/* A link without a target is no reason to overlook the checkpoint before it, or to begin anew. */
static void a_link_without_a_target(void **state) {
    (void)state;
    leat_checkpoint_info info;
    leat_error err = {0};
    char path[512];
    empty_folder();
    snprintf(path, sizeof path, "%s/step-000000000099.leat", folder);
    assert_int_equal(symlink("/tmp/leat-there-is-no-such-file", path), 0);
    assert_int_equal(leat_checkpoint_find(folder, &info, sizeof info, &err), LEAT_EFORMAT);
    write_checkpoint(7);
    expect_ok(leat_checkpoint_find(folder, &info, sizeof info, &err), &err);
    assert_true(info.steps == 7 && info.damaged == 1);
    expect_ok(leati_checkpoint_remove_after(folder, 7, &err), &err);
    EXPECT_STEPS(7);
}

/* A path that the info has no room for is left out, not cut. */
static void a_long_path(void **state) {
    (void)state;
    leat_checkpoint_info info;
    leat_error err = {0};
    char path[1200];
    empty_folder();
    write_checkpoint(3);
    size_t used = (size_t)snprintf(path, sizeof path, "%s", folder);
    while (used + 2 < sizeof path) used += (size_t)snprintf(path + used, sizeof path - used, "/.");
    expect_ok(leat_checkpoint_find(path, &info, sizeof info, &err), &err);
    assert_int_equal(info.steps, 3);
    assert_string_equal(info.path, "");
}

static void the_oldest_are_removed(void **state) {
    (void)state;
    leat_error err = {0};
    empty_folder();
    for (int64_t steps = 90; steps >= 10; steps -= 20) write_checkpoint(steps);
    write_text("step-5.leat", "not a checkpoint");
    expect_ok(leati_checkpoint_prune(folder, 5, &err), &err);
    EXPECT_STEPS(10, 30, 50, 70, 90);
    expect_ok(leati_checkpoint_prune(folder, 2, &err), &err);
    EXPECT_STEPS(70, 90);
    expect_ok(leati_checkpoint_prune(folder, 1, &err), &err);
    EXPECT_STEPS(90);
}

static void later_ones_are_removed(void **state) {
    (void)state;
    leat_error err = {0};
    empty_folder();
    for (int64_t steps = 10; steps <= 40; steps += 10) write_checkpoint(steps);
    expect_ok(leati_checkpoint_remove_after(folder, 20, &err), &err);
    EXPECT_STEPS(10, 20);
    expect_ok(leati_checkpoint_remove_after(folder, 20, &err), &err);
    EXPECT_STEPS(10, 20);
}

static void folders_are_made(void **state) {
    (void)state;
    char path[512];
    leat_error err = {0};
    empty_folder();
    snprintf(path, sizeof path, "%s/caf\xC3\xA9 %%s {x}", folder);
    expect_ok(leati_checkpoint_folder_make(path, &err), &err);
    expect_ok(leati_checkpoint_folder_make(path, &err), &err);
    rmdir(path);
    write_text("file", "x");
    snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(leati_checkpoint_folder_make(path, &err), LEAT_EIO);
    snprintf(path, sizeof path, "%s/no/parent", folder);
    assert_int_equal(leati_checkpoint_folder_make(path, &err), LEAT_EIO);
}

static void options_are_checked(void **state) {
    (void)state;
    leat_checkpoint_options options = leat_checkpoint_options_default(), read;
    leat_error err = {0};
    assert_int_equal(leati_checkpoint_options_read(&options, &read, &err), LEAT_EINVAL);
    options.folder = "";
    assert_int_equal(leati_checkpoint_options_read(&options, &read, &err), LEAT_EINVAL);
    options.folder = "x";
    expect_ok(leati_checkpoint_options_read(&options, &read, &err), &err);
    assert_true(read.every_epochs == 1 && read.keep == 2 && !read.resume);
    options.keep = 0;
    assert_int_equal(leati_checkpoint_options_read(&options, &read, &err), LEAT_EINVAL);
    options.keep = 1;
    options.every_ms = -1;
    assert_int_equal(leati_checkpoint_options_read(&options, &read, &err), LEAT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_without_a_target), cmocka_unit_test(only_exact_names_count),
        cmocka_unit_test(the_newest_is_found),     cmocka_unit_test(a_long_path),
        cmocka_unit_test(the_oldest_are_removed),  cmocka_unit_test(later_ones_are_removed),
        cmocka_unit_test(folders_are_made),        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
