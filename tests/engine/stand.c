/* SPDX-License-Identifier: Apache-2.0 */
/* The stand: set up, compile, run. */
#include "engine/stand.h"

#include "backends/ref/ref.h"
#include "base/memory.h"
#include "cmocka_all.h"

void stand_init(stand *b) {
    leat_error err = {0};
    *b = (stand){0};
    assert_int_equal(leati_graph_create(&b->graph, &err), LEAT_OK);
    assert_int_equal(leati_arena_create(&b->arena, &err), LEAT_OK);
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i)
        assert_non_null(b->slab[i] = leati_calloc_aligned(STAND_SLAB_FLOATS * sizeof(float)));
}

void stand_fini(stand *b) {
    leati_plan_destroy(&b->plan);
    leati_graph_destroy(&b->graph);
    leati_arena_destroy(&b->arena);
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) leati_free(b->slab[i]);
}

void stand_compile(stand *b) {
    static const leati_backend *const backends[] = {&leati_backend_ref, NULL};
    leati_plan_options options = {.threads = 1, .backends = backends, .arena = b->arena};
    leat_error err = {0};
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) options.slabs[i] = b->slab[i];
    if (leati_plan_create(&b->plan, &b->graph, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_null(b->graph);
}

void stand_run(stand *b, const void *const *inputs) {
    leat_error err = {0};
    if (leati_plan_run(b->plan, inputs, 1, 0, &err) != LEAT_OK) fail_msg("%s", err.message);
}

const float *stand_output(const stand *b, leati_value value) {
    return leati_plan_output(b->plan, value).data;
}

leati_value stand_input(stand *b, int index, int64_t rows, int64_t columns) {
    leati_desc desc = {.dtype = LEAT_F32, .rank = 2, .shape = {rows, columns}};
    return leati_graph_input(b->graph, index, &desc);
}

leati_value stand_state(stand *b, leati_slab slab, int64_t offset, int64_t count) {
    leati_desc desc = {.dtype = LEAT_F32, .rank = 1, .shape = {count}};
    return leati_graph_state(b->graph, slab, (size_t)offset * sizeof(float), &desc);
}

leati_value stand_step(stand *b, leati_value x) {
    return leati_linear(b->graph, x, 1, 0);
}
