/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: the nodes that run, the memory of values, and rewrites, which must not change the results. */
#include "cmocka_all.h"

#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "engine/fixture.h"

static int setup(void **state) {
    static fixture b;
    fixture_init(&b);
    *state = &b;
    return 0;
}

static int teardown(void **state) {
    fixture_fini(*state);
    return 0;
}

/* Returns the number of steps in the description of the plan that begin with `op`. */
static int steps_of(const fixture *b, const char *op) {
    leati_text text = {0};
    leati_plan_describe(b->plan, &text);
    int count = 0;
    for (const char *line = text.data; line && *line; line = strchr(line, '\n') + 1)
        count += strncmp(line, op, strlen(op)) == 0;
    leati_text_fini(&text);
    return count;
}

static void a_product_and_its_gradients(void **state) {
    fixture *b = *state;
    leati_graph *g = b->graph;
    leati_value x = fixture_input(b, 0, 2, 3);
    leati_desc w_desc = {.dtype = LEAT_F32, .rank = 2, .shape = {3, 2}};
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, 0, &w_desc), d_w = 0;
    leati_value y = leati_matmul(g, x, false, w, false, LEATI_NONE);
    leati_value loss = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_mul(g, y, y));
    leat_error err = {0};
    assert_int_equal(leati_graph_differentiate(g, loss, 1, &w, &d_w, &err), LEAT_OK);
    leati_graph_keep(g, loss);
    leati_graph_keep(g, d_w);
    fixture_compile(b);
    const float input[6] = {1, 2, 3, 4, 5, 6}, weights[6] = {1, 0, 0, 1, -1, 1};
    memcpy(b->slab[LEATI_SLAB_WEIGHTS], weights, sizeof weights);
    fixture_run(b, (const void *[]){input});
    /* y = ((-2, 5), (-2, 11)), loss = 154, d_w = 2 x' y */
    assert_float_equal(fixture_output(b, loss)[0], 154, 0);
    const float expected[6] = {-20, 98, -28, 130, -36, 162};
    for (int i = 0; i < 6; ++i) assert_float_equal(fixture_output(b, d_w)[i], expected[i], 0);
}

static void nodes_that_nobody_needs_do_not_run(void **state) {
    fixture *b = *state;
    leati_value x = fixture_input(b, 0, 1, 4);
    leati_value used = fixture_step(b, x);
    leati_function_of(b->graph, fixture_step(b, x), LEATI_FN_TANH);
    leati_graph_keep(b->graph, used);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "eltwise"), 1);
}

static void equal_nodes_run_once(void **state) {
    fixture *b = *state;
    leati_graph *g = b->graph;
    leati_value x = fixture_step(b, fixture_input(b, 0, 2, 4)), y[5];
    for (int i = 0; i < 5; ++i) { /* the last two functions differ from the others */
        leati_value f = leati_linear(g, x, i < 4 ? 2 : 3, i == 3 ? 1 : 0);
        y[i] = leati_matmul(g, f, false, leati_function_of(g, x, LEATI_FN_ABS), true, LEATI_NONE);
        leati_graph_keep(g, y[i]);
    }
    fixture_compile(b);
    assert_int_equal(steps_of(b, "eltwise linear"), 3 + 1);
    assert_int_equal(steps_of(b, "eltwise abs"), 1);
    assert_int_equal(steps_of(b, "matmul"), 5);
    fixture_run(b, (const void *[]){(float[]){1, -2, 3, 4, 0, 1, 0, 0}});
    const float expected[5] = {44, 44, 44, 54, 66};
    for (int i = 0; i < 5; ++i) assert_float_equal(fixture_output(b, y[i])[0], expected[i], 0);
}

/* Two nodes that read one state before and after it is written have different results; outputs of the graph and random
 * numbers are not merged either. */
static void similar_nodes_are_not_merged(void **state) {
    fixture *b = *state;
    leati_graph *g = b->graph;
    leati_value x = fixture_input(b, 0, 1, 4), kept = fixture_state(b, LEATI_SLAB_SLOT0, 0, 4);
    leati_value before = leati_function_of(g, leati_linear(g, kept, 10, 0), LEATI_FN_SQUARE);
    leati_graph_store(g, kept, fixture_step(b, x));
    leati_value after = leati_function_of(g, leati_linear(g, kept, 10, 0), LEATI_FN_SQUARE);
    leati_value twice[2] = {leati_function_of(g, x, LEATI_FN_ABS), leati_function_of(g, x, LEATI_FN_ABS)};
    leati_value random[2];
    for (int i = 0; i < 2; ++i) {
        random[i] = leati_dropout(g, x, 0.5f, 0, 7);
        leati_graph_keep(g, random[i]);
        leati_graph_keep(g, twice[i]);
    }
    leati_graph_keep(g, before);
    leati_graph_keep(g, after);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "eltwise abs"), 2);
    assert_int_equal(steps_of(b, "dropout"), 2);
    b->slab[LEATI_SLAB_SLOT0][3] = 7;
    fixture_run(b, (const void *[]){(float[]){1, -2, 3, 4}});
    assert_float_equal(fixture_output(b, before)[3], 4900, 0);
    assert_float_equal(fixture_output(b, after)[3], 1600, 0);
    assert_float_equal(fixture_output(b, twice[1])[1], 2, 0);
}

/* A value that is only stored is computed in the state, and the copy does not run. */
static void a_stored_value_is_made_in_the_state(void **state) {
    fixture *b = *state;
    leati_value x = fixture_input(b, 0, 1, 4), weights = fixture_state(b, LEATI_SLAB_GRADIENTS, 16, 4);
    leati_graph_store(b->graph, weights, fixture_step(b, x));
    fixture_compile(b);
    assert_int_equal(steps_of(b, "store"), 0);
    assert_int_equal(leati_plan_arena_bytes(b->plan), 0);
    const float input[4] = {1, 2, 3, 4};
    fixture_run(b, (const void *[]){input});
    assert_memory_equal(b->slab[LEATI_SLAB_GRADIENTS] + 16, input, sizeof input);
}

static void a_copy_stays_where_the_old_state_is_read_between(void **state) {
    fixture *b = *state;
    leati_value x = fixture_input(b, 0, 1, 4), kept = fixture_state(b, LEATI_SLAB_SLOT0, 0, 4);
    leati_value made = fixture_step(b, x), old = leati_linear(b->graph, kept, 10, 0);
    leati_graph_store(b->graph, kept, made);
    leati_graph_keep(b->graph, old);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "store"), 1);
    const float input[4] = {1, 2, 3, 4};
    b->slab[LEATI_SLAB_SLOT0][3] = 7;
    fixture_run(b, (const void *[]){input});
    assert_float_equal(fixture_output(b, old)[3], 70, 0);
    assert_float_equal(b->slab[LEATI_SLAB_SLOT0][3], 4, 0);
}

static void inputs_and_constants_are_copied_to_states(void **state) {
    fixture *b = *state;
    leati_value x = fixture_input(b, 0, 1, 4), kept = fixture_state(b, LEATI_SLAB_SLOT0, 0, 4);
    leati_graph_store(b->graph, kept, x);
    leati_graph_store(b->graph, fixture_state(b, LEATI_SLAB_SLOT0, 16, 4),
                      leati_full(b->graph, 1, (int64_t[]){4}, 5));
    fixture_compile(b);
    assert_int_equal(steps_of(b, "store"), 2);
    const float input[4] = {1, 2, 3, 4};
    fixture_run(b, (const void *[]){input});
    assert_memory_equal(b->slab[LEATI_SLAB_SLOT0], input, sizeof input);
    assert_float_equal(b->slab[LEATI_SLAB_SLOT0][19], 5, 0);
}

/* A chain of functions needs one block of memory, whatever its length. */
static void a_chain_works_in_place(void **state) {
    fixture *b = *state;
    leati_value x = fixture_step(b, fixture_input(b, 0, 8, 16));
    for (int i = 0; i < 20; ++i) x = leati_function_of(b->graph, x, LEATI_FN_TANH);
    leati_graph_keep(b->graph, x);
    fixture_compile(b);
    assert_int_equal(leati_plan_arena_bytes(b->plan), 8 * 16 * sizeof(float));
    assert_int_equal(leati_plan_bound_bytes(b->plan), 8 * 16 * sizeof(float));
}

static void views_are_free(void **state) {
    fixture *b = *state;
    leati_value x = fixture_input(b, 0, 2, 6);
    leati_value y = leati_reshape(b->graph, x, 1, (int64_t[]){12});
    leati_graph_keep(b->graph, leati_reshape(b->graph, y, 2, (int64_t[]){3, 4}));
    leati_value last = leati_graph_value_count(b->graph) - 1;
    fixture_compile(b);
    assert_int_equal(steps_of(b, "reshape"), 0);
    const float input[12] = {0};
    fixture_run(b, (const void *[]){input});
    leat_tensor view = leati_plan_output(b->plan, last);
    assert_ptr_equal(view.data, input);
    assert_int_equal(view.shape[0], 3);
}

/* Slices that are contiguous in their source are read there. */
static void contiguous_slices_are_free(void **state) {
    fixture *b = *state;
    leati_value x = fixture_step(b, fixture_input(b, 0, 3, 16)), y[3];
    for (int i = 0; i < 3; ++i) {
        y[i] = leati_function_of(b->graph, leati_slice_axis(b->graph, x, 0, i, 1), LEATI_FN_SQUARE);
        leati_graph_keep(b->graph, y[i]);
    }
    leati_value columns = leati_slice_axis(b->graph, x, 1, 0, 8);
    leati_graph_keep(b->graph, leati_function_of(b->graph, columns, LEATI_FN_SQUARE));
    fixture_compile(b);
    assert_int_equal(steps_of(b, "slice"), 1); /* that of columns */
    float input[48];
    for (int i = 0; i < 48; ++i) input[i] = (float)i;
    fixture_run(b, (const void *[]){input});
    for (int i = 0; i < 48; ++i)
        assert_float_equal(fixture_output(b, y[i / 16])[i % 16], input[i] * input[i], 0);
}

/* The inputs of a concatenation are computed in its memory, also where something else reads them before. */
static void joined_rows_are_computed_in_place(void **state) {
    fixture *b = *state;
    leati_value x = fixture_input(b, 0, 1, 16), rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = x = fixture_step(b, x);
    leati_value joined = leati_concat(b->graph, 4, rows, 0);
    leati_graph_keep(b->graph, joined);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "concat"), 0);
    assert_int_equal(leati_plan_arena_bytes(b->plan), 4 * 16 * sizeof(float));
    float input[16], expected[64];
    for (int i = 0; i < 16; ++i) input[i] = (float)i;
    fixture_run(b, (const void *[]){input});
    for (int i = 0; i < 64; ++i) expected[i] = fixture_output(b, rows[i / 16])[i % 16];
    assert_memory_equal(fixture_output(b, joined), expected, sizeof expected);
}

/* Values that are joined twice, inputs of the graph, and parts that would not be aligned are copied. */
static void what_cannot_be_joined_in_place_is_copied(void **state) {
    fixture *b = *state;
    leati_value input = fixture_input(b, 0, 1, 16), x = fixture_step(b, input);
    leati_value short_row = fixture_step(b, fixture_input(b, 1, 1, 6));
    leati_value twice = leati_concat(b->graph, 2, (leati_value[]){x, x}, 0);
    leati_value given = leati_concat(b->graph, 2, (leati_value[]){input, fixture_step(b, x)}, 0);
    leati_value unaligned = leati_concat(b->graph, 2, (leati_value[]){short_row, fixture_step(b, x)}, 1);
    leati_graph_keep(b->graph, twice);
    leati_graph_keep(b->graph, given);
    leati_graph_keep(b->graph, unaligned);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "concat"), 3);
    float numbers[16], six[6] = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 16; ++i) numbers[i] = (float)i;
    fixture_run(b, (const void *[]){numbers, six});
    assert_memory_equal(fixture_output(b, twice), fixture_output(b, twice) + 16, sizeof numbers);
    assert_memory_equal(fixture_output(b, given), numbers, sizeof numbers);
    assert_memory_equal(fixture_output(b, unaligned), six, sizeof six);
}

static leati_value dense_relu(fixture *b, leati_value x, leati_value *pre_activation) {
    leati_value w =
        leati_graph_constant(b->graph, &(leati_desc){LEAT_F32, 2, {2, 2}}, (float[]){1, 0, 0, -1});
    *pre_activation = leati_matmul(b->graph, x, false, w, false, LEATI_NONE);
    return leati_function_of(b->graph, *pre_activation, LEATI_FN_RELU);
}

static void a_function_is_fused_into_the_product_before_it(void **state) {
    fixture *b = *state;
    leati_value pre, y = dense_relu(b, fixture_input(b, 0, 1, 2), &pre);
    leati_graph_keep(b->graph, y);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "matmul+relu"), 1);
    assert_int_equal(steps_of(b, "eltwise"), 0);
    const float input[2] = {3, 4};
    fixture_run(b, (const void *[]){input});
    assert_float_equal(fixture_output(b, y)[0], 3, 0);
    assert_float_equal(fixture_output(b, y)[1], 0, 0);
}

static void what_others_read_is_not_fused_away(void **state) {
    fixture *b = *state;
    leati_value pre, y = dense_relu(b, fixture_input(b, 0, 1, 2), &pre);
    leati_graph_keep(b->graph, y);
    leati_graph_keep(b->graph, pre);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "eltwise relu"), 1);
    const float input[2] = {3, 4};
    fixture_run(b, (const void *[]){input});
    assert_float_equal(fixture_output(b, pre)[1], -4, 0);
    assert_float_equal(fixture_output(b, y)[1], 0, 0);
}

/* Two plans of different sizes share an arena: the smaller one still runs after the arena has moved, and adds no
 * memory. */
static void plans_share_an_arena_that_grows(void **state) {
    fixture *b = *state;
    static float input[64 * 64];
    for (int i = 0; i < 64 * 64; ++i) input[i] = (float)i;
    leati_value small = fixture_step(b, fixture_input(b, 0, 2, 2));
    leati_graph_keep(b->graph, small);
    fixture_compile(b);
    leati_plan *first = b->plan;
    fixture_run(b, (const void *[]){input});
    size_t before = leati_arena_bytes(b->arena);
    leat_error err = {0};
    assert_int_equal(leati_graph_create(&b->graph, &err), LEAT_OK);
    leati_value large = fixture_step(b, fixture_input(b, 0, 64, 64));
    leati_graph_keep(b->graph, large);
    fixture_compile(b);
    assert_true(leati_arena_bytes(b->arena) > before);
    fixture_run(b, (const void *[]){input});
    assert_memory_equal(fixture_output(b, large), input, sizeof input);
    leati_plan *second = b->plan;
    b->plan = first;
    fixture_run(b, (const void *[]){input + 8});
    assert_memory_equal(fixture_output(b, small), input + 8, 4 * sizeof(float));
    leati_plan_destroy(&second);
}

/* The gradient of the mean is constant, so it is folded and only the product with x runs. */
static void what_is_constant_is_computed_once(void **state) {
    fixture *b = *state;
    leati_graph *g = b->graph;
    leati_value x = fixture_input(b, 0, 2, 2), d = 0;
    leati_value loss = leati_reduce_all(g, LEATI_REDUCE_MEAN, leati_mul(g, x, x));
    leat_error err = {0};
    assert_int_equal(leati_graph_differentiate(g, loss, 1, &x, &d, &err), LEAT_OK);
    leati_value constant = leati_linear(g, leati_reshape(g, leati_scalar(g, 3), 1, (int64_t[]){1}), 2, 1);
    leati_graph_keep(g, d);
    leati_graph_keep(g, constant);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "broadcast"), 0);
    assert_int_equal(steps_of(b, "eltwise"), 0);
    const float input[4] = {1, 2, 3, 4};
    fixture_run(b, (const void *[]){input});
    for (int i = 0; i < 4; ++i) assert_float_equal(fixture_output(b, d)[i], input[i] / 2, 1e-6);
    assert_float_equal(fixture_output(b, constant)[0], 7, 0);
}

static leat_status refuse(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)task;
    (void)kernel;
    (void)err;
    memcpy(why, "never", 6);
    return LEAT_OK;
}

static leat_status break_down(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)task;
    (void)kernel;
    (void)why;
    return leati_fail(err, LEAT_EBACKEND, "the library failed");
}

static leat_status compile_with(fixture *b, const leati_backend *const *backends, leat_error *err) {
    leati_plan_options options = {.threads = 1, .backends = backends, .arena = b->arena};
    leat_status status = leati_plan_create(&b->plan, &b->graph, &options, err);
    assert_null(b->graph);
    return status;
}

static void refusals_are_told(void **state) {
    static const leati_implementation refusing[] = {{LEATI_OP_ELTWISE, refuse, 0, false}};
    static const leati_backend nobody = {.name = "nobody", .implementations = refusing, .count = 1};
    fixture *b = *state;
    leat_error err = {0};
    leati_graph_label(b->graph, "activation_1");
    leati_graph_keep(b->graph, fixture_step(b, fixture_input(b, 0, 1, 2)));
    assert_int_equal(compile_with(b, (const leati_backend *const[]){&nobody, NULL}, &err), LEAT_ENOTSUP);
    assert_string_equal(err.message, "'activation_1': no backend supports op eltwise: nobody: never; ");

    assert_int_equal(leati_graph_create(&b->graph, &err), LEAT_OK);
    leati_graph_keep(b->graph, fixture_step(b, fixture_input(b, 0, 1, 2)));
    assert_int_equal(compile_with(b, (const leati_backend *const[]){&nobody, &leati_backend_ref, NULL}, &err),
                     LEAT_OK);
    leati_text text = {0};
    leati_plan_describe(b->plan, &text);
    assert_non_null(strstr(text.data, "eltwise linear '' (1, 2) -> (1, 2): ref (nobody: never)"));
    leati_text_fini(&text);
}

static void a_backend_that_fails_ends_the_compilation(void **state) {
    static const leati_implementation failing[] = {{LEATI_OP_ELTWISE, break_down, 0, false}};
    static const leati_backend broken = {.name = "broken", .implementations = failing, .count = 1};
    fixture *b = *state;
    leat_error err = {0};
    leati_graph_keep(b->graph, fixture_step(b, fixture_input(b, 0, 1, 2)));
    assert_int_equal(compile_with(b, (const leati_backend *const[]){&broken, &leati_backend_ref, NULL}, &err),
                     LEAT_EBACKEND);
    assert_null(b->plan);
}

static void a_graph_that_failed_makes_no_plan(void **state) {
    fixture *b = *state;
    leat_error err = {0};
    leati_add(b->graph, fixture_input(b, 0, 1, 2), fixture_input(b, 1, 1, 3));
    assert_int_equal(compile_with(b, (const leati_backend *const[]){&leati_backend_ref, NULL}, &err),
                     LEAT_ESHAPE);
    assert_null(b->plan);
}

static leat_status fail_to_run(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    (void)kernel;
    (void)args;
    (void)run;
    return leati_fail(err, LEAT_EBACKEND, "overheated");
}

static leat_status accept_failing(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)task;
    (void)why;
    (void)err;
    kernel->run = fail_to_run;
    return LEAT_OK;
}

static void a_kernel_that_fails_is_named(void **state) {
    static const leati_implementation failing[] = {{LEATI_OP_ELTWISE, accept_failing, 0, false}};
    static const leati_backend hot = {.name = "hot", .implementations = failing, .count = 1};
    fixture *b = *state;
    leat_error err = {0};
    leati_graph_label(b->graph, "act");
    leati_graph_keep(b->graph, fixture_step(b, fixture_input(b, 0, 1, 2)));
    assert_int_equal(compile_with(b, (const leati_backend *const[]){&hot, NULL}, &err), LEAT_OK);
    const float input[2] = {0};
    assert_int_equal(leati_plan_run(b->plan, (const void *[]){input}, 0, 0, &err), LEAT_EBACKEND);
    assert_string_equal(err.message, "'act': op eltwise: overheated");
}

static float tiny_product(void) {
    volatile float tiny = 1e-30f;
    return tiny * 1e-10f;
}

static void what_is_too_small_to_be_normal_is_0(void **state) {
    fixture *b = *state;
    leati_value y = leati_linear(b->graph, fixture_input(b, 0, 1, 2), 1e-10f, 0);
    leati_value folded = leati_linear(b->graph, leati_scalar(b->graph, 1e-30f), 1e-10f, 0);
    leati_graph_keep(b->graph, y);
    leati_graph_keep(b->graph, folded);
    fixture_compile(b);
    assert_int_equal(steps_of(b, "eltwise"), 1);
    assert_true(fixture_output(b, folded)[0] == 0);
    fixture_run(b, (const void *[]){(float[]){1e-30f, 1e-20f}});
    assert_true(fixture_output(b, y)[0] == 0);
    assert_float_equal(fixture_output(b, y)[1], 1e-30, 1e-36);
    assert_true(tiny_product() > 0); /* the floating-point mode of the caller is restored */
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(a_product_and_its_gradients),
        WITH_FIXTURE(nodes_that_nobody_needs_do_not_run),
        WITH_FIXTURE(equal_nodes_run_once),
        WITH_FIXTURE(similar_nodes_are_not_merged),
        WITH_FIXTURE(a_stored_value_is_made_in_the_state),
        WITH_FIXTURE(a_copy_stays_where_the_old_state_is_read_between),
        WITH_FIXTURE(inputs_and_constants_are_copied_to_states),
        WITH_FIXTURE(a_chain_works_in_place),
        WITH_FIXTURE(views_are_free),
        WITH_FIXTURE(contiguous_slices_are_free),
        WITH_FIXTURE(joined_rows_are_computed_in_place),
        WITH_FIXTURE(what_cannot_be_joined_in_place_is_copied),
        WITH_FIXTURE(a_function_is_fused_into_the_product_before_it),
        WITH_FIXTURE(what_others_read_is_not_fused_away),
        WITH_FIXTURE(plans_share_an_arena_that_grows),
        WITH_FIXTURE(what_is_constant_is_computed_once),
        WITH_FIXTURE(refusals_are_told),
        WITH_FIXTURE(a_backend_that_fails_ends_the_compilation),
        WITH_FIXTURE(a_graph_that_failed_makes_no_plan),
        WITH_FIXTURE(a_kernel_that_fails_is_named),
        WITH_FIXTURE(what_is_too_small_to_be_normal_is_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
