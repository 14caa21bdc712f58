/* SPDX-License-Identifier: Apache-2.0 */
/* examples/resnet.c builds the graphs of keras.applications.resnet: its output equals the JSON and the summaries of
 * Keras 2.3.1 for ResNet-50, 101 and 152. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"

enum { text_bytes = 1 << 20 };

/* Returns the output of the program, for free(). */
static char *printed(int depth) {
    char line[1024], *text = calloc(text_bytes, 1);
    assert_non_null(text);
    snprintf(line, sizeof line, "'%s' --depth %d --pixels 224 --classes 1000 --summary --json", LEAT_EXAMPLE,
             depth);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    size_t length = fread(text, 1, text_bytes - 1, pipe);
    assert_int_equal(pclose(pipe), 0);
    assert_true(length > 0 && length < text_bytes - 1);
    return text;
}

static void check_config(const golden *g, const char *text) {
    json_t *expected = golden_json(g, "config"), *got = json_loads(text, 0, NULL);
    assert_non_null(got);
    assert_true(json_equal(json_object_get(got, "config"), json_object_get(expected, "config")));
    assert_string_equal(json_string_value(json_object_get(got, "class_name")),
                        json_string_value(json_object_get(expected, "class_name")));
    json_decref(got);
    json_decref(expected);
}

static void check_summary(const golden *g, const char *text, size_t length) {
    leat_tensor expected = test_npz_get(g->npz, "summary");
    assert_int_equal(length, leat_tensor_bytes(&expected));
    assert_memory_equal(text, expected.data, length);
}

static void check(const char *name, void *user) {
    golden g;
    int depth = (int)strtol(name + strlen("resnet"), NULL, 10);
    golden_open(&g, "resnets", name);
    char *text = printed(depth), *json = strstr(text, "\n{");
    assert_non_null(json);
    check_summary(&g, text, (size_t)(json + 1 - text));
    check_config(&g, json + 1);
    free(text);
    golden_close(&g);
    ++*(int *)user;
}

static void test_graphs(void **state) {
    (void)state;
    int cases = 0;
    golden_each("resnets", check, &cases);
    assert_int_equal(cases, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
