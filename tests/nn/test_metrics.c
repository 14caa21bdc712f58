/* SPDX-License-Identifier: Apache-2.0 */
/* Every metric over three batches of unequal size, plain and weighted, against Keras 2.3.1; names and errors. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/build.h"
#include "nn/metric.h"
#include "nn/run.h"
#include "support/golden.h"

typedef struct pair {
    leati_metric plain, weighted;
} pair;

static void read_metrics(const golden *g, int64_t last_dimension, pair *out) {
    leat_error err = {0};
    leati_output_loss loss = {0};
    assert_ok(leati_loss_read(&loss, json_object_get(g->meta, "loss"), &err), &err);
    const json_t *value = json_array_get(json_object_get(g->meta, "metrics"), 0);
    assert_ok(leati_metric_read(&out->plain, value, last_dimension, &loss, &err), &err);
    out->weighted = out->plain;
}

static void run_batch(const golden *g, const run_backend *backend, int batch, pair *metrics) {
    run r;
    leat_tensor t, p, w;
    assert_true(golden_member(g, "y_true_", batch, &t));
    assert_true(golden_member(g, "y_pred_", batch, &p));
    assert_true(golden_member(g, "sw_", batch, &w));
    if (batch == 0) read_metrics(g, p.shape[p.rank - 1], metrics);
    run_begin(&r, backend);
    leati_value y_true = run_input(&r, &t), y_pred = run_input(&r, &p), weight = run_input(&r, &w);
    leati_value values = metrics->plain.lower(r.graph, &metrics->plain.options, y_true, y_pred);
    leati_value weights = leati_weights_like(r.graph, weight, values);
    leati_graph_keep(r.graph, values);
    leati_graph_keep(r.graph, weights);
    run_compute(&r);
    leat_tensor got = leati_plan_output(r.plan, values), factors = leati_plan_output(r.plan, weights);
    leati_metric_accumulate(&metrics->plain, &got, NULL);
    leati_metric_accumulate(&metrics->weighted, &got, &factors);
    run_end(&r);
}

static void check(const char *name, void *user) {
    golden g;
    golden_open(&g, "metrics", name);
    leat_tensor plain = test_npz_get(g.npz, "result"), weighted = test_npz_get(g.npz, "result_weighted");
    for (int i = 0; run_backends[i].name; ++i) {
        pair metrics = {0};
        for (int batch = 0; batch < 3; ++batch) {
            run_batch(&g, &run_backends[i], batch, &metrics);
            float result[2] = {(float)leati_metric_result(&metrics.plain),
                               (float)leati_metric_result(&metrics.weighted)};
            golden_compare(&g, "result", &result[0], (const float *)plain.data + batch, 1, GOLDEN_TOLERANCE);
            golden_compare(&g, "result_weighted", &result[1], (const float *)weighted.data + batch, 1,
                           GOLDEN_TOLERANCE);
        }
        leati_metric_reset(&metrics.plain);
        assert_true(isnan(leati_metric_result(&metrics.plain)));
    }
    golden_close(&g);
    ++*(int *)user;
}

static void test_values(void **state) {
    (void)state;
    int cases = 0;
    golden_each("metrics", check, &cases);
    assert_true(cases >= 70);
}

static leat_status read_text(leati_metric *metric, const char *text, int64_t last, const char *loss_name,
                             leat_error *err) {
    leati_output_loss loss = {.type = loss_name ? leati_loss_type_find(loss_name) : NULL};
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    leat_status status = leati_metric_read(metric, value, last, &loss, err);
    json_decref(value);
    return status;
}

/* Names as Keras logs them, and the function that each stands for. */
static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t last;
        const char *loss, *name, *function;
    } rows[] = {
        {"\"acc\"", 1, "mse", "acc", "binary_accuracy"},
        {"\"accuracy\"", 3, "binary_crossentropy", "accuracy", "binary_accuracy"},
        {"\"accuracy\"", 3, "mse", "accuracy", "categorical_accuracy"},
        {"\"accuracy\"", 3, NULL, "accuracy", "categorical_accuracy"},
        {"\"accuracy\"", 3, "SparseCategoricalCrossentropy", "accuracy", "sparse_categorical_accuracy"},
        {"\"ce\"", 3, "sparse_categorical_crossentropy", "ce", "sparse_categorical_crossentropy"},
        {"\"crossentropy\"", 1, "mse", "crossentropy", "binary_crossentropy"},
        {"\"MSE\"", 3, "mse", "MSE", "mean_squared_error"},
        {"{\"class_name\": \"Accuracy\"}", 1, "mse", "accuracy", "Accuracy"},
        {"{\"class_name\": \"MeanAbsoluteError\", \"config\": {\"name\": \"x\", \"dtype\": \"float32\"}}", 3,
         "mse", "x", "mean_absolute_error"},
        {"{\"class_name\": \"LogCoshError\", \"config\": {}}", 3, "mse", "logcosh", "logcosh"},
        {"{\"class_name\": \"MeanMetricWrapper\", \"config\": {\"name\": \"accuracy\", \"dtype\": "
         "\"float32\","
         " \"fn\": \"sparse_categorical_accuracy\"}}",
         3, "mse", "accuracy", "sparse_categorical_accuracy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_error err = {0};
        leati_metric metric;
        leati_metric_type type;
        assert_ok(read_text(&metric, rows[i].text, rows[i].last, rows[i].loss, &err), &err);
        assert_string_equal(metric.name, rows[i].name);
        assert_true(leati_metric_type_find(rows[i].function, &type));
        assert_true(metric.lower == type.lower);
    }
}

static void test_root(void **state) {
    (void)state;
    leat_error err = {0};
    leati_metric metric;
    float numbers[] = {1.0f, 4.0f, 4.0f, 7.0f}, weights[] = {1.0f, 1.0f, 0.0f, 2.0f};
    const int64_t shape[] = {4};
    const leat_tensor values = leat_tensor_view(LEAT_F32, 1, shape, numbers);
    const leat_tensor factors = leat_tensor_view(LEAT_F32, 1, shape, weights);
    assert_ok(read_text(&metric, "\"RootMeanSquaredError\"", 3, "mse", &err), &err);
    leati_metric_accumulate(&metric, &values, NULL);
    assert_float_equal(leati_metric_result(&metric), 2.0, 1e-12);
    leati_metric_reset(&metric);
    leati_metric_accumulate(&metric, &values, &factors);
    assert_float_equal(leati_metric_result(&metric), sqrt(19.0 / 4.0), 1e-12);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        leat_status status;
        const char *says;
    } rows[] = {
        {"\"acuracy\"", LEAT_ENOTFOUND, "did you mean 'accuracy'?"},
        {"\"zzzzzz\"", LEAT_ENOTFOUND, "unknown metric 'zzzzzz'"},
        {"1", LEAT_EINVAL, "expected a name"},
        {"{\"class_name\": \"TopKCategoricalAccuracy\", \"config\": {\"k\": 0}}", LEAT_EINVAL, "k"},
        {"{\"class_name\": \"BinaryAccuracy\", \"config\": {\"margin\": 1}}", LEAT_ENOTSUP, "margin"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_error err = {0};
        leati_metric metric;
        assert_int_equal(read_text(&metric, rows[i].text, 3, "mse", &err), rows[i].status);
        assert_non_null(strstr(err.message, rows[i].says));
    }
    leat_error err = {0};
    char text[400];
    memset(text, 'a', sizeof text);
    memcpy(text, "{\"class_name\":\"Accuracy\",\"config\":{\"name\":\"", 43);
    memcpy(text + sizeof text - 4, "\"}}", 4);
    leati_metric metric;
    assert_int_equal(read_text(&metric, text, 3, "mse", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "shorter than"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
