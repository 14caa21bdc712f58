/* SPDX-License-Identifier: Apache-2.0 */
/* leat_model_set_tuning: other kernels at most, the same results but for rounding; without it the same bytes as
 * ever. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "leat/predictor.h"
#include "leat/rng.h"
#include "train/support.h"

enum { BATCH = 16, SIDE = 16, CHANNELS = 8, PIXELS = SIDE * SIDE * CHANNELS, CLASSES = 4, STEPS = 3 };

static const char architecture[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"a\", \"filters\": 32, \"kernel_size\": [3, 3],"
    " \"padding\": \"same\", \"activation\": \"relu\", \"batch_input_shape\": [null, 16, 16, 8]}},"
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"b\", \"filters\": 32, \"kernel_size\": [1, 1]}},"
    "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"c\"}},"
    "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"d\"}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"e\", \"units\": 64, \"activation\": \"tanh\"}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"f\", \"units\": 4}}]}}";

static float pixels[BATCH * PIXELS], targets[BATCH * CLASSES];

typedef struct results {
    float batch[BATCH * CLASSES], one[CLASSES];
    bool measured;
    double share; /* the last reported share */
    int begun, ended;
} results;

static void watch(void *user, double share) {
    results *r = user;
    assert_true(share == 0 || (share >= r->share && share <= 1));
    r->begun += share == 0;
    r->ended += share == 1;
    r->share = share;
}

/* Runs some steps, then predicts the batch and one sample. */
static void compute(leat_tuning tuning, bool deterministic, results *out) {
    leat_model *model = NULL;
    leat_error err = {0};
    char *plan = NULL;
    *out = (results){0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "SGD(learning_rate=0.01)";
    options.loss = "mse";
    expect_ok(leat_model_from_json(&model, architecture, &err), &err);
    expect_ok(leat_model_initialize(model, 7, &err), &err);
    expect_ok(leat_model_compile(model, &options, &err), &err);
    leat_model_set_threads(model, 2);
    leat_model_set_deterministic(model, deterministic);
    leat_model_set_tuning(model, tuning);
    leat_model_set_measuring_progress(model, watch, out);
    leat_array input = {.tensor =
                            leat_tensor_view(LEAT_F32, 4, (int64_t[]){BATCH, SIDE, SIDE, CHANNELS}, pixels)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){BATCH, CLASSES}, targets)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    for (int i = 0; i < STEPS; ++i) expect_ok(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
    leat_tensor output;
    expect_ok(leat_model_predict_on_batch(model, &arrays, &output, &err), &err);
    memcpy(out->batch, output.data, sizeof out->batch);
    leat_predictor *predictor = NULL;
    expect_ok(leat_predictor_create(&predictor, model, NULL, &err), &err);
    expect_ok(leat_predictor_run(predictor, (const void *[]){pixels}, (void *[]){out->one}, &err), &err);
    leat_predictor_destroy(&predictor);
    leat_plan_options of_plan = leat_plan_options_default();
    of_plan.batch_size = BATCH;
    of_plan.threads = 2;
    expect_ok(leat_model_plan_summary(model, &of_plan, &plan, &err), &err);
    out->measured = strstr(plan, "chosen by measuring") != NULL;
    leat_string_free(plan);
    leat_model_destroy(&model);
}

static int fill(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(1, 2, 3);
    for (int i = 0; i < BATCH * PIXELS; ++i) pixels[i] = (float)leat_rng_uniform(&rng) - 0.5f;
    for (int i = 0; i < BATCH * CLASSES; ++i) targets[i] = (float)leat_rng_uniform(&rng);
    return setenv("LEAT_CACHE_DIR", "", 1);
}

static void results_are_the_same_but_for_rounding(void **state) {
    (void)state;
    results rules, tuned;
    compute(LEAT_TUNE_OFF, false, &rules);
    compute(LEAT_TUNE_MEASURE, false, &tuned);
    assert_false(rules.measured);
    assert_int_equal(rules.begun, 0);
    assert_int_equal(tuned.begun, 4); /* for a step, a batch, the predictor, the summary */
    assert_int_equal(tuned.ended, 4);
#ifdef LEAT_WITH_ONEDNN
    assert_true(tuned.measured); /* otherwise nobody else serves it */
#endif
    for (int i = 0; i < BATCH * CLASSES; ++i) assert_float_equal(rules.batch[i], tuned.batch[i], 1e-4f);
    for (int i = 0; i < CLASSES; ++i) assert_float_equal(rules.one[i], tuned.one[i], 1e-4f);
}

static void what_is_not_known_is_as_without(void **state) {
    (void)state;
    results rules, known;
    compute(LEAT_TUNE_OFF, false, &rules);
    compute(LEAT_TUNE_KNOWN, false, &known);
    assert_false(known.measured);
    assert_memory_equal(rules.batch, known.batch, sizeof rules.batch);
    assert_memory_equal(rules.one, known.one, sizeof rules.one);
}

static void deterministic_models_are_not_tuned(void **state) {
    (void)state;
    results rules, tuned;
    compute(LEAT_TUNE_OFF, true, &rules);
    compute(LEAT_TUNE_MEASURE, true, &tuned);
    assert_false(tuned.measured);
    assert_int_equal(tuned.begun, 0);
    assert_memory_equal(rules.batch, tuned.batch, sizeof rules.batch);
    assert_memory_equal(rules.one, tuned.one, sizeof rules.one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(results_are_the_same_but_for_rounding, fill),
        cmocka_unit_test_setup(what_is_not_known_is_as_without, fill),
        cmocka_unit_test_setup(deterministic_models_are_not_tuned, fill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
