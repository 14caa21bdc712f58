/* SPDX-License-Identifier: Apache-2.0 */
/* examples/dqn_lstm.c: its result depends on the seed only, not on whether a worker or the training thread makes the
 * batches. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 8, text_bytes = 1 << 12 };

typedef struct outcome {
    int count;
    double returned[most], loss[most];
} outcome;

static outcome run(const char *options) {
    char line[1024], text[text_bytes];
    outcome found = {0};
    snprintf(line, sizeof line,
             "'%s' --iterations 3 --steps 300 --passes 2 --batches 4 --batch-size 8 --window 6 --units 8 "
             "--json 1 %s "
             "2>/dev/null",
             LEAT_EXAMPLE, options);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    for (; fgets(text, sizeof text, pipe); ++found.count) {
        int number = 0;
        assert_true(found.count < most);
        const char *format = "{\"iteration\": %d, \"return\": %lf, \"loss\": %lf, \"environment_s\"";
        assert_int_equal(sscanf(text, format, &number, &found.returned[found.count],
                                &found.loss[found.count]),
                         3);
        assert_int_equal(number, found.count + 1);
    }
    assert_int_equal(pclose(pipe), 0);
    return found;
}

static void test_seeds(void **state) {
    (void)state;
    outcome first = run("--seed 5"), again = run("--seed 5"), inline_batches = run("--seed 5 --workers 0");
    outcome other = run("--seed 6"), windows = run("--seed 5 --stream 0");
    assert_int_equal(windows.count, 3);
    assert_int_equal(first.count, 3);
    assert_memory_equal(&first, &again, sizeof first);
    assert_memory_equal(&first, &inline_batches, sizeof first);
    assert_memory_not_equal(&first, &other, sizeof first);
    for (int i = 0; i < first.count; ++i) {
        assert_true(first.returned[i] > 8 && first.returned[i] < 60); /* mostly at random */
        assert_true(first.loss[i] > 0 && first.loss[i] < 1);
    }
}

static void test_usage(void **state) {
    (void)state;
    static const char *const wrong[] = {"--what 1", "--seed", "--seed x", "--batch-size 0", "--workers 2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
        char line[1024];
        snprintf(line, sizeof line, "'%s' %s >/dev/null 2>&1", LEAT_EXAMPLE, wrong[i]);
        FILE *pipe = popen(line, "r");
        assert_non_null(pipe);
        assert_int_equal(pclose(pipe), 2 << 8);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeds), cmocka_unit_test(test_usage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
