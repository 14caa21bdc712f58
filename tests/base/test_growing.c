/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of two versions: a caller's struct that is shorter or longer than the library's. */
#include "cmocka_all.h"

#include <string.h>

#include "base/growing.h"

/* The struct of this version, of the one before, and of the one after. */
typedef struct options {
    size_t size;
    int64_t first, second;
} options;
typedef struct older_options {
    size_t size;
    int64_t first;
} older_options;
typedef struct newer_options {
    size_t size;
    int64_t first, second, third;
} newer_options;

static const options presets = {.first = 10, .second = 20};
static const leati_growing type = LEATI_GROWING(options, first, &presets);

static void expect_error(leat_status status, const leat_error *err, const char *words) {
    assert_int_equal(status, LEAT_EINVAL);
    if (!strstr(err->message, words)) fail_msg("'%s' does not say '%s'", err->message, words);
}

static void init_writes_what_fits(void **state) {
    (void)state;
    struct {
        older_options options;
        int64_t behind;
    } old = {.behind = 77};
    newer_options newer;
    memset(&newer, 0xff, sizeof newer);
    leati_growing_init(&type, &old.options, sizeof old.options);
    leati_growing_init(&type, &newer, sizeof newer);
    assert_true(old.options.size == sizeof old.options && old.options.first == 10 && old.behind == 77);
    assert_true(newer.size == sizeof newer && newer.first == 10 && newer.second == 20 && newer.third == 0);
    leati_growing_init(&type, &old.options, SIZE_MAX);
    leati_growing_init(&type, NULL, sizeof(options));
    assert_int_equal(old.behind, 77);
}

static void missing_members_get_defaults(void **state) {
    (void)state;
    leat_error err = {0};
    options read;
    const older_options old = {.size = sizeof old, .first = 1};
    assert_int_equal(leati_growing_read(&type, &old, &read, &err), LEAT_OK);
    assert_true(read.size == sizeof read && read.first == 1 && read.second == 20);
    assert_int_equal(leati_growing_read(&type, NULL, &read, &err), LEAT_OK);
    assert_true(read.size == sizeof read && read.first == 10 && read.second == 20);
}

static void unknown_members_must_be_zero(void **state) {
    (void)state;
    leat_error err = {0};
    options read;
    newer_options newer = {.size = sizeof newer, .first = 1, .second = 2};
    assert_int_equal(leati_growing_read(&type, &newer, &read, &err), LEAT_OK);
    assert_true(read.size == sizeof read && read.first == 1 && read.second == 2);
    newer.third = (int64_t)1 << 56; /* the last byte alone */
    expect_error(leati_growing_read(&type, &newer, &read, &err), &err,
                 "options: the program was compiled against a newer leat");
}

static void impossible_sizes_are_refused(void **state) {
    (void)state;
    const size_t sizes[] = {
        0,       1, sizeof(size_t), sizeof(older_options) - 1, sizeof(options) + LEATI_GROWING_MARGIN + 1,
        SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        leat_error err = {0};
        options read, given = {.size = sizes[i]};
        expect_error(leati_growing_read(&type, &given, &read, &err), &err, "start from options_init()");
        expect_error(leati_growing_fits(&type, sizes[i], &err), &err, "expected 24");
        leati_growing_write(&type, &presets, &given, sizes[i]);
        leati_growing_clear(&type, &given);
        assert_true(given.first == 0 && given.second == 0);
    }
}

static void callers_are_filled_by_their_size(void **state) {
    (void)state;
    const options result = {.size = sizeof result, .first = 1, .second = 2};
    struct {
        older_options options;
        int64_t behind;
    } old = {.behind = 77};
    newer_options newer;
    memset(&newer, 0xff, sizeof newer);
    leati_growing_write(&type, &result, &old.options, sizeof old.options);
    leati_growing_write(&type, &result, &newer, sizeof newer);
    assert_true(old.options.size == sizeof old.options && old.options.first == 1 && old.behind == 77);
    assert_true(newer.size == sizeof newer && newer.second == 2 && newer.third == 0);
    leati_growing_clear(&type, &old.options);
    assert_true(old.options.size == 0 && old.options.first == 0 && old.behind == 77);
    leati_growing_report(NULL, sizeof result, &newer, sizeof newer);
    assert_true(newer.size == 0 && newer.second == 0);
    leati_growing_report(&result, sizeof result, &old.options, sizeof old.options);
    assert_true(old.options.first == 1 && old.behind == 77);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_writes_what_fits),
        cmocka_unit_test(missing_members_get_defaults),
        cmocka_unit_test(unknown_members_must_be_zero),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(callers_are_filled_by_their_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
