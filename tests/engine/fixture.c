/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up, compiles and runs the graph of a test. */
#include "engine/fixture.h"

#include "backends/ref/ref.h"
#include "base/memory.h"
#include "cmocka_all.h"

void fixture_init(fixture *b) {
    leat_error err = {0};
    *b = (fixture){0};
    assert_int_equal(leati_graph_create(&b->graph, &err), LEAT_OK);
    assert_int_equal(leati_arena_create(&b->arena, &err), LEAT_OK);
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i)
        assert_non_null(b->slab[i] = leati_calloc_aligned(FIXTURE_SLAB_FLOATS * sizeof(float)));
}

void fixture_fini(fixture *b) {
    leati_plan_destroy(&b->plan);
    leati_graph_destroy(&b->graph);
    leati_arena_destroy(&b->arena);
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) leati_free(b->slab[i]);
}

void fixture_compile(fixture *b) {
    static const leati_backend *const backends[] = {&leati_backend_ref, NULL};
    leati_plan_options options = {.threads = 1, .backends = backends, .arena = b->arena};
    leat_error err = {0};
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) options.slabs[i] = b->slab[i];
    if (leati_plan_create(&b->plan, &b->graph, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_null(b->graph);
}

void fixture_run(fixture *b, const void *const *inputs) {
    leat_error err = {0};
    if (leati_plan_run(b->plan, inputs, 1, 0, &err) != LEAT_OK) fail_msg("%s", err.message);
}

const float *fixture_output(const fixture *b, leati_value value) {
    return leati_plan_output(b->plan, value).data;
}

leati_value fixture_input(fixture *b, int index, int64_t rows, int64_t columns) {
    leati_desc desc = {.dtype = LEAT_F32, .rank = 2, .shape = {rows, columns}};
    return leati_graph_input(b->graph, index, &desc);
}

leati_value fixture_state(fixture *b, leati_slab slab, int64_t offset, int64_t count) {
    leati_desc desc = {.dtype = LEAT_F32, .rank = 1, .shape = {count}};
    return leati_graph_state(b->graph, slab, (size_t)offset * sizeof(float), &desc);
}

leati_value fixture_step(fixture *b, leati_value x) {
    return leati_linear(b->graph, x, 1, 0);
}
