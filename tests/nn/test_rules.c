/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, regularizers and constraints: round trips of Keras's JSON, names, errors.  The golden cases of the
 * layers test their values. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/activations/activation.h"
#include "nn/constraints/constraint.h"
#include "nn/regularizers/regularizer.h"
#include "nn/run.h"

typedef enum rule { ACTIVATION, REGULARIZER, CONSTRAINT } rule;

typedef struct any {
    leati_activation activation;
    leati_regularizer regularizer;
    leati_constraint constraint;
} any;

static leat_status read_json(rule kind, any *out, const json_t *value, leat_error *err) {
    if (kind == ACTIVATION) return leati_activation_read(&out->activation, value, err);
    if (kind == REGULARIZER) return leati_regularizer_read(&out->regularizer, value, err);
    return leati_constraint_read(&out->constraint, value, err);
}

static leat_status write_json(rule kind, const any *from, json_t **out, leat_error *err) {
    if (kind == ACTIVATION) return leati_activation_write(&from->activation, out, err);
    if (kind == REGULARIZER) return leati_regularizer_write(&from->regularizer, out, err);
    return leati_constraint_write(&from->constraint, out, err);
}

/* Reads `text` and writes it; the result must be `expected` (NULL: `text`). */
static void there_and_back(rule kind, const char *text, const char *expected) {
    leat_error err = {0};
    any thing = {0};
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL), *written = NULL;
    json_t *wanted = json_loads(expected ? expected : text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    assert_non_null(wanted);
    assert_ok(read_json(kind, &thing, value, &err), &err);
    assert_ok(write_json(kind, &thing, &written, &err), &err);
    if (!json_equal(written, wanted)) {
        char *got = json_dumps(written, JSON_ENCODE_ANY);
        fail_msg("%s became %s", text, got);
    }
    json_decref(value);
    json_decref(wanted);
    json_decref(written);
}

static void test_activations(void **state) {
    (void)state;
    for (int i = 0; i < (int)LEATI_ACTIVATION_COUNT; ++i) {
        char text[64];
        snprintf(text, sizeof text, "\"%s\"", leati_activation_name((leati_activation_kind)i));
        there_and_back(ACTIVATION, text, NULL);
        leati_eltwise f;
        const leati_activation activation = {.kind = (leati_activation_kind)i};
        bool chain = i == LEATI_ACTIVATION_SOFTMAX || i >= LEATI_ACTIVATION_LOG_SOFTMAX;
        assert_int_equal(leati_activation_eltwise(&activation, &f), !chain);
    }
    there_and_back(ACTIVATION, "null", "\"linear\"");
    there_and_back(ACTIVATION,
                   "{\"module\": \"builtins\", \"class_name\": \"function\", \"config\": \"relu\","
                   " \"registered_name\": \"function\"}",
                   "\"relu\"");
}

static void test_regularizers(void **state) {
    (void)state;
    there_and_back(REGULARIZER, "null", NULL);
    there_and_back(REGULARIZER, "{\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.5, \"l2\": 0.25}}", NULL);
    there_and_back(REGULARIZER,
                   "{\"class_name\": \"OrthogonalRegularizer\", \"config\": {\"factor\": 0.5, \"mode\": "
                   "\"columns\"}}",
                   NULL);
    /* 0.01 as float32, like Keras's value. */
    static const char two[] =
        "{\"class_name\": \"L1L2\", \"config\": {\"l1\": 0.0, \"l2\": 0.009999999776482582}}";
    there_and_back(REGULARIZER, "\"l2\"", two);
    there_and_back(REGULARIZER, "{\"class_name\": \"L2\", \"config\": {\"l2\": 0.01}}", two);
    there_and_back(REGULARIZER, "{\"class_name\": \"l2\", \"config\": {}}", two);
    there_and_back(REGULARIZER, "{\"class_name\": \"l1\", \"config\": {\"l\": 2.0}}",
                   "{\"class_name\": \"L1L2\", \"config\": {\"l1\": 2.0, \"l2\": 0.0}}");
}

static void test_constraints(void **state) {
    (void)state;
    there_and_back(CONSTRAINT, "null", NULL);
    there_and_back(CONSTRAINT,
                   "{\"class_name\": \"MaxNorm\", \"config\": {\"max_value\": 0.5, \"axis\": [0, 1]}}", NULL);
    there_and_back(CONSTRAINT, "\"maxnorm\"",
                   "{\"class_name\": \"MaxNorm\", \"config\": {\"max_value\": 2.0, \"axis\": 0}}");
    there_and_back(CONSTRAINT, "\"nonneg\"", "{\"class_name\": \"NonNeg\", \"config\": {}}");
    there_and_back(CONSTRAINT, "{\"class_name\": \"unit_norm\", \"config\": {\"axis\": 1}}",
                   "{\"class_name\": \"UnitNorm\", \"config\": {\"axis\": 1}}");
    there_and_back(
        CONSTRAINT,
        "{\"class_name\": \"MinMaxNorm\", \"config\": {\"min_value\": 0.25, \"max_value\": 2.0, \"rate\":"
        " 0.5, \"axis\": 0}}",
        NULL);
}

static void test_errors(void **state) {
    (void)state;
    static const struct {
        rule kind;
        const char *text;
        leat_status status;
        const char *says;
    } rows[] = {
        {ACTIVATION, "\"rellu\"", LEAT_ENOTFOUND, "unknown activation 'rellu'; did you mean 'relu'?"},
        {ACTIVATION, "7", LEAT_EINVAL, "expected a name"},
        {REGULARIZER, "\"l3\"", LEAT_ENOTFOUND, "unknown regularizer 'l3'"},
        {REGULARIZER, "{\"class_name\": \"L1L2\", \"config\": {\"l1\": \"x\"}}", LEAT_EINVAL, "'l1'"},
        {REGULARIZER, "{\"class_name\": \"OrthogonalRegularizer\", \"config\": {\"mode\": 1}}", LEAT_EINVAL,
         "mode: expected"},
        {REGULARIZER, "{\"class_name\": \"L1L2\", \"config\": 1}", LEAT_EINVAL, "\"config\""},
        {CONSTRAINT, "\"max_nrm\"", LEAT_ENOTFOUND, "did you mean 'max_norm'?"},
        {CONSTRAINT, "{\"class_name\": \"MaxNorm\", \"config\": {\"axis\": [0.5]}}", LEAT_EINVAL, "axis"},
        {CONSTRAINT, "{\"class_name\": \"MaxNorm\", \"config\": {\"axis\": []}}", LEAT_EINVAL, "axis"},
        {CONSTRAINT, "{\"class_name\": \"MaxNorm\", \"config\": {\"max_value\": null}}", LEAT_EINVAL,
         "max_value"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        leat_error err = {0};
        any thing = {0};
        json_t *value = json_loads(rows[i].text, JSON_DECODE_ANY, NULL);
        assert_int_equal(read_json(rows[i].kind, &thing, value, &err), rows[i].status);
        if (!strstr(err.message, rows[i].says)) fail_msg("'%s' does not say '%s'", err.message, rows[i].says);
        json_decref(value);
    }
}

/* An axis that the weight does not have is a failure of the graph, with a message. */
static void test_axis(void **state) {
    (void)state;
    leat_error err = {0};
    const int64_t shape[] = {2, 3};
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, shape);
    run r;
    run_begin(&r, &run_backends[0]);
    leati_constraint constraint = {.kind = LEATI_CONSTRAINT_UNIT_NORM, .axis_count = 1, .axes = {2}};
    leati_value w = leati_graph_input(r.graph, 0, &desc);
    assert_int_equal(leati_constraint_lower(&constraint, r.graph, w), LEATI_INVALID);
    assert_int_equal(leati_graph_check(r.graph, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "axis 2 is out of range for a weight of rank 2"));
    run_end(&r);
}

/* As in Keras, relu of a number up to 0, and of -0, is +0, so that 1 / relu(x) is infinity. */
static void test_relu_has_no_negative_zero(void **state) {
    (void)state;
    enum { SIZE = 37 };
    static const leati_eltwise functions[] = {{LEATI_FN_RELU, 0, INFINITY, 0},
                                              {LEATI_FN_RELU, 0, 6, 0},
                                              {LEATI_FN_RELU, 0, INFINITY, 1}};
    float x[SIZE];
    const leat_tensor tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SIZE}, x);
    for (int i = 0; i < SIZE; ++i) x[i] = i % 3 == 0 ? -0.0f : i % 3 == 1 ? -0.5f * (float)i : 0.0f;
    for (int backend = 0; run_backends[backend].name; ++backend)
        for (size_t f = 0; f < sizeof functions / sizeof *functions; ++f) {
            run r;
            run_begin(&r, &run_backends[backend]);
            leati_value y = leati_eltwise_of(r.graph, run_input(&r, &tensor), functions[f]);
            leati_graph_keep(r.graph, y);
            run_compute(&r);
            const float *out = leati_plan_output(r.plan, y).data;
            for (int i = 0; i < SIZE; ++i)
                if (out[i] != 0 || signbit(out[i]))
                    fail_msg("%s: relu(%g) is %g", run_backends[backend].name, (double)x[i], (double)out[i]);
            run_end(&r);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations), cmocka_unit_test(test_regularizers),
        cmocka_unit_test(test_constraints), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_axis),        cmocka_unit_test(test_relu_has_no_negative_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
