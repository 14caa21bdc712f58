/* SPDX-License-Identifier: Apache-2.0 */
/* A synchronized normalization on two ranks, one of which the test plays: the results for the samples of the other rank
 * are those of one process that has all samples. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "engine/exchange.h"
#include "engine/fixture.h"

enum { ROWS = 5, OURS = 2, CHANNELS = 3, COUNT = 1 + 2 * CHANNELS };

static const float src[ROWS * CHANNELS] = {0.5f, 101, -3, 1.5f, 103, 2, -2, 99, 4, 0, 100, 1, 3, 104, -1};
static const float diff[ROWS * CHANNELS] = {1, -1, 0.5f, 2, 0.25f, -3, 1, 1, 1, -2, 0, 3, 0.5f, -0.5f, 2};

typedef struct norm {
    fixture f;
    leati_value out[LEATI_MAX_OUTPUTS], diffs[LEATI_MAX_OUTPUTS];
} norm;

/* Compiles a normalization of some rows, and its gradient. */
static void make(norm *n, int64_t rows) {
    leati_attrs attrs = {.batch_norm = {.epsilon = 0.001f, .synchronized = true}};
    fixture_init(&n->f);
    leati_value x = fixture_input(&n->f, 0, rows, CHANNELS), d = fixture_input(&n->f, 1, rows, CHANNELS);
    leati_value args[] = {x, LEATI_NONE, LEATI_NONE};
    leati_graph_node(n->f.graph, LEATI_OP_BATCH_NORM, &attrs, 3, args, n->out);
    leati_value backward[] = {x, LEATI_NONE, n->out[1], n->out[2], d, LEATI_NONE, LEATI_NONE, LEATI_NONE};
    leati_graph_node(n->f.graph, LEATI_OP_BATCH_NORM_BWD, &attrs, 8, backward, n->diffs);
    for (int i = 0; i < 3; ++i) leati_graph_keep(n->f.graph, n->out[i]);
    for (int i = 0; i < 3; ++i) leati_graph_keep(n->f.graph, n->diffs[i]);
    fixture_compile(&n->f);
}

/* The other rank: what it tells in its two exchanges. */
typedef struct other {
    double told[2][COUNT], all[2 * COUNT];
    int calls;
} other;

static void describe(other *o, int first, int end, const float *mean) {
    for (int c = 0; c < CHANNELS; ++c) {
        double sum = 0, squares = 0, product = 0, gradient = 0;
        for (int row = first; row < end; ++row) sum += (double)src[row * CHANNELS + c] / (end - first);
        for (int row = first; row < end; ++row) {
            const double x = (double)src[row * CHANNELS + c], d = (double)diff[row * CHANNELS + c];
            squares += (x - sum) * (x - sum);
            gradient += d;
            product += d * (x - (double)mean[c]);
        }
        o->told[0][1 + c] = sum;
        o->told[0][1 + CHANNELS + c] = squares;
        o->told[1][1 + c] = gradient;
        o->told[1][1 + CHANNELS + c] = product;
    }
    o->told[0][0] = o->told[1][0] = end - first;
}

static leat_status gather(void *user, const double *mine, int64_t count, const double **all,
                          leat_error *err) {
    other *o = user;
    (void)err;
    assert_int_equal(count, COUNT);
    assert_in_range(o->calls, 0, 1);
    memcpy(o->all, mine, sizeof o->told[0]);
    memcpy(o->all + COUNT, o->told[o->calls++], sizeof o->told[0]);
    *all = o->all;
    return LEAT_OK;
}

static void ignore(void *user, size_t from) {
    (void)user;
    (void)from;
}

static void run(norm *n, other *o, bool is_empty, int first) {
    const void *inputs[] = {src + (ptrdiff_t)first * CHANNELS, diff + (ptrdiff_t)first * CHANNELS};
    const leati_exchange exchange = {.gather = gather, .user = o, .ranks = 2, .is_empty = is_empty};
    const leati_slab_watch watch = {LEATI_SLAB_GRADIENTS, ignore, NULL, &exchange};
    leat_error err = {0};
    assert_int_equal(leati_plan_run_watched(n->f.plan, inputs, 1, 0, &watch, &err), LEAT_OK);
    assert_int_equal(o->calls, 2);
}

static void expect_near(const float *got, const float *expected, int count) {
    for (int i = 0; i < count; ++i)
        if (!(fabsf(got[i] - expected[i]) <= 1e-6f * (1 + fabsf(expected[i]))))
            fail_msg("number %d: %.9g, expected %.9g", i, (double)got[i], (double)expected[i]);
}

static void two_ranks_normalize_as_one(void **state) {
    norm whole, part;
    other o = {.calls = 0};
    const void *inputs[] = {src, diff};
    (void)state;
    make(&whole, ROWS);
    make(&part, OURS);
    fixture_run(&whole.f, inputs);
    const float *mean = fixture_output(&whole.f, whole.out[1]);
    describe(&o, OURS, ROWS, mean);
    run(&part, &o, false, 0);
    for (int i = 0; i < 3; ++i)
        expect_near(fixture_output(&part.f, part.out[i]), fixture_output(&whole.f, whole.out[i]),
                    i == 0 ? OURS * CHANNELS : CHANNELS);
    expect_near(fixture_output(&part.f, part.diffs[0]), fixture_output(&whole.f, whole.diffs[0]),
                OURS * CHANNELS);
    float beta[CHANNELS] = {0};
    for (int row = 0; row < OURS; ++row)
        for (int c = 0; c < CHANNELS; ++c) beta[c] += diff[row * CHANNELS + c];
    expect_near(fixture_output(&part.f, part.diffs[2]), beta, CHANNELS); /* that of this rank alone */
    fixture_fini(&whole.f);
    fixture_fini(&part.f);
}

/* The other rank has all samples; this one runs on a copy of the last sample, which does not count. */
static void a_rank_without_samples_does_not_count(void **state) {
    norm whole, part;
    other o = {.calls = 0};
    const void *inputs[] = {src, diff};
    (void)state;
    make(&whole, ROWS);
    make(&part, 1);
    fixture_run(&whole.f, inputs);
    describe(&o, 0, ROWS, fixture_output(&whole.f, whole.out[1]));
    run(&part, &o, true, ROWS - 1);
    expect_near(fixture_output(&part.f, part.out[1]), fixture_output(&whole.f, whole.out[1]), CHANNELS);
    expect_near(fixture_output(&part.f, part.out[2]), fixture_output(&whole.f, whole.out[2]), CHANNELS);
    fixture_fini(&whole.f);
    fixture_fini(&part.f);
}

static leat_status gather_squares(void *user, const double *mine, int64_t count, const double **all,
                                  leat_error *err) {
    double *memory = user;
    (void)err;
    assert_int_equal(count, CHANNELS);
    memcpy(memory, mine, CHANNELS * sizeof *memory);
    for (int i = 0; i < CHANNELS; ++i) memory[CHANNELS + i] = (double)((i + 1) * (i + 1));
    *all = memory;
    return LEAT_OK;
}

/* The other rank has 1, 4 and 9. */
static void a_tensor_is_added_up_over_the_ranks(void **state) {
    fixture f;
    double memory[2 * CHANNELS];
    const void *inputs[] = {src};
    const leati_exchange exchange = {.gather = gather_squares, .user = memory, .ranks = 2};
    const leati_slab_watch watch = {LEATI_SLAB_GRADIENTS, ignore, NULL, &exchange};
    leat_error err = {0};
    int64_t count = 0;
    const char *label = NULL;
    (void)state;
    fixture_init(&f);
    const leati_value sum = leati_rank_sum(f.graph, fixture_input(&f, 0, 1, CHANNELS));
    leati_graph_keep(f.graph, sum);
    fixture_compile(&f);
    assert_true(leati_plan_exchange_get(f.plan, 0, &count, &label));
    assert_int_equal(count, CHANNELS);
    assert_false(leati_plan_exchange_get(f.plan, 1, &count, &label));
    assert_int_equal(leati_plan_run_watched(f.plan, inputs, 1, 0, &watch, &err), LEAT_OK);
    expect_near(fixture_output(&f, sum), (const float[]){1.5f, 105, 6}, CHANNELS);
    fixture_run(&f, inputs); /* without other ranks */
    expect_near(fixture_output(&f, sum), src, CHANNELS);
    fixture_fini(&f);
}

static void plans_list_their_exchanges(void **state) {
    norm n;
    int64_t count = 0;
    const char *label = NULL;
    (void)state;
    make(&n, ROWS);
    for (int i = 0; i < 2; ++i) {
        assert_true(leati_plan_exchange_get(n.f.plan, i, &count, &label));
        assert_int_equal(count, COUNT);
    }
    assert_false(leati_plan_exchange_get(n.f.plan, 2, &count, &label));
    fixture_fini(&n.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranks_normalize_as_one),
        cmocka_unit_test(a_rank_without_samples_does_not_count),
        cmocka_unit_test(a_tensor_is_added_up_over_the_ranks),
        cmocka_unit_test(plans_list_their_exchanges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
