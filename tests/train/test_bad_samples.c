/* SPDX-License-Identifier: Apache-2.0 */
/* One sample of the data is wrong.  Whatever the order, the message has its number in the data, its place in the
 * batch and the value. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "leat/leat.h"
#include "train/support.h"

enum { SAMPLES = 64, BATCH = 8, BAD = 41, WORDS = 3 };

static leat_error err;
static float x[SAMPLES][4], labels[SAMPLES];
static int32_t words[SAMPLES][WORDS];

static void make_data(void) {
    for (int i = 0; i < SAMPLES; ++i) {
        labels[i] = (float)(i % 3);
        for (int k = 0; k < 4; ++k) x[i][k] = (float)(i + k);
        for (int k = 0; k < WORDS; ++k) words[i][k] = (i + k) % 10;
    }
}

static leat_model *compiled(leat_model *model) {
    leat_compile_options options = leat_compile_options_default();
    options.loss = "sparse_categorical_crossentropy";
    expect_ok(leat_model_compile(model, &options, &err), &err);
    return model;
}

static leat_model *make_reader(void) {
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *in = leat_input(builder, (int64_t[]){WORDS}, 1);
    leat_node *read = leat_layer(in, "Embedding", "{'input_dim': 10, 'output_dim': 2}");
    leat_node *out = leat_dense(leat_flatten(read), 3, "softmax");
    expect_ok(leat_model_create(&model, &builder, &in, 1, &out, 1, &err), &err);
    return compiled(model);
}

static leat_arrays arrays_of(leat_array *input, leat_array *target, bool of_words) {
    input->tensor = of_words ? leat_tensor_view(LEAT_I32, 2, (int64_t[]){SAMPLES, WORDS}, words)
                             : leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 4}, x);
    target->tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, labels);
    return (leat_arrays){.inputs = input, .input_count = 1, .targets = target, .target_count = 1};
}

/* The fit fails in each order, with all of these words in the message.  The place in the batch depends on the order. */
static void expect_bad_sample(leat_model *model, bool of_words, leat_fit_options fit, const char *problem) {
    static const leat_shuffle orders[] = {LEAT_SHUFFLE_NONE, LEAT_SHUFFLE_BATCHES, LEAT_SHUFFLE_SAMPLES,
                                          LEAT_SHUFFLE_WINDOW};
    leat_array input = {0}, target = {0};
    const leat_arrays arrays = arrays_of(&input, &target, of_words);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; ++i)
        for (int workers = 0; workers < 2; ++workers) {
            char place[64];
            fit.shuffle = orders[i], fit.shuffle_window = 16, fit.workers = workers;
            memset(&err, 0, sizeof err);
            assert_int_not_equal(leat_model_fit(model, &arrays, BATCH, &fit, NULL, &err), LEAT_OK);
            if (!strstr(err.message, "sample 41 of the data"))
                fail_msg("order %d: '%s'", (int)orders[i], err.message);
            if (!strstr(err.message, problem)) fail_msg("'%s' without '%s'", err.message, problem);
            if (!strstr(err.message, "of the batch")) fail_msg("'%s' without the place", err.message);
            snprintf(place, sizeof place, "sample %d of the batch", BAD % BATCH);
            if (orders[i] < LEAT_SHUFFLE_SAMPLES && !strstr(err.message, place))
                fail_msg("order %d: '%s' without '%s'", (int)orders[i], err.message, place);
        }
}

static void a_class_that_the_output_does_not_have(void **state) {
    leat_model *model = compiled(make_classifier(1));
    (void)state;
    make_data();
    labels[BAD] = 7;
    expect_bad_sample(model, false, quiet_fit(1), "expected class numbers from 0 to 2, received 7");
    leat_model_destroy(&model);
}

static void a_class_without_a_weight(void **state) {
    static const leat_class_weight weights[] = {{0, 1}, {2, 1}};
    leat_model *model = compiled(make_classifier(1));
    leat_fit_options fit = quiet_fit(1);
    (void)state;
    make_data();
    for (int i = 0; i < SAMPLES; ++i) labels[i] = (float)(i == BAD ? 1 : 2 * (i % 2));
    fit.class_weight = weights, fit.class_weight_count = 2;
    expect_bad_sample(model, false, fit, "class 1 is missing");
    leat_model_destroy(&model);
}

static void an_index_that_the_table_does_not_have(void **state) {
    leat_model *model = make_reader();
    (void)state;
    make_data();
    words[BAD][2] = 86;
    expect_bad_sample(model, true, quiet_fit(1),
                      "expected an index from 0 to 9, received 86 at place 2 of sample");
    words[BAD][2] = -3;
    expect_bad_sample(model, true, quiet_fit(1), "received -3 at place 2 of sample");
    leat_model_destroy(&model);
}

static void a_number_that_is_none(void **state) {
    leat_model *model = compiled(make_classifier(1));
    leat_fit_options fit = quiet_fit(1);
    (void)state;
    make_data();
    x[BAD][3] = NAN;
    fit.faults.check_finite = true;
    expect_bad_sample(model, false, fit, "holds NaN in element 3 of sample");
    leat_model_destroy(&model);
}

/* Without a feed the message has only the place in the batch. */
static void one_batch(void **state) {
    leat_model *model = make_reader();
    leat_array input = {0}, target = {0};
    const leat_arrays arrays = arrays_of(&input, &target, true);
    leat_tensor output;
    (void)state;
    make_data();
    words[BAD][1] = 10;
    memset(&err, 0, sizeof err);
    assert_int_equal(leat_model_predict_on_batch(model, &arrays, &output, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "received 10 at place 1 of sample 41 of the batch"));
    assert_int_equal(err.origin, LEAT_ORIGIN_LEAT);
    assert_int_equal(err.origin_code, 1 + BAD);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_that_the_output_does_not_have),
        cmocka_unit_test(a_class_without_a_weight),
        cmocka_unit_test(an_index_that_the_table_does_not_have),
        cmocka_unit_test(a_number_that_is_none),
        cmocka_unit_test(one_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
