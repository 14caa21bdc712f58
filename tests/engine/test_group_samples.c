/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions in groups of samples give the bytes that the whole batch gives; what reads other samples stays whole. */
#include "cmocka_all.h"

#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/build.h"
#include "engine/plan/plan.h"
#include "support/memory_failing.h"

enum { SIDE = 136, CHANNELS = 8, MOST_OUTPUTS = 2, SLAB_FLOATS = 40960 };

static _Alignas(64) float slab[SLAB_FLOATS], states[SLAB_FLOATS];

/* What a graph has between its first convolution and the second one.  With a batch of CHANNELS samples the samples'
 * axis cannot be told by its length. */
typedef enum between {
    NOTHING,
    FIXED_NODES, /* a factor that is computed from weights */
    GATE,        /* the samples' means of the channels multiply them */
    RESHAPED,    /* rows of pixels, and back */
    LAST_INSIDE = RESHAPED,
    ROTATED,          /* the samples' axis moves, and moves back */
    MEAN_OF_BATCH,    /* subtracts the mean of all samples */
    PAIRED,           /* each half of the batch is one sample of twice as many channels, and back */
    OTHER_INPUT,      /* adds an input without samples */
    NOISE,            /* random numbers */
    SLICED_SAMPLES,   /* subtracts sample 0 */
    SOFTMAX_OF_BATCH, /* along the samples' axis */
    REDUCED_SAMPLES, /* of a batch of CHANNELS: subtracts a mean whose axis 0 is as long as that of samples */
    WEIGHTS_OF_SAMPLES, /* of a batch of CHANNELS: each sample has its own factors */
    SAMPLES_LAST,       /* of a batch of CHANNELS: the samples' means multiply the channels */
    STORED              /* stores a state */
} between;

static leati_value weights(leati_graph *g, int64_t offset, int rank, const int64_t *shape) {
    leati_desc desc = leati_desc_make(LEAT_F32, rank, shape);
    return leati_graph_state(g, LEATI_SLAB_WEIGHTS, (size_t)offset * sizeof(float), &desc);
}

static leati_value point(leati_graph *g, leati_value x, int64_t offset) {
    leati_attrs attrs = {
        .conv = {.window = {.spatial = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}},
                 .groups = 1}};
    leati_value in[2] = {x, weights(g, offset, 4, (int64_t[]){1, 1, CHANNELS, CHANNELS})};
    return leati_graph_node(g, LEATI_OP_CONV, &attrs, 2, in, NULL);
}

static leati_value pooled(leati_graph *g, leati_value x) {
    leati_attrs attrs = {
        .pooling = {.window = {.spatial = 2, .kernel = {2, 2}, .stride = {2, 2}, .dilation = {1, 1}},
                    .kind = LEATI_POOL_MAX}};
    return leati_graph_node(g, LEATI_OP_POOLING, &attrs, 1, &x, NULL);
}

static leati_value paired(leati_graph *g, leati_value x, int64_t batch) {
    const int64_t half[4] = {batch / 2, SIDE, SIDE, 2 * CHANNELS}, whole[4] = {batch, SIDE, SIDE, CHANNELS};
    leati_value y = leati_linear(g, leati_reshape(g, x, 4, half), 1, 1);
    return leati_reshape(g, leati_softmax_of(g, y, 3), 4, whole);
}

static leati_value insert(leati_graph *g, leati_value x, int64_t batch, between what) {
    leati_desc other = {LEAT_F32, 4, {1, SIDE, SIDE, CHANNELS}}, line = {LEAT_F32, 1, {CHANNELS}};
    const int64_t whole[4] = {batch, SIDE, SIDE, CHANNELS};
    leati_value y = x;
    switch (what) {
    case NOTHING: return x;
    case FIXED_NODES:
        return leati_mul(g, x, leati_function_of(g, weights(g, 3 * CHANNELS, 1, line.shape), LEATI_FN_TANH));
    case GATE: return leati_mul(g, x, leati_reduce_of(g, LEATI_REDUCE_MEAN, x, 6, true));
    case RESHAPED:
        y = leati_softmax_of(g, leati_reshape(g, x, 3, (int64_t[]){batch, SIDE, SIDE * CHANNELS}), 2);
        return leati_reshape(g, y, 4, whole);
    case ROTATED:
        y = leati_transpose(g, x, (const int32_t[]){3, 1, 2, 0});
        return leati_transpose(g, leati_function_of(g, y, LEATI_FN_TANH), (const int32_t[]){3, 1, 2, 0});
    case MEAN_OF_BATCH: return leati_sub(g, x, leati_reduce_of(g, LEATI_REDUCE_MEAN, x, 1, true));
    case PAIRED: return paired(g, x, batch);
    case OTHER_INPUT: return leati_add(g, x, leati_graph_input(g, 1, &other));
    case NOISE: return leati_dropout(g, x, 0.5f, 0, 3);
    case SLICED_SAMPLES: return leati_sub(g, x, leati_slice_axis(g, x, 0, 0, 1));
    case SOFTMAX_OF_BATCH: return leati_softmax_of(g, x, 0);
    case REDUCED_SAMPLES:
        y = leati_reshape(g, x, 3, (int64_t[]){batch, CHANNELS, SIDE * SIDE});
        y = leati_function_of(g, leati_reduce_of(g, LEATI_REDUCE_MEAN, y, 1, false), LEATI_FN_TANH);
        return leati_sub(g, x, leati_reshape(g, y, 4, other.shape));
    case WEIGHTS_OF_SAMPLES:
        return leati_mul(g, x, weights(g, 300, 4, (int64_t[]){CHANNELS, 1, 1, CHANNELS}));
    case SAMPLES_LAST: return leati_mul(g, x, leati_reduce_of(g, LEATI_REDUCE_MEAN, x, 14, false));
    case STORED:
        leati_graph_store(g, leati_graph_state(g, LEATI_SLAB_STATES, 0, &line),
                          leati_reduce_of(g, LEATI_REDUCE_SUM, x, 7, false));
        return x;
    }
    return x;
}

/* Builds a network with an output amid the first ops, and one of a dense layer. */
static leat_status build(leati_graph **out, int64_t batch, between what, leati_value *outputs,
                         leat_error *err) {
    leat_status status = leati_graph_create(out, err);
    if (status != LEAT_OK) return status;
    leati_graph *g = *out;
    leati_desc in = {LEAT_F32, 4, {batch, SIDE, SIDE, CHANNELS}};
    const int64_t before[4] = {0, 1, 1, 0}, after[4] = {0, 1, 1, 0};
    leati_value x = leati_function_of(g, point(g, leati_graph_input(g, 0, &in), 0), LEATI_FN_RELU);
    leati_value y = insert(g, x, batch, what);
    outputs[0] = leati_reduce_of(g, LEATI_REDUCE_MAX, y, 6, false);
    y = leati_concat(g, 2, (leati_value[]){point(g, y, 64), x}, 3);
    y = leati_slice_axis(g, leati_pad(g, y, before, after, 0.5f), 3, 4, CHANNELS);
    y = pooled(g, y);
    y = leati_reduce_of(g, LEATI_REDUCE_MEAN, y, 6, false);
    outputs[1] = leati_matmul(g, y, false, weights(g, 200, 2, (int64_t[]){CHANNELS, 3}), false, LEATI_NONE);
    for (int i = 0; i < MOST_OUTPUTS; ++i) leati_graph_keep(g, outputs[i]);
    return leati_graph_check(g, err);
}

typedef struct made {
    leati_arena *arena;
    leati_plan *plan;
    leati_value outputs[MOST_OUTPUTS];
} made;

static leat_status make(made *m, int64_t batch, between what, int threads, bool deterministic,
                        int64_t samples, leat_error *err) {
    static const leati_backend *const backends[] = {&leati_backend_ref, NULL};
    leati_graph *g = NULL;
    *m = (made){0};
    leat_status status = leati_arena_create(&m->arena, err);
    if (status == LEAT_OK) status = build(&g, batch, what, m->outputs, err);
    if (status != LEAT_OK) {
        leati_graph_destroy(&g);
        return status;
    }
    leati_plan_options options = {.threads = threads,
                                  .deterministic = deterministic,
                                  .backends = backends,
                                  .arena = m->arena,
                                  .samples = samples};
    options.slabs[LEATI_SLAB_WEIGHTS] = slab;
    options.slabs[LEATI_SLAB_STATES] = states;
    return leati_plan_create(&m->plan, &g, &options, err);
}

static void destroy(made *m) {
    leati_plan_destroy(&m->plan);
    leati_arena_destroy(&m->arena);
}

static int64_t group_of(int64_t batch, between what, int threads, bool deterministic) {
    made m;
    leat_error err = {0};
    if (make(&m, batch, what, threads, deterministic, batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    int64_t group = leati_plan_group_size(m.plan);
    destroy(&m);
    return group;
}

static float *random_numbers(size_t count) {
    float *numbers = leati_calloc(count, sizeof *numbers);
    assert_non_null(numbers);
    uint32_t seed = 1;
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        numbers[i] = (float)(seed >> 8) / (float)(1 << 24) - 0.5f;
    }
    return numbers;
}

/* Expects that both plans give the same bytes, twice, for inputs that may move. */
static void expect_same(int64_t batch, between what) {
    const size_t sample = (size_t)SIDE * SIDE * CHANNELS;
    float *x = random_numbers((size_t)batch * sample + 16), *other = random_numbers(sample);
    made whole, grouped;
    leat_error err = {0};
    for (int i = 0; i < SLAB_FLOATS; ++i) slab[i] = (float)((i * 37 % 19) - 9) / 9;
    if (make(&whole, batch, what, 1, false, 0, &err) != LEAT_OK) fail_msg("%s", err.message);
    if (make(&grouped, batch, what, 1, false, batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (uint64_t run = 0; run < 2; ++run) {
        const void *inputs[2] = {x + 16 * run, other};
        assert_int_equal(leati_plan_run(whole.plan, inputs, 5, run, &err), LEAT_OK);
        assert_int_equal(leati_plan_run(grouped.plan, inputs, 5, run, &err), LEAT_OK);
        for (int i = 0; i < MOST_OUTPUTS; ++i) {
            leat_tensor a = leati_plan_output(whole.plan, whole.outputs[i]);
            leat_tensor b = leati_plan_output(grouped.plan, grouped.outputs[i]);
            assert_int_equal(b.shape[0], batch);
            assert_int_equal(leat_tensor_bytes(&a), leat_tensor_bytes(&b));
            assert_memory_equal(a.data, b.data, leat_tensor_bytes(&a));
        }
    }
    destroy(&whole);
    destroy(&grouped);
    leati_free(x);
    leati_free(other);
}

/* ---- Groups that one thread computes alone ---- */

enum { STEPS = 64, WIDTH = 64, HIDDEN = 512, HEADS = 4, WORDS = 11, TEXTS = 32, WORDS_AT = 32768 };

static leati_value dense(leati_graph *g, leati_value rows, int64_t units) {
    const int64_t width = leati_graph_desc(g, rows)->shape[1];
    return leati_matmul(g, rows, false, weights(g, units, 2, (int64_t[]){width, units}), false, LEATI_NONE);
}

static leati_value normed(leati_graph *g, leati_value x) {
    const leati_attrs attrs = {
        .group_norm = {.samples = 2, .epsilon = 1e-3f, .channels = WIDTH, .groups = 1}};
    const leati_value inputs[3] = {x, LEATI_NONE, LEATI_NONE};
    leati_value outputs[LEATI_MAX_OUTPUTS];
    leati_graph_node(g, LEATI_OP_GROUP_NORM, &attrs, 3, inputs, outputs);
    return outputs[0];
}

/* Looks words up: x has the numbers of words, or is a constant that is repeated for each sample. */
static leati_value words(leati_graph *g, leati_value x) {
    const leati_value inputs[2] = {weights(g, WORDS_AT, 2, (int64_t[]){WORDS, WIDTH}), x};
    return leati_graph_node(g, LEATI_OP_GATHER, NULL, 2, inputs, NULL);
}

/* A block of a transformer: attention of the words of a text, then two dense layers. */
static leat_status build_block(leati_graph **out, leati_value *result, leat_error *err) {
    leat_status status = leati_graph_create(out, err);
    if (status != LEAT_OK) return status;
    leati_graph *g = *out;
    static const float zeros[STEPS];
    const leati_desc in = {LEAT_F32, 2, {TEXTS, STEPS}}, line = {LEAT_F32, 1, {STEPS}};
    const int64_t rows[2] = {TEXTS * STEPS, WIDTH}, one[3] = {1, TEXTS * STEPS, WIDTH};
    const int64_t heads[4] = {TEXTS, STEPS, HEADS, WIDTH / HEADS}, whole[3] = {TEXTS, STEPS, WIDTH};
    leati_value places = leati_broadcast(g, leati_graph_constant(g, &line, zeros), 2, in.shape);
    leati_value x = leati_add(g, words(g, leati_graph_input(g, 0, &in)), words(g, places));
    leati_value y = leati_reshape(g, dense(g, leati_reshape(g, normed(g, x), 2, rows), WIDTH), 4, heads);
    const leati_attrs attrs = {.attention = {.scale = 0.25f}};
    const leati_value qkv[4] = {y, y, y, LEATI_NONE};
    leati_value outputs[LEATI_MAX_OUTPUTS];
    leati_graph_node(g, LEATI_OP_ATTENTION, &attrs, 4, qkv, outputs);
    y = leati_matmul(g, leati_reshape(g, outputs[0], 3, one), false,
                     weights(g, 9, 3, (int64_t[]){1, WIDTH, WIDTH}), false, LEATI_NONE);
    x = leati_add(g, x, leati_reshape(g, y, 3, whole));
    y = leati_function_of(g, dense(g, leati_reshape(g, normed(g, x), 2, rows), HIDDEN), LEATI_FN_GELU);
    x = leati_add(g, x, leati_reshape(g, dense(g, y, WIDTH), 3, whole));
    *result = leati_reduce_of(g, LEATI_REDUCE_MEAN, x, 2, false);
    leati_graph_keep(g, *result);
    return leati_graph_check(g, err);
}

static leat_status make_block(made *m, int threads, int64_t samples, leat_error *err) {
    static const leati_backend *const backends[] = {&leati_backend_ref, NULL};
    leati_graph *g = NULL;
    *m = (made){0};
    leat_status status = leati_arena_create(&m->arena, err);
    if (status == LEAT_OK) status = build_block(&g, m->outputs, err);
    if (status != LEAT_OK) {
        leati_graph_destroy(&g);
        return status;
    }
    leati_plan_options options = {.threads = threads,
                                  .backends = backends,
                                  .arena = m->arena,
                                  .samples = samples};
    options.slabs[LEATI_SLAB_WEIGHTS] = slab;
    return leati_plan_create(&m->plan, &g, &options, err);
}

static void threads_compute_groups_alone(void **state) {
    (void)state;
    static float x[2][TEXTS * STEPS];
    made whole;
    leat_error err = {0};
    for (int i = 0; i < SLAB_FLOATS; ++i) slab[i] = (float)((i * 37 % 19) - 9) / 90;
    for (int i = 0; i < TEXTS * STEPS; ++i) x[0][i] = (float)(i * 7 % WORDS), x[1][i] = (float)(i % 5);
    if (make_block(&whole, 1, 0, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int threads = 1; threads <= 5; ++threads) {
        made grouped;
        if (make_block(&grouped, threads, TEXTS, &err) != LEAT_OK) fail_msg("%s", err.message);
        assert_int_equal(leati_plan_group_size(grouped.plan), threads == 3 || threads == 5 ? 0 : 8);
        for (uint64_t run = 0; run < 2; ++run) {
            const void *inputs[1] = {x[run]};
            assert_int_equal(leati_plan_run(whole.plan, inputs, 0, run, &err), LEAT_OK);
            assert_int_equal(leati_plan_run(grouped.plan, inputs, 0, run, &err), LEAT_OK);
            leat_tensor a = leati_plan_output(whole.plan, whole.outputs[0]);
            leat_tensor b = leati_plan_output(grouped.plan, grouped.outputs[0]);
            assert_memory_equal(a.data, b.data, leat_tensor_bytes(&a));
        }
        /* Words that the table does not have: the first of them is reported, by its place in the batch. */
        enum { first_wrong = 11 };
        x[0][first_wrong * STEPS] = x[0][TEXTS * STEPS - 1] = WORDS;
        const void *inputs[1] = {x[0]};
        assert_int_not_equal(leati_plan_run(grouped.plan, inputs, 0, 2, &err), LEAT_OK);
        assert_non_null(strstr(err.message, "gather"));
        assert_non_null(strstr(err.message, "sample 11 of the batch"));
        assert_int_equal(leati_error_place(&err), first_wrong);
        x[0][first_wrong * STEPS] = x[0][TEXTS * STEPS - 1] = 1;
        assert_int_equal(leati_plan_run(grouped.plan, inputs, 0, 3, &err), LEAT_OK);
        destroy(&grouped);
    }
    destroy(&whole);
}

static void groups_give_the_bytes_of_the_batch(void **state) {
    (void)state;
    for (int what = NOTHING; what <= LAST_INSIDE; ++what) expect_same(4, (between)what);
    for (int what = ROTATED; what <= STORED; ++what) expect_same(CHANNELS, (between)what);
    expect_same(9, GATE);
    expect_same(6, NOTHING);
    expect_same(7, NOTHING);
}

static void groups_divide_the_batch(void **state) {
    (void)state;
    assert_int_equal(group_of(8, GATE, 1, false), 2);
    assert_int_equal(group_of(9, GATE, 1, false), 3);
    assert_int_equal(group_of(11, GATE, 1, false), 0);
    assert_int_equal(group_of(16, GATE, 2, false), 2);
    assert_int_equal(group_of(18, GATE, 2, false), 2);
    assert_int_equal(group_of(20, GATE, 2, true), 0);
    assert_int_equal(group_of(1, GATE, 1, false), 0);
    assert_int_equal(group_of(2, GATE, 1, false), 0);
}

/* Returns the number of steps that run in groups, with the labels of none but the first. */
static int32_t grouped_steps(between what) {
    made m;
    leat_error err = {0};
    int32_t grouped = 0;
    if (make(&m, 8, what, 1, false, 8, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (int32_t i = 0; i < leati_plan_step_count(m.plan); ++i) {
        leati_plan_step step;
        leati_plan_step_get(m.plan, i, &step);
        assert_int_equal(step.runs, i < grouped + (step.runs > 1) ? step.runs : 1);
        grouped += step.runs > 1;
        if (step.runs == 1) continue;
        assert_int_equal(step.runs, 4);
        for (int j = 0; j < step.node->output_count; ++j) {
            const leati_desc *desc = leati_graph_desc(step.graph, step.node->outputs[j]);
            assert_true(desc->shape[0] == 2 || desc->shape[0] == CHANNELS || desc->shape[0] == 0);
        }
    }
    destroy(&m);
    return grouped;
}

static void what_reads_other_samples_stays_whole(void **state) {
    (void)state;
    const int32_t all = grouped_steps(NOTHING);
    assert_true(all > 4);
    for (int what = FIXED_NODES; what <= LAST_INSIDE; ++what) assert_true(grouped_steps((between)what) > all);
    for (int what = ROTATED; what < STORED; ++what) assert_true(grouped_steps((between)what) < all);
    assert_int_equal(grouped_steps(STORED), 0);
}

static void expect_failures_of_allocations(bool alone) {
    int64_t before = memory_live(), n = 1;
    for (bool failed = true; failed; ++n) {
        made m;
        leat_error err = {0};
        memory_fail_at(n);
        leat_status status = alone ? make_block(&m, 2, TEXTS, &err) : make(&m, 8, GATE, 1, false, 8, &err);
        failed = memory_failed();
        memory_fail_at(0);
        assert_int_equal(status, failed ? LEAT_ENOMEM : LEAT_OK);
        if (!failed) assert_int_equal(leati_plan_group_size(m.plan), alone ? 8 : 2);
        destroy(&m);
        assert_int_equal(memory_live(), before);
    }
    assert_true(n > 100);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    expect_failures_of_allocations(false);
    expect_failures_of_allocations(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_compute_groups_alone),
        cmocka_unit_test(groups_give_the_bytes_of_the_batch),
        cmocka_unit_test(groups_divide_the_batch),
        cmocka_unit_test(what_reads_other_samples_stays_whole),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
