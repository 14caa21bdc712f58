/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution, pooling, batch normalisation, recurrent cells and matrix products: every implementation is compared
 * with ref, and every gradient with finite differences of ref along random directions.
 * Tolerances: 2e-5 of the largest value against ref (sums of up to some thousand f32 products in another order, and
 * activations within 3 units in the last place, through up to 7 steps); 1e-3 for finite differences over 2 * 2e-3. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "ops/task.h"

#define TOLERANCE       2e-5
#define STEP            2e-3f
#define SLOPE_TOLERANCE 1e-3

/* Runs t on all implementations of its op, and compares the used outputs with ref's, except those of `opaque`,
 * whose contents only their own backend can interpret. */
static int compare_but(test_task *t, const char *name, double tolerance, uint32_t opaque) {
    float *expected[LEATI_MAX_OUTPUTS] = {0};
    int served = 0;
    test_run_ref(t);
    for (int i = 0; i < t->task.output_count; i++)
        if (test_output(t, i) && t->outputs[i].dtype == LEAT_F32 && !(opaque >> i & 1)) {
            expected[i] = leati_memdup(test_output(t, i), leati_desc_bytes(&t->outputs[i]) +
                                                              (leati_desc_bytes(&t->outputs[i]) == 0));
            assert_non_null(expected[i]);
        }
    for (size_t b = 0; test_backends[b]; b++)
        for (size_t k = 0; k < test_backends[b]->count; k++) {
            const leati_implementation *implementation = &test_backends[b]->implementations[k];
            char why[LEATI_REASON_BYTES] = "";
            if (implementation->op != t->task.op) continue;
            if (t->task.measured && !test_backends[b + 1]) continue;
            for (int i = 0; i < t->task.output_count; i++)
                if (expected[i]) memset(test_output(t, i), 0xff, leati_desc_bytes(&t->outputs[i]));
            if (!test_run(t, implementation, why, NULL)) continue;
            served++;
            for (int i = 0; i < t->task.output_count; i++) {
                if (!expected[i]) continue;
                double distance = test_distance(test_output(t, i), expected[i], test_output_count(t, i));
                if (!(distance <= tolerance))
                    fail_msg("%s: output %d of '%s' is %g from ref", name, i, t->implementation, distance);
            }
        }
    for (int i = 0; i < LEATI_MAX_OUTPUTS; i++) leati_free(expected[i]);
    return served;
}

/* The implementations that could serve the task, among which measuring may choose, and those that the rules choose
 * from. */
static int compare_all(test_task *t, const char *name, double tolerance) {
    t->task.measured = true;
    compare_but(t, name, tolerance, 0);
    t->task.measured = false;
    return compare_but(t, name, tolerance, 0);
}

/* Returns the sum over the outputs of output * weight, on ref; NULL weights count as 0. */
static double weighted(test_task *t, float *const *weights) {
    double sum = 0;
    test_run_ref(t);
    for (int i = 0; i < t->task.output_count; i++)
        for (int64_t j = 0; weights[i] && j < test_output_count(t, i); j++)
            sum += (double)test_output(t, i)[j] * (double)weights[i][j];
    return sum;
}

/* Compares the gradient of `weighted` with respect to input i with finite differences along a few directions. */
static void check_slope(test_task *forward, float *const *weights, int input, const float *gradient,
                        const char *name, const char *implementation, leat_rng *rng) {
    float *values = forward->args[input];
    int64_t count = leati_desc_count(&forward->inputs[input]);
    float *before = leati_memdup(values, (size_t)count * sizeof *values);
    float *direction = leati_calloc((size_t)count, sizeof *direction);
    assert_non_null(before);
    assert_non_null(direction);
    for (int trial = 0; trial < 3; trial++) {
        double sums[2], expected, slope = 0, size = 0;
        test_fill(direction, count, -1, 1, rng);
        for (int side = 0; side < 2; side++) {
            for (int64_t j = 0; j < count; j++) values[j] = before[j] + (side ? STEP : -STEP) * direction[j];
            sums[side] = weighted(forward, weights);
        }
        expected = (sums[1] - sums[0]) / (2 * (double)STEP);
        for (int64_t j = 0; j < count; j++) {
            slope += (double)gradient[j] * (double)direction[j];
            size += fabs((double)gradient[j] * (double)direction[j]);
        }
        if (!(fabs(slope - expected) <= SLOPE_TOLERANCE * (size + 0.1)))
            fail_msg("%s: '%s' says that input %d has slope %g, differences say %g", name, implementation,
                     input, slope, expected);
    }
    memcpy(values, before, (size_t)count * sizeof *values);
    leati_free(before);
    leati_free(direction);
}

static float *random_like(const leati_desc *desc, leat_rng *rng) {
    float *values = leati_calloc((size_t)leati_desc_count(desc) + 1, sizeof *values);
    assert_non_null(values);
    test_fill(values, leati_desc_count(desc), -1, 1, rng);
    return values;
}

/* --- convolution ------------------------------------------------------------------------------------------------ */

typedef struct conv_case {
    const char *name;
    leati_window window;
    int64_t groups, batch, channels, filters, size[3];
    bool bias;
} conv_case;

#define W2(k, s, d, before, after)                                                                           \
    {                                                                                                        \
        .spatial = 2, .kernel = {k, k}, .stride = {s, s}, .dilation = {d, d},                                \
        .pad_before = {before, before}, .pad_after = {                                                       \
            after,                                                                                           \
            after                                                                                            \
        }                                                                                                    \
    }

static const conv_case conv_cases[] = {
    {"3x3", W2(3, 1, 1, 0, 0), 1, 2, 3, 4, {7, 6}, true},
    {"3x3 without bias", W2(3, 1, 1, 0, 0), 1, 2, 16, 32, {6, 7}, false},
    {"3x3 of one channel", W2(3, 1, 1, 0, 0), 1, 2, 1, 32, {8, 8}, true},
    {"3x3 same", W2(3, 1, 1, 1, 1), 1, 2, 8, 8, {6, 5}, true},
    {"2x2 stride 2, a row left over", W2(2, 2, 1, 0, 0), 1, 2, 3, 5, {7, 7}, true},
    {"3x3 stride 2 same, uneven padding", W2(3, 2, 1, 0, 1), 1, 2, 4, 8, {8, 8}, true},
    {"3x3 dilation 2", W2(3, 1, 2, 0, 0), 1, 2, 4, 8, {9, 8}, true},
    {"3x3 dilation 2 same", W2(3, 1, 2, 2, 2), 1, 1, 3, 2, {6, 6}, true},
    {"1x1", W2(1, 1, 1, 0, 0), 1, 3, 8, 16, {4, 5}, true},
    {"5x5", W2(5, 1, 1, 2, 2), 1, 1, 8, 8, {7, 7}, true},
    {"groups 2", W2(3, 1, 1, 1, 1), 2, 2, 4, 6, {5, 5}, true},
    {"depthwise", W2(3, 1, 1, 1, 1), 8, 2, 8, 8, {6, 6}, true},
    {"depthwise, 2 filters a channel", W2(3, 2, 1, 0, 1), 3, 2, 3, 6, {6, 6}, true},
    {"one axis",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {1}, .pad_before = {2}},
     1,
     2,
     3,
     4,
     {9},
     true},
    {"one axis, causal, dilation 2",
     {.spatial = 1, .kernel = {3}, .stride = {1}, .dilation = {2}, .pad_before = {4}},
     1,
     2,
     8,
     8,
     {9},
     false},
    {"three axes, one dilated",
     {.spatial = 3, .kernel = {2, 2, 2}, .stride = {1, 1, 1}, .dilation = {1, 2, 1}},
     1,
     3,
     2,
     2,
     {4, 6, 4},
     true},
    {"three axes, strides, groups",
     {.spatial = 3,
      .kernel = {1, 2, 3},
      .stride = {2, 2, 2},
      .dilation = {1, 1, 1},
      .pad_before = {0, 0, 1},
      .pad_after = {0, 1, 1}},
     2,
     2,
     4,
     6,
     {5, 5, 4},
     true},
    {"three axes, depthwise",
     {.spatial = 3, .kernel = {2, 2, 2}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}},
     8,
     1,
     8,
     8,
     {4, 3, 4},
     false},
    {"one axis, depthwise, 2 filters a channel, stride 2",
     {.spatial = 1, .kernel = {3}, .stride = {2}, .dilation = {1}, .pad_after = {1}},
     5,
     2,
     5,
     10,
     {8},
     true},
    {"one axis, groups, dilation 3",
     {.spatial = 1, .kernel = {2}, .stride = {1}, .dilation = {3}},
     4,
     2,
     16,
     8,
     {9},
     true},
    {"2x2 stride 3, dilation 2", W2(2, 3, 2, 0, 0), 1, 2, 3, 5, {8, 10}, true},
    {"depthwise, dilation 2, 3 filters a channel", W2(3, 1, 2, 2, 2), 8, 2, 8, 24, {7, 6}, true},
    {"depthwise 5x5 of many channels", W2(5, 1, 1, 2, 2), 45, 2, 45, 45, {7, 6}, true},
    {"depthwise, dilation 2, stride 3", W2(2, 3, 2, 1, 0), 33, 2, 33, 33, {9, 8}, false},
    {"depthwise, dilation 3, all but padding", W2(3, 1, 3, 3, 3), 8, 3, 8, 8, {2, 4}, true},
    {"groups 2 of 16 channels, 5x5", W2(5, 1, 1, 2, 2), 2, 2, 32, 32, {7, 7}, false},
    {"three axes",
     {.spatial = 3,
      .kernel = {2, 3, 2},
      .stride = {1, 2, 1},
      .dilation = {1, 1, 1},
      .pad_before = {0, 1, 0},
      .pad_after = {0, 1, 1}},
     1,
     2,
     3,
     4,
     {4, 5, 4},
     true},
    {"3x3 same of whole panels", W2(3, 1, 1, 1, 1), 1, 2, 32, 64, {5, 6}, true},
    {"3x3 valid of whole panels, many tiles", W2(3, 1, 1, 0, 0), 1, 2, 16, 32, {45, 44}, true},
    {"3x3 same of whole panels, tiles of 4x4, cut", W2(3, 1, 1, 1, 1), 1, 2, 64, 32, {23, 21}, true},
    {"3x3 of more channels than a group", W2(3, 1, 1, 2, 0), 1, 3, 80, 96, {4, 3}, false},
    {"3x3 of whole panels, cut", W2(3, 1, 1, 2, 2), 1, 1, 64, 32, {1, 1}, true},
    {"1x1 of whole panels", W2(1, 1, 1, 0, 0), 1, 3, 32, 32, {28, 28}, true},
    {"1x1 of whole panels, stride 2", W2(1, 2, 1, 0, 0), 1, 2, 64, 32, {5, 6}, true},
    {"1x1 of many channels, stride 3", W2(1, 3, 1, 0, 0), 1, 2, 1056, 32, {4, 7}, false},
    {"5x5 of whole panels, stride 2", W2(5, 2, 1, 2, 1), 1, 2, 32, 64, {8, 9}, true},
    {"3x3 of whole panels, dilation 2", W2(3, 1, 2, 2, 2), 1, 1, 64, 32, {7, 6}, true},
    {"three axes of whole panels",
     {.spatial = 3,
      .kernel = {2, 3, 1},
      .stride = {1, 1, 1},
      .dilation = {1, 1, 1},
      .pad_before = {0, 1, 0},
      .pad_after = {1, 1, 0}},
     1,
     2,
     32,
     32,
     {3, 4, 5},
     true},
};

static void describe_conv(const conv_case *c, leati_desc inputs[3], leati_attrs *attrs) {
    int spatial = c->window.spatial;
    *attrs = (leati_attrs){.conv = {.window = c->window, .groups = c->groups}};
    inputs[0] = inputs[1] = (leati_desc){.rank = spatial + 2};
    inputs[0].shape[0] = c->batch;
    for (int i = 0; i < spatial; i++) {
        inputs[0].shape[1 + i] = attrs->conv.size[i] = c->size[i];
        inputs[1].shape[i] = c->window.kernel[i];
    }
    inputs[0].shape[spatial + 1] = c->channels;
    inputs[1].shape[spatial] = c->channels / c->groups;
    inputs[1].shape[spatial + 1] = c->filters;
    inputs[2] = leati_desc_make(LEAT_F32, 1, &c->filters);
}

static void check_conv_gradients(const conv_case *c, test_task *forward, leat_rng *rng) {
    float *weights[LEATI_MAX_OUTPUTS] = {random_like(&forward->outputs[0], rng)};
    test_task data, kernel;
    test_task_init(&data, LEATI_OP_CONV_BWD_DATA, &forward->attrs, 2,
                   (leati_desc[]){forward->outputs[0], forward->inputs[1]}, 0, 2);
    test_task_init(&kernel, LEATI_OP_CONV_BWD_WEIGHTS, &forward->attrs, 2,
                   (leati_desc[]){forward->inputs[0], forward->outputs[0]}, c->bias ? 0 : 2, 2);
    memcpy(data.args[0], weights[0], leati_desc_bytes(&data.inputs[0]));
    memcpy(data.args[1], forward->args[1], leati_desc_bytes(&data.inputs[1]));
    memcpy(kernel.args[0], forward->args[0], leati_desc_bytes(&kernel.inputs[0]));
    memcpy(kernel.args[1], weights[0], leati_desc_bytes(&kernel.inputs[1]));
    compare_all(&data, c->name, TOLERANCE); /* all agree with ref, which agrees with finite differences */
    compare_all(&kernel, c->name, TOLERANCE);
    check_slope(forward, weights, 0, test_output(&data, 0), c->name, data.implementation, rng);
    check_slope(forward, weights, 1, test_output(&kernel, 0), c->name, kernel.implementation, rng);
    if (c->bias)
        check_slope(forward, weights, 2, test_output(&kernel, 1), c->name, kernel.implementation, rng);
    test_task_fini(&data);
    test_task_fini(&kernel);
    leati_free(weights[0]);
}

static void test_conv(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(1, 0, 0);
    int served = 0;
    for (size_t i = 0; i < sizeof conv_cases / sizeof conv_cases[0]; i++) {
        const conv_case *c = &conv_cases[i];
        leati_desc inputs[3];
        leati_attrs attrs;
        test_task t;
        describe_conv(c, inputs, &attrs);
        test_task_init(&t, LEATI_OP_CONV, &attrs, c->bias ? 3 : 2, inputs, 0, 2);
        test_fill_inputs(&t, -1, 1, &rng);
        served += compare_all(&t, c->name, TOLERANCE);
        check_conv_gradients(c, &t, &rng);
        test_task_fini(&t);
    }
    assert_true(served >= (int)(sizeof conv_cases / sizeof conv_cases[0]));
#if LEAT_ONEDNN
    assert_true(served > (int)(sizeof conv_cases / sizeof conv_cases[0])); /* oneDNN served some */
#endif
}

/* Computed by hand: (1, 1, 3) with kernel (2) of 10, 1 gives 12, 23; with one more element of padding in front 1,
 * 12, 23. */
static void test_conv_by_hand(void **state) {
    (void)state;
    leati_attrs attrs = {
        .conv = {.window = {.spatial = 1, .kernel = {2}, .stride = {1}, .dilation = {1}, .pad_before = {1}},
                 .groups = 1}};
    leati_desc inputs[] = {DIMS(1, 3, 1), DIMS(2, 1, 1)};
    test_task t;
    test_task_init(&t, LEATI_OP_CONV, &attrs, 2, inputs, 0, 1);
    memcpy(t.args[0], (float[]){1, 2, 3}, 12);
    memcpy(t.args[1], (float[]){10, 1}, 8);
    test_run_ref(&t);
    assert_int_equal(t.outputs[0].shape[1], 3);
    const float expected[] = {1, 12, 23};
    for (int i = 0; i < 3; i++) assert_true(test_output(&t, 0)[i] == expected[i]);
    test_task_fini(&t);
}

/* --- patches ---------------------------------------------------------------------------------------------------- */

/* Patches for the windows of the convolution cases: every implementation copies, and adds in the same order, so
 * results are equal. */
static void test_patches(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(5, 0, 0);
    for (size_t i = 0; i < sizeof conv_cases / sizeof conv_cases[0]; i++) {
        const conv_case *c = &conv_cases[i];
        leati_desc inputs[3];
        leati_attrs attrs;
        test_task t, bwd;
        describe_conv(c, inputs, &attrs);
        test_task_init(&t, LEATI_OP_PATCHES, &attrs, 1, inputs, 0, 2);
        test_task_init(&bwd, LEATI_OP_PATCHES_BWD, &attrs, 1, t.outputs, 0, 2);
        test_fill_inputs(&t, -1, 1, &rng);
        test_fill_inputs(&bwd, -1, 1, &rng);
        assert_true(leati_desc_same_shape(&bwd.outputs[0], &inputs[0]));
        assert_true(compare_all(&t, c->name, 0) > 0);
        assert_true(compare_all(&bwd, c->name, TOLERANCE) > 0);
        test_task_fini(&t);
        test_task_fini(&bwd);
    }
}

/* (1, 3, 1) under a window of two gives the patches 1 2 and 2 3. */
static void test_patches_by_hand(void **state) {
    (void)state;
    leati_attrs attrs = {.conv = {.window = {.spatial = 1, .kernel = {2}, .stride = {1}, .dilation = {1}}}};
    leati_desc inputs[] = {DIMS(2, 3, 1)};
    const float expected[] = {1, 2, 4, 5, 2, 3, 5, 6};
    test_task t;
    test_task_init(&t, LEATI_OP_PATCHES, &attrs, 1, inputs, 0, 1);
    memcpy(t.args[0], (float[]){1, 2, 3, 4, 5, 6}, 24);
    test_run_ref(&t);
    assert_int_equal(test_output_count(&t, 0), 8);
    for (int i = 0; i < 8; i++) assert_true(test_output(&t, 0)[i] == expected[i]);
    test_task_fini(&t);
}

/* --- pooling ---------------------------------------------------------------------------------------------------- */

typedef struct pool_case {
    const char *name;
    leati_window window;
    leati_desc src;
} pool_case;

static const pool_case pool_cases[] = {
    {"2x2", W2(2, 2, 1, 0, 0), DIMS(2, 6, 8, 16)},
    {"2x2 of three channels, a row left over", W2(2, 2, 1, 0, 0), DIMS(2, 7, 5, 3)},
    {"3x3 stride 2 same", W2(3, 2, 1, 0, 1), DIMS(2, 8, 8, 8)},
    {"3x3 stride 1 same", W2(3, 1, 1, 1, 1), DIMS(1, 5, 6, 11)},
    {"2x2 stride 3", W2(2, 3, 1, 0, 0), DIMS(1, 8, 8, 4)},
    {"one axis",
     {.spatial = 1, .kernel = {3}, .stride = {2}, .dilation = {1}, .pad_after = {1}},
     DIMS(2, 9, 6)},
    {"three axes",
     {.spatial = 3, .kernel = {2, 2, 2}, .stride = {2, 2, 1}, .dilation = {1, 1, 1}},
     DIMS(1, 4, 4, 3, 8)},
};

/* Fills with values that differ by far more than the step of the finite differences, so that no maximum changes its
 * position. */
static void fill_apart(float *to, int64_t count, leat_rng *rng) {
    for (int64_t i = 0; i < count; i++) to[i] = (float)i * 0.05f;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)leat_rng_below(rng, (uint64_t)i + 1);
        float swap = to[i];
        to[i] = to[j];
        to[j] = swap;
    }
}

/* Runs each implementation of the backward pass after the forward pass of the same backend. */
static int check_pool_backward(const pool_case *c, test_task *forward, leat_rng *rng) {
    float *weights[LEATI_MAX_OUTPUTS] = {random_like(&forward->outputs[0], rng)};
    int served = 0;
    test_task t;
    test_task_init(&t, LEATI_OP_POOLING_BWD, &forward->attrs, 4,
                   (leati_desc[]){forward->inputs[0], forward->outputs[0], forward->outputs[0],
                                  forward->outputs[1]},
                   0, 2);
    for (size_t b = 0; test_backends[b]; b++)
        for (size_t k = 0; k < test_backends[b]->count; k++) {
            const leati_implementation *first = &test_backends[b]->implementations[k];
            leati_kernel kernel = {0};
            char why[LEATI_REASON_BYTES] = "";
            if (first->op != LEATI_OP_POOLING || !test_run(forward, first, why, &kernel)) continue;
            memcpy(t.args[0], forward->args[0], leati_desc_bytes(&t.inputs[0]));
            memcpy(t.args[1], test_output(forward, 0), leati_desc_bytes(&t.inputs[1]));
            memcpy(t.args[2], weights[0], leati_desc_bytes(&t.inputs[2]));
            float *own = t.args[3];
            t.args[3] = test_output(forward, 1);
            t.task.forward = &kernel;
            served += compare_all(&t, c->name, TOLERANCE);
            t.args[3] = own;
            check_slope(forward, weights, 0, test_output(&t, 0), c->name, t.implementation, rng);
            if (kernel.destroy) kernel.destroy(kernel.state);
        }
    leati_free(weights[0]);
    test_task_fini(&t);
    return served;
}

static void test_pooling(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(2, 0, 0);
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < sizeof pool_cases / sizeof pool_cases[0]; i++) {
            const pool_case *c = &pool_cases[i];
            leati_attrs attrs = {
                .pooling = {.window = c->window, .kind = kind ? LEATI_POOL_AVERAGE : LEATI_POOL_MAX}};
            test_task t;
            test_task_init(&t, LEATI_OP_POOLING, &attrs, 1, &c->src, 0, 2);
            fill_apart(t.args[0], leati_desc_count(&c->src), &rng);
            compare_all(&t, c->name, TOLERANCE);
            assert_true(check_pool_backward(c, &t, &rng) >= 1);
            test_task_fini(&t);
        }
}

/* Where several elements are the maximum, the first receives the whole gradient, in every implementation. */
static void test_pooling_ties(void **state) {
    (void)state;
    leati_attrs attrs = {.pooling = {.window = W2(2, 2, 1, 0, 0), .kind = LEATI_POOL_MAX}};
    leati_desc src = DIMS(2, 4, 4, 16);
    test_task forward;
    test_task_init(&forward, LEATI_OP_POOLING, &attrs, 1, &src, 0, 2);
    /* pairs of pixels in a row are equal */
    for (int64_t i = 0; i < leati_desc_count(&src); i++) forward.args[0][i] = (float)(i / 16 / 2 % 2);
    pool_case c = {.name = "ties"};
    for (size_t b = 0; test_backends[b]; b++)
        for (size_t k = 0; k < test_backends[b]->count; k++) {
            leati_kernel kernel = {0};
            char why[LEATI_REASON_BYTES] = "";
            if (test_backends[b]->implementations[k].op != LEATI_OP_POOLING) continue;
            if (!test_run(&forward, &test_backends[b]->implementations[k], why, &kernel)) continue;
            test_task t;
            test_task_init(&t, LEATI_OP_POOLING_BWD, &attrs, 4,
                           (leati_desc[]){src, forward.outputs[0], forward.outputs[0], forward.outputs[1]}, 0,
                           2);
            memcpy(t.args[0], forward.args[0], leati_desc_bytes(&src));
            memcpy(t.args[1], test_output(&forward, 0), leati_desc_bytes(&t.inputs[1]));
            for (int64_t i = 0; i < leati_desc_count(&t.inputs[2]); i++) t.args[2][i] = 1;
            float *own = t.args[3];
            t.args[3] = test_output(&forward, 1);
            t.task.forward = &kernel;
            compare_all(&t, c.name, 0);
            t.args[3] = own;
            for (int64_t i = 0; i < leati_desc_count(&src); i++) {
                int64_t pixel = i / 16, row = pixel / 4 % 4, column = pixel % 4;
                assert_true(test_output(&t, 0)[i] == (row % 2 == 0 && column % 2 == 0 ? 1.0f : 0.0f));
            }
            test_task_fini(&t);
            if (kernel.destroy) kernel.destroy(kernel.state);
        }
    test_task_fini(&forward);
}

/* --- batch normalisation ---------------------------------------------------------------------------------------- */

/* The gradient through max(dst, 0), which `rectified` is: equal to the gradient with diff_dst set to 0 where
 * rectified is 0. */
static void check_rectified_norm(test_task *plain, leat_rng *rng) {
    test_task t;
    leati_desc inputs[6];
    int64_t count = leati_desc_count(&plain->inputs[4]);
    memcpy(inputs, plain->inputs, 5 * sizeof *inputs);
    inputs[5] = inputs[4];
    test_task_init(&t, LEATI_OP_BATCH_NORM_BWD, &plain->attrs, 6, inputs, 0, 2);
    test_fill_inputs(&t, -1, 1, rng);
    for (int i = 0; i < 4; i++)
        if (plain->args[i]) memcpy(t.args[i], plain->args[i], leati_desc_bytes(&inputs[i]));
    compare_all(&t, "batch_norm_bwd, rectified", 1e-4);
    for (int64_t i = 0; i < count; i++) plain->args[4][i] = t.args[5][i] > 0 ? t.args[4][i] : 0;
    test_run_ref(plain);
    test_run_ref(&t);
    for (int64_t i = 0; i < count; i++) {
        assert_true(test_output(&t, 0)[i] == test_output(plain, 0)[i]);
        assert_true(test_output(&t, 3)[i] == plain->args[4][i]);
    }
    test_task_fini(&t);
}

static void check_norm(const leati_desc *src, bool gamma, bool beta, leat_rng *rng) {
    int64_t channels = src->shape[src->rank - 1];
    leati_desc channel = leati_desc_make(LEAT_F32, 1, &channels), absent = ABSENT;
    leati_attrs attrs = {.batch_norm = {1e-3f}};
    test_task t, bwd, apply;
    test_task_init(&t, LEATI_OP_BATCH_NORM, &attrs, 3,
                   (leati_desc[]){*src, gamma ? channel : absent, beta ? channel : absent}, 0, 2);
    test_fill_inputs(&t, -1, 1.5f, rng);
    compare_all(&t, "batch_norm", TOLERANCE);
    test_task_init(&apply, LEATI_OP_BATCH_NORM_APPLY, &attrs, 5,
                   (leati_desc[]){*src, t.inputs[1], t.inputs[2], channel, channel}, 0, 2);
    test_fill_inputs(&apply, 0.2f, 1.5f, rng);
    compare_all(&apply, "batch_norm_apply", TOLERANCE);
    test_task_init(&bwd, LEATI_OP_BATCH_NORM_BWD, &attrs, 5,
                   (leati_desc[]){*src, t.inputs[1], channel, channel, *src}, 0, 2);
    float *weights[LEATI_MAX_OUTPUTS] = {random_like(src, rng)};
    memcpy(bwd.args[0], t.args[0], leati_desc_bytes(src));
    if (gamma) memcpy(bwd.args[1], t.args[1], leati_desc_bytes(&channel));
    memcpy(bwd.args[2], test_output(&t, 1), leati_desc_bytes(&channel));
    memcpy(bwd.args[3], test_output(&t, 2), leati_desc_bytes(&channel));
    memcpy(bwd.args[4], weights[0], leati_desc_bytes(src));
    compare_all(&bwd, "batch_norm_bwd", 1e-4); /* the sums nearly cancel */
    for (int i = 0; i < 3; i++)
        if (i == 0 || (i == 1 ? gamma : beta))
            check_slope(&t, weights, i, test_output(&bwd, i), "batch_norm", bwd.implementation, rng);
    check_rectified_norm(&bwd, rng);
    leati_free(weights[0]);
    test_task_fini(&t);
    test_task_fini(&apply);
    test_task_fini(&bwd);
}

static void test_batch_norm(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(3, 0, 0);
    const leati_desc shapes[] = {DIMS(3, 4, 5, 8), DIMS(16, 5), DIMS(4, 6, 3),      DIMS(2, 7, 7, 32),
                                 DIMS(33, 70),     DIMS(1, 4),  DIMS(2, 96, 96, 36)};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int which = 0; which < 4; which++) check_norm(&shapes[i], which & 1, which & 2, &rng);
}

/* --- recurrent cells ------------------------------------------------------------------------------------------------------- */

typedef struct rnn_case {
    const char *name;
    int64_t batch, steps, features, units;
    bool bias, states, masks, go_backwards, only_sequence;
    leati_eltwise activation, recurrent;
} rnn_case;

#define TANH                                                                                                 \
    { LEATI_FN_TANH, 0, 0, 0 }
#define SIGMOID                                                                                              \
    { LEATI_FN_SIGMOID, 0, 0, 0 }
#define HARD_SIGMOID                                                                                         \
    { LEATI_FN_HARD_SIGMOID, 0.2f, 0.5f, 0 }

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
    for (int i = 0; i < LEATI_RNN_GRADIENTS && c->batch < 40 && !bends; i++)
        if (in[i].rank >= 0) check_slope(t, weights, i, test_output(&bwd, i), name, bwd.implementation, rng);
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
    compare_but(&t, name, TOLERANCE, 1u << LEATI_RNN_OUT_WORKSPACE);
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
            compare_all(&t, "predict", TOLERANCE);
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

/* --- products --------------------------------------------------------------------------------------------------- */

static void test_matmul(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(6, 0, 0);
    const int64_t sizes[][3] = {{1, 1, 1},      {1, 64, 128},    {3, 5, 7},       {16, 9, 33},
                                {64, 128, 10},  {130, 300, 70},  {1, 200, 3},     {1024, 70, 32},
                                {1280, 33, 64}, {2, 40, 96},     {5, 33, 32},     {7, 9, 64},
                                {12, 31, 160},  {300, 530, 100}, {3, 3000, 2900}, {100, 10, 4},
                                {40, 3, 900}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int which = 0; which < 8; which++) {
            int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
            leati_attrs attrs = {.matmul = {.transpose_a = which & 1, .transpose_b = which & 2}};
            leati_desc inputs[] = {DIMS(which & 1 ? k : m, which & 1 ? m : k),
                                   DIMS(which & 2 ? n : k, which & 2 ? k : n), DIMS(n)};
            test_task t;
            test_task_init(&t, LEATI_OP_MATMUL, &attrs, which & 4 ? 3 : 2, inputs, 0, 2);
            test_fill_inputs(&t, -1, 1, &rng);
            assert_true(compare_all(&t, "matmul", TOLERANCE) >= 1);
            test_task_fini(&t);
        }
}

/* An invalid window or invalid weights give an error message with the numbers. */
static void test_refusals(void **state) {
    (void)state;
    const struct {
        leati_op op;
        leati_attrs attrs;
        leati_desc in[3];
        leat_status status;
        const char *says;
    } cases[] = {
        {LEATI_OP_CONV,
         {.conv = {.window = W2(3, 0, 1, 0, 0), .groups = 1}},
         {DIMS(1, 5, 5, 2), DIMS(3, 3, 2, 4)},
         LEAT_EINVAL,
         "stride 0"},
        {LEATI_OP_CONV,
         {.conv = {.window = W2(3, 1, 1, 0, 0), .groups = 1}},
         {DIMS(1, 2, 5, 2), DIMS(3, 3, 2, 4)},
         LEAT_ESHAPE,
         "a window of 3 elements"},
        {LEATI_OP_CONV,
         {.conv = {.window = W2(3, 1, 1, 0, 0), .groups = 1}},
         {DIMS(1, 5, 5, 2), DIMS(3, 3, 3, 4)},
         LEAT_ESHAPE,
         "expected weights (3, 3, 2, 4), received (3, 3, 3, 4)"},
        {LEATI_OP_CONV,
         {.conv = {.window = W2(3, 1, 1, 0, 0), .groups = 3}},
         {DIMS(1, 5, 5, 2), DIMS(3, 3, 2, 4)},
         LEAT_ESHAPE,
         "3 groups for 2 channels"},
        {LEATI_OP_CONV,
         {.conv = {.window = W2(INT64_MAX, 1, 2, 0, 0), .groups = 1}},
         {DIMS(1, 5, 5, 2), DIMS(3, 3, 2, 4)},
         LEAT_EINVAL,
         "kernel 9223372036854775807"},
        {LEATI_OP_POOLING,
         {.pooling = {.window = W2(2, 2, 1, 2, 0)}},
         {DIMS(1, 5, 5, 2)},
         LEAT_EINVAL,
         "padding 2"},
        {LEATI_OP_BATCH_NORM,
         {.batch_norm = {1e-3f}},
         {DIMS(4, 5), DIMS(4), DIMS(5)},
         LEAT_ESHAPE,
         "gamma (5)"},
        {LEATI_OP_RNN,
         {.rnn = {.activation = TANH, .recurrent_activation = SIGMOID}},
         {DIMS(2, 3, 4), DIMS(4, 8), DIMS(3, 12)},
         LEAT_ESHAPE,
         "expected kernel (4, 12), received (4, 8)"},
        {LEATI_OP_RNN,
         {.rnn = {.activation = {LEATI_FN_SQUARE, 0, 0, 0}, .recurrent_activation = SIGMOID}},
         {DIMS(2, 3, 4), DIMS(4, 12), DIMS(3, 12)},
         LEAT_ENOTSUP,
         "activation 'square'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leati_desc out[LEATI_MAX_OUTPUTS];
        leat_error err = {0};
        int count = cases[i].op == LEATI_OP_POOLING ? 1 : cases[i].op == LEATI_OP_CONV ? 2 : 3;
        assert_int_equal(leati_op_row_of(cases[i].op)->infer(&cases[i].attrs, count, cases[i].in, out, &err),
                         cases[i].status);
        if (!strstr(err.message, cases[i].says))
            fail_msg("expected '%s' in '%s'", cases[i].says, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_by_hand),
        cmocka_unit_test(test_patches),
        cmocka_unit_test(test_patches_by_hand),
        cmocka_unit_test(test_pooling),
        cmocka_unit_test(test_pooling_ties),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_rnn),
        cmocka_unit_test(test_rnn_far),
        cmocka_unit_test(test_rnn_predict),
        cmocka_unit_test(test_rnn_steps_by_hand),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
