/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint of a SPEC's files notices each change of a file, and says which file has changed and how. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/memory.h"
#include "data/files.h"
#include "leat/source.h"

enum { LARGE_BYTES = (3 << 20) + 17 };

/* Writes a file whose n-th byte is n * 7 modulo 251. */
static void write_file(const char *path, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (size_t i = 0; i < size; ++i) fputc((int)(i * 7 % 251), file);
    assert_int_equal(fclose(file), 0);
}

static void set_time(const char *path, time_t seconds, long nanoseconds) {
    struct timespec times[] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Changes one byte and restores the modification time. */
static void change_byte(const char *path, off_t offset) {
    struct stat info;
    char byte = 'x';
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &info), 0);
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
    set_time(path, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

static char *record(const char *spec) {
    char *out = NULL;
    leat_error err = {0};
    if (leat_source_fingerprint(spec, &out, &err) != LEAT_OK) fail_msg("%s", err.message);
    return out;
}

static void expect_same(const char *spec, const char *recorded) {
    leat_error err = {0};
    if (leat_source_check_fingerprint(spec, recorded, &err) != LEAT_OK) fail_msg("%s", err.message);
}

static void expect_refused(const char *spec, const char *recorded, leat_status status, const char *says) {
    leat_error err = {0};
    leat_status received = leat_source_check_fingerprint(spec, recorded, &err);
    if (received != status || !strstr(err.message, says))
        fail_msg("%s: %s '%s', expected %s '%s'", spec, leat_status_name(received), err.message,
                 leat_status_name(status), says);
}

static void unchanged_files_pass(void **state) {
    (void)state;
    write_file("x", LARGE_BYTES);
    write_file("y", 0);
    char *recorded = record("npy:x,y?scale=1/255");
    expect_same("npy:x,y?scale=1/255", recorded);
    expect_same("idx:x,y", recorded); /* options and kind are the caller's to compare */
    leati_free(recorded);
}

static void the_files_of_a_pattern_are_one(void **state) {
    (void)state;
    write_file("s-1", 100);
    write_file("s-2", 200);
    char *recorded = record("tar:s-{1..2}");
    expect_same("tar:s-{1..2}", recorded);
    write_file("s-1", 101);
    write_file("s-2", 199);
    expect_refused("tar:s-{1..2}", recorded, LEAT_EINVAL,
                   "the checksum of the names and sizes of its files differs");
    remove("s-2");
    expect_refused("tar:s-{1..2}", recorded, LEAT_EIO, "s-2");
    remove("s-1");
    leati_free(recorded);
}

static void each_file_has_its_size_time_and_checksum(void **state) {
    (void)state;
    write_file("x", 1000);
    set_time("x", 1700000000, 5);
    char *recorded = record("npy:x");
    assert_string_equal(recorded, "[{\"path\": \"x\", \"bytes\": 1000, \"modified_s\": 1700000000, "
                                  "\"modified_ns\": 5, \"xxh3\": \"d1eb8367bf3294e7\"}]");
    leati_free(recorded);
}

static void a_changed_size_is_named(void **state) {
    (void)state;
    write_file("x", 100);
    write_file("y", 1000);
    char *recorded = record("npy:x,y");
    write_file("y", 1200);
    expect_refused("npy:x,y", recorded, LEAT_EINVAL,
                   "'y' has changed: it had 1000 bytes when it was recorded "
                   "and has 1200 now");
    assert_int_equal(truncate("y", 999), 0);
    expect_refused("npy:x,y", recorded, LEAT_EINVAL, "has 999 now");
    leati_free(recorded);
}

static void a_changed_time_alone_is_named(void **state) {
    (void)state;
    write_file("x", 100);
    write_file("y", LARGE_BYTES);
    set_time("x", 1700000000, 123456789);
    set_time("y", 1700000000, 123456789);
    char *recorded = record("npy:x,y");
    set_time("y", 1700000000, 123456790);
    expect_refused(
        "npy:x,y", recorded, LEAT_EINVAL,
        "'y' may have changed: it was modified at 2023-11-14 22:13:20.123456789 UTC when it was recorded "
        "and at 2023-11-14 22:13:20.123456790 UTC now; its size and the checksum of a sample of its "
        "content are the same");
    set_time("x", 1600000000, 0);
    expect_refused("npy:x,y", recorded, LEAT_EINVAL, "and the checksum of its content are the same");
    leati_free(recorded);
}

static void a_changed_byte_in_the_sample_is_named(void **state) {
    (void)state;
    const off_t sampled[] = {0,
                             (64 << 10) - 1,
                             LARGE_BYTES / 65 * 1,
                             LARGE_BYTES / 65 * 33 + 4095,
                             LARGE_BYTES / 65 * 64,
                             LARGE_BYTES - (64 << 10),
                             LARGE_BYTES - 1};
    for (size_t i = 0; i < sizeof sampled / sizeof *sampled; ++i) {
        write_file("x", LARGE_BYTES);
        char *recorded = record("npy:x");
        change_byte("x", sampled[i]);
        expect_refused("npy:x", recorded, LEAT_EINVAL,
                       "its size is the same, but the checksum of a sample of its content differs");
        leati_free(recorded);
    }
    write_file("x", 1 << 20); /* the longest file that is compared completely */
    for (off_t at = 999; at < 1 << 20; at += 130000) {
        char *recorded = record("npy:x");
        change_byte("x", at);
        expect_refused("npy:x", recorded, LEAT_EINVAL, "but the checksum of its content differs");
        leati_free(recorded);
    }
}

static void other_files_are_refused(void **state) {
    (void)state;
    write_file("x", 10);
    write_file("y", 10);
    char *recorded = record("npy:x");
    expect_refused("npy:y", recorded, LEAT_EINVAL, "the SPEC names 'y' where it named 'x'");
    expect_refused("npy:x,y", recorded, LEAT_EINVAL,
                   "the number of files has changed: 1 when they were recorded, 2 now");
    assert_int_equal(rename("x", "z"), 0);
    expect_refused("npy:x", recorded, LEAT_ENOTFOUND, "cannot open 'x'");
    char *out = recorded;
    leat_error err = {0};
    assert_int_equal(leat_source_fingerprint("npy:x", &out, &err), LEAT_ENOTFOUND);
    assert_null(out);
    assert_int_equal(leat_source_fingerprint("npy:.", &out, &err), LEAT_EINVAL);
    assert_int_equal(mkfifo("x", 0600), 0);
    expect_refused("npy:x", recorded, LEAT_EINVAL, "expected a regular file");
    unlink("x");
    leati_free(recorded);
}

static void bad_specs_are_refused(void **state) {
    (void)state;
    char *out = NULL;
    leat_error err = {0};
    write_file("x", 10);
    assert_int_equal(leat_source_fingerprint("npq:x", &out, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "did you mean 'npy'?"));
    assert_int_equal(leat_source_fingerprint("npz:x,x", &out, &err), LEAT_EINVAL);
    assert_int_equal(leat_source_fingerprint("x", &out, &err), LEAT_EINVAL);
    expect_refused("npq:x", "[]", LEAT_EINVAL, "did you mean 'npy'?");
}

static void the_file_of_a_plugin_is_its_object(void **state) {
    (void)state;
    write_file("rows.so", 2000);
    char *recorded = record("plugin:rows.so?folder=/data,&%zz");
    expect_same("plugin:rows.so?folder=/data,&%zz", recorded);
    write_file("rows.so", 2001);
    expect_refused("plugin:rows.so", recorded, LEAT_EINVAL, "'rows.so' has changed");
    leati_free(recorded);
}

static void any_path_becomes_json(void **state) {
    (void)state;
    const char *specs[] = {"npy:a%2C%3F%26%25%22%5C%0A", "npy:gr\xC3\xBC\xC3\x9F", "npy:latin-\xFC",
                           "npy:a/../b b"};
    const char *paths[] = {"a,?&%\"\\\n", "gr\xC3\xBC\xC3\x9F", "latin-\xFC", "b b"};
    const char *written[] = {"a%2C%3F%26%25\"\\%0A", "gr\xC3\xBC\xC3\x9F", "latin-%FC", "a/../b b"};
    mkdir("a", 0700);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        const char *path = NULL;
        write_file(paths[i], 5);
        char *recorded = record(specs[i]);
        json_t *files = json_loads(recorded, 0, NULL);
        assert_int_equal(json_unpack(files, "[{s:s}]", "path", &path), 0);
        assert_string_equal(path, written[i]);
        json_decref(files);
        expect_same(specs[i], recorded);
        leati_free(recorded);
        unlink(paths[i]);
    }
    rmdir("a");
}

static void a_damaged_record_is_refused(void **state) {
    (void)state;
    const char *damaged[] = {
        "",
        "{}",
        "[",
        "[1]",
        "[{}]",
        "[{\"path\": \"x\", \"bytes\": 10, \"modified_s\": 0, \"modified_ns\": 0, \"xxh3\": 5}]",
        "[{\"path\": \"x\", \"bytes\": 10, \"modified_s\": 0, \"modified_ns\": 0, "
        "\"xxh3\": \"00000000000000000\"}]"};
    write_file("x", 10);
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; ++i)
        expect_refused("npy:x", damaged[i], LEAT_EFORMAT, "the recorded fingerprint");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unchanged_files_pass),
        cmocka_unit_test(the_files_of_a_pattern_are_one),
        cmocka_unit_test(each_file_has_its_size_time_and_checksum),
        cmocka_unit_test(a_changed_size_is_named),
        cmocka_unit_test(a_changed_time_alone_is_named),
        cmocka_unit_test(a_changed_byte_in_the_sample_is_named),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(bad_specs_are_refused),
        cmocka_unit_test(the_file_of_a_plugin_is_its_object),
        cmocka_unit_test(any_path_becomes_json),
        cmocka_unit_test(a_damaged_record_is_refused),
    };
    return cmocka_run_group_tests(tests, files_enter, files_leave);
}
