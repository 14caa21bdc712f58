/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs, with overlapping states, stores, views and ops in place: the outputs and slabs of the plan have the
 * same bytes as those of a run in which values share no memory. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "engine/interpret.h"
#include "engine/plan/plan_private.h"
#include "engine/fixture.h"
#include "leat/rng.h"

enum { most_values = 128, state_floats = 96 };

typedef struct program {
    fixture s;
    leat_rng rng;
    leati_value values[most_values];
    int count;
    bool differentiable; /* use only ops that have a gradient */
} program;

static int pick(program *p, int bound) {
    return (int)leat_rng_below(&p->rng, (uint64_t)bound);
}

static leati_value any(program *p) {
    return p->values[pick(p, p->count)];
}

/* Returns any value of `count` elements, or the first value, reduced and broadcast to `count` elements. */
static leati_value any_of(program *p, int64_t count) {
    leati_graph *g = p->s.graph;
    for (int tries = 0; tries < 20; ++tries) {
        leati_value value = any(p);
        if (leati_desc_count(leati_graph_desc(g, value)) == count) return value;
    }
    return leati_broadcast(g, leati_reduce_all(g, LEATI_REDUCE_MEAN, any(p)), 1, &count);
}

static leati_value as(program *p, leati_value value, int rank, const int64_t *dims) {
    return leati_reshape(p->s.graph, value, rank, dims);
}

/* Returns a state: states overlap, have the sizes of other values, and some are not aligned to 64 bytes. */
static leati_value any_state(program *p) {
    static const struct {
        int64_t offset, count;
    } ranges[] = {{0, 24}, {16, 24}, {24, 24}, {48, 24}, {64, 24}, {0, 6}, {48, 6}, {18, 6}};
    int i = pick(p, sizeof ranges / sizeof *ranges);
    leati_slab slab = pick(p, 2) ? LEATI_SLAB_WEIGHTS : LEATI_SLAB_SLOT0;
    return fixture_state(&p->s, slab, ranges[i].offset, ranges[i].count);
}

static leati_value random_function(program *p) {
    static const leati_function functions[] = {LEATI_FN_TANH, LEATI_FN_RELU, LEATI_FN_SIGMOID,
                                               LEATI_FN_SOFTSIGN};
    return leati_function_of(p->s.graph, any(p), functions[pick(p, 4)]);
}

static leati_value random_matmul(program *p) {
    const int64_t left[2] = {4, 6}, right[2] = {6, 4};
    leati_value a = as(p, any_of(p, 24), 2, left), b = as(p, any_of(p, 24), 2, right);
    return leati_matmul(p->s.graph, a, false, b, false, LEATI_NONE);
}

static leati_value random_softmax_pair(program *p) {
    const int64_t dims[2] = {4, 6};
    leati_value outputs[2], inputs[2] = {as(p, any_of(p, 24), 2, dims), as(p, any_of(p, 24), 2, dims)};
    leati_attrs attrs = {.xent = {(leati_xent)pick(p, 3)}};
    leati_graph_node(p->s.graph, LEATI_OP_SOFTMAX_XENT, &attrs, 2, inputs, outputs);
    return outputs[p->differentiable ? 0 : pick(p, 2)];
}

/* Writes a state: by a store, often of a new value, or by an op that changes the state. */
static void random_write(program *p) {
    leati_graph *g = p->s.graph;
    leati_value state = any_state(p), value = any_of(p, leati_desc_count(leati_graph_desc(g, state)));
    int64_t count = leati_desc_count(leati_graph_desc(g, state));
    switch (pick(p, 4)) {
    case 0: leati_moving_average(g, state, as(p, value, 1, &count), 0.75f); break;
    case 1: leati_graph_store(g, state, leati_function_of(g, value, LEATI_FN_TANH)); break;
    case 2: leati_graph_store(g, state, leati_add(g, state, as(p, value, 1, &count))); break;
    default: leati_graph_store(g, state, value); break;
    }
}

/* Joins some rows of a cache line each, which may be parts of each other. */
static leati_value random_rows(program *p) {
    leati_value rows[3];
    const int count = 2 + pick(p, 2);
    for (int i = 0; i < count; ++i) rows[i] = as(p, any_of(p, 16), 2, (int64_t[]){1, 16});
    return leati_concat(p->s.graph, count, rows, 0);
}

static leati_value random_slice(program *p) {
    const int64_t rows = 2 + pick(p, 2), first = pick(p, 2), count = 1 + pick(p, (int)(rows - first));
    leati_value whole = as(p, any_of(p, rows * 16), 2, (int64_t[]){rows, 16});
    return leati_slice_axis(p->s.graph, whole, 0, first, count);
}

static leati_value random_value(program *p) {
    leati_graph *g = p->s.graph;
    const int64_t matrix[2] = {4, 6}, line = 24;
    switch (pick(p, 14)) {
    case 10:
    case 11: return random_rows(p);
    case 12: return random_slice(p);
    case 13: return leati_function_of(g, any_of(p, 16), LEATI_FN_TANH);
    case 0: return random_function(p);
    case 1: return leati_add(g, as(p, any_of(p, 24), 1, &line), as(p, any_of(p, 24), 1, &line));
    case 2: return leati_mul(g, as(p, any_of(p, 24), 2, matrix), as(p, any_of(p, 6), 1, &(int64_t){6}));
    case 3: return pick(p, 2) ? as(p, any_of(p, 24), 2, matrix) : as(p, any_of(p, 24), 1, &line);
    case 4: return leati_reduce_of(g, LEATI_REDUCE_SUM, as(p, any_of(p, 24), 2, matrix), 1, false);
    case 5: return random_matmul(p);
    case 6: return leati_dropout(g, any(p), 0.5f, 0, (uint64_t)pick(p, 100));
    case 7: return random_softmax_pair(p);
    case 8: return any_state(p);
    default: return leati_linear(g, any(p), 0.5f, 0.25f);
    }
}

static void write_program(program *p) {
    leati_graph *g = p->s.graph;
    p->values[p->count++] = fixture_input(&p->s, 0, 4, 6);
    p->values[p->count++] = fixture_input(&p->s, 1, 1, 6);
    p->values[p->count++] = leati_full(g, 1, (int64_t[]){24}, 0.5f);
    int length = 4 + pick(p, 40);
    for (int i = 0; i < length; ++i) {
        if (pick(p, 4) == 0) random_write(p);
        p->values[p->count++] = random_value(p);
    }
    for (int i = 0; i < 3; ++i) leati_graph_keep(g, any(p));
}

static void check_program(uint64_t seed) {
    static program p;
    float inputs[2][24], states[LEATI_SLAB_COUNT][state_floats];
    void *values[2048] = {0};
    float *slabs[LEATI_SLAB_COUNT];
    leat_error err = {0};
    p = (program){.rng = leat_rng_for(seed, 0, 0)};
    fixture_init(&p.s);
    write_program(&p);
    if (leati_graph_check(p.s.graph, &err) != LEAT_OK) fail_msg("program %d: %s", (int)seed, err.message);
    for (int i = 0; i < 48; ++i) inputs[i / 24][i % 24] = (float)(2 * leat_rng_uniform(&p.rng) - 1);
    for (int k = 0; k < LEATI_SLAB_COUNT; ++k) {
        for (int i = 0; i < state_floats; ++i) states[k][i] = (float)(2 * leat_rng_uniform(&p.rng) - 1);
        memcpy(p.s.slab[k], states[k], sizeof states[k]);
        slabs[k] = states[k];
    }
    const void *bound[2] = {inputs[0], inputs[1]};
    assert_in_range(leati_graph_value_count(p.s.graph), 1, 2047);
    interpret(p.s.graph, bound, slabs, values);
    fixture_compile(&p.s);
    fixture_run(&p.s, bound);
    const leati_graph *g = leati_plan_graph(p.s.plan);
    assert_true(leati_plan_arena_bytes(p.s.plan) >= leati_plan_bound_bytes(p.s.plan));
    for (int k = 0; k < LEATI_SLAB_COUNT; ++k)
        if (memcmp(p.s.slab[k], states[k], sizeof states[k]) != 0)
            fail_msg("program %d: slab %d differs", (int)seed, k);
    for (leati_value v = 0; v < leati_graph_value_count(g); ++v) {
        const leati_value_info *info = leati_graph_value(g, v);
        if (info->output && values[v] &&
            memcmp(fixture_output(&p.s, v), values[v], leati_desc_bytes(&info->desc)) != 0)
            fail_msg("program %d: output %d differs", (int)seed, v);
        leati_free(values[v]);
    }
    fixture_fini(&p.s);
}

static void plans_equal_the_interpreter(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 1500; ++seed) check_program(seed);
}

/* ---- Gradient checkpointing ---- */

enum { wrt_count = 4 };

/* Writes a program, the gradients of a loss, with gradient checkpointing if `recompute`, and the updates of a trainer.
 * Returns the number of nodes that gradient checkpointing has added. */
static int32_t write_training(program *p, uint64_t seed, bool recompute, leati_value *gradients) {
    *p = (program){.rng = leat_rng_for(seed, 1, 0), .differentiable = true};
    fixture_init(&p->s);
    write_program(p);
    leati_graph *g = p->s.graph;
    leati_value loss = leati_scalar(g, 0), wrt[wrt_count];
    for (int i = 0; i < 3; ++i)
        loss = leati_add(g, loss, leati_reduce_all(g, LEATI_REDUCE_SUM, random_function(p)));
    for (int i = 0; i < wrt_count; ++i) wrt[i] = i < 2 ? p->values[i] : any_state(p);
    int32_t forward = leati_graph_node_count(g);
    leat_error err = {0};
    leat_status status = leati_graph_differentiate(g, loss, wrt_count, wrt, gradients, &err);
    int32_t before = leati_graph_node_count(g);
    if (status == LEAT_OK && recompute) status = leati_graph_recompute(g, forward, &err);
    if (status != LEAT_OK) fail_msg("program %d: %s", (int)seed, err.message);
    leati_graph_keep(g, loss);
    for (int i = 0; i < wrt_count; ++i)
        if (gradients[i] >= 0) leati_graph_keep(g, gradients[i]);
    int32_t added = leati_graph_node_count(g) - before;
    random_write(p);
    fixture_compile(&p->s);
    return added;
}

static void run_training(program *p) {
    float inputs[2][24];
    leat_rng rng = leat_rng_for(7, 0, 0);
    for (int i = 0; i < 48; ++i) inputs[i / 24][i % 24] = (float)(2 * leat_rng_uniform(&rng) - 1);
    for (int k = 0; k < LEATI_SLAB_COUNT; ++k)
        for (int i = 0; i < state_floats; ++i) p->s.slab[k][i] = (float)(2 * leat_rng_uniform(&rng) - 1);
    fixture_run(&p->s, (const void *const[]){inputs[0], inputs[1]});
}

static void gradients_are_the_same_computed_again(void **state) {
    static program plain, again;
    int changed = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 500; ++seed) {
        leati_value gradients[2][wrt_count];
        write_training(&plain, seed, false, gradients[0]);
        changed += write_training(&again, seed, true, gradients[1]) > 0;
        run_training(&plain);
        run_training(&again);
        for (int k = 0; k < LEATI_SLAB_COUNT; ++k)
            assert_memory_equal(plain.s.slab[k], again.s.slab[k], state_floats * sizeof(float));
        for (int i = 0; i < wrt_count; ++i) {
            assert_int_equal(gradients[0][i], gradients[1][i]);
            if (gradients[0][i] < 0) continue;
            size_t bytes =
                leati_desc_bytes(leati_graph_desc(leati_plan_graph(plain.s.plan), gradients[0][i]));
            const float *a = fixture_output(&plain.s, gradients[0][i]);
            const float *b = fixture_output(&again.s, gradients[1][i]);
            if (memcmp(a, b, bytes) != 0) fail_msg("program %d: gradient %d differs", (int)seed, i);
        }
        fixture_fini(&plain.s);
        fixture_fini(&again.s);
    }
    assert_in_range(
        changed, 50,
        500); /* a range, because the order in which arguments draw random numbers depends on the compiler */
}

/* In a hundred random sets of blocks, no two blocks that live at the same time overlap, and all arenas together are at
 * most a third larger than their bounds. */
static void blocks_never_overlap(void **state) {
    (void)state;
    leat_rng rng = leat_rng_for(3, 0, 0);
    size_t total = 0, total_bound = 0;
    for (int round = 0; round < 100; ++round) {
        leati_block blocks[200];
        size_t arena = 0, bound = 0;
        for (int i = 0; i < 200; ++i) {
            int32_t first = (int32_t)leat_rng_below(&rng, 100);
            blocks[i] = (leati_block){.first = first,
                                      .last = first + (int32_t)leat_rng_below(&rng, (uint64_t)(100 - first)),
                                      .bytes = 64 * (size_t)leat_rng_below(&rng, 50)};
        }
        assert_int_equal(leati_arena_lay_out(blocks, 200, 101, &arena, &bound, NULL), LEAT_OK);
        for (int i = 0; i < 200; ++i)
            for (int j = 0; j < i; ++j) {
                const leati_block *a = &blocks[i], *b = &blocks[j];
                bool together = a->first <= b->last && b->first <= a->last && a->bytes && b->bytes;
                if (together)
                    assert_true(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
                assert_true(a->offset + a->bytes <= arena);
            }
        assert_true(arena >= bound);
        total += arena;
        total_bound += bound;
    }
    assert_true((double)total < 1.33 * (double)total_bound);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_equal_the_interpreter),
        cmocka_unit_test(gradients_are_the_same_computed_again),
        cmocka_unit_test(blocks_never_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
