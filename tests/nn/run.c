/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/run.h"

#include "backends/native/backend.h"
#include "backends/ref/ref.h"
#include "cmocka_all.h"
#include "nn/network/network.h"
#include <string.h>
#ifdef LEAT_TEST_ONEDNN
#include "backends/onednn/backend.h"
#endif

#ifdef LEAT_TEST_DEVICE
#include <stdlib.h>

#include "train/step/mirror.h"

const run_backend run_backends[] = {
    {"device", {&leati_backend_native, &leati_backend_ref, NULL}},
    {NULL, {NULL}},
};

static leati_device *device;

static void close_device(void) {
    leati_device_close(&device);
}

leati_device *run_device(void) {
    leat_error err = {0};
    if (device) return device;
    assert_ok(leati_device_open(getenv("LEAT_DEVICE"), 0, &device, &err), &err);
    assert_int_equal(atexit(close_device), 0);
    return device;
}

void run_slabs_open(run_slabs *s, leat_model *model) {
    leat_error err = {0};
    *s = (run_slabs){.model = model};
    assert_ok(leati_device_slabs_create(&s->copy, run_device(), &err), &err);
}

void run_slabs_bind(run_slabs *s, void *out[LEATI_SLAB_COUNT]) {
    leat_error err = {0};
    bool moved = false;
    assert_ok(leati_device_slabs_update(s->copy, s->model, &moved, &err), &err);
    leati_device_slabs_addresses(s->copy, out);
}

void run_slabs_ran(run_slabs *s, bool trained) {
    leati_device_slabs_ran(s->copy, s->model, trained);
    s->model->weights.mirror->ahead[LEATI_SLAB_GRADIENTS] = trained; /* only tests read gradients */
    for (int i = 0; i < LEATI_SLAB_SCALARS; ++i) (void)leati_weights_slab(&s->model->weights, (leati_slab)i);
}

void run_slabs_close(run_slabs *s) {
    leati_device_slabs_destroy(&s->copy, s->model);
}
#else
leati_device *run_device(void) {
    return NULL;
}

void run_slabs_open(run_slabs *s, leat_model *model) {
    *s = (run_slabs){.model = model};
}

void run_slabs_bind(run_slabs *s, void *out[LEATI_SLAB_COUNT]) {
    memcpy(out, s->model->weights.slab, sizeof s->model->weights.slab);
}

void run_slabs_ran(run_slabs *s, bool trained) {
    (void)s;
    (void)trained;
}

void run_slabs_close(run_slabs *s) {
    (void)s;
}

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
#endif

void run_begin(run *r, const run_backend *backend) {
    leat_error err = {0};
    *r = (run){.backend = backend};
    assert_ok(leati_graph_create(&r->graph, &err), &err);
    assert_ok(leati_arena_create_on(&r->arena, run_device(), &err), &err);
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
