/* SPDX-License-Identifier: Apache-2.0 */
/* Every layer in a .h5 file, from every example: configuration, names and weights survive saving and loading. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/model.h"
#include "nn/examples.h"

static void must(leat_status status, const example *e, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s {%s}: %s", e->class_name, e->config, err->message);
}

static void compare_weights(const example *e, const leat_model *a, const leat_model *b) {
    assert_int_equal(leat_model_weight_count(a), leat_model_weight_count(b));
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        assert_string_equal(leat_model_weight_name(a, i), leat_model_weight_name(b, i));
        assert_int_equal(leat_tensor_bytes(&x), leat_tensor_bytes(&y));
        if (memcmp(x.data, y.data, leat_tensor_bytes(&x)) != 0)
            fail_msg("%s {%s}: '%s' is another", e->class_name, e->config, leat_model_weight_name(a, i));
    }
}

static void compare_configs(const example *e, const leat_model *a, const leat_model *b) {
    leat_error err = {0};
    char *x = NULL, *y = NULL;
    must(leat_model_to_json(a, &x, &err), e, &err);
    must(leat_model_to_json(b, &y, &err), e, &err);
    if (strcmp(x, y) != 0) fail_msg("%s {%s}: saved %s, loaded %s", e->class_name, e->config, x, y);
    leat_string_free(x);
    leat_string_free(y);
}

static void check(const example *e, const char *path) {
    leat_error err = {0};
    leat_model *model = NULL, *loaded = NULL;
    leat_compile_options options = leat_compile_options_default();
    char json[EXAMPLE_MODEL_BYTES];
    example_model(json, e, true);
    must(leat_model_from_json(&model, json, &err), e, &err);
    must(leat_model_initialize(model, 7, &err), e, &err);
    options.loss = "mse";
    must(leat_model_compile(model, &options, &err), e, &err);
    must(leat_model_save(model, path, true, &err), e, &err);
    must(leat_model_load(&loaded, path, &err), e, &err);
    compare_configs(e, model, loaded);
    compare_weights(e, model, loaded);
    assert_true(leat_model_is_compiled(loaded));
    leat_model_destroy(&model);
    leat_model_destroy(&loaded);
}

static void test_layers(void **state) {
    (void)state;
    char folder[] = "/tmp/leat_saved_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.h5", folder);
    for (const example *e = examples; e->class_name; ++e)
        if (!example_is_input_layer(e)) check(e, path); /* every example's model has one */
    unlink(path);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
