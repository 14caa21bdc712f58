/* SPDX-License-Identifier: Apache-2.0 */
/* Models that begin or end at inner layers, new heads, and freezing by patterns of names. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/inspect.h"
#include "train/support.h"

enum { samples = 6, most = 64 };

static leat_error err;

#define expect_refusal(call, status, said)                                                                   \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        assert_int_equal(call, status);                                                                      \
        if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);                 \
    } while (0)

/* "block": 4 numbers -> Dense "inside" (5) -> Dense "last" (4) */
static leat_model *make_block(void) {
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    expect_ok(leat_builder_create(&builder, &err), &err);
    leat_builder_set_name(builder, "block");
    leat_node *input = leat_input(builder, (int64_t[]){4}, 1);
    leat_node *output = leat_layer(input, "Dense", "{'units': 5, 'name': 'inside', 'activation': 'tanh'}");
    output = leat_layer(output, "Dense", "{'units': 4, 'name': 'last'}");
    expect_ok(leat_model_create(&model, &builder, &input, 1, &output, 1, &err), &err);
    return model;
}

/* Inputs "a" and "b" both go through the Dense "shared"; the Add "sum" of both goes through "block", then through the
 * Dense "y" (3). */
static leat_model *make_model(void) {
    leat_builder *builder = NULL;
    leat_model *model = NULL, *inner = make_block();
    leat_node *inputs[2];
    expect_ok(leat_builder_create(&builder, &err), &err);
    for (int i = 0; i < 2; ++i) inputs[i] = leat_input(builder, (int64_t[]){4}, 1);
    leat_node *first = leat_layer(inputs[0], "Dense", "{'units': 4, 'name': 'shared', 'activation': 'tanh'}");
    leat_node *second = leat_call(first, &inputs[1], 1);
    leat_node *sum = leat_merge((leat_node *[]){first, second}, 2, "Add", "{'name': 'sum'}");
    leat_node *output = leat_layer(leat_call_model(&inner, &sum, 1), "Dense", "{'units': 3, 'name': 'y'}");
    expect_ok(leat_model_create(&model, &builder, inputs, 2, &output, 1, &err), &err);
    expect_ok(leat_model_initialize(model, 7, &err), &err);
    return model;
}

static leat_model *cut(const leat_model *model, const char *begin, const char *end) {
    leat_model *out = NULL;
    expect_ok(leat_model_cut(&out, model, &begin, begin ? 1 : 0, &end, end ? 1 : 0, &err), &err);
    return out;
}

/* Predicts from up to 2 inputs of 4 columns, or of the columns given; copies output `index`. */
static int64_t predict(leat_model *model, float *const *inputs, int64_t columns, int index, float *out) {
    leat_array arrays[2];
    leat_tensor outputs[4];
    memset(arrays, 0, sizeof arrays);
    const int count = leat_model_input_count(model);
    assert_true(count <= 2 && leat_model_output_count(model) <= 4);
    for (int i = 0; i < count; ++i)
        arrays[i].tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, columns}, inputs[i]);
    leat_arrays data = {.inputs = arrays, .input_count = count};
    expect_ok(leat_model_predict_on_batch(model, &data, outputs, &err), &err);
    const size_t bytes = leat_tensor_bytes(&outputs[index]);
    assert_true(bytes <= most * sizeof(float));
    memcpy(out, outputs[index].data, bytes);
    return outputs[index].shape[1];
}

static void fill(float *x, int seed) {
    for (int i = 0; i < samples * 4; ++i) x[i] = (float)((i * 7 + seed * 3) % 11) / 11.0f - 0.4f;
}

static void check_near(const float *a, const float *b, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (a[i] - b[i] > 1e-6f || b[i] - a[i] > 1e-6f) fail_msg("%d: %g and %g", (int)i, a[i], b[i]);
}

/* The first part of a model and the rest of it compute together what the model computes. */
static void parts_make_the_whole(void **state) {
    (void)state;
    static const char *const places[][2] = {{"sum", "block"}, {"block", "y"}, {"-2", "-1"}};
    float a[most], b[most], whole[most], middle[most], out[most];
    leat_model *model = make_model();
    fill(a, 1);
    fill(b, 2);
    assert_int_equal(predict(model, (float *[]){a, b}, 4, 0, whole), 3);
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        leat_model *head = cut(model, NULL, places[i][0]), *tail = cut(model, places[i][1], NULL);
        assert_int_equal(leat_model_input_count(head), 2);
        assert_int_equal(leat_model_input_count(tail), 1);
        assert_int_equal(predict(head, (float *[]){a, b}, 4, 0, middle), 4);
        assert_int_equal(predict(tail, (float *[]){middle}, 4, 0, out), 3);
        check_near(out, whole, samples * 3);
        assert_int_equal(leat_model_weight_count(head) + leat_model_weight_count(tail),
                         leat_model_weight_count(model));
        leat_model_destroy(&head);
        leat_model_destroy(&tail);
    }
    leat_model_destroy(&model);
}

static void several_outputs_and_calls(void **state) {
    (void)state;
    const char *names[] = {"y", "shared:1", "block"};
    float a[most], b[most], whole[most], out[most], alone[most];
    leat_model *model = make_model(), *made = NULL;
    fill(a, 1);
    fill(b, 2);
    expect_ok(leat_model_cut(&made, model, NULL, 0, names, 3, &err), &err);
    assert_int_equal(leat_model_output_count(made), 3);
    assert_string_equal(leat_model_output_name(made, 1), "shared");
    predict(model, (float *[]){a, b}, 4, 0, whole);
    predict(made, (float *[]){a, b}, 4, 0, out);
    check_near(out, whole, samples * 3);
    predict(made, (float *[]){a, b}, 4, 1, out);
    leat_model *second = cut(model, "input_2", "shared:1");
    assert_int_equal(leat_model_input_count(second), 1);
    assert_string_equal(leat_model_input_name(second, 0), "input_2");
    predict(second, (float *[]){b}, 4, 0, alone);
    check_near(out, alone, samples * 4);
    leat_model_destroy(&second);
    leat_model_destroy(&made);
    expect_refusal(leat_model_cut(&made, model, NULL, 0, (const char *[]){"shared"}, 1, &err), LEAT_EINVAL,
                   "layer 'shared' is called 2 times: choose a call, from 'shared:0' to 'shared:1'");
    assert_null(made);
    leat_model_destroy(&model);
}

/* A layer of a nested model, by its path or its name: what only the old outputs needed is gone. */
static void a_layer_of_a_nested_model(void **state) {
    (void)state;
    static const char *const names[] = {"block/inside", "inside"};
    float a[most], b[most], sum[most], out[most], expected[most];
    leat_model *model = make_model(), *block = make_block();
    fill(a, 1);
    fill(b, 2);
    leat_model *head = cut(model, NULL, "sum");
    predict(head, (float *[]){a, b}, 4, 0, sum);
    for (int i = 0; i < leat_model_weight_count(block); ++i) {
        char name[128];
        snprintf(name, sizeof name, "block/%s", leat_model_weight_name(block, i));
        const leat_tensor from = leat_model_weight(model, leat_model_find_weight(model, name)),
                          to = leat_model_weight(block, i);
        assert_int_equal(leat_tensor_bytes(&from), leat_tensor_bytes(&to));
        memcpy(to.data, from.data, leat_tensor_bytes(&to));
    }
    leat_model *inside = cut(block, NULL, "inside");
    predict(inside, (float *[]){sum}, 4, 0, expected);
    for (int i = 0; i < 2; ++i) {
        leat_model *made = cut(model, NULL, names[i]);
        assert_int_equal(leat_model_output_count(made), 1);
        assert_int_equal(predict(made, (float *[]){a, b}, 4, 0, out), 5);
        check_near(out, expected, samples * 5);
        assert_int_equal(leat_model_find_layer(made, "last"), -1);
        char *json = NULL; /* the new model can be written and read */
        leat_model *again = NULL;
        expect_ok(leat_model_to_json(made, &json, &err), &err);
        expect_ok(leat_model_from_json(&again, json, &err), &err);
        expect_ok(leat_model_copy_weights(again, made, &err), &err);
        predict(again, (float *[]){a, b}, 4, 0, out);
        check_near(out, expected, samples * 5);
        leat_string_free(json);
        leat_model_destroy(&again);
        leat_model_destroy(&made);
    }
    leat_model *both = NULL;
    expect_ok(leat_model_cut(&both, model, NULL, 0, (const char *[]){"inside", "y"}, 2, &err), &err);
    predict(both, (float *[]){a, b}, 4, 0, out);
    check_near(out, expected, samples * 5);
    predict(model, (float *[]){a, b}, 4, 0, expected);
    predict(both, (float *[]){a, b}, 4, 1, out);
    check_near(out, expected, samples * 3);
    leat_model_destroy(&both);
    leat_model_destroy(&inside);
    leat_model_destroy(&head);
    leat_model_destroy(&block);
    leat_model_destroy(&model);
}

static void a_merge_begins_with_each_input(void **state) {
    (void)state;
    float a[most], b[most], out[most];
    leat_model *model = make_model(), *made = cut(model, "sum", "sum");
    fill(a, 1);
    fill(b, 2);
    assert_int_equal(leat_model_input_count(made), 2);
    assert_string_equal(leat_model_input_name(made, 0), "sum_input_1");
    assert_string_equal(leat_model_input_name(made, 1), "sum_input_2");
    predict(made, (float *[]){a, b}, 4, 0, out);
    for (int i = 0; i < samples * 4; ++i) assert_true(out[i] == a[i] + b[i]);
    leat_model_destroy(&made);
    leat_model_destroy(&model);
}

static void wrong_names_are_refused(void **state) {
    (void)state;
    leat_model *model = make_model(), *made = NULL;
    const char *bad[] = {"shard"}, *inner[] = {"block/inside"}, *a[] = {"input_1"}, *none[] = {NULL};
    expect_refusal(leat_model_cut(&made, model, NULL, 0, bad, 1, &err), LEAT_ENOTFOUND,
                   "no layer 'shard': did you mean 'shared'?");
    expect_refusal(leat_model_cut(&made, model, bad, 1, NULL, 0, &err), LEAT_ENOTFOUND, "no layer 'shard'");
    expect_refusal(leat_model_cut(&made, model, inner, 1, NULL, 0, &err), LEAT_ENOTSUP,
                   "inside the nested model 'block'");
    expect_refusal(leat_model_cut(&made, model, a, 1, NULL, 0, &err), LEAT_EINVAL,
                   "the outputs need 'input_2', which is not an input of the model");
    expect_refusal(leat_model_cut(&made, model, NULL, 0, none, 1, &err), LEAT_EINVAL, "name 0 is NULL");
    expect_refusal(leat_model_cut(&made, model, NULL, 0, NULL, 1, &err), LEAT_EINVAL, "NULL");
    expect_refusal(leat_model_cut(&made, model, NULL, 0, (const char *[]){"7"}, 1, &err), LEAT_ENOTFOUND,
                   "no layer '7'");
    expect_refusal(leat_model_pop(&made, model, 1, &err), LEAT_EINVAL, "expected a Sequential");
    assert_null(made);
    leat_model_destroy(&model);
}

static void a_sequential_is_popped(void **state) {
    (void)state;
    leat_model *model = make_classifier(1), *made = NULL;
    leat_model *sequential = NULL;
    expect_ok(leat_model_from_json(
                  &sequential,
                  "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
                  "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d1\", \"units\": 5, "
                  "\"batch_input_shape\": [null, 4]}}, {\"class_name\": \"Dense\", \"config\": {\"name\": "
                  "\"d2\", \"units\": 3}}, {\"class_name\": \"Dense\", \"config\": {\"name\": \"d3\", "
                  "\"units\": 2}}]}}",
                  &err),
              &err);
    expect_ok(leat_model_pop(&made, sequential, 1, &err), &err);
    float x[most], out[most], expected[most];
    fill(x, 3);
    leat_model *reference = cut(sequential, NULL, "1"); /* index 1 is d2: the InputLayer does not count */
    assert_string_equal(leat_model_output_name(reference, 0), "d2");
    predict(reference, (float *[]){x}, 4, 0, expected);
    assert_int_equal(predict(made, (float *[]){x}, 4, 0, out), 3);
    check_near(out, expected, samples * 3);
    char *json = NULL;
    expect_ok(leat_model_to_json(made, &json, &err), &err);
    assert_non_null(strstr(json, "\"Sequential\""));
    assert_null(strstr(json, "d3"));
    leat_string_free(json);
    leat_model_destroy(&made);
    expect_refusal(leat_model_pop(&made, sequential, 3, &err), LEAT_EINVAL, "from 1 to 2, received 3");
    expect_refusal(leat_model_pop(&made, sequential, 0, &err), LEAT_EINVAL, "received 0");
    leat_model_destroy(&reference);
    leat_model_destroy(&sequential);
    leat_model_destroy(&model);
}

/* ---- A new head, and freezing ---- */

static void weights_are(const leat_model *a, const leat_model *b, const char *name, bool same) {
    const leat_tensor x = leat_model_weight(a, leat_model_find_weight(a, name)),
                      y = leat_model_weight(b, leat_model_find_weight(b, name));
    assert_non_null(x.data);
    assert_non_null(y.data);
    assert_int_equal(memcmp(x.data, y.data, leat_tensor_bytes(&x)) == 0, same);
}

static leat_model *with_new_head(const leat_model *model) {
    leat_builder *builder = NULL;
    leat_model *made = NULL;
    expect_ok(leat_builder_create_from(&builder, model, &err), &err);
    leat_node *inputs[] = {leat_builder_input(builder, 0), leat_builder_input(builder, 1)};
    leat_node *x = leat_builder_layer(builder, "block");
    x = leat_layer(x, "Dense", "{'units': 2, 'activation': 'softmax', 'name': 'head'}");
    expect_ok(leat_model_create(&made, &builder, inputs, 2, &x, 1, &err), &err);
    return made;
}

static void train(leat_model *model) {
    float a[most], b[most], y[most];
    fill(a, 1);
    fill(b, 2);
    for (int i = 0; i < samples * 2; ++i) y[i] = (float)((i / 2 + i) % 2);
    leat_array inputs[2] = {{.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 4}, a)},
                            {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 4}, b)}};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){samples, 2}, y)};
    leat_arrays data = {.inputs = inputs, .input_count = 2, .targets = &target, .target_count = 1};
    leat_compile_options compile = leat_compile_options_default();
    compile.loss = "categorical_crossentropy";
    expect_ok(leat_model_compile(model, &compile, &err), &err);
    expect_ok(leat_model_train_on_batch(model, &data, NULL, &err), &err);
}

static void a_head_is_replaced_and_the_base_frozen(void **state) {
    (void)state;
    static const char *const base[] = {"shared/kernel", "block/inside/kernel", "block/last/bias"};
    leat_model *model = make_model(), *made = with_new_head(model), *before = NULL;
    int count = 0;
    assert_int_equal(leat_model_find_layer(made, "y"), -1);
    for (size_t i = 0; i < sizeof base / sizeof *base; ++i) weights_are(model, made, base[i], true);
    expect_ok(leat_model_set_trainable_matching(made, "*", false, &count, &err), &err);
    assert_int_equal(count, 5); /* shared, sum, inside, last, head */
    expect_ok(leat_model_set_trainable_matching(made, "head", true, &count, &err), &err);
    assert_int_equal(count, 1);
    expect_ok(leat_model_clone(&before, made, true, &err), &err);
    train(made);
    for (size_t i = 0; i < sizeof base / sizeof *base; ++i) weights_are(model, made, base[i], true);
    weights_are(before, made, "head/kernel", false);
    expect_ok(leat_model_set_trainable_matching(made, "block/l*", true, &count, &err), &err);
    assert_int_equal(count, 1);
    train(made);
    weights_are(model, made, "block/inside/kernel", true);
    weights_are(model, made, "shared/kernel", true);
    weights_are(model, made, "block/last/kernel", false);
    leat_model_destroy(&before);
    leat_model_destroy(&made);
    leat_model_destroy(&model);
}

/* A layer of a nested model that is frozen as a whole can be made trainable; the model's other layers stay frozen. */
static void layers_of_a_frozen_model(void **state) {
    (void)state;
    leat_model *model = make_model(), *made = with_new_head(model);
    int count = -1;
    expect_ok(leat_model_set_trainable(made, "block", false, &err), &err);
    expect_ok(leat_model_set_trainable_matching(made, "last", true, &count, &err), &err);
    assert_int_equal(count, 1);
    train(made);
    weights_are(model, made, "block/inside/kernel", true);
    weights_are(model, made, "block/last/kernel", false);
    expect_ok(leat_model_set_trainable_matching(made, "block", false, &count, &err), &err);
    assert_int_equal(count, 2);
    expect_refusal(leat_model_set_trainable_matching(made, "lost*", false, &count, &err), LEAT_ENOTFOUND,
                   "no layer matches the pattern 'lost*'");
    assert_int_equal(count, 0);
    leat_model_destroy(&made);
    leat_model_destroy(&model);
}

static void a_builder_keeps_its_errors(void **state) {
    (void)state;
    leat_model *model = make_model(), *made = NULL;
    leat_builder *builder = NULL;
    expect_ok(leat_builder_create_from(&builder, model, &err), &err);
    leat_node *input = leat_builder_input(builder, 0), *x = leat_builder_layer(builder, "blok");
    assert_null(x);
    assert_null(leat_builder_output(builder, 0));
    expect_refusal(leat_model_create(&made, &builder, &input, 1, &x, 1, &err), LEAT_ENOTFOUND,
                   "did you mean 'block'?");
    expect_ok(leat_builder_create_from(&builder, model, &err), &err);
    assert_null(leat_builder_output(builder, 1));
    expect_refusal(leat_model_create(&made, &builder, &input, 1, &x, 1, &err), LEAT_EINVAL, "output");
    leat_model_destroy(&model);
}

/* leat_model_create makes an input of a tensor inside the network. */
static void a_model_begins_at_a_node(void **state) {
    (void)state;
    float a[most], b[most], middle[most], out[most], whole[most];
    leat_model *model = make_model(), *made = NULL, *head = cut(model, NULL, "block");
    leat_builder *builder = NULL;
    fill(a, 1);
    fill(b, 2);
    predict(model, (float *[]){a, b}, 4, 0, whole);
    predict(head, (float *[]){a, b}, 4, 0, middle);
    expect_ok(leat_builder_create_from(&builder, model, &err), &err);
    leat_node *input = leat_builder_layer(builder, "block"), *output = leat_builder_output(builder, 0);
    expect_ok(leat_model_create(&made, &builder, &input, 1, &output, 1, &err), &err);
    assert_string_equal(leat_model_input_name(made, 0), "block_output");
    predict(made, (float *[]){middle}, 4, 0, out);
    check_near(out, whole, samples * 3);
    leat_model_destroy(&made);
    leat_model_destroy(&head);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(several_outputs_and_calls),
        cmocka_unit_test(a_layer_of_a_nested_model),
        cmocka_unit_test(a_merge_begins_with_each_input),
        cmocka_unit_test(wrong_names_are_refused),
        cmocka_unit_test(a_sequential_is_popped),
        cmocka_unit_test(a_head_is_replaced_and_the_base_frozen),
        cmocka_unit_test(layers_of_a_frozen_model),
        cmocka_unit_test(a_builder_keeps_its_errors),
        cmocka_unit_test(a_model_begins_at_a_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
