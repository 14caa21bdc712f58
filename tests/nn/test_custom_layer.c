/* SPDX-License-Identifier: Apache-2.0 */
/* Custom layers (leat/layer.h): the same numbers as leat's own layers in training, files, wrappers and shared
 * calls; custom layers in place of a Lambda; refused definitions and their messages. */
#include "cmocka_all.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/inspect.h"
#include "leat/leat.h"
#include "nn/custom_layers.h"

#define assert_ok(status, err)                                                                               \
    do {                                                                                                     \
        if ((status) != LEAT_OK) fail_msg("%s", (err)->message);                                             \
    } while (0)

enum { SAMPLES = 6, FEATURES = 4 };

static leat_registry *registry; /* the registry of the present test */

static int open_registry(void **state) {
    (void)state;
    registry = custom_registry();
    return 0;
}

static int close_registry(void **state) {
    (void)state;
    leat_registry_destroy(&registry);
    return 0;
}

/* ---- Models ---- */

static leat_model *read_model(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_ok(leat_model_from_json_with(&model, json, registry, &err), &err);
    return model;
}

static void refused(const char *json, leat_status code, const char *said) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_int_equal(leat_model_from_json_with(&model, json, registry, &err), code);
    assert_null(model);
    if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);
}

static void compile(leat_model *model) {
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.1}}";
    options.loss = "mse";
    assert_ok(leat_model_compile(model, &options, &err), &err);
}

static void draw(float *out, int64_t count, uint64_t stream) {
    leat_rng rng = leat_rng_for(5, 0, stream);
    for (int64_t i = 0; i < count; ++i) out[i] = (float)leat_rng_normal(&rng);
}

/* One batch for a model with one input and one output; the shapes are without the batch. */
typedef struct batch {
    float x[256], t[256];
    leat_array input, target;
    leat_arrays arrays;
} batch;

static void make_batch(batch *b, const leat_model *model) {
    leat_tensor x = leat_model_input_shape(model, 0), t = leat_model_output_shape(model, 0);
    x.shape[0] = t.shape[0] = SAMPLES;
    assert_true(leat_tensor_count(&x) <= 256 && leat_tensor_count(&t) <= 256);
    draw(b->x, leat_tensor_count(&x), 1);
    draw(b->t, leat_tensor_count(&t), 2);
    memset(b->x + FEATURES, 0, FEATURES * sizeof *b->x); /* a step that a Masking masks */
    b->input = (leat_array){.tensor = leat_tensor_view(LEAT_F32, x.rank, x.shape, b->x)};
    b->target = (leat_array){.tensor = leat_tensor_view(LEAT_F32, t.rank, t.shape, b->t)};
    b->arrays =
        (leat_arrays){.inputs = &b->input, .targets = &b->target, .input_count = 1, .target_count = 1};
}

static void copy_weights(const leat_model *from, leat_model *to) {
    assert_int_equal(leat_model_weight_count(from), leat_model_weight_count(to));
    for (int i = 0; i < leat_model_weight_count(from); ++i) {
        leat_tensor a = leat_model_weight(from, i), b = leat_model_weight(to, i);
        assert_int_equal(leat_tensor_bytes(&a), leat_tensor_bytes(&b));
        memcpy(b.data, a.data, leat_tensor_bytes(&a));
    }
}

static void same_weights(const leat_model *a, const leat_model *b, double tolerance) {
    for (int i = 0; i < leat_model_weight_count(a); ++i) {
        leat_tensor x = leat_model_weight(a, i), y = leat_model_weight(b, i);
        for (int64_t j = 0; j < leat_tensor_count(&x); ++j) {
            const double p = (double)((float *)x.data)[j], q = (double)((float *)y.data)[j];
            if (!(fabs(p - q) <= tolerance)) fail_msg("weight %d[%d]: %g and %g", i, (int)j, p, q);
        }
    }
}

/* Trains both models on one batch: losses and weights must be the same. */
static void same_training(leat_model *a, leat_model *b) {
    leat_error err = {0};
    batch data;
    compile(a);
    compile(b);
    copy_weights(a, b);
    make_batch(&data, a);
    for (int step = 0; step < 4; ++step) {
        leat_logs p, q;
        assert_ok(leat_model_train_on_batch(a, &data.arrays, &p, &err), &err);
        assert_ok(leat_model_train_on_batch(b, &data.arrays, &q, &err), &err);
        assert_true(fabs(p.items[0].value - q.items[0].value) < 1e-5 * fabs(q.items[0].value));
    }
    same_weights(a, b, 1e-5);
    leat_model_destroy(&a);
    leat_model_destroy(&b);
}

#define LAYERS(...)                                                                                          \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [" __VA_ARGS__ "]}}"
#define LAYER(class_name, ...) "{\"class_name\": \"" class_name "\", \"config\": {" __VA_ARGS__ "}}"
#define FIRST                  "\"batch_input_shape\": [null, 4], "

/* ---- Results ---- */

static void test_trains_like_dense(void **state) {
    (void)state;
#define STACK(class_name)                                                                                    \
    LAYERS(LAYER("Dense", FIRST "\"units\": 5, \"activation\": \"tanh\"") ", " LAYER(                        \
        class_name, "\"units\": 3, \"kernel_regularizer\": "                                                 \
                    "\"l2\", \"kernel_constraint\": "                                                        \
                    "\"max_norm\"") ", " LAYER("Dense", "\"units\": 2"))
    same_training(read_model(STACK("Product")), read_model(STACK("Dense")));
#undef STACK
}

static void test_frozen_as_dense(void **state) {
    (void)state;
#define STACK(class_name)                                                                                    \
    LAYERS(LAYER("Dense", FIRST "\"units\": 5") ", " LAYER(class_name, "\"units\": 3, \"trainable\": "       \
                                                                       "false"))
    same_training(read_model(STACK("Product")), read_model(STACK("Dense")));
#undef STACK
}

static void test_within_a_wrapper(void **state) {
    (void)state;
#define STACK(class_name)                                                                                    \
    LAYERS(LAYER("TimeDistributed", "\"batch_input_shape\": [null, 3, 4], \"layer\": " LAYER(                \
                                        class_name, "\"name\": \"inner\", \"units\": 2")))
    same_training(read_model(STACK("Product")), read_model(STACK("Dense")));
#undef STACK
}

/* A model that calls one layer twice, so that the gradients of both calls are added. */
static leat_model *shared(const char *class_name) {
    leat_error err = {0};
    leat_builder *b = NULL;
    leat_model *model = NULL;
    assert_ok(leat_builder_create(&b, &err), &err);
    leat_builder_use(b, registry);
    leat_node *x = leat_input(b, (int64_t[]){FEATURES}, 1);
    leat_node *first = leat_layer(x, class_name, "{\"units\": 4}"), *second = leat_call(first, &first, 1);
    assert_ok(leat_model_create(&model, &b, &x, 1, &second, 1, &err), &err);
    return model;
}

static void test_shared(void **state) {
    (void)state;
    same_training(shared("Product"), shared("Dense"));
}

/* A model of (x + d) and (x - d), computed by the custom layer or by Add and Subtract; unless `both`, the loss
 * uses only one of them. */
static leat_model *pair(bool own, bool both) {
    leat_error err = {0};
    leat_builder *b = NULL;
    leat_model *model = NULL;
    assert_ok(leat_builder_create(&b, &err), &err);
    leat_builder_use(b, registry);
    leat_node *x = leat_input(b, (int64_t[]){FEATURES}, 1), *d = leat_dense(x, FEATURES, "tanh");
    leat_node *in[] = {x, d}, *sum, *difference;
    if (own) {
        sum = leat_merge(in, 2, "SumAndDifference", NULL);
        difference = leat_output(sum, 1);
    } else {
        sum = leat_merge(in, 2, "Add", NULL);
        difference = leat_merge(in, 2, "Subtract", NULL);
    }
    leat_node *last = both ? leat_merge((leat_node *[]){sum, difference}, 2, "Multiply", NULL) : difference;
    assert_ok(leat_model_create(&model, &b, &x, 1, &last, 1, &err), &err);
    return model;
}

static void test_two_inputs_and_outputs(void **state) {
    (void)state;
    same_training(pair(true, true), pair(false, true));
    same_training(pair(true, false), pair(false, false));
}

static void test_mask_passes(void **state) {
    (void)state;
#define MASKED(layer)                                                                                        \
    LAYERS(LAYER("Masking", "\"batch_input_shape\": [null, 3, 4]") ", " layer                                \
                                                                   ", " LAYER("LSTM", "\"units\": 2"))
    same_training(read_model(MASKED(LAYER("times", ""))),
                  read_model(MASKED(LAYER("Rescaling", "\"scale\": 2.0"))));
#undef MASKED
}

/* ---- Files ---- */

static void same_json(const leat_model *model, const char *expected) {
    leat_error err = {0};
    char *text = NULL;
    assert_ok(leat_model_to_json(model, &text, &err), &err);
    if (!strstr(text, expected)) fail_msg("expected %s in %s", expected, text);
    leat_string_free(text);
}

static void test_saved_and_loaded(void **state) {
    (void)state;
    leat_error err = {0};
    char folder[] = "/tmp/leat_own_XXXXXX", path[64];
    batch data;
    leat_logs before, after;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.h5", folder);
    leat_model *model = read_model(LAYERS(LAYER("Product", FIRST "\"name\": \"p\", \"units\": 3, "
                                                                 "\"kernel_initializer\": \"he_normal\"")));
    leat_model *loaded = NULL;
    compile(model);
    make_batch(&data, model);
    assert_string_equal(leat_model_weight_name(model, 0), "p/kernel:0");
    assert_ok(leat_model_save(model, path, true, &err), &err);
    assert_int_equal(leat_model_load(&loaded, path, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "'p' (Product): no layer 'Product'"));
    assert_ok(leat_model_load_with(&loaded, path, registry, &err), &err);
    leat_registry_destroy(&registry); /* the models stay valid without the registry */
    assert_ok(leat_model_test_on_batch(model, &data.arrays, &before, &err), &err);
    assert_ok(leat_model_test_on_batch(loaded, &data.arrays, &after, &err), &err);
    assert_true(before.items[0].value == after.items[0].value);
    same_json(loaded, "\"class_name\": \"Product\", \"config\": {\"name\": \"p\", \"trainable\": true, "
                      "\"batch_input_shape\": [null, 4], \"dtype\": \"float32\", \"units\": 3, "
                      "\"kernel_initializer\": {\"class_name\": \"VarianceScaling\"");
    leat_model_destroy(&model);
    leat_model_destroy(&loaded);
    unlink(path);
    rmdir(folder);
}

/* The configuration that Keras 2.3.1 writes for Lambda(lambda x, factor=2: x * factor, arguments={"factor": 3}). */
#define LAMBDA(name, function)                                                                               \
    LAYER("Lambda", FIRST "\"name\": \"" name                                                                \
                          "\", \"trainable\": true, \"dtype\": \"float32\", \"function\": " function         \
                          ", \"output_shape\": null, "                                                       \
                          "\"output_shape_type\": \"raw\", \"arguments\": {\"factor\": 3}")
#define CODE "[\"4wIAAAAAAA\\n\", [2], null], \"function_type\": \"lambda\""

static void check_lambda(const char *json) {
    leat_error err = {0};
    leat_model *model = read_model(json);
    leat_predictions *predictions = NULL;
    batch data;
    make_batch(&data, model);
    assert_ok(leat_model_predict(model, &data.arrays, 32, NULL, &predictions, &err), &err);
    const leat_tensor y = leat_predictions_get(predictions, 0);
    for (int i = 0; i < SAMPLES * FEATURES; ++i) assert_true(((float *)y.data)[i] == 3 * data.x[i]);
    leat_predictions_destroy(&predictions);
    leat_model_destroy(&model);
}

static void test_lambda(void **state) {
    (void)state;
    check_lambda(LAYERS(LAMBDA("times", CODE)));
    check_lambda(LAYERS(LAMBDA("lambda_1", "\"times\", \"function_type\": \"function\"")));
    leat_model *model = read_model(LAYERS(LAMBDA("times", CODE)));
    same_json(
        model,
        "\"function\": [\"4wIAAAAAAA\\n\", [2], null], \"function_type\": \"lambda\", \"output_shape\": "
        "null, \"output_shape_type\": \"raw\", \"arguments\": {\"factor\": 3}}");
    leat_model_destroy(&model);
    refused(
        LAYERS(LAMBDA("other", CODE)), LEAT_ENOTSUP,
        "layer 0 'other' (Lambda): a file has the Python code of a Lambda, which leat cannot run: write the "
        "layer in C and register it under the name 'other' (leat/layer.h; a plugin for the command: "
        "--layers)");
    refused(LAYERS(LAYER("Lambda", FIRST "\"name\": \"times\", \"arguments\": {\"factors\": 3}")),
            LEAT_ENOTSUP, "'times' (Lambda): arguments: unknown key 'factors'; did you mean 'factor'?");
}

/* A clone has the custom layers of its model, alone and in a wrapper, even after the registry is destroyed. */
static void test_cloned(void **state) {
    leat_error err = {0};
    (void)state;
    leat_model *model = read_model(LAYERS(LAYER(
        "Lambda", FIRST
        "\"name\": \"first\", \"function\": \"times\", \"arguments\": "
        "{\"factor\": 3}") ", " LAYER("Product",
                                      "\"units\": 6") ", " LAYER("Reshape",
                                                                 "\"target_shape\": [2, "
                                                                 "3]") ", " LAYER("TimeDis"
                                                                                  "tribute"
                                                                                  "d",
                                                                                  "\"layer"
                                                                                  "\":"
                                                                                  " " LAYER(
                                                                                      "Pro"
                                                                                      "duc"
                                                                                      "t",
                                                                                      "\"u"
                                                                                      "nit"
                                                                                      "s\""
                                                                                      ": "
                                                                                      "2, "
                                                                                      "\"n"
                                                                                      "ame"
                                                                                      "\":"
                                                                                      " \""
                                                                                      "p"
                                                                                      "\"")) ", " LAYER("Flat"
                                                                                                        "ten",
                                                                                                        "\"na"
                                                                                                        "me\""
                                                                                                        ": "
                                                                                                        "\"fl"
                                                                                                        "at"
                                                                                                        "\"")));
    leat_model *copy = NULL, *again = NULL;
    leat_registry_destroy(&registry);
    assert_ok(leat_model_clone(&copy, model, true, &err), &err);
    same_weights(model, copy, 0);
    assert_ok(leat_model_clone(&again, copy, true, &err), &err);
    leat_model_destroy(&copy);
    same_training(model, again);
}

/* Two different custom layers with one name cannot be told apart in a configuration. */
static void test_namesakes_are_not_cloned(void **state) {
    leat_error err = {0};
    leat_builder *builder = NULL;
    leat_model *model = NULL, *copy = NULL,
               *inner = read_model(LAYERS(LAYER("Product", FIRST "\"units\": 4")));
    leat_registry *other = custom_registry();
    (void)state;
    assert_ok(leat_builder_create(&builder, &err), &err);
    leat_builder_use(builder, other);
    leat_node *input = leat_input(builder, (int64_t[]){4}, 1);
    leat_node *output = leat_call_model(&inner, &input, 1);
    output = leat_layer(output, "Product", "{'units': 2}");
    assert_ok(leat_model_create(&model, &builder, &input, 1, &output, 1, &err), &err);
    assert_int_equal(leat_model_clone(&copy, model, true, &err), LEAT_EINVAL);
    assert_null(copy);
    assert_non_null(strstr(err.message, "Product: the model has two custom layers of this class name"));
    leat_model_destroy(&model);
    leat_registry_destroy(&other);
}

/* ---- Refused definitions and configurations ---- */

/* tf.keras writes the package of a registered class in front of its name. */
static void test_a_package_before_the_name(void **state) {
    (void)state;
    leat_model *model = read_model(LAYERS(LAYER("Custom>Product", FIRST "\"units\": 4")));
    assert_string_equal(leat_model_layer_class(model, 1), "Product");
    leat_model_destroy(&model);
    refused(
        LAYERS(LAYER("Custom>Quotient", FIRST "\"units\": 4")), LEAT_ENOTSUP,
        "no layer 'Custom>Quotient' in leat; a layer class of your own, or of a package, is written in C and "
        "registered under this name: leat_registry_add in leat/layer.h (a plugin for the command: "
        "--layers)");
}

static void test_bad_configurations(void **state) {
    (void)state;
    refused(LAYERS(LAYER("Product", FIRST "\"name\": \"p\"")), LEAT_EINVAL,
            "'p' (Product): the key 'units' is missing");
    refused(LAYERS(LAYER("Product", FIRST "\"name\": \"p\", \"units\": 0")), LEAT_EINVAL,
            "'p' (Product): units: expected at least 1, received 0");
    refused(LAYERS(LAYER("Product", FIRST "\"name\": \"p\", \"unit\": 2")), LEAT_ENOTSUP,
            "'p' (Product): unknown key 'unit'; did you mean 'units'?");
    refused(LAYERS(LAYER("SumAndDifference", FIRST "\"name\": \"s\"")), LEAT_EINVAL, "expected 2 inputs");
    refused(LAYERS(LAYER("Product", "\"batch_input_shape\": [null, null], \"units\": 2")), LEAT_ESHAPE,
            "weight 'kernel': expected known sizes");
    refused(LAYERS(LAYER("Products", FIRST "\"units\": 2")), LEAT_ENOTSUP,
            "no layer 'Products' in leat or among the custom layers; did you mean 'Product'?");
}

static void not_registered(leat_layer_definition d, const char *said) {
    leat_error err = {0};
    assert_int_equal(leat_registry_add(registry, &d, &err), LEAT_EINVAL);
    if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);
}

static void test_bad_definitions(void **state) {
    static const leat_layer_key outside[] = {{.key = "k", .kind = LEAT_KEY_INT, .offset = 8}, {.key = NULL}};
    static const leat_layer_key twice[] = {{.key = "k", .kind = LEAT_KEY_INITIALIZER, .preset = "null"},
                                           {.key = "k", .kind = LEAT_KEY_INITIALIZER, .preset = "null"},
                                           {.key = NULL}};
    static const leat_layer_key no_choices[] = {{.key = "k", .kind = LEAT_KEY_CHOICE}, {.key = NULL}};
    (void)state;
    leat_layer_definition d = custom_times();
    not_registered(d, "times: a layer of this name is registered already");
    d.class_name = "Dense";
    not_registered(d, "Dense: Keras has a layer of this name");
    d.class_name = "Lambda";
    not_registered(d, "Lambda: Keras has a layer of this name");
    d.class_name = "";
    not_registered(d, "class_name: expected 1 to");
    d.class_name = "mine";
    d.size = 8;
    not_registered(
        d, "leat_layer_definition: its size is 8, expected 96: start from leat_layer_definition_init()");
    d = custom_times();
    d.class_name = "mine";
    d.keys = outside;
    not_registered(d, "mine: key 'k': its member lies outside of config_bytes (8)");
    d.keys = twice;
    not_registered(d, "mine: key 'k' is listed twice");
    d.keys = no_choices;
    not_registered(d, "mine: key 'k': its choices are missing");
    d.keys = NULL;
    d.outputs = 7;
    not_registered(d, "mine: expected 1 to 6 outputs, received 7");
    d.outputs = 1;
    d.max_inputs = 9;
    not_registered(d, "mine: expected 1 <= min_inputs <= max_inputs <= 8, received 1 and 9");
    d.max_inputs = 1;
    d.forward = NULL;
    not_registered(d, "mine: forward is missing");
}

static leat_status no_shape(const void *config, int count, const leat_tensor *inputs, leat_tensor *outputs,
                            leat_error *err) {
    (void)config, (void)count, (void)inputs, (void)err;
    outputs[0].rank = 9;
    return LEAT_OK;
}

static leat_status refuse(const leat_layer_call *call, leat_error *err) {
    return leat_error_set(err, LEAT_EUSER, "not with %d samples", (int)call->inputs[0].shape[0]);
}

/* An error while running names the layer. */
static void test_failures(void **state) {
    (void)state;
    leat_error err = {0};
    batch data;
    leat_layer_definition d = custom_times();
    d.class_name = "Shapeless";
    d.infer = no_shape;
    assert_ok(leat_registry_add(registry, &d, &err), &err);
    refused(LAYERS(LAYER("Shapeless", FIRST "\"name\": \"s\"")), LEAT_ESHAPE,
            "'s' (Shapeless): its infer gave output 0 an invalid shape: the rank is out of range");
    d = custom_times();
    d.class_name = "Refuser";
    d.forward = refuse;
    d.backward = NULL;
    assert_ok(leat_registry_add(registry, &d, &err), &err);
    leat_model *model =
        read_model(LAYERS(LAYER("Dense", FIRST "\"units\": 2") ", " LAYER("Refuser", "\"name\": \"r\"")));
    compile(model);
    make_batch(&data, model);
    assert_int_equal(leat_model_test_on_batch(model, &data.arrays, NULL, &err), LEAT_EUSER);
    if (!strstr(err.message, "'r'") || !strstr(err.message, "Refuser: not with 6 samples"))
        fail_msg("%s", err.message);
    assert_int_equal(leat_model_train_on_batch(model, &data.arrays, NULL, &err), LEAT_ENOTSUP);
    if (!strstr(err.message, "'r' has no gradient: neither it nor the layers before it can be trained"))
        fail_msg("%s", err.message);
    leat_model_destroy(&model);
}

/* ---- The check of gradients ---- */

static leat_status wrong_back(const leat_layer_call *call, leat_error *err) {
    leat_status status = custom_times().backward(call, err);
    if (call->diff_inputs[0].data) ((float *)call->diff_inputs[0].data)[1] += 0.1f;
    return status;
}

static void test_gradient_check(void **state) {
    (void)state;
    leat_error err = {0};
    double worst = 1;
    const leat_tensor shapes[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 4}, NULL),
                                  leat_tensor_view(LEAT_F32, 2, (int64_t[]){3, 4}, NULL)};
    leat_layer_definition d = custom_product();
    assert_ok(leat_layer_check_gradient(&d, "{'units': 2}", 1, shapes, &worst, &err), &err);
    assert_true(worst < 1e-3);
    d = custom_sum_and_difference();
    assert_ok(leat_layer_check_gradient(&d, NULL, 2, shapes, &worst, &err), &err);
    assert_true(worst < 1e-3);
    d = custom_times();
    d.backward = wrong_back;
    assert_ok(leat_layer_check_gradient(&d, NULL, 1, shapes, &worst, &err), &err);
    assert_true(worst > 0.01);
    assert_int_equal(leat_layer_check_gradient(&d, "{\"factor\": \"x\"}", 1, shapes, &worst, &err),
                     LEAT_EINVAL);
    assert_int_equal(leat_layer_check_gradient(&d, NULL, 2, shapes, &worst, &err), LEAT_EINVAL);
    d.backward = NULL;
    assert_int_equal(leat_layer_check_gradient(&d, NULL, 1, shapes, &worst, &err), LEAT_ENOTSUP);
}

/* ---- Threads ---- */

enum { ACTORS = 4 };

/* A model for each thread, all from one registry: read, trained, destroyed. */
typedef struct actor {
    pthread_t thread;
    leat_status status;
    leat_error err;
    double loss; /* of the last step */
} actor;

static leat_status train_some(leat_model *model, actor *a) {
    batch data;
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.1}}";
    options.loss = "mse";
    leat_status status = leat_model_compile(model, &options, &a->err);
    make_batch(&data, model);
    for (int step = 0; status == LEAT_OK && step < 10; ++step) {
        leat_logs logs;
        status = leat_model_train_on_batch(model, &data.arrays, &logs, &a->err);
        if (status == LEAT_OK) a->loss = logs.items[0].value;
    }
    return status;
}

static void *act(void *user) {
    actor *a = user;
    leat_model *model = NULL;
    a->status = leat_model_from_json_with(&model,
                                          LAYERS(LAYER("Dense", FIRST "\"units\": 5") ", " LAYER(
                                              "Product", "\"units\": 3, \"kernel_regularizer\": \"l2\"")),
                                          registry, &a->err);
    if (a->status == LEAT_OK) a->status = train_some(model, a);
    leat_model_destroy(&model);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    actor actors[ACTORS] = {{0}};
    for (int i = 0; i < ACTORS; ++i)
        assert_int_equal(pthread_create(&actors[i].thread, NULL, act, &actors[i]), 0);
    for (int i = 0; i < ACTORS; ++i) assert_int_equal(pthread_join(actors[i].thread, NULL), 0);
    for (int i = 0; i < ACTORS; ++i) {
        assert_ok(actors[i].status, &actors[i].err);
        assert_true(actors[i].loss > 0 && actors[i].loss == actors[0].loss);
    }
}

#define IN_REGISTRY(test) cmocka_unit_test_setup_teardown(test, open_registry, close_registry)

/* Keras 2.3.1 (Python 3.7) writes these for lambda inputs, scale: inputs[0] + inputs[1] * scale, the Lambda of
 * keras.applications' InceptionResNetV2, and for the difference, and with the inputs exchanged. */
#define SUM_CODE                                                                                             \
    "4wIAAAAAAAAAAgAAAAMAAABDAAAAcxQAAAB8AGQBGQB8AGQCGQB8ARQAFwBTACkDTukAAAAA6QEA\\n"                        \
    "AACpACkC2gZpbnB1dHPaBXNjYWxlcgMAAAByAwAAANoIPHN0cmluZz7aCDxsYW1iZGE+AwAAAPMA\\n"                        \
    "AAAA\\n"
#define DIFFERENCE_CODE                                                                                      \
    "4wIAAAAAAAAAAgAAAAMAAABDAAAAcxQAAAB8AGQBGQB8AGQCGQB8ARQAGABTACkDTukAAAAA6QEA\\n"                        \
    "AACpACkC2gZpbnB1dHPaBXNjYWxlcgMAAAByAwAAANoIPHN0cmluZz7aCDxsYW1iZGE+AwAAAPMA\\n"                        \
    "AAAA\\n"
#define EXCHANGED_CODE                                                                                       \
    "4wIAAAAAAAAAAgAAAAMAAABDAAAAcxQAAAB8AGQBGQB8AGQCGQB8ARQAFwBTACkDTukBAAAA6QAA\\n"                        \
    "AACpACkC2gZpbnB1dHPaBXNjYWxlcgMAAAByAwAAANoIPHN0cmluZz7aCDxsYW1iZGE+AwAAAPMA\\n"                        \
    "AAAA\\n"

/* Only the code and the arguments decide, not the names. */
static void test_recognised_lambda(void **state) {
    (void)state;
    static const struct {
        const char *code, *arguments;
        leat_status status;
    } cases[] = {{SUM_CODE, "{\"scale\": 0.17}", LEAT_OK},
                 {SUM_CODE, "{\"factor\": 2}", LEAT_OK},
                 {SUM_CODE, "{}", LEAT_ENOTSUP},
                 {SUM_CODE, "{\"scale\": \"x\"}", LEAT_ENOTSUP},
                 {DIFFERENCE_CODE, "{\"scale\": 0.17}", LEAT_ENOTSUP},
                 {EXCHANGED_CODE, "{\"scale\": 0.17}", LEAT_ENOTSUP},
                 {"", "{\"scale\": 0.17}", LEAT_ENOTSUP}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char json[2048];
        leat_error err = {0};
        leat_model *model = NULL;
        snprintf(
            json, sizeof json,
            "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": ["
            "{\"class_name\": \"InputLayer\", \"name\": \"a\", \"config\": {\"name\": \"a\", "
            "\"batch_input_shape\": [null, 2]}, \"inbound_nodes\": []}, "
            "{\"class_name\": \"Lambda\", \"name\": \"any\", \"config\": {\"name\": \"any\", \"function\": "
            "[\"%s\", null, null], \"function_type\": \"lambda\", \"arguments\": %s}, \"inbound_nodes\": "
            "[[[\"a\", 0, 0, {}], [\"a\", 0, 0, {}]]]}], \"input_layers\": [[\"a\", 0, 0]], "
            "\"output_layers\": [[\"any\", 0, 0]]}}",
            cases[i].code, cases[i].arguments);
        if (leat_model_from_json(&model, json, &err) != cases[i].status)
            fail_msg("case %zu: %s", i, err.message);
        leat_model_destroy(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_REGISTRY(test_trains_like_dense),
        IN_REGISTRY(test_frozen_as_dense),
        IN_REGISTRY(test_within_a_wrapper),
        IN_REGISTRY(test_shared),
        IN_REGISTRY(test_two_inputs_and_outputs),
        IN_REGISTRY(test_mask_passes),
        IN_REGISTRY(test_saved_and_loaded),
        IN_REGISTRY(test_lambda),
        IN_REGISTRY(test_a_package_before_the_name),
        cmocka_unit_test(test_recognised_lambda),
        IN_REGISTRY(test_cloned),
        IN_REGISTRY(test_namesakes_are_not_cloned),
        IN_REGISTRY(test_bad_configurations),
        IN_REGISTRY(test_bad_definitions),
        IN_REGISTRY(test_failures),
        IN_REGISTRY(test_gradient_check),
        IN_REGISTRY(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
