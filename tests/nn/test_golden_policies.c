/* SPDX-License-Identifier: Apache-2.0 */
/* The policy mixed_bfloat16: models agree with current Keras under this policy, and every case of a layer is close
 * to its float32 numbers.  Keras rounds the weights and the result of each op to bfloat16.  leat rounds weights
 * only for products in bfloat16, and rounds neither values inside fused ops nor the gradients of weights; so the
 * results may differ by two roundings to eight binary digits. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "leat/model.h"
#include "nn/model_case.h"

#define NEAR_KERAS   0.02 /* relative to the largest number of a tensor: 5 units in the last of 8 digits */
#define NEAR_FLOAT32 0.05

static void train(model_case *c, double tolerance) {
    model_stage s;
    int64_t steps = json_integer_value(json_object_get(c->g.meta, "steps"));
    assert_true(steps > 0);
    model_stage_open(&s, c, LEATI_TRAIN);
    for (int64_t step = 0; step < steps; ++step) {
        model_stage_run(&s);
        model_stage_compare_outputs(&s, "train_outputs", step, tolerance);
    }
    model_case_compare_weights(c, "wt", tolerance);
    model_stage_close(&s);
    model_case_compare_prediction(c, "yt", tolerance);
}

static void check_model(const char *name, void *user) {
    double worst = 0;
    for (int i = 0; run_backends[i].name; ++i) {
        model_case c;
        model_case_open(&c, "keras-3/policies", name, &run_backends[i]);
        c.g.worst = &worst;
        model_case_compare_prediction(&c, "y", NEAR_KERAS);
        train(&c, NEAR_KERAS);
        model_case_close(&c);
    }
    print_message("%s: at most %.1e from Keras's\n", name, worst);
    ++*(int *)user;
}

static void test_models_are_keras_s(void **state) {
    int cases = 0;
    (void)state;
    golden_each("keras-3/policies", check_model, &cases);
    assert_int_equal(cases, 4);
}

/* Functions that jump: the rounding of an input to bfloat16 may put it on the other side, or make an infinite number of
 * the largest one. */
static const char *const jumping[] = {
    "operation_divisions", "operation_rounded",        "operation_casts",
    "operation_logic",     "operation_indices",        "operation_comparisons",
    "operation_one_hot",   "operation_where",          "operation_running_infinities",
    "operation_types",     "operation_infinite_tests", "operation_slices_of_nan",
    "operation_saturated"};

static bool jumps(const char *name) {
    for (size_t i = 0; i < sizeof jumping / sizeof jumping[0]; ++i)
        if (strncmp(name, jumping[i], strlen(jumping[i])) == 0) return true;
    return false;
}

/* Compares predictions on all backends; also runs one training step, whose numbers are tested by test_ops. */
static void check_layer(const char *name, void *user) {
    const run_backend *best = run_backends;
    leat_error err = {0};
    model_case c;
    while (best[1].name) ++best;
    model_case_open(&c, user, name, best);
    assert_ok(leat_model_set_dtype_policy(c.model, "mixed_bfloat16", &err), &err);
    if (!jumps(name)) model_case_compare_prediction(&c, "y", NEAR_FLOAT32);
    if (test_npz_has(c.g.npz, "loss0")) {
        model_stage s;
        float got[CASE_MAX_OUTPUTS];
        model_stage_open(&s, &c, LEATI_TRAIN);
        model_stage_run(&s);
        model_stage_outputs(&s, got);
        assert_true(isfinite(got[0]));
        model_stage_close(&s);
    }
    model_case_close(&c);
}

static void test_every_layer_computes_in_bfloat16(void **state) {
    static char layers[] = "layers", later[] = "keras-3/layers";
    (void)state;
    golden_each(layers, check_layer, layers);
    golden_each(later, check_layer, later);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models_are_keras_s),
        cmocka_unit_test(test_every_layer_computes_in_bfloat16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
