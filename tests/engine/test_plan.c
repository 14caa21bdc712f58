/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: what runs, where values live, and that no rewrite changes what a program computes. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "engine/stand.h"

static int setup(void **state) {
    static stand b;
    stand_init(&b);
    *state = &b;
    return 0;
}

static int teardown(void **state) {
    stand_fini(*state);
    return 0;
}

/* How many lines of the description, which are steps, begin with `op`. */
static int steps_of(const stand *b, const char *op) {
    leati_text text = {0};
    leati_plan_describe(b->plan, &text);
    int count = 0;
    for (const char *line = text.data; line && *line; line = strchr(line, '\n') + 1)
        count += strncmp(line, op, strlen(op)) == 0;
    leati_text_fini(&text);
    return count;
}

static void a_product_and_its_gradients(void **state) {
    stand *b = *state;
    leati_graph *g = b->graph;
    leati_value x = stand_input(b, 0, 2, 3);
    leati_desc w_desc = {.dtype = LEAT_F32, .rank = 2, .shape = {3, 2}};
    leati_value w = leati_graph_state(g, LEATI_SLAB_WEIGHTS, 0, &w_desc), d_w = 0;
    leati_value y = leati_matmul(g, x, false, w, false, LEATI_NONE);
    leati_value loss = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_mul(g, y, y));
    leat_error err = {0};
    assert_int_equal(leati_graph_differentiate(g, loss, 1, &w, &d_w, &err), LEAT_OK);
    leati_graph_keep(g, loss);
    leati_graph_keep(g, d_w);
    stand_compile(b);
    const float input[6] = {1, 2, 3, 4, 5, 6}, weights[6] = {1, 0, 0, 1, -1, 1};
    memcpy(b->slab[LEATI_SLAB_WEIGHTS], weights, sizeof weights);
    stand_run(b, (const void *[]){input});
    /* y = ((-2, 5), (-2, 11)), loss = 154, d_w = 2 x' y */
    assert_float_equal(stand_output(b, loss)[0], 154, 0);
    const float expected[6] = {-20, 98, -28, 130, -36, 162};
    for (int i = 0; i < 6; ++i) assert_float_equal(stand_output(b, d_w)[i], expected[i], 0);
}

static void nodes_that_nobody_needs_do_not_run(void **state) {
    stand *b = *state;
    leati_value x = stand_input(b, 0, 1, 4);
    leati_value used = stand_step(b, x);
    leati_function_of(b->graph, stand_step(b, x), LEATI_FN_TANH);
    leati_graph_keep(b->graph, used);
    stand_compile(b);
    assert_int_equal(steps_of(b, "eltwise"), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_product_and_its_gradients, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_that_nobody_needs_do_not_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
