/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation fails, for every n: building, differentiating and compiling return LEAT_ENOMEM and leak nothing.
 * A run allocates nothing. */
#include "cmocka_all.h"

#include <string.h>

#include "backends/ref/ref.h"
#include "engine/graph/build.h"
#include "engine/plan/plan.h"
#include "support/memory_failing.h"

static _Alignas(64) float slab[256];

/* A small training step: seven layers, dropout, crossentropy, gradient checkpointing, stored gradients, SGD. */
static leat_status build(leati_graph *g, leat_error *err) {
    const int64_t size = 16;
    leati_desc in = {LEAT_F32, 2, {2, 4}}, square = {LEAT_F32, 2, {4, 4}}, scalars = {LEAT_F32, 1, {2}};
    leati_desc line = leati_desc_make(LEAT_F32, 1, &size);
    leati_value d = LEATI_NONE, none = LEATI_NONE;
    leati_graph_label(g, "dense");
    leati_value x = leati_graph_input(g, 0, &in), labels = leati_graph_input(g, 1, &in);
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, 0, &square);
    leati_value h = x;
    for (int i = 0; i < 6; ++i)
        h = leati_function_of(g, leati_matmul(g, h, false, w, false, none), LEATI_FN_TANH);
    leati_value logits = leati_matmul(g, leati_dropout(g, h, 0.5f, 0, 1), false, w, false, none);
    leati_graph_label(g, "loss");
    leati_value loss =
        leati_reduce_all(g, LEATI_REDUCE_MEAN, leati_softmax_xent(g, logits, labels, LEATI_XENT_EXACT));
    int32_t forward = leati_graph_node_count(g);
    leat_status status = leati_graph_differentiate(g, loss, 1, &w, &d, err);
    int32_t nodes = leati_graph_node_count(g);
    if (status == LEAT_OK) status = leati_graph_recompute(g, forward, err);
    if (status == LEAT_OK) assert_true(leati_graph_node_count(g) > nodes);
    if (status != LEAT_OK) return status;
    leati_value slot = leati_graph_state(g, LEATI_SLAB_WEIGHTS, 64 * sizeof(float), &line);
    leati_graph_store(g, slot, d);
    leati_value update[3] = {leati_graph_state(g, LEATI_SLAB_WEIGHTS, 128 * sizeof(float), &scalars), slot,
                             leati_graph_state(g, LEATI_SLAB_WEIGHTS, 0, &line)};
    leati_graph_node(g, LEATI_OP_UPDATE_SGD, NULL, 3, update, NULL);
    leati_graph_keep(g, loss);
    return LEAT_OK;
}

static leat_status compile(leati_plan **plan, leati_arena **arena, leat_error *err) {
    static const leati_backend *const backends[] = {&leati_backend_ref, NULL};
    leati_graph *g = NULL;
    leat_status status = leati_arena_create(arena, err);
    if (status == LEAT_OK) status = leati_graph_create(&g, err);
    if (status != LEAT_OK) return status;
    status = build(g, err);
    if (status != LEAT_OK) {
        leati_graph_destroy(&g);
        return status;
    }
    leati_plan_options options = {.threads = 1, .backends = backends, .arena = *arena};
    options.slabs[LEATI_SLAB_WEIGHTS] = slab;
    return leati_plan_create(plan, &g, &options, err);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    int64_t before = memory_live(), n = 1;
    for (bool failed = true; failed; ++n) {
        leati_plan *plan = NULL;
        leati_arena *arena = NULL;
        leat_error err = {0};
        memory_fail_at(n);
        leat_status status = compile(&plan, &arena, &err);
        failed = memory_failed();
        memory_fail_at(0);
        assert_int_equal(status, failed ? LEAT_ENOMEM : LEAT_OK);
        assert_int_equal(err.code, status);
        assert_true((plan == NULL) == failed);
        leati_plan_destroy(&plan);
        leati_arena_destroy(&arena);
        assert_int_equal(memory_live(), before);
    }
    assert_true(n > 50);
}

static void a_run_asks_for_no_memory(void **state) {
    (void)state;
    leati_plan *plan = NULL;
    leati_arena *arena = NULL;
    leat_error err = {0};
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, labels[8] = {1, 0, 0, 0, 0, 1, 0, 0};
    assert_int_equal(compile(&plan, &arena, &err), LEAT_OK);
    memory_fail_at(0);
    for (uint64_t step = 0; step < 5; ++step)
        assert_int_equal(leati_plan_run(plan, (const void *[]){x, labels}, 1, step, &err), LEAT_OK);
    assert_int_equal(memory_calls(), 0);
    leati_plan_destroy(&plan);
    leati_arena_destroy(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_run_asks_for_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
