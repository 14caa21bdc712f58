/* SPDX-License-Identifier: Apache-2.0 */
/* Stateful models: a sequence in pieces is as good as the whole, in predicting, evaluating and training; states
 * are kept until they are reset; what such a model refuses.  Beside Keras's numbers: golden_layers, golden_loops
 * (stateful). */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "train/support.h"

enum { SAMPLES = 2, STEPS = 6, FEATURES = 3, OUT = 2 };

/* LSTM, then GRU both ways if `both`, then Dense; equal seeds give equal weights. */
static leat_model *make(int64_t batch, bool stateful, bool both) {
    leat_error err = {0};
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    const char *first =
        stateful ? "{\"units\": 4, \"return_sequences\": true, \"stateful\": true, \"name\": \"first\"}"
                 : "{\"units\": 4, \"return_sequences\": true}";
    const char *second =
        stateful ? "{\"units\": 3, \"stateful\": true, \"return_sequences\": true, \"name\": \"second\"}"
                 : "{\"units\": 3, \"return_sequences\": true}";
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *x = leat_batch_input(builder, (int64_t[]){batch, -1, FEATURES}, 3);
    leat_node *y = leat_layer(x, "LSTM", first);
    if (both) y = leat_layer(y, "GRU", second);
    y = leat_layer(y, "Dense", "{\"units\": 2}");
    expect_ok(leat_model_create(&model, &builder, &x, 1, &y, 1, &err), &err);
    expect_ok(leat_model_initialize(model, 5, &err), &err);
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "sgd";
    options.loss = "mse";
    expect_ok(leat_model_compile(model, &options, &err), &err);
    leat_model_set_threads(model, 1);
    return model;
}

static void fill(float *values, int count) {
    for (int i = 0; i < count; ++i) values[i] = (float)((i * 37 % 19) - 9) / 9.0f;
}

static leat_array array_of(float *data, int64_t samples, int64_t steps, int64_t width) {
    return (leat_array){.tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){samples, steps, width}, data)};
}

static void copy_weights(const leat_model *from, const leat_model *to) {
    assert_int_equal(leat_model_weight_count(from), leat_model_weight_count(to));
    for (int i = 0; i < leat_model_weight_count(from); ++i) {
        leat_tensor a = leat_model_weight(from, i), b = leat_model_weight(to, i);
        memcpy(b.data, a.data, leat_tensor_bytes(&a));
    }
}

/* Steps from..from + count of x (SAMPLES, STEPS, FEATURES), predicted into y (SAMPLES, count, OUT). */
static void predict(leat_model *model, const float *x, int from, int count, float *y) {
    float part[SAMPLES * STEPS * FEATURES];
    leat_error err = {0};
    leat_tensor out;
    for (int n = 0; n < SAMPLES; ++n)
        memcpy(part + n * count * FEATURES, x + (n * STEPS + from) * FEATURES,
               (size_t)(count * FEATURES) * sizeof *part);
    leat_array input = array_of(part, SAMPLES, count, FEATURES);
    leat_arrays arrays = {.inputs = &input, .input_count = 1};
    expect_ok(leat_model_predict_on_batch(model, &arrays, &out, &err), &err);
    memcpy(y, out.data, (size_t)(SAMPLES * count * OUT) * sizeof *y);
}

/* y of steps from..from + count beside those of the whole. */
static void compare(const float *whole, const float *part, int from, int count) {
    for (int n = 0; n < SAMPLES; ++n)
        for (int i = 0; i < count * OUT; ++i)
            assert_float_equal(part[n * count * OUT + i], whole[(n * STEPS + from) * OUT + i], 1e-6);
}

static void pieces_are_as_good_as_the_whole(void **state) {
    (void)state;
    float x[SAMPLES * STEPS * FEATURES], whole[SAMPLES * STEPS * OUT], part[SAMPLES * STEPS * OUT];
    leat_model *plain = make(-1, false, true), *model = make(SAMPLES, true, true);
    copy_weights(plain, model);
    fill(x, SAMPLES * STEPS * FEATURES);
    predict(plain, x, 0, STEPS, whole);
    for (int round = 0; round < 2; ++round) {
        predict(model, x, 0, 1, part);
        compare(whole, part, 0, 1);
        predict(model, x, 1, 3, part);
        compare(whole, part, 1, 3);
        predict(model, x, 4, 2, part);
        compare(whole, part, 4, 2);
        leat_model_reset_states(model);
    }
    leat_model_destroy(&plain);
    leat_model_destroy(&model);
}

static void states_can_be_read_and_written(void **state) {
    (void)state;
    leat_error err = {0};
    float x[SAMPLES * STEPS * FEATURES], first[SAMPLES * 2 * OUT], y[SAMPLES * OUT], again[SAMPLES * OUT];
    float kept[SAMPLES * 4], c[SAMPLES * 4];
    leat_model *model = make(SAMPLES, true, false);
    fill(x, SAMPLES * STEPS * FEATURES);
    assert_null(leat_model_state(model, "first", 2).data);
    assert_null(leat_model_state(model, "none", 0).data);
    leat_tensor h = leat_model_state(model, "first", 0);
    assert_int_equal(leat_tensor_count(&h), SAMPLES * 4);
    for (int i = 0; i < SAMPLES * 4; ++i) assert_float_equal(((float *)h.data)[i], 0, 0);
    predict(model, x, 0, 2, first);
    memcpy(kept, leat_model_state(model, "first", 0).data, sizeof kept);
    memcpy(c, leat_model_state(model, "first", 1).data, sizeof c);
    predict(model, x, 2, 1, y);
    leat_compile_options options = leat_compile_options_default();
    options.loss = "mae";
    expect_ok(leat_model_compile(model, &options, &err), &err);
    memcpy(leat_model_state(model, "first", 0).data, kept, sizeof kept);
    memcpy(leat_model_state(model, "first", 1).data, c, sizeof c);
    predict(model, x, 2, 1, again);
    assert_memory_equal(y, again, sizeof y);
    leat_model_destroy(&model);
}

/* compile moves weights and states into new slabs. */
static void compiling_keeps_states(void **state) {
    (void)state;
    leat_error err = {0};
    float x[SAMPLES * STEPS * FEATURES], whole[SAMPLES * STEPS * OUT], part[SAMPLES * STEPS * OUT];
    leat_model *plain = make(-1, false, true), *model = make(SAMPLES, true, true);
    copy_weights(plain, model);
    fill(x, SAMPLES * STEPS * FEATURES);
    predict(plain, x, 0, STEPS, whole);
    predict(model, x, 0, 4, part);
    leat_compile_options options = leat_compile_options_default();
    options.loss = "mae";
    expect_ok(leat_model_set_trainable(model, "first", false, &err), &err);
    expect_ok(leat_model_compile(model, &options, &err), &err);
    predict(model, x, 4, 2, part);
    compare(whole, part, 4, 2);
    leat_model_destroy(&plain);
    leat_model_destroy(&model);
}

/* fit over arrays is train_on_batch on its batches, one after the other; no epoch begins with new states. */
static void fit_carries_states_on(void **state) {
    (void)state;
    leat_error err = {0};
    float x[2 * SAMPLES * STEPS * FEATURES], t[2 * SAMPLES * STEPS * OUT];
    leat_model *by_fit = make(SAMPLES, true, true), *by_hand = make(SAMPLES, true, true);
    fill(x, 2 * SAMPLES * STEPS * FEATURES);
    fill(t, 2 * SAMPLES * STEPS * OUT);
    leat_array input = array_of(x, 2 * SAMPLES, STEPS, FEATURES),
               target = array_of(t, 2 * SAMPLES, STEPS, OUT);
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    leat_fit_options options = quiet_fit(3);
    options.shuffle = LEAT_SHUFFLE_NONE;
    expect_ok(leat_model_fit(by_fit, &arrays, 0, &options, NULL, &err), &err);
    for (int batch = 0; batch < 6; ++batch) {
        int half = batch % 2 * SAMPLES;
        leat_array part = array_of(x + half * STEPS * FEATURES, SAMPLES, STEPS, FEATURES);
        leat_array goal = array_of(t + half * STEPS * OUT, SAMPLES, STEPS, OUT);
        leat_arrays one = {.inputs = &part, .input_count = 1, .targets = &goal, .target_count = 1};
        expect_ok(leat_model_train_on_batch(by_hand, &one, NULL, &err), &err);
    }
    assert_int_equal(weights_hash(by_fit), weights_hash(by_hand));
    leat_tensor a = leat_model_state(by_fit, "second", 0), b = leat_model_state(by_hand, "second", 0);
    assert_memory_equal(a.data, b.data, leat_tensor_bytes(&a));
    leat_model_destroy(&by_fit);
    leat_model_destroy(&by_hand);
}

static void expect_refusal(leat_status status, const leat_error *err, const char *says) {
    if (status != LEAT_EINVAL || !strstr(err->message, says))
        fail_msg("'%s' does not say '%s'", err->message, says);
}

static void other_batches_are_refused(void **state) {
    (void)state;
    leat_error err = {0};
    float x[3 * STEPS * FEATURES], t[3 * STEPS * OUT];
    leat_model *model = make(SAMPLES, true, false);
    leat_fit_options options = quiet_fit(1);
    leat_tensor out;
    leat_predictions *predictions = NULL;
    leat_logs logs;
    fill(x, 3 * STEPS * FEATURES);
    fill(t, 3 * STEPS * OUT);
    leat_array input = array_of(x, 3, STEPS, FEATURES), target = array_of(t, 3, STEPS, OUT);
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    expect_refusal(leat_model_fit(model, &arrays, 0, &options, NULL, &err), &err,
                   "expected a multiple of 2 samples, received 3");
    expect_refusal(leat_model_fit(model, &arrays, 3, &options, NULL, &err), &err, "expected 2");
    expect_refusal(leat_model_evaluate(model, &arrays, 0, NULL, &logs, &err), &err,
                   "expected a multiple of 2 samples, received 3");
    expect_refusal(leat_model_predict(model, &arrays, 1, NULL, &predictions, &err), &err, "received 1");
    assert_int_equal(leat_model_predict_on_batch(model, &arrays, &out, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "expected shape (2, None, 3), received (3, 6, 3)"));
    leat_model_destroy(&model);
}

/* Keras 2.3.1 fails in this case. */
static void states_of_nested_models_are_the_outer_ones(void **state) {
    (void)state;
    leat_error err = {0};
    float x[SAMPLES * STEPS * FEATURES], whole[SAMPLES * STEPS * OUT], part[SAMPLES * STEPS * OUT];
    leat_model *inner = make(SAMPLES, true, true), *model = NULL, *plain = make(-1, false, true);
    leat_builder *builder = NULL;
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_node *in = leat_batch_input(builder, (int64_t[]){SAMPLES, -1, FEATURES}, 3);
    leat_node *y = leat_call_model(&inner, &in, 1);
    expect_ok(leat_model_create(&model, &builder, &in, 1, &y, 1, &err), &err);
    copy_weights(plain, model);
    fill(x, SAMPLES * STEPS * FEATURES);
    predict(plain, x, 0, STEPS, whole);
    predict(model, x, 0, 4, part);
    predict(model, x, 4, 2, part);
    compare(whole, part, 4, 2);
    assert_non_null(leat_model_state(model, "second", 0).data);
    leat_model_destroy(&model);
    leat_model_destroy(&plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_as_good_as_the_whole),
        cmocka_unit_test(states_can_be_read_and_written),
        cmocka_unit_test(compiling_keeps_states),
        cmocka_unit_test(fit_carries_states_on),
        cmocka_unit_test(other_batches_are_refused),
        cmocka_unit_test(states_of_nested_models_are_the_outer_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
