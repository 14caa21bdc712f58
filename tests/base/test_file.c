/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files and atomic replacement. */
#define _GNU_SOURCE /* mknod */
#include "cmocka_all.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"

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
    assert_memory_equal(old.data, "first", 5); /* a mapping keeps the file that it opened */
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

/* The temporary name must not be longer than the file system allows, either. */
static void the_longest_name_is_written(void **state) {
    (void)state;
    char name[NAME_MAX + 1], in_folder[NAME_MAX + 8];
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    snprintf(in_folder, sizeof in_folder, "./././%s", name);
    write_text(name, "one");
    write_text(in_folder, "two");
    leati_map map;
    leat_error err = {0};
    assert_int_equal(leati_map_open(&map, name, &err), LEAT_OK);
    assert_memory_equal(map.data, "two", 3);
    leati_map_close(&map);
    unlink(name);
    assert_int_equal(files_here(), 1);
}

static void an_empty_path_is_named(void **state) {
    (void)state;
    leati_replacement file;
    leat_error err = {0};
    assert_int_equal(leati_replace_begin(&file, "", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "is empty"));
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
    assert_int_equal(files_here(), 1);
}

/* Checks that leati_replace_begin fails, with a message that contains `words`, and leaves no file. */
static void expect_refusal(const char *path, leat_status code, const char *words) {
    leati_replacement file;
    leat_error err = {0};
    int before = files_here();
    leat_status status = leati_replace_begin(&file, path, &err);
    leati_replace_abandon(&file);
    assert_int_equal(status, code);
    if (!strstr(err.message, words)) fail_msg("'%s' lacks '%s'", err.message, words);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(files_here(), before);
}

static void expect_text(const char *path, const char *text) {
    leati_map map;
    leat_error err = {0};
    assert_int_equal(leati_map_open(&map, path, &err), LEAT_OK);
    assert_int_equal(map.size, strlen(text));
    assert_memory_equal(map.data, text, map.size);
    leati_map_close(&map);
}

static void make_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void only_regular_files_are_replaced(void **state) {
    (void)state;
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    make_socket("socket");
    expect_refusal("folder", LEAT_EINVAL, "a directory");
    expect_refusal("folder/", LEAT_EINVAL, "a directory");
    expect_refusal("fifo", LEAT_EINVAL, "a FIFO");
    expect_refusal("socket", LEAT_EINVAL, "a socket");
    expect_refusal("/dev/null", LEAT_EINVAL, "a character device");
    assert_int_equal(symlink("/dev/null", "link"), 0);
    expect_refusal("link", LEAT_EINVAL, "a link to '/dev/null', which is a character device");
    if (mknod("disk", S_IFBLK | 0600, makedev(7, 200)) == 0) { /* only root may create it */
        expect_refusal("disk", LEAT_EINVAL, "a block device");
        unlink("disk");
    }
    unlink("link");
    unlink("socket");
    unlink("fifo");
    rmdir("folder");
}

static void links_are_followed(void **state) {
    (void)state;
    struct stat about;
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(symlink("../kept", "folder/up"), 0); /* a relative link starts in its own folder */
    assert_int_equal(symlink("folder/up", "chain"), 0);
    write_text("kept", "old");
    write_text("chain", "by a chain of links");
    expect_text("kept", "by a chain of links");
    assert_true(lstat("chain", &about) == 0 && S_ISLNK(about.st_mode));
    assert_true(lstat("folder/up", &about) == 0 && S_ISLNK(about.st_mode));
    assert_int_equal(symlink("folder/new", "dangling"), 0);
    write_text("dangling", "made");
    expect_text("folder/new", "made");
    assert_true(lstat("dangling", &about) == 0 && S_ISLNK(about.st_mode));
    assert_int_equal(symlink("round", "about"), 0);
    assert_int_equal(symlink("about", "round"), 0);
    expect_refusal("about", LEAT_EIO, strerror(ELOOP));
    const char *made[] = {"about", "round", "dangling", "folder/new", "chain", "folder/up"};
    for (int i = 0; i < 6; ++i) assert_int_equal(unlink(made[i]), 0);
    rmdir("folder");
}

static void an_open_file_without_a_name_is_refused(void **state) {
    (void)state;
    char path[40];
    int fd = open("gone", O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    unlink("gone");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    expect_refusal(path, LEAT_EINVAL, "give the path of the file itself");
    close(fd);
}

static void a_new_file_has_the_permissions_of_the_old_one(void **state) {
    (void)state;
    struct stat about;
    write_text("kept", "old");
    assert_int_equal(chmod("kept", 0640), 0);
    bool is_root = geteuid() == 0;
    if (is_root) assert_int_equal(chown("kept", 12345, 54321), 0);
    write_text("kept", "new");
    assert_int_equal(stat("kept", &about), 0);
    assert_int_equal(about.st_mode & 07777, 0640);
    if (is_root) assert_true(about.st_uid == 12345 && about.st_gid == 54321);
    unlink("kept");
    write_text("kept", "new");
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat("kept", &about), 0);
    assert_int_equal(about.st_mode & 07777, 0666 & ~mask);
}

/* Runs in a process without privileges.  Returns 0 if the errors are correct, otherwise the number of the first wrong
 * one. */
static int refusals_of_a_stranger(void) {
    leati_replacement file;
    leat_error err = {0};
    if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
    if (leati_replace_begin(&file, "closed/open", &err) != LEAT_EIO) return 2;
    if (!strstr(err.message, "make the folder writable")) return 3;
    if (leati_replace_begin(&file, "shared/locked", &err) != LEAT_EIO) return 4;
    if (!strstr(err.message, "change its permissions")) return 5;
    if (leati_replace_begin(&file, "shared/open", &err) != LEAT_OK) return 6;
    if (leati_replace_commit(&file, &err) != LEAT_OK) return 7;
    return 0;
}

static void a_missing_permission_is_named(void **state) {
    (void)state;
    if (geteuid() != 0) LEAT_SKIP("only root may become another user");
    const char *files[] = {"closed/open", "shared/locked", "shared/open"};
    int result = -1;
    assert_int_equal(mkdir("closed", 0700), 0);
    assert_int_equal(mkdir("shared", 0700), 0);
    for (int i = 0; i < 3; ++i) write_text(files[i], "old");
    assert_true(chmod(files[0], 0666) == 0 && chmod(files[1], 0444) == 0 && chmod(files[2], 0664) == 0);
    assert_true(chmod(".", 0755) == 0 && chmod("closed", 0755) == 0 && chmod("shared", 0777) == 0);
    assert_int_equal(chown(files[2], 65534, 54321), 0); /* the writer is not a member of this group */
    pid_t child = fork();
    if (child == 0) _exit(refusals_of_a_stranger());
    assert_true(child > 0 && waitpid(child, &result, 0) == child);
    assert_int_equal(WIFEXITED(result) ? WEXITSTATUS(result) : -1, 0);
    struct stat about;
    assert_int_equal(stat(files[2], &about), 0);
    assert_int_equal(about.st_mode & 0777, 0644); /* another group gets only the permissions of others */
    for (int i = 0; i < 3; ++i) assert_int_equal(unlink(files[i]), 0);
    assert_true(rmdir("closed") == 0 && rmdir("shared") == 0);
}

static leat_status stream(const char *path, bool append, const char *text) {
    int fd;
    leat_error err = {0};
    leat_status status = leati_stream_open(&fd, path, append, &err);
    if (status != LEAT_OK) return strstr(err.message, path) ? status : LEAT_EINTERNAL;
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return LEAT_OK;
}

static void streams_are_written_in_place(void **state) {
    (void)state;
    struct stat before, after;
    assert_int_equal(stat("kept", &before), 0);
    assert_int_equal(symlink("kept", "link"), 0);
    assert_int_equal(stream("link", false, "one"), LEAT_OK);
    assert_int_equal(stream("link", true, " two"), LEAT_OK);
    expect_text("kept", "one two");
    assert_int_equal(stat("kept", &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_int_equal(stream("/dev/null", false, "x"), LEAT_OK);
    assert_int_equal(stream(".", false, "x"), LEAT_EINVAL);
    make_socket("socket");
    assert_int_equal(stream("socket", false, "x"), LEAT_EINVAL);
    assert_int_equal(stream("no/such/folder", false, "x"), LEAT_EIO);
    unlink("socket");
    unlink("link");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_in_one_step),
        cmocka_unit_test(an_abandoned_file_leaves_nothing),
        cmocka_unit_test(two_writers_do_not_meet),
        cmocka_unit_test(the_longest_name_is_written),
        cmocka_unit_test(an_empty_path_is_named),
        cmocka_unit_test(failures_name_the_file),
        cmocka_unit_test(only_regular_files_are_replaced),
        cmocka_unit_test(links_are_followed),
        cmocka_unit_test(an_open_file_without_a_name_is_refused),
        cmocka_unit_test(a_new_file_has_the_permissions_of_the_old_one),
        cmocka_unit_test(a_missing_permission_is_named),
        cmocka_unit_test(streams_are_written_in_place),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
