/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of a model is kept in files of both Kerases and changed by compile; values are clipped before the
 * gradients of an index that occurs several times in an Embedding's batch are added. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "leat/leat.h"

#define STEPS 3

/* An Embedding of one row, which every sample uses twice. */
static const char embedding[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [{\"class_name\": "
    "\"Embedding\", \"config\": "
    "{\"name\": \"e\", \"input_dim\": 1, \"output_dim\": 1, \"batch_input_shape\": [null, 2], "
    "\"embeddings_initializer\": "
    "\"zeros\"}}, {\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}}]}}";

static const char current[] = "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": "
                              "{\"name\": \"s\", \"layers\": [{\"module\": "
                              "\"keras.layers\", \"class_name\": \"InputLayer\", \"config\": "
                              "{\"batch_shape\": [null, 2], \"dtype\": \"float32\", \"name\": "
                              "\"i\"}}, {\"module\": \"keras.layers\", \"class_name\": \"Dense\", "
                              "\"config\": {\"name\": \"d\", \"units\": 2, \"activation\": "
                              "\"tanh\"}}]}}";

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_model *model_of(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_from_json(&model, json, &err), &err);
    must(leat_model_initialize(model, 1, &err), &err);
    return model;
}

static void compile(leat_model *model, const char *optimizer, const char *arithmetic) {
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = optimizer;
    options.loss = "mean_squared_error";
    options.arithmetic = arithmetic;
    must(leat_model_compile(model, &options, &err), &err);
}

/* Trains with inputs (1, 2) and targets (1, 2). */
static void train(leat_model *model, const float x[2], const float t[2], int steps) {
    const int64_t shape[2] = {1, 2};
    leat_error err = {0};
    float x_copy[2] = {x[0], x[1]}, t_copy[2] = {t[0], t[1]};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, shape, x_copy)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, shape, t_copy)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    for (int i = 0; i < steps; ++i) must(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
}

/* The gradients of the two lookups are 10 and 1.  TensorFlow clips each of them before they are added. */
static void values_are_clipped_before_rows_are_added(void **state) {
    (void)state;
    static const struct {
        const char *optimizer, *arithmetic;
        float weight;
    } rows[] = {
        {"SGD(learning_rate=1, clipvalue=4)", "keras2", -5.0f},
        {"SGD(learning_rate=1, clipvalue=4)", "keras3", -5.0f},
        /* the norm is that of the sum, 11, so that the factor is 0.5 */
        {"SGD(learning_rate=1, clipnorm=5.5, clipvalue=2)", "keras2", -2.5f},
        {"SGD(learning_rate=1, clipnorm=5.5)", "keras2", -5.5f},
    };
    static const float x[2] = {0}, t[2] = {-10, -1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_model *model = model_of(embedding);
        compile(model, rows[i].optimizer, rows[i].arithmetic);
        train(model, x, t, 1);
        const leat_tensor weight = leat_model_weight(model, 0);
        assert_float_equal(((const float *)weight.data)[0], rows[i].weight, 1e-5);
        leat_model_destroy(&model);
    }
}

static leat_model *load(const char *path, bool compiles) {
    leat_error err = {0};
    leat_model *model = NULL;
    leat_model_load_options options = leat_model_load_options_default();
    options.compile = compiles;
    must(leat_model_load_using(&model, path, &options, &err), &err);
    return model;
}

static char *training_config(const leat_model *model) {
    leat_error err = {0};
    char *text = NULL;
    must(leat_model_training_config(model, &text, &err), &err);
    return text;
}

static void check_same_weights(const leat_model *a, const leat_model *b) {
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        const leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        assert_memory_equal(x.data, y.data, leat_tensor_bytes(&x));
    }
}

static void check_kept(const char *optimizer, const char *path) {
    static const float x[2] = {0.5f, -1}, t[2] = {0.25f, 0.5f};
    leat_error err = {0};
    leat_model *model = model_of(current);
    compile(model, optimizer, "keras2");
    train(model, x, t, STEPS);
    must(leat_model_save(model, path, true, &err), &err);
    leat_model *opened = load(path, true), *bare = load(path, false);
    char *config = training_config(model), *again = training_config(opened), *stored = training_config(bare);
    assert_null(strstr(config, "keras3"));
    assert_string_equal(config, again);
    assert_non_null(strstr(stored, "\"arithmetic\": \"keras2\""));
    train(model, x, t, STEPS);
    train(opened, x, t, STEPS);
    check_same_weights(model, opened);
    leat_string_free(config);
    leat_string_free(again);
    leat_string_free(stored);
    leat_model_destroy(&bare);
    leat_model_destroy(&opened);
    leat_model_destroy(&model);
    remove(path);
}

/* A model in the form of current Keras that computes as 2.3.1 does so, too, after leat has opened its file: also with
 * options that current Keras does not have or that mean something else there. */
static void the_arithmetic_is_kept_in_files_of_current_keras(void **state) {
    (void)state;
    static const char *const optimizers[] = {"Adam(learning_rate=0.1, decay=0.5)",
                                             "SGD(learning_rate=0.1, momentum=0.5, clipnorm=0.01)",
                                             "Nadam(learning_rate=0.1, schedule_decay=0.5)",
                                             "RMSprop(learning_rate=0.1)", "Adagrad(learning_rate=0.1)"};
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; ++i) {
        check_kept(optimizers[i], "continued.keras");
        check_kept(optimizers[i], "continued.h5");
    }
}

/* compile with `keep` and another arithmetic gives the optimizer of 2.3.1 the form of current Keras. */
static void decay_becomes_a_schedule(void **state) {
    (void)state;
    static const float x[2] = {0}, t[2] = {-10, -1};
    leat_error err = {0};
    for (int opened = 0; opened < 2; ++opened) {
        leat_model *model = model_of(embedding);
        leat_compile_options options = leat_compile_options_default();
        compile(model, "Adam(learning_rate=0.5, decay=0.25, clipnorm=3)", NULL);
        if (opened) {
            must(leat_model_save(model, "continued.h5", true, &err), &err);
            leat_model_destroy(&model);
            model = load("continued.h5", false);
            remove("continued.h5");
        }
        options.optimizer = options.loss = NULL;
        options.arithmetic = "keras3";
        options.keep = true;
        must(leat_model_compile(model, &options, &err), &err);
        char *config = training_config(model);
        assert_non_null(strstr(config, "\"arithmetic\": \"keras3\""));
        assert_non_null(strstr(config, "\"InverseTimeDecay\""));
        assert_non_null(strstr(config, "\"global_clipnorm\": 3"));
        assert_non_null(strstr(config, "\"mean_squared_error\""));
        leat_string_free(config);
        train(model, x, t, 4);
        assert_float_equal(leat_model_learning_rate(model), 0.25, 1e-6); /* 0.5 / (1 + 0.25 * 4) */
        leat_model_destroy(&model);
    }
}

/* The targets of steps that do not count are left out: current Keras divides by the other steps, 2.3.1 by all steps. */
static void masked_losses_are_means_as_in_their_keras(void **state) {
    (void)state;
    static const char steps[] = "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": "
                                "[{\"class_name\": \"Masking\", "
                                "\"config\": {\"name\": \"m\", \"batch_input_shape\": [null, 4, 1]}}, "
                                "{\"class_name\": \"TimeDistributed\", "
                                "\"config\": {\"name\": \"t\", \"layer\": {\"class_name\": \"Dense\", "
                                "\"config\": {\"name\": \"d\", \"units\": 1, "
                                "\"kernel_initializer\": \"ones\"}}}}]}}";
    static const struct {
        const char *loss, *arithmetic;
        double value;
    } rows[] = {{"mean_squared_error", "keras2", 0.25},
                {"mean_squared_error", "keras3", 1.0},
                {"MeanSquaredError(reduction='sum')", "keras3", 1.0}};
    const int64_t shape[3] = {1, 4, 1};
    float x[4] = {2, 0, 0, 0}, t[4] = {1, 1, 1, 1};
    leat_error err = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_model *model = model_of(steps);
        leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 3, shape, x)};
        leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 3, shape, t)};
        const leat_arrays arrays = {.inputs = &input,
                                    .input_count = 1,
                                    .targets = &target,
                                    .target_count = 1};
        leat_compile_options options = leat_compile_options_default();
        leat_logs logs = {0};
        double loss = 0;
        options.loss = rows[i].loss;
        options.arithmetic = rows[i].arithmetic;
        must(leat_model_compile(model, &options, &err), &err);
        must(leat_model_test_on_batch(model, &arrays, &logs, &err), &err);
        assert_true(leat_logs_get(&logs, "loss", &loss));
        assert_float_equal(loss, rows[i].value, 1e-6);
        leat_model_destroy(&model);
    }
}

/* A layer of current Keras that is called with initial states does not see the mask of its input: each step adds 1. */
static void initial_states_hide_the_mask_in_current_keras(void **state) {
    (void)state;
    static const char format[] =
        "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": [{\"class_name\": "
        "\"InputLayer\", \"config\": "
        "{\"name\": \"x\", \"batch_input_shape\": [null, 3, 1]}, \"name\": \"x\", \"inbound_nodes\": []}, "
        "{\"class_name\": "
        "\"InputLayer\", \"config\": {\"name\": \"h\", \"batch_input_shape\": [null, 1]}, \"name\": \"h\", "
        "\"inbound_nodes\": "
        "[]}, {\"class_name\": \"Masking\", \"config\": {\"name\": \"k\"}, \"name\": \"k\", "
        "\"inbound_nodes\": [[[\"x\", 0, 0, "
        "{}]]]}, {\"class_name\": \"SimpleRNN\", \"config\": {\"name\": \"r\", \"units\": 1, \"activation\": "
        "\"linear\", "
        "\"kernel_initializer\": \"ones\", \"recurrent_initializer\": \"ones\", \"bias_initializer\": "
        "\"ones\", "
        "\"as_keras3\": %s}, \"name\": \"r\", \"inbound_nodes\": [[[\"k\", 0, 0, {}], [\"h\", 0, 0, {}]]]}], "
        "\"input_layers\": [[\"x\", 0, 0], [\"h\", 0, 0]], \"output_layers\": [[\"r\", 0, 0]]}}";
    static const char *const as_keras3[] = {"false", "true"};
    static const float results[] = {14, 15};
    const int64_t x_shape[3] = {1, 3, 1}, h_shape[2] = {1, 1};
    float x[3] = {1, 0, 1}, h[1] = {10};
    for (int i = 0; i < 2; ++i) {
        char text[2048];
        leat_error err = {0};
        leat_tensor output;
        leat_array inputs[2] = {{.tensor = leat_tensor_view(LEAT_F32, 3, x_shape, x)},
                                {.tensor = leat_tensor_view(LEAT_F32, 2, h_shape, h)}};
        const leat_arrays arrays = {.inputs = inputs, .input_count = 2};
        snprintf(text, sizeof text, format, as_keras3[i]);
        leat_model *model = model_of(text);
        must(leat_model_predict_on_batch(model, &arrays, &output, &err), &err);
        assert_float_equal(*(const float *)output.data, results[i], 1e-5);
        leat_model_destroy(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_clipped_before_rows_are_added),
        cmocka_unit_test(the_arithmetic_is_kept_in_files_of_current_keras),
        cmocka_unit_test(decay_becomes_a_schedule),
        cmocka_unit_test(masked_losses_are_means_as_in_their_keras),
        cmocka_unit_test(initial_states_hide_the_mask_in_current_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
