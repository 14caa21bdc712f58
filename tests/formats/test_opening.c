/* SPDX-License-Identifier: Apache-2.0 */
/* Files of current Keras with compilations that leat has in part only: they open without the compilation, and with it
 * where leat has all of it; then they go on as in Keras. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/inspect.h"
#include "leat/train.h"
#include "nn/keras3/translate.h"
#include "support/npz.h"

#define FILES LEAT_SOURCE_DIR "/tests/golden/files/"

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

/* Returns the largest difference, relative to the largest expected value. */
static double distance(const leat_tensor *got, const leat_tensor *want) {
    assert_int_equal(leat_tensor_count(got), leat_tensor_count(want));
    double difference = 0, scale = 1e-30;
    const float *a = got->data, *b = want->data;
    for (int64_t i = 0; i < leat_tensor_count(want); ++i) {
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
        scale = fmax(scale, fabs((double)b[i]));
    }
    return difference / scale;
}

typedef struct vectors {
    leat_npz *npz;
    leat_array input, target;
    leat_arrays arrays;
} vectors;

static void open_vectors(vectors *v, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "files/%s.npz", name);
    *v = (vectors){.npz = test_npz_open(path)};
    v->input.tensor = test_npz_get(v->npz, "x0");
    v->arrays = (leat_arrays){.inputs = &v->input, .input_count = 1};
    if (!test_npz_has(v->npz, "t0")) return;
    v->target.tensor = test_npz_get(v->npz, "t0");
    v->arrays.targets = &v->target;
    v->arrays.target_count = 1;
}

static void check_prediction(leat_model *model, const vectors *v) {
    leat_error err = {0};
    leat_tensor output, want = test_npz_get(v->npz, "y0");
    must(leat_model_predict_on_batch(model, &v->arrays, &output, &err), &err);
    double d = distance(&output, &want);
    if (d > 1e-6) fail_msg("off by %g of the scale", d);
}

static void check_training(leat_model *model, const vectors *v) {
    leat_error err = {0};
    char name[32];
    for (int step = 1; step <= 10; ++step) {
        must(leat_model_train_on_batch(model, &v->arrays, NULL, &err), &err);
        for (int i = 0; i < leat_model_weight_count(model); ++i) {
            snprintf(name, sizeof name, "s%d_w%d", step, i);
            if (!test_npz_has(v->npz, name)) continue;
            leat_tensor want = test_npz_get(v->npz, name), got = leat_model_weight(model, i);
            double d = distance(&got, &want);
            if (d > 1e-5) fail_msg("step %d, %s: off by %g", step, leat_model_weight_name(model, i), d);
        }
    }
}

static leat_model *load(const char *path) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_load(&model, path, &err), &err);
    return model;
}

/* ---- Structures of inputs and outputs ---- */

enum { MOST_ENDS = 4 };

typedef struct ends {
    leat_npz *npz;
    leat_array inputs[MOST_ENDS], targets[MOST_ENDS];
    leat_arrays arrays;
} ends;

static int open_side(leat_npz *npz, char letter, leat_array *out) {
    char name[8];
    int count = 0;
    for (; count < MOST_ENDS; ++count) {
        snprintf(name, sizeof name, "%c%d", letter, count);
        if (!test_npz_has(npz, name)) break;
        out[count] = (leat_array){.tensor = test_npz_get(npz, name)};
    }
    return count;
}

static void open_ends(ends *v, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "files/%s.npz", name);
    *v = (ends){.npz = test_npz_open(path)};
    v->arrays = (leat_arrays){.inputs = v->inputs, .targets = v->targets};
    v->arrays.input_count = open_side(v->npz, 'x', v->inputs);
    v->arrays.target_count = open_side(v->npz, 't', v->targets);
}

static void check_ends(leat_model *model, const char *name) {
    ends v;
    leat_error err = {0};
    leat_tensor outputs[MOST_ENDS];
    open_ends(&v, name);
    assert_int_equal(leat_model_input_count(model), v.arrays.input_count);
    assert_int_equal(leat_model_output_count(model), v.arrays.target_count);
    must(leat_model_predict_on_batch(model, &v.arrays, outputs, &err), &err);
    for (int i = 0; i < v.arrays.target_count; ++i) {
        char key[8];
        snprintf(key, sizeof key, "y%d", i);
        leat_tensor want = test_npz_get(v.npz, key);
        double d = distance(&outputs[i], &want);
        if (d > 1e-6) fail_msg("%s: off by %g of the scale", key, d);
    }
    vectors all = {.npz = v.npz, .arrays = v.arrays};
    check_training(model, &all);
    leat_npz_close(&v.npz);
}

static void check_keys(const leat_model *model) {
    assert_string_equal(leat_model_input_name(model, 0), "a");
    assert_string_equal(leat_model_input_name(model, 1), "b");
    assert_string_equal(leat_model_output_name(model, 0), "policy");
    assert_string_equal(leat_model_output_name(model, 1), "value");
}

/* Inputs and outputs have the keys of Keras's dictionaries as their names, also in the files that leat writes. */
static void dictionaries_have_their_keys(void **state) {
    (void)state;
    static const char *const copies[] = {"dictionaries.keras", "dictionaries.h5"};
    leat_error err = {0};
    for (int i = -1; i < 2; ++i) {
        leat_model *model = load(FILES "open_dictionaries.keras");
        if (i >= 0) {
            must(leat_model_save(model, copies[i], true, &err), &err);
            leat_model_destroy(&model);
            model = load(copies[i]);
            unlink(copies[i]);
        }
        check_keys(model);
        check_ends(model, "open_dictionaries");
        leat_model_destroy(&model);
    }
}

static void nested_structures_are_lists(void **state) {
    (void)state;
    leat_model *model = load(FILES "open_structures.keras");
    check_ends(model, "open_structures");
    leat_model_destroy(&model);
}

static void a_list_of_outputs_has_no_loss(void **state) {
    (void)state;
    leat_model *model = load(FILES "open_some.keras");
    check_ends(model, "open_some");
    leat_model_destroy(&model);
}

/* Each output has its part of an argument of compile, or null; an argument of another structure stays as it is. */
static void each_output_has_its_part(void **state) {
    static const char *const cases[][2] = {
        {"{\"b\": \"mse\"}", "[null, null, \"mse\"]"},
        {"{\"a\": null, \"b\": \"mse\"}", "[null, null, \"mse\"]"},
        {"{\"a\": [null, \"mae\"], \"b\": null}", "[null, \"mae\", null]"},
        {"{\"a\": [\"mae\"], \"b\": \"mse\"}", "{\"a\": [\"mae\"], \"b\": \"mse\"}"},
    };
    (void)state;
    json_t *outputs =
        json_pack("{s:[s,i,i], s:[[s,i,i],[s,i,i]]}", "b", "y", 0, 0, "a", "z", 0, 0, "w", 0, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        leat_error err = {0};
        json_t *config = json_pack("{s:o}", "loss", json_loads(cases[i][0], 0, NULL));
        json_t *want = json_loads(cases[i][1], 0, NULL);
        must(leati_flatten_compilation(config, outputs, &err), &err);
        if (!json_equal(json_object_get(config, "loss"), want)) fail_msg("%s", cases[i][0]);
        json_decref(config);
        json_decref(want);
    }
    json_decref(outputs);
}

static leat_model *load_without_compilation(const char *path) {
    leat_model_load_options options = leat_model_load_options_default();
    leat_error err = {0};
    leat_model *model = NULL;
    assert_true(options.compile);
    options.compile = false;
    must(leat_model_load_using(&model, path, &options, &err), &err);
    assert_false(leat_model_is_compiled(model));
    return model;
}

static void an_unknown_compilation_is_told_with_the_way_out(void **state) {
    (void)state;
    static const char *const paths[] = {FILES "open_own.keras", FILES "open_own.h5"};
    for (int i = 0; i < 2; ++i) {
        leat_error err = {0};
        leat_model *model = NULL;
        assert_int_equal(leat_model_load(&model, paths[i], &err), LEAT_ENOTFOUND);
        assert_null(model);
        if (!strstr(err.message, "'golden>Slow'") && !strstr(err.message, "'Slow'"))
            fail_msg("%s", err.message);
        assert_non_null(strstr(err.message, "to load the model without its compilation"));
    }
}

/* Without the compilation the model predicts; with another one that keeps nothing it trains. */
static void a_file_opens_without_its_compilation(void **state) {
    (void)state;
    static const char *const paths[] = {FILES "open_own.keras", FILES "open_own.h5"};
    for (int i = 0; i < 2; ++i) {
        leat_compile_options compile = leat_compile_options_default();
        leat_error err = {0};
        vectors v;
        char *config = NULL;
        leat_model *model = load_without_compilation(paths[i]);
        open_vectors(&v, "open_own");
        check_prediction(model, &v);
        must(leat_model_training_config(model, &config, &err), &err);
        assert_non_null(strstr(config, "Slow"));
        assert_non_null(strstr(config, "distant"));
        leat_string_free(config);
        compile.loss = "mse";
        must(leat_model_compile(model, &compile, &err), &err);
        must(leat_model_train_on_batch(model, &v.arrays, NULL, &err), &err);
        leat_npz_close(&v.npz);
        leat_model_destroy(&model);
    }
}

static void what_is_not_given_is_kept_from_the_file(void **state) {
    (void)state;
    leat_compile_options compile = leat_compile_options_default();
    leat_error err = {0};
    char *config = NULL;
    leat_model *model = load_without_compilation(FILES "keras3_sequential.keras");
    compile.optimizer = "SGD(learning_rate=0.5)";
    compile.keep = true;
    must(leat_model_compile(model, &compile, &err), &err);
    must(leat_model_training_config(model, &config, &err), &err);
    assert_non_null(strstr(config, "\"loss\": \"categorical_crossentropy\""));
    assert_non_null(strstr(config, "\"accuracy\""));
    assert_non_null(strstr(config, "\"SGD\""));
    leat_string_free(config);
    compile.optimizer = NULL; /* now the compilation of the model, not the file's */
    compile.loss = "mse";
    must(leat_model_compile(model, &compile, &err), &err);
    must(leat_model_training_config(model, &config, &err), &err);
    assert_non_null(strstr(config, "\"loss\": \"mean_squared_error\""));
    assert_non_null(strstr(config, "\"SGD\""));
    assert_true(leat_model_learning_rate(model) == 0.5);
    leat_string_free(config);
    leat_model_destroy(&model);
    model = load_without_compilation(FILES "open_own.keras");
    assert_int_equal(leat_model_compile(model, &compile, &err), LEAT_ENOTFOUND); /* keeps the optimizer */
    leat_model_destroy(&model);
}

/* A file says which arithmetic its model has, also if it is loaded without its compilation. */
static void the_arithmetic_is_kept_from_the_file(void **state) {
    (void)state;
    static const char path[] = "opening_arithmetic.h5";
    leat_error err = {0};
    for (int keep = 0; keep < 2; ++keep) {
        leat_compile_options compile = leat_compile_options_default();
        char *config = NULL;
        leat_model *model = load(FILES "cnn_adam.h5");
        compile.loss = "mse";
        compile.arithmetic = "keras3";
        must(leat_model_compile(model, &compile, &err), &err);
        must(leat_model_save(model, path, true, &err), &err);
        leat_model_destroy(&model);
        model = load_without_compilation(path);
        compile.arithmetic = NULL;
        compile.keep = keep == 1;
        must(leat_model_compile(model, &compile, &err), &err);
        must(leat_model_training_config(model, &config, &err), &err);
        assert_non_null(strstr(config, "\"arithmetic\": \"keras3\""));
        leat_string_free(config);
        leat_model_destroy(&model);
        remove(path);
    }
}

static void check_continuation(const char *path, const char *name) {
    leat_error err = {0};
    leat_model *model = NULL;
    vectors v;
    print_message("  %s\n", path + strlen(FILES));
    must(leat_model_load(&model, path, &err), &err);
    assert_true(leat_model_is_compiled(model));
    open_vectors(&v, name);
    check_prediction(model, &v);
    check_training(model, &v);
    leat_npz_close(&v.npz);
    leat_model_destroy(&model);
}

/* True for a key of the table of losses that is null, for the index of an ignored class, and for another axis. */
static void options_of_losses_mean_what_they_mean_in_keras(void **state) {
    (void)state;
    check_continuation(FILES "open_labels.keras", "open_labels");
    check_continuation(FILES "open_labels.h5", "open_labels");
    check_continuation(FILES "open_classes.keras", "open_classes");
    check_continuation(FILES "open_columns.keras", "open_columns");
}

/* In current Keras the argument training of a call in a functional model has no effect in fit and predict. */
static void training_of_a_call_is_ignored_as_in_current_keras(void **state) {
    (void)state;
    check_continuation(FILES "open_transfer.keras", "open_transfer");
}

/* MultiHeadAttention takes the masks off its inputs, merging layers keep a step that counts in any input, and a
 * call has the argument mask. */
static void masks_are_those_of_current_keras(void **state) {
    (void)state;
    static const char path[] = "opening_masks.h5";
    check_continuation(FILES "open_attended.keras", "open_attended");
    check_continuation(FILES "open_merged.keras", "open_merged");
    check_continuation(FILES "open_chosen.keras", "open_chosen");
    check_continuation(FILES "open_chosen.h5", "open_chosen");
    static const char *const names[] = {"open_attended", "open_merged", "open_chosen"};
    for (int i = 0; i < 3; ++i) { /* leat's own file */
        char from[256];
        leat_error err = {0};
        vectors v;
        snprintf(from, sizeof from, FILES "%s.keras", names[i]);
        leat_model *model = load(from);
        must(leat_model_save(model, path, true, &err), &err);
        leat_model_destroy(&model);
        model = load(path);
        open_vectors(&v, names[i]);
        check_training(model, &v);
        leat_npz_close(&v.npz);
        leat_model_destroy(&model);
        remove(path);
    }
}

/* An output that a nested Functional makes. */
static void nested_models_make_outputs(void **state) {
    (void)state;
    check_continuation(FILES "open_nested.keras", "open_nested");
}

/* A call with training=False, and frozen BatchNormalizations, go on as in tf.keras from a copy of the model, from
 * its text and from the file that leat writes. */
static void training_of_a_call_is_kept(void **state) {
    (void)state;
    static const char path[] = "opening_transfer.h5";
    leat_error err = {0};
    char *json = NULL;
    vectors v;
    leat_compile_options compile = leat_compile_options_default();
    leat_model *model = load(FILES "tf215_transfer.h5"), *copy = NULL;
    open_vectors(&v, "tf215_transfer");
    must(leat_model_to_json(model, &json, &err), &err);
    assert_non_null(strstr(json, "\"training\": false"));
    leat_string_free(json);
    must(leat_model_clone(&copy, model, true, &err), &err);
    compile.optimizer = "SGD(learning_rate=0.05)";
    compile.loss = "mse";
    must(leat_model_compile(copy, &compile, &err), &err);
    check_training(copy, &v);
    leat_model_destroy(&copy);
    must(leat_model_save(model, path, true, &err), &err);
    leat_model_destroy(&model);
    model = load(path);
    check_training(model, &v);
    leat_model_destroy(&model);
    leat_npz_close(&v.npz);
    remove(path);
}

#define DROPPED(version, training)                                                                           \
    "{\"class_name\": \"Model\", \"keras_version\": \"" version "\", \"config\": {\"name\": \"m\", "         \
    "\"layers\": [{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"x\", \"batch_input_shape\": "    \
    "[null, 64]}, \"name\": \"x\", \"inbound_nodes\": []}, {\"class_name\": \"Dropout\", \"config\": "       \
    "{\"name\": \"d\", \"rate\": 0.5}, \"name\": \"d\", \"inbound_nodes\": [[[\"x\", 0, 0, "                 \
    "{\"training\": " training                                                                               \
    "}]]]}], \"input_layers\": [[\"x\", 0, 0]], \"output_layers\": [[\"d\", 0, 0]]}}"

/* Older Kerases honour the argument of each call; true, also for predictions, is refused with the way out. */
static void training_of_older_calls(void **state) {
    (void)state;
    static const char *const off[] = {DROPPED("2.3.1", "false"), DROPPED("2.11.0", "0"),
                                      DROPPED("2.3.1", "null")};
    static const char *const on[] = {DROPPED("2.3.1", "true"), DROPPED("2.11.0", "true")};
    static float numbers[64];
    const int64_t shape[] = {1, 64};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, shape, numbers)}, target = input;
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    for (int i = 0; i < 64; ++i) numbers[i] = 1;
    for (int i = 0; i < 3; ++i) {
        leat_compile_options compile = leat_compile_options_default();
        leat_error err = {0};
        leat_model *model = NULL;
        leat_logs logs = {0};
        double loss = -1;
        compile.loss = "mse";
        must(leat_model_from_json(&model, off[i], &err), &err);
        must(leat_model_compile(model, &compile, &err), &err);
        must(leat_model_train_on_batch(model, &arrays, &logs, &err), &err);
        assert_true(leat_logs_get(&logs, "loss", &loss) && (loss == 0) == (i < 2));
        leat_model_destroy(&model);
    }
    for (int i = 0; i < 2; ++i) {
        leat_error err = {0};
        leat_model *model = NULL;
        assert_int_equal(leat_model_from_json(&model, on[i], &err), LEAT_ENOTSUP);
        assert_non_null(strstr(err.message, "layer 'd'"));
        assert_non_null(strstr(err.message, "called with training=True"));
    }
}

#define NAMED_TENSOR(name)                                                                                   \
    "{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": [null, 3], \"dtype\": \"float32\", "     \
    "\"keras_history\": [\"" name "\", 0, 0]}}"

/* The message names the class, not the argument of its call, which only a layer that leat knows could have. */
static void an_unknown_class_with_a_named_tensor(void **state) {
    (void)state;
    static const char text[] =
        "{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", \"config\": "
        "{\"name\": "
        "\"m\", \"layers\": [{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": "
        "{\"batch_shape\": [null, 3], \"name\": \"x\"}, \"name\": \"x\", \"inbound_nodes\": []}, "
        "{\"module\": "
        "\"mine\", \"class_name\": \"%s\", \"config\": {\"name\": \"e\", \"units\": 2, \"trainable\": true}, "
        "\"registered_name\": \"mine>%s\", \"name\": \"e\", \"inbound_nodes\": [{\"args\": [%s], "
        "\"kwargs\": {\"source\": " NAMED_TENSOR("x") "}}]}], \"input_layers\": [\"x\", 0, 0], "
                                                      "\"output_layers\": [\"e\", 0, 0]}, "
                                                      "\"registered_name\": \"Functional\"}";
    static const char *const classes[] = {"TransformerEncoder", "Dense", "WhisperDecoder"};
    static const char *const says[] = {"no layer '", "called with the argument 'source'", "no layer '"};
    for (int i = 0; i < 3; ++i) {
        char json[2048];
        leat_error err = {0};
        leat_model *model = NULL;
        snprintf(json, sizeof json, text, classes[i], classes[i], i == 2 ? "" : NAMED_TENSOR("x"));
        assert_int_equal(leat_model_from_json(&model, json, &err), LEAT_ENOTSUP);
        if (!strstr(err.message, says[i]) || !strstr(err.message, classes[i])) fail_msg("%s", err.message);
    }
}

/* A model class of a package, and an input of ragged tensors: the message has the way out. */
static void what_cannot_be_built_names_the_way_out(void **state) {
    (void)state;
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"{\"module\": \"keras_hub\", \"class_name\": \"ImageClassifier\", \"config\": {\"num_classes\": 5}, "
         "\"registered_name\": \"keras_hub>ImageClassifier\"}",
         "received ImageClassifier, a class of your own or of a package, which leat cannot build: in Keras, "
         "save keras.Model(model.inputs, model.outputs)"},
        {"{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": "
         "[{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": "
         "[null, 3], "
         "\"ragged\": true, \"sparse\": false, \"name\": \"words\"}}]}}",
         "layer 'words': an Input with ragged=True"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leat_error err = {0};
        leat_model *model = NULL;
        assert_int_equal(leat_model_from_json(&model, cases[i].json, &err), LEAT_ENOTSUP);
        if (!strstr(err.message, cases[i].says)) fail_msg("%s", err.message);
    }
}

static void schedules_go_on_as_in_keras(void **state) {
    (void)state;
    check_continuation(FILES "open_pieces.keras", "open_pieces");
}

/* The files have a batch of 32 samples, the first that the model has seen; these are fewer. */
static void the_first_batch_is_no_demand(void **state) {
    (void)state;
    check_continuation(FILES "open_sized.keras", "open_sized");
    check_continuation(FILES "open_sized.h5", "open_sized");
    leat_model *model = load(FILES "open_sized.keras");
    assert_int_equal(leat_model_input_shape(model, 0).shape[0], -1);
    leat_model_destroy(&model);
}

/* A custom layer may have an argument that is called like a key of Keras's. */
static void keys_of_custom_layers_stay(void **state) {
    static const char json[] =
        "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", "
        "\"build_input_shape\": [32, 4], \"layers\": [{\"module\": \"keras.layers\", \"class_name\": "
        "\"InputLayer\", \"config\": {\"batch_shape\": [32, 4], \"name\": \"x\"}}, {\"module\": null, "
        "\"class_name\": \"Mine\", \"config\": {\"name\": \"mine\", \"batch_shape\": [8, 4], "
        "\"build_input_shape\": [2, 1]}}]}}";
    leat_error err = {0};
    json_t *root = json_loads(json, 0, NULL), *out = NULL;
    (void)state;
    must(leati_translate_model(root, &out, &err), &err);
    const json_t *config = json_object_get(out, "config"), *layers = json_object_get(config, "layers");
    const json_t *input = json_object_get(json_array_get(layers, 0), "config");
    const json_t *mine = json_object_get(json_array_get(layers, 1), "config");
    assert_true(json_is_null(json_array_get(json_object_get(config, "build_input_shape"), 0)));
    assert_true(json_is_null(json_array_get(json_object_get(input, "batch_input_shape"), 0)));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(mine, "batch_shape"), 0)), 8);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(mine, "build_input_shape"), 0)), 2);
    json_decref(out);
    json_decref(root);
}

static void initializers_hold_arrays(void **state) {
    (void)state;
    leat_error err = {0};
    check_continuation(FILES "open_vectors.keras", "open_vectors");
    check_continuation(FILES "open_vectors.h5", "open_vectors");
    leat_model *model = NULL, *copy = NULL;
    char *json = NULL;
    must(leat_model_load(&model, FILES "open_vectors.keras", &err), &err);
    must(leat_model_to_json(model, &json, &err), &err);
    assert_non_null(strstr(json, "\"value\": [0.25, -0.5]"));
    must(leat_model_from_json(&copy, json, &err), &err); /* draws the weights */
    leat_tensor matrix = leat_model_weight(copy, 0);
    for (int i = 0; i < 12; ++i) assert_true(((const float *)matrix.data)[i] == (float)i / 8);
    leat_string_free(json);
    leat_model_destroy(&copy);
    leat_model_destroy(&model);
}

/* A .weights.h5 of current Keras has groups whose numbers follow from the order of the layers. */
static void weights_of_current_keras_fit_an_architecture(void **state) {
    (void)state;
    leat_error err = {0};
    vectors v;
    leat_model *model = load(FILES "open_weights.json");
    must(leat_model_load_weights(model, FILES "open_weights.weights.h5", false, &err), &err);
    open_vectors(&v, "open_weights");
    check_prediction(model, &v);
    assert_int_equal(leat_model_load_weights(model, FILES "open_weights.weights.h5", true, &err),
                     LEAT_EINVAL);
    assert_non_null(strstr(err.message, "by_name"));
    leat_npz_close(&v.npz);
    leat_model_destroy(&model);
}

/* Returns a model with the layers of a classifier whose first kernel is (in, 3), and whose head has `units`. */
static leat_model *classifier(int in, int units, const char *bias) {
    char json[1024];
    leat_error err = {0};
    leat_model *model = NULL;
    snprintf(json, sizeof json,
             "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
             "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 3, "
             "\"batch_input_shape\": [null, %d]}}, "
             "{\"class_name\": \"Dense\", \"config\": {\"name\": \"b\", \"units\": %d, \"use_bias\": %s}}]}}",
             in, units, bias);
    must(leat_model_from_json(&model, json, &err), &err);
    return model;
}

/* The message is that of the same function as a loss. */
static void a_metric_of_class_numbers_refuses_other_targets(void **state) {
    (void)state;
    static const char *const metrics[] = {"[\"SparseCategoricalCrossentropy\"]",
                                          "[\"CategoricalGeneralizedCrossEntropy\"]"};
    static float x[8 * 4], t[8 * 3];
    const int64_t x_shape[] = {8, 4}, t_shape[] = {8, 3};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, x_shape, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, t_shape, t)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    for (int i = 0; i < 2; ++i) {
        leat_compile_options compile = leat_compile_options_default();
        leat_error err = {0};
        leat_model *model = classifier(4, 3, "true");
        compile.loss = "mse";
        compile.metrics = metrics[i];
        must(leat_model_compile(model, &compile, &err), &err);
        assert_int_equal(leat_model_train_on_batch(model, &arrays, NULL, &err), LEAT_ESHAPE);
        if (!strstr(err.message,
                    "target of output 'b': expected shape (8, 1), class numbers, for metric '") ||
            !strstr(err.message, "received (8, 3)"))
            fail_msg("%s", err.message);
        leat_model_destroy(&model);
    }
}

static bool same_weight(const leat_model *a, const leat_model *b, int index) {
    leat_tensor x = leat_model_weight(a, index), y = leat_model_weight(b, index);
    return leat_tensor_count(&x) == leat_tensor_count(&y) &&
           memcmp(x.data, y.data, leat_tensor_bytes(&x)) == 0;
}

static void mismatches_are_skipped_if_told(void **state) {
    (void)state;
    leat_load_weights_options options = leat_load_weights_options_default();
    leat_error err = {0};
    char path[] = "/tmp/leat-opening-XXXXXX";
    close(mkstemp(path));
    leat_model *saved = classifier(4, 2, "true");
    must(leat_model_initialize(saved, 7, &err), &err);
    must(leat_model_save_weights(saved, path, &err), &err);
    for (int by_name = 0; by_name < 2; ++by_name) {
        leat_model *wider = classifier(4, 5, "true"), *fewer = classifier(4, 2, "false");
        options.by_name = by_name;
        options.skip_mismatch = false;
        assert_int_equal(leat_model_load_weights_using(wider, path, &options, &err), LEAT_ESHAPE);
        assert_int_equal(leat_model_load_weights_using(fewer, path, &options, &err), LEAT_EFORMAT);
        must(leat_model_initialize(wider, 0, &err), &err);
        must(leat_model_initialize(fewer, 0, &err), &err);
        options.skip_mismatch = true;
        must(leat_model_load_weights_using(wider, path, &options, &err), &err);
        must(leat_model_load_weights_using(fewer, path, &options, &err), &err);
        assert_true(same_weight(wider, saved, 0) && same_weight(fewer, saved, 0));
        assert_false(same_weight(fewer, saved, 2));
        leat_model_destroy(&wider);
        leat_model_destroy(&fewer);
    }
    leat_model_destroy(&saved);
    unlink(path);
}

/* The kernel of a Dense, (4, 3), has as many numbers as that of a Conv1D, (2, 2, 3). */
static void weights_are_reshaped_if_told(void **state) {
    (void)state;
    leat_load_weights_options options = leat_load_weights_options_default();
    leat_error err = {0};
    char path[] = "/tmp/leat-opening-XXXXXX";
    close(mkstemp(path));
    leat_model *saved = classifier(4, 2, "false"), *other = NULL;
    must(leat_model_initialize(saved, 7, &err), &err);
    must(leat_model_save_weights(saved, path, &err), &err);
    must(
        leat_model_from_json(&other,
                             "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"Conv1D\", "
                             "\"config\": {\"name\": \"a\", \"filters\": 3, \"kernel_size\": 2, "
                             "\"batch_input_shape\": [null, 5, 2]}}, {\"class_name\": \"Dense\", \"config\": "
                             "{\"name\": \"b\", \"units\": 2, \"use_bias\": false}}]}",
                             &err),
        &err);
    assert_int_equal(leat_model_load_weights_using(other, path, &options, &err), LEAT_ESHAPE);
    options.reshape = true;
    must(leat_model_load_weights_using(other, path, &options, &err), &err);
    assert_true(same_weight(other, saved, 0) && same_weight(other, saved, 2));
    leat_model_destroy(&other);
    leat_model_destroy(&saved);
    unlink(path);
}

static void files_of_tf_keras_go_on_as_there(void **state) {
    (void)state;
    static const char *const names[] = {"tf24_cnn",           "tf24_memory",     "tf24_graph",
                                        "tf215_cnn",          "tf215_memory",    "tf215_graph",
                                        "tf215_convolutions", "tf215_heads",     "tf215_functions",
                                        "tf212_separable",    "tf212_attention", "tf214_attention",
                                        "tf215_transfer",     "tf215_words"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        char path[256];
        snprintf(path, sizeof path, FILES "%s.h5", names[i]);
        check_continuation(path, names[i]);
        snprintf(path, sizeof path, FILES "%s.keras", names[i]);
        if (access(path, R_OK) == 0) check_continuation(path, names[i]);
    }
}

/* The schedule is written as it was read, and the state of what leat writes has the number of steps. */
static void schedules_are_written(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = NULL;
    vectors v;
    char copy[] = "/tmp/leat-opening-XXXXXX";
    close(mkstemp(copy));
    must(leat_model_load(&model, FILES "open_columns.keras", &err), &err);
    must(leat_model_save(model, copy, true, &err), &err);
    leat_model_destroy(&model);
    must(leat_model_load(&model, copy, &err), &err);
    open_vectors(&v, "open_columns");
    check_training(model, &v);
    leat_npz_close(&v.npz);
    leat_model_destroy(&model);
    unlink(copy);
}

/* A text may name a schedule; the learning rate is that of the next step and cannot be set, as in Keras. */
static void a_schedule_is_the_learning_rate(void **state) {
    (void)state;
    leat_compile_options compile = leat_compile_options_default();
    leat_error err = {0};
    vectors v;
    leat_model *model = load_without_compilation(FILES "open_own.keras");
    compile.loss = "mse";
    compile.optimizer = "Adam(learning_rate=ExponentialDecay(initial_learning_rate=0.5, decay_steps=1, "
                        "decay_rate=0.5), beta_1=0.8)";
    must(leat_model_compile(model, &compile, &err), &err);
    assert_true(leat_model_learning_rate(model) == 0.5);
    open_vectors(&v, "open_own");
    must(leat_model_train_on_batch(model, &v.arrays, NULL, &err), &err);
    assert_true(leat_model_learning_rate(model) == 0.25);
    leat_model_set_learning_rate(model, 3);
    assert_true(leat_model_learning_rate(model) == 0.25);
    compile.optimizer = "Adam(learning_rate=ExponentialDeca(initial_learning_rate=0.5))";
    assert_int_equal(leat_model_compile(model, &compile, &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "did you mean 'ExponentialDecay'?"));
    compile.optimizer = "Adam(learning_rate=ExponentialDecay(decay_steps=1, decay_rate=0.5))";
    assert_int_equal(leat_model_compile(model, &compile, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "initial_learning_rate"));
    leat_npz_close(&v.npz);
    leat_model_destroy(&model);
}

/* In an archive the kernels have the product of the LoRA weights. */
static void lora_is_in_the_kernels_of_an_archive(void **state) {
    (void)state;
    vectors v;
    leat_model *model = load(FILES "open_lora.keras");
    open_vectors(&v, "open_lora");
    check_prediction(model, &v);
    leat_npz_close(&v.npz);
    leat_model_destroy(&model);
}

typedef struct unread {
    const char *layer, *says[2];
} unread;

#define UNREAD(class_name, keys)                                                                             \
    "{\"class_name\": \"" class_name "\", \"config\": {\"name\": \"it\", \"trainable\": true" keys "}}"
#define POLICY(class_name)                                                                                   \
    ", \"units\": 2, \"dtype\": {\"class_name\": \"" class_name                                              \
    "\", \"config\": {\"mode\": \"int8\", \"source_name\": \"float32\"}}"

static const unread unread_layers[] = {
    {UNREAD("Dense", POLICY("QuantizedDTypePolicy")), {"quantized", "weights_format"}},
    {UNREAD("Dense", POLICY("Int4DTypePolicy")), {"Int4DTypePolicy", "quantize()"}},
    {UNREAD("Dense", ", \"units\": 2, \"dtype\": \"bfloat16\""), {"bfloat16", "load the weights"}},
    {UNREAD("Dense", ", \"units\": 2, \"lora_rank\": 2"), {"lora_rank", ".keras"}},
    {UNREAD("InputLayer", ", \"batch_shape\": [null], \"dtype\": \"string\""), {"strings", "indices"}},
    {UNREAD("MixUp", ""), {"MixUp", "augment"}},
    {UNREAD("JaxLayer", ""), {"JaxLayer", "another library"}},
};

static void what_cannot_be_read_says_what_to_do(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof unread_layers / sizeof unread_layers[0]; ++i) {
        char json[2048];
        leat_model *model = NULL;
        leat_error err = {0};
        snprintf(
            json, sizeof json,
            "{\"class_name\": \"Sequential\", \"keras_version\": \"3.15.1\", \"config\": {\"name\": \"m\", "
            "\"layers\": [%s]}}",
            unread_layers[i].layer);
        if (leat_model_from_json(&model, json, &err) == LEAT_OK) fail_msg("%s is read", json);
        for (int k = 0; k < 2; ++k)
            if (!strstr(err.message, unread_layers[i].says[k]))
                fail_msg("\"%s\" does not say \"%s\"", err.message, unread_layers[i].says[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_compilation_is_told_with_the_way_out),
        cmocka_unit_test(a_file_opens_without_its_compilation),
        cmocka_unit_test(what_is_not_given_is_kept_from_the_file),
        cmocka_unit_test(options_of_losses_mean_what_they_mean_in_keras),
        cmocka_unit_test(training_of_a_call_is_ignored_as_in_current_keras),
        cmocka_unit_test(nested_models_make_outputs),
        cmocka_unit_test(training_of_a_call_is_kept),
        cmocka_unit_test(training_of_older_calls),
        cmocka_unit_test(an_unknown_class_with_a_named_tensor),
        cmocka_unit_test(a_metric_of_class_numbers_refuses_other_targets),
        cmocka_unit_test(schedules_go_on_as_in_keras),
        cmocka_unit_test(the_first_batch_is_no_demand),
        cmocka_unit_test(keys_of_custom_layers_stay),
        cmocka_unit_test(initializers_hold_arrays),
        cmocka_unit_test(weights_of_current_keras_fit_an_architecture),
        cmocka_unit_test(mismatches_are_skipped_if_told),
        cmocka_unit_test(weights_are_reshaped_if_told),
        cmocka_unit_test(masks_are_those_of_current_keras),
        cmocka_unit_test(what_cannot_be_built_names_the_way_out),
        cmocka_unit_test(files_of_tf_keras_go_on_as_there),
        cmocka_unit_test(the_arithmetic_is_kept_from_the_file),
        cmocka_unit_test(schedules_are_written),
        cmocka_unit_test(a_schedule_is_the_learning_rate),
        cmocka_unit_test(dictionaries_have_their_keys),
        cmocka_unit_test(nested_structures_are_lists),
        cmocka_unit_test(a_list_of_outputs_has_no_loss),
        cmocka_unit_test(each_output_has_its_part),
        cmocka_unit_test(lora_is_in_the_kernels_of_an_archive),
        cmocka_unit_test(what_cannot_be_read_says_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
