/* SPDX-License-Identifier: Apache-2.0 */
/* The inspection of models (leat/inspect.h): layers, including nested models, compared with model.to_json();
 * connections, weights, compile arguments, and the optimizer's state. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "leat/inspect.h"
#include "leat/sequence.h"
#include "nn/run.h"

static leat_error err;

#define expect_refusal(call, status, said)                                                                   \
    do {                                                                                                     \
        memset(&err, 0, sizeof err);                                                                         \
        assert_int_equal(call, status);                                                                      \
        if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);                 \
    } while (0)

/* block: x (4) -> dense "inside" (4) -> batch normalization "norm" -> "block" */
static leat_model *make_block(void) {
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    assert_ok(leat_builder_create(&builder, &err), &err);
    leat_builder_set_name(builder, "block");
    leat_node *input = leat_input(builder, (int64_t[]){4}, 1);
    leat_node *output = leat_layer(input, "Dense", "{'units': 4, 'name': 'inside'}");
    output = leat_layer(output, "BatchNormalization", "{'name': 'norm'}");
    assert_ok(leat_model_create(&model, &builder, &input, 1, &output, 1, &err), &err);
    return model;
}

/* Inputs a and b (4) both go through the Dense "shared"; their sum goes through "block", then through the Dense
 * "y" (3). */
static leat_model *make_model(void) {
    leat_builder *builder = NULL;
    leat_model *model = NULL, *inner = make_block();
    leat_node *inputs[2];
    assert_ok(leat_builder_create(&builder, &err), &err);
    for (int i = 0; i < 2; ++i) inputs[i] = leat_input(builder, (int64_t[]){4}, 1);
    leat_node *first = leat_layer(inputs[0], "Dense", "{'units': 4, 'name': 'shared', 'activation': 'tanh'}");
    leat_node *second = leat_call(first, &inputs[1], 1);
    leat_node *sum = leat_merge((leat_node *[]){first, second}, 2, "Add", "{'name': 'sum'}");
    leat_node *output = leat_layer(leat_call_model(&inner, &sum, 1), "Dense", "{'units': 3, 'name': 'y'}");
    assert_ok(leat_model_create(&model, &builder, inputs, 2, &output, 1, &err), &err);
    return model;
}

static leat_model *model_of(const char *json) {
    leat_model *model = NULL;
    assert_ok(leat_model_from_json(&model, json, &err), &err);
    return model;
}

static int layer(const leat_model *model, const char *name) {
    int found = leat_model_find_layer(model, name);
    if (found < 0) fail_msg("there is no layer '%s'", name);
    return found;
}

/* ---- Layers ---- */

static json_t *parse_and_free(char *text) {
    json_t *value = NULL;
    assert_ok(leati_json_parse(&value, text, strlen(text), &err), &err);
    leat_string_free(text);
    return value;
}

/* Checks the layers of a model's configuration, from number `base` on; returns the number after the last one. */
static int check_layers(const leat_model *model, const json_t *config, int parent, int base) {
    const json_t *list = json_object_get(config, "layers");
    int count = (int)json_array_size(list), next = base + count;
    for (int i = 0; i < count; ++i) {
        const json_t *item = json_array_get(list, (size_t)i), *own = json_object_get(item, "config");
        const char *class_name = json_string_value(json_object_get(item, "class_name"));
        const char *name = json_string_value(json_object_get(own, "name"));
        char *text = NULL;
        assert_string_equal(leat_model_layer_name(model, base + i), name);
        assert_string_equal(leat_model_layer_class(model, base + i), class_name);
        assert_int_equal(leat_model_layer_parent(model, base + i), parent);
        assert_ok(leat_model_layer_config(model, base + i, &text, &err), &err);
        json_t *got = parse_and_free(text);
        if (!json_equal(got, own)) fail_msg("the configuration of '%s' differs", name);
        json_decref(got);
        const json_t *inside = json_object_get(json_object_get(own, "layer"), "config");
        if (strcmp(class_name, "Model") == 0) next = check_layers(model, own, base + i, next);
        if (json_object_get(inside, "layers")) next = check_layers(model, inside, base + i, next);
    }
    return next;
}

static void check_against_json(const leat_model *model) {
    char *text = NULL;
    assert_ok(leat_model_to_json(model, &text, &err), &err);
    json_t *root = parse_and_free(text);
    assert_int_equal(check_layers(model, json_object_get(root, "config"), -1, 0),
                     leat_model_layer_count(model));
    json_decref(root);
}

#define WRAPPED                                                                                              \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"outer\", \"layers\": [{\"class_name\": "      \
    "\"TimeDistributed\", \"config\": {\"name\": \"each\", \"batch_input_shape\": [null, 3, 4], \"layer\": " \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"step\", \"layers\": [{\"class_name\": "       \
    "\"Dense\", \"config\": {\"name\": \"deep\", \"units\": 2, \"batch_input_shape\": [null, 4]}}]}}}}]}}"

static void layers_are_those_of_the_configuration(void **state) {
    leat_model *model = make_model(), *wrapped = model_of(WRAPPED);
    (void)state;
    assert_int_equal(leat_model_layer_count(model), 6 + 3); /* model.layers, and the layers of "block" */
    check_against_json(model);
    check_against_json(wrapped);
    assert_int_equal(leat_model_layer_parent(wrapped, layer(wrapped, "deep")), layer(wrapped, "each"));
    leat_model_destroy(&wrapped);
    leat_model_destroy(&model);
}

static void layers_are_found_by_name(void **state) {
    leat_model *model = make_model();
    (void)state;
    for (int i = 0; i < leat_model_layer_count(model); ++i) {
        char path[2 * LEAT_NAME_BYTES];
        int parent = leat_model_layer_parent(model, i);
        const char *outer = parent < 0 ? "" : leat_model_layer_name(model, parent);
        snprintf(path, sizeof path, "%s%s%s", outer, parent < 0 ? "" : "/", leat_model_layer_name(model, i));
        assert_int_equal(layer(model, path), i);
    }
    assert_int_equal(leat_model_layer_parent(model, layer(model, "input_1")), -1); /* "block" has one, too */
    assert_int_equal(layer(model, "block/norm"), layer(model, "norm"));
    assert_int_equal(leat_model_layer_parent(model, layer(model, "norm")), layer(model, "block"));
    assert_int_equal(leat_model_find_layer(model, "norm/block"), -1);
    assert_int_equal(leat_model_find_layer(model, "block/y"), -1);
    assert_int_equal(leat_model_find_layer(model, "blo"), -1);
    leat_model_destroy(&model);
}

/* Two nested models have a layer of the same name; the paths differ. */
static void paths_tell_namesakes_apart(void **state) {
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    leat_node *x, *node;
    (void)state;
    assert_ok(leat_builder_create(&builder, &err), &err);
    node = x = leat_input(builder, (int64_t[]){4}, 1);
    for (int i = 0; i < 2; ++i) {
        leat_builder *part = NULL;
        leat_model *inner = NULL;
        assert_ok(leat_builder_create(&part, &err), &err);
        leat_builder_set_name(part, i == 0 ? "one" : "two");
        leat_node *in = leat_input(part, (int64_t[]){4}, 1);
        leat_node *out = leat_layer(in, "Dense", "{'units': 4, 'name': 'same'}");
        assert_ok(leat_model_create(&inner, &part, &in, 1, &out, 1, &err), &err);
        node = leat_call_model(&inner, &node, 1);
    }
    assert_ok(leat_model_create(&model, &builder, &x, 1, &node, 1, &err), &err);
    int one = layer(model, "one/same"), two = layer(model, "two/same");
    assert_int_equal(leat_model_layer_parent(model, one), layer(model, "one"));
    assert_int_equal(leat_model_layer_parent(model, two), layer(model, "two"));
    assert_int_equal(layer(model, "same"), one);
    assert_string_equal(leat_model_weight_name(model, leat_model_layer_weight(model, two, 0)),
                        "two/same/kernel:0");
    leat_model_destroy(&model);
}

static void freezing_is_seen(void **state) {
    leat_model *model = make_model();
    int kernel = leat_model_find_weight(model, "shared/kernel:0");
    (void)state;
    assert_true(leat_model_layer_trainable(model, layer(model, "shared")));
    assert_true(leat_model_weight_trainable(model, kernel));
    assert_true(leat_model_weight_trainable(model, leat_model_find_weight(model, "block/norm/gamma")));
    assert_false(leat_model_weight_trainable(model, leat_model_find_weight(model, "block/norm/moving_mean")));
    assert_ok(leat_model_set_trainable(model, "shared", false, &err), &err);
    assert_ok(leat_model_set_trainable(model, "block", false, &err), &err);
    assert_false(leat_model_layer_trainable(model, layer(model, "shared")));
    assert_false(leat_model_layer_trainable(model, layer(model, "block")));
    assert_true(leat_model_layer_trainable(model, layer(model, "inside"))); /* its own flag */
    assert_false(leat_model_weight_trainable(model, leat_model_find_weight(model, "shared/kernel:0")));
    assert_false(leat_model_weight_trainable(model, leat_model_find_weight(model, "block/inside/kernel")));
    assert_true(leat_model_weight_trainable(model, leat_model_find_weight(model, "y/bias")));
    leat_model_destroy(&model);
}

/* ---- Weights ---- */

/* Checks the names of a layer's weights, each followed by a space. */
static void expect_weights(const leat_model *model, const char *name, const char *names) {
    char all[512] = "";
    int number = layer(model, name);
    for (int i = 0; i < leat_model_layer_weight_count(model, number); ++i) {
        int index = leat_model_layer_weight(model, number, i);
        strcat(strcat(all, leat_model_weight_name(model, index)), " ");
    }
    assert_string_equal(all, names);
    assert_int_equal(leat_model_layer_weight(model, number, leat_model_layer_weight_count(model, number)),
                     -1);
    assert_int_equal(leat_model_layer_weight(model, number, -1), -1);
}

static void weights_belong_to_layers(void **state) {
    leat_model *model = make_model(), *wrapped = model_of(WRAPPED);
    (void)state;
    expect_weights(model, "shared", "shared/kernel:0 shared/bias:0 ");
    expect_weights(model, "sum", "");
    expect_weights(
        model, "norm",
        "block/norm/gamma:0 block/norm/beta:0 block/norm/moving_mean:0 block/norm/moving_variance:0 ");
    expect_weights(model, "block",
                   "block/inside/kernel:0 block/inside/bias:0 block/norm/gamma:0 block/norm/beta:0 "
                   "block/norm/moving_mean:0 block/norm/moving_variance:0 ");
    assert_int_equal(leat_model_layer_weight_count(wrapped, layer(wrapped, "each")), 2);
    assert_int_equal(leat_model_layer_weight_count(wrapped, layer(wrapped, "deep")), 2);
    leat_model_destroy(&wrapped);
    leat_model_destroy(&model);
}

static void weights_are_found_by_name(void **state) {
    leat_model *model = make_model();
    (void)state;
    for (int i = 0; i < leat_model_weight_count(model); ++i)
        assert_int_equal(leat_model_find_weight(model, leat_model_weight_name(model, i)), i);
    assert_int_equal(leat_model_find_weight(model, "y/kernel"), leat_model_find_weight(model, "y/kernel:0"));
    assert_true(leat_model_find_weight(model, "y/kernel") >= 0);
    assert_int_equal(leat_model_find_weight(model, "y/kern"), -1);
    assert_int_equal(leat_model_find_weight(model, "kernel:0"), -1);
    leat_model_destroy(&model);
}

/* ---- Connections ---- */

static void expect_input(const leat_model *model, const char *name, int call, int index, const char *from,
                         int from_call) {
    leat_layer_source source;
    leat_tensor read, made;
    int number = layer(model, name);
    assert_ok(leat_model_layer_input(model, number, call, index, &source, &err), &err);
    assert_int_equal(source.layer, layer(model, from));
    assert_int_equal(source.call, from_call);
    assert_int_equal(source.output, 0);
    assert_ok(leat_model_layer_input_shape(model, number, call, index, &read, &err), &err);
    assert_ok(leat_model_layer_output_shape(model, source.layer, from_call, 0, &made, &err), &err);
    assert_memory_equal(&read, &made, sizeof read);
    assert_null(read.data);
}

static void connections_are_those_of_the_graph(void **state) {
    leat_model *model = make_model();
    leat_tensor shape;
    (void)state;
    assert_int_equal(leat_model_layer_call_count(model, layer(model, "shared")), 2);
    expect_input(model, "shared", 0, 0, leat_model_input_name(model, 0), 0);
    expect_input(model, "shared", 1, 0, leat_model_input_name(model, 1), 0);
    assert_int_equal(leat_model_layer_input_count(model, layer(model, "sum"), 0), 2);
    expect_input(model, "sum", 0, 0, "shared", 0);
    expect_input(model, "sum", 0, 1, "shared", 1);
    expect_input(model, "block", 0, 0, "sum", 0);
    expect_input(model, "norm", 0, 0, "inside", 0);
    expect_input(model, "y", 0, 0, "block", 0);
    assert_int_equal(leat_model_layer_input_count(model, layer(model, leat_model_input_name(model, 0)), 0),
                     0);
    assert_ok(leat_model_layer_output_shape(model, layer(model, "y"), 0, 0, &shape, &err), &err);
    assert_int_equal(shape.rank, 2);
    assert_int_equal(shape.shape[0], -1);
    assert_int_equal(shape.shape[1], 3);
    leat_model_destroy(&model);
}

static void outputs_of_a_layer_are_counted(void **state) {
    leat_builder *builder = NULL;
    leat_model *model = NULL;
    leat_layer_source source;
    (void)state;
    assert_ok(leat_builder_create(&builder, &err), &err);
    leat_node *input = leat_input(builder, (int64_t[]){3, 2}, 2);
    leat_node *lstm = leat_layer(input, "LSTM", "{'units': 2, 'return_state': true, 'name': 'memory'}");
    leat_node *output = leat_layer(leat_output(lstm, 2), "Dense", "{'units': 1, 'name': 'y'}");
    assert_ok(leat_model_create(&model, &builder, &input, 1, &output, 1, &err), &err);
    assert_int_equal(leat_model_layer_output_count(model, layer(model, "memory"), 0), 3);
    assert_ok(leat_model_layer_input(model, layer(model, "y"), 0, 0, &source, &err), &err);
    assert_int_equal(source.layer, layer(model, "memory"));
    assert_int_equal(source.output, 2);
    leat_model_destroy(&model);
}

static void what_is_not_there_is_refused(void **state) {
    leat_model *model = make_model();
    leat_layer_source source;
    leat_tensor shape;
    char *text = (char *)model;
    int y = layer(model, "y"), count = leat_model_layer_count(model);
    (void)state;
    expect_refusal(leat_model_layer_config(model, count, &text, &err), LEAT_EINVAL,
                   "from 0 to 8, received 9");
    assert_null(text);
    expect_refusal(leat_model_layer_config(NULL, 0, &text, &err), LEAT_EINVAL, "model is NULL");
    expect_refusal(leat_model_layer_config(model, 0, NULL, &err), LEAT_EINVAL, "out is NULL");
    expect_refusal(leat_model_layer_input(model, -1, 0, 0, &source, &err), LEAT_EINVAL, "layer");
    expect_refusal(leat_model_layer_input(model, y, 1, 0, &source, &err), LEAT_EINVAL,
                   "layer 'y': expected the index of a call");
    expect_refusal(leat_model_layer_input(model, y, 0, 1, &source, &err), LEAT_EINVAL,
                   "layer 'y': expected the index of a");
    expect_refusal(leat_model_layer_input_shape(model, y, 0, -1, &shape, &err), LEAT_EINVAL, "input");
    expect_refusal(leat_model_layer_output_shape(model, y, 0, 1, &shape, &err), LEAT_EINVAL, "output");
    expect_refusal(leat_model_layer_output_shape(model, y, 0, 0, NULL, &err), LEAT_EINVAL, "out is NULL");
    for (int none = -1; none <= count; none += count + 1) {
        assert_null(leat_model_layer_name(model, none));
        assert_null(leat_model_layer_class(model, none));
        assert_int_equal(leat_model_layer_parent(model, none), -1);
        assert_false(leat_model_layer_trainable(model, none));
        assert_int_equal(leat_model_layer_call_count(model, none), 0);
        assert_int_equal(leat_model_layer_weight_count(model, none), 0);
        assert_int_equal(leat_model_layer_weight(model, none, 0), -1);
    }
    assert_int_equal(leat_model_layer_input_count(model, y, 1), 0);
    assert_int_equal(leat_model_layer_output_count(model, y, -1), 0);
    assert_int_equal(leat_model_layer_count(NULL), 0);
    assert_int_equal(leat_model_find_layer(NULL, "y"), -1);
    assert_int_equal(leat_model_find_layer(model, NULL), -1);
    assert_int_equal(leat_model_find_weight(NULL, "y/bias"), -1);
    assert_int_equal(leat_model_find_weight(model, NULL), -1);
    assert_null(leat_model_layer_name(NULL, 0));
    assert_false(leat_model_weight_trainable(NULL, 0));
    assert_false(leat_model_weight_trainable(model, -1));
    leat_model_destroy(&model);
}

/* ---- Compiled ---- */

static leat_model *make_compiled(const char *optimizer) {
    leat_model *model = make_model();
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = optimizer;
    options.loss = "mse";
    options.metrics = "mae";
    assert_ok(leat_model_compile(model, &options, &err), &err);
    return model;
}

static json_t *optimizer_of(const leat_model *model) {
    char *text = NULL;
    assert_ok(leat_model_optimizer_config(model, &text, &err), &err);
    return parse_and_free(text);
}

static void arguments_of_compile_come_back(void **state) {
    leat_model *model = make_compiled("Adam(learning_rate=0.25, beta_1=0.5)");
    char *text = NULL;
    (void)state;
    leat_model_set_learning_rate(model, 0.125);
    json_t *optimizer = optimizer_of(model);
    assert_string_equal(json_string_value(json_object_get(optimizer, "class_name")), "Adam");
    json_t *config = json_object_get(optimizer, "config");
    assert_float_equal(json_number_value(json_object_get(config, "learning_rate")), 0.125, 0);
    assert_float_equal(json_number_value(json_object_get(config, "beta_1")), 0.5, 0);
    assert_ok(leat_model_optimizer_config(model, &text, &err), &err);
    leat_model *again = make_compiled(text); /* compile accepts the text */
    leat_string_free(text);
    json_t *other = optimizer_of(again);
    assert_true(json_equal(optimizer, other));
    assert_ok(leat_model_training_config(model, &text, &err), &err);
    json_t *training = parse_and_free(text);
    assert_true(json_equal(json_object_get(training, "optimizer_config"), optimizer));
    assert_non_null(json_object_get(training, "loss"));
    const json_t *metrics = json_object_get(training, "metrics");
    if (json_is_array(metrics)) metrics = json_array_get(metrics, 0);
    assert_string_equal(json_string_value(metrics), "mae");
    json_decref(training);
    json_decref(other);
    json_decref(optimizer);
    leat_model_destroy(&again);
    leat_model_destroy(&model);
}

/* Keras 2.3.1 keeps these arguments in float32 variables and writes the rounded values to files. */
static void arguments_of_the_optimizer_are_rounded_to_float(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double value;
    } expected[] = {{"learning_rate", 0.001f}, {"beta_1", 0.9f}, {"beta_2", 0.999f}};
    leat_model *model = make_compiled("adam");
    json_t *optimizer = optimizer_of(model), *config = json_object_get(optimizer, "config");
    for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
        double value = json_number_value(json_object_get(config, expected[i].name));
        if (value != expected[i].value)
            fail_msg("%s: expected %.17g, received %.17g", expected[i].name, expected[i].value, value);
    }
    json_decref(optimizer);
    leat_model_destroy(&model);
}

static void state_of_the_optimizer_can_be_set(void **state) {
    leat_model *model = make_compiled("adam");
    int count = leat_model_optimizer_weight_count(model), seen = 0;
    (void)state;
    assert_true(count > 1);
    for (int i = 0; i < count; ++i) {
        float set[64], got[64] = {0};
        char name[LEAT_OPTIMIZER_NAME_BYTES];
        leat_tensor tensor;
        assert_ok(leat_model_optimizer_weight_shape(model, i, &tensor, name, &err), &err);
        assert_null(tensor.data);
        if (i == 0) {
            int32_t steps = 7;
            int64_t now = 0;
            assert_string_equal(name, "Adam/iterations:0");
            leat_tensor counter = leat_tensor_view(LEAT_I32, 0, NULL, &steps);
            assert_ok(leat_model_optimizer_weight_set(model, i, &counter, &err), &err);
            tensor.data = &now;
            assert_ok(leat_model_optimizer_weight_get(model, i, &tensor, &err), &err);
            assert_int_equal(now, 7);
            continue;
        }
        if (strncmp(name, "m_", 2) != 0 && strncmp(name, "v_", 2) != 0) continue;
        int64_t numbers = leat_tensor_count(&tensor);
        assert_true(numbers <= 64);
        for (int64_t j = 0; j < numbers; ++j) set[j] = (float)(100 * i + j);
        tensor.data = set;
        assert_ok(leat_model_optimizer_weight_set(model, i, &tensor, &err), &err);
        tensor.data = got;
        assert_ok(leat_model_optimizer_weight_get(model, i, &tensor, &err), &err);
        assert_memory_equal(got, set, (size_t)numbers * sizeof *got);
        ++seen;
    }
    assert_int_equal(seen, 2 * 8); /* m and v of the trained weights: 3 Dense layers, gamma, beta */
    leat_model_destroy(&model);
}

static void state_of_the_optimizer_is_checked(void **state) {
    leat_model *model = make_compiled("adam"), *plain = make_model();
    float room[64] = {0};
    leat_tensor tensor, wrong;
    char *text = NULL;
    (void)state;
    int count = leat_model_optimizer_weight_count(model);
    expect_refusal(leat_model_optimizer_weight_shape(model, count, &tensor, NULL, &err), LEAT_EINVAL,
                   "received");
    expect_refusal(leat_model_optimizer_weight_shape(model, 1, NULL, NULL, &err), LEAT_EINVAL, "out is NULL");
    assert_ok(leat_model_optimizer_weight_shape(model, 1, &tensor, NULL, &err), &err);
    expect_refusal(leat_model_optimizer_weight_get(model, 1, &tensor, &err), LEAT_EINVAL, "data is NULL");
    expect_refusal(leat_model_optimizer_weight_set(model, 1, &tensor, &err), LEAT_EINVAL, "data is NULL");
    wrong = leat_tensor_view(LEAT_F32, 1, (int64_t[]){64}, room);
    expect_refusal(leat_model_optimizer_weight_get(model, 1, &wrong, &err), LEAT_ESHAPE, "received (64,)");
    expect_refusal(leat_model_optimizer_weight_set(model, 1, &wrong, &err), LEAT_ESHAPE, "received (64,)");
    wrong = tensor;
    wrong.dtype = LEAT_F64;
    wrong.data = room;
    expect_refusal(leat_model_optimizer_weight_get(model, 1, &wrong, &err), LEAT_EDTYPE, "float64");
    wrong = leat_tensor_view(LEAT_F32, 0, NULL, NULL);
    expect_refusal(leat_model_optimizer_weight_set(model, 0, &wrong, &err), LEAT_EINVAL, "data is NULL");
    assert_int_equal(leat_model_optimizer_weight_count(plain), 0);
    assert_int_equal(leat_model_optimizer_weight_count(NULL), 0);
    expect_refusal(leat_model_optimizer_weight_shape(plain, 0, &tensor, NULL, &err), LEAT_EINVAL,
                   "not compiled");
    expect_refusal(leat_model_optimizer_config(plain, &text, &err), LEAT_EINVAL, "not compiled");
    expect_refusal(leat_model_training_config(plain, &text, &err), LEAT_EINVAL, "not compiled");
    expect_refusal(leat_model_optimizer_config(NULL, &text, &err), LEAT_EINVAL, "model is NULL");
    leat_model_destroy(&plain);
    leat_model_destroy(&model);
}

/* ---- Clones ---- */

static bool same_weights(const leat_model *a, const leat_model *b) {
    bool same = leat_model_weight_count(a) == leat_model_weight_count(b);
    for (int i = 0; same && i < leat_model_weight_count(a); ++i) {
        leat_tensor p = leat_model_weight(a, i), q = leat_model_weight(b, i);
        same = leat_tensor_bytes(&p) == leat_tensor_bytes(&q) &&
               memcmp(p.data, q.data, leat_tensor_bytes(&p)) == 0 &&
               strcmp(leat_model_weight_name(a, i), leat_model_weight_name(b, i)) == 0;
    }
    return same;
}

static void expect_same_json(const leat_model *a, const leat_model *b) {
    char *p = NULL, *q = NULL;
    assert_ok(leat_model_to_json(a, &p, &err), &err);
    assert_ok(leat_model_to_json(b, &q, &err), &err);
    assert_string_equal(p, q);
    leat_string_free(p);
    leat_string_free(q);
}

static void clones_are_models_of_their_own(void **state) {
    leat_model *model = make_compiled("adam"), *copy = NULL, *fresh = NULL, *wrapped = model_of(WRAPPED);
    (void)state;
    assert_ok(leat_model_initialize(model, 5, &err), &err);
    assert_ok(leat_model_set_trainable(model, "block", false, &err), &err);
    assert_ok(leat_model_clone(&copy, model, true, &err), &err);
    assert_ok(leat_model_clone(&fresh, model, false, &err), &err);
    expect_same_json(model, copy);
    expect_same_json(model, fresh);
    assert_true(same_weights(model, copy));
    assert_false(same_weights(model, fresh));
    assert_true(leat_model_is_compiled(model));
    assert_false(leat_model_is_compiled(copy));
    assert_false(leat_model_layer_trainable(copy, layer(copy, "block")));
    leat_tensor bias = leat_model_weight(copy, leat_model_find_weight(copy, "y/bias"));
    ((float *)bias.data)[0] = 42; /* changes only the copy */
    assert_false(same_weights(model, copy));
    assert_ok(leat_model_initialize(model, 0, &err), &err);
    assert_true(same_weights(model, fresh)); /* weights of a fresh clone are drawn with seed 0 */
    leat_model_destroy(&model);
    check_against_json(copy);
    leat_model_destroy(&copy);
    leat_model_destroy(&fresh);
    assert_ok(leat_model_clone(&copy, wrapped, true, &err), &err);
    expect_same_json(wrapped, copy);
    assert_true(same_weights(wrapped, copy));
    leat_model_destroy(&copy);
    copy = wrapped;
    expect_refusal(leat_model_clone(&copy, NULL, true, &err), LEAT_EINVAL, "model is NULL");
    assert_null(copy);
    expect_refusal(leat_model_clone(NULL, wrapped, true, &err), LEAT_EINVAL, "out is NULL");
    leat_model_destroy(&wrapped);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_those_of_the_configuration),
        cmocka_unit_test(layers_are_found_by_name),
        cmocka_unit_test(paths_tell_namesakes_apart),
        cmocka_unit_test(freezing_is_seen),
        cmocka_unit_test(weights_belong_to_layers),
        cmocka_unit_test(weights_are_found_by_name),
        cmocka_unit_test(connections_are_those_of_the_graph),
        cmocka_unit_test(outputs_of_a_layer_are_counted),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(arguments_of_compile_come_back),
        cmocka_unit_test(arguments_of_the_optimizer_are_rounded_to_float),
        cmocka_unit_test(state_of_the_optimizer_can_be_set),
        cmocka_unit_test(state_of_the_optimizer_is_checked),
        cmocka_unit_test(clones_are_models_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
