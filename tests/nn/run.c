/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/run.h"

#include "backends/native/backend.h"
#include "backends/ref/ref.h"
#include "cmocka_all.h"
#ifdef LEAT_TEST_ONEDNN
#include "backends/onednn/backend.h"
#endif

const run_backend run_backends[] = {
    {"ref", {&leati_backend_ref, NULL}},
#ifdef LEAT_TEST_ONEDNN
    {"onednn", {&leati_backend_onednn, &leati_backend_ref, NULL}},
    {"native", {&leati_backend_native, &leati_backend_onednn, &leati_backend_ref, NULL}},
#else
    {"native", {&leati_backend_native, &leati_backend_ref, NULL}},
#endif
    {NULL, {NULL}},
};

void run_begin(run *r, const run_backend *backend) {
    leat_error err = {0};
    *r = (run){.backend = backend};
    assert_ok(leati_graph_create(&r->graph, &err), &err);
    assert_ok(leati_arena_create(&r->arena, &err), &err);
}

leati_value run_input(run *r, const leat_tensor *array) {
    assert_true(r->input_count < RUN_MAX_INPUTS);
    const leati_desc desc = leati_desc_make(array->dtype, array->rank, array->shape);
    r->inputs[r->input_count] = array->data;
    return leati_graph_input(r->graph, r->input_count++, &desc);
}

void run_compute(run *r) {
    leat_error err = {0};
    const leati_plan_options options = {.threads = 1, .backends = r->backend->list, .arena = r->arena};
    assert_ok(leati_plan_create(&r->plan, &r->graph, &options, &err), &err);
    assert_ok(leati_plan_run(r->plan, r->inputs, 0, 0, &err), &err);
}

void run_end(run *r) {
    leati_plan_destroy(&r->plan);
    leati_graph_destroy(&r->graph);
    leati_arena_destroy(&r->arena);
}
