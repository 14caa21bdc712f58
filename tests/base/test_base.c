/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, text, random numbers, specifications. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/text.h"
#include "leat/sequence.h"

static void error_has_the_promised_size(void **state) {
    (void)state;
    assert_int_equal(sizeof(leat_error), 512);
}

static void prefix_goes_in_front_and_cuts_at_the_end(void **state) {
    (void)state;
    leat_error err = {0};
    assert_int_equal(leati_fail(&err, LEAT_ESHAPE, "expected %d", 3), LEAT_ESHAPE);
    assert_int_equal(leati_prefix(LEAT_ESHAPE, &err, "layer '%s'", "dense"), LEAT_ESHAPE);
    assert_string_equal(err.message, "layer 'dense': expected 3");
    for (int i = 0; i < 200; ++i) leati_prefix(LEAT_ESHAPE, &err, "again");
    assert_int_equal(strlen(err.message), LEAT_ERROR_MESSAGE_BYTES - 1);
    assert_int_equal(leati_fail(NULL, LEAT_EIO, "nobody listens"), LEAT_EIO);
}

static void finished_text_is_no_format(void **state) {
    (void)state;
    leat_error err = {0};
    assert_int_equal(leat_error_set_text(&err, LEAT_EUSER, "100 %s of %n"), LEAT_EUSER);
    assert_int_equal(err.code, LEAT_EUSER);
    assert_string_equal(err.message, "100 %s of %n");
    assert_int_equal(leat_error_set_text(&err, LEAT_EIO, NULL), LEAT_EIO);
    assert_string_equal(err.message, leat_status_text(LEAT_EIO));
    assert_int_equal(leat_error_set_text(NULL, LEAT_EIO, "nobody listens"), LEAT_EIO);
}

/* A message may quote a file, but must not contain control characters for a terminal.  UTF-8 and line breaks stay. */
static void control_characters_do_not_get_into_messages(void **state) {
    (void)state;
    leat_error e = {0};
    leat_error_set(&e, LEAT_EFORMAT, "array '%s'\n\tof \xC3\xA9",
                   "\x1B[31m\a\r\x7F\xC2\x9B"
                   "2J");
    assert_string_equal(e.message, "array '?[31m?????2J'\n\tof \xC3\xA9");
    leati_prefix(LEAT_EFORMAT, &e, "file '%s'", "\x1B]0;x\a");
    assert_memory_equal(e.message, "file '?]0;x?': array", 20);
}

static void index_out_of_range_names_the_range(void **state) {
    (void)state;
    leat_error err = {0};
    assert_int_equal(leati_fail_index(&err, "weight", 7, 6), LEAT_EINVAL);
    assert_string_equal(err.message, "expected the index of a weight from 0 to 5, received 7");
    assert_int_equal(leati_fail_index(&err, "weight", 0, 0), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "there is none"));
}

static void philox_matches_the_published_vectors(void **state) {
    (void)state;
    uint32_t out[4];
    leati_philox(0, 0, 0, out); /* Random123's known answers */
    assert_int_equal(out[0], 0x6627e8d5u);
    leati_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, out);
    assert_int_equal(out[0], 0x408f276du);
    assert_int_equal(out[1], 0x41c83b0eu);
    assert_int_equal(out[2], 0xa20bc7c6u);
    assert_int_equal(out[3], 0x6d5451fdu);
}

static void streams_depend_on_seed_pass_and_index(void **state) {
    (void)state;
    leat_rng a = leat_rng_for(1, 2, 3), b = leat_rng_for(1, 2, 3);
    for (int i = 0; i < 100; ++i) assert_int_equal(leat_rng_u64(&a), leat_rng_u64(&b));
    leat_rng other[] = {leat_rng_for(2, 2, 3), leat_rng_for(1, 3, 3), leat_rng_for(1, 2, 4)};
    leat_rng first = leat_rng_for(1, 2, 3);
    uint64_t draw = leat_rng_u64(&first);
    for (int i = 0; i < 3; ++i) assert_int_not_equal(leat_rng_u64(&other[i]), draw);
}

static void deviates_have_their_moments(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(7, 0, 0);
    double sum = 0, squares = 0, uniform = 0;
    enum { draws = 200000 };
    for (int i = 0; i < draws; ++i) {
        double x = leat_rng_normal(&rng);
        sum += x;
        squares += x * x;
        double u = leat_rng_uniform(&rng);
        assert_true(u >= 0 && u < 1);
        uniform += u;
        assert_true(leat_rng_below(&rng, 7) < 7);
    }
    assert_true(fabs(sum / draws) < 0.01);
    assert_true(fabs(squares / draws - 1) < 0.02);
    assert_true(fabs(uniform / draws - 0.5) < 0.005);
}

static void text_grows_and_shapes_read_like_keras(void **state) {
    (void)state;
    leati_text text = {0};
    for (int i = 0; i < 1000; ++i) leati_text_add(&text, "%d,", i);
    assert_false(text.failed);
    assert_int_equal(text.length, 3890);
    leati_text_fini(&text);
    char out[64];
    assert_string_equal(leati_shape_text(out, sizeof out, 3, (int64_t[]){-1, 28, 1}), "(None, 28, 1)");
    assert_string_equal(leati_shape_text(out, sizeof out, 1, (int64_t[]){5}), "(5,)");
    assert_string_equal(leati_shape_text(out, sizeof out, 0, NULL), "()");
}

static void nearest_name_is_found_or_not(void **state) {
    (void)state;
    const char *names[] = {"--epochs", "--batch-size", "--workers"};
    assert_string_equal(leati_nearest("--epoch", names, 3), "--epochs");
    assert_null(leati_nearest("--zzzzzzzzzzzzzzz", names, 3));
    const char *words[] = {
        "SGD", "Adam", "Adamax", "RMSprop", "fit", "evaluate", "mean_squared_error", "Identity", "identity"};
    static const struct {
        const char *word, *nearest; /* NULL: none */
    } cases[] = {
        {"adm", "Adam"},
        {"adma", "Adam"},
        {"dsg", NULL},
        {"sdg", "SGD"},
        {"sgd", "SGD"},
        {"fti", "fit"},
        {"ift", "fit"},
        {"fi", "fit"},
        {"fat", "fit"},
        {"rms_prop", "RMSprop"},
        {"evalaute", "evaluate"},
        {"evalute", "evaluate"},
        {"mean_sqaured_eror", "mean_squared_error"},
        {"identiti", "identity"},
        {"Identiti", "Identity"},
        {"f", NULL},
        {"", NULL},
        {"at", NULL},
        {"xit", "fit"},
        {"tif", NULL},
        {"test", NULL},
        {"data", NULL},
        {"madam", "Adam"},
        {"mean_absolute_error", NULL},
        {"evolution", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const char *nearest = leati_nearest(cases[i].word, words, sizeof words / sizeof words[0]);
        if (!nearest != !cases[i].nearest || (nearest && strcmp(nearest, cases[i].nearest) != 0))
            fail_msg("'%s': '%s', expected '%s'", cases[i].word, nearest ? nearest : "none",
                     cases[i].nearest ? cases[i].nearest : "none");
    }
}

static void spec_refuses_what_cannot_be(void **state) {
    (void)state;
    leat_batch_spec spec = {.batch_size = 4};
    leat_error err = {0};
    assert_int_equal(leat_batch_spec_add(&spec, LEAT_PART_INPUT, "x", LEAT_F32, 1, (int64_t[]){0}, &err),
                     LEAT_ESHAPE);
    assert_int_equal(leat_batch_spec_add(&spec, LEAT_PART_INPUT, "x", LEAT_F32, 1, (int64_t[]){3}, &err),
                     LEAT_OK);
    assert_int_equal(leat_batch_spec_add(&spec, LEAT_PART_TARGET, NULL, LEAT_I32, 0, NULL, &err), LEAT_OK);
    assert_int_equal(leat_batch_spec_add(&spec, LEAT_PART_INPUT, "z", LEAT_F32, 0, NULL, &err), LEAT_EINVAL);
    assert_int_equal(leat_batch_spec_first(&spec, LEAT_PART_TARGET), 1);
    assert_int_equal(leat_batch_spec_count(&spec, LEAT_PART_SAMPLE_WEIGHT), 0);
}

static void products_are_checked(void **state) {
    (void)state;
    size_t bytes;
    int64_t count;
    assert_false(leati_mul_size(SIZE_MAX / 2, 3, &bytes));
    assert_false(leati_mul_i64(INT64_MAX, 2, &count));
    assert_true(leati_mul_i64(6, 7, &count) && count == 42);
    assert_null(leati_calloc(SIZE_MAX / 2, 4));
}

/* A product that overflows must not become a small number: code that allocates so many elements would write out of
 * bounds. */
static void counts_of_huge_shapes_are_the_largest_number(void **state) {
    (void)state;
    const int64_t huge[][3] = {{INT64_MAX / 2, 3, 1},
                               {INT64_MAX, INT64_MAX, INT64_MAX},
                               {1, 1 << 30, INT64_MAX}};
    const int64_t none[] = {INT64_MAX, 3, 0};
    for (int i = 0; i < 3; ++i) {
        leat_tensor tensor = leat_tensor_view(LEAT_F32, 3, huge[i], NULL);
        assert_true(leat_tensor_count(&tensor) == INT64_MAX);
        assert_true(leat_tensor_bytes(&tensor) == SIZE_MAX);
    }
    leat_tensor tensor = leat_tensor_view(LEAT_F32, 3, none, NULL);
    assert_true(leat_tensor_count(&tensor) == 0 && leat_tensor_bytes(&tensor) == 0);
    tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){INT64_MAX}, NULL);
    assert_true(leat_tensor_count(&tensor) == INT64_MAX && leat_tensor_bytes(&tensor) == SIZE_MAX);
    assert_true(leati_mul_saturated(INT64_MIN, 2) == -INT64_MAX);
    assert_true(leati_mul_saturated(-3, 5) == -15 && leati_mul_saturated(-3, -5) == 15);
}

static void numbers_get_their_point(void **state) {
    (void)state;
    const char *const pairs[][2] = {{"0,25", "0.25"},   {"-1,5e-07", "-1.5e-07"},
                                    {" 12,5", " 12.5"}, {"3\u066b14", "3.14"},
                                    {"3.14", "3.14"},   {"42", "42"},
                                    {"1e+20", "1e+20"}, {"-inf", "-inf"},
                                    {"nan", "nan"},     {"", ""}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
        char number[16];
        snprintf(number, sizeof number, "%s", pairs[i][0]);
        leati_decimal_point(number);
        assert_string_equal(number, pairs[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_has_the_promised_size),
        cmocka_unit_test(prefix_goes_in_front_and_cuts_at_the_end),
        cmocka_unit_test(finished_text_is_no_format),
        cmocka_unit_test(control_characters_do_not_get_into_messages),
        cmocka_unit_test(index_out_of_range_names_the_range),
        cmocka_unit_test(philox_matches_the_published_vectors),
        cmocka_unit_test(streams_depend_on_seed_pass_and_index),
        cmocka_unit_test(deviates_have_their_moments),
        cmocka_unit_test(text_grows_and_shapes_read_like_keras),
        cmocka_unit_test(nearest_name_is_found_or_not),
        cmocka_unit_test(spec_refuses_what_cannot_be),
        cmocka_unit_test(numbers_get_their_point),
        cmocka_unit_test(products_are_checked),
        cmocka_unit_test(counts_of_huge_shapes_are_the_largest_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
