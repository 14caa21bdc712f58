/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of nodes on a device (engine/plan/fuse_elementwise.c and its neighbours): what is joined, what must not be,
 * and random graphs, which compute the same as on the host. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/backend.h"
#include "backends/ref/ref.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "engine/plan/plan.h"
#include "leat/rng.h"

enum { MOST_INPUTS = 4, MOST_KEPT = 40, MOST_VALUES = 64, STATE_FLOATS = 64, ROWS = 6, COLUMNS = 8 };

static leati_device *device;

/* A graph, built by a function of `rng`, and its plan. */
typedef struct bench {
    leati_graph *graph;
    leati_arena *arena;
    leati_plan *plan;
    leati_device *device; /* NULL: the host */
    float *inputs[MOST_INPUTS], *states;
    void *device_states;
    int kept_count;
    leati_value kept[MOST_KEPT];
    leat_rng rng;
} bench;

typedef void (*builder)(bench *b);

static leati_value input(bench *b, int k, int rank, const int64_t *shape) {
    leati_desc desc = leati_desc_make(LEAT_F32, rank, shape);
    leat_rng rng = leat_rng_for(5, (uint64_t)k, 0);
    int64_t count = leati_desc_count(&desc);
    b->inputs[k] = leati_calloc_aligned((size_t)count * sizeof(float));
    assert_non_null(b->inputs[k]);
    for (int64_t i = 0; i < count; ++i) b->inputs[k][i] = (float)(2 * leat_rng_uniform(&rng) - 1);
    return leati_graph_input(b->graph, k, &desc);
}

static leati_value state(bench *b) {
    leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){ROWS, COLUMNS});
    return leati_graph_state(b->graph, LEATI_SLAB_STATES, 0, &desc);
}

static void keep(bench *b, leati_value value) {
    leati_graph_keep(b->graph, value);
    b->kept[b->kept_count++] = value;
}

static void start(bench *b, leati_device *on, builder build, uint64_t seed) {
    leat_error err = {0};
    static const leati_backend *const backends[] = {&leati_backend_ref, NULL};
    *b = (bench){.device = on, .rng = leat_rng_for(seed, 0, 0)};
    assert_int_equal(leati_graph_create(&b->graph, &err), LEAT_OK);
    assert_int_equal(leati_arena_create_on(&b->arena, on, &err), LEAT_OK);
    assert_non_null(b->states = leati_calloc_aligned(STATE_FLOATS * sizeof(float)));
    for (int i = 0; i < STATE_FLOATS; ++i) b->states[i] = 0.01f * (float)i;
    leati_plan_options options = {.threads = 1, .backends = backends, .arena = b->arena};
    options.slabs[LEATI_SLAB_STATES] = b->states;
    if (on) {
        size_t bytes = STATE_FLOATS * sizeof(float);
        assert_int_equal(on->class->allocate(on, bytes, &b->device_states, &err), LEAT_OK);
        assert_int_equal(on->class->copy_in(on, b->device_states, b->states, bytes, &err), LEAT_OK);
        options.slabs[LEATI_SLAB_STATES] = b->device_states;
    }
    build(b);
    if (leati_graph_check(b->graph, &err) != LEAT_OK) fail_msg("%s", err.message);
    if (leati_plan_create(&b->plan, &b->graph, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
}

static void finish(bench *b) {
    leati_plan_destroy(&b->plan);
    leati_arena_destroy(&b->arena);
    if (b->device) b->device->class->release(b->device, b->device_states);
    leati_free(b->states);
    for (int i = 0; i < MOST_INPUTS; ++i) leati_free(b->inputs[i]);
}

/* Runs both plans and compares what they keep. */
static void compare(bench *got, bench *expected, uint64_t step) {
    leat_error err = {0};
    bench *both[] = {got, expected};
    for (int i = 0; i < 2; ++i)
        if (leati_plan_run(both[i]->plan, (const void *const *)both[i]->inputs, 3, step, &err) != LEAT_OK)
            fail_msg("%s", err.message);
    for (int k = 0; k < got->kept_count; ++k) {
        leat_tensor a = leati_plan_output(got->plan, got->kept[k]);
        leat_tensor b = leati_plan_output(expected->plan, expected->kept[k]);
        const float *x = a.data, *y = b.data;
        for (int64_t i = 0; i < leat_tensor_count(&a); ++i) {
            double distance = fabs((double)x[i] - (double)y[i]), size = fmax(1, fabs((double)y[i]));
            if (!(distance <= 1e-4 * size) && !(isnan(x[i]) && isnan(y[i])) && x[i] != y[i])
                fail_msg("output %d [%d]: got %.9g, expected %.9g", k, (int)i, (double)x[i], (double)y[i]);
        }
    }
}

/* Returns the number of steps of the device's plan. */
static int32_t check_graph(builder build, uint64_t seed) {
    bench on_device, on_host;
    start(&on_device, device, build, seed);
    start(&on_host, NULL, build, seed);
    for (uint64_t step = 0; step < 3; ++step) compare(&on_device, &on_host, step);
    int32_t steps = leati_plan_step_count(on_device.plan);
    finish(&on_device);
    finish(&on_host);
    return steps;
}

/* ---- Gradients of batch normalizations ---- */

static leati_value norm(bench *b, leati_value x, leati_value gamma, leati_value beta) {
    leati_attrs attrs = {.batch_norm = {.epsilon = 1e-3f}};
    return leati_graph_node(b->graph, LEATI_OP_BATCH_NORM, &attrs, 3, (leati_value[]){x, gamma, beta}, NULL);
}

/* Two residual blocks of matrices with so many rows that several blocks of threads share them. */
static void residual_norms(bench *b, int64_t channels) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){700, channels}), gamma = input(b, 1, 1, &channels);
    leati_value beta = input(b, 2, 1, &channels), kernel = input(b, 3, 2, (int64_t[]){channels, channels});
    leati_value h, wrt[] = {x, gamma, kernel}, diff[3];
    leati_value projected = leati_matmul(g, x, false, kernel, false, LEATI_NONE);
    leati_eltwise relu = {.function = LEATI_FN_RELU, .b = INFINITY};
    h = leati_eltwise_of(g, norm(b, x, gamma, beta), relu);
    for (int block = 0; block < 3; ++block) {
        leati_value y = norm(b, leati_matmul(g, h, false, kernel, false, LEATI_NONE), gamma, beta);
        if (block == 2) h = norm(b, projected, gamma, beta);
        h = leati_eltwise_of(g, leati_add(g, y, h), relu);
    }
    leat_error err = {0};
    leati_value loss = leati_reduce_all(g, LEATI_REDUCE_MEAN, leati_mul(g, h, leati_mul(g, h, x)));
    assert_int_equal(leati_graph_differentiate(g, loss, 3, wrt, diff, &err), LEAT_OK);
    keep(b, loss);
    for (int i = 0; i < 3; ++i) keep(b, diff[i]);
}

static void residual_norms_of_8(bench *b) {
    residual_norms(b, 8);
}
static void residual_norms_of_12(bench *b) {
    residual_norms(b, 12);
}
static void residual_norms_of_5(bench *b) {
    residual_norms(b, 5);
}

static int steps_named(const bench *b, const char *name) {
    int count = 0;
    for (int32_t i = 0; i < leati_plan_step_count(b->plan); ++i) {
        leati_plan_step step;
        leati_plan_step_get(b->plan, i, &step);
        count += strcmp(step.op, name) == 0;
    }
    return count;
}

static void gradients_of_norms_add_up(void **unused) {
    bench b;
    (void)unused;
    start(&b, device, residual_norms_of_8, 1);
    assert_int_equal(steps_named(&b, "add+relu+batch_norm_bwd"), 2);
    assert_int_equal(steps_named(&b, "batch_norm+add+relu"), 3);
    finish(&b);
    check_graph(residual_norms_of_8, 1);
    check_graph(residual_norms_of_12, 1);
    check_graph(residual_norms_of_5, 1);
}

/* ---- What is joined ---- */

static void residual(bench *b) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){ROWS, COLUMNS}), bias = input(b, 1, 1, (int64_t[]){COLUMNS});
    leati_value y = leati_function_of(g, leati_add(g, x, bias), LEATI_FN_GELU);
    y = leati_add(g, leati_dropout(g, y, 0.25f, 0, 7), x);
    keep(b, leati_mul(g, y, leati_scalar(g, 0.5f)));
}

static void residual_is_one_step(void **unused) {
    (void)unused;
    assert_int_equal(check_graph(residual, 1), 1);
}

/* A value that another kind of op reads is computed before that op, and stays readable. */
static void reader_between(bench *b) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){ROWS, COLUMNS});
    leati_value y = leati_function_of(g, leati_linear(g, x, 2, 1), LEATI_FN_TANH);
    leati_value mean = leati_reduce_last(g, LEATI_REDUCE_MEAN, y, true);
    keep(b, leati_function_of(g, leati_sub(g, y, mean), LEATI_FN_SQUARE));
}

static void reader_between_divides(void **unused) {
    (void)unused;
    assert_int_equal(check_graph(reader_between, 1), 3);
}

/* What a node reads of a state is what the state was at that point of the program. */
static void write_between(bench *b) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){ROWS, COLUMNS}), s = state(b);
    leati_value before = leati_add(g, x, s);
    leati_graph_store(g, s, leati_linear(g, x, 3, 0));
    keep(b, leati_mul(g, before, s));
    keep(b, s);
}

static void write_between_divides(void **unused) {
    (void)unused;
    assert_true(check_graph(write_between, 1) >= 2);
}

/* More draws, values, inputs and steps than one kernel has room for. */
static void long_chain(bench *b) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){ROWS, COLUMNS}), values[MOST_VALUES];
    values[0] = x;
    for (int i = 1; i < 40; ++i) {
        values[i] = leati_function_of(g, leati_add(g, values[i - 1], values[i / 2]), LEATI_FN_TANH);
        if (i % 8 == 0) values[i] = leati_dropout(g, values[i], 0.5f, 0, (uint64_t)i);
    }
    keep(b, values[39]);
}

static void long_chain_is_divided(void **unused) {
    (void)unused;
    int32_t steps = check_graph(long_chain, 1);
    assert_in_range(steps, 2, 20);
}

/* ---- Averages ---- */

static leati_value row_state(bench *b, int row) {
    leati_desc desc = leati_desc_make(LEAT_F32, 1, (int64_t[]){COLUMNS});
    return leati_graph_state(b->graph, LEATI_SLAB_STATES, (size_t)row * COLUMNS * sizeof(float), &desc);
}

/* Three averages, with the second of a linear function, and something else between them; then a reader. */
static void averages(bench *b) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){ROWS, COLUMNS});
    leati_value mean = leati_reduce_of(g, LEATI_REDUCE_MEAN, x, 1, false);
    leati_value most = leati_reduce_of(g, LEATI_REDUCE_MAX, x, 1, false);
    leati_moving_average(g, row_state(b, 0), mean, 0.9f);
    leati_moving_average(g, row_state(b, 2), leati_linear(g, most, 1.25f, 0.5f), 0.75f);
    keep(b, leati_function_of(g, leati_add(g, x, mean), LEATI_FN_TANH));
    leati_moving_average(g, row_state(b, 5), most, 0.5f);
    for (int row = 0; row < 6; ++row) keep(b, row_state(b, row));
}

static void averages_are_one_step(void **unused) {
    (void)unused;
    assert_int_equal(check_graph(averages, 1), 4);
}

/* Averages of one state, and a reader between, keep their order. */
static void dependent_averages(bench *b) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 1, 1, (int64_t[]){COLUMNS}), s = row_state(b, 1);
    leati_moving_average(g, s, x, 0.9f);
    leati_moving_average(g, s, leati_linear(g, x, 2, 0), 0.5f);
    keep(b, leati_linear(g, s, 2, 0));
    leati_moving_average(g, s, x, 0.25f);
    leati_moving_average(g, row_state(b, 0), s, 0.25f);
    keep(b, s);
    keep(b, row_state(b, 0));
}

static void dependent_averages_stay_in_order(void **unused) {
    (void)unused;
    check_graph(dependent_averages, 1);
}

/* ---- Products ---- */

/* A backward pass of a Dense layer: dx is multiplied by the slope of relu, dw and the gradient of the bias share dy.
 * The sizes are no multiple of a tile, and inner sizes are cut or even. */
static void dense_backward(bench *b) {
    static const int64_t sizes[][3] = {{5, 7, 3},   {12, 16, 8}, {70, 66, 130}, {1030, 12, 12},
                                       {9, 12, 10}, {6, 14, 5},  {4, 15, 8}};
    const int64_t *size = sizes[leat_rng_below(&b->rng, sizeof sizes / sizeof *sizes)];
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){size[0], size[1]}),
                dy = input(b, 1, 2, (int64_t[]){size[0], size[2]});
    leati_value w = input(b, 2, 2, (int64_t[]){size[1], size[2]});
    leati_eltwise f = {.function = leat_rng_below(&b->rng, 2) ? LEATI_FN_RELU : LEATI_FN_TANH, .b = INFINITY};
    leati_value y = leati_eltwise_of(g, x, f);
    leati_value dx = leati_eltwise_bwd(g, y, leati_matmul(g, dy, false, w, true, LEATI_NONE), f);
    keep(b, leati_matmul(g, y, true, dy, false, LEATI_NONE));
    keep(b, leati_reduce_of(g, LEATI_REDUCE_SUM, dy, 1, false));
    keep(b, dx);
    keep(b, y);
}

static void dense_backward_is_two_steps(void **unused) {
    (void)unused;
    for (uint64_t seed = 0; seed < 40; ++seed) assert_int_equal(check_graph(dense_backward, seed), 3);
}

/* The sum is over another axis, the product is read twice, or the slope is of a value that comes later. */
static void unlike_dense(bench *b) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){8, 8}), dy = input(b, 1, 2, (int64_t[]){8, 8});
    leati_eltwise f = {.function = LEATI_FN_RELU, .b = INFINITY};
    keep(b, leati_matmul(g, x, true, dy, false, LEATI_NONE));
    keep(b, leati_reduce_of(g, LEATI_REDUCE_SUM, dy, 2, false));
    keep(b, leati_reduce_of(g, LEATI_REDUCE_MEAN, dy, 1, false));
    leati_value twice = leati_matmul(g, dy, false, x, true, LEATI_NONE);
    keep(b, leati_eltwise_bwd(g, x, twice, f));
    keep(b, leati_reduce_all(g, LEATI_REDUCE_SUM, twice));
    leati_value early = leati_matmul(g, x, false, dy, true, LEATI_NONE);
    leati_value late = leati_reduce_of(g, LEATI_REDUCE_MAX, dy, 1, false);
    leati_value wide = leati_matmul(g, leati_function_of(g, dy, LEATI_FN_TANH), false, x, false, LEATI_NONE);
    keep(b, leati_eltwise_bwd(g, wide, early, f));
    keep(b, late);
}

static void unlike_dense_stays(void **unused) {
    (void)unused;
    assert_int_equal(check_graph(unlike_dense, 1), 11);
}

/* The gradient of a loss is multiplied by a number for each row, or for all. */
static void loss(bench *b) {
    leati_graph *g = b->graph;
    leati_value x = input(b, 0, 2, (int64_t[]){ROWS, COLUMNS}),
                labels = input(b, 1, 2, (int64_t[]){ROWS, COLUMNS});
    leati_value rows = input(b, 2, 2, (int64_t[]){ROWS, 1}), outputs[2];
    leati_attrs attrs = {.xent = {(leati_xent)leat_rng_below(&b->rng, 3)}};
    leati_graph_node(g, LEATI_OP_SOFTMAX_XENT, &attrs, 2, (leati_value[]){x, labels}, outputs);
    keep(b, leati_mul(g, outputs[1], leat_rng_below(&b->rng, 2) ? rows : leati_scalar(g, 0.25f)));
    keep(b, outputs[0]);
}

static void loss_is_one_step(void **unused) {
    (void)unused;
    for (uint64_t seed = 0; seed < 6; ++seed) assert_int_equal(check_graph(loss, seed), 1);
}

/* ---- Random graphs ---- */

static leati_value any(bench *b, const leati_value *values, int count) {
    return values[leat_rng_below(&b->rng, (uint64_t)count)];
}

/* Returns a new value of the whole shape, within [-2, 2], from values of the same kind. */
static leati_value random_value(bench *b, const leati_value *values, int count, const leati_value *operands) {
    leati_graph *g = b->graph;
    leati_value x = any(b, values, count), y = any(b, values, count);
    leati_binary kinds[] = {LEATI_ADD, LEATI_SUB, LEATI_MUL, LEATI_MAX, LEATI_MIN};
    leati_function functions[] = {LEATI_FN_TANH, LEATI_FN_SIGMOID, LEATI_FN_SOFTSIGN, LEATI_FN_ABS};
    leati_eltwise f = {.function = functions[leat_rng_below(&b->rng, 3)]};
    leati_binary kind = kinds[leat_rng_below(&b->rng, 5)];
    switch (leat_rng_below(&b->rng, 9)) {
    case 0: return leati_clip(g, leati_binary_of(g, kind, x, y), -2, 2);
    case 1: return leati_clip(g, leati_binary_of(g, kind, y, any(b, operands, 4)), -2, 2);
    case 2: return leati_clip(g, leati_binary_of(g, kind, any(b, operands, 4), y), -2, 2);
    case 3: return leati_eltwise_bwd(g, x, y, f);
    case 4:
        return leati_dropout(g, x, 0.25f, (uint32_t)leat_rng_below(&b->rng, 4), leat_rng_below(&b->rng, 9));
    case 5: return leati_cast(g, x, LEAT_F32, 0.5f);
    case 6: return leati_div(g, x, leati_linear(g, leati_function_of(g, y, LEATI_FN_ABS), 1, 1.5f));
    case 7: return leati_mul(g, x, leati_binary_of(g, LEATI_GREATER, operands[0], any(b, operands, 4)));
    default: return leati_function_of(g, x, functions[leat_rng_below(&b->rng, 4)]);
    }
}

static void random_graph(bench *b) {
    leati_value operands[] = {input(b, 0, 2, (int64_t[]){ROWS, COLUMNS}),
                              input(b, 1, 1, (int64_t[]){COLUMNS}), input(b, 2, 2, (int64_t[]){ROWS, 1}),
                              input(b, 3, 0, NULL)};
    leati_value values[MOST_VALUES], s = state(b);
    int count = 2;
    values[0] = operands[0];
    values[1] = s;
    while (count < 30) {
        values[count] = random_value(b, values, count, operands);
        ++count;
        uint64_t event = leat_rng_below(&b->rng, 12);
        if (event == 0) keep(b, values[count - 1]);
        if (event == 1) leati_graph_store(b->graph, s, values[count - 1]);
        if (event == 2) {
            leati_value mean = leati_reduce_last(b->graph, LEATI_REDUCE_MEAN, values[count - 1], true);
            values[count] = leati_sub(b->graph, values[count - 1], mean);
            ++count;
        }
    }
    keep(b, values[count - 1]);
    keep(b, s);
}

static void random_graphs_agree(void **unused) {
    (void)unused;
    for (uint64_t seed = 0; seed < 300; ++seed) check_graph(random_graph, seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residual_is_one_step),
        cmocka_unit_test(reader_between_divides),
        cmocka_unit_test(write_between_divides),
        cmocka_unit_test(long_chain_is_divided),
        cmocka_unit_test(averages_are_one_step),
        cmocka_unit_test(dependent_averages_stay_in_order),
        cmocka_unit_test(dense_backward_is_two_steps),
        cmocka_unit_test(unlike_dense_stays),
        cmocka_unit_test(loss_is_one_step),
        cmocka_unit_test(random_graphs_agree),
        cmocka_unit_test(gradients_of_norms_add_up),
    };
    leat_error err = {0};
    if (leati_cuda_open(0, &device, &err) != LEAT_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    int failed = cmocka_run_group_tests_name("cuda groups", tests, NULL, NULL);
    leati_device_close(&device);
    return failed;
}
