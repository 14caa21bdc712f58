/* SPDX-License-Identifier: Apache-2.0 */
/* Every metric over three batches of different sizes, with and without weights, agrees with Keras 2.3.1; names and
 * errors. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/build.h"
#include "nn/losses/types.h"
#include "nn/metrics/types.h"
#include "nn/run.h"
#include "support/golden.h"

/* A metric with two states, one without weights and one with weights. */
typedef struct pair {
    leati_metric metric;
    double *plain, *weighted;
} pair;

static void pair_open(const golden *g, int64_t last_dimension, pair *out) {
    leat_error err = {0};
    leati_output_loss loss = {0};
    assert_ok(leati_loss_read(&loss, json_object_get(g->meta, "loss"), &err), &err);
    const json_t *value = json_array_get(json_object_get(g->meta, "metrics"), 0);
    assert_ok(leati_metric_read(&out->metric, value, last_dimension, &loss, &err), &err);
    out->metric.options.as_keras3 = strncmp(g->name, "keras-3/", 8) == 0;
    out->plain = calloc((size_t)out->metric.state_count, sizeof(double));
    out->weighted = calloc((size_t)out->metric.state_count, sizeof(double));
    assert_true(out->plain && out->weighted);
}

static void pair_close(pair *metrics) {
    leati_metric_fini(&metrics->metric);
    free(metrics->plain);
    free(metrics->weighted);
}

static void add(const leati_metric *metric, double *state, const leat_tensor *values,
                const leat_tensor *targets, const leat_tensor *weights) {
    leat_error err = {0};
    const leati_metric_batch batch = {values, targets, weights};
    assert_ok(leati_metric_add(metric, state, &batch, &err), &err);
}

static void run_batch(const golden *g, const run_backend *backend, int batch, pair *metrics) {
    run r;
    leat_tensor t, p, w;
    assert_true(golden_member(g, "y_true_", batch, &t));
    assert_true(golden_member(g, "y_pred_", batch, &p));
    assert_true(golden_member(g, "sw_", batch, &w));
    if (batch == 0) pair_open(g, p.shape[p.rank - 1], metrics);
    run_begin(&r, backend);
    const leati_metric *metric = &metrics->metric;
    leati_value y_true = run_input(&r, &t), y_pred = run_input(&r, &p), weight = run_input(&r, &w);
    leati_value values = metric->lower ? metric->lower(r.graph, &metric->options, y_true, y_pred) : y_pred;
    leati_value weights = leati_weights_like(r.graph, weight, values);
    leati_graph_keep(r.graph, values);
    leati_graph_keep(r.graph, weights);
    run_compute(&r);
    leat_tensor got = leati_plan_output(r.plan, values), factors = leati_plan_output(r.plan, weights);
    const leat_tensor *targets = metric->lower ? NULL : &t;
    add(metric, metrics->plain, &got, targets, NULL);
    add(metric, metrics->weighted, &got, targets, &factors);
    run_end(&r);
}

/* Compares the results after a batch with a row of the golden array. */
static void compare(const golden *g, const char *member, const pair *metrics, const double *state,
                    int batch) {
    double results[8];
    float got[8];
    leat_tensor expected = test_npz_get(g->npz, member);
    int count = metrics->metric.result_count;
    assert_true(count <= 8);
    leati_metric_results(&metrics->metric, state, results);
    for (int i = 0; i < count; ++i) got[i] = (float)results[i];
    assert_int_equal(leat_tensor_count(&expected), 3 * count);
    golden_compare(g, member, got, (const float *)expected.data + batch * count, count, GOLDEN_TOLERANCE);
}

static void check_in(const char *group, const char *name, void *user) {
    golden g;
    golden_open(&g, group, name);
    bool with_class = strcmp(group, "metrics") == 0 &&
                      strstr(name, "_class") != NULL; /* not supported with weights by Keras 2.3.1 */
    for (int i = 0; run_backends[i].name; ++i) {
        pair metrics = {0};
        for (int batch = 0; batch < 3; ++batch) {
            run_batch(&g, &run_backends[i], batch, &metrics);
            compare(&g, "result", &metrics, metrics.plain, batch);
            if (!with_class) compare(&g, "result_weighted", &metrics, metrics.weighted, batch);
        }
        pair_close(&metrics);
    }
    golden_close(&g);
    ++*(int *)user;
}

static void check(const char *name, void *user) {
    check_in("metrics", name, user);
}

static void check_current(const char *name, void *user) {
    check_in("keras-3/metrics", name, user);
}

/* Tests the metrics that only current Keras has, or that have another result there. */
static void test_current_keras(void **state) {
    (void)state;
    int cases = 0;
    golden_each("keras-3/metrics", check_current, &cases);
    assert_int_equal(cases, 39);
}

static void test_values(void **state) {
    (void)state;
    int cases = 0;
    golden_each("metrics", check, &cases);
    assert_true(cases >= 145);
}

static leat_status read_text_as(leati_metric *metric, bool as_keras3, const char *text, int64_t last,
                                const char *loss_name, leat_error *err) {
    leati_output_loss loss = {.type = loss_name ? leati_loss_find(loss_name) : NULL,
                              .options = {.as_keras3 = as_keras3}};
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    leat_status status = leati_metric_read(metric, value, last, &loss, err);
    json_decref(value);
    return status;
}

static leat_status read_text(leati_metric *metric, const char *text, int64_t last, const char *loss_name,
                             leat_error *err) {
    return read_text_as(metric, false, text, last, loss_name, err);
}

/* In current Keras, "accuracy" depends on the shapes of the output and the targets, not on the loss, and its upper
 * case forms mean the same. */
static void test_accuracy_of_current_keras(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t last;
        const char *loss, *name, *function;
    } rows[] = {
        {"\"acc\"", 1, "mse", "acc", "binary_accuracy"},
        {"\"accuracy\"", 1, "sparse_categorical_crossentropy", "accuracy", "binary_accuracy"},
        {"\"accuracy\"", 3, "binary_crossentropy", "accuracy", "categorical_accuracy"},
        {"\"accuracy\"", 3, "mse", "accuracy", "categorical_accuracy"},
        {"\"Accuracy\"", 3, "mse", "Accuracy", "categorical_accuracy"},
        {"\"ACC\"", 1, "mse", "ACC", "binary_accuracy"},
        {"\"accuracy\"", 3, "sparse_categorical_crossentropy", "accuracy", "sparse_categorical_accuracy"},
        {"\"accuracy\"", 3, "categorical_generalized_cross_entropy", "accuracy",
         "sparse_categorical_accuracy"},
        {"{\"class_name\": \"Accuracy\"}", 1, "mse", "accuracy", "Accuracy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_error err = {0};
        leati_metric metric;
        assert_ok(read_text_as(&metric, true, rows[i].text, rows[i].last, rows[i].loss, &err), &err);
        assert_string_equal(metric.name, rows[i].name);
        const leati_metric_type *type = leati_metric_find(rows[i].function);
        assert_non_null(type);
        assert_true(metric.lower == type->measure->lower);
        leati_metric_fini(&metric);
    }
}

/* The names in Keras's logs, and the function that each name stands for. */
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
        assert_ok(read_text(&metric, rows[i].text, rows[i].last, rows[i].loss, &err), &err);
        assert_string_equal(metric.name, rows[i].name);
        const leati_metric_type *type = leati_metric_find(rows[i].function);
        assert_non_null(type);
        assert_true(metric.lower == type->measure->lower);
        leati_metric_fini(&metric);
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
    assert_string_equal(metric.name, "root_mean_squared_error");
    double plain[2] = {0}, weighted[2] = {0}, result;
    leati_metric_results(&metric, plain, &result);
    assert_true(isnan(result));
    add(&metric, plain, &values, NULL, NULL);
    leati_metric_results(&metric, plain, &result);
    assert_float_equal(result, 2.0, 1e-12);
    add(&metric, weighted, &values, NULL, &factors);
    leati_metric_results(&metric, weighted, &result);
    assert_float_equal(result, sqrt(19.0 / 4.0), 1e-12);
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
        {"{\"class_name\": \"Precision\", \"config\": {\"thresholds\": 1.5}}", LEAT_EINVAL,
         "from 0 to 1, received 1.5"},
        {"{\"class_name\": \"Recall\", \"config\": {\"class_id\": 3}}", LEAT_EINVAL,
         "a class from 0 to 2, received 3"},
        {"{\"class_name\": \"Recall\", \"config\": {\"top_k\": 4}}", LEAT_EINVAL, "from 1 to 3, received 4"},
        {"{\"class_name\": \"AUC\", \"config\": {\"num_thresholds\": 1}}", LEAT_EINVAL, "num_thresholds"},
        {"{\"class_name\": \"AUC\", \"config\": {\"num_thresholds\": 100000}}", LEAT_EINVAL, "at most 65536"},
        {"{\"class_name\": \"AUC\", \"config\": {\"curve\": \"XY\"}}", LEAT_EINVAL, "\"ROC\" or \"PR\""},
        {"{\"class_name\": \"AUC\", \"config\": {\"num_labels\": 3}}", LEAT_EINVAL, "num_labels"},
        {"{\"class_name\": \"AUC\", \"config\": {\"multi_label\": true, \"num_labels\": 9}}", LEAT_EINVAL,
         "num_labels"},
        {"{\"class_name\": \"AUC\", \"config\": {\"label_weights\": [1.0]}}", LEAT_EINVAL, "label_weights"},
        {"\"SensitivityAtSpecificity\"", LEAT_EINVAL, "specificity"},
        {"{\"class_name\": \"SpecificityAtSensitivity\", \"config\": {\"sensitivity\": 2}}", LEAT_EINVAL,
         "from 0 to 1"},
        {"\"MeanIoU\"", LEAT_EINVAL, "num_classes"},
        {"{\"class_name\": \"MeanIoU\", \"config\": {\"num_classes\": 9999}}", LEAT_EINVAL, "at most 4096"},
        {"{\"class_name\": \"IoU\", \"config\": {\"num_classes\": 2, \"target_class_ids\": [2]}}",
         LEAT_EINVAL, "target_class_ids: expected class numbers from 0 to 1"},
        {"{\"class_name\": \"BinaryIoU\", \"config\": {\"target_class_ids\": 1}}", LEAT_EINVAL,
         "expected a list"},
        {"{\"class_name\": \"FBetaScore\", \"config\": {\"beta\": 0}}", LEAT_EINVAL,
         "beta: expected a number"},
        {"{\"class_name\": \"F1Score\", \"config\": {\"threshold\": 2}}", LEAT_EINVAL, "up to 1, received 2"},
        {"{\"class_name\": \"F1Score\", \"config\": {\"average\": \"all\"}}", LEAT_EINVAL, "average"},
        {"{\"class_name\": \"R2Score\", \"config\": {\"num_regressors\": -1}}", LEAT_EINVAL,
         "num_regressors"},
        {"{\"class_name\": \"PrecisionAtRecall\", \"config\": {\"recall\": 2}}", LEAT_EINVAL,
         "recall: expected a number from 0 to 1"},
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

/* Keras 2.3.1's JSON of a class survives a round trip; a configuration without options gets all of them. */
static void check_config(const char *name, void *user) {
    golden g;
    leat_error err = {0};
    json_t *written = NULL;
    golden_open(&g, "metrics", name);
    const json_t *value = json_array_get(json_object_get(g.meta, "metrics"), 0);
    if (json_is_object(value) && strncmp(name, "class_", 6) != 0 && strncmp(name, "mean_", 5) != 0 &&
        !strstr(name, "top_k_ties")) {
        assert_ok(leati_metric_write(value, &written, &err), &err);
        if (!json_equal(written, value)) fail_msg("%s: %s", name, json_dumps(written, JSON_SORT_KEYS));
        json_decref(written);
        ++*(int *)user;
    }
    golden_close(&g);
}

static void test_config(void **state) {
    (void)state;
    int cases = 0;
    golden_each("metrics", check_config, &cases);
    assert_true(cases >= 50);
    leat_error err = {0};
    json_t *name = json_string("Precision"), *written = NULL;
    assert_ok(leati_metric_write(name, &written, &err), &err);
    char *text = json_dumps(written, JSON_COMPACT);
    assert_string_equal(text, "{\"class_name\":\"Precision\",\"config\":{\"name\":\"precision\",\"dtype\":"
                              "\"float32\",\"thresholds\":null,\"top_k\":null,\"class_id\":null}}");
    free(text);
    json_decref(name);
    json_decref(written);
}

/* The same samples in one batch and in batches of one give results that are equal bit for bit. */
static void test_batches(void **state) {
    (void)state;
    static const char *const metrics[] = {"\"AUC\"", "\"Precision\"", "\"MSE\""};
    float p[64], t[64], w[64];
    for (int i = 0; i < 64; ++i) {
        p[i] = (float)(i * 37 % 64) / 63.0f;
        t[i] = (float)(i * 11 % 7 < 3);
        w[i] = 0.1f + (float)(i % 5) / 3.0f;
    }
    const int64_t all[] = {64, 1}, one[] = {1, 1};
    for (size_t m = 0; m < sizeof metrics / sizeof metrics[0]; ++m) {
        leat_error err = {0};
        leati_metric metric;
        double together[512] = {0}, apart[512] = {0}, results[2];
        assert_ok(read_text(&metric, metrics[m], 1, "mse", &err), &err);
        assert_true(metric.state_count <= 512);
        leat_tensor tensors[] = {leat_tensor_view(LEAT_F32, 2, all, p), leat_tensor_view(LEAT_F32, 2, all, t),
                                 leat_tensor_view(LEAT_F32, 2, all, w)};
        add(&metric, together, &tensors[0], &tensors[1], &tensors[2]);
        for (int i = 0; i < 64; ++i) {
            leat_tensor single[] = {leat_tensor_view(LEAT_F32, 2, one, p + i),
                                    leat_tensor_view(LEAT_F32, 2, one, t + i),
                                    leat_tensor_view(LEAT_F32, 2, one, w + i)};
            add(&metric, apart, &single[0], &single[1], &single[2]);
        }
        leati_metric_results(&metric, together, &results[0]);
        leati_metric_results(&metric, apart, &results[1]);
        assert_memory_equal(&results[0], &results[1], sizeof results[0]);
        assert_true(results[0] > 0.0);
        leati_metric_fini(&metric);
    }
}

/* A class number that is none ends a run of 2.3.1's arithmetic. */
static void test_classes_out_of_range(void **state) {
    (void)state;
    leat_error err = {0};
    leati_metric metric;
    double counts[9] = {0};
    run r;
    float p[] = {0.0f, 2.0f}, t[] = {1.0f, 3.0f};
    const int64_t shape[] = {2, 1};
    const leat_tensor predictions = leat_tensor_view(LEAT_F32, 2, shape, p);
    const leat_tensor targets = leat_tensor_view(LEAT_F32, 2, shape, t);
    assert_ok(read_text(&metric, "{\"class_name\": \"MeanIoU\", \"config\": {\"num_classes\": 3}}", 1, "mse",
                        &err),
              &err);
    run_begin(&r, &run_backends[0]);
    leati_value y_true = run_input(&r, &targets), y_pred = run_input(&r, &predictions);
    leati_value pairs = metric.lower(r.graph, &metric.options, y_true, y_pred);
    leati_graph_keep(r.graph, pairs);
    run_compute(&r);
    const leat_tensor values = leati_plan_output(r.plan, pairs);
    const leati_metric_batch batch = {&values, NULL, NULL};
    assert_int_equal(leati_metric_add(&metric, counts, &batch, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "metric 'mean_io_u': expected class numbers from 0 to 2"));
    assert_true(counts[3] == 1.0);
    run_end(&r);
    leati_metric_fini(&metric);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_current_keras),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_root),
        cmocka_unit_test(test_accuracy_of_current_keras),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_classes_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
