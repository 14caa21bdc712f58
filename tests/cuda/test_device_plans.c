/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a device: each computes what the same plan of the host computes, whatever changes between two runs, and
 * every call of the driver and every allocation may fail. */
#include "cmocka_all.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "backends/ref/ref.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "cuda/sim/sim.h"
#include "engine/graph/build.h"
#include "engine/plan/plan.h"
#include "support/memory_failing.h"

enum { slab_floats = 16384, slab_bytes = slab_floats * sizeof(float), most_outputs = 4 };
enum { batch = 6, features = 8, hidden = 16, classes = 3 };

static leati_device *device;
static const leati_device_class *class;
static const leati_backend *const host_backends[] = {&leati_backend_ref, NULL};

/* Plans on the host or on the device, with an arena and slabs of their own. */
typedef struct side {
    leati_device *device; /* NULL: the host */
    leati_arena *arena;
    leati_plan *plan, *another;        /* `another` is NULL, or shares the arena */
    float *slab[LEATI_SLAB_COUNT];     /* the host's */
    void *on_device[LEATI_SLAB_COUNT]; /* NULL: as on the host */
    leati_value outputs[most_outputs], outputs_of_another[most_outputs];
} side;

/* Adds a graph's nodes and writes its outputs, LEATI_NONE behind the last one. */
typedef leat_status (*builder)(leati_graph *g, leati_value *outputs, leat_error *err);

/* ---- Graphs ---- */

static leati_value matrix_input(leati_graph *g, int input, int64_t rows, int64_t columns) {
    leati_desc desc = {LEAT_F32, 2, {rows, columns}};
    return leati_graph_input(g, input, &desc);
}

static leati_value matrix_state(leati_graph *g, leati_slab slab, size_t at, int64_t rows, int64_t columns) {
    leati_desc desc = {LEAT_F32, 2, {rows, columns}};
    return leati_graph_state(g, slab, at * sizeof(float), &desc);
}

static leati_value line_state(leati_graph *g, leati_slab slab, size_t at, int64_t count) {
    leati_desc desc = {LEAT_F32, 1, {count}};
    return leati_graph_state(g, slab, at * sizeof(float), &desc);
}

/* p -= lr * g, with lr in the slab of scalars, which is the host's. */
static void update(leati_graph *g, size_t at, int64_t count, leati_value gradient) {
    leati_value inputs[] = {line_state(g, LEATI_SLAB_SCALARS, 0, 2), leati_reshape(g, gradient, 1, &count),
                            line_state(g, LEATI_SLAB_WEIGHTS, at, count)};
    leati_graph_node(g, LEATI_OP_UPDATE_SGD, NULL, 3, inputs, NULL);
}

/* A training step with dropout.  Outputs: the loss, the logits, the second weights. */
static leat_status build_step(leati_graph *g, leati_value *outputs, leat_error *err) {
    leati_value wrt[2], gradient[2];
    leati_graph_label(g, "dense");
    leati_value x = matrix_input(g, 0, batch, features), labels = matrix_input(g, 1, batch, classes);
    wrt[0] = matrix_state(g, LEATI_SLAB_WEIGHTS, 0, features, hidden);
    wrt[1] = matrix_state(g, LEATI_SLAB_WEIGHTS, 512, hidden, classes);
    leati_value h = leati_function_of(g, leati_matmul(g, x, false, wrt[0], false, LEATI_NONE), LEATI_FN_TANH);
    h = leati_dropout(g, h, 0.4f, 0, 7);
    leati_value logits = leati_matmul(g, h, false, wrt[1], false, LEATI_NONE);
    leati_value loss =
        leati_reduce_all(g, LEATI_REDUCE_MEAN, leati_softmax_xent(g, logits, labels, LEATI_XENT_EXACT));
    leat_status status = leati_graph_differentiate(g, loss, 2, wrt, gradient, err);
    if (status != LEAT_OK) return status;
    update(g, 0, features * hidden, gradient[0]);
    update(g, 512, hidden * classes, gradient[1]);
    outputs[0] = loss;
    outputs[1] = logits;
    outputs[2] = line_state(g, LEATI_SLAB_WEIGHTS, 512, hidden * classes);
    return leati_graph_check(g, err);
}

/* Needs a larger arena than build_step. */
static leat_status build_wide(leati_graph *g, leati_value *outputs, leat_error *err) {
    leati_value x = matrix_input(g, 0, batch, features);
    leati_value w = matrix_state(g, LEATI_SLAB_WEIGHTS, 0, features, hidden);
    leati_value y = leati_matmul(g, x, false, w, false, LEATI_NONE), parts[8];
    for (int i = 0; i < 8; ++i) parts[i] = leati_linear(g, y, (float)i, 1);
    leati_value wide = leati_concat(g, 8, parts, 1);
    for (int i = 0; i < 8; ++i) parts[i] = leati_function_of(g, wide, LEATI_FN_TANH);
    outputs[0] = leati_reduce_last(g, LEATI_REDUCE_SUM, leati_concat(g, 8, parts, 1), false);
    return leati_graph_check(g, err);
}

/* A convolution for cuDNN and a product for cuBLASLt, with their gradients. */
enum { side_pixels = 6, channels = 8, product_rows = 48, product_inner = 72, product_columns = 80 };
static leat_status build_libraries(leati_graph *g, leati_value *outputs, leat_error *err) {
    const leati_attrs attrs = {.conv = {.window = {.spatial = 2,
                                                   .kernel = {3, 3},
                                                   .stride = {1, 1},
                                                   .dilation = {1, 1},
                                                   .pad_before = {1, 1},
                                                   .pad_after = {1, 1}},
                                        .groups = 1}};
    const leati_desc image = {LEAT_F32, 4, {2, side_pixels, side_pixels, channels}};
    const leati_desc filters = {LEAT_F32, 4, {3, 3, channels, channels}};
    leati_value wrt[2], loss[2];
    wrt[0] = leati_graph_state(g, LEATI_SLAB_WEIGHTS, 0, &filters);
    wrt[1] = matrix_state(g, LEATI_SLAB_WEIGHTS, 1024, product_inner, product_columns);
    leati_value conv[] = {leati_graph_input(g, 0, &image), wrt[0]};
    leati_value y = leati_graph_node(g, LEATI_OP_CONV, &attrs, 2, conv, NULL);
    y = leati_graph_node(g, LEATI_OP_CONV, &attrs, 2, (leati_value[]){y, wrt[0]}, NULL);
    leati_value z =
        leati_matmul(g, matrix_input(g, 1, product_rows, product_inner), false, wrt[1], false, LEATI_NONE);
    loss[0] = leati_reduce_all(g, LEATI_REDUCE_MEAN, leati_mul(g, y, y));
    loss[1] = leati_reduce_all(g, LEATI_REDUCE_MEAN, leati_mul(g, z, z));
    outputs[0] = leati_add(g, loss[0], loss[1]);
    leat_status status = leati_graph_differentiate(g, outputs[0], 2, wrt, outputs + 1, err);
    return status == LEAT_OK ? leati_graph_check(g, err) : status;
}

/* The product of build_libraries, large enough for cuBLASLt on a GPU with one multiprocessor. */
enum { long_columns = 192 };
static leat_status build_long(leati_graph *g, leati_value *outputs, leat_error *err) {
    leati_value w = matrix_state(g, LEATI_SLAB_WEIGHTS, 1024, product_inner, long_columns);
    outputs[0] =
        leati_matmul(g, matrix_input(g, 1, product_rows, product_inner), false, w, false, LEATI_NONE);
    return leati_graph_check(g, err);
}

/* Two lookups, of input 0 in a table of 5 rows and of input 1 in one of 4 rows. */
static leat_status build_lookups(leati_graph *g, leati_value *outputs, leat_error *err) {
    leati_desc indices = {LEAT_I32, 2, {batch, 2}};
    leati_value tables[] = {matrix_state(g, LEATI_SLAB_WEIGHTS, 0, 5, 3),
                            matrix_state(g, LEATI_SLAB_WEIGHTS, 64, 4, 2)};
    for (int k = 0; k < 2; ++k) {
        leati_graph_label(g, k == 0 ? "first" : "second");
        outputs[k] = leati_gather(g, tables[k], leati_graph_input(g, k, &indices));
    }
    return leati_graph_check(g, err);
}

/* One large input, which leati_plan_stage copies. */
enum { large_rows = 300, large_columns = 1000 };
static leat_status build_large(leati_graph *g, leati_value *outputs, leat_error *err) {
    leati_value x = matrix_input(g, 0, large_rows, large_columns);
    outputs[0] = leati_reduce_last(g, LEATI_REDUCE_SUM, leati_linear(g, x, 2, 1), false);
    return leati_graph_check(g, err);
}

/* ---- Sides ---- */

static float number(size_t i) {
    return (float)((i * 7919 + 13) % 101) / 101 - 0.5f;
}

/* Copies the host's slabs to the device, or back. */
static leat_status copy_slabs(side *s, bool to_device, leat_error *err) {
    leat_status status = LEAT_OK;
    for (int i = 0; i < LEATI_SLAB_COUNT && status == LEAT_OK; ++i) {
        if (!s->on_device[i]) continue;
        status = to_device ? class->copy_in(device, s->on_device[i], s->slab[i], slab_bytes, err)
                           : class->copy_out(device, s->slab[i], s->on_device[i], slab_bytes, err);
    }
    return status == LEAT_OK && s->device ? class->wait(device, err) : status;
}

static leat_status open_side(side *s, leati_device *on, leat_error *err) {
    *s = (side){.device = on};
    leat_status status = leati_arena_create_on(&s->arena, on, err);
    for (int i = 0; i < LEATI_SLAB_COUNT && status == LEAT_OK; ++i) {
        bool moves = on && (i == LEATI_SLAB_WEIGHTS || i == LEATI_SLAB_SLOT0);
        if (!(s->slab[i] = leati_calloc_aligned(slab_bytes))) return LEAT_ENOMEM;
        for (size_t k = 0; k < slab_floats; ++k) s->slab[i][k] = number(k);
        if (moves) status = class->allocate(on, slab_bytes, &s->on_device[i], err);
    }
    if (status == LEAT_OK) s->slab[LEATI_SLAB_SCALARS][0] = 0.1f;
    return status == LEAT_OK ? copy_slabs(s, true, err) : status;
}

static leat_status compile(const side *s, builder build, leati_plan **plan, leati_value *outputs,
                           leat_error *err) {
    leati_graph *g = NULL;
    leat_status status = leati_graph_create(&g, err);
    if (status != LEAT_OK) return status;
    for (int i = 0; i < most_outputs; ++i) outputs[i] = LEATI_NONE;
    status = build(g, outputs, err);
    for (int i = 0; status == LEAT_OK && i < most_outputs && outputs[i] >= 0; ++i)
        leati_graph_keep(g, outputs[i]);
    if (status != LEAT_OK) {
        leati_graph_destroy(&g);
        return status;
    }
    leati_plan_options options = {.threads = 1, .backends = host_backends, .arena = s->arena};
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i)
        options.slabs[i] = s->on_device[i] ? s->on_device[i] : s->slab[i];
    return leati_plan_create(plan, &g, &options, err);
}

static void close_side(side *s) {
    leati_plan_destroy(&s->plan);
    leati_plan_destroy(&s->another);
    leati_arena_destroy(&s->arena);
    if (s->device) (void)class->wait(device, NULL); /* A copy of a slab may not have ended. */
    for (int i = 0; i < LEATI_SLAB_COUNT; ++i) {
        leati_free(s->slab[i]);
        if (s->on_device[i]) class->release(device, s->on_device[i]);
    }
}

static void make_side(side *s, leati_device *on, builder build) {
    leat_error err = {0};
    if (open_side(s, on, &err) != LEAT_OK || compile(s, build, &s->plan, s->outputs, &err) != LEAT_OK)
        fail_msg("%s", err.message);
}

static float tolerance = 1e-5f;

/* Fails unless the outputs of both plans are equal, up to rounding. */
static void compare_outputs(const side *a, const side *b, int run) {
    for (int i = 0; i < most_outputs && a->outputs[i] >= 0; ++i) {
        leat_tensor got = leati_plan_output(a->plan, a->outputs[i]);
        leat_tensor expected = leati_plan_output(b->plan, b->outputs[i]);
        assert_int_equal(leat_tensor_count(&got), leat_tensor_count(&expected));
        const float *p = got.data, *q = expected.data;
        for (int64_t k = 0; k < leat_tensor_count(&got); ++k)
            if (!(fabsf(p[k] - q[k]) <= tolerance * (1 + fabsf(q[k]))))
                fail_msg("run %d, output %d [%d]: got %g, expected %g", run, i, (int)k, (double)p[k],
                         (double)q[k]);
    }
}

static void swap_plans(side *s) {
    leati_plan *plan = s->plan;
    leati_value outputs[most_outputs];
    memcpy(outputs, s->outputs, sizeof outputs);
    memcpy(s->outputs, s->outputs_of_another, sizeof outputs);
    memcpy(s->outputs_of_another, outputs, sizeof outputs);
    s->plan = s->another;
    s->another = plan;
}

static void add_plan(side *s, builder build) {
    leat_error err = {0};
    if (compile(s, build, &s->another, s->outputs_of_another, &err) != LEAT_OK) fail_msg("%s", err.message);
}

/* The inputs of a training step. */
typedef struct step_inputs {
    float x[batch * features], labels[batch * classes];
} step_inputs;

static void fill_inputs(step_inputs *in, int run) {
    memset(in, 0, sizeof *in);
    for (size_t i = 0; i < batch * features; ++i) in->x[i] = number(i + 31 * (size_t)run);
    for (size_t i = 0; i < batch; ++i) in->labels[i * classes + (i + (size_t)run) % classes] = 1;
}

static void run_both(side *a, side *b, const void *const *inputs, uint64_t step, int run) {
    leat_error err = {0};
    if (leati_plan_run(b->plan, inputs, 5, step, &err) != LEAT_OK) fail_msg("%s", err.message);
    if (leati_plan_run(a->plan, inputs, 5, step, &err) != LEAT_OK) fail_msg("%s", err.message);
    compare_outputs(a, b, run);
}

/* ---- Runs ---- */

/* The inputs, the step, on which dropout depends, and the learning rate change; the recording follows. */
static void check_steps(leati_device *on) {
    side a, b;
    step_inputs in;
    float before[batch * classes] = {0};
    make_side(&a, on, build_step);
    make_side(&b, NULL, build_step);
    for (int run = 0; run < 8; ++run) {
        bool same_inputs = run >= 6;
        fill_inputs(&in, same_inputs ? 5 : run);
        a.slab[LEATI_SLAB_SCALARS][0] = b.slab[LEATI_SLAB_SCALARS][0] =
            run >= 5 ? 0 : 0.1f * (float)(run + 1);
        run_both(&a, &b, (const void *[]){in.x, in.labels}, (uint64_t)run, run);
        const float *logits = leati_plan_output(a.plan, a.outputs[1]).data;
        /* The weights and the inputs stay, and the step changes: so does dropout. */
        if (same_inputs) assert_memory_not_equal(logits, before, sizeof before);
        memcpy(before, logits, sizeof before);
    }
    close_side(&a);
    close_side(&b);
}

static void replays_follow_what_changes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; ++seed) {
        sim_seed(seed);
        check_steps(device);
    }
}

/* The same device, without kernels of its own. */
static void ops_run_on_the_host_between_copies(void **state) {
    (void)state;
    static const leati_backend *const none[] = {NULL};
    const leati_backend *const *own = device->backends;
    device->backends = none;
    for (uint64_t seed = 0; seed < 10; ++seed) {
        sim_seed(seed);
        check_steps(device);
    }
    device->backends = own;
}

static void timed_runs_compute_the_same(void **state) {
    (void)state;
    side a, b;
    step_inputs in;
    int64_t ns[64];
    leat_error err = {0};
    make_side(&a, device, build_step);
    make_side(&b, NULL, build_step);
    assert_true(leati_plan_step_count(a.plan) <= 64);
    for (int run = 0; run < 6; ++run) {
        fill_inputs(&in, run);
        const void *inputs[] = {in.x, in.labels};
        assert_int_equal(leati_plan_run(b.plan, inputs, 5, 1, &err), LEAT_OK);
        if (run % 2 == 0)
            assert_int_equal(leati_plan_run(a.plan, inputs, 5, 1, &err), LEAT_OK);
        else if (leati_plan_run_timed(a.plan, inputs, 5, 1, ns, &err) != LEAT_OK)
            fail_msg("%s", err.message);
        for (int i = 0; run % 2 && i < leati_plan_step_count(a.plan); ++i) assert_true(ns[i] >= 0);
        compare_outputs(&a, &b, run);
    }
    close_side(&a);
    close_side(&b);
}

/* The arena moves when a larger plan is created; the recording of the smaller one used its old place.  From then on the
 * two plans run in turn. */
static void plans_share_an_arena_that_grows(void **state) {
    (void)state;
    side a, b;
    step_inputs in;
    make_side(&a, device, build_step);
    make_side(&b, NULL, build_step);
    size_t before = leati_arena_bytes(a.arena);
    for (int run = 0; run < 12; ++run) {
        fill_inputs(&in, run);
        const void *inputs[] = {in.x, in.labels};
        run_both(&a, &b, inputs, (uint64_t)run, run);
        if (run == 3) {
            add_plan(&a, build_wide);
            add_plan(&b, build_wide);
            assert_true(leati_arena_bytes(a.arena) > before);
        }
        if (run < 3 || run == 5) continue;
        swap_plans(&a);
        swap_plans(&b);
        run_both(&a, &b, inputs, 0, run);
        swap_plans(&a);
        swap_plans(&b);
    }
    close_side(&a);
    close_side(&b);
}

/* leati_plan_start, leati_plan_stage and leati_plan_finish: the inputs of the next run are copied during this one. */
static void staged_inputs_are_those_of_the_next_run(void **state) {
    (void)state;
    enum { blocks = 3, numbers = large_rows * large_columns };
    side a;
    leat_error err = {0};
    float *inputs[blocks];
    make_side(&a, device, build_large);
    assert_true(leati_plan_can_stage(a.plan));
    for (int i = 0; i < blocks; ++i) {
        assert_non_null(inputs[i] = leati_calloc_aligned(numbers * sizeof(float)));
        for (size_t k = 0; k < numbers; ++k) inputs[i][k] = (float)(i + 1);
    }
    assert_int_equal(class->pin(device, inputs[1], numbers * sizeof(float), &err), LEAT_OK);
    for (int run = 0; run < 12; ++run) {
        bool staged = run % 4 != 0, stages = (run + 1) % 4 != 0 || run == 11;
        sim_seed((uint64_t)run);
        const void *now[] = {inputs[run % blocks]}, *next[] = {inputs[(run + 1) % blocks]};
        if (leati_plan_start(a.plan, now, staged, 1, 0, &err) != LEAT_OK) fail_msg("%s", err.message);
        if (stages) assert_int_equal(leati_plan_stage(a.plan, next, &err), LEAT_OK);
        assert_int_equal(leati_plan_finish(a.plan, &err), LEAT_OK);
        const float *sums = leati_plan_output(a.plan, a.outputs[0]).data;
        for (int i = 0; i < large_rows; ++i)
            assert_true(sums[i] == (float)large_columns * (float)(2 * (run % blocks + 1) + 1));
    }
    close_side(&a); /* with inputs that were staged for nothing */
    class->unpin(device, inputs[1]);
    for (int i = 0; i < blocks; ++i) leati_free(inputs[i]);
}

/* ---- Times ---- */

enum { slow_ns = 3000000 };

/* Runs the plan; if it stages, the copies beside it have ended before the next run. */
static void run_large(side *s, const void *const *inputs, bool staged, bool stages) {
    leat_error err = {0};
    if (leati_plan_start(s->plan, inputs, staged, 1, 0, &err) != LEAT_OK) fail_msg("%s", err.message);
    if (stages) assert_int_equal(leati_plan_stage(s->plan, inputs, &err), LEAT_OK);
    assert_int_equal(leati_plan_finish(s->plan, &err), LEAT_OK);
    while (stages && class->is_copying(device)) {
    }
}

/* A run waits for copies unless they were staged in time; and then it has no calls for measuring. */
static void waiting_for_copies_is_measured(void **state) {
    (void)state;
    side a, b;
    step_inputs small;
    float *large = leati_calloc_aligned((size_t)large_rows * large_columns * sizeof(float));
    const void *inputs[] = {large};
    assert_non_null(large);
    make_side(&a, device, build_large);
    make_side(&b, NULL, build_large);
    sim_slow_copies(64 * 1024, slow_ns);
    for (int run = 0; run < 6; ++run) {
        bool staged = run % 2 == 1;
        sim_seed((uint64_t)run);
        sim_fail_at(NULL, 0, CUDA_SUCCESS);
        run_large(&a, inputs, staged, !staged);
        assert_int_equal(sim_calls("cuEventRecord"), staged ? 0 : 2);
        assert_int_equal(sim_calls("cuStreamWaitEvent"), 0);
        int64_t ns = leati_plan_copy_wait_ns(a.plan);
        if (staged)
            assert_int_equal(ns, 0);
        else if (ns < slow_ns * 99 / 100) /* CUDA's times are rounded */
            fail_msg("run %d waited for %d ns", run, (int)ns);
        run_large(&b, inputs, false, false);
        assert_int_equal(leati_plan_copy_wait_ns(b.plan), 0);
    }
    sim_slow_copies(0, 0);
    close_side(&a);
    close_side(&b);
    make_side(&a, device, build_step);
    fill_inputs(&small, 0);
    for (int run = 0; run < 4; ++run) {
        leat_error err = {0};
        sim_fail_at(NULL, 0, CUDA_SUCCESS);
        assert_int_equal(leati_plan_run(a.plan, (const void *[]){small.x, small.labels}, 5, 0, &err),
                         LEAT_OK);
        assert_int_equal(sim_calls("cuEventRecord") + sim_calls("cuStreamQuery"), 0);
        assert_int_equal(leati_plan_copy_wait_ns(a.plan), 0);
    }
    close_side(&a);
    leati_free(large);
}

/* The moments of a watched run, and of the copies beside it, are in order and within the time of the calls. */
static void watched_runs_note_their_moments(void **state) {
    (void)state;
    enum { rounding_ns = 2000 };
    int staged = 0;
    side a;
    leati_plan_times t, more;
    float *large = leati_calloc_aligned((size_t)large_rows * large_columns * sizeof(float));
    const void *inputs[] = {large};
    assert_non_null(large);
    make_side(&a, device, build_large);
    for (int run = 0; run < 8; ++run) {
        sim_seed((uint64_t)run);
        run_large(&a, inputs, false, false);
        assert_false(leati_plan_take_times(a.plan, &t));
        int64_t before = leati_now_ns();
        leati_plan_watch_next(a.plan);
        run_large(&a, inputs, false, true);
        assert_true(leati_plan_take_times(a.plan, &t));
        int64_t after = leati_now_ns();
        run_large(&a, inputs, true, false);
        (void)leati_plan_take_times(a.plan, &more);
        assert_true(before <= t.given_ns && t.given_ns <= t.launched_ns && t.launched_ns <= after);
        assert_true(t.given_ns <= t.copied_ns && t.copied_ns <= t.ended_ns + rounding_ns);
        assert_true(t.ended_ns <= after + rounding_ns);
        if (t.staged_ns == 0) t.staging_ns = more.staging_ns, t.staged_ns = more.staged_ns;
        /* Copies that begin only after the watched run are left out. */
        if (t.staged_ns > 0) assert_true(t.given_ns <= t.staging_ns && t.staging_ns <= t.staged_ns);
        staged += t.staged_ns > 0;
        assert_int_equal(more.ended_ns, 0);
        assert_false(leati_plan_take_times(a.plan, &t));
    }
    assert_true(staged > 0);
    close_side(&a);
    leati_free(large);
}

/* A run may be in another thread than the one before, which has no context of its own. */
static void *run_in_thread(void *user) {
    float *input = leati_calloc_aligned((size_t)large_rows * large_columns * sizeof(float));
    assert_non_null(input);
    for (int run = 0; run < 3; ++run) run_large(user, (const void *[]){input}, run > 0, true);
    class->wait(device, NULL);
    leati_free(input);
    return NULL;
}

static void any_thread_may_run_a_plan(void **state) {
    (void)state;
    side a;
    pthread_t thread;
    make_side(&a, device, build_large);
    assert_int_equal(pthread_create(&thread, NULL, run_in_thread, &a), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_side(&a);
}

/* ---- Faults of the data ---- */

static void expect_fault(side *s, const void *const *inputs, const char *message) {
    leat_error err = {0};
    assert_int_equal(leati_plan_run(s->plan, inputs, 1, 0, &err), LEAT_EINVAL);
    assert_string_equal(err.message, message);
}

/* A fault is reported in the host's words, of the first op that has one; the next run works. */
static void check_faults(leati_device *on) {
    side a, b;
    int32_t good[batch * 2] = {0, 1, 2, 3, 1, 2, 0, 3, 2, 1, 0, 0}, bad[batch * 2], worse[batch * 2];
    const void *right[] = {good, good}, *first[] = {bad, good}, *second[] = {good, bad},
               *both[] = {worse, bad};
    leat_error err[3] = {{0}, {0}, {0}};
    memcpy(bad, good, sizeof bad);
    memcpy(worse, good, sizeof worse);
    bad[5] = 5, worse[7] = -1, worse[10] = 99;
    make_side(&a, on, build_lookups);
    make_side(&b, NULL, build_lookups);
    assert_int_equal(leati_plan_run(b.plan, first, 1, 0, &err[0]), LEAT_EINVAL);
    assert_int_equal(leati_plan_run(b.plan, second, 1, 0, &err[1]), LEAT_EINVAL);
    assert_int_equal(leati_plan_run(b.plan, both, 1, 0, &err[2]), LEAT_EINVAL);
    assert_string_equal(err[0].message,
                        "'first': op gather: expected an index from 0 to 4, received 5 at place 1 of "
                        "sample 2 of the batch");
    for (int run = 0; run < 4; ++run) { /* piece by piece, recorded, repeated */
        expect_fault(&a, first, err[0].message);
        run_both(&a, &b, right, 0, run);
        expect_fault(&a, second, err[1].message);
        expect_fault(&a, both, err[2].message);
        run_both(&a, &b, right, 0, run);
    }
    close_side(&a);
    close_side(&b);
}

static void faults_have_the_words_of_the_host(void **state) {
    (void)state;
    static const leati_backend *const none[] = {NULL};
    const leati_backend *const *own = device->backends;
    check_faults(device);
    device->backends = none;
    check_faults(device);
    device->backends = own;
}

/* ---- Packed weights ---- */

/* A kernel for BINARY that packs its second input, and whose result is a copy of what it has packed. */
static leat_status run_packing(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(run->device);
    unsigned char *pack = run->pack ? run->pack : (unsigned char *)run->scratch;
    size_t bytes = kernel->pack_bytes;
    if (!run->packed) {
        const leat_status status = class->copy(&cuda->device, pack, args[1], bytes, err);
        if (status != LEAT_OK) return status;
    }
    return class->copy(&cuda->device, args[2], pack, bytes, err);
}

static leat_status prepare_packing(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    (void)err;
    kernel->run = run_packing;
    kernel->pack_bytes = kernel->scratch_bytes = leati_desc_bytes(&task->inputs[1]);
    kernel->pack_inputs = 2;
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "copy");
    return LEAT_OK;
}

static leat_status build_packing(leati_graph *g, leati_value *outputs, leat_error *err) {
    leati_value w = matrix_state(g, LEATI_SLAB_WEIGHTS, 0, batch, features);
    outputs[0] = leati_add(g, matrix_input(g, 0, batch, features), w);
    return leati_graph_check(g, err);
}

/* The result shows which weights were packed: it is a copy of them. */
static void expect_weights(side *s, float expected) {
    leat_error err = {0};
    step_inputs in = {0};
    if (leati_plan_run(s->plan, (const void *[]){in.x}, 1, 0, &err) != LEAT_OK) fail_msg("%s", err.message);
    const float *y = leati_plan_output(s->plan, s->outputs[0]).data;
    for (int i = 0; i < batch * features; ++i) assert_true(y[i] == expected);
}

static void set_weights(side *s, float x) {
    leat_error err = {0};
    for (int i = 0; i < slab_floats; ++i) s->slab[LEATI_SLAB_WEIGHTS][i] = x;
    assert_int_equal(copy_slabs(s, true, &err), LEAT_OK);
}

static void weights_are_packed_once_for_each_version(void **state) {
    (void)state;
    static const leati_implementation packing[] = {{LEATI_OP_BINARY, prepare_packing, 0, false}};
    static const leati_backend backend = {.name = "packing", .implementations = packing, .count = 1};
    static const leati_backend *const backends[] = {&backend, NULL};
    const leati_backend *const *own = device->backends;
    side a;
    device->backends = backends;
    make_side(&a, device, build_packing);
    for (int run = 0; run < 4; ++run) { /* no version: each run packs */
        set_weights(&a, (float)run);
        expect_weights(&a, (float)run);
    }
    for (uint64_t version = 1; version < 4; ++version) {
        leati_arena_set_version(a.arena, version);
        set_weights(&a, 10 * (float)version);
        expect_weights(&a, 10 * (float)version);
        for (int run = 0; run < 4; ++run) { /* recorded with the packed weights, which stay */
            set_weights(&a, -1);
            expect_weights(&a, 10 * (float)version);
        }
    }
    leati_arena_set_version(a.arena, 0);
    set_weights(&a, 5);
    expect_weights(&a, 5);
    close_side(&a);
    device->backends = own;
}

/* ---- Failures ---- */

/* Piece by piece, recorded, repeated. */
enum { run_count = 3 };

/* Three runs of a plan that is created and destroyed.  The first numbers of output 0 go to `numbers`. */
static leat_status live(builder build, const void *const *inputs, float *numbers, leat_error *err) {
    side a;
    leat_status status = open_side(&a, device, err);
    if (status == LEAT_OK) status = compile(&a, build, &a.plan, a.outputs, err);
    for (int run = 0; run < run_count && status == LEAT_OK; ++run) {
        status = leati_plan_run(a.plan, inputs, 5, (uint64_t)run, err);
        if (status == LEAT_OK) numbers[run] = *(const float *)leati_plan_output(a.plan, a.outputs[0]).data;
        if (status != LEAT_OK && sim_failed(NULL)) { /* the plan has survived: it can be asked again */
            leat_error other = {0};
            (void)leati_plan_run(a.plan, inputs, 5, (uint64_t)run, &other);
        }
    }
    close_side(&a);
    return status;
}

/* A failure of a library may also be reported by the next call of the driver. */
static void check_failed_call(leat_status status, const leat_error *err, const float *got,
                              const float *expected) {
    const char *function = NULL;
    sim_failed(&function);
    assert_int_equal(err->code, status);
    /* A kernel may take the place of the library's, and then the sum has another order. */
    for (int i = 0; status == LEAT_OK && i < run_count; ++i)
        assert_true(fabsf(got[i] - expected[i]) <= tolerance * (1 + fabsf(expected[i])));
    bool named =
        strstr(err->message, "cuda:0") || strstr(err->message, "cuBLASLt") || strstr(err->message, "cuDNN");
    if (status != LEAT_OK && !named) fail_msg("%s: %s", function, err->message);
}

/* Each call of the driver and of the libraries fails once.  Then the work fails or its result is right, and nothing is
 * left behind. */
static void fail_every_call(builder build, const void *const *inputs, int kinds) {
    static const CUresult results[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN,
                                       CUDA_ERROR_LAUNCH_FAILED};
    float expected[run_count], got[run_count];
    leat_error err = {0};
    if (live(build, inputs, expected, &err) != LEAT_OK) fail_msg("%s", err.message);
    size_t before = sim_live();
    int64_t blocks = memory_live();
    for (int k = 0; k < kinds; ++k) {
        bool failed = true;
        for (int64_t n = 1; failed; ++n) {
            err = (leat_error){0};
            sim_fail_at(NULL, n, results[k]);
            leat_status status = live(build, inputs, got, &err);
            failed = sim_failed(NULL);
            check_failed_call(status, &err, got, expected);
            sim_fail_at(NULL, 0, CUDA_SUCCESS);
            if (sim_live() != before || memory_live() != blocks) fail_msg("call %d: something leaks", (int)n);
        }
    }
}

/* Each allocation of the host fails once. */
static void fail_every_allocation(builder build, const void *const *inputs) {
    float numbers[run_count];
    size_t before = sim_live();
    int64_t blocks = memory_live(), n = 1;
    for (bool failed = true; failed; ++n) {
        leat_error err = {0};
        memory_fail_at(n);
        leat_status status = live(build, inputs, numbers, &err);
        failed = memory_failed();
        memory_fail_at(0);
        assert_int_equal(status, failed ? LEAT_ENOMEM : LEAT_OK);
        assert_int_equal(memory_live(), blocks);
        assert_int_equal(sim_live(), before);
    }
    assert_true(n > 50);
}

static void every_call_and_allocation_may_fail(void **state) {
    (void)state;
    step_inputs in;
    fill_inputs(&in, 0);
    const void *inputs[] = {in.x, in.labels};
    fail_every_call(build_step, inputs, 3);
    fail_every_allocation(build_step, inputs);
}

static void every_call_of_the_libraries_may_fail(void **state) {
    (void)state;
    static float image[2 * side_pixels * side_pixels * channels], matrix[product_rows * product_inner];
    const void *inputs[] = {image, matrix};
    side a, b;
    for (size_t i = 0; i < sizeof image / sizeof *image; ++i) image[i] = number(i);
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; ++i) matrix[i] = number(i);
    const int multiprocessors = leati_cuda_of(device)->multiprocessors;
    device->tf32 = true; /* cuBLASLt serves smaller products then, and on a small GPU */
    tolerance = 1e-3f;
    leati_cuda_of(device)->multiprocessors = 1;
    make_side(&a, device, build_libraries);
    make_side(&b, NULL, build_libraries);
    sim_fail_at(NULL, 0, CUDA_SUCCESS);
    for (int run = 0; run < 3; ++run) run_both(&a, &b, inputs, 0, run);
    assert_true(sim_calls("cublasLtMatmul") > 0);
    assert_true(sim_calls("cudnnConvolutionForward") + sim_calls("cudnnConvolutionBiasActivationForward") >
                0);
    assert_true(sim_calls("cudnnConvolutionBackwardData") > 0);
    close_side(&a);
    close_side(&b);
    fail_every_call(build_libraries, inputs, 1);
    fail_every_allocation(build_libraries, inputs);
    device->tf32 = false;
    tolerance = 1e-5f;
    leati_cuda_of(device)->multiprocessors = multiprocessors;
}

/* With TF32 the products of the libraries are rounded, and only then. */
static void products_are_rounded_on_request(void **state) {
    (void)state;
    static float image[2 * side_pixels * side_pixels * channels], matrix[product_rows * product_inner];
    const void *inputs[] = {image, matrix};
    const int multiprocessors = leati_cuda_of(device)->multiprocessors;
    leat_error err = {0};
    side host, whole, rounded;
    float most = 0;
    for (size_t i = 0; i < sizeof image / sizeof *image; ++i) image[i] = number(i);
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; ++i) matrix[i] = number(i);
    leati_cuda_of(device)->multiprocessors = 1;
    make_side(&host, NULL, build_long);
    make_side(&whole, device, build_long);
    device->tf32 = true;
    make_side(&rounded, device, build_long);
    device->tf32 = false;
    sim_fail_at(NULL, 0, CUDA_SUCCESS);
    for (int run = 0; run < 3; ++run) run_both(&whole, &host, inputs, 0, run);
    assert_true(sim_calls("cublasLtMatmul") > 0);
    if (leati_plan_run(rounded.plan, inputs, 5, 0, &err) != LEAT_OK) fail_msg("%s", err.message);
    leat_tensor got = leati_plan_output(rounded.plan, rounded.outputs[0]);
    leat_tensor expected = leati_plan_output(host.plan, host.outputs[0]);
    const float *p = got.data, *q = expected.data;
    for (int64_t k = 0; k < leat_tensor_count(&got); ++k) most = fmaxf(most, fabsf(p[k] - q[k]));
    if (most < 2e-5f || most > 1e-2f) fail_msg("TF32 differs by %g", (double)most);
    close_side(&host);
    close_side(&whole);
    close_side(&rounded);
    leati_cuda_of(device)->multiprocessors = multiprocessors;
}

static void runs_ask_for_no_memory(void **state) {
    (void)state;
    side a;
    step_inputs in;
    leat_error err = {0};
    make_side(&a, device, build_step);
    fill_inputs(&in, 0);
    for (int run = 0; run < 6; ++run) {
        if (run == 2) {
            memory_fail_at(0);
            sim_fail_at(NULL, 0, CUDA_SUCCESS);
        }
        assert_int_equal(leati_plan_run(a.plan, (const void *[]){in.x, in.labels}, 5, 0, &err), LEAT_OK);
    }
    assert_int_equal(memory_calls(), 0);
    assert_int_equal(sim_calls("cuMemAlloc") + sim_calls("cuMemHostAlloc") + sim_calls("cuLaunchKernelEx"),
                     0);
    assert_int_equal(sim_calls("cuGraphLaunch"), 4);
    assert_int_equal(sim_calls("cuStreamSynchronize"), 4);
    close_side(&a);
}

static int open_device(void **state) {
    (void)state;
    leat_error err = {0};
    if (leati_cuda_open(0, &device, &err) != LEAT_OK) fail_msg("%s", err.message);
    class = device->class;
    return 0;
}

static int close_device(void **state) {
    (void)state;
    leati_device_close(&device);
    assert_int_equal(sim_live(), 0);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replays_follow_what_changes),
        cmocka_unit_test(ops_run_on_the_host_between_copies),
        cmocka_unit_test(timed_runs_compute_the_same),
        cmocka_unit_test(plans_share_an_arena_that_grows),
        cmocka_unit_test(staged_inputs_are_those_of_the_next_run),
        cmocka_unit_test(waiting_for_copies_is_measured),
        cmocka_unit_test(watched_runs_note_their_moments),
        cmocka_unit_test(any_thread_may_run_a_plan),
        cmocka_unit_test(faults_have_the_words_of_the_host),
        cmocka_unit_test(weights_are_packed_once_for_each_version),
        cmocka_unit_test(every_call_and_allocation_may_fail),
        cmocka_unit_test(every_call_of_the_libraries_may_fail),
        cmocka_unit_test(products_are_rounded_on_request),
        cmocka_unit_test(runs_ask_for_no_memory),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
