/* SPDX-License-Identifier: Apache-2.0 */
/* Every loss as a function, its gradient and its options agree with Keras 2.3.1, on ref alone and on oneDNN with
 * ref. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/graph/build.h"
#include "nn/losses/types.h"
#include "nn/run.h"
#include "support/golden.h"

typedef struct computed {
    leati_value values, mean, gradient;
} computed;

/* Adds the loss of two bound arrays, its mean, and the gradient of the mean with respect to the second array. */
static void build(run *r, const golden *g, computed *out) {
    leat_error err = {0};
    leati_output_loss loss = {.weight = 1.0};
    leat_tensor t = test_npz_get(g->npz, "y_true"), p = test_npz_get(g->npz, "y_pred");
    assert_ok(leati_loss_read(&loss, json_object_get(g->meta, "loss"), &err), &err);
    leati_value y_true = run_input(r, &t), y_pred = run_input(r, &p);
    out->values = loss.type->measure.lower(r->graph, &loss.options, y_true, y_pred);
    out->mean = leati_reduce_all(r->graph, LEATI_REDUCE_MEAN, out->values);
    assert_ok(leati_graph_differentiate(r->graph, out->mean, 1, &y_pred, &out->gradient, &err), &err);
    leati_graph_keep(r->graph, out->values);
    leati_graph_keep(r->graph, out->mean);
    leati_graph_keep(r->graph, out->gradient);
}

static void compare(const run *r, const golden *g, const char *member, leati_value value, double tolerance) {
    leat_tensor expected = test_npz_get(g->npz, member), got = leati_plan_output(r->plan, value);
    assert_int_equal(leat_tensor_count(&got), leat_tensor_count(&expected));
    golden_compare(g, member, got.data, expected.data, leat_tensor_count(&got), tolerance);
}

/* At p = 1 - 1.2e-7, TensorFlow's graph optimizer replaces 1 - p + 1e-7 by (1 + 1e-7) - p if there is no gradient;
 * the result is 9 % larger.  leat computes like Keras's training step (test_golden_losses.c). */
static double tolerance_of(const char *name) {
    return strcmp(name, "binary_crossentropy_edges") == 0 ? 2e-3 : GOLDEN_TOLERANCE;
}

static void check(const char *name, void *user) {
    golden g;
    if (strncmp(name, "model_", 6) == 0) return; /* test_golden_losses.c */
    golden_open(&g, "losses", name);
    for (int i = 0; run_backends[i].name; ++i) {
        run r;
        computed c;
        run_begin(&r, &run_backends[i]);
        build(&r, &g, &c);
        run_compute(&r);
        compare(&r, &g, "values", c.values, tolerance_of(name));
        compare(&r, &g, "loss", c.mean, tolerance_of(name));
        compare(&r, &g, "grad", c.gradient, GOLDEN_TOLERANCE);
        run_end(&r);
    }
    golden_close(&g);
    ++*(int *)user;
}

static void test_functions(void **state) {
    (void)state;
    int cases = 0;
    golden_each("losses", check, &cases);
    assert_true(cases >= 60);
}

/* Aliases find the same descriptor as the function's name. */
static void check_aliases(const char *name, void *user) {
    golden g;
    (void)user;
    if (strncmp(name, "model_", 6) == 0) return;
    golden_open(&g, "losses", name);
    const leati_loss_type *type = leati_loss_find(golden_text(&g, "function"));
    assert_non_null(type);
    if (*golden_text(&g, "class_name"))
        assert_ptr_equal(leati_loss_find(golden_text(&g, "class_name")), type);
    json_t *aliases = json_object_get(g.meta, "aliases");
    for (size_t i = 0; i < json_array_size(aliases); ++i) {
        assert_ptr_equal(leati_loss_find(json_string_value(json_array_get(aliases, i))), type);
    }
    golden_close(&g);
}

static void test_aliases(void **state) {
    (void)state;
    golden_each("losses", check_aliases, NULL);
}

static leat_status read_text(leati_output_loss *loss, const char *text, leat_error *err) {
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    leat_status status = leati_loss_read(loss, value, err);
    json_decref(value);
    return status;
}

static void test_options(void **state) {
    (void)state;
    leat_error err = {0};
    leati_output_loss loss = {0};
    assert_ok(read_text(&loss,
                        "{\"class_name\": \"Huber\", \"config\": {\"delta\": 2.5, \"reduction\": \"sum\"}}",
                        &err),
              &err);
    assert_string_equal(loss.type->measure.name, "huber_loss");
    assert_float_equal(loss.options.delta, 2.5, 0.0);
    assert_int_equal(loss.reduction, LEATI_REDUCTION_SUM);
    assert_ok(read_text(&loss, "\"huber_loss\"", &err), &err);
    assert_float_equal(loss.options.delta, 1.0, 0.0);
    assert_int_equal(loss.reduction, LEATI_REDUCTION_SUM_OVER_BATCH_SIZE);
    assert_ok(read_text(&loss, "null", &err), &err);
    assert_null(loss.type);
    assert_ok(
        read_text(
            &loss,
            "{\"module\": \"builtins\", \"class_name\": \"function\", \"config\": \"mean_squared_error\","
            " \"registered_name\": \"function\"}",
            &err),
        &err);
    assert_string_equal(loss.type->measure.name, "mean_squared_error");
}

/* The written losses are readable by Keras 2.3.1 and by current Keras; some functions must be written as objects. */
static void test_written(void **state) {
    (void)state;
    static const struct {
        const char *given, *written;
    } rows[] = {
        {"\"mse\"", "\"mean_squared_error\""},
        {"\"cosine_proximity\"", "\"cosine_proximity\""},
        {"\"logcosh\"", "{\"class_name\": \"LogCosh\", \"config\": {\"reduction\": \"sum_over_batch_size\", "
                        "\"name\": \"logcosh\"}}"},
        {"\"huber_loss\"", "{\"class_name\": \"Huber\", \"config\": {\"reduction\": \"sum_over_batch_size\", "
                           "\"name\": \"huber_loss\", \"delta\": 1.0}}"},
        {"\"kld\"", "{\"class_name\": \"KLDivergence\", \"config\": {\"reduction\": \"sum_over_batch_size\", "
                    "\"name\": \"kullback_leibler_divergence\"}}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        leat_error err = {0};
        json_t *given = json_loads(rows[i].given, JSON_DECODE_ANY, NULL);
        json_t *expected = json_loads(rows[i].written, JSON_DECODE_ANY, NULL), *written = NULL;
        assert_non_null(expected);
        assert_ok(leati_loss_write(given, &written, &err), &err);
        assert_true(json_equal(written, expected));
        json_decref(written);
        json_decref(expected);
        json_decref(given);
    }
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        leat_status status;
        const char *says;
    } rows[] = {
        {"\"categorical_crossentropi\"", LEAT_ENOTFOUND, "did you mean 'categorical_crossentropy'?"},
        {"\"msa\"", LEAT_ENOTFOUND, "unknown loss 'msa'"},
        {"3", LEAT_EINVAL, "expected a name"},
        {"{\"config\": {}}", LEAT_EINVAL, "class_name"},
        {"{\"class_name\": \"Huber\", \"config\": {\"delta\": \"x\"}}", LEAT_EINVAL, "delta"},
        {"{\"class_name\": \"Huber\", \"config\": {\"gamma\": 1}}", LEAT_ENOTSUP, "gamma"},
        {"{\"class_name\": \"Hinge\", \"config\": {\"reduction\": \"average\"}}", LEAT_EINVAL, "reduction"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_error err = {0};
        leati_output_loss loss = {0};
        assert_int_equal(read_text(&loss, rows[i].text, &err), rows[i].status);
        assert_non_null(strstr(err.message, rows[i].says));
        assert_null(loss.type);
    }
}

static void test_class_numbers(void **state) {
    (void)state;
    leat_error err = {0};
    leati_output_loss loss = {0};
    int32_t whole[] = {0, 2, 1, 0};
    float fractional[] = {0, 2, 1, 3};
    const int64_t shape[] = {2, 2, 1};
    const leat_tensor good = leat_tensor_view(LEAT_I32, 3, shape, whole);
    const leat_tensor bad = leat_tensor_view(LEAT_F32, 3, shape, fractional);
    assert_ok(read_text(&loss, "\"sparse_categorical_crossentropy\"", &err), &err);
    assert_ok(leati_loss_check_targets(&loss, &good, 3, &err), &err);
    assert_int_equal(leati_loss_check_targets(&loss, &bad, 3, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "from 0 to 2, received 3 in sample 1 of the batch"));
    whole[3] = -1;
    assert_int_equal(leati_loss_check_targets(&loss, &good, 3, &err), LEAT_EINVAL);
    assert_ok(read_text(&loss, "\"mse\"", &err), &err);
    assert_ok(leati_loss_check_targets(&loss, &bad, 3, &err), &err);
}

/* ---- Finite differences ---- */

#define SAMPLES 4
#define CLASSES 3
#define PROBED  (SAMPLES * CLASSES)

/* A loss with its targets and predictions, of which one may be moved. */
typedef struct probe {
    leati_output_loss loss;
    float targets[PROBED], predictions[PROBED];
} probe;

/* Makes predictions between 0 and 1 without ties, and targets that suit the loss. */
static void probe_init(probe *p, const leati_loss_type *type) {
    leat_error err = {0};
    json_t *value = json_string(type->measure.name);
    *p = (probe){0};
    assert_ok(leati_loss_read(&p->loss, value, &err), &err);
    json_decref(value);
    p->loss.options.as_keras3 = true;
    for (int i = 0; i < PROBED; ++i) {
        p->predictions[i] = 0.1f + 0.8f * (float)(i * 7 % PROBED) / (float)PROBED;
        p->targets[i] = type->sparse ? (float)(i % 2) : (float)(i * 5 % 3 == 0);
    }
}

/* Returns the loss, and sets *gradient (PROBED) unless it is NULL. */
static double probe_shaped(const probe *p, float *gradient, const leat_tensor *t, const leat_tensor *x) {
    run r;
    leat_error err = {0};
    leati_value diff = LEATI_NONE;
    run_begin(&r, &run_backends[0]);
    leati_value y_true = run_input(&r, t), y_pred = run_input(&r, x);
    leati_value loss = leati_loss_lower(&p->loss, r.graph, y_true, y_pred, LEATI_NONE, NULL);
    leati_graph_keep(r.graph, loss);
    if (gradient) {
        assert_ok(leati_graph_differentiate(r.graph, loss, 1, &y_pred, &diff, &err), &err);
        leati_graph_keep(r.graph, diff);
    }
    run_compute(&r);
    double result = (double)*(const float *)leati_plan_output(r.plan, loss).data;
    if (gradient) memcpy(gradient, leati_plan_output(r.plan, diff).data, PROBED * sizeof(float));
    run_end(&r);
    return result;
}

/* Like probe_shaped(), with the shapes that the loss takes. */
static double probe_run(const probe *p, float *gradient) {
    const int64_t shape[] = {SAMPLES, CLASSES}, numbers[] = {SAMPLES, 1};
    const int64_t steps[] = {SAMPLES / 2, 2, CLASSES}, lists[] = {SAMPLES / 2, 2};
    void *targets = (void *)(uintptr_t)p->targets, *predictions = (void *)(uintptr_t)p->predictions;
    const leati_loss_type *type = p->loss.type;
    const leat_tensor t = leat_tensor_view(LEAT_F32, 2,
                                           type->label_lists ? lists
                                           : type->sparse    ? numbers
                                                             : shape,
                                           targets);
    const leat_tensor x =
        leat_tensor_view(LEAT_F32, type->label_lists ? 3 : 2, type->label_lists ? steps : shape, predictions);
    return probe_shaped(p, gradient, &t, &x);
}

/* The gradient of every loss agrees with differences of its values. */
static void test_finite_differences(void **state) {
    (void)state;
    const float step = 2e-3f;
    for (int k = 0; leati_loss_types[k]; ++k) {
        probe p;
        float gradient[PROBED];
        double largest = 0;
        probe_init(&p, leati_loss_types[k]);
        probe_run(&p, gradient);
        for (int i = 0; i < PROBED; ++i) largest = fmax(largest, fabs((double)gradient[i]));
        assert_true(largest > 1e-3);
        for (int i = 0; i < PROBED; ++i) {
            float at = p.predictions[i];
            p.predictions[i] = at + step;
            double above = probe_run(&p, NULL);
            p.predictions[i] = at - step;
            double below = probe_run(&p, NULL);
            p.predictions[i] = at;
            double slope = (above - below) / (2.0 * (double)step);
            if (fabs(slope - (double)gradient[i]) > 1e-2 * largest)
                fail_msg("%s, element %d: gradient %g, difference %g", p.loss.type->measure.name, i,
                         (double)gradient[i], slope);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_class_numbers),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_finite_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
