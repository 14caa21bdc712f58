/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files and atomic replacement. */
#include "cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char folder[] = "/tmp/leat-file-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int files_here(void) {
    int count = 0;
    DIR *directory = opendir(".");
    for (struct dirent *entry; directory && (entry = readdir(directory));) count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static int remove_folder(void **state) {
    (void)state;
    unlink("kept");
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void write_text(const char *path, const char *text) {
    leati_replacement file;
    leat_error err = {0};
    assert_int_equal(leati_replace_begin(&file, path, &err), LEAT_OK);
    assert_int_equal(leati_replace_write(&file, text, strlen(text), &err), LEAT_OK);
    assert_int_equal(leati_replace_commit(&file, &err), LEAT_OK);
    leati_replace_abandon(&file); /* nothing is owed: does nothing */
}

static void a_file_is_replaced_in_one_step(void **state) {
    (void)state;
    leat_error err = {0};
    write_text("kept", "first");
    leati_map old, now;
    assert_int_equal(leati_map_open(&old, "kept", &err), LEAT_OK);
    write_text("kept", "the second");
    assert_int_equal(leati_map_open(&now, "kept", &err), LEAT_OK);
    assert_memory_equal(old.data, "first", 5); /* a reader keeps what it opened */
    assert_int_equal(now.size, 10);
    assert_memory_equal(now.data, "the second", 10);
    leati_map_close(&old);
    leati_map_close(&now);
    assert_int_equal(files_here(), 1);
}

static void an_abandoned_file_leaves_nothing(void **state) {
    (void)state;
    leat_error err = {0};
    leati_replacement file;
    assert_int_equal(leati_replace_begin(&file, "kept", &err), LEAT_OK);
    assert_int_equal(leati_replace_write(&file, "junk", 4, &err), LEAT_OK);
    leati_replace_abandon(&file);
    assert_int_equal(files_here(), 1);
}

static void two_writers_do_not_meet(void **state) {
    (void)state;
    leat_error err = {0};
    leati_replacement a, b;
    assert_int_equal(leati_replace_begin(&a, "kept", &err), LEAT_OK);
    assert_int_equal(leati_replace_begin(&b, "kept", &err), LEAT_OK);
    assert_string_not_equal(a.temporary, b.temporary);
    leati_replace_abandon(&a);
    assert_int_equal(leati_replace_commit(&b, &err), LEAT_OK);
    leati_map empty;
    assert_int_equal(leati_map_open(&empty, "kept", &err), LEAT_OK);
    assert_int_equal(empty.size, 0);
    leati_map_close(&empty);
}

static void failures_name_the_file(void **state) {
    (void)state;
    leat_error err = {0};
    leati_map map;
    leati_replacement file;
    assert_int_equal(leati_map_open(&map, "absent", &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "'absent'"));
    assert_int_equal(leati_map_open(&map, ".", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "a directory"));
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(leati_map_open(&map, "pipe", &err), LEAT_EINVAL);
    unlink("pipe");
    assert_int_equal(leati_replace_begin(&file, "no/such/folder", &err), LEAT_EIO);
    assert_non_null(strstr(err.message, "no/such/folder"));
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(leati_replace_begin(&file, "folder", &err), LEAT_OK);
    assert_int_equal(leati_replace_commit(&file, &err), LEAT_EIO);
    assert_non_null(strstr(err.message, "'folder'"));
    rmdir("folder");
    assert_int_equal(files_here(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_in_one_step),
        cmocka_unit_test(an_abandoned_file_leaves_nothing),
        cmocka_unit_test(two_writers_do_not_meet),
        cmocka_unit_test(failures_name_the_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
