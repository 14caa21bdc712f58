/* SPDX-License-Identifier: Apache-2.0 */
/* Building graphs: the first failure and its message, equal states, and pointers that stay valid. */
#include "cmocka_all.h"

#include <string.h>

#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"

static int setup(void **state) {
    leat_error err = {0};
    leati_graph *g;
    assert_int_equal(leati_graph_create(&g, &err), LEAT_OK);
    *state = g;
    return 0;
}

static int teardown(void **state) {
    leati_graph *g = *state;
    leati_graph_destroy(&g);
    assert_null(g);
    return 0;
}

static leati_value input(leati_graph *g, int index, int64_t rows, int64_t columns) {
    leati_desc desc = {.dtype = LEAT_F32, .rank = 2, .shape = {rows, columns}};
    return leati_graph_input(g, index, &desc);
}

static void expect_failure(const leati_graph *g, leat_status code, const char *words) {
    leat_error err = {0};
    assert_int_equal(leati_graph_check(g, &err), code);
    if (!strstr(err.message, words)) fail_msg("'%s' is not in '%s'", words, err.message);
}

static void the_first_failure_is_kept(void **state) {
    leati_graph *g = *state;
    leati_graph_label(g, "dense_3");
    leati_value x = input(g, 0, 32, 784), w = input(g, 1, 512, 10);
    leati_value y = leati_matmul(g, x, false, w, false, LEATI_NONE);
    assert_int_equal(y, LEATI_INVALID);
    leati_graph_label(g, "later");
    assert_int_equal(leati_add(g, y, x), LEATI_INVALID);
    assert_int_equal(leati_graph_fail(g, LEAT_EINVAL, "another"), LEATI_INVALID);
    expect_failure(g, LEAT_ESHAPE,
                   "'dense_3': op matmul: inner sizes differ: a (32, 784) float32, b (512, 10) float32");
    assert_int_equal(leati_graph_desc(g, y)->rank, 0);
}

/* Each call violates one rule.  Each has a new graph, because a graph keeps only its first failure. */
static void what_cannot_be_is_refused(void **state) {
    (void)state;
    const int64_t dims[LEAT_MAX_RANK] = {2, 3}, big[2] = {INT64_MAX / 2, 8};
    const int32_t no_permutation[2] = {0, 0};
    for (int rule = 0;; ++rule) {
        leati_graph *g;
        leat_error err = {0};
        assert_int_equal(leati_graph_create(&g, &err), LEAT_OK);
        leati_value x = input(g, 0, 2, 3);
        leat_status code = LEAT_ESHAPE;
        const char *words = "";
        switch (rule) {
        case 0:
            leati_add(g, x, input(g, 1, 2, 4)),
                words = "cannot be broadcast together: (2, 3) float32 and (2, 4)";
            break;
        case 1:
            leati_reshape(g, x, 1, (int64_t[]){7}), words = "(2, 3) float32 cannot be reshaped to (7,)";
            break;
        case 2: leati_reshape(g, x, 9, dims), words = "0 to 8 dimensions"; break;
        case 3:
            leati_reduce_of(g, LEATI_REDUCE_SUM, x, 4, false),
                words = "axes 0x4 (one bit for each) are out of range";
            break;
        case 4: leati_softmax_of(g, x, 2), words = "axis 2 is out of range for shape (2, 3)"; break;
        case 5: leati_slice_axis(g, x, 1, 2, 2), words = "2 elements from 2 is out of range"; break;
        case 6: leati_transpose(g, x, no_permutation), words = "not a permutation", code = LEAT_EINVAL; break;
        case 7: leati_dropout(g, x, 1, 0, 0), words = "rate in [0, 1), received 1", code = LEAT_EINVAL; break;
        case 8: leati_one_hot(g, x, 0), words = "depth", code = LEAT_EINVAL; break;
        case 9: leati_in_top_k(g, x, x, 1), words = "targets"; break;
        case 10: leati_graph_store(g, x, x), words = "must be a state", code = LEAT_EINVAL; break;
        case 11:
            leati_graph_node(g, LEATI_OP_BINARY, NULL, 1, &x, NULL), words = "2 inputs, received 1",
                                                                     code = LEAT_EINVAL;
            break;
        case 12: leati_add(g, x, LEATI_NONE), words = "input 1 is absent", code = LEAT_EINVAL; break;
        case 13: leati_add(g, x, 99), words = "not a value", code = LEAT_EINTERNAL; break;
        case 14: leati_broadcast(g, x, 2, big), words = "cannot be broadcast together"; break;
        case 15:
            leati_broadcast(g, leati_scalar(g, 1), 2, big), words = "too large for the address space";
            break;
        case 16: leati_full(g, 2, big, 0), words = "too large for the address space"; break;
        case 17:
            leati_concat(g, 2, (leati_value[]){x, input(g, 1, 3, 3)}, 1), words = "input 1: expected (2, 3)";
            break;
        case 18:
            leati_add(g, leati_cast(g, x, LEAT_I32, 1), x), words = "expected float32, received (2, 3) int32",
                                                            code = LEAT_EDTYPE;
            break;
        case 19:
            leati_reduce_last(g, LEATI_REDUCE_SUM, leati_scalar(g, 1), false), words = "no last axis";
            break;
        case 20:
            leati_expand_last(g, leati_reshape(g, x, 8, (int64_t[]){1, 1, 1, 1, 1, 1, 2, 3})),
                words = "not 9";
            break;
        case 21:
            leati_reduce_of(g, LEATI_REDUCE_MAX, input(g, 1, 0, 3), 1, false),
                words = "a maximum or minimum needs";
            break;
        default: leati_graph_destroy(&g); return;
        }
        expect_failure(g, code, words);
        leati_graph_destroy(&g);
    }
}

static void a_state_asked_for_again_is_the_same(void **state) {
    leati_graph *g = *state;
    leati_desc desc = {.dtype = LEAT_F32, .rank = 1, .shape = {8}},
               other = {.dtype = LEAT_F32, .rank = 1, .shape = {4}};
    leati_value a = leati_graph_state(g, LEATI_SLAB_WEIGHTS, 64, &desc);
    assert_int_equal(leati_graph_state(g, LEATI_SLAB_WEIGHTS, 64, &desc), a);
    assert_int_not_equal(leati_graph_state(g, LEATI_SLAB_WEIGHTS, 64, &other), a);
    assert_int_not_equal(leati_graph_state(g, LEATI_SLAB_SLOT0, 64, &desc), a);
    assert_int_not_equal(leati_graph_state(g, LEATI_SLAB_WEIGHTS, 0, &desc), a);
}

static void pointers_survive_what_is_built_later(void **state) {
    leati_graph *g = *state;
    leati_value x = input(g, 0, 2, 3), y = leati_linear(g, x, 2, 0);
    const leati_desc *desc = leati_graph_desc(g, x);
    const leati_node *node = leati_graph_node_at(g, 0);
    for (int i = 0; i < 1000; ++i) y = leati_linear(g, y, 1, 0);
    assert_ptr_equal(desc, leati_graph_desc(g, x));
    assert_ptr_equal(node, leati_graph_node_at(g, 0));
    assert_int_equal(leati_graph_node_count(g), 1001);
    assert_int_equal(node->inputs[0], x);
}

static void absent_inputs_are_listed(void **state) {
    leati_graph *g = *state;
    leati_value x = input(g, 0, 2, 3), w = input(g, 1, 3, 4);
    leati_graph_node(g, LEATI_OP_MATMUL, NULL, 2, (leati_value[]){x, w}, NULL);
    const leati_node *node = leati_graph_node_at(g, 0);
    assert_int_equal(node->input_count, 3);
    assert_int_equal(node->inputs[2], LEATI_NONE);
}

/* Consecutive transpositions become one, or none if they undo each other. */
static void transpositions_are_joined(void **state) {
    leati_graph *g = *state;
    leati_desc desc = {.dtype = LEAT_F32, .rank = 3, .shape = {2, 3, 4}};
    leati_value x = leati_graph_input(g, 0, &desc);
    const int32_t swap[] = {0, 2, 1}, turn[] = {1, 2, 0}, none[] = {0, 1, 2}, wrong[] = {0, 3, 1};
    leati_value swapped = leati_transpose(g, x, swap), turned = leati_transpose(g, x, turn);
    assert_int_not_equal(swapped, x);
    assert_int_equal(leati_transpose(g, swapped, swap), x);
    assert_int_equal(leati_transpose(g, x, none), x);
    leati_value twice = leati_transpose(g, turned, turn);
    const leati_node *node = leati_graph_node_at(g, leati_graph_value(g, twice)->producer);
    assert_int_equal(node->inputs[0], x);
    assert_memory_equal(leati_graph_desc(g, twice)->shape, ((int64_t[]){4, 2, 3}), 3 * sizeof(int64_t));
    assert_int_equal(leati_transpose(g, twice, turn), x);
    assert_int_equal(leati_transpose(g, turned, wrong), LEATI_INVALID);
    expect_failure(g, LEAT_EINVAL, "transpose");
}

/* float32 cannot represent 2^24 + 1, so GATHER reads the integers before their cast. */
static void indices_are_read_before_their_cast(void **state) {
    leati_graph *g = *state;
    const leat_dtype types[] = {LEAT_I64, LEAT_U32, LEAT_BOOL, LEAT_F64, LEAT_F16};
    const leati_value table = input(g, 0, 8, 2);
    for (int i = 0; i < 5; ++i) {
        const leati_desc desc = leati_desc_make(types[i], 1, (int64_t[]){3});
        const leati_value given = leati_graph_input(g, i + 1, &desc);
        const leati_value cast = leati_cast(g, given, LEAT_F32, 1),
                          scaled = leati_cast(g, given, LEAT_F32, 2);
        const bool exact = i < 3; /* real numbers are cast to float32 first, as in Keras */
        leati_gather(g, table, cast);
        const leati_node *node = leati_graph_node_at(g, leati_graph_node_count(g) - 1);
        assert_int_equal(node->inputs[1], exact ? given : cast);
        leati_gather(g, table, scaled);
        node = leati_graph_node_at(g, leati_graph_node_count(g) - 1);
        assert_int_equal(node->inputs[1], scaled);
    }
}

/* Every op has a descriptor whose limits fit into a node. */
static void the_table_is_whole(void **state) {
    (void)state;
    for (int op = 0; op < LEATI_OP_COUNT; ++op) {
        const leati_op_descriptor *descriptor = leati_op_descriptor_of((leati_op)op);
        assert_non_null(descriptor->name);
        assert_non_null(descriptor->infer);
        assert_in_range(descriptor->max_inputs, descriptor->min_inputs, LEATI_MAX_INPUTS);
        assert_in_range(descriptor->outputs, 0, LEATI_MAX_OUTPUTS);
        if (descriptor->outputs == 0) assert_int_not_equal(descriptor->writes, 0);
        if (descriptor->optional) assert_true(descriptor->optional >> descriptor->max_inputs == 0);
    }
    for (int f = 0; f < LEATI_FN_COUNT; ++f) assert_non_null(leati_function_name((leati_function)f));
}

#define IN_GRAPH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static void counts_of_huge_shapes_do_not_wrap(void **state) {
    (void)state;
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){INT64_MAX / 2, 3});
    assert_true(leati_desc_count(&desc) == INT64_MAX);
    assert_true(leati_desc_bytes(&desc) == SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_GRAPH(the_first_failure_is_kept),
        cmocka_unit_test(what_cannot_be_is_refused),
        IN_GRAPH(a_state_asked_for_again_is_the_same),
        IN_GRAPH(pointers_survive_what_is_built_later),
        IN_GRAPH(absent_inputs_are_listed),
        IN_GRAPH(transpositions_are_joined),
        IN_GRAPH(indices_are_read_before_their_cast),
        cmocka_unit_test(the_table_is_whole),
        cmocka_unit_test(counts_of_huge_shapes_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
