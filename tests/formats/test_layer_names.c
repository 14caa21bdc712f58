/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose layers have unusual names are saved and loaded: names with slashes, dots and characters of several
 * bytes. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/model.h"

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

/* Saves a Sequential of two Dense layers, loads the file, and compares both models. */
static void expect_saved(const char *first, const char *second) {
    char json[1024], path[] = "/tmp/leat-names-XXXXXX", *before = NULL, *after = NULL;
    leat_error err = {0};
    leat_model *model = NULL, *loaded = NULL;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(json, sizeof json,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
             "{\"class_name\": \"Dense\", \"config\": {\"name\": \"%s\", \"units\": 2, "
             "\"batch_input_shape\": [null, 3]}}, "
             "{\"class_name\": \"Dense\", \"config\": {\"name\": \"%s\", \"units\": 2}}]}}",
             first, second);
    must(leat_model_from_json(&model, json, &err), &err);
    must(leat_model_initialize(model, 7, &err), &err);
    must(leat_model_save(model, path, true, &err), &err);
    must(leat_model_load(&loaded, path, &err), &err);
    must(leat_model_to_json(model, &before, &err), &err);
    must(leat_model_to_json(loaded, &after, &err), &err);
    assert_string_equal(before, after);
    assert_int_equal(leat_model_weight_count(loaded), 4);
    for (int i = 0; i < 4; ++i) {
        leat_tensor a = leat_model_weight(model, i), b = leat_model_weight(loaded, i);
        assert_memory_equal(a.data, b.data, (size_t)leat_tensor_count(&a) * sizeof(float));
    }
    leat_string_free(before);
    leat_string_free(after);
    leat_model_destroy(&model);
    leat_model_destroy(&loaded);
    unlink(path);
}

/* The name of the first layer plus "_input" is the name of the input, which has no more than 63 bytes. */
static void names_are_cut_between_characters(void **state) {
    (void)state;
    char name[64];
    for (int letters = 26; letters <= 31; ++letters)
        for (int lead = 0; lead <= 1; ++lead) {
            snprintf(name, sizeof name, "%s", lead ? "x" : "");
            for (int i = 0; i < letters; ++i) strcat(name, "\xC3\xA4");
            expect_saved(name, "second");
        }
    for (int i = 0; i < 15; ++i) memcpy(name + 4 * i, "\xF0\x9F\x98\x80", 5);
    expect_saved(name, "second");
}

static void names_with_slashes_are_paths(void **state) {
    (void)state;
    expect_saved("a", "a/b");
    expect_saved("a/b/c", "..");
    expect_saved(".a", "a.b/..c");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_cut_between_characters),
        cmocka_unit_test(names_with_slashes_are_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
