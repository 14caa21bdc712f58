/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation fails, for every n, while a model is compiled and its step is built: the status is
 * LEAT_ENOMEM, and no memory leaks.  Allocations of jansson are not counted. */
#include "cmocka_all.h"

#include <string.h>

#include "nn/program/program.h"
#include "nn/run.h"
#include "nn/small_models.h"
#include "support/memory_failing.h"

static leat_model *make(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_ok(leat_model_from_json(&model, json, &err), &err);
    return model;
}

static leat_compile_options options_of(void) {
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"Adam\", \"config\": {\"amsgrad\": true, \"clipnorm\": 1.0}}";
    options.loss = "{\"class_name\": \"Huber\", \"config\": {\"delta\": 2.0}}";
    options.metrics = "mse,AUC(num_thresholds=4),Precision(thresholds=[0.2, 0.6])";
    options.weighted_metrics = "[{\"class_name\": \"MeanSquaredError\"}]";
    options.sample_weight_mode = "temporal";
    return options;
}

static void test_compile(void **state) {
    (void)state;
    const leat_compile_options options = options_of();
    int64_t n = 0;
    for (bool more = true; more;) {
        leat_error err = {0};
        int64_t before = memory_live();
        leat_model *model = make(SMALL_SEQUENCE);
        memory_fail_at(++n);
        leat_status status = leat_model_compile(model, &options, &err);
        more = memory_failed();
        memory_fail_at(0);
        assert_int_equal(status, more ? LEAT_ENOMEM : LEAT_OK);
        assert_int_equal(leat_model_is_compiled(model), !more);
        if (more) assert_ok(leat_model_compile(model, &options, &err), &err);
        leat_model_destroy(&model);
        assert_int_equal(memory_live(), before);
    }
    assert_true(n > 10);
}

static void test_program(void **state) {
    (void)state;
    const leat_compile_options options = options_of();
    const int64_t x[] = {2, 3, 4}, t[] = {2, 3, 2};
    leat_error err = {0};
    leat_model *model = make(SMALL_SEQUENCE);
    assert_ok(leat_model_compile(model, &options, &err), &err);
    leati_program_spec spec = {.mode = LEATI_TRAIN, .input_count = 1, .target_count = 1};
    spec.inputs[0] = leati_desc_make(LEAT_F32, 3, x);
    spec.targets[0] = leati_desc_make(LEAT_F32, 3, t);
    spec.weights[0] = leati_desc_make(LEAT_F32, 2, x);
    int64_t n = 0;
    for (bool more = true; more;) {
        leati_program program;
        int64_t before = memory_live();
        memory_fail_at(++n);
        leat_status status = leati_program_build(model, &spec, &program, &err);
        more = memory_failed();
        memory_fail_at(0);
        assert_int_equal(status, more ? LEAT_ENOMEM : LEAT_OK);
        if (more) assert_null(program.graph);
        leati_graph_destroy(&program.graph);
        assert_int_equal(memory_live(), before);
    }
    assert_true(n > 10);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compile),
        cmocka_unit_test(test_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
