/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that only leat has stand beside the configurations of the layers in what leat writes, since Keras refuses
 * unknown keys of a layer. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "leat/inspect.h"
#include "leat/train.h"

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

/* A model of tf.keras with layers whose own keys of leat, or later options, tf.keras would refuse. */
static const char late_layers[] =
    "{\"class_name\": \"Sequential\", \"keras_version\": \"2.15.0\", \"config\": {\"name\": \"m\", "
    "\"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"x\", \"batch_input_shape\": "
    "[null, 8, 8, 2], \"dtype\": \"float32\"}}, {\"class_name\": \"Resizing\", \"config\": {\"name\": \"r\", "
    "\"height\": 4, \"width\": 4, \"interpolation\": \"bilinear\", \"crop_to_aspect_ratio\": false}}, "
    "{\"class_name\": \"BatchNormalization\", \"config\": {\"name\": \"images\", \"axis\": [3]}}, "
    "{\"class_name\": \"LayerNormalization\", \"config\": {\"name\": \"n\", \"axis\": [3]}}, "
    "{\"class_name\": \"Reshape\", \"config\": {\"name\": \"s\", \"target_shape\": [4, 8]}}, "
    "{\"class_name\": \"TimeDistributed\", \"config\": {\"name\": \"t\", \"layer\": {\"class_name\": "
    "\"BatchNormalization\", \"config\": {\"name\": \"inner\", \"axis\": [1]}}}}, "
    "{\"class_name\": \"Bidirectional\", \"config\": {\"name\": \"b\", \"merge_mode\": \"concat\", "
    "\"layer\": "
    "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 3}}}}]}}";

/* Fails if the "config" of an item in a configuration has a key. */
static void check_no_key(const json_t *value, const char *key) {
    const char *name;
    json_t *inner;
    size_t index;
    json_object_foreach((json_t *)(uintptr_t)value, name, inner) {
        if (strcmp(name, "config") == 0 && json_object_get(inner, key)) fail_msg("a layer has '%s'", key);
        check_no_key(inner, key);
    }
    json_array_foreach(value, index, inner) check_no_key(inner, key);
}

/* tf.keras refuses a layer with a key that it does not know: leat keeps its own keys beside the configuration, and
 * computes as before when it reads its text or its file again. */
static void own_keys_stand_beside_the_configuration(void **state) {
    (void)state;
    static const char path[] = "opening_own_keys.h5";
    static const char *const unknown[] = {"as_keras3",  "as_tf_keras", "pad_to_aspect_ratio", "fill_mode",
                                          "fill_value", "antialias",   "rms_scaling"};
    leat_error err = {0};
    leat_model *model = NULL, *copy = NULL;
    char *first = NULL, *second = NULL;
    must(leat_model_from_json(&model, late_layers, &err), &err);
    must(leat_model_to_json(model, &first, &err), &err);
    json_t *root = json_loads(first, 0, NULL);
    assert_non_null(root);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i) check_no_key(root, unknown[i]);
    json_decref(root);
    assert_non_null(strstr(first, "\"leat\": {\"as_tf_keras\": true}"));
    assert_non_null(strstr(first, "\"leat\": {\"as_keras3\": true}"));
    must(leat_model_from_json(&copy, first, &err), &err);
    must(leat_model_to_json(copy, &second, &err), &err);
    assert_string_equal(first, second);
    leat_string_free(second);
    leat_model_destroy(&copy);
    must(leat_model_save(model, path, false, &err), &err);
    must(leat_model_load(&copy, path, &err), &err);
    must(leat_model_to_json(copy, &second, &err), &err);
    assert_string_equal(first, second);
    leat_string_free(first);
    leat_string_free(second);
    leat_model_destroy(&copy);
    leat_model_destroy(&model);
    remove(path);
}

/* Attention with its tensors as arguments of the call, as tf.keras writes it. */
static const char attention[] =
    "{\"class_name\": \"Functional\", \"keras_version\": \"2.15.0\", \"config\": {\"name\": \"m\", "
    "\"layers\": [{\"class_name\": \"InputLayer\", \"name\": \"q\", \"config\": {\"name\": \"q\", "
    "\"batch_input_shape\": [null, 4, 3], \"dtype\": \"float32\"}, \"inbound_nodes\": []}, "
    "{\"class_name\": \"MultiHeadAttention\", \"name\": \"a\", \"config\": {\"name\": \"a\", \"num_heads\": "
    "2, "
    "\"key_dim\": 2}, \"inbound_nodes\": [[[\"q\", 0, 0, {\"value\": [\"q\", 0, 0]}]]]}, "
    "{\"class_name\": \"Attention\", \"name\": \"b\", \"config\": {\"name\": \"b\"}, \"inbound_nodes\": "
    "[[[\"a\", 0, 0, {\"use_causal_mask\": true}], [\"q\", 0, 0, {\"use_causal_mask\": true}]]]}, "
    "{\"class_name\": \"MultiHeadAttention\", \"name\": \"c\", \"config\": {\"name\": \"c\", \"num_heads\": "
    "1, "
    "\"key_dim\": 2}, \"inbound_nodes\": [[[\"b\", 0, 0, {\"value\": [\"a\", 0, 0], \"key\": [\"q\", 0, 0], "
    "\"use_causal_mask\": true, \"return_attention_scores\": true}]]]}], \"input_layers\": [[\"q\", 0, 0]], "
    "\"output_layers\": [[\"c\", 0, 0], [\"c\", 0, 1]]}}";

/* Predicts for a fixed input; `out` has the two outputs of `attention`, 4 x 3 and 1 x 4 x 4 numbers. */
static void predict_attention(leat_model *model, float out[28]) {
    const int64_t shape[3] = {1, 4, 3};
    float x[12];
    leat_error err = {0};
    leat_tensor outputs[2];
    for (int i = 0; i < 12; ++i) x[i] = (float)((i * 5) % 7) / 7;
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 3, shape, x)};
    const leat_arrays batch = {.inputs = &input, .input_count = 1};
    must(leat_model_predict_on_batch(model, &batch, outputs, &err), &err);
    memcpy(out, outputs[0].data, 12 * sizeof *out);
    memcpy(out + 12, outputs[1].data, 16 * sizeof *out);
}

/* tf.keras reads value, key and options of an attention layer as arguments of its calls; leat reads them again. */
static void attention_has_the_arguments_of_tf_keras(void **state) {
    (void)state;
    static const char path[] = "opening_own_calls.h5";
    leat_error err = {0};
    leat_model *model = NULL, *copy = NULL;
    char *first = NULL, *second = NULL;
    float want[28], got[28];
    must(leat_model_from_json(&model, attention, &err), &err);
    must(leat_model_initialize(model, 3, &err), &err);
    must(leat_model_to_json(model, &first, &err), &err);
    json_t *root = json_loads(first, 0, NULL);
    assert_non_null(root);
    static const char *const unknown[] = {"use_causal_mask", "return_attention_scores", "attention_mask",
                                          "use_gate", "sliding_window"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i) check_no_key(root, unknown[i]);
    json_decref(root);
    assert_non_null(strstr(first, "[[[\"q\", 0, 0, {\"value\": [\"q\", 0, 0]}]]]"));
    assert_non_null(strstr(first,
                           "[[[\"b\", 0, 0, {\"use_causal_mask\": true, \"return_attention_scores\": true, "
                           "\"value\": [\"a\", 0, 0], \"key\": [\"q\", 0, 0]}]]]"));
    assert_non_null(strstr(first, "\"query_shape\": [null, 4, 3], \"value_shape\": [null, 4, 3], "
                                  "\"key_shape\": [null, 4, 3]"));
    predict_attention(model, want);
    must(leat_model_save(model, path, false, &err), &err);
    must(leat_model_load(&copy, path, &err), &err);
    predict_attention(copy, got);
    assert_memory_equal(want, got, sizeof want);
    must(leat_model_to_json(copy, &second, &err), &err);
    assert_string_equal(first, second);
    leat_string_free(first);
    leat_string_free(second);
    leat_model_destroy(&copy);
    leat_model_destroy(&model);
    remove(path);
}

/* Returns true if a file contains a text. */
static bool file_has(const char *path, const char *text) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    static char bytes[1 << 20];
    const size_t count = fread(bytes, 1, sizeof bytes, file), length = strlen(text);
    fclose(file);
    for (size_t i = 0; i + length <= count; ++i)
        if (memcmp(bytes + i, text, length) == 0) return true;
    return false;
}

/* tf.keras has no loss cosine_proximity, and older optimizers no moving averages; leat reads its file as before. */
static void compilations_are_read_by_tf_keras(void **state) {
    (void)state;
    static const char path[] = "opening_own_training.h5";
    leat_error err = {0};
    leat_model *model = NULL;
    leat_compile_options compile = leat_compile_options_default();
    must(leat_model_from_json(&model, late_layers, &err), &err);
    compile.optimizer = "RMSprop(ema_overwrite_frequency=100)";
    compile.loss = "cosine_similarity";
    compile.arithmetic = "keras3";
    must(leat_model_compile(model, &compile, &err), &err);
    must(leat_model_save(model, path, true, &err), &err);
    leat_model_destroy(&model);
    assert_true(file_has(path, "\"loss\": \"cosine_similarity\""));
    assert_false(file_has(path, "ema_overwrite_frequency"));
    must(leat_model_load(&model, path, &err), &err);
    assert_true(leat_model_is_compiled(model));
    leat_model_destroy(&model);
    remove(path);
}

static void train_once(leat_model *model, float *x, float *t) {
    leat_error err = {0};
    const int64_t xs[2] = {1, 3}, ts[2] = {1, 2};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, xs, x)},
               target = {.tensor = leat_tensor_view(LEAT_F32, 2, ts, t)};
    const leat_arrays batch = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    must(leat_model_train_on_batch(model, &batch, NULL, &err), &err);
}

/* The optimizer of a model of tf.keras 2.11 to 2.15 is written as those versions do; leat reads the same state. */
static void optimizers_are_read_by_tf_keras(void **state) {
    (void)state;
    static const char path[] = "opening_own_optimizer.h5";
    static const char text[] = "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": "
                               "[{\"class_name\": \"Dense\", "
                               "\"config\": {\"name\": \"d\", \"units\": 2, \"batch_input_shape\": [null, "
                               "3]}}]}, \"keras_version\": "
                               "\"2.3.1\"}";
    static const char *const optimizers[] = {"Adam", "Nadam", "RMSprop", "SGD"};
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; ++i) {
        leat_error err = {0};
        leat_model *model = NULL, *copy = NULL;
        leat_compile_options compile = leat_compile_options_default();
        char optimizer[160], name[32];
        snprintf(optimizer, sizeof optimizer,
                 "{\"class_name\": \"%s\", \"config\": {\"use_ema\": true}, \"arithmetic\": \"tf.keras\"}",
                 optimizers[i]);
        snprintf(name, sizeof name, "Custom>%s", optimizers[i]);
        must(leat_model_from_json(&model, text, &err), &err);
        compile.optimizer = optimizer;
        compile.loss = "mse";
        compile.arithmetic = "keras3";
        must(leat_model_compile(model, &compile, &err), &err);
        float x[3] = {1, 2, 3}, t[2] = {4, 5};
        train_once(model, x, t);
        train_once(model, x, t);
        must(leat_model_save(model, path, true, &err), &err);
        assert_true(file_has(path, name));
        must(leat_model_load(&copy, path, &err), &err);
        train_once(model, x, t);
        train_once(copy, x, t);
        const leat_tensor a = leat_model_weight(model, 0), b = leat_model_weight(copy, 0);
        assert_memory_equal(a.data, b.data, leat_tensor_bytes(&a));
        leat_model_destroy(&copy);
        leat_model_destroy(&model);
        remove(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_keys_stand_beside_the_configuration),
        cmocka_unit_test(attention_has_the_arguments_of_tf_keras),
        cmocka_unit_test(compilations_are_read_by_tf_keras),
        cmocka_unit_test(optimizers_are_read_by_tf_keras),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
