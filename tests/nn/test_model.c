/* SPDX-License-Identifier: Apache-2.0 */
/* Models from a user's view: JSON in both directions, the builder, weights and their order, summaries. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "json/json.h"
#include "nn/keras3/own_keys.h"
#include "nn/model/model.h"
#include "nn/run.h"
#include "nn/small_models.h"
#include "support/golden.h"

static leat_model *model_of(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_ok(leat_model_from_json(&model, json, &err), &err);
    return model;
}

static float *weight_data(const leat_model *model, int index) {
    return leat_model_weight(model, index).data;
}

/* ---- JSON ---- */

/* Removes what leat does not write from a Sequential of Keras 2.3.1: its own InputLayer and its build_input_shape. */
static void normalise(json_t *value) {
    const char *key;
    json_t *item;
    size_t index;
    json_t *config = json_object_get(value, "config");
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    if (class_name && strcmp(class_name, "Sequential") == 0) {
        json_t *layers = json_object_get(config, "layers");
        const char *first = json_string_value(json_object_get(json_array_get(layers, 0), "class_name"));
        if (first && strcmp(first, "InputLayer") == 0) json_array_remove(layers, 0);
        json_object_del(config, "build_input_shape");
    }
    if (json_is_object(value)) json_object_foreach(value, key, item) normalise(item);
    if (json_is_array(value)) json_array_foreach(value, index, item) normalise(item);
}

/* Fails if two values differ; 1 and 1.0 are equal. */
static void compare(const char *where, const json_t *a, const json_t *b) {
    const char *key;
    json_t *item;
    if (json_is_number(a) && json_is_number(b) && json_number_value(a) == json_number_value(b)) return;
    if (!a || !b || json_typeof(a) != json_typeof(b)) fail_msg("%s: another type, or missing", where);
    if (json_is_object(a)) {
        json_object_foreach((json_t *)(uintptr_t)a, key, item) {
            char inner[256];
            snprintf(inner, sizeof inner, "%.180s.%s", where, key);
            compare(inner, item, json_object_get(b, key));
        }
        if (json_object_size(a) != json_object_size(b)) fail_msg("%s: another number of keys", where);
    } else if (json_is_array(a)) {
        if (json_array_size(a) != json_array_size(b)) fail_msg("%s: another length", where);
        for (size_t i = 0; i < json_array_size(a); ++i) {
            char inner[256];
            snprintf(inner, sizeof inner, "%.200s[%zu]", where, i);
            compare(inner, json_array_get(a, i), json_array_get(b, i));
        }
    } else if (!json_equal(a, b))
        fail_msg("%s: another value", where);
}

typedef struct group {
    const char *name;
    int cases;
} group;

static void check_config(const char *name, void *user) {
    group *of = user;
    leat_error err = {0};
    golden g;
    leat_model *model = NULL, *again = NULL;
    char *text = NULL, *text_again = NULL;
    golden_open(&g, of->name, name);
    json_t *keras = golden_json(&g, "config"), *ours = NULL;
    assert_ok(leati_model_from_config(&model, keras, &err), &err);
    assert_ok(leat_model_to_json(model, &text, &err), &err);
    again = model_of(text);
    assert_ok(leat_model_to_json(again, &text_again, &err), &err);
    assert_string_equal(text, text_again);
    assert_ok(leati_json_parse(&ours, text, strlen(text), &err), &err);
    normalise(keras);
    normalise(ours);
    if (!json_object_get(keras, "module")) { /* otherwise the file is in the form of current Keras */
        /* Defaults that tf.keras refuses are not written. */
        assert_ok(leati_own_keys_set_aside(keras, &err), &err);
        compare(name, keras, ours);
    }
    json_decref(ours);
    json_decref(keras);
    leat_string_free(text);
    leat_string_free(text_again);
    leat_model_destroy(&again);
    leat_model_destroy(&model);
    golden_close(&g);
    ++of->cases;
}

/* Every configuration that Keras wrote is written back unchanged. */
static void test_configs(void **state) {
    (void)state;
    group layers = {.name = "layers"}, later = {.name = "keras-3/layers"};
    golden_each(layers.name, check_config, &layers);
    golden_each(later.name, check_config, &later);
    assert_true(layers.cases >= 380 && later.cases >= 81);
}

static void test_sequential_forms(void **state) {
    (void)state;
    static const char *const forms[] = {
        /* a bare list, as before 2.2.3 */
        "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"Dense\", \"config\": {\"units\": "
        "3, "
        "\"batch_input_shape\": [null, 4]}}, {\"class_name\": \"Dense\", \"config\": {\"units\": 2}}]}",
        /* build_input_shape */
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"build_input_shape\": [null, 4], "
        "\"layers\": "
        "[{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}, {\"class_name\": \"Dense\", \"config\": "
        "{\"units\": "
        "2}}]}}",
        /* an InputLayer, and an inner model that learns its shape from the outer one */
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [{\"class_name\": "
        "\"InputLayer\", "
        "\"config\": {\"batch_input_shape\": [null, 4]}}, {\"class_name\": \"Sequential\", \"config\": "
        "{\"name\": "
        "\"inner\", \"layers\": [{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}]}}, "
        "{\"class_name\": "
        "\"Dense\", \"config\": {\"units\": 2}}]}}",
        /* an inner model in front, whose first layer knows the shape */
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [{\"class_name\": "
        "\"Sequential\", "
        "\"config\": {\"name\": \"inner\", \"layers\": [{\"class_name\": \"Dense\", \"config\": {\"units\": "
        "3, "
        "\"input_shape\": [4]}}]}}, {\"class_name\": \"Dense\", \"config\": {\"units\": 2}}]}}"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; ++i) {
        leat_model *model = model_of(forms[i]);
        leat_tensor in = leat_model_input_shape(model, 0), out = leat_model_output_shape(model, 0);
        assert_int_equal(in.rank, 2);
        assert_int_equal(in.shape[0], -1);
        assert_int_equal(in.shape[1], 4);
        assert_int_equal(out.shape[1], 2);
        assert_int_equal(leat_model_weight_count(model), 4);
        leat_model_destroy(&model);
    }
}

static void test_old_presets(void **state) {
    (void)state;
#define LSTM_MODEL(version)                                                                                  \
    "{\"class_name\": \"Sequential\", \"keras_version\": \"" version                                         \
    "\", \"config\": [{\"class_name\": \"LSTM\", \"config\": {\"units\": 3, \"input_shape\": [5, 2]}}]}"
    static const char *const models[] = {LSTM_MODEL("2.2.4"), LSTM_MODEL("2.3.1")};
    static const char *const expected[] = {"\"recurrent_activation\": \"hard_sigmoid\"",
                                           "\"recurrent_activation\": \"sigmoid\""};
    for (int i = 0; i < 2; ++i) {
        leat_error err = {0};
        char *text = NULL;
        leat_model *model = model_of(models[i]);
        assert_ok(leat_model_to_json(model, &text, &err), &err);
        if (!strstr(text, expected[i])) fail_msg("%s: not in %s", expected[i], text);
        leat_string_free(text);
        leat_model_destroy(&model);
    }
}

/* leat keeps what Keras 2.3.1 loses in JSON: an input that no output needs, and a frozen nested model. */
static void test_kept(void **state) {
    (void)state;
    leat_error err = {0};
    char *text = NULL;
    leat_model *model = model_of(
        SMALL_MODEL(SMALL_INPUT("x", "[null, 4]") ", " SMALL_INPUT(
                        "unused", "[null, 7]") ", "
                                               "{\"class_name\": \"Sequential\", \"name\": \"s\", "
                                               "\"inbound_nodes\": [[[\"x\", 0, 0, {}]]], \"config\": "
                                               "{\"name\": \"s\", \"layers\": [{\"class_name\": \"Dense\", "
                                               "\"config\": {\"units\": 3}}]}}, " SMALL_DENSE("dropped", "x",
                                                                                              "9", ""),
                    "[\"unused\", 0, 0], [\"x\", 0, 0]", "[\"s\", 1, 0]"));
    assert_int_equal(leat_model_weight_count(model), 2); /* no weights of the layer that no output needs */
    assert_ok(leat_model_set_trainable(model, "s", false, &err), &err);
    assert_ok(leat_model_to_json(model, &text, &err), &err);
    leat_model *again = model_of(text);
    assert_int_equal(again->weights.trainable_count, 0);
    assert_int_equal(leat_model_input_count(again), 2);
    assert_string_equal(leat_model_input_name(again, 0), "unused");
    assert_int_equal(leat_model_input_shape(again, 0).shape[1], 7);
    leat_string_free(text);
    leat_model_destroy(&again);
    leat_model_destroy(&model);
}

/* ---- The builder ---- */

/* The network of include/leat/model.h is the same from functions and from JSON. */
static void test_builder(void **state) {
    (void)state;
    leat_error err = {0};
    leat_builder *b = NULL;
    leat_model *model = NULL;
    char *text = NULL;
    assert_ok(leat_builder_create(&b, &err), &err);
    leat_node *in = leat_input(b, (const int64_t[]){28, 28, 1}, 3), *x = leat_conv2d(in, 8, 3, "relu");
    x = leat_layer(x, "Conv2D",
                   "{\"filters\": 4, \"kernel_size\": [3, 5], \"padding\": \"same\", \"name\": \"mine\"}");
    x = leat_batch_normalization(leat_max_pooling2d(x, 2));
    x = leat_average_pooling2d(leat_dropout(x, 0.25), 2);
    x = leat_dense(leat_flatten(x), 16, NULL);
    leat_node *y = leat_dense(leat_activation(x, "tanh"), 10, "softmax");
    assert_ok(leat_model_create(&model, &b, &in, 1, &y, 1, &err), &err);
    assert_null(b);
    assert_string_equal(leat_model_input_name(model, 0), "input_1");
    assert_string_equal(leat_model_output_name(model, 0), "dense_2");
    assert_int_equal(leat_model_output_shape(model, 0).shape[1], 10);
    assert_string_equal(leat_model_weight_name(model, 2), "mine/kernel:0");
    assert_ok(leat_model_to_json(model, &text, &err), &err);
    leat_model *again = model_of(text);
    assert_int_equal(leat_model_weight_count(again), 12);
    for (int i = 0; i < 12; ++i) {
        leat_tensor a = leat_model_weight(model, i), c = leat_model_weight(again, i);
        assert_int_equal(leat_tensor_bytes(&a), leat_tensor_bytes(&c));
        assert_memory_equal(a.data, c.data, leat_tensor_bytes(&a)); /* same names, same seed, same values */
    }
    leat_string_free(text);
    leat_model_destroy(&again);
    leat_model_destroy(&model);
}

static void test_builder_joins(void **state) {
    (void)state;
    leat_error err = {0};
    leat_builder *b = NULL, *inner_b = NULL;
    leat_model *model = NULL, *inner = NULL;
    assert_ok(leat_builder_create(&inner_b, &err), &err);
    leat_node *i = leat_input(inner_b, (const int64_t[]){6}, 1), *o = leat_dense(i, 3, "relu");
    assert_ok(leat_model_create(&inner, &inner_b, &i, 1, &o, 1, &err), &err);
    weight_data(inner, 0)[0] = 42.0f;
    assert_ok(leat_builder_create(&b, &err), &err);
    leat_node *a = leat_input(b, (const int64_t[]){4}, 1), *s = leat_input(b, (const int64_t[]){-1, 5}, 2);
    leat_node *shared = leat_dense(a, 6, NULL), *twice = leat_call(shared, &a, 1);
    leat_node *lstm = leat_layer(s, "LSTM", "{\"units\": 6, \"return_state\": true}");
    leat_node *sum = leat_merge((leat_node *[]){shared, twice, lstm, leat_output(lstm, 2)}, 4, "Add", NULL);
    leat_node *nested = leat_call_model(&inner, &sum, 1);
    assert_null(inner);
    leat_node *inputs[] = {a, s}, *outputs[] = {nested, leat_lstm(s, 2, true)};
    assert_ok(leat_model_create(&model, &b, inputs, 2, outputs, 2, &err), &err);
    assert_int_equal(leat_model_weight_count(model), 10);
    assert_string_equal(leat_model_output_name(model, 0), "model_1");
    /* The nested model keeps its trained weights. */
    int found = 0;
    for (int w = 0; w < 10; ++w)
        if (strcmp(leat_model_weight_name(model, w), "model_1/dense_1/kernel:0") == 0)
            found = weight_data(model, w)[0] == 42.0f;
    assert_true(found);
    assert_int_equal(leat_model_output_shape(model, 1).shape[1], -1);
    leat_model_destroy(&model);
}

static leat_node *printed(leat_builder *b, leat_node **in) {
    *in = leat_input(b, (const int64_t[]){4}, 1);
    leat_node *x = leat_layerf(*in, "Dense", "{'units': %d, 'name': \"%s_%s\"}", 4, "a", "dense");
    x = leat_layer(x, "Activation", "{'activation': \"relu\", 'name': 'it\\'s \"7\" \\\\'}");
    return leat_mergef((leat_node *[]){x, *in}, 2, "Concatenate", "{'name': 'joined_%d'}", 5);
}

/* Configurations from format strings, with quotes; the model's own name. */
static void test_builder_texts(void **state) {
    (void)state;
    leat_error err = {0};
    leat_builder *b = NULL;
    leat_model *model = NULL;
    leat_node *in = NULL;
    char *text = NULL;
    assert_ok(leat_builder_create(&b, &err), &err);
    leat_builder_set_name(b, "mine");
    leat_node *out = printed(b, &in);
    assert_ok(leat_model_create(&model, &b, &in, 1, &out, 1, &err), &err);
    assert_string_equal(leat_model_weight_name(model, 0), "a_dense/kernel:0");
    assert_string_equal(leat_model_output_name(model, 0), "joined_5");
    assert_string_equal(leati_member_name(model, 2), "it's \"7\" \\");
    assert_ok(leat_model_to_json(model, &text, &err), &err);
    assert_non_null(strstr(text, "\"name\": \"mine\""));
    leat_string_free(text);
    leat_model_destroy(&model);
    leat_builder_set_name(NULL, "nobody");
}

static void check_build_error(leat_builder *b, leat_node *in, leat_node *out, leat_status code,
                              const char *says) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_int_equal(leat_model_create(&model, &b, &in, 1, &out, 1, &err), code);
    assert_null(model);
    assert_null(b);
    if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

static leat_node *start(leat_builder **b) {
    leat_error err = {0};
    assert_ok(leat_builder_create(b, &err), &err);
    return leat_input(*b, (const int64_t[]){8, 8, 2}, 3);
}

static void test_builder_errors(void **state) {
    (void)state;
    leat_builder *b, *other;
    leat_node *in = start(&b);
    leat_node *bad = leat_conv2d(in, 4, 9, "relu");
    assert_null(bad);
    check_build_error(b, in, leat_dense(bad, 3, NULL), LEAT_ESHAPE,
                      "layer 'conv2d_1' (Conv2D): expected at least 9 rows");
    in = start(&b);
    check_build_error(b, in, leat_layer(in, "Dense", "{\"unit\": 3}"), LEAT_ENOTSUP, "did you mean 'units'?");
    in = start(&b);
    check_build_error(b, in, leat_layer(in, "Dens", "{\"units\": 3}"), LEAT_ENOTSUP, "did you mean 'Dense'?");
    in = start(&b);
    check_build_error(b, in, leat_layer(in, "Dense", "{\"units\": "), LEAT_EFORMAT,
                      "layer 1 (Dense): JSON, line 1");
    in = start(&b);
    check_build_error(b, in, leat_layer(in, "Dense", "{'units': 'a\"}"), LEAT_EFORMAT,
                      "layer 1 (Dense): JSON");
    in = start(&b);
    check_build_error(b, in, leat_layerf(in, "Dense", "{'units': %d}", 0), LEAT_EINVAL, "at least 1");
    in = start(&b);
    check_build_error(b, in, leat_layerf(NULL, "Dense", "{'units': %d}", 3), LEAT_EINVAL, "output 0 is NULL");
    in = start(&b);
    leat_builder_set_name(b, "");
    check_build_error(b, in, leat_flatten(in), LEAT_EINVAL,
                      "the model: name: expected a text of 1 to 63 bytes");
    in = start(&b);
    check_build_error(b, in, NULL, LEAT_EINVAL, "output 0 is NULL");
    in = start(&b);
    check_build_error(b, leat_flatten(in), leat_flatten(in), LEAT_EINVAL, "need 'input_1'");
    in = start(&b);
    leat_node *stranger = start(&other);
    check_build_error(b, in, leat_merge((leat_node *[]){in, stranger}, 2, "Add", NULL), LEAT_EINVAL,
                      "another builder");
    leat_builder_destroy(&other);
    in = start(&b);
    check_build_error(b, in, leat_output(leat_flatten(in), 1), LEAT_EINVAL,
                      "layer 'flatten_1' has no output 1");
    in = start(&b);
    leat_node *second = leat_input(b, (const int64_t[]){8, 8, 2}, 3);
    check_build_error(b, in, leat_merge((leat_node *[]){in, second}, 2, "Add", NULL), LEAT_EINVAL,
                      "'input_2'");
    in = start(&b);
    check_build_error(b, in, leat_layer(in, "Flatten", "{\"name\": \"input_1\"}"), LEAT_EINVAL,
                      "'input_1' twice");
}

/* ---- Weights ---- */

static void test_initialize(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = model_of(SMALL_ONE);
    float first = weight_data(model, 0)[0];
    assert_ok(leat_model_initialize(model, 7, &err), &err);
    assert_true(weight_data(model, 0)[0] != first);
    assert_true(weight_data(model, 1)[0] == 0.0f);
    assert_ok(leat_model_initialize(model, 0, &err), &err);
    assert_true(weight_data(model, 0)[0] == first);
    for (int i = 0; i < leat_model_weight_count(model); ++i)
        assert_int_equal((uintptr_t)leat_model_weight(model, i).data % LEATI_ALIGNMENT, 0);
    leat_model_destroy(&model);
}

static void check_copy_refused(leat_model *to, const char *config, leat_status code, const char *says) {
    leat_error err = {0};
    leat_model *from = model_of(config);
    float first = weight_data(to, 0)[0];
    assert_int_equal(leat_model_copy_weights(to, from, &err), code);
    assert_non_null(strstr(err.message, says));
    assert_true(weight_data(to, 0)[0] == first);
    leat_model_destroy(&from);
}

static void test_copy_weights(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *to = model_of(SMALL_ONE), *from = model_of(SMALL_ONE);
    assert_ok(leat_model_initialize(from, 7, &err), &err);
    uint64_t version = to->weights_version;
    assert_true(weight_data(to, 0)[0] != weight_data(from, 0)[0]);
    assert_ok(leat_model_copy_weights(to, from, &err), &err);
    assert_true(to->weights_version > version);
    for (int i = 0; i < leat_model_weight_count(to); ++i) {
        leat_tensor a = leat_model_weight(to, i), b = leat_model_weight(from, i);
        assert_ptr_not_equal(a.data, b.data);
        assert_memory_equal(a.data, b.data, leat_tensor_bytes(&a));
    }
    assert_ok(leat_model_copy_weights(to, to, &err), &err);
    check_copy_refused(to, SMALL_TWO, LEAT_ESHAPE, "'a/kernel:0'");
    check_copy_refused(to, SMALL_SEQUENCE, LEAT_EINVAL, "received one of 2");
    leat_model_destroy(&to);
    leat_model_destroy(&from);
}

static void check_names(const leat_model *model, const char *const *names) {
    int count = 0;
    while (names[count]) ++count;
    assert_int_equal(leat_model_weight_count(model), count);
    for (int i = 0; i < count; ++i) assert_string_equal(leat_model_weight_name(model, i), names[i]);
}

/* Freezing changes the order of weights in files at once; the trained weights change with the next compile; no
 * value changes. */
static void test_trainable(void **state) {
    (void)state;
    static const char *const before[] = {
        "a/kernel:0",  "a/bias:0",           "in/d/kernel:0",          "in/d/bias:0", "in/b/gamma:0",
        "in/b/beta:0", "in/b/moving_mean:0", "in/b/moving_variance:0", NULL};
    static const char *const after[] = {
        "a/kernel:0",  "a/bias:0",           "in/b/gamma:0",           "in/b/beta:0", "in/d/kernel:0",
        "in/d/bias:0", "in/b/moving_mean:0", "in/b/moving_variance:0", NULL};
    leat_error err = {0};
    leat_model *model = model_of("{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"Dense\", "
                                 "\"config\": {\"name\": \"a\", "
                                 "\"units\": 3, \"input_shape\": [4]}}, {\"class_name\": \"Sequential\", "
                                 "\"config\": {\"name\": \"in\", "
                                 "\"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", "
                                 "\"units\": 2}}, {\"class_name\": "
                                 "\"BatchNormalization\", \"config\": {\"name\": \"b\"}}]}}]}");
    leat_compile_options options = leat_compile_options_default();
    options.loss = "mse";
    check_names(model, before);
    weight_data(model, 2)[0] = 5.0f;
    assert_ok(leat_model_compile(model, &options, &err), &err);
    assert_int_equal(model->weights.trainable_count, 6);
    assert_ok(leat_model_set_trainable(model, "d", false, &err), &err);
    check_names(model, after);
    assert_int_equal(model->weights.trainable_count, 6);
    assert_ok(leat_model_compile(model, &options, &err), &err);
    assert_int_equal(model->weights.trainable_count, 4);
    assert_true(weight_data(model, 4)[0] == 5.0f);
    assert_int_equal(leati_member_weight_count(model, 2), 6);
    assert_string_equal(leati_member_weight_name(model, 2, 0), "in/b/gamma:0");
    assert_int_equal(leat_model_set_trainable(model, "dd", false, &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "no layer 'dd'"));
    leat_model_destroy(&model);
}

/* Checks the `trainable` of layer `index` and of the layer inside, in the configuration. */
static void check_frozen(const leat_model *model, size_t index, bool outer, bool inner) {
    leat_error err = {0};
    json_t *config = NULL;
    assert_ok(leati_model_config(model, &config, &err), &err);
    const json_t *layers = json_object_get(json_object_get(config, "config"), "layers");
    const json_t *own = json_object_get(json_array_get(layers, index), "config");
    const json_t *within = json_object_get(json_object_get(own, "layer"), "config");
    assert_int_equal(json_is_false(json_object_get(own, "trainable")), outer);
    assert_int_equal(json_is_false(json_object_get(within, "trainable")), inner);
    json_decref(config);
}

/* The layer in TimeDistributed is frozen with it; the layer in Bidirectional keeps its own flag, as in Keras. */
static void test_freezing_wrappers(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL;
    assert_ok(
        leat_model_from_json(
            &model,
            "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
            "{\"class_name\": \"TimeDistributed\", \"config\": {\"name\": \"each\", \"batch_input_shape\":"
            " [null, 3, 4], \"layer\": {\"class_name\": \"Dense\", \"config\": {\"name\": \"d\","
            " \"units\": 2}}}}, {\"class_name\": \"Bidirectional\", \"config\": {\"name\": \"both\","
            " \"layer\": {\"class_name\": \"SimpleRNN\", \"config\": {\"name\": \"r\", \"units\": 2}}}}]}}",
            &err),
        &err);
    assert_int_equal(model->weights.trainable_count, 8);
    size_t first = 1; /* after the InputLayer */
    check_frozen(model, first, false, false);
    assert_ok(leat_model_set_trainable(model, "each", false, &err), &err);
    assert_ok(leat_model_set_trainable(model, "both", false, &err), &err);
    check_frozen(model, first, true, true);
    check_frozen(model, first + 1, true, false);
    assert_ok(leat_model_set_trainable(model, "each", true, &err), &err);
    check_frozen(model, first, false, false);
    leat_model_destroy(&model);
}

/* TimeDistributed over a model: the layers inside are found by name, and are frozen one by one or together. */
static void test_freezing_model_inside(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL;
    char *text = NULL;
    assert_ok(
        leat_model_from_json(
            &model,
            "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
            "{\"class_name\": \"TimeDistributed\", \"config\": {\"name\": \"each\", \"batch_input_shape\":"
            " [null, 3, 4], \"layer\": {\"class_name\": \"Sequential\", \"config\": {\"name\": \"q\","
            " \"layers\": [{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 2}},"
            " {\"class_name\": \"Dense\", \"config\": {\"name\": \"e\", \"units\": 5}}]}}}}]}}",
            &err),
        &err);
    assert_int_equal(model->weights.trainable_count, 4);
    assert_string_equal(model->weights.names[0], "each/d/kernel:0");
    assert_ok(leat_model_summary(model, &text, &err), &err);
    assert_non_null(strstr(text, "Trainable params: 25\n"));
    leat_string_free(text);
    assert_ok(leat_model_set_trainable(model, "d", false, &err), &err);
    assert_ok(leat_model_summary(model, &text, &err), &err);
    assert_non_null(strstr(text, "Trainable params: 15\n"));
    leat_string_free(text);
    assert_ok(leat_model_set_trainable(model, "each", false, &err), &err);
    assert_ok(leat_model_summary(model, &text, &err), &err);
    assert_non_null(strstr(text, "Trainable params: 0\n"));
    leat_string_free(text);
    leat_model_destroy(&model);
}

/* ---- Summaries ---- */

static char *text_of(const char *name, const char *suffix) {
    char path[512];
    snprintf(path, sizeof path, LEAT_SOURCE_DIR "/tests/golden/keras-2.3.1/summaries/%s.%s", name, suffix);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    char *text = calloc(1, 1 << 16);
    size_t bytes = fread(text, 1, (1 << 16) - 1, file);
    assert_true(bytes > 0);
    fclose(file);
    return text;
}

static void test_summaries(void **state) {
    (void)state;
    static const char *const names[] = {"chain", "cnn", "frozen", "joins", "nested", "sequence", "varying"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        leat_error err = {0};
        char *json = text_of(names[i], "json"), *keras = text_of(names[i], "txt"), *ours = NULL;
        leat_model *model = model_of(json);
        assert_ok(leat_model_summary(model, &ours, &err), &err);
        assert_string_equal(ours, keras);
        leat_string_free(ours);
        leat_model_destroy(&model);
        free(json);
        free(keras);
    }
}

static json_t *summary_of(const char *json) {
    leat_error err = {0};
    leat_model *model = model_of(json);
    char *text = NULL;
    assert_ok(leat_model_summary_json(model, &text, &err), &err);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    leat_string_free(text);
    leat_model_destroy(&model);
    return root;
}

/* A layer that is called twice, and a Sequential, whose InputLayer is not listed. */
static void test_summary_json(void **state) {
    (void)state;
    json_t *root = summary_of(
        SMALL_MODEL(SMALL_INPUT("a", "[null, 4]") ", " SMALL_INPUT(
                        "b",
                        "[null, 4]") ", "
                                     "{\"class_name\": \"Dense\", \"name\": \"d\", \"inbound_nodes\": "
                                     "[[[\"a\", 0, 0, {}]], "
                                     "[[\"b\", 0, 0, {}]]], \"config\": {\"name\": \"d\", \"units\": 3}}, "
                                     "{\"class_name\": \"BatchNormalization\", \"name\": \"n\", "
                                     "\"inbound_nodes\": [[[\"d\", 1, 0, {}]]], "
                                     "\"config\": {\"name\": \"n\"}}",
                    "[\"a\", 0, 0], [\"b\", 0, 0]", "[\"d\", 0, 0], [\"n\", 0, 0]"));
    json_t *expected =
        json_loads("{\"model\": \"small\", \"class_name\": \"Model\", \"layers\": ["
                   "{\"name\": \"a\", \"class_name\": \"InputLayer\", \"params\": 0, \"calls\": "
                   "[{\"inputs\": [], \"output_shapes\": [[null, 4]]}]}, "
                   "{\"name\": \"b\", \"class_name\": \"InputLayer\", \"params\": 0, \"calls\": "
                   "[{\"inputs\": [], \"output_shapes\": [[null, 4]]}]}, "
                   "{\"name\": \"d\", \"class_name\": \"Dense\", \"params\": 15, \"calls\": "
                   "[{\"inputs\": [\"a[0][0]\"], \"output_shapes\": [[null, 3]]}, "
                   "{\"inputs\": [\"b[0][0]\"], \"output_shapes\": [[null, 3]]}]}, "
                   "{\"name\": \"n\", \"class_name\": \"BatchNormalization\", \"params\": 12, \"calls\": "
                   "[{\"inputs\": [\"d[1][0]\"], \"output_shapes\": [[null, 3]]}]}], "
                   "\"params\": 27, \"trainable_params\": 21, \"non_trainable_params\": 6, "
                   "\"mixed_bfloat16_layers\": 0}",
                   0, NULL);
    assert_non_null(expected);
    char *text = json_dumps(root, 0);
    if (!json_equal(root, expected)) fail_msg("%s", text);
    free(text);
    json_decref(expected);
    json_decref(root);
    root = summary_of("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": ["
                      "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\", "
                      "\"batch_input_shape\": [null, 2, 2]}}]}}");
    assert_int_equal(json_array_size(json_object_get(root, "layers")), 1);
    json_decref(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_sequential_forms),
        cmocka_unit_test(test_old_presets),
        cmocka_unit_test(test_builder),
        cmocka_unit_test(test_builder_joins),
        cmocka_unit_test(test_builder_texts),
        cmocka_unit_test(test_builder_errors),
        cmocka_unit_test(test_initialize),
        cmocka_unit_test(test_copy_weights),
        cmocka_unit_test(test_trainable),
        cmocka_unit_test(test_freezing_wrappers),
        cmocka_unit_test(test_freezing_model_inside),
        cmocka_unit_test(test_summaries),
        cmocka_unit_test(test_summary_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
