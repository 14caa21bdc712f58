/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python's module reads and writes it. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "json/json.h"

static void check_same(const char *text) {
    leat_error err = {0};
    json_t *value = NULL;
    char *again = NULL;
    if (leati_json_parse(&value, text, strlen(text), &err) != LEAT_OK) fail_msg("%s: %s", text, err.message);
    assert_int_equal(leati_json_write(value, &again, &err), LEAT_OK);
    assert_string_equal(again, text);
    leati_free(again);
    json_decref(value);
}

/* Texts in the format of json.dumps are read and written unchanged. */
static void test_round_trip(void **state) {
    (void)state;
    check_same("null");
    check_same("[]");
    check_same("{}");
    check_same("{\"b\": 1, \"a\": [true, false, null], \"c\": {\"d\": {}}}");
    check_same(
        "[0.001, 1e-07, 1.0, 0.1, -0.0, 1e+16, 123456789012345.0, 0.0001, 1e-05, 1.7976931348623157e+308]");
    check_same("[0.0010000000474974513, 5e-324, 0.30000000000000004, 9007199254740993, -1]");
    check_same("[NaN, Infinity, -Infinity, {\"x\": NaN}]");
    check_same("\"\\u00e9 \\ud83d\\ude00 \\\" \\\\ \\n\\r\\t\\b\\f \\u0001 / NaN\"");
    check_same("[\"NaN\", \"a, -Infinity\", \"\\\"NaN\"]");
}

static void test_numbers(void **state) {
    (void)state;
    char text[LEATI_JSON_REAL_BYTES];
    static const double values[] = {0.001, 1e-07, 1.0, 1e22, 123456.789, 0.1 + 0.2, -2.5e-300};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i)
        assert_true(strtod(leati_json_real_text(text, values[i]), NULL) == values[i]);
    double number;
    json_t *infinite = leati_json_real((double)-INFINITY), *text_value = json_string("1.0");
    assert_true(leati_json_number(infinite, &number) && isinf(number) && number < 0);
    assert_false(leati_json_number(text_value, &number));
    json_decref(infinite);
    json_decref(text_value);
}

static void check_failure(const char *text, const char *place) {
    leat_error err = {0};
    json_t *value = NULL;
    assert_int_equal(leati_json_parse(&value, text, strlen(text), &err), LEAT_EFORMAT);
    assert_null(value);
    if (!strstr(err.message, place)) fail_msg("'%s' says \"%s\", not %s", text, err.message, place);
}

static void test_errors(void **state) {
    (void)state;
    check_failure("", "line 1, column 1");
    check_failure("{\"a\": 1,\n \"b\": }", "line 2, column 7");
    check_failure("[NaN, NaN,\n NaN, x]", "line 2, column 7");
    check_failure("[NaN, Infinity", "line 1, column 15");
    check_failure("[1, 2", "line 1");
    check_failure("\"\xff\"", "line 1");
    check_failure("[1] 2", "line 1, column 5");
    check_failure("[Nan]", "near 'Nan'");
    char deep[2 * LEATI_JSON_MAX_DEPTH + 4];
    memset(deep, '[', LEATI_JSON_MAX_DEPTH + 1);
    deep[LEATI_JSON_MAX_DEPTH + 1] = '\0';
    check_failure(deep, "256 levels");
    deep[LEATI_JSON_MAX_DEPTH] = '\0';
    memset(deep + LEATI_JSON_MAX_DEPTH, ']', LEATI_JSON_MAX_DEPTH);
    deep[2 * LEATI_JSON_MAX_DEPTH] = '\0';
    check_same(deep);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
