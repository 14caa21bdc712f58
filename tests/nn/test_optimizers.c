/* SPDX-License-Identifier: Apache-2.0 */
/* Every optimizer with every option: ten steps, the configuration, and the weights as files hold them agree with
 * Keras 2.3.1; names, keys of other versions, errors. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model_case.h"

/* Adaptive steps divide by roots of squared gradients: if these are near 0, the last bit of a gradient changes the
 * whole step, and ten steps add up. */
#define TRAJECTORY_TOLERANCE 1e-5

/* Current Keras's cases are nearer: with 2.3.1's way to compute 1 - beta_2, Adam's would be 6e-6 to 1e-5 away.  Ftrl
 * divides a difference of nearly equal roots by the learning rate. */
#define CURRENT_TOLERANCE 5e-6

static double current_tolerance(const char *name) {
    return strncmp(name, "ftrl", 4) == 0 ? TRAJECTORY_TOLERANCE : CURRENT_TOLERANCE;
}

static void compare_weights(const model_case *c, double tolerance) {
    const json_t *names = json_object_get(c->g.meta, "optimizer_weights");
    int count = leati_optimizer_weight_count(c->model);
    assert_int_equal(count, json_array_size(names));
    bool plain = strcmp(golden_text(&c->g, "class_name"), "SGD") == 0 &&
                 leati_optimizer_slot_count(c->model->compiled.optimizer) == 0;
    for (int i = 0; i < count; ++i) {
        const leati_optimizer_weight weight = leati_optimizer_weight_at(c->model, i);
        leat_tensor expected;
        float data[64];
        assert_string_equal(weight.name, json_string_value(json_array_get(names, (size_t)i)));
        assert_true(golden_member(&c->g, "ow", i, &expected));
        assert_int_equal(leati_desc_count(&weight.desc), leat_tensor_count(&expected));
        assert_true(leati_desc_bytes(&weight.desc) <= sizeof data);
        assert_int_equal(leati_optimizer_weight_copy(c->model, i, data, NULL), LEAT_OK);
        if (weight.desc.dtype == LEAT_I64) {
            int64_t iterations;
            memcpy(&iterations, data, sizeof iterations);
            assert_int_equal(iterations, *(const int32_t *)expected.data);
        } else if (!plain) { /* without momentum, leat has no slot; Keras's slot holds the last step */
            golden_compare(&c->g, weight.name, data, expected.data, leat_tensor_count(&expected), tolerance);
        }
    }
}

/* Reads the weights back into a second optimizer through leati_optimizer_weight_set. */
static void copy_state(const model_case *c, const char *group) {
    model_case other;
    leat_error err = {0};
    model_case_open(&other, group, golden_text(&c->g, "case"), c->backend);
    for (int i = 0; i < leati_optimizer_weight_count(c->model); ++i) {
        char from[256], to[256];
        const leati_optimizer_weight weight = leati_optimizer_weight_at(c->model, i);
        const leat_tensor value =
            leat_tensor_view(weight.desc.dtype, weight.desc.rank, weight.desc.shape, from);
        assert_int_equal(leati_optimizer_weight_copy(c->model, i, from, NULL), LEAT_OK);
        assert_ok(leati_optimizer_weight_set(other.model, i, &value, &err), &err);
        assert_int_equal(leati_optimizer_weight_copy(other.model, i, to, NULL), LEAT_OK);
        assert_memory_equal(from, to, leati_desc_bytes(&weight.desc));
    }
    float a[LEATI_OPTIMIZER_MAX_SCALARS] = {0}, b[LEATI_OPTIMIZER_MAX_SCALARS] = {0};
    leati_optimizer_scalars(c->model->compiled.optimizer, c->model->iterations, a);
    leati_optimizer_scalars(other.model->compiled.optimizer, other.model->iterations, b);
    assert_memory_equal(a, b, sizeof a);
    model_case_close(&other);
}

static bool same_number(const json_t *a, const json_t *b) {
    double x = json_number_value(a), y = json_number_value(b);
    return fabs(x - y) <= 1e-12 * fabs(y);
}

/* get_config(), key by key. */
static void compare_config(const model_case *c) {
    leat_error err = {0};
    json_t *written = NULL, *expected = golden_json(&c->g, "opt_config");
    assert_ok(leati_optimizer_write(c->model->compiled.optimizer, &written, &err), &err);
    assert_string_equal(json_string_value(json_object_get(written, "class_name")),
                        golden_text(&c->g, "class_name"));
    json_t *config = json_object_get(written, "config");
    assert_int_equal(json_object_size(config), json_object_size(expected));
    const char *key;
    json_t *value;
    json_object_foreach(expected, key, value) {
        const json_t *got = json_object_get(config, key);
        bool same =
            json_is_number(value) ? json_is_number(got) && same_number(got, value) : json_equal(got, value);
        if (!same) fail_msg("%s: another '%s'", c->g.name, key);
    }
    json_decref(written);
    json_decref(expected);
}

static void run_steps(model_case *c, double tolerance) {
    model_stage s;
    const float *losses = test_npz_get(c->g.npz, "train_loss").data;
    bool alternates = leati_optimizer_batches(c->model->compiled.optimizer) > 1; /* between two programs */
    model_stage_open(&s, c, LEATI_TRAIN);
    for (int step = 0; step < 10; ++step) {
        float outputs[CASE_MAX_OUTPUTS];
        char prefix[16];
        if (alternates && step > 0) {
            model_stage_close(&s);
            model_stage_open(&s, c, LEATI_TRAIN);
        }
        model_stage_run(&s);
        model_stage_outputs(&s, outputs);
        golden_compare(&c->g, "train_loss", outputs, losses + step, 1, tolerance);
        snprintf(prefix, sizeof prefix, "s%d_w", step + 1);
        model_case_compare_weights(c, prefix, tolerance);
    }
    model_stage_close(&s);
}

static void check(const char *name, void *user) {
    for (int i = 0; run_backends[i].name; ++i) {
        model_case c;
        model_case_open(&c, "optimizers", name, &run_backends[i]);
        compare_config(&c);
        run_steps(&c, TRAJECTORY_TOLERANCE);
        compare_weights(&c, TRAJECTORY_TOLERANCE);
        copy_state(&c, "optimizers");
        model_case_close(&c);
    }
    ++*(int *)user;
}

static void test_trajectories(void **state) {
    (void)state;
    int cases = 0;
    golden_each("optimizers", check, &cases);
    assert_true(cases >= 60);
}

/* Reads the written configuration, which must give the same optimizer. */
static void read_again(const model_case *c) {
    leat_error err = {0};
    json_t *written = NULL, *again = NULL;
    leati_optimizer *optimizer = c->model->compiled.optimizer, *other = NULL;
    assert_ok(leati_optimizer_write(optimizer, &written, &err), &err);
    assert_ok(leati_optimizer_create(&other, written, optimizer->as_keras3, &err), &err);
    assert_ok(leati_optimizer_write(other, &again, &err), &err);
    assert_true(json_equal(written, again));
    assert_true(other->type == optimizer->type);
    assert_true(other->clips_each == optimizer->clips_each || !(optimizer->config.clipnorm > 0));
    leati_optimizer_destroy(&other);
    json_decref(written);
    json_decref(again);
}

static void check_current(const char *name, void *user) {
    for (int i = 0; run_backends[i].name; ++i) {
        model_case c;
        model_case_open(&c, "keras-3/optimizers", name, &run_backends[i]);
        read_again(&c);
        run_steps(&c, current_tolerance(name));
        compare_weights(&c, current_tolerance(name));
        copy_state(&c, "keras-3/optimizers");
        model_case_close(&c);
    }
    ++*(int *)user;
}

/* Tests every optimizer and option in current Keras's arithmetic. */
static void test_current_keras(void **state) {
    (void)state;
    int cases = 0;
    golden_each("keras-3/optimizers", check_current, &cases);
    assert_true(cases >= 115);
}

static leat_status read_text(leati_optimizer **out, const char *text, leat_error *err) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    leat_status status = leati_optimizer_create(out, value, false, err);
    json_decref(value);
    return status;
}

static void test_foreign_keys(void **state) {
    (void)state;
    leat_error err = {0};
    leati_optimizer *optimizer = NULL;
    assert_ok(
        read_text(
            &optimizer,
            "{\"class_name\": \"adam\", \"config\": {\"name\": \"adam\", \"lr\": 0.5, \"weight_decay\":"
            " null, \"clipnorm\": null, \"global_clipnorm\": null, \"use_ema\": false, \"ema_momentum\":"
            " 0.99, \"epsilon\": null, \"jit_compile\": true}}",
            &err),
        &err);
    assert_string_equal(optimizer->type->class_name, "Adam");
    assert_true(optimizer->config.learning_rate == 0.5);
    assert_true(optimizer->config.epsilon == 1e-7);
    leati_optimizer_destroy(&optimizer);
    leati_optimizer_destroy(&optimizer);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        leat_status status;
        const char *says;
    } rows[] = {
        {"\"adm\"", LEAT_ENOTFOUND, "unknown optimizer 'adm'; did you mean 'Adam'?"},
        {"\"adan\"", LEAT_ENOTFOUND, "unknown optimizer 'adan'; did you mean 'Adam'?"},
        {"{\"class_name\": \"Adam\", \"config\": {\"gradient_accumulation_steps\": 1}}", LEAT_EINVAL,
         "gradient_accumulation_steps: expected null or an integer of at least 2"},
        {"{\"class_name\": \"Muon\", \"config\": {\"exclude_layers\": [\"out.*\"]}}", LEAT_ENOTSUP,
         "received the regular expression 'out.*'"},
        {"{\"class_name\": \"Muon\", \"config\": {\"exclude_layers\": 3}}", LEAT_EINVAL, "a list of words"},
        {"{\"class_name\": \"ScheduleFreeAdamW\", \"config\": {\"warmup_steps\": -1}}", LEAT_EINVAL,
         "warmup_steps"},
        {"{\"class_name\": \"AdamW\", \"config\": {\"weight_decay\": null}}", LEAT_EINVAL, "weight_decay"},
        {"{\"class_name\": \"Lion\", \"config\": {\"clipnorm\": 1, \"clipvalue\": 1}}", LEAT_EINVAL,
         "expected at most one of"},
        {"{\"class_name\": \"SGD\", \"config\": {\"use_ema\": true, \"ema_momentum\": 2}}", LEAT_EINVAL,
         "from 0 to 1, received 2"},
        {"{\"class_name\": \"SGD\", \"config\": {\"ema_overwrite_frequency\": 0}}", LEAT_EINVAL,
         "at least 1"},
        {"{\"class_name\": \"Ftrl\", \"config\": {\"learning_rate_power\": 0.5}}", LEAT_EINVAL,
         "at most 0, received 0.5"},
        {"{\"class_name\": \"Ftrl\", \"config\": {\"initial_accumulator_value\": -1}}", LEAT_EINVAL,
         "at least 0"},
        {"{\"class_name\": \"Adafactor\", \"config\": {\"clip_threshold\": 0}}", LEAT_EINVAL,
         "clip_threshold"},
        {"{\"class_name\": \"RMSprop\", \"config\": {\"momentum\": 0.9}}", LEAT_ENOTSUP, "momentum"},
        {"{\"class_name\": \"Nadam\", \"config\": {\"decay\": 0.1}}", LEAT_ENOTSUP, "decay"},
        {"{\"class_name\": \"Adam\", \"config\": {\"beta_3\": 0.1}}", LEAT_ENOTSUP, "beta_3"},
        {"{\"class_name\": \"SGD\", \"config\": {\"clipnorm\": -1}}", LEAT_EINVAL, "clipnorm"},
        {"{\"class_name\": \"SGD\", \"config\": {\"clipnorm\": 1, \"global_clipnorm\": 2}}", LEAT_EINVAL,
         "expected at most one of"},
        {"{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": \"x\"}}", LEAT_EINVAL, "learning_rate"},
        {"{\"class_name\": \"Adam\", \"config\": {\"loss_scale_factor\": 0}}", LEAT_EINVAL,
         "loss_scale_factor: expected null or a number above 0"},
        {"\"LossScaleOptimizer\"", LEAT_EINVAL, "the key 'inner_optimizer' is missing"},
        {"{\"class_name\": \"LossScaleOptimizer\", \"config\": {\"inner_optimizer\": \"adan\"}}",
         LEAT_ENOTFOUND, "unknown optimizer 'adan'"},
        {"{\"class_name\": \"LossScaleOptimizer\", \"config\": {\"inner_optimizer\": \"sgd\", "
         "\"initial_scale\": 0}}",
         LEAT_EINVAL, "initial_scale: expected a number above 0"},
        {"{\"class_name\": \"LossScaleOptimizer\", \"config\": {\"inner_optimizer\": \"sgd\", "
         "\"dynamic_growth_steps\": 0}}",
         LEAT_EINVAL, "dynamic_growth_steps: expected an integer of at least 1"},
        {"{\"class_name\": \"LossScaleOptimizer\", \"config\": {\"inner_optimizer\": \"sgd\", "
         "\"scale\": 2}}",
         LEAT_EINVAL, "unknown key 'scale'"},
        {"[1]", LEAT_EINVAL, "expected a name"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_error err = {0};
        leati_optimizer *optimizer = NULL;
        assert_int_equal(read_text(&optimizer, rows[i].text, &err), rows[i].status);
        if (!strstr(err.message, rows[i].says)) fail_msg("'%s' does not say '%s'", err.message, rows[i].says);
        assert_null(optimizer);
    }
}

/* Nadam's schedule depends only on the step, not on the steps that were asked for before. */
static void test_schedule(void **state) {
    (void)state;
    leat_error err = {0};
    leati_optimizer *optimizer = NULL;
    float third[LEATI_OPTIMIZER_MAX_SCALARS] = {0}, again[LEATI_OPTIMIZER_MAX_SCALARS] = {0};
    assert_ok(read_text(&optimizer, "\"nadam\"", &err), &err);
    for (int64_t step = 0; step <= 3; ++step) {
        leati_optimizer_scalars(optimizer, step, third);
    }
    leati_optimizer_scalars(optimizer, 3, again);
    assert_memory_equal(third, again, sizeof third);
    leati_optimizer_scalars(optimizer, 9, again);
    assert_memory_not_equal(third, again, sizeof third);
    /* A step from a damaged file must not take one iteration per step. */
    leati_optimizer_scalars(optimizer, INT64_MAX, again);
    assert_true(again[6] == 0.0f);
    leati_optimizer_scalars(optimizer, 3, again);
    assert_memory_equal(third, again, sizeof third);
    leati_optimizer_destroy(&optimizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trajectories), cmocka_unit_test(test_current_keras),
        cmocka_unit_test(test_foreign_keys), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
