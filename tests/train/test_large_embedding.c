/* SPDX-License-Identifier: Apache-2.0 */
/* The update of an Embedding's table by the rows of its gradient gives the numbers of the update by the gradient of the
 * whole table, which an optimizer with clipvalue makes. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "train/support.h"

enum { ROWS = 12000, COLUMNS = 33, SAMPLES = 64, WORDS = 20, STEPS = 3 };

static leat_error err;
static int32_t words[STEPS][SAMPLES][WORDS];
static float targets[SAMPLES];

/* Words of two thirds of the table; in each sample one of them is there twice. */
static void fill(void) {
    for (int step = 0; step < STEPS; ++step)
        for (int i = 0; i < SAMPLES; ++i) {
            for (int k = 0; k < WORDS; ++k) words[step][i][k] = (7919 * (step * 9973 + i * WORDS + k)) % 8000;
            words[step][i][1] = words[step][i][0];
        }
    for (int i = 0; i < SAMPLES; ++i) targets[i] = (float)(i % 5) - 2;
}

static leat_model *make_model(const char *optimizer, const char *arithmetic) {
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    leat_compile_options options = leat_compile_options_default();
    expect_ok(leat_builder_create(&builder, &err), &err);
    char embedding[80];
    snprintf(embedding, sizeof embedding, "{'input_dim': %d, 'output_dim': %d}", ROWS, COLUMNS);
    leat_node *in = leat_input(builder, (int64_t[]){WORDS}, 1);
    leat_node *read = leat_layer(in, "Embedding", embedding);
    leat_node *out = leat_dense(leat_layer(read, "GlobalAveragePooling1D", NULL), 1, "tanh");
    expect_ok(leat_model_create(&model, &builder, &in, 1, &out, 1, &err), &err);
    options.loss = "mse";
    options.optimizer = optimizer;
    options.arithmetic = arithmetic;
    expect_ok(leat_model_compile(model, &options, &err), &err);
    expect_ok(leat_model_initialize(model, 5, &err), &err);
    return model;
}

static leat_model *trained(const char *optimizer, const char *arithmetic) {
    leat_model *model = make_model(optimizer, arithmetic);
    for (int step = 0; step < STEPS; ++step) {
        leat_array input = {.tensor =
                                leat_tensor_view(LEAT_I32, 2, (int64_t[]){SAMPLES, WORDS}, words[step])};
        leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, targets)};
        const leat_arrays batch = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
        expect_ok(leat_model_train_on_batch(model, &batch, NULL, &err), &err);
    }
    return model;
}

/* Returns whether the plan of a step has the gradient of the whole table. */
static bool has_gradient_of_table(leat_model *model) {
    leat_plan_options options = leat_plan_options_default();
    char *text = NULL;
    options.batch_size = SAMPLES;
    options.train = true;
    expect_ok(leat_model_plan_summary(model, &options, &text, &err), &err);
    const bool found = strstr(text, "gather_bwd") != NULL;
    leat_string_free(text);
    return found;
}

/* The largest difference of a weight. */
static double distance(const leat_model *a, const leat_model *b) {
    double most = 0;
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        const leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        for (int64_t k = 0; k < leat_tensor_count(&x); ++k)
            most = fmax(most, fabs((double)((const float *)x.data)[k] - ((const float *)y.data)[k]));
    }
    return most;
}

static void updates_by_rows_are_those_of_the_table(void **state) {
    static const char *const optimizers[] = {
        "'SGD'|'momentum': 0.0",  "'SGD'|'momentum': 0.9, 'nesterov': true",
        "'RMSprop'|'rho': 0.8",   "'Adagrad'|'learning_rate': 0.1",
        "'Adadelta'|'rho': 0.9",  "'Adam'|'beta_1': 0.8",
        "'Adam'|'amsgrad': true", "'Adamax'|'beta_1': 0.8",
        "'Nadam'|'beta_1': 0.8"};
    static const char *const arithmetics[] = {"keras2", "keras3"};
    (void)state;
    fill();
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; ++i)
        for (int k = 0; k < 2; ++k) {
            const int name = (int)strcspn(optimizers[i], "|");
            char by_rows[160], by_table[160];
            snprintf(by_rows, sizeof by_rows, "{'class_name': %.*s, 'config': {%s}}", name, optimizers[i],
                     optimizers[i] + name + 1);
            snprintf(by_table, sizeof by_table, "{'class_name': %.*s, 'config': {%s, 'clipvalue': 1e30}}",
                     name, optimizers[i], optimizers[i] + name + 1);
            leat_model *a = trained(by_rows, arithmetics[k]), *b = trained(by_table, arithmetics[k]);
            assert_false(has_gradient_of_table(a));
            assert_true(has_gradient_of_table(b));
            const double most = distance(a, b);
            /* Sums of squares may be rounded once less. */
            if (most > (k == 0 ? 0.0 : 2e-6)) fail_msg("%s, %s: %g", by_rows, arithmetics[k], most);
            leat_model_destroy(&a);
            leat_model_destroy(&b);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(updates_by_rows_are_those_of_the_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
