/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of names: they are sorted, without repetitions, and leat accepts each name. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/layers/types.h"
#include "nn/run.h"
#include "nn/small_models.h"

enum { kinds = LEAT_NAMES_CONSTRAINTS + 1 };

static bool listed(leat_name_kind kind, const char *name) {
    for (int i = 0; i < leat_name_count(kind); ++i)
        if (strcmp(leat_name_get(kind, i), name) == 0) return true;
    return false;
}

static void names_are_sorted_and_none_comes_twice(void **state) {
    (void)state;
    for (int kind = 0; kind < kinds; ++kind) {
        int count = leat_name_count((leat_name_kind)kind);
        assert_in_range(count, 5, 500);
        for (int i = 1; i < count; ++i)
            assert_true(strcmp(leat_name_get((leat_name_kind)kind, i - 1),
                               leat_name_get((leat_name_kind)kind, i)) < 0);
        assert_null(leat_name_get((leat_name_kind)kind, -1));
        assert_null(leat_name_get((leat_name_kind)kind, count));
    }
    assert_int_equal(leat_name_count((leat_name_kind)kinds), 0);
    assert_int_equal(leat_name_count((leat_name_kind)-1), 0);
    assert_null(leat_name_get((leat_name_kind)kinds, 0));
}

/* Names from Keras's documentation and from its users' code. */
static void names_of_keras_are_listed(void **state) {
    (void)state;
    static const struct {
        leat_name_kind kind;
        const char *name;
    } rows[] = {
        {LEAT_NAMES_LAYERS, "Conv2D"},
        {LEAT_NAMES_LAYERS, "LSTM"},
        {LEAT_NAMES_LAYERS, "InputLayer"},
        {LEAT_NAMES_LOSSES, "mean_squared_error"},
        {LEAT_NAMES_LOSSES, "MeanSquaredError"},
        {LEAT_NAMES_LOSSES, "mse"},
        {LEAT_NAMES_LOSSES, "MSE"},
        {LEAT_NAMES_LOSSES, "cosine_similarity"},
        {LEAT_NAMES_METRICS, "acc"},
        {LEAT_NAMES_METRICS, "accuracy"},
        {LEAT_NAMES_METRICS, "ce"},
        {LEAT_NAMES_METRICS, "AUC"},
        {LEAT_NAMES_METRICS, "mae"},
        {LEAT_NAMES_METRICS, "KLD"},
        {LEAT_NAMES_METRICS, "LogCoshError"},
        {LEAT_NAMES_METRICS, "CategoricalCrossentropy"},
        {LEAT_NAMES_OPTIMIZERS, "Adam"},
        {LEAT_NAMES_OPTIMIZERS, "SGD"},
        {LEAT_NAMES_ACTIVATIONS, "relu"},
        {LEAT_NAMES_INITIALIZERS, "glorot_uniform"},
        {LEAT_NAMES_INITIALIZERS, "VarianceScaling"},
        {LEAT_NAMES_REGULARIZERS, "l1_l2"},
        {LEAT_NAMES_CONSTRAINTS, "max_norm"},
        {LEAT_NAMES_CONSTRAINTS, "MinMaxNorm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (!listed(rows[i].kind, rows[i].name)) fail_msg("'%s' is not listed", rows[i].name);
    assert_false(listed(LEAT_NAMES_LOSSES, "accuracy"));
    assert_false(listed(LEAT_NAMES_LAYERS, "LSTMCell")); /* only allowed inside another layer */
}

/* Compiles with a name, or builds a model with a layer of that name; returns the status. */
static leat_status use(leat_name_kind kind, const char *name, leat_error *err) {
    static const char *const keys[kinds] = {[LEAT_NAMES_ACTIVATIONS] = "activation",
                                            [LEAT_NAMES_INITIALIZERS] = "kernel_initializer",
                                            [LEAT_NAMES_REGULARIZERS] = "kernel_regularizer",
                                            [LEAT_NAMES_CONSTRAINTS] = "kernel_constraint"};
    char text[256];
    leat_model *model = NULL;
    leat_status status = LEAT_OK;
    if (keys[kind]) {
        snprintf(
            text, sizeof text,
            "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [{\"class_name\": "
            "\"Dense\", \"config\": {\"units\": 4, \"batch_input_shape\": [null, 4], \"%s\": \"%s\"}}]}}",
            keys[kind], name);
        status = leat_model_from_json(&model, text, err);
    } else {
        leat_compile_options options = {.size = sizeof options, .loss = "mse", .optimizer = "sgd"};
        if (kind == LEAT_NAMES_LOSSES) options.loss = name;
        if (kind == LEAT_NAMES_METRICS) options.metrics = name;
        if (kind == LEAT_NAMES_OPTIMIZERS) options.optimizer = name;
        assert_int_equal(leat_model_from_json(&model, SMALL_ONE, err), LEAT_OK);
        status = leat_model_compile(model, &options, err);
    }
    leat_model_destroy(&model);
    return status;
}

/* A name may need arguments that this test does not give, but it is never unknown. */
static void every_name_is_taken(void **state) {
    (void)state;
    for (int kind = LEAT_NAMES_LOSSES; kind < kinds; ++kind)
        for (int i = 0; i < leat_name_count((leat_name_kind)kind); ++i) {
            leat_error err = {0};
            leat_status status = use((leat_name_kind)kind, leat_name_get((leat_name_kind)kind, i), &err);
            if (status != LEAT_OK && strstr(err.message, "unknown")) fail_msg("%s", err.message);
            assert_int_not_equal(status, LEAT_ENOTFOUND);
        }
    for (int i = 0; i < leat_name_count(LEAT_NAMES_LAYERS); ++i)
        assert_non_null(leati_layer_find(leat_name_get(LEAT_NAMES_LAYERS, i)));
    leat_error err = {0};
    assert_int_equal(use(LEAT_NAMES_LOSSES, "no_loss", &err), LEAT_ENOTFOUND);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_sorted_and_none_comes_twice),
        cmocka_unit_test(names_of_keras_are_listed),
        cmocka_unit_test(every_name_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
