/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of HDF5 files reads every form that h5py writes (tests/golden/record_h5_features.py), and refuses links
 * and storage outside of the file before it opens them. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "h5/h5.h"

#define FILES LEAT_SOURCE_DIR "/tests/golden/files/"

static const char *const versions[] = {FILES "h5_earliest.h5", FILES "h5_v108.h5", FILES "h5_latest.h5"};
enum { version_count = sizeof versions / sizeof *versions, most_elements = 2000 };

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leati_h5 *open_file(const char *path) {
    leat_error err = {0};
    leati_h5 *file = NULL;
    must(leati_h5_open(&file, path, &err), &err);
    return file;
}

/* Reads a dataset as float32 into `numbers`; returns the number of its elements. */
static int64_t read_floats(leati_h5 *file, const char *name, float *numbers) {
    leat_error err = {0};
    leat_tensor found;
    int64_t count = 1;
    must(leati_h5_describe(file, name, &found, &err), &err);
    for (int i = 0; i < found.rank; ++i) count *= found.shape[i];
    assert_true(count <= most_elements);
    leat_tensor tensor = leat_tensor_view(LEAT_F32, found.rank, found.shape, numbers);
    must(leati_h5_read(file, name, &tensor, &err), &err);
    return count;
}

static void numbers_are_read_from_every_storage(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t count;
    } datasets[] = {{"contiguous", 35},    {"scalar", 1},
                    {"half", 9},           {"double", 9},
                    {"int8", 9},           {"int64", 9},
                    {"empty", 0},          {"one_chunk", 30},
                    {"chunks", 143},       {"shuffled", 30},
                    {"plain_chunks", 35},  {"compact", 8},
                    {"many_chunks", 1100}, {"group/deep/er/data", 3}};
    for (int v = 0; v < version_count; ++v) {
        leati_h5 *file = open_file(versions[v]);
        for (size_t i = 0; i < sizeof datasets / sizeof *datasets; ++i) {
            float numbers[most_elements];
            int64_t count = read_floats(file, datasets[i].name, numbers);
            assert_int_equal(count, datasets[i].count);
            for (int64_t k = 0; k < count; ++k)
                if (numbers[k] != (float)(k % 100 - 50))
                    fail_msg("%s: %s: element %d is %g", versions[v], datasets[i].name, (int)k,
                             (double)numbers[k]);
        }
        leati_h5_close(&file, NULL);
    }
}

static void missing_chunks_have_the_fill_value(void **state) {
    (void)state;
    for (int v = 0; v < version_count; ++v) {
        float numbers[most_elements];
        leati_h5 *file = open_file(versions[v]);
        assert_int_equal(read_floats(file, "sparse", numbers), 24);
        for (int i = 0; i < 4; ++i)
            for (int k = 0; k < 6; ++k) assert_true(numbers[6 * i + k] == (i < 2 && k >= 3 ? 1.0f : -1.0f));
        assert_int_equal(read_floats(file, "unwritten", numbers), 6);
        for (int i = 0; i < 6; ++i) assert_true(numbers[i] == 2.5f);
        leati_h5_close(&file, NULL);
    }
}

static void expect_text(leati_h5 *file, const char *object, const char *name, const char *expected) {
    leat_error err = {0};
    char *text = NULL;
    must(leati_h5_read_string(file, object, name, &text, &err), &err);
    assert_string_equal(text, expected);
    leati_free(text);
}

static void expect_strings(leati_h5 *file, const char *object, const char *name, size_t count) {
    leat_error err = {0};
    leati_h5_strings strings;
    char expected[80] = "";
    must(leati_h5_read_strings(file, object, name, &strings, &err), &err);
    assert_int_equal(strings.count, count);
    for (size_t i = 0; i < count; ++i) {
        if (strcmp(name, "list") == 0) snprintf(expected, sizeof expected, "name_%zu", i);
        if (strcmp(name, "long") == 0) snprintf(expected, sizeof expected, "%060zu", i);
        if (strcmp(name, "variable") == 0) {
            int used = 0;
            expected[0] = '\0';
            for (size_t k = 0; k < i % 3; ++k)
                used += snprintf(expected + used, sizeof expected - (size_t)used, "variable %zu", i);
        }
        assert_string_equal(strings.items[i], expected);
    }
    leati_h5_strings_fini(&strings);
}

static void attributes_are_read_in_every_form(void **state) {
    (void)state;
    for (int v = 0; v < version_count; ++v) {
        leati_h5 *file = open_file(versions[v]);
        expect_text(file, "/", "text",
                    "\xc3\xbc"
                    "ber");
        expect_text(file, "/", "fixed", "fixed text");
        expect_strings(file, "/", "list", 40);
        expect_strings(file, "/", "variable", 30);
        expect_strings(file, "/", "empty", 0);
        expect_strings(file, "group", "long", 100);
        for (int i = 0; i < 40; ++i) {
            char name[32], value[32];
            snprintf(name, sizeof name, "attribute_%d", i);
            snprintf(value, sizeof value, "value %d", i);
            expect_text(file, "group", name, value);
        }
        assert_false(leati_h5_has_attribute(file, "group", "attribute_40"));
        assert_false(leati_h5_has_attribute(file, "nowhere", "text"));
        leati_h5_close(&file, NULL);
    }
}

static void members_are_found_in_large_groups(void **state) {
    (void)state;
    for (int v = 0; v < version_count; ++v) {
        leati_h5 *file = open_file(versions[v]);
        for (int i = 0; i < 300; ++i) {
            char path[64];
            snprintf(path, sizeof path, "/group//member_%d/", i);
            assert_true(leati_h5_has_object(file, path));
        }
        assert_false(leati_h5_has_object(file, "group/member_300"));
        assert_false(leati_h5_has_object(file, "group/member_"));
        assert_false(leati_h5_has_object(file, "contiguous/member"));
        leati_h5_close(&file, NULL);
    }
}

static void expect_refused(leati_h5 *file, const char *name, const char *text) {
    leat_error err = {0};
    float numbers[100];
    int64_t count = strcmp(name, "lzf") == 0 ? 100 : 3;
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 1, &count, numbers);
    assert_int_equal(leati_h5_read(file, name, &tensor, &err), LEAT_EFORMAT);
    if (!strstr(err.message, text)) fail_msg("expected '%s' in: %s", text, err.message);
}

/* The target of the links is a FIFO without a writer: if leat opened it, the test would hang. */
static void nothing_outside_of_the_file_is_opened(void **state) {
    (void)state;
    char folder[] = "/tmp/leat-h5-links-XXXXXX";
    char back[4096];
    assert_non_null(getcwd(back, sizeof back));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(symlink(FILES "h5_links.h5", "links.h5"), 0);
    alarm(60);
    leati_h5 *file = open_file("links.h5");
    expect_refused(file, "soft", "soft or external link");
    expect_refused(file, "outside", "soft or external link");
    expect_refused(file, "outside/inner", "soft or external link");
    expect_refused(file, "stored_outside", "external storage");
    expect_refused(file, "virtual", "virtual storage");
    expect_refused(file, "of_named_type", "committed datatype");
    expect_refused(file, "lzf", "without compression");
    leati_h5_strings strings;
    leat_error err = {0};
    assert_int_equal(leati_h5_read_strings(file, "outside", "names", &strings, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "soft or external link"));
    assert_true(leati_h5_has_attribute(file, "outside", "names")); /* reading it says why it cannot be read */
    leati_h5_close(&file, NULL);
    assert_int_equal(leati_h5_open(&file, "pipe", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "not a regular file"));
    alarm(0);
    assert_int_equal(unlink("links.h5") + unlink("pipe"), 0);
    assert_int_equal(chdir(back) + rmdir(folder), 0);
}

static void datasets_that_grow_are_read_or_refused_by_name(void **state) {
    (void)state;
    float numbers[most_elements];
    leati_h5 *file = open_file(versions[0]);
    assert_int_equal(read_floats(file, "growing", numbers), 10);
    for (int i = 0; i < 10; ++i) assert_true(numbers[i] == (float)(i - 50));
    leati_h5_close(&file, NULL);
    leat_error err = {0};
    int64_t count = 10;
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 1, &count, numbers);
    file = open_file(versions[2]);
    assert_int_equal(leati_h5_read(file, "growing", &tensor, &err), LEAT_EFORMAT);
    assert_non_null(strstr(err.message, "maxshape"));
    leati_h5_close(&file, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_from_every_storage),
        cmocka_unit_test(missing_chunks_have_the_fill_value),
        cmocka_unit_test(attributes_are_read_in_every_form),
        cmocka_unit_test(members_are_found_in_large_groups),
        cmocka_unit_test(nothing_outside_of_the_file_is_opened),
        cmocka_unit_test(datasets_that_grow_are_read_or_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
