/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells: every implementation is compared with ref, and every gradient with finite differences of ref
 * along random directions (compare.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"

#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "ops/compare.h"

typedef struct rnn_case {
    const char *name;
    int64_t batch, steps, features, units;
    bool bias, states, masks, go_backwards, only_sequence;
    leati_eltwise activation, recurrent;
} rnn_case;

static const rnn_case rnn_cases[] = {
    {"usual", 3, 5, 4, 16, true, false, false, false, true, TANH, SIGMOID},
    {"one sample", 1, 6, 8, 64, true, false, false, false, true, TANH, SIGMOID},
    {"units that fill no vector", 5, 4, 3, 7, true, false, false, false, true, TANH, SIGMOID},
    {"more units than a vector, unevenly", 4, 3, 17, 21, true, true, false, false, false, TANH, SIGMOID},
    {"several blocks", 70, 3, 5, 8, true, false, false, false, false, TANH, SIGMOID},
    {"a last block that gathers more", 136, 4, 3, 8, true, false, false, false, false, TANH, SIGMOID},
    {"without bias, with states", 4, 4, 4, 8, false, true, false, false, false, TANH, SIGMOID},
    {"masks", 7, 3, 4, 12, true, true, true, false, false, TANH, SIGMOID},
    {"backwards", 3, 4, 3, 8, true, false, false, true, false, TANH, SIGMOID},
    {"backwards with masks", 19, 3, 9, 8, true, false, true, true, true, TANH, SIGMOID},
    {"hard_sigmoid", 3, 4, 3, 8, true, false, false, false, false, TANH, HARD_SIGMOID},
    {"panels and masks", 50, 5, 3, 37, true, true, true, false, false, TANH, SIGMOID},
    {"one sample, unevenly", 1, 15, 5, 37, true, true, false, true, false, TANH, HARD_SIGMOID},
    {"relu", 3, 3, 3, 6, true, false, false, false, false, {LEATI_FN_RELU, 0, INFINITY, 0}, SIGMOID},
    {"elu and softsign",
     3,
     3,
     3,
     6,
     true,
     false,
     false,
     false,
     false,
     {LEATI_FN_ELU, 1, 0, 0},
     {LEATI_FN_SOFTSIGN, 0, 0, 0}},
    {"selu and exponential",
     3,
     2,
     3,
     6,
     true,
     false,
     false,
     false,
     false,
     {LEATI_FN_SELU, 0, 0, 0},
     {LEATI_FN_EXP, 0, 0, 0}},
    {"softplus and linear",
     3,
     2,
     3,
     6,
     true,
     false,
     false,
     false,
     false,
     {LEATI_FN_SOFTPLUS, 0, 0, 0},
     {LEATI_FN_LINEAR, 1, 0, 0}},
    {"sigmoid and softplus",
     3,
     2,
     3,
     6,
     true,
     false,
     false,
     false,
     false,
     SIGMOID,
     {LEATI_FN_SOFTPLUS, 0, 0, 0}},
    {"linear and relu",
     3,
     2,
     3,
     6,
     true,
     false,
     false,
     false,
     false,
     {LEATI_FN_LINEAR, 1, 0, 0},
     {LEATI_FN_RELU, 0, INFINITY, 0}},
};

static const char *const cell_names[LEATI_CELL_COUNT] = {"LSTM", "GRU", "GRU, reset after", "SimpleRNN"};

/* Variants of a case: masked steps, and a GRU whose update gate passes on the masked h. */
enum { WITH_STEPS = 1, CARRY_MASKED = 2, FORMS = 4 };

static void describe_rnn(const rnn_case *c, leati_cell cell, int form, leati_desc in[LEATI_RNN_BWD_INPUTS],
                         leati_attrs *attrs) {
    int64_t n = c->batch, f = c->features, u = c->units;
    const leati_desc absent = ABSENT, state = DIMS(n, u);
    bool lstm = cell == LEATI_CELL_LSTM;
    *attrs = (leati_attrs){.rnn = {.cell = cell,
                                   .activation = c->activation,
                                   .recurrent_activation = c->recurrent,
                                   .go_backwards = c->go_backwards,
                                   .carry_masked = form & CARRY_MASKED,
                                   .training = true}};
    in[LEATI_RNN_X] = (leati_desc)DIMS(n, c->steps, f);
    in[LEATI_RNN_RECURRENT] = (leati_desc)DIMS(u, u);
    leati_rnn_shape shape = leati_rnn_shape_of(attrs, &in[LEATI_RNN_X], &in[LEATI_RNN_RECURRENT]);
    int64_t g = shape.gates;
    in[LEATI_RNN_KERNEL] = (leati_desc)DIMS(f, g * u);
    in[LEATI_RNN_RECURRENT] = (leati_desc)DIMS(u, g * u);
    in[LEATI_RNN_BIAS] = !c->bias            ? absent
                         : shape.biases == 2 ? (leati_desc)DIMS(2, g * u)
                                             : (leati_desc)DIMS(g * u);
    in[LEATI_RNN_H0] = c->states ? state : absent;
    in[LEATI_RNN_C0] = c->states && lstm ? state : absent;
    in[LEATI_RNN_X_MASK] = c->masks ? (leati_desc)DIMS(g, n, f) : absent;
    in[LEATI_RNN_H_MASK] = c->masks ? (leati_desc)DIMS(g, n, u) : absent;
    in[LEATI_RNN_STEPS] = form & WITH_STEPS ? (leati_desc)DIMS(n, c->steps) : absent;
    in[LEATI_RNN_SEQUENCE] = in[LEATI_RNN_DIFF_SEQUENCE] = (leati_desc)DIMS(n, c->steps, u);
    in[LEATI_RNN_WORKSPACE] = (leati_desc)DIMS(c->steps, n, shape.kept);
    in[LEATI_RNN_DIFF_H_LAST] = c->only_sequence ? absent : state;
    in[LEATI_RNN_DIFF_C_LAST] = c->only_sequence || !lstm ? absent : state;
}

static const leati_implementation *implementation_of(const leati_backend *backend, leati_op op) {
    for (size_t i = 0; i < backend->count; i++)
        if (backend->implementations[i].op == op) return &backend->implementations[i];
    return NULL;
}

/* Computes a backend's gradient from the workspace of its own forward pass. */
static bool run_rnn_pair(test_task *t, test_task *bwd, const leati_backend *backend) {
    char why[LEATI_REASON_BYTES] = "";
    const leati_implementation *forward = implementation_of(backend, LEATI_OP_RNN);
    const leati_implementation *backward = implementation_of(backend, LEATI_OP_RNN_BWD);
    if (!forward || !backward) return false;
    assert_true(test_run(t, forward, why, NULL));
    if (bwd->args[LEATI_RNN_SEQUENCE])
        memcpy(bwd->args[LEATI_RNN_SEQUENCE], test_output(t, LEATI_RNN_OUT_SEQUENCE),
               leati_desc_bytes(&t->outputs[LEATI_RNN_OUT_SEQUENCE]));
    memcpy(bwd->args[LEATI_RNN_WORKSPACE], test_output(t, LEATI_RNN_OUT_WORKSPACE),
           leati_desc_bytes(&t->outputs[LEATI_RNN_OUT_WORKSPACE]));
    for (int i = 0; i < LEATI_RNN_GRADIENTS; i++)
        if (test_output(bwd, i)) memset(test_output(bwd, i), 0xff, leati_desc_bytes(&bwd->outputs[i]));
    assert_true(test_run(bwd, backward, why, NULL));
    return true;
}

/* Compares all backends with ref, which comes last and leaves its gradients in bwd. */
static void compare_rnn_gradients(test_task *t, test_task *bwd, const char *name) {
    float *expected[LEATI_RNN_GRADIENTS] = {0};
    size_t ref = 0;
    while (test_backends[ref + 1]) ref++;
    assert_true(run_rnn_pair(t, bwd, test_backends[ref]));
    for (int i = 0; i < LEATI_RNN_GRADIENTS; i++) {
        size_t bytes = leati_desc_bytes(&bwd->outputs[i]);
        expected[i] = test_output(bwd, i) ? leati_memdup(test_output(bwd, i), bytes + (bytes == 0)) : NULL;
    }
    for (size_t b = 0; test_backends[b]; b++) {
        if (!run_rnn_pair(t, bwd, test_backends[b])) continue;
        for (int i = 0; i < LEATI_RNN_GRADIENTS; i++) {
            if (!expected[i]) continue;
            double distance = test_distance(test_output(bwd, i), expected[i], test_output_count(bwd, i));
            if (!(distance <= 1e-4))
                fail_msg("%s: gradient %d of '%s' is %g from ref", name, i, bwd->implementation, distance);
        }
    }
    for (int i = 0; i < LEATI_RNN_GRADIENTS; i++) leati_free(expected[i]);
}

static void check_rnn_gradients(const rnn_case *c, test_task *t, const leati_desc *in, const char *name,
                                leat_rng *rng) {
    test_task bwd;
    test_task_init(&bwd, LEATI_OP_RNN_BWD, &t->attrs, LEATI_RNN_BWD_INPUTS, in, 0, 2);
    test_fill_inputs(&bwd, -1, 1, rng); /* only the gradients of the op's outputs keep these values */
    for (int i = 0; i < LEATI_RNN_INPUTS; i++)
        if (t->args[i]) memcpy(bwd.args[i], t->args[i], leati_desc_bytes(&in[i]));
    if (t->attrs.rnn.cell == LEATI_CELL_LSTM && in[LEATI_RNN_STEPS].rank < 0) { /* it computes h itself */
        leati_free(bwd.args[LEATI_RNN_SEQUENCE]);
        bwd.args[LEATI_RNN_SEQUENCE] = NULL;
        bwd.inputs[LEATI_RNN_SEQUENCE].rank = -1;
    }
    compare_rnn_gradients(t, &bwd, name);
    float *weights[LEATI_MAX_OUTPUTS] = {bwd.args[LEATI_RNN_DIFF_SEQUENCE], bwd.args[LEATI_RNN_DIFF_H_LAST],
                                         bwd.args[LEATI_RNN_DIFF_C_LAST]};
    bool bends = c->activation.function == LEATI_FN_RELU || c->recurrent.function == LEATI_FN_RELU;
    const bool is_quick = c->batch < 40 && c->units < 200;
    for (int i = 0; i < LEATI_RNN_GRADIENTS && is_quick && !bends; i++)
        if (in[i].rank >= 0)
            test_check_gradient(t, weights, i, test_output(&bwd, i), name, bwd.implementation, rng);
    test_task_fini(&bwd);
}

/* Sets the steps of samples of all lengths, including 0, and of one with a gap. */
static void fill_steps(float *steps, int64_t n, int64_t count) {
    for (int64_t i = 0; i < n * count; i++) {
        int64_t sample = i / count, step = i % count;
        steps[i] = sample % 5 == 4 ? step % 2 == 1 : step >= sample % (count + 1);
    }
}

static void check_rnn(const rnn_case *c, leati_cell cell, int form, leat_rng *rng) {
    leati_desc in[LEATI_RNN_BWD_INPUTS];
    leati_attrs attrs;
    test_task t;
    char name[128];
    snprintf(name, sizeof name, "%s, %s%s%s", cell_names[cell], c->name,
             form & WITH_STEPS ? ", with steps" : "", form & CARRY_MASKED ? ", carry masked" : "");
    describe_rnn(c, cell, form, in, &attrs);
    test_task_init(&t, LEATI_OP_RNN, &attrs, LEATI_RNN_INPUTS, in, 0, 2);
    test_fill_inputs(&t, -0.4f, 0.4f, rng);
    for (int m = LEATI_RNN_X_MASK; c->masks && m <= LEATI_RNN_H_MASK; m++)
        for (int64_t j = 0; j < leati_desc_count(&in[m]); j++)
            t.args[m][j] = leat_rng_below(rng, 4) == 0 ? 0.0f : 4.0f / 3.0f;
    if (form & WITH_STEPS) fill_steps(t.args[LEATI_RNN_STEPS], c->batch, c->steps);
    test_compare_except(&t, name, TOLERANCE, 1u << LEATI_RNN_OUT_WORKSPACE);
    check_rnn_gradients(c, &t, in, name, rng);
    test_task_fini(&t);
}

/* The workspace is so large that it is written with non-temporal stores. */
static void test_rnn_far(void **state) {
    static const rnn_case far = {
        "of many samples", 6600, 8, 1, 32, true, false, false, false, false, TANH, SIGMOID};
    leat_rng rng = leat_rng_for(4, 0, 1);
    (void)state;
    check_rnn(&far, LEATI_CELL_LSTM, 0, &rng);
}

/* The weights are so large that products read them ahead of use, in chunks, or that threads share the units of a
 * sample. */
static void test_rnn_large(void **state) {
    static const rnn_case large[] = {
        {"large", 17, 3, 530, 260, true, false, false, false, true, TANH, SIGMOID},
        {"large, with states and masks", 18, 2, 530, 260, true, true, true, true, false, TANH, HARD_SIGMOID},
        {"large, of a sample", 1, 3, 5, 370, true, false, false, false, true, TANH, SIGMOID},
        {"large, many steps of a sample", 1, 8, 5, 370, true, false, false, false, true, TANH, SIGMOID},
        {"two or three samples for a thread", 5, 6, 9, 200, true, false, false, false, true, TANH, SIGMOID}};
    leat_rng rng = leat_rng_for(4, 0, 2);
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        for (int cell = 0; cell < LEATI_CELL_COUNT; cell++)
            if (large[i].steps < 8 ||
                cell != LEATI_CELL_SIMPLE) /* whose rounding errors grow with each step */
                check_rnn(&large[i], (leati_cell)cell, i == 1 ? WITH_STEPS : 0, &rng);
}

static void test_rnn(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(4, 0, 0);
    for (size_t i = 0; i < sizeof rnn_cases / sizeof rnn_cases[0]; i++)
        for (int cell = 0; cell < LEATI_CELL_COUNT; cell++)
            for (int form = 0; form < FORMS; form++) {
                bool gru = cell == LEATI_CELL_GRU || cell == LEATI_CELL_GRU_RESET_AFTER;
                if (!(form & CARRY_MASKED) || (gru && rnn_cases[i].masks))
                    check_rnn(&rnn_cases[i], (leati_cell)cell, form, &rng);
            }
}

/* No workspace for a backward pass, and unused outputs. */
static void test_rnn_predict(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(5, 0, 0);
    for (int cell = 0; cell < LEATI_CELL_COUNT; cell++)
        for (int unused = 0; unused < 7; unused++) {
            leati_desc in[LEATI_RNN_BWD_INPUTS];
            leati_attrs attrs;
            test_task t;
            describe_rnn(&rnn_cases[unused % 4], (leati_cell)cell, 0, in, &attrs);
            attrs.rnn.training = false;
            test_task_init(&t, LEATI_OP_RNN, &attrs, 4, in, 8u | (uint32_t)unused, 1);
            test_fill_inputs(&t, -0.5f, 0.5f, &rng);
            test_compare(&t, "predict", TOLERANCE);
            test_task_fini(&t);
        }
}

/* Computed by hand: h = x + h_before, over 1 (2) 4 (8) 16, where the steps in brackets are masked. */
static void test_rnn_steps_by_hand(void **state) {
    (void)state;
    const float x[] = {1, 2, 4, 8, 16}, first[] = {0, 0, 1, 0, 1}, none[5] = {0};
    const leati_eltwise linear = {LEATI_FN_LINEAR, 1, 0, 0};
    leati_attrs attrs = {.rnn = {.cell = LEATI_CELL_SIMPLE, .activation = linear}};
    const leati_desc in[LEATI_RNN_INPUTS] = {DIMS(2, 5, 1), DIMS(1, 1), DIMS(1, 1), ABSENT,    DIMS(2, 1),
                                             ABSENT,        ABSENT,     ABSENT,     DIMS(2, 5)};
    const float expected[2][2][5] = {{{0, 0, 104, 104, 120}, {0, 0, 0, 0, 0}},
                                     {{116, 116, 120, 120, 120}, {0, 0, 0, 0, 0}}};
    const float last[2] = {120, 100};
    for (int backwards = 0; backwards < 2; backwards++) {
        test_task t;
        attrs.rnn.go_backwards = backwards;
        test_task_init(&t, LEATI_OP_RNN, &attrs, LEATI_RNN_INPUTS, in, 0, 1);
        for (int sample = 0; sample < 2; sample++) {
            memcpy(t.args[LEATI_RNN_X] + 5 * sample, x, sizeof x);
            memcpy(t.args[LEATI_RNN_STEPS] + 5 * sample, sample ? none : first, sizeof none);
            t.args[LEATI_RNN_H0][sample] = 100;
        }
        t.args[LEATI_RNN_KERNEL][0] = t.args[LEATI_RNN_RECURRENT][0] = 1;
        test_run_ref(&t);
        assert_memory_equal(test_output(&t, LEATI_RNN_OUT_SEQUENCE), expected[backwards], sizeof expected[0]);
        assert_memory_equal(test_output(&t, LEATI_RNN_OUT_H_LAST), last, sizeof last);
        test_task_fini(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rnn),
        cmocka_unit_test(test_rnn_far),
        cmocka_unit_test(test_rnn_large),
        cmocka_unit_test(test_rnn_predict),
        cmocka_unit_test(test_rnn_steps_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
