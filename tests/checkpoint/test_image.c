/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a checkpoint: what was put in comes out, and a damaged file is refused, wherever the damage is. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "checkpoint/state.h"
#include "leat/file.h"

enum { header_bytes = 32 };

static char path[] = "/tmp/leat-image-XXXXXX";

static void expect_ok(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static void write_bytes(const void *data, size_t bytes) {
    leat_error err = {0};
    expect_ok(leat_file_replace(path, data, bytes, &err), &err);
}

/* Makes an image of four records, with names and data of different lengths; the caller frees it. */
static leati_snapshot make_image(void) {
    leati_snapshot snapshot = {0};
    leat_error err = {0};
    const double numbers[] = {0.5, -1.25};
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    expect_ok(leati_snapshot_add(&snapshot, "a", "x", 1, &err), &err);
    expect_ok(leati_snapshot_add(&snapshot, "fit/nothing", NULL, 0, &err), &err);
    expect_ok(leati_snapshot_add(&snapshot, "numbers", numbers, sizeof numbers, &err), &err);
    expect_ok(leati_snapshot_add(&snapshot, "text", "eight by", 9, &err), &err);
    leati_snapshot_finish(&snapshot);
    return snapshot;
}

static void records_are_found(void **state) {
    (void)state;
    leati_snapshot snapshot = make_image();
    leati_image image;
    leat_error err = {0};
    size_t bytes = 0;
    double numbers[2];
    write_bytes(snapshot.data, snapshot.bytes);
    expect_ok(leati_image_open(&image, path, &err), &err);
    assert_int_equal(image.count, 4);
    assert_memory_equal(leati_image_find(&image, "a", &bytes), "x", 1);
    assert_int_equal(bytes, 1);
    assert_non_null(leati_image_find(&image, "fit/nothing", &bytes));
    assert_int_equal(bytes, 0);
    const void *found = leati_image_find(&image, "numbers", &bytes);
    assert_int_equal(bytes, sizeof numbers);
    assert_int_equal((uintptr_t)found % 8, 0);
    memcpy(numbers, found, sizeof numbers);
    assert_true(numbers[0] == 0.5 && numbers[1] == -1.25);
    assert_string_equal(leati_image_find(&image, "text", &bytes), "eight by");
    assert_null(leati_image_find(&image, "tex", &bytes));
    assert_int_equal(bytes, 0);
    assert_null(leati_image_find(&image, "", &bytes));
    leati_image_close(&image);
    leati_snapshot_fini(&snapshot);
}

static void a_name_is_used_once(void **state) {
    (void)state;
    leati_snapshot snapshot = make_image();
    leat_error err = {0};
    const size_t bytes = snapshot.bytes;
    assert_int_equal(leati_snapshot_add(&snapshot, "text", "y", 1, &err), LEAT_EINVAL);
    assert_int_equal(snapshot.bytes, bytes);
    assert_int_equal(snapshot.count, 4);
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    assert_int_equal(snapshot.count, 0);
    expect_ok(leati_snapshot_add(&snapshot, "text", "y", 1, &err), &err);
    leati_snapshot_fini(&snapshot);
}

/* The file is complete only with its last byte, and nothing may follow. */
static void truncated_at_every_byte(void **state) {
    (void)state;
    leati_snapshot snapshot = make_image();
    leati_image image;
    for (size_t bytes = 0; bytes < snapshot.bytes; ++bytes) {
        leat_error err = {0};
        write_bytes(snapshot.data, bytes);
        assert_int_equal(leati_image_open(&image, path, &err), LEAT_EFORMAT);
        assert_non_null(strstr(err.message, path));
        assert_null(image.map.data);
    }
    unsigned char *longer = calloc(snapshot.bytes + 8, 1);
    assert_non_null(longer);
    memcpy(longer, snapshot.data, snapshot.bytes);
    write_bytes(longer, snapshot.bytes + 8);
    assert_int_equal(leati_image_open(&image, path, NULL), LEAT_EFORMAT);
    free(longer);
    leati_snapshot_fini(&snapshot);
}

static void every_bit_counts(void **state) {
    (void)state;
    leati_snapshot snapshot = make_image();
    leati_image image;
    for (size_t i = 0; i < 8 * snapshot.bytes; ++i) {
        unsigned char *byte = &snapshot.data[i / 8], bit = (unsigned char)(1u << i % 8);
        *byte ^= bit;
        write_bytes(snapshot.data, snapshot.bytes);
        if (leati_image_open(&image, path, NULL) != LEAT_EFORMAT) fail_msg("bit %zu", i);
        *byte ^= bit;
    }
    leati_snapshot_fini(&snapshot);
}

static void set_checksum(unsigned char *data, size_t bytes) {
    const uint64_t sum = XXH3_64bits(data + header_bytes, bytes - header_bytes);
    memcpy(data + 24, &sum, sizeof sum);
}

/* Even with a right checksum, lengths in the records lead nowhere outside of the file. */
static void hostile_records(void **state) {
    (void)state;
    leati_snapshot snapshot = make_image();
    const unsigned char values[] = {0x00, 0x01, 0x7F, 0x80, 0xFF};
    int refused = 0;
    for (size_t i = header_bytes; i < snapshot.bytes; ++i) {
        const unsigned char kept = snapshot.data[i];
        for (size_t k = 0; k < sizeof values; ++k) {
            leati_image image;
            size_t bytes = 0;
            snapshot.data[i] = values[k];
            set_checksum(snapshot.data, snapshot.bytes);
            write_bytes(snapshot.data, snapshot.bytes);
            const leat_status status = leati_image_open(&image, path, NULL);
            assert_true(status == LEAT_OK || status == LEAT_EFORMAT);
            refused += status != LEAT_OK;
            if (status == LEAT_OK) (void)leati_image_find(&image, "text", &bytes);
            assert_true(bytes <= snapshot.bytes);
            leati_image_close(&image);
        }
        snapshot.data[i] = kept;
    }
    assert_true(refused > 100);
    leati_snapshot_fini(&snapshot);
}

static void the_header_counts_the_records(void **state) {
    (void)state;
    leati_snapshot snapshot = make_image();
    leati_image image;
    leat_error err = {0};
    ++snapshot.data[12];
    write_bytes(snapshot.data, snapshot.bytes);
    assert_int_equal(leati_image_open(&image, path, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "expected 5 records, received 4"));
    leati_snapshot_fini(&snapshot);
}

static void a_later_version_is_named(void **state) {
    (void)state;
    leati_snapshot snapshot = make_image();
    leati_image image;
    leat_error err = {0};
    snapshot.data[8] = 2;
    write_bytes(snapshot.data, snapshot.bytes);
    assert_int_equal(leati_image_open(&image, path, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "expected format version 1, received 2"));
    leati_snapshot_fini(&snapshot);
}

static void other_files(void **state) {
    (void)state;
    leati_image image;
    leat_error err = {0};
    assert_int_equal(leati_image_open(&image, "/tmp", &err), LEAT_EINVAL);
    assert_int_equal(leati_image_open(&image, "/tmp/leat-there-is-no-such-file", &err), LEAT_ENOTFOUND);
    write_bytes("LEATCKPX and more than the 32 bytes of a header", 48);
    assert_int_equal(leati_image_open(&image, path, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "not a checkpoint of leat"));
}

/* ---- States ---- */

static void names_of_values(void **state) {
    (void)state;
    leati_snapshot snapshot = {0};
    leat_state part = {.snapshot = &snapshot, .prefix = "callback.12/"};
    leat_error err = {0};
    char name[258];
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    assert_int_equal(leat_state_put(&part, "", "x", 1, &err), LEAT_EINVAL);
    assert_int_equal(leat_state_put(&part, "a/b", "x", 1, &err), LEAT_EINVAL);
    memset(name, 'n', sizeof name);
    name[200] = '\0';
    expect_ok(leat_state_put(&part, name, "x", 1, &err), &err);
    memset(name, 'n', sizeof name);
    name[257] = '\0';
    assert_int_equal(leat_state_put(&part, name, "x", 1, &err), LEAT_EINVAL);
    part.snapshot = NULL;
    assert_int_equal(leat_state_put(&part, "late", "x", 1, &err), LEAT_EINVAL);
    leati_snapshot_fini(&snapshot);
}

static void values_of_another_size(void **state) {
    (void)state;
    leati_snapshot snapshot = make_image();
    leati_image image;
    leat_error err = {0};
    write_bytes(snapshot.data, snapshot.bytes);
    expect_ok(leati_image_open(&image, path, &err), &err);
    const leat_state part = {.image = &image};
    char text[9] = "";
    assert_int_equal(leat_state_get(&part, "text", text, 8, &err), LEAT_EFORMAT);
    assert_int_equal(leat_state_get(&part, "no text", text, 9, &err), LEAT_ENOTFOUND);
    expect_ok(leat_state_get(&part, "text", text, sizeof text, &err), &err);
    assert_string_equal(text, "eight by");
    assert_string_equal(leati_state_find_text(&part, "text"), "eight by");
    assert_null(leati_state_find_text(&part, "numbers"));
    assert_null(leati_state_find_text(&part, "a"));
    leati_image_close(&image);
    leati_snapshot_fini(&snapshot);
}

/* ---- Files that grow ---- */

static void grow_file(const char *file, const char *text) {
    FILE *stream = fopen(file, "a");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

static void files_are_shortened(void **state) {
    (void)state;
    char log[] = "/tmp/leat-log-XXXXXX";
    leati_snapshot snapshot = {0};
    leati_image image;
    leat_error err = {0};
    struct stat info;
    leat_state part = {.snapshot = &snapshot};
    close(mkstemp(log));
    grow_file(log, "one\n");
    expect_ok(leati_snapshot_begin(&snapshot, &err), &err);
    expect_ok(leat_state_put_file(&part, "log", log, &err), &err);
    expect_ok(leat_state_put_file(&part, "none", "/tmp/leat-there-is-no-such-file", &err), &err);
    assert_int_equal(snapshot.file_count, 1);
    leati_snapshot_finish(&snapshot);
    write_bytes(snapshot.data, snapshot.bytes);
    expect_ok(leati_image_open(&image, path, &err), &err);
    part = (leat_state){.image = &image};
    grow_file(log, "two\n");
    expect_ok(leat_state_restore_file(&part, "log", log, &err), &err);
    assert_int_equal(stat(log, &info), 0);
    assert_int_equal(info.st_size, 4);
    expect_ok(leat_state_restore_file(&part, "none", "/tmp/leat-there-is-no-such-file", &err), &err);
    assert_int_equal(truncate(log, 2), 0);
    assert_int_equal(leat_state_restore_file(&part, "log", log, &err), LEAT_EIO);
    unlink(log);
    assert_int_equal(leat_state_restore_file(&part, "log", log, &err), LEAT_ENOTFOUND);
    leati_image_close(&image);
    leati_snapshot_fini(&snapshot);
}

static int make_file(void **state) {
    (void)state;
    return close(mkstemp(path));
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_found),        cmocka_unit_test(a_name_is_used_once),
        cmocka_unit_test(truncated_at_every_byte),  cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(hostile_records),          cmocka_unit_test(the_header_counts_the_records),
        cmocka_unit_test(a_later_version_is_named), cmocka_unit_test(other_files),
        cmocka_unit_test(names_of_values),          cmocka_unit_test(values_of_another_size),
        cmocka_unit_test(files_are_shortened),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
