/* SPDX-License-Identifier: Apache-2.0 */
/* leat_model_plan_summary: its contents, and that it leaves the model unchanged. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

#include "train/support.h"

static char *summary(leat_model *model, const leat_plan_options *options) {
    leat_error err = {0};
    char *text = NULL;
    expect_ok(leat_model_plan_summary(model, options, &text, &err), &err);
    assert_non_null(text);
    return text;
}

static json_t *figures(leat_model *model, leat_plan_options options) {
    options.json = true;
    options.threads = 1;
    char *text = summary(model, &options);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    leat_string_free(text);
    return root;
}

static int64_t whole(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) fail_msg("'%s' is no integer", key);
    return json_integer_value(value);
}

/* The steps that this layer asked for and whose op begins so. */
static int steps_of(const json_t *root, const char *layer, const char *op) {
    size_t i;
    json_t *step;
    int count = 0;
    json_array_foreach(json_object_get(root, "steps"), i, step) {
        const char *name = json_string_value(json_object_get(step, "op"));
        if (strcmp(json_string_value(json_object_get(step, "layer")), layer) != 0) continue;
        count += strncmp(name, op, strlen(op)) == 0;
    }
    return count;
}

static void a_prediction_step_by_step(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    leat_plan_options options = leat_plan_options_default();
    options.batch_size = 5;
    json_t *root = figures(model, options);
    assert_string_equal(json_string_value(json_object_get(root, "mode")), "predict");
    assert_int_equal(whole(root, "batch_size"), 5);
    assert_int_equal(steps_of(root, leat_model_output_name(model, 0), "matmul"), 1);
    assert_int_equal(steps_of(root, leat_model_output_name(model, 0), "softmax"), 1);
    /* Dense(8) on 4 inputs, Dense(3): 2 (5 4 8 + 5 8 3) */
    assert_true(json_number_value(json_object_get(root, "operations")) == 560);
    json_t *first = json_array_get(json_object_get(root, "steps"), 0);
    assert_int_equal(whole(first, "bytes"), 4 * (5 * 4 + 4 * 8 + 8 + 5 * 8));
    assert_int_equal(json_integer_value(
                         json_array_get(json_array_get(json_object_get(first, "inputs"), 0), 0)),
                     5);
    assert_null(json_object_get(root, "us"));
    assert_null(json_object_get(first, "us"));
    json_decref(root);
    leat_model_destroy(&model);
}

static void times_are_of_every_step(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    leat_plan_options options = leat_plan_options_default();
    options.time = options.train = true;
    json_t *root = figures(model, options), *step;
    double sum = 0;
    size_t i;
    json_array_foreach(json_object_get(root, "steps"), i, step) {
        assert_true(json_is_real(json_object_get(step, "us")));
        sum += json_real_value(json_object_get(step, "us"));
    }
    double total = json_real_value(json_object_get(root, "us"));
    assert_true(total > 0);
    assert_true(fabs(sum - total) < 1e-6 * total);
    assert_int_equal(steps_of(root, "optimizer", "update_adam"), 1);
    json_decref(root);
    leat_model_destroy(&model);
}

/* Measuring runs training steps; afterwards the next step has the same result as without measuring. */
static void measuring_leaves_the_model_as_it_was(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *measured = make_classifier(3), *other = make_classifier(3);
    leat_plan_options options = leat_plan_options_default();
    options.time = options.train = true;
    options.threads = 1;
    float x[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {1, 1, 0, 0}};
    float y[4][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){4, 4}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){4, 3}, y)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_model_set_threads(measured, 1);
    leat_model_set_threads(other, 1);
    expect_ok(leat_model_train_on_batch(measured, &arrays, NULL, &err), &err);
    expect_ok(leat_model_train_on_batch(other, &arrays, NULL, &err), &err);
    char *text = summary(measured, &options);
    leat_string_free(text);
    assert_true(weights_hash(measured) == weights_hash(other));
    expect_ok(leat_model_train_on_batch(measured, &arrays, NULL, &err), &err);
    expect_ok(leat_model_train_on_batch(other, &arrays, NULL, &err), &err);
    assert_true(weights_hash(measured) == weights_hash(other));
    leat_model_destroy(&measured);
    leat_model_destroy(&other);
}

/* ---- Gradient checkpointing ---- */

enum { DEEP = 24, ROWS = 64, WIDTH = 32 };

/* DEEP layers with a dropout after each. */
static leat_model *make_deep(void) {
    leat_error err = {0};
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *x = leat_input(builder, (int64_t[]){WIDTH}, 1), *y = x;
    for (int i = 0; i < DEEP; ++i) {
        y = leat_layer(y, "Dense", "{\"units\": 32, \"activation\": \"tanh\"}");
        y = leat_layer(y, "Dropout", "{\"rate\": 0.1}");
    }
    expect_ok(leat_model_create(&model, &builder, &x, 1, &y, 1, &err), &err);
    expect_ok(leat_model_initialize(model, 5, &err), &err);
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "sgd";
    options.loss = "mse";
    expect_ok(leat_model_compile(model, &options, &err), &err);
    leat_model_set_threads(model, 1);
    return model;
}

static void gradient_checkpointing_saves_memory_alone(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *models[2] = {make_deep(), make_deep()};
    static float x[ROWS][WIDTH];
    for (int i = 0; i < ROWS * WIDTH; ++i) x[i / WIDTH][i % WIDTH] = (float)(i % 13 - 6) / 6.0f;
    leat_array array = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){ROWS, WIDTH}, x)};
    leat_arrays arrays = {.inputs = &array, .input_count = 1, .targets = &array, .target_count = 1};
    leat_plan_options options = leat_plan_options_default();
    int64_t bytes[2];
    options.train = true;
    options.batch_size = ROWS;
    for (int i = 0; i < 2; ++i) {
        /* The plan of a first step is not used again. */
        expect_ok(leat_model_train_on_batch(models[i], &arrays, NULL, &err), &err);
        leat_model_set_gradient_checkpointing(models[i], i == 1);
        for (int step = 0; step < 3; ++step)
            expect_ok(leat_model_train_on_batch(models[i], &arrays, NULL, &err), &err);
        json_t *root = figures(models[i], options);
        bytes[i] = whole(root, "arena_bytes");
        json_decref(root);
    }
    assert_true(weights_hash(models[0]) == weights_hash(models[1]));
    if (2 * bytes[1] > bytes[0]) fail_msg("%d bytes instead of %d", (int)bytes[1], (int)bytes[0]);
    leat_model_destroy(&models[0]);
    leat_model_destroy(&models[1]);
}

static void bfloat16_halves_activations(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = make_deep();
    leat_plan_options options = leat_plan_options_default();
    int64_t bytes[2];
    options.train = true;
    options.batch_size = ROWS;
    for (int i = 0; i < 2; ++i) {
        expect_ok(leat_model_set_dtype_policy(model, i ? "mixed_bfloat16" : "float32", &err), &err);
        json_t *root = figures(model, options);
        bytes[i] = whole(root, "arena_bytes");
        json_decref(root);
    }
    if (10 * bytes[1] > 7 * bytes[0]) fail_msg("%d bytes instead of %d", (int)bytes[1], (int)bytes[0]);
    leat_model_destroy(&model);
}

/* So does a prediction of a stateful layer, whose states go on where they were. */
static void measuring_leaves_states_as_they_were(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *models[2] = {0};
    leat_plan_options options = leat_plan_options_default();
    float x[2][3][4] = {{{1, 2, 3, 4}}, {{-1, 0, 1, 2}}}, first[2] = {0};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){2, 3, 4}, x)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1};
    leat_tensor output;
    options.time = true;
    options.threads = 1;
    for (int i = 0; i < 2; ++i) {
        expect_ok(
            leat_model_from_json(
                &models[i],
                "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": "
                "[{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 5, \"stateful\": true, "
                "\"batch_input_shape\": [2, 3, 4]}}]}}",
                &err),
            &err);
        expect_ok(leat_model_predict_on_batch(models[i], &arrays, &output, &err), &err);
        if (i == 1) leat_string_free(summary(models[i], &options));
        expect_ok(leat_model_predict_on_batch(models[i], &arrays, &output, &err), &err);
        first[i] = ((const float *)output.data)[0];
    }
    assert_true(first[0] == first[1]);
    for (int i = 0; i < 2; ++i) leat_model_destroy(&models[i]);
}

static void a_table_for_people(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    char *text = summary(model, NULL);
    const char *words[] = {"a prediction, batch of 32", "implementation", "32x4, 4x8 -> 32x8",
                           "copies into another layout", "arena"};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (!strstr(text, words[i])) fail_msg("'%s' is missing in:\n%s", words[i], text);
    leat_string_free(text);
    leat_model_destroy(&model);
}

static leat_model *from_text(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    expect_ok(leat_model_from_json(&model, json, &err), &err);
    return model;
}

static void unknown_lengths_count_as_told(void **state) {
    (void)state;
    leat_model *model = from_text(
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{\"class_name\": "
        "\"GlobalAveragePooling1D\", \"config\": {\"name\": \"mean\", \"batch_input_shape\": [null, null, "
        "6]}}]}}");
    leat_plan_options options = leat_plan_options_default();
    options.unknown = 11;
    json_t *root = figures(model, options);
    json_t *input =
        json_array_get(json_object_get(json_array_get(json_object_get(root, "steps"), 0), "inputs"), 0);
    assert_int_equal(json_integer_value(json_array_get(input, 0)), 32);
    assert_int_equal(json_integer_value(json_array_get(input, 1)), 11);
    json_decref(root);
    leat_model_destroy(&model);
}

static void what_cannot_be_is_told(void **state) {
    (void)state;
    leat_error err = {0};
    char *text = NULL;
    leat_plan_options options = leat_plan_options_default();
    leat_model *model = from_text(
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{\"class_name\": "
        "\"Activation\", \"config\": {\"name\": \"f\", \"activation\": \"tanh\", \"batch_input_shape\": "
        "[null, 6]}}]}}");
    options.train = true;
    assert_int_equal(leat_model_plan_summary(model, &options, &text, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "compile"));
    options = leat_plan_options_default();
    options.batch_size = 0;
    assert_int_equal(leat_model_plan_summary(model, &options, &text, &err), LEAT_EINVAL);
    assert_null(text);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prediction_step_by_step),
        cmocka_unit_test(times_are_of_every_step),
        cmocka_unit_test(measuring_leaves_the_model_as_it_was),
        cmocka_unit_test(gradient_checkpointing_saves_memory_alone),
        cmocka_unit_test(bfloat16_halves_activations),
        cmocka_unit_test(measuring_leaves_states_as_they_were),
        cmocka_unit_test(a_table_for_people),
        cmocka_unit_test(unknown_lengths_count_as_told),
        cmocka_unit_test(what_cannot_be_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
