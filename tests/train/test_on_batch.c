/* SPDX-License-Identifier: Apache-2.0 */
/* train_on_batch and test_on_batch with class_weight and reset_metrics, against Keras 2.3.1; class_weight for several
 * outputs in a fit. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/golden.h"
#include "train/support.h"

enum { most_classes = 8, most_outputs = 2 };

static leat_error err;

#define expect_refusal(call, status, said)                                                                   \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        assert_int_equal(call, status);                                                                      \
        if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);                 \
    } while (0)

/* ---- Keras's results ---- */

/* The weights of classes of a golden case. */
typedef struct class_weights {
    leat_class_weight items[most_outputs][most_classes];
    leat_output_class_weight outputs[most_outputs];
    int count;
} class_weights;

static class_weights read_class_weights(const golden *g) {
    class_weights all = {.count = 0};
    const char *name, *number;
    json_t *of, *weight;
    json_object_foreach(json_object_get(g->meta, "class_weight"), name, of) {
        leat_class_weight *items = all.items[all.count];
        int count = 0;
        json_object_foreach(of, number, weight) {
            assert_true(count < most_classes);
            items[count++] = (leat_class_weight){atoll(number), json_number_value(weight)};
        }
        assert_true(all.count < most_outputs);
        all.outputs[all.count++] = (leat_output_class_weight){.output = name, .count = count};
    }
    return all;
}

static char *dump(const json_t *value) {
    return json_dumps(value, JSON_ENCODE_ANY);
}

static leat_model *open_model(const golden *g) {
    leat_model *model = NULL;
    leat_compile_options options = leat_compile_options_default();
    json_t *config = golden_json(g, "config");
    char *text = dump(config), *loss = dump(json_object_get(g->meta, "loss")),
         *metrics = dump(json_object_get(g->meta, "metrics"));
    expect_ok(leat_model_from_json(&model, text, &err), &err);
    options.optimizer = "sgd";
    options.loss = loss;
    options.metrics = metrics;
    options.weighted_metrics = "accuracy";
    expect_ok(leat_model_compile(model, &options, &err), &err);
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        leat_tensor value, weight = leat_model_weight(model, i);
        assert_true(golden_member(g, "w", i, &value));
        memcpy(weight.data, value.data, leat_tensor_bytes(&weight));
    }
    free(text);
    free(loss);
    free(metrics);
    json_decref(config);
    return model;
}

/* Fills the arrays with the members "<prefix><call>_<i>"; returns their number. */
static int read_arrays(const golden *g, const char *prefix, int call, leat_array *out) {
    char name[32];
    int count = 0;
    snprintf(name, sizeof name, "%s%d_", prefix, call);
    while (count < most_outputs && golden_member(g, name, count, &out[count].tensor)) ++count;
    return count;
}

static leat_status call(leat_model *model, const golden *g, int k, class_weights *classes, leat_logs *logs) {
    leat_array x = {0}, targets[most_outputs] = {0}, weights[most_outputs] = {0};
    leat_on_batch_options options = leat_on_batch_options_default();
    const bool train =
        strcmp(json_string_value(json_array_get(json_object_get(g->meta, "calls"), (size_t)k)), "train") == 0;
    assert_true(golden_member(g, "x", k, &x.tensor));
    leat_arrays data = {.inputs = &x, .input_count = 1, .targets = targets, .sample_weights = weights};
    data.target_count = read_arrays(g, "t", k, targets);
    data.sample_weight_count = read_arrays(g, "sw", k, weights);
    options.reset_metrics =
        json_is_true(json_array_get(json_object_get(g->meta, "reset_metrics"), (size_t)k));
    for (int i = 0; i < classes->count; ++i) classes->outputs[i].weights = classes->items[i];
    if (train && leat_model_output_count(model) == 1 && classes->count == 1) {
        options.class_weight = classes->items[0];
        options.class_weight_count = classes->outputs[0].count;
    } else if (train) {
        options.output_class_weights = classes->outputs;
        options.output_class_weight_count = classes->count;
    }
    return train ? leat_model_train_on_batch_using(model, &data, &options, logs, &err)
                 : leat_model_test_on_batch_using(model, &data, &options, logs, &err);
}

static void check_call(const golden *g, int k, const leat_logs *logs, const leat_tensor *results) {
    const json_t *names = json_object_get(g->meta, "metrics_names");
    const int count = (int)results->shape[1];
    char what[96];
    assert_int_equal(logs->count, count);
    for (int i = 0; i < count; ++i) {
        const char *name = json_string_value(json_array_get(names, (size_t)i));
        const float value = (float)logs->items[i].value;
        snprintf(what, sizeof what, "call %d: %s", k, name);
        if (strcmp(logs->items[i].name, name) != 0)
            fail_msg("%s: %s: expected %s, received %s", g->name, what, name, logs->items[i].name);
        golden_compare(g, what, &value, (const float *)results->data + k * count + i, 1, GOLDEN_TOLERANCE);
    }
}

static void check_case(const char *name, void *user) {
    golden g;
    (void)user;
    golden_open(&g, "on_batch", name);
    leat_model *model = open_model(&g);
    class_weights classes = read_class_weights(&g);
    const leat_tensor results = test_npz_get(g.npz, "results");
    for (int k = 0; k < (int)results.shape[0]; ++k) {
        leat_logs logs;
        if (call(model, &g, k, &classes, &logs) != LEAT_OK) fail_msg("%s: %s", name, err.message);
        check_call(&g, k, &logs, &results);
    }
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        leat_tensor expected, weight = leat_model_weight(model, i);
        assert_true(golden_member(&g, "wt", i, &expected));
        golden_compare(&g, leat_model_weight_name(model, i), weight.data, expected.data,
                       leat_tensor_count(&weight), GOLDEN_TOLERANCE);
    }
    leat_model_destroy(&model);
    golden_close(&g);
}

static void results_are_those_of_keras(void **state) {
    (void)state;
    assert_int_equal(golden_each("on_batch", check_case, NULL), 7);
}

/* ---- What is refused, and when metrics begin anew ---- */

/* A batch of the model of make_classifier: class i % 3 for sample i. */
typedef struct batch {
    float x[6 * 4], y[6 * 3];
    leat_array inputs, targets;
    leat_arrays arrays;
} batch;

static void make_batch(batch *b) {
    memset(b, 0, sizeof *b);
    for (int i = 0; i < 24; ++i) b->x[i] = (float)(i % 5) - 2.0f;
    for (int i = 0; i < 6; ++i) b->y[i * 3 + i % 3] = 1;
    b->inputs.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){6, 4}, b->x);
    b->targets.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){6, 3}, b->y);
    b->arrays =
        (leat_arrays){.inputs = &b->inputs, .input_count = 1, .targets = &b->targets, .target_count = 1};
}

static void wrong_class_weights_are_refused(void **state) {
    (void)state;
    batch b;
    leat_model *model = make_classifier(1);
    const leat_class_weight two[] = {{0, 1}, {1, 2}}, far[] = {{3, 1}};
    leat_output_class_weight outputs[] = {{.output = "outs", .weights = two, .count = 2},
                                          {.output = "out", .weights = two, .count = 2}};
    leat_on_batch_options options = leat_on_batch_options_default();
    make_batch(&b);
    options.class_weight = two, options.class_weight_count = 2;
    expect_refusal(leat_model_train_on_batch_using(model, &b.arrays, &options, NULL, &err), LEAT_EINVAL,
                   "class 2 is missing, which sample 2 of the batch has");
    expect_refusal(leat_model_test_on_batch_using(model, &b.arrays, &options, NULL, &err), LEAT_EINVAL,
                   "class weights are for training only");
    options.output_class_weights = outputs, options.output_class_weight_count = 1;
    expect_refusal(leat_model_train_on_batch_using(model, &b.arrays, &options, NULL, &err), LEAT_EINVAL,
                   "received both");
    options.class_weight_count = 0;
    expect_refusal(leat_model_train_on_batch_using(model, &b.arrays, &options, NULL, &err), LEAT_EINVAL,
                   "no output 'outs' with a loss; did you mean 'out'?");
    outputs[0] = outputs[1];
    options.output_class_weight_count = 2;
    expect_refusal(leat_model_train_on_batch_using(model, &b.arrays, &options, NULL, &err), LEAT_EINVAL,
                   "lists output 'out' twice");
    outputs[0].weights = far, outputs[0].count = 1;
    expect_refusal(leat_model_train_on_batch_using(model, &b.arrays, &options, NULL, &err), LEAT_EINVAL,
                   "class_weight lists class 3, output 'out' has 0 to 2");
    outputs[0].output = NULL;
    expect_refusal(leat_model_train_on_batch_using(model, &b.arrays, &options, NULL, &err), LEAT_EINVAL,
                   "received NULL");
    leat_model_destroy(&model);
}

/* Current Keras gives classes that are not listed the weight 1. */
static void current_keras_needs_no_complete_list(void **state) {
    (void)state;
    batch b;
    const leat_class_weight two[] = {{0, 3}, {1, 2}}, all[] = {{0, 3}, {1, 2}, {2, 1}};
    leat_logs some, complete;
    for (int i = 0; i < 2; ++i) {
        leat_model *model = make_classifier(1);
        leat_compile_options compile = leat_compile_options_default();
        leat_on_batch_options options = leat_on_batch_options_default();
        compile.optimizer = "sgd";
        compile.loss = "categorical_crossentropy";
        compile.arithmetic = "keras3";
        expect_ok(leat_model_compile(model, &compile, &err), &err);
        make_batch(&b);
        options.class_weight = i ? all : two, options.class_weight_count = i ? 3 : 2;
        expect_ok(leat_model_train_on_batch_using(model, &b.arrays, &options, i ? &complete : &some, &err),
                  &err);
        leat_model_destroy(&model);
    }
    assert_true(some.items[0].value == complete.items[0].value);
}

static double accuracy_after(leat_model *model, const batch *b, bool reset) {
    leat_on_batch_options options = leat_on_batch_options_default();
    leat_logs logs;
    double value = -1;
    options.reset_metrics = reset;
    expect_ok(leat_model_test_on_batch_using(model, &b->arrays, &options, &logs, &err), &err);
    assert_true(leat_logs_get(&logs, "accuracy", &value));
    return value;
}

/* Two batches, of which the model knows the first one: their accuracies are 1 and 0. */
static void metrics_begin_anew(void **state) {
    (void)state;
    batch right, wrong;
    leat_tensor predicted;
    leat_model *model = make_classifier(1);
    make_batch(&right);
    expect_ok(leat_model_predict_on_batch(model, &right.arrays, &predicted, &err), &err);
    memset(right.y, 0, sizeof right.y);
    wrong = right;
    for (int i = 0; i < 6; ++i) {
        const float *row = (const float *)predicted.data + 3 * i;
        const int best = row[0] > row[1] ? (row[0] > row[2] ? 0 : 2) : (row[1] > row[2] ? 1 : 2);
        right.y[i * 3 + best] = 1;
        wrong.y[i * 3 + (best + 1) % 3] = 1;
    }
    wrong.inputs.tensor.data = wrong.x, wrong.targets.tensor.data = wrong.y;
    wrong.arrays.inputs = &wrong.inputs, wrong.arrays.targets = &wrong.targets;
    assert_true(accuracy_after(model, &right, false) == 1);
    assert_true(accuracy_after(model, &wrong, false) == 0.5);
    assert_true(accuracy_after(model, &wrong, true) == 1.0 / 3);
    assert_true(accuracy_after(model, &wrong, false) == 0);
    leat_model_reset_metrics(model);
    assert_true(accuracy_after(model, &right, false) == 1);
    leat_logs logs;
    expect_ok(leat_model_evaluate(model, &right.arrays, 0, NULL, &logs, &err), &err);
    assert_true(accuracy_after(model, &wrong, false) == 0);
    leat_compile_options compile = leat_compile_options_default();
    compile.loss = "categorical_crossentropy", compile.metrics = "accuracy";
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    assert_true(accuracy_after(model, &right, false) == 1);
    leat_model_reset_metrics(NULL);
    leat_model_destroy(&model);
}

/* A fit with output_class_weights for its only output is a fit with class_weight. */
static void a_fit_takes_weights_by_output(void **state) {
    (void)state;
    const leat_class_weight all[] = {{0, 3}, {1, 0.5}, {2, 1}};
    const leat_output_class_weight output = {.output = "out", .weights = all, .count = 3};
    uint64_t hashes[3];
    for (int i = 0; i < 3; ++i) {
        clusters data = clusters_of(60, 8);
        leat_sequence sequence = clusters_sequence(&data);
        leat_fit_options options = quiet_fit(2);
        leat_model *model = make_classifier(1);
        if (i == 1) options.class_weight = all, options.class_weight_count = 3;
        if (i == 2) options.output_class_weights = &output, options.output_class_weight_count = 1;
        expect_ok(leat_model_fit_generator(model, &sequence, &options, NULL, &err), &err);
        hashes[i] = weights_hash(model);
        leat_model_destroy(&model);
    }
    assert_true(hashes[1] == hashes[2]);
    assert_true(hashes[0] != hashes[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_keras),
        cmocka_unit_test(wrong_class_weights_are_refused),
        cmocka_unit_test(current_keras_needs_no_complete_list),
        cmocka_unit_test(metrics_begin_anew),
        cmocka_unit_test(a_fit_takes_weights_by_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
