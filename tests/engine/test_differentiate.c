/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse accumulation: sums of contributions, values without influence on the loss, gradients with respect to
 * intermediate values, and a network compared with finite differences. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "engine/fixture.h"
#include "leat/rng.h"

static int setup(void **state) {
    static fixture s;
    fixture_init(&s);
    *state = &s;
    return 0;
}

static int teardown(void **state) {
    fixture_fini(*state);
    return 0;
}

static void differentiate(fixture *s, leati_value loss, int count, const leati_value *wrt,
                          leati_value *gradient) {
    leat_error err = {0};
    if (leati_graph_differentiate(s->graph, loss, count, wrt, gradient, &err) != LEAT_OK)
        fail_msg("%s", err.message);
}

/* loss = sum(x * x + 3 x): one value is used three times. */
static void contributions_are_summed(void **state) {
    fixture *s = *state;
    leati_graph *g = s->graph;
    leati_value x = fixture_input(s, 0, 1, 3), d = 0;
    leati_value y = leati_add(g, leati_mul(g, x, x), leati_linear(g, x, 3, 0));
    differentiate(s, leati_reduce_all(g, LEATI_REDUCE_SUM, y), 1, &x, &d);
    leati_graph_keep(g, d);
    fixture_compile(s);
    const float input[3] = {1, -2, 0.5f};
    fixture_run(s, (const void *[]){input});
    for (int i = 0; i < 3; ++i) assert_float_equal(fixture_output(s, d)[i], 2 * input[i] + 3, 1e-6);
}

static void only_what_depends_has_a_gradient(void **state) {
    fixture *s = *state;
    leati_graph *g = s->graph;
    leati_value x = fixture_input(s, 0, 2, 2), other = fixture_input(s, 1, 2, 2);
    leati_value middle = leati_function_of(g, x, LEATI_FN_SQUARE);
    leati_value chosen = leati_binary_of(g, LEATI_GREATER, other, other);
    leati_value loss = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_mul(g, middle, chosen));
    const leati_value wrt[4] = {x, other, middle, loss};
    leati_value gradient[4];
    differentiate(s, loss, 4, wrt, gradient);
    assert_true(gradient[0] >= 0);
    assert_int_equal(gradient[1], LEATI_NONE); /* comparisons have no gradient */
    assert_true(gradient[2] >= 0);
    assert_true(gradient[3] >= 0);
    differentiate(s, loss, 1, &other, gradient);
    assert_int_equal(gradient[0], LEATI_NONE);
}

static void gradient_nodes_know_what_they_serve(void **state) {
    fixture *s = *state;
    leati_graph *g = s->graph;
    leati_value x = fixture_input(s, 0, 2, 3), w = fixture_input(s, 1, 3, 4), d = 0;
    leati_graph_label(g, "dense");
    leati_value y = leati_matmul(g, x, false, w, false, LEATI_NONE);
    leati_graph_label(g, "loss");
    leati_value loss = leati_reduce_all(g, LEATI_REDUCE_MEAN, y);
    int32_t forward = leati_graph_node_count(g), served = 0;
    differentiate(s, loss, 1, &w, &d);
    for (int32_t n = forward; n < leati_graph_node_count(g); ++n) {
        const leati_node *node = leati_graph_node_at(g, n);
        assert_in_range(node->forward, 0, forward - 1);
        if (node->op == LEATI_OP_MATMUL) {
            ++served;
            assert_int_equal(node->forward, 0);
            assert_string_equal(node->label, "dense");
        }
    }
    assert_int_equal(served, 1);
}

static void a_loss_is_a_scalar(void **state) {
    fixture *s = *state;
    leati_value x = fixture_input(s, 0, 2, 3), d = 7;
    leat_error err = {0};
    assert_int_equal(leati_graph_differentiate(s->graph, x, 1, &x, &d, &err), LEAT_ESHAPE);
    assert_non_null(strstr(err.message, "(2, 3)"));
    assert_int_equal(d, LEATI_NONE);
}

static int32_t count_ops(const leati_graph *g, leati_op op) {
    int32_t found = 0;
    for (int32_t n = 0; n < leati_graph_node_count(g); ++n) found += leati_graph_node_at(g, n)->op == op;
    return found;
}

/* loss = sum over slices of k times its squares, k = 1, 2, ...: d loss / d x is 2 x times the sum of k over the slices
 * that have the element. */
static void slices_of(fixture *s, int count, const int64_t (*ranges)[2], int32_t concats, int32_t pads) {
    enum { columns = 6 };
    leati_graph *g = s->graph;
    leati_value x = fixture_input(s, 0, 2, columns), y = leati_linear(g, x, 1, 0), total = LEATI_NONE, d = 0;
    const int32_t concats_before = count_ops(g, LEATI_OP_CONCAT), pads_before = count_ops(g, LEATI_OP_PAD);
    float factors[columns] = {0};
    for (int i = 0; i < count; ++i) {
        leati_value part = leati_slice_axis(g, y, 1, ranges[i][0], ranges[i][1]);
        part = leati_linear(g, leati_reduce_all(g, LEATI_REDUCE_SUM, leati_mul(g, part, part)),
                            (float)(i + 1), 0);
        total = total == LEATI_NONE ? part : leati_add(g, total, part);
        for (int64_t k = 0; k < ranges[i][1]; ++k) factors[ranges[i][0] + k] += (float)(i + 1);
    }
    differentiate(s, total, 1, &x, &d);
    assert_int_equal(count_ops(g, LEATI_OP_CONCAT) - concats_before, concats);
    assert_int_equal(count_ops(g, LEATI_OP_PAD) - pads_before, pads);
    leati_graph_keep(g, d);
    fixture_compile(s);
    const float input[2 * columns] = {1, -2, 0.5f, 3, 4, -1, 2, 7, -0.25f, 1, 1, 5};
    fixture_run(s, (const void *[]){input});
    for (int i = 0; i < 2 * columns; ++i)
        assert_float_equal(fixture_output(s, d)[i], 2 * input[i] * factors[i % columns], 1e-5);
}

static void slices_that_cover_a_value_are_joined(void **state) {
    slices_of(*state, 3, (const int64_t[][2]){{4, 2}, {0, 1}, {1, 3}}, 1, 0);
}

static void gaps_between_slices_are_zeros(void **state) {
    slices_of(*state, 2, (const int64_t[][2]){{4, 1}, {1, 2}}, 1, 0);
}

static void slices_that_overlap_are_added(void **state) {
    slices_of(*state, 3, (const int64_t[][2]){{0, 4}, {3, 3}, {1, 1}}, 0, 3);
}

static void one_slice_is_padded(void **state) {
    slices_of(*state, 1, (const int64_t[][2]){{2, 2}}, 0, 1);
}

/* TensorFlow's values at points where a function has no unique derivative.  Finite differences cannot check them. */
static void ties_and_corners_follow_tensorflow(void **state) {
    fixture *s = *state;
    leati_graph *g = s->graph;
    enum { count = 9 };
    leati_value x = fixture_input(s, 0, 1, 4), y = fixture_input(s, 1, 1, 4), values[count], d[count],
                pair[2];
    leati_eltwise leaky = {LEATI_FN_RELU, 0.5f, INFINITY, 0};
    values[0] = leati_function_of(g, x, LEATI_FN_RELU);         /* 0 at 0 */
    values[1] = leati_eltwise_of(g, x, leaky);                  /* the slope at 0 */
    values[2] = leati_function_of(g, x, LEATI_FN_ABS);          /* 0 at 0 */
    values[3] = leati_clip(g, x, 0, 1);                         /* 1 at both ends */
    values[4] = leati_function_of(g, x, LEATI_FN_HARD_SIGMOID); /* 0.2 at +-2.5 */
    values[5] = leati_reduce_all(g, LEATI_REDUCE_MAX, x);       /* equal maxima share the gradient */
    values[6] = leati_reduce_all(g, LEATI_REDUCE_MIN, x);
    values[7] = leati_binary_of(g, LEATI_MAX, x, y); /* the first operand, if both are equal */
    values[8] = leati_binary_of(g, LEATI_MIN, x, y);
    for (int i = 0; i < count; ++i) {
        const leati_value wrt[2] = {x, y};
        differentiate(s, leati_reduce_all(g, LEATI_REDUCE_SUM, values[i]), 2, wrt, pair);
        leati_graph_keep(g, d[i] = pair[0]);
    }
    leati_graph_keep(g, pair[1]); /* gradient of MIN with respect to y */
    fixture_compile(s);
    const float a[4] = {0, 1, 2.5f, 2.5f}, b[4] = {0, 1, 3, 2};
    fixture_run(s, (const void *[]){a, b});
    static const float expected[count][4] = {
        {0, 1, 1, 1},       {0.5f, 1, 1, 1}, {0, 1, 1, 1}, {1, 1, 0, 0}, {0.2f, 0.2f, 0.2f, 0.2f},
        {0, 0, 0.5f, 0.5f}, {1, 0, 0, 0},    {1, 1, 0, 1}, {1, 1, 1, 0}};
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < 4; ++k)
            if (fixture_output(s, d[i])[k] != expected[i][k])
                fail_msg("value %d, element %d: %g", i, k, (double)fixture_output(s, d[i])[k]);
    for (int k = 0; k < 4; ++k) assert_float_equal(fixture_output(s, pair[1])[k], 1 - expected[8][k], 0);
}

/* The gradients of all weights of a network of two layers with dropout and a crossentropy, compared with central
 * differences. */
static void a_net_against_differences(void **state) {
    fixture *s = *state;
    leati_graph *g = s->graph;
    const int64_t dims[2][2] = {{6, 5}, {5, 3}};
    const int weights = 6 * 5 + 5 + 2 + 5 * 3; /* kernel, bias, room, kernel */
    leati_value x = fixture_input(s, 0, 4, 6), labels = fixture_input(s, 1, 4, 3), wrt[3], d[3];
    wrt[0] = leati_reshape(g, fixture_state(s, LEATI_SLAB_WEIGHTS, 0, 30), 2, dims[0]);
    wrt[1] = fixture_state(s, LEATI_SLAB_WEIGHTS, 30, 5);
    wrt[2] = leati_reshape(g, fixture_state(s, LEATI_SLAB_WEIGHTS, 37, 15), 2, dims[1]);
    leati_value h = leati_function_of(g, leati_matmul(g, x, false, wrt[0], false, wrt[1]), LEATI_FN_TANH);
    leati_value logits = leati_matmul(g, leati_dropout(g, h, 0.25f, 0, 3), false, wrt[2], false, LEATI_NONE);
    leati_value loss =
        leati_reduce_all(g, LEATI_REDUCE_MEAN, leati_softmax_xent(g, logits, labels, LEATI_XENT_EXACT));
    differentiate(s, loss, 3, wrt, d);
    leati_graph_keep(g, loss);
    for (int i = 0; i < 3; ++i) leati_graph_keep(g, d[i]);
    fixture_compile(s);
    float input[24], target[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0.5f, 0.5f, 0},
                     *w = s->slab[LEATI_SLAB_WEIGHTS];
    leat_rng rng = leat_rng_for(5, 0, 0);
    for (int i = 0; i < 24; ++i) input[i] = (float)leat_rng_normal(&rng);
    for (int i = 0; i < weights; ++i) w[i] = (float)leat_rng_normal(&rng);
    const void *bound[2] = {input, target};
    float gradient[52] = {0};
    fixture_run(s, bound);
    memcpy(gradient, fixture_output(s, d[0]), 30 * sizeof(float));
    memcpy(gradient + 30, fixture_output(s, d[1]), 5 * sizeof(float));
    memcpy(gradient + 37, fixture_output(s, d[2]), 15 * sizeof(float));
    for (int i = 0; i < weights; ++i) {
        float kept = w[i], ends[2];
        for (int side = 0; side < 2; ++side) {
            w[i] = kept + (side ? 0.01f : -0.01f);
            fixture_run(s, bound);
            ends[side] = fixture_output(s, loss)[0];
        }
        w[i] = kept;
        assert_float_equal(gradient[i], (ends[1] - ends[0]) / 0.02f, 3e-4);
    }
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(contributions_are_summed),
        WITH_FIXTURE(only_what_depends_has_a_gradient),
        WITH_FIXTURE(gradient_nodes_know_what_they_serve),
        WITH_FIXTURE(slices_that_cover_a_value_are_joined),
        WITH_FIXTURE(gaps_between_slices_are_zeros),
        WITH_FIXTURE(slices_that_overlap_are_added),
        WITH_FIXTURE(one_slice_is_padded),
        WITH_FIXTURE(a_loss_is_a_scalar),
        WITH_FIXTURE(ties_and_corners_follow_tensorflow),
        WITH_FIXTURE(a_net_against_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
