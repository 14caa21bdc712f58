/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid arguments: sizes, ranks, class weights and environment variables.  Each is an error whose message names the
 * argument.  tests/arguments has the tests of pointers and enumerations. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"
#include "train/support.h"

static leat_error err;

/* Expects that the call fails with LEAT_EINVAL, and that the message names the argument. */
#define expect_null(call, name)                                                                              \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        assert_int_equal(call, LEAT_EINVAL);                                                                 \
        assert_non_null(strstr(err.message, name " is NULL"));                                               \
    } while (0)

#define expect_refusal(call, status)                                                                         \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        assert_int_equal(call, status);                                                                      \
        assert_int_not_equal(err.message[0], 0);                                                             \
    } while (0)

enum { SAMPLES = 8 };

static float x[SAMPLES][4], y[SAMPLES][3];

static const leat_arrays *points(void) {
    static leat_array in, out;
    static leat_arrays all;
    in.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, x);
    out.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 3}, y);
    all = (leat_arrays){.inputs = &in, .input_count = 1, .targets = &out, .target_count = 1};
    return &all;
}

/* A network under construction keeps its first error. */
static void networks_without_arguments(void **state) {
    (void)state;
    for (int i = 0; i < 3; ++i) {
        leat_builder *builder = NULL;
        leat_model *model = NULL;
        expect_ok(leat_builder_create(&builder, &err), &err);
        leat_node *input = leat_input(builder, i == 0 ? NULL : (int64_t[]){4}, 1);
        leat_node *output = i == 1 ? leat_layer(input, NULL, NULL) : leat_merge(NULL, 2, "Add", NULL);
        assert_null(output);
        expect_refusal(leat_model_create(&model, &builder, &input, 1, &output, 1, &err), LEAT_EINVAL);
        assert_null(model);
    }
}

static void arrays_without_data(void **state) {
    leat_model *model = make_classifier(1);
    leat_arrays arrays = *points();
    leat_array hollow = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, NULL)};
    (void)state;
    arrays.inputs = NULL;
    expect_refusal(leat_model_fit(model, &arrays, 4, NULL, NULL, &err), LEAT_EINVAL);
    expect_refusal(leat_model_train_on_batch(model, &arrays, NULL, &err), LEAT_EINVAL);
    arrays.inputs = &hollow;
    expect_refusal(leat_model_fit(model, &arrays, 4, NULL, NULL, &err), LEAT_EINVAL);
    expect_refusal(leat_model_train_on_batch(model, &arrays, NULL, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
}

static void options_out_of_range(void **state) {
    leat_model *model = make_classifier(1);
    leat_fit_options fit = quiet_fit(1);
    leat_evaluate_options evaluation = leat_evaluate_options_default();
    leat_logs logs;
    (void)state;
    fit.threads = -1;
    expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
    fit.threads = 100000;
    expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
    fit = quiet_fit(-1);
    expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
    fit = quiet_fit(1);
    leat_callback *none[1] = {NULL};
    fit.callback_count = evaluation.callback_count = 1;
    fit.callbacks = evaluation.callbacks = none;
    expect_null(leat_model_fit(model, points(), 4, &fit, NULL, &err), "callback 0");
    expect_null(leat_model_evaluate(model, points(), 4, &evaluation, &logs, &err), "callback 0");
    leat_model_destroy(&model);
}

/* Classes that the data cannot have, and weights that are not finite, are refused before the first step. */
static void class_weights_are_checked(void **state) {
    static const struct {
        leat_class_weight weights[4];
        int count;
        const char *message;
    } cases[] = {
        {{{0, 1}, {1, 2}, {1, 3}, {2, 1}}, 4, "class_weight lists class 1 twice"},
        {{{0, 1}, {1, NAN}, {2, 1}}, 3, "expected a finite weight for class 1, received nan"},
        {{{0, 1}, {1, 1}, {2, INFINITY}}, 3, "expected a finite weight for class 2, received inf"},
        {{{0, 1}, {1, 1}, {2, 1}, {3, 1}}, 4, "class_weight lists class 3, output 'out' has 0 to 2"},
        {{{0, 1}, {-1, 1}, {2, 1}}, 3, "class_weight lists class -1, output 'out' has 0 to 2"},
        {{{0, 1}, {1, 1}}, 2, "class 2 is missing"},
        {{{0, 1}}, -1, "class_weight_count: expected at least 0, received -1"},
    };
    leat_model *model = make_classifier(1);
    leat_fit_options fit = quiet_fit(1);
    (void)state;
    for (int i = 0; i < SAMPLES; ++i) y[i][i % 3] = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fit.class_weight = cases[i].weights, fit.class_weight_count = cases[i].count;
        expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
        if (!strstr(err.message, cases[i].message))
            fail_msg("'%s' without '%s'", err.message, cases[i].message);
    }
    fit.class_weight = (leat_class_weight[]){{2, 1}, {0, -1}, {1, 0}}, fit.class_weight_count = 3;
    expect_ok(leat_model_fit(model, points(), 4, &fit, NULL, &err), &err);
    leat_model_destroy(&model);
}

/* Class numbers as targets: as many classes as the output has numbers; any integer where it has one (a hinge has
 * -1 and 1). */
static void class_weights_of_class_numbers(void **state) {
    static float numbers[SAMPLES] = {0, 1, 2, 0, 1, 2, 0, 1}, signs[SAMPLES] = {1, -1, 1, -1, 1, -1, 1, -1};
    leat_compile_options compile = leat_compile_options_default();
    leat_array in = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, x)},
               out = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, numbers)};
    const leat_arrays arrays = {.inputs = &in, .input_count = 1, .targets = &out, .target_count = 1};
    leat_model *model = make_classifier(1), *line = make_line(0.1);
    leat_fit_options fit = quiet_fit(1);
    (void)state;
    compile.loss = "sparse_categorical_crossentropy";
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    fit.class_weight = (leat_class_weight[]){{0, 1}, {1, 1}, {2, 1}, {3, 1}}, fit.class_weight_count = 4;
    expect_refusal(leat_model_fit(model, &arrays, 4, &fit, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "class_weight lists class 3, output 'out' has 0 to 2"));
    fit.class_weight_count = 3;
    expect_ok(leat_model_fit(model, &arrays, 4, &fit, NULL, &err), &err);
    in.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, x), out.tensor.data = signs;
    fit.class_weight = (leat_class_weight[]){{-1, 1}, {1, 2}}, fit.class_weight_count = 2;
    expect_ok(leat_model_fit(line, &arrays, 4, &fit, NULL, &err), &err);
    leat_model_destroy(&model);
    leat_model_destroy(&line);
}

static void predictors_of_impossible_sizes(void **state) {
    leat_model *model = make_classifier(1);
    leat_predictor *predictor = NULL;
    leat_predictor_options options = leat_predictor_options_default();
    leat_tensor input = leat_tensor_view((leat_dtype)77, 2, (int64_t[]){1, 4}, NULL);
    int64_t many[LEAT_MAX_RANK + 2] = {1, 4, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    options.inputs = &input;
    expect_refusal(leat_predictor_create(&predictor, model, &options, &err), LEAT_EDTYPE);
    input = leat_tensor_view(LEAT_F32, LEAT_MAX_RANK + 2, many, NULL);
    expect_refusal(leat_predictor_create(&predictor, model, &options, &err), LEAT_ESHAPE);
    options = leat_predictor_options_default();
    options.batch_size = INT64_MAX;
    expect_refusal(leat_predictor_create(&predictor, model, &options, &err), LEAT_ENOMEM);
    options.batch_size = 1;
    options.threads = 100000;
    expect_refusal(leat_predictor_create(&predictor, model, &options, &err), LEAT_EINVAL);
    leat_model_destroy(&model);
}

/* A misspelt cap must not pass for none: whoever sets it wants to know what that instruction set gives. */
static void unknown_cap_is_refused(void **state) {
    leat_model *model = make_classifier(1);
    leat_fit_options fit = quiet_fit(1);
    (void)state;
    setenv("LEAT_MAX_ISA", "AVX2", 1);
    expect_refusal(leat_model_fit(model, points(), 4, &fit, NULL, &err), LEAT_EINVAL);
    assert_non_null(
        strstr(err.message, "LEAT_MAX_ISA: expected base, avx2, avx512 or avx512_bf16, received 'AVX2'"));
    setenv("LEAT_MAX_ISA", "", 1);
    expect_ok(leat_model_fit(model, points(), 4, &fit, NULL, &err), &err);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_without_arguments), cmocka_unit_test(arrays_without_data),
        cmocka_unit_test(options_out_of_range),       cmocka_unit_test(predictors_of_impossible_sizes),
        cmocka_unit_test(class_weights_are_checked),  cmocka_unit_test(class_weights_of_class_numbers),
        cmocka_unit_test(unknown_cap_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
