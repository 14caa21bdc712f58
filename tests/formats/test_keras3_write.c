/* SPDX-License-Identifier: Apache-2.0 */
/* Files of current Keras that are read and written again have the configuration, the metadata and the datasets of the
 * file that Keras wrote; what leat writes is read back; what current Keras cannot have is refused by name. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "formats/keras3.h"
#include "json/json.h"
#include "leat/model.h"
#include "nn/keras3/translate.h"
#include "nn/model/export.h"
#include "nn/optimizers/types.h"
#include "zip/zip.h"

#define FILES LEAT_SOURCE_DIR "/tests/golden/files/"

static char folder[] = "/tmp/leat_keras3_XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

/* Returns the path of a file in the folder of this test. */
static const char *in_folder(const char *name, char out[128]) {
    snprintf(out, 128, "%s/%s", folder, name);
    return out;
}

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_model *load(const char *path) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_load(&model, path, &err), &err);
    return model;
}

/* ---- Configurations ---- */

/* Keys whose absence, or whose value, does not matter: numbers of objects in memory, and options that leat does not
 * have and Keras gives their defaults. */
static bool is_free(const char *key) {
    static const char *const keys[] = {"shared_object_id", "renorm_momentum", "seed",  "dtype",
                                       "build_config",     "compile_config",  "groups"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i)
        if (strcmp(keys[i], key) == 0) return true;
    return false;
}

static bool is_nothing(const json_t *value) {
    return json_is_null(value) || json_is_false(value) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

static void check_same(const json_t *ours, const json_t *theirs, const char *where);

static void check_objects(const json_t *ours, const json_t *theirs, const char *where) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)theirs, key, value) {
        char path[512];
        const json_t *own = json_object_get(ours, key);
        snprintf(path, sizeof path, "%.400s.%s", where, key);
        if (!own && !is_nothing(value) && !is_free(key)) fail_msg("%s: missing", path);
        if (own && strcmp(key, "name") != 0) check_same(own, value, path);
    }
    json_object_foreach((json_t *)(uintptr_t)ours, key,
                        value) if (!json_object_get(theirs, key) && !is_nothing(value) && !is_free(key))
        fail_msg("%s.%s: not in Keras's file", where, key);
}

static void check_same(const json_t *ours, const json_t *theirs, const char *where) {
    if (json_is_object(ours) && json_is_object(theirs)) {
        check_objects(ours, theirs, where);
    } else if (json_is_array(ours) && json_is_array(theirs)) {
        if (json_array_size(ours) != json_array_size(theirs)) fail_msg("%s: another length", where);
        for (size_t i = 0; i < json_array_size(ours); ++i) {
            char path[512];
            snprintf(path, sizeof path, "%.400s[%zu]", where, i);
            check_same(json_array_get(ours, i), json_array_get(theirs, i), path);
        }
    } else if (json_is_number(ours) && json_is_number(theirs)) {
        if ((float)json_number_value(ours) != (float)json_number_value(theirs))
            fail_msg("%s: another number", where);
    } else if (!json_equal(ours, theirs)) {
        char *a = json_dumps(ours, JSON_ENCODE_ANY), *b = json_dumps(theirs, JSON_ENCODE_ANY);
        /* Keras keeps the name that was given to compile; leat writes the name that every Keras reads. */
        if (strstr(where, ".loss") || strstr(where, ".metrics")) {
            free(a);
            free(b);
            return;
        }
        fail_msg("%s: %s, Keras: %s", where, a, b);
    }
}

static json_t *parse(const char *text, size_t bytes) {
    json_t *value = NULL;
    leat_error err = {0};
    must(leati_json_parse(&value, text, bytes, &err), &err);
    return value;
}

static void *member(const leati_zip *zip, const char *name, size_t *bytes) {
    leat_error err = {0};
    const leati_zip_member *found = leati_zip_find(zip, name);
    assert_non_null(found);
    *bytes = (size_t)found->bytes;
    void *data = malloc(*bytes + 1);
    assert_non_null(data);
    must(leati_zip_read(zip, found, data, &err), &err);
    return data;
}

static json_t *member_json(const char *path, const char *name) {
    leati_zip zip;
    leat_error err = {0};
    size_t bytes;
    must(leati_zip_open(&zip, path, &err), &err);
    char *text = member(&zip, name, &bytes);
    json_t *value = parse(text, bytes);
    free(text);
    leati_zip_close(&zip);
    return value;
}

/* ---- Archives ---- */

static const char *const archives[] = {"keras3_sequential", "keras3_functional", "keras3_lstm",
                                       "keras3_adafactor",  "keras3_average",    "keras3_places",
                                       "open_pieces",       "open_classes",      "open_columns",
                                       "open_labels",       "keras3_muon",       "keras3_free",
                                       "keras3_skipping",   "keras3_scores"};

enum { ARCHIVE_COUNT = sizeof archives / sizeof archives[0] };

static void test_archive_configuration(void **state) {
    (void)state;
    leat_error err = {0};
    for (int i = 0; i < ARCHIVE_COUNT; ++i) {
        char golden[256], path[128];
        snprintf(golden, sizeof golden, FILES "%s.keras", archives[i]);
        leat_model *model = load(golden);
        must(leat_model_save(model, in_folder("written.keras", path), true, &err), &err);
        json_t *ours = member_json(path, "config.json"), *theirs = member_json(golden, "config.json");
        check_same(ours, theirs, archives[i]);
        assert_non_null(json_object_get(json_object_get(ours, "compile_config"), "optimizer"));
        json_t *metadata = member_json(path, "metadata.json");
        assert_non_null(json_string_value(json_object_get(metadata, "keras_version")));
        json_decref(metadata);
        json_decref(ours);
        json_decref(theirs);
        leat_model_destroy(&model);
        remove(path);
    }
}

/* Checks that a dataset of both files has the same shape and the same numbers. */
static void check_dataset(leati_h5 *ours, leati_h5 *theirs, const char *path) {
    leat_error err = {0};
    leat_tensor a, b;
    must(leati_h5_describe(ours, path, &a, &err), &err);
    must(leati_h5_describe(theirs, path, &b, &err), &err);
    assert_int_equal(leat_tensor_count(&a), leat_tensor_count(&b));
    size_t count = (size_t)leat_tensor_count(&a);
    float *numbers = calloc(2 * count + 1, sizeof *numbers);
    assert_non_null(numbers);
    a.dtype = b.dtype = LEAT_F32;
    a.data = numbers;
    b.data = numbers + count;
    must(leati_h5_read(ours, path, &a, &err), &err);
    must(leati_h5_read(theirs, path, &b, &err), &err);
    if (memcmp(a.data, b.data, count * sizeof *numbers) != 0) fail_msg("%s: other numbers", path);
    free(numbers);
}

/* Checks that our file has every variable that a group of Keras's file has. */
static void check_group(leati_h5 *ours, leati_h5 *theirs, const char *group) {
    for (int i = 0;; ++i) {
        char path[300];
        snprintf(path, sizeof path, "%s/%d", group, i);
        if (!leati_h5_has_object(theirs, path)) break;
        check_dataset(ours, theirs, path);
    }
}

/* Checks that two files of weights have the same datasets: those of the model, and the optimizer's variables. */
static void check_layout(leati_h5 *ours, leati_h5 *theirs, const leat_model *model) {
    leat_error err = {0};
    leati_placement placement;
    must(leati_placement_of(&placement, model, &err), &err);
    for (int32_t i = 0; i < placement.count; ++i) check_dataset(ours, theirs, placement.items[i].path);
    for (int32_t i = 0; i < placement.group_count; ++i) {
        char *a = NULL, *b = NULL;
        const char *path = placement.groups[i].path;
        check_group(ours, theirs, path);
        if (!leati_h5_has_attribute(theirs, path, "name")) continue; /* older files have no names */
        must(leati_h5_read_string(ours, path, "name", &a, &err), &err);
        must(leati_h5_read_string(theirs, path, "name", &b, &err), &err);
        assert_string_equal(a, b);
        leat_bytes_free(a);
        leat_bytes_free(b);
    }
    leati_placement_fini(&placement);
    char path[64];
    int variables = 0;
    for (;; ++variables) {
        leati_keras3_state_path(NULL, variables, path, sizeof path);
        assert_int_equal(leati_h5_has_object(ours, path), leati_h5_has_object(theirs, path));
        if (!leati_h5_has_object(ours, path)) break;
        check_dataset(ours, theirs, path);
    }
    assert_int_equal(variables, leati_keras3_state_count(model));
}

static void test_archive_weights(void **state) {
    (void)state;
    leat_error err = {0};
    for (int i = 0; i < ARCHIVE_COUNT; ++i) {
        char golden[256], path[128];
        leati_zip a, b;
        leati_h5 *ours = NULL, *theirs = NULL;
        size_t sizes[2];
        snprintf(golden, sizeof golden, FILES "%s.keras", archives[i]);
        leat_model *model = load(golden);
        must(leat_model_save(model, in_folder("written.keras", path), true, &err), &err);
        must(leati_zip_open(&a, path, &err), &err);
        must(leati_zip_open(&b, golden, &err), &err);
        void *bytes[] = {member(&a, "model.weights.h5", &sizes[0]),
                         member(&b, "model.weights.h5", &sizes[1])};
        must(leati_h5_open_bytes(&ours, "ours", bytes[0], sizes[0], &err), &err);
        must(leati_h5_open_bytes(&theirs, "theirs", bytes[1], sizes[1], &err), &err);
        check_layout(ours, theirs, model);
        leati_h5_close(&ours, NULL);
        leati_h5_close(&theirs, NULL);
        free(bytes[0]);
        free(bytes[1]);
        leati_zip_close(&a);
        leati_zip_close(&b);
        leat_model_destroy(&model);
        remove(path);
    }
}

/* ---- .h5 ---- */

static json_t *attribute(leati_h5 *file, const char *name) {
    char *text = NULL;
    leat_error err = {0};
    must(leati_h5_read_string(file, "/", name, &text, &err), &err);
    json_t *value = parse(text, strlen(text));
    leat_bytes_free(text);
    return value;
}

static void test_h5_attributes(void **state) {
    (void)state;
    static const char *const names[] = {"keras3_sequential", "keras3_functional", "keras3_lstm"};
    leat_error err = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        char golden[256], path[128];
        leati_h5 *ours = NULL, *theirs = NULL;
        snprintf(golden, sizeof golden, FILES "%s.h5", names[i]);
        leat_model *model = load(golden);
        must(leat_model_save(model, in_folder("written.h5", path), true, &err), &err);
        must(leati_h5_open(&ours, path, &err), &err);
        must(leati_h5_open(&theirs, golden, &err), &err);
        json_t *a = attribute(ours, "model_config"), *b = attribute(theirs, "model_config");
        check_same(a, b, names[i]);
        json_decref(a);
        json_decref(b);
        a = attribute(ours, "training_config");
        b = attribute(theirs, "training_config");
        check_same(a, b, names[i]);
        json_decref(a);
        json_decref(b);
        leati_h5_strings own = {0}, listed = {0};
        must(leati_h5_read_strings(ours, "optimizer_weights", "weight_names", &own, &err), &err);
        must(leati_h5_read_strings(theirs, "optimizer_weights", "weight_names", &listed, &err), &err);
        assert_int_equal(own.count, listed.count);
        leati_h5_strings_fini(&own);
        leati_h5_strings_fini(&listed);
        assert_true(leati_h5_has_object(ours, "model_weights/top_level_model_weights"));
        leati_h5_close(&ours, NULL);
        leati_h5_close(&theirs, NULL);
        leat_model_destroy(&model);
        remove(path);
    }
}

/* ---- Reading back ---- */

static void check_equal_weights(leat_model *a, leat_model *b) {
    assert_int_equal(leat_model_weight_count(a), leat_model_weight_count(b));
    assert_int_equal(a->weights.trainable_bytes, b->weights.trainable_bytes);
    for (int32_t i = 0; i < a->weights.count; ++i) {
        const leati_weight *x = a->weights.entries[i], *y = b->weights.entries[i];
        const char *p = (const char *)a->weights.slab[LEATI_SLAB_WEIGHTS] + x->offset_bytes;
        const char *q = (const char *)b->weights.slab[LEATI_SLAB_WEIGHTS] + y->offset_bytes;
        assert_memory_equal(p, q, leati_desc_bytes(&x->desc));
    }
}

static void check_equal_states(leat_model *a, leat_model *b) {
    int count = leati_optimizer_weight_count(a);
    assert_int_equal(count, leati_optimizer_weight_count(b));
    for (int i = 0; i < count; ++i) {
        leati_optimizer_weight weight = leati_optimizer_weight_at(a, i);
        size_t bytes = leati_desc_bytes(&weight.desc);
        char *both = calloc(2, bytes + 1);
        assert_non_null(both);
        assert_int_equal(leati_optimizer_weight_copy(a, i, both, NULL), LEAT_OK);
        assert_int_equal(leati_optimizer_weight_copy(b, i, both + bytes, NULL), LEAT_OK);
        if (memcmp(both, both + bytes, bytes) != 0) fail_msg("%s: other numbers", weight.name);
        free(both);
    }
}

static const char *const sources[] = {
    "keras3_sequential.keras", "keras3_functional.h5",  "keras3_lstm.keras",
    "keras3_adafactor.keras",  "keras3_average.keras",  "keras3_places.keras",
    "open_pieces.keras",       "open_classes.keras",    "open_columns.keras",
    "open_labels.h5",          "keras3_muon.keras",     "keras3_free.keras",
    "keras3_scaled.keras",     "keras3_skipping.keras", "keras3_scores.keras",
    "keras3_float16.keras",    "open_vectors.keras",    "cnn_adam.h5",
    "cnn_adam_amsgrad.h5",     "two_inputs_rmsprop.h5", "lstm_sgd.h5",
    "lstm_nadam.h5",           "wrapped_sgd.h5"};

/* Every file comes back as a .keras archive, or is refused because of hard_sigmoid of 2.3.1. */
static void test_read_back(void **state) {
    (void)state;
    int archived = 0;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; ++i) {
        leat_error err = {0};
        char golden[256], path[128];
        snprintf(golden, sizeof golden, FILES "%s", sources[i]);
        leat_model *model = load(golden), *again = NULL;
        leat_status status = leat_model_save(model, in_folder("again.keras", path), true, &err);
        if (status == LEAT_ENOTSUP) {
            assert_non_null(strstr(err.message, "hard_sigmoid"));
            assert_int_not_equal(access(path, F_OK), 0);
        } else {
            must(status, &err);
            again = load(path);
            check_equal_weights(model, again);
            check_equal_states(model, again);
            leat_model_destroy(&again);
            remove(path);
            ++archived;
        }
        must(leat_model_save(model, in_folder("again.h5", path), true, &err), &err);
        again = load(path);
        check_equal_weights(model, again);
        check_equal_states(model, again);
        leat_model_destroy(&again);
        leat_model_destroy(&model);
        remove(path);
    }
    assert_true(archived >= 8);
}

static void test_weights_file(void **state) {
    (void)state;
    leat_error err = {0};
    char path[128];
    leat_model *model = load(FILES "keras3_functional.keras"), *other = load(FILES "keras3_functional.keras");
    must(leat_model_save_weights(model, in_folder("all.weights.h5", path), &err), &err);
    must(leat_model_initialize(other, 9, &err), &err);
    must(leat_model_load_weights(other, path, false, &err), &err);
    check_equal_weights(model, other);
    assert_int_equal(leat_model_load_weights(other, path, true, &err), LEAT_EINVAL);
    leat_model *smaller = load(FILES "keras3_sequential.keras");
    assert_int_equal(leat_model_load_weights(smaller, path, false, &err), LEAT_ENOTFOUND);
    leat_model_destroy(&smaller);
    leat_model_destroy(&other);
    leat_model_destroy(&model);
    remove(path);
}

/* The groups of a .weights.h5 file are numbered in the order of the layers that the model was read with. */
static void test_order_of_weights_file(void **state) {
    (void)state;
    leat_error err = {0};
    char path[128];
    leati_h5 *ours = NULL, *theirs = NULL;
    leati_placement placement;
    leat_model *model = load(FILES "open_weights.json");
    must(leat_model_load_weights(model, FILES "open_weights.weights.h5", false, &err), &err);
    must(leat_model_save_weights(model, in_folder("order.weights.h5", path), &err), &err);
    must(leati_h5_open(&ours, path, &err), &err);
    must(leati_h5_open(&theirs, FILES "open_weights.weights.h5", &err), &err);
    must(leati_placement_in_order(&placement, model, &err), &err);
    assert_true(placement.count > 0);
    for (int32_t i = 0; i < placement.count; ++i) check_dataset(ours, theirs, placement.items[i].path);
    leati_placement_fini(&placement);
    leati_h5_close(&ours, NULL);
    leati_h5_close(&theirs, NULL);
    leat_model_destroy(&model);
    remove(path);
}

static void test_memory_equals_file(void **state) {
    (void)state;
    leat_error err = {0};
    char path[128];
    void *bytes = NULL;
    size_t count = 0;
    leat_model *model = load(FILES "keras3_lstm.keras"), *again = NULL;
    must(leat_model_save_memory(model, LEAT_MODEL_FORMAT_KERAS, true, &bytes, &count, &err), &err);
    must(leat_model_save(model, in_folder("same.keras", path), true, &err), &err);
    leati_map map;
    must(leati_map_open(&map, path, &err), &err);
    assert_int_equal(map.size, count);
    assert_memory_equal(map.data, bytes, count);
    leati_map_close(&map);
    must(leat_model_load_memory(&again, bytes, count, NULL, &err), &err);
    check_equal_weights(model, again);
    leat_bytes_free(bytes);
    leat_model_destroy(&again);
    must(leat_model_save_weights_memory(model, LEAT_MODEL_FORMAT_KERAS, &bytes, &count, &err), &err);
    again = load(FILES "keras3_lstm.keras");
    must(leat_model_initialize(again, 9, &err), &err);
    must(leat_model_load_weights_memory(again, bytes, count, false, &err), &err);
    check_equal_weights(model, again);
    leat_bytes_free(bytes);
    leat_model_destroy(&again);
    leat_model_destroy(&model);
    remove(path);
}

/* ---- Models that did not come from current Keras ---- */

static json_t *exported_layer(const char *layer) {
    char text[1024], path[128];
    leat_error err = {0};
    leat_model *model = NULL;
    snprintf(text, sizeof text,
             "{\"class_name\": \"Sequential\", \"keras_version\": \"2.3.1\", \"config\": {\"name\": \"s\", "
             "\"layers\": [%s]}}",
             layer);
    must(leat_model_from_json(&model, text, &err), &err);
    leat_status status = leat_model_save(model, in_folder("layer.keras", path), true, &err);
    leat_model_destroy(&model);
    if (status != LEAT_OK) {
        assert_int_equal(status, LEAT_ENOTSUP);
        return json_string(err.message);
    }
    json_t *config = member_json(path, "config.json");
    json_t *layers = json_object_get(json_object_get(config, "config"), "layers");
    json_t *item = json_incref(json_array_get(layers, json_array_size(layers) - 1));
    json_decref(config);
    remove(path);
    return item;
}

static const json_t *key_of(const json_t *item, const char *key) {
    return json_object_get(json_object_get(item, "config"), key);
}

static void test_translated_forward(void **state) {
    (void)state;
    json_t *item =
        exported_layer("{\"class_name\": \"ThresholdedReLU\", \"config\": {\"name\": \"a\", \"theta\": 0.5, "
                       "\"batch_input_shape\": [null, 3]}}");
    assert_string_equal(json_string_value(json_object_get(item, "class_name")), "ReLU");
    assert_true(json_number_value(key_of(item, "threshold")) == 0.5);
    assert_null(key_of(item, "batch_input_shape"));
    json_decref(item);
    item = exported_layer("{\"class_name\": \"LeakyReLU\", \"config\": {\"name\": \"a\", \"alpha\": 0.25, "
                          "\"batch_input_shape\": [null, 3]}}");
    assert_true(json_number_value(key_of(item, "negative_slope")) == 0.25);
    json_decref(item);
    item = exported_layer(
        "{\"class_name\": \"Bidirectional\", \"config\": {\"name\": \"b\", \"batch_input_shape\": "
        "[null, 4, 3], \"layer\": {\"class_name\": \"GRU\", \"config\": {\"name\": \"g\", \"units\": 2, "
        "\"recurrent_activation\": \"sigmoid\"}}}}");
    const json_t *forward = key_of(item, "layer"), *backward = key_of(item, "backward_layer");
    assert_string_equal(json_string_value(json_object_get(forward, "module")), "keras.layers");
    assert_string_equal(json_string_value(key_of(forward, "name")), "forward_g");
    assert_string_equal(json_string_value(key_of(backward, "name")), "backward_g");
    assert_true(json_is_true(key_of(backward, "go_backwards")));
    assert_true(
        json_is_false(key_of(forward, "reset_after"))); /* the default differs: 2.3.1 false, current true */
    assert_null(key_of(forward, "implementation"));
    json_decref(item);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *layer, *message;
    } cases[] = {
        {"{\"class_name\": \"LocallyConnected1D\", \"config\": {\"name\": \"a\", \"filters\": 2, "
         "\"kernel_size\": [2], "
         "\"batch_input_shape\": [null, 4, 3]}}",
         "layer 'a' (LocallyConnected1D): current Keras has no layer LocallyConnected1D"},
        {"{\"class_name\": \"Activation\", \"config\": {\"name\": \"a\", \"activation\": \"hard_sigmoid\", "
         "\"batch_input_shape\": [null, 4]}}",
         "layer 'a' (Activation): activation: current Keras has no function like hard_sigmoid"},
        {"{\"class_name\": \"UpSampling2D\", \"config\": {\"name\": \"a\", \"interpolation\": \"bilinear\", "
         "\"batch_input_shape\": [null, 4, 4, 1]}}",
         "layer 'a' (UpSampling2D): interpolation: current Keras samples 'bilinear' at other points"},
        {"{\"class_name\": \"ReLU\", \"config\": {\"name\": \"a\", \"threshold\": -0.5, "
         "\"batch_input_shape\": [null, 4]}}",
         "layer 'a' (ReLU): threshold: current Keras expects at least 0"},
        {"{\"class_name\": \"CuDNNLSTM\", \"config\": {\"name\": \"a\", \"units\": 2, \"batch_input_shape\": "
         "[null, 4, 3]}}",
         "use LSTM, into which leat_model_load_weights converts"},
        {"{\"class_name\": \"TimeDistributed\", \"config\": {\"name\": \"a\", \"batch_input_shape\": [null, "
         "4, 3, 2], "
         "\"layer\": {\"class_name\": \"Masking\", \"config\": {\"name\": \"m\"}}}}",
         "layer 'a' (TimeDistributed): layer: current Keras loses the mask"},
        {"{\"class_name\": \"TimeDistributed\", \"config\": {\"name\": \"a\", \"batch_input_shape\": [null, "
         "4, 3], "
         "\"layer\": {\"class_name\": \"Embedding\", \"config\": {\"name\": \"e\", \"input_dim\": 2, "
         "\"output_dim\": 2, "
         "\"mask_zero\": true}}}}",
         "layer 'a' (TimeDistributed): layer: current Keras loses the mask"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        json_t *message = exported_layer(cases[i].layer);
        if (!json_is_string(message) || !strstr(json_string_value(message), cases[i].message))
            fail_msg("expected '%s', received '%s'", cases[i].message, json_string_value(message));
        json_decref(message);
    }
}

/* The names of losses and the options of optimizers that current Keras gets are read again. */
static void test_compilations(void **state) {
    (void)state;
    static const char *const losses[] = {"logcosh",          "huber_loss", "kullback_leibler_divergence",
                                         "cosine_proximity", "mse",        "Huber(delta=2)"};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; ++i) {
        leat_error err = {0};
        json_t *written = NULL, *config = NULL;
        leat_model *model = load(FILES "keras3_lstm.keras"), *again = load(FILES "keras3_lstm.keras");
        leat_compile_options options = leat_compile_options_default();
        options.loss = losses[i];
        options.optimizer = "SGD(learning_rate=0.25, momentum=0.5, decay=0.125, clipnorm=2.0)";
        options.arithmetic = "keras2";
        must(leat_model_compile(model, &options, &err), &err);
        must(leati_keras3_compilation(model, LEATI_KERAS3_ARCHIVE, &written, &err), &err);
        must(leati_translate_compilation(written, false, &config, &err), &err);
        must(leati_model_compile_config(again, config, &err), &err);
        json_decref(written);
        json_decref(config);
        const leati_optimizer *a = model->compiled.optimizer, *b = again->compiled.optimizer;
        assert_true(a->config.momentum == b->config.momentum);
        assert_non_null(b->schedule); /* the form that 2.3.1's decay has in current Keras */
        for (int step = 0; step < 100; ++step)
            assert_float_equal(leati_optimizer_rate(a, step), leati_optimizer_rate(b, step), 1e-8);
        assert_true(b->config.global_clipnorm == 2.0); /* the meaning of 2.3.1's clipnorm */
        assert_ptr_equal(model->compiled.losses[0].type, again->compiled.losses[0].type);
        leat_model_destroy(&again);
        leat_model_destroy(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_archive_configuration), cmocka_unit_test(test_archive_weights),
        cmocka_unit_test(test_h5_attributes),         cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_weights_file),          cmocka_unit_test(test_memory_equals_file),
        cmocka_unit_test(test_translated_forward),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_compilations),          cmocka_unit_test(test_order_of_weights_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
