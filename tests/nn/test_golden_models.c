/* SPDX-License-Identifier: Apache-2.0 */
/* Losses at the end of models: prediction, loss, metrics, gradients and some steps of training as Keras 2.3.1 has them. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "nn/model_case.h"

/* Cases that need more than GOLDEN_TOLERANCE, and why. */
static const struct {
    const char *name;
    double tolerance;
} looser[] = {
    {"", GOLDEN_TOLERANCE},
};

static double tolerance_of(const char *name) {
    for (size_t i = 0; i < sizeof looser / sizeof looser[0]; ++i) {
        if (strcmp(looser[i].name, name) == 0) return looser[i].tolerance;
    }
    return GOLDEN_TOLERANCE;
}

static void compare_outputs(const model_stage *s, const char *member, int64_t row, double tolerance) {
    float got[CASE_MAX_OUTPUTS];
    int count = model_stage_outputs(s, got);
    leat_tensor all = test_npz_get(s->of->g.npz, member);
    assert_int_equal(all.shape[all.rank - 1], count);
    golden_compare(&s->of->g, member, got, (const float *)all.data + row * count, count, tolerance);
}

static void predict(model_case *c, const char *prefix, double tolerance) {
    model_stage s;
    model_stage_open(&s, c, LEATI_PREDICT);
    model_stage_run(&s);
    model_stage_compare_predictions(&s, prefix, tolerance);
    model_stage_close(&s);
}

static void evaluate(model_case *c, double tolerance) {
    model_stage s;
    model_stage_open(&s, c, LEATI_TEST);
    model_stage_run(&s);
    compare_outputs(&s, "test0", 0, tolerance);
    model_stage_close(&s);
}

static void train(model_case *c, double tolerance) {
    model_stage s;
    int64_t steps = json_integer_value(json_object_get(c->g.meta, "steps"));
    assert_true(steps > 0);
    model_stage_open(&s, c, LEATI_TRAIN);
    for (int64_t step = 0; step < steps; ++step) {
        model_stage_run(&s);
        compare_outputs(&s, "train_outputs", step, tolerance);
        if (step == 0) model_case_compare_gradients(c, tolerance);
    }
    model_case_compare_weights(c, "wt", tolerance);
    model_stage_close(&s);
    predict(c, "yt", tolerance);
}

static void check(const char *name, void *user) {
    if (strncmp(name, "model_", 6) != 0) return; /* test_losses.c */
    for (int i = 0; run_backends[i].name; ++i) {
        model_case c;
        double tolerance = tolerance_of(name);
        model_case_open(&c, "losses", name, &run_backends[i]);
        predict(&c, "y", tolerance);
        evaluate(&c, tolerance);
        train(&c, tolerance);
        model_case_close(&c);
    }
    ++*(int *)user;
}

static void test_models(void **state) {
    (void)state;
    int cases = 0;
    golden_each("losses", check, &cases);
    assert_true(cases >= 80);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
