/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of keras.ops in functional models: the list in docs/operations.md, what is refused, constants that are not
 * finite, and masks.  Their numbers are compared with Keras's by test_golden_layers. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/layers/operations/operations.h"
#include "nn/model/model.h"
#include "nn/run.h"

#define PAGE            LEAT_SOURCE_DIR "/docs/operations.md"
#define MOST_PAGE_BYTES ((size_t)1 << 16)

static const leati_operation *const tables[] = {leati_elementwise_operations, leati_moving_operations,
                                                leati_reducing_operations,    leati_ordering_operations,
                                                leati_product_operations,     leati_nn_operations,
                                                leati_image_operations,       leati_choice_operations,
                                                leati_part_operations,        leati_window_operations,
                                                leati_fourier_operations,     leati_matrix_operations,
                                                leati_statistic_operations,   leati_pair_operations};

/* The page names each function with its arguments. */
static void test_page(void **state) {
    char *text = calloc(1, MOST_PAGE_BYTES);
    FILE *file = fopen(PAGE, "rb");
    (void)state;
    assert_true(text && file);
    size_t length = fread(text, 1, MOST_PAGE_BYTES - 1, file);
    fclose(file);
    for (size_t i = 0; i < length; ++i)
        if (text[i] == '\n') text[i] = ' ';
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; ++t)
        for (const leati_operation *at = tables[t]; at->name; ++at) {
            char entry[256];
            snprintf(entry, sizeof entry, " %s (%s)", at->name, at->signature);
            if (!strstr(text, entry)) fail_msg("docs/operations.md lacks '%s'", entry);
            assert_ptr_equal(leati_operation_find(at->name), at);
        }
    free(text);
}

#define TENSOR(name)                                                                                         \
    "{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": [null, 4, 3], \"dtype\": \"float32\", "  \
    "\"keras_history\": [\"" name "\", 0, 0]}}"
#define INPUT_OF(shape, name)                                                                                \
    "{\"module\": \"keras.layers\", \"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [" shape   \
    "], \"dtype\": \"float32\", \"name\": \"" name "\"}, \"registered_name\": null, \"name\": \"" name       \
    "\", \"inbound_nodes\": []}"
#define SHAPE_OF_X  "null, 4, 3"
#define INPUT(name) INPUT_OF(SHAPE_OF_X, name)

/* Writes a model with one input x of a shape and one function "it". */
static void write_model_of(char json[4096], const char *shape, const char *function, const char *options,
                           const char *args) {
    snprintf(json, 4096,
             "{\"module\": \"keras.src.models.functional\", \"class_name\": \"Functional\", \"config\": "
             "{\"name\": \"m\", \"trainable\": true, \"layers\": [" INPUT_OF(
                 "%s",
                 "x") ", {\"module\": "
                      "\"keras.src.ops.numpy\", \"class_name\": \"%s\", \"config\": {\"name\": \"it\"%s}, "
                      "\"registered_name\": \"%s\", \"name\": \"it\", \"inbound_nodes\": [{\"args\": [%s], "
                      "\"kwargs\": "
                      "{}}]}], \"input_layers\": [\"x\", 0, 0], \"output_layers\": [\"it\", 0, 0]}, "
                      "\"registered_name\": \"Functional\"}",
             shape, function, options, function, args);
}

static void write_model(char json[4096], const char *function, const char *options, const char *args) {
    write_model_of(json, SHAPE_OF_X, function, options, args);
}

typedef struct refused {
    const char *function, *options, *args, *says[2];
} refused;

static const refused cases[] = {
    {"GammaInc", "", TENSOR("x"), {"GammaInc", "custom layer"}},
    {"SegmentSum", ", \"num_segments\": 3", TENSOR("x") ", [0, 1]", {"'it'", "mixes the samples"}},
    {"Slice", ", \"shape\": [2, 4, 3]", TENSOR("x") ", [0, 0, 0]", {"'it'", "batch"}},
    {"SliceUpdate", "", TENSOR("x") ", [0, 2, 0], " TENSOR("x"), {"'it'", "updates"}},
    {"Rot90", "", TENSOR("x"), {"'it'", "axes"}},
    {"Quantile", ", \"axis\": 1, \"method\": \"nearest\"", TENSOR("x") ", 0.5", {"'it'", "linear"}},
    {"Inv", "", TENSOR("x"), {"'it'", "square"}},
    {"Solve", "", TENSOR("x") ", " TENSOR("x"), {"'it'", "square"}},
    {"FFT", "", TENSOR("x"), {"'it'", "list"}},
    {"RFFT", ", \"fft_length\": 0", TENSOR("x"), {"'it'", "fft_length"}},
    {"Conv", "", TENSOR("x") ", [[[[1.0]]]]", {"'it'", "kernel"}},
    {"Unfold", ", \"kernel_size\": 2", TENSOR("x"), {"'it'", "images"}},
    {"Cross", "", TENSOR("x") ", [1.0, 2.0]", {"'it'", "3 numbers"}},
    {"IsIn", "", TENSOR("x") ", " TENSOR("x"), {"'it'", "constant"}},
    {"Repeat", ", \"repeats\": [1, 2], \"axis\": 1", TENSOR("x"), {"'it'", "repeats"}},
    {"Sum", ", \"axis\": null", TENSOR("x"), {"'it'", "batch"}},
    {"Softmax", ", \"axis\": null", TENSOR("x"), {"'it'", "batch"}},
    {"LogSoftmax", ", \"axis\": null", TENSOR("x"), {"'it'", "batch"}},
    {"GetItem", "", TENSOR("x") ", 0", {"'it'", "batch"}},
    {"GetItem", "", TENSOR("x") ", [{\"class_name\": \"__ellipsis__\", \"config\": {}}, 3]", {"'it'", "key"}},
    {"Transpose", ", \"axes\": [1, 0, 2]", TENSOR("x"), {"'it'", "batch"}},
    {"Mean", ", \"axis\": 7", TENSOR("x"), {"'it'", "axis"}},
    {"Mean", ", \"axis\": 1, \"colour\": 2", TENSOR("x"), {"'it'", "'colour'"}},
    {"Add", "", TENSOR("x"), {"'it'", "'x2'"}},
    {"Add", "", TENSOR("x") ", [[1.0], [2.0, 3.0]]", {"'it'", "lists of numbers"}},
    {"Add", "", TENSOR("x") ", {\"class_name\": \"__complex__\", \"config\": {}}", {"'it'", "__complex__"}},
    {"Add", "", "1.0, 2.0", {"'it'", "tensor"}},
    {"Split", ", \"indices_or_sections\": 3, \"axis\": 1", TENSOR("x"), {"'it'", "equal parts"}},
    {"Einsum", ", \"subscripts\": \"bii->bi\"", TENSOR("x"), {"'it'", "two lengths"}},
    {"Einsum", ", \"subscripts\": \"bi->b\"", TENSOR("x"), {"'it'", "bi->b"}},
    {"Reshape", ", \"newshape\": [-1, 5]", TENSOR("x"), {"'it'", "reshape"}},
    {"DepthToSpace", ", \"block_size\": 2", TENSOR("x"), {"'it'", "4 axes"}},
    {"Pad",
     ", \"pad_width\": [[0, 0], [0, 4], [0, 0]], \"mode\": \"reflect\"",
     TENSOR("x"),
     {"'it'", "at most 3"}},
    {"Pad", ", \"pad_width\": 1, \"mode\": \"edge\"", TENSOR("x"), {"'it'", "\"symmetric\""}},
    {"CholeskyInverse", "", TENSOR("x"), {"'it'", "square"}},
    /* values of another kind than the argument has */
    {"Trapezoid", ", \"dx\": [1.0, 2.0]", TENSOR("x"), {"'it'", "dx: expected a number"}},
    {"Elu", ", \"alpha\": [0.5]", TENSOR("x"), {"'it'", "alpha: expected a number"}},
    {"Norm", ", \"ord\": [1], \"axis\": 1", TENSOR("x"), {"'it'", "ord: expected a text"}},
    {"Sum", ", \"axis\": 1, \"keepdims\": \"yes\"", TENSOR("x"), {"'it'", "keepdims: expected a number"}},
    {"Conv",
     ", \"padding\": \"causal\"",
     TENSOR("x") ", [[[1.0], [1.0], [1.0]]]",
     {"padding: expected one of \"valid\", \"same\"", "\"causal\""}},
    {"SearchSorted",
     ", \"side\": \"middle\"",
     "[0.0, 1.0], " TENSOR("x"),
     {"\"left\", \"right\"", "\"middle\""}},
    /* failures with the function's own name and the reason */
    {"Nansum", ", \"axis\": 7", TENSOR("x"), {"'it'", "Nansum: axis: a tensor of 3 axes has no axis 7"}},
    {"Take", ", \"axis\": null", TENSOR("x") ", [0, 1]", {"'it'", "Take: axis: expected an axis"}},
    {"Cumsum", "", TENSOR("x"), {"'it'", "Cumsum: axis: expected an axis"}},
    /* numbers that no product or sum of int64_t may have, and tensors that do not fit */
    {"LayerNorm", "", "1.0, " TENSOR("x"), {"'it'", ""}},
    {"Unfold", ", \"kernel_size\": [1099511627776, 1099511627776]", TENSOR("x"), {"'it'", "below 2^31"}},
    {"Unfold", ", \"kernel_size\": 2147483647, \"dilation\": 2147483647", TENSOR("x"), {"'it'", "images"}},
    {"Fold",
     ", \"kernel_size\": [4294967296, 4294967296], \"output_size\": 2",
     TENSOR("x"),
     {"'it'", "below 2^31"}},
    {"Slice",
     ", \"shape\": [-1, -1, -1]",
     TENSOR("x") ", [0, -9223372036854775808, 0]",
     {"'it'", "below 2^31"}},
    {"SliceUpdate", "", TENSOR("x") ", [0, -9223372036854775808, 0], " TENSOR("x"), {"'it'", "below 2^31"}},
    {"Tril", ", \"k\": 9223372036854775807", TENSOR("x"), {"'it'", "below 2^31"}},
};

/* Refused for an x of another shape. */
static const struct {
    const char *shape;
    refused it;
} shaped_cases[] = {
    {"null", {"Hstack", "", "[" TENSOR("x") ", " TENSOR("x") "]", {"'it'", "at least 2 axes"}}},
    {"null", {"Dstack", "", "[" TENSOR("x") ", " TENSOR("x") "]", {"'it'", "at least 2 axes"}}},
    {"null, 3", {"Inner", "", TENSOR("x") ", " TENSOR("x"), {"'it'", "x2: expected a constant"}}},
    {"null, 4, 4, 3",
     {"Resize",
      ", \"size\": [2, 2], \"interpolation\": \"gaussian\"",
      TENSOR("x"),
      {"\"bilinear\", \"nearest\", \"bicubic\", \"lanczos3\", \"lanczos5\", \"area\"", "\"gaussian\""}}},
    {"null", {"RFFT", "", TENSOR("x"), {"'it'", "at least 2 axes"}}},
    {"null, 4", {"FFT2", "", "[" TENSOR("x") ", " TENSOR("x") "]", {"'it'", "of at least 3 axes"}}},
    {"null, 1000, 4, 4",
     {"Unfold", ", \"kernel_size\": 2147483647, \"padding\": 2147483647", TENSOR("x"), {"'it'", ""}}},
    {"null, 4, 4, 4, 8",
     {"ExtractPatches",
      ", \"size\": 2147483647, \"strides\": 1, \"padding\": \"same\"",
      TENSOR("x"),
      {"'it'", ""}}},
    {"null, 1000000000, 10000000, 3", {"RFFT", ", \"fft_length\": 4096", TENSOR("x"), {"'it'", ""}}},
};

static void refuse(const char *shape, const refused *it) {
    char json[4096];
    leat_model *model = NULL;
    leat_error err = {0};
    write_model_of(json, shape, it->function, it->options, it->args);
    if (leat_model_from_json(&model, json, &err) == LEAT_OK) fail_msg("%s is accepted", json);
    for (int k = 0; k < 2; ++k)
        if (!strstr(err.message, it->says[k]))
            fail_msg("\"%s\" does not say \"%s\"", err.message, it->says[k]);
}

/* Each is refused with the layer's name and the reason. */
static void test_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) refuse(SHAPE_OF_X, &cases[i]);
    for (size_t i = 0; i < sizeof shaped_cases / sizeof shaped_cases[0]; ++i)
        refuse(shaped_cases[i].shape, &shaped_cases[i].it);
}

static void accept(const char *shape, const char *function, const char *options, const char *args) {
    char json[4096];
    leat_model *model = NULL;
    leat_error err = {0};
    write_model_of(json, shape, function, options, args);
    if (leat_model_from_json(&model, json, &err) != LEAT_OK) fail_msg("%s: %s", function, err.message);
    leat_model_destroy(&model);
}

/* A missing default is 0; the rows of a constant meet each sample; flags may be numbers; the number of a window's
 * elements may be any. */
static void test_accepted(void **state) {
    (void)state;
    accept(SHAPE_OF_X, "Select", "", "[" TENSOR("x") "], [" TENSOR("x") "]");
    accept("null, 3", "Inner", "", "[1.0, 2.0, 3.0], " TENSOR("x"));
    accept("null, 3", "Inner", "", TENSOR("x") ", [[1.0, 2.0, 3.0]]");
    accept(SHAPE_OF_X, "Sum", ", \"axis\": 1, \"keepdims\": 1", TENSOR("x"));
    accept("null, 4, 4, 4, 1", "MaxPool",
           ", \"pool_size\": 2147483647, \"strides\": 1, \"padding\": \"same\"", TENSOR("x"));
}

/* JSON has no infinities, but Keras writes them. */
static void test_infinity(void **state) {
    char json[4096], *text = NULL;
    leat_model *model = NULL;
    leat_error err = {0};
    (void)state;
    write_model(json, "Where", "", "true, " TENSOR("x") ", -Infinity");
    if (leat_model_from_json(&model, json, &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_int_equal(leat_model_to_json(model, &text, &err), LEAT_OK);
    assert_non_null(strstr(text, "-Infinity"));
    assert_non_null(strstr(text, "\"keras.src.ops.numpy\""));
    leat_string_free(text);
    leat_model_destroy(&model);
}

/* In an .h5 file of current Keras a function has no module; a Cast has a dtype, as layers have. */
static void test_without_module(void **state) {
    (void)state;
    leat_model *model = NULL;
    leat_error err = {0};
    const char *json = "{\"class_name\": \"Functional\", \"keras_version\": \"3.15.1\", \"config\": "
                       "{\"name\": \"m\", \"layers\": "
                       "[" INPUT("x") ", {\"class_name\": \"Cast\", \"config\": {\"name\": \"it\", "
                                      "\"dtype\": \"int32\"}, \"name\": "
                                      "\"it\", \"inbound_nodes\": [{\"args\": [" TENSOR(
                                          "x") "], \"kwargs\": {}}]}], \"input_layers\": [\"x\", 0, 0], "
                                               "\"output_layers\": [\"it\", 0, 0]}}";
    if (leat_model_from_json(&model, json, &err) != LEAT_OK) fail_msg("%s", err.message);
    leat_model_destroy(&model);
}

static void refuse_tf(const char *item, const char *says) {
    char json[4096];
    leat_model *model = NULL;
    leat_error err = {0};
    snprintf(json, sizeof json,
             "{\"class_name\": \"Functional\", \"keras_version\": \"2.15.0\", \"config\": {\"name\": \"m\", "
             "\"layers\": "
             "[{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [null, 4, 3], \"dtype\": "
             "\"float32\", \"name\": \"x\"}, \"name\": \"x\", \"inbound_nodes\": []}, %s], \"input_layers\": "
             "[[\"x\", 0, 0]], \"output_layers\": [[\"it\", 0, 0]]}}",
             item);
    if (leat_model_from_json(&model, json, &err) == LEAT_OK) fail_msg("%s is accepted", item);
    if (!strstr(err.message, "'it'") || !strstr(err.message, says))
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

#define TF(class_name, config, node)                                                                         \
    "{\"class_name\": \"" class_name "\", \"config\": {\"name\": \"it\", " config                            \
    "}, \"name\": \"it\", \"inbound_nodes\": [" node "]}"

/* The shape of x. */
#define SHAPE                                                                                                \
    "{\"class_name\": \"TFOpLambda\", \"config\": {\"name\": \"s\", \"function\": \"shape\"}, "              \
    "\"name\": \"s\", \"inbound_nodes\": [[\"x\", 0, 0, {}]]}"

/* Functions of TensorFlow that leat does not have, and their arguments, are refused by name. */
static void test_tf_refused(void **state) {
    (void)state;
    refuse_tf(TF("TFOpLambda", "\"function\": \"signal.fft\"", "[\"x\", 0, 0, {}]"), "tf.signal.fft");
    refuse_tf(TF("TFOpLambda", "\"function\": \"math.cumsum\"",
                 "[\"x\", 0, 0, {\"axis\": 1, \"reverse\": true}]"),
              "'reverse'");
    refuse_tf(TF("TFOpLambda", "\"function\": \"reshape\"", "[\"x\", 0, 0, {\"shape\": [-1, -1]}]"), "shape");
    refuse_tf(TF("TFOpLambda", "\"function\": \"image.resize\"", "[\"x\", 0, 0, {\"size\": [\"x\", 0, 0]}]"),
              "size: leat needs numbers");
    refuse_tf(TF("TFOpLambda", "\"function\": \"reshape\"", "[\"x\", 0, 0, {\"shape\": [\"x\", 0, 0]}]"),
              "newshape: leat needs numbers");
    refuse_tf(SHAPE
              ", " TF("TFOpLambda", "\"function\": \"cast\"", "[\"s\", 0, 0, {\"dtype\": \"float32\"}]"),
              "x.shape[1]");
    refuse_tf(SHAPE ", " TF("TFOpLambda", "\"function\": \"math.multiply\"",
                            "[\"x\", 0, 0, {\"y\": [\"s\", 0, 0]}]"),
              "y: leat needs numbers");
    refuse_tf(TF("TensorFlowOpLayer", "\"constants\": {}", "[[\"x\", 0, 0, {}]]"), "TensorFlowOpLayer");
}

typedef struct translated {
    const char *name, *arguments, *says[2];
} translated;

#define X "\"x\", 0, 0"

static const translated translations[] = {
    {"nn.depth_to_space", "\"block_size\": 2", {"\"DepthToSpace\"", "\"block_size\": 2"}},
    {"nn.space_to_depth", "\"block_size\": 2", {"\"SpaceToDepth\"", "\"block_size\": 2"}},
    {"image.resize",
     "\"size\": [3, 5], \"method\": \"nearest\"",
     {"\"Resize\"", "\"interpolation\": \"nearest\""}},
    {"image.flip_left_right", "", {"\"Flip\"", "\"axis\": 2"}},
    {"image.crop_to_bounding_box",
     "\"offset_height\": 1, \"offset_width\": 2, \"target_height\": 2, \"target_width\": 1",
     {"\"CropImages\"", "\"left_cropping\": 2"}},
    {"nn.max_pool2d",
     "\"ksize\": 2, \"strides\": [1, 2, 2, 1], \"padding\": \"SAME\"",
     {"\"MaxPool\"", "\"padding\": \"same\""}},
    {"compat.v1.pad",
     "\"paddings\": [[0, 0], [1, 2], [0, 0], [0, 0]], \"mode\": \"REFLECT\"",
     {"\"Pad\"", "\"mode\": \"reflect\""}},
    {"math.squared_difference", "\"y\": 0.5", {"\"Subtract\"", "\"Square\""}},
    {"math.sin", "", {"\"Sin\"", "\"Operation\""}},
    {"keras.backend.batch_flatten", "", {"\"class_name\": \"Flatten\"", "\"it\""}},
    {"ensure_shape", "\"shape\": [null, 4, 4, 8]", {"\"Copy\"", "\"it\""}},
};

/* Functions of TensorFlow become functions of keras.ops, or layers; the model is written with these. */
static void test_tf_translated(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof translations / sizeof translations[0]; ++i) {
        const translated *t = &translations[i];
        char json[4096], *text = NULL;
        leat_model *model = NULL;
        leat_error err = {0};
        snprintf(
            json, sizeof json,
            "{\"class_name\": \"Functional\", \"keras_version\": \"2.15.0\", \"config\": {\"name\": \"m\", "
            "\"layers\": "
            "[{\"class_name\": \"InputLayer\", \"config\": {\"batch_input_shape\": [null, 4, 4, 8], "
            "\"dtype\": "
            "\"float32\", \"name\": \"x\"}, \"name\": \"x\", \"inbound_nodes\": []}, {\"class_name\": "
            "\"TFOpLambda\", "
            "\"config\": {\"name\": \"it\", \"function\": \"%s\"}, \"name\": \"it\", \"inbound_nodes\": [[" X
            ", {%s}]]}], \"input_layers\": [[" X "]], \"output_layers\": [[\"it\", 0, 0]]}}",
            t->name, t->arguments);
        if (leat_model_from_json(&model, json, &err) != LEAT_OK) fail_msg("%s: %s", t->name, err.message);
        assert_int_equal(leat_model_to_json(model, &text, &err), LEAT_OK);
        for (int k = 0; k < 2; ++k)
            if (!strstr(text, t->says[k])) fail_msg("%s: %s lacks %s", t->name, text, t->says[k]);
        leat_string_free(text);
        leat_model_destroy(&model);
    }
}

/* The gradient of sinc is 0 at 0, where Keras's is NaN. */
static void test_sinc_at_zero(void **state) {
    const float numbers[] = {0, 0.5f};
    const leat_tensor array = leat_tensor_view(LEAT_F32, 1, (int64_t[]){2}, (void *)(uintptr_t)numbers);
    json_t *args = json_pack("[{s:i}]", "input", 0);
    (void)state;
    for (int i = 0; run_backends[i].name; ++i) {
        run r;
        leat_error err = {0};
        leati_value x, y, diff;
        run_begin(&r, &run_backends[i]);
        x = run_input(&r, &array);
        leati_operands o = {.g = r.graph,
                            .operation = leati_operation_find("Sinc"),
                            .args = args,
                            .input_count = 1,
                            .inputs = &x,
                            .outputs = &y};
        o.operation->lower(&o);
        leati_value sum = leati_reduce_all(r.graph, LEATI_REDUCE_SUM, y);
        assert_ok(leati_graph_differentiate(r.graph, sum, 1, &x, &diff, &err), &err);
        leati_graph_keep(r.graph, y);
        leati_graph_keep(r.graph, diff);
        run_compute(&r);
        const float *value = leati_plan_output(r.plan, y).data, *slope = leati_plan_output(r.plan, diff).data;
        assert_true(value[0] == 1 && slope[0] == 0);
        assert_true(fabsf(value[1] - 0.63661977f) < 1e-6f && fabsf(slope[1] + 1.27323954f) < 1e-5f);
        run_end(&r);
    }
    json_decref(args);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_accepted),      cmocka_unit_test(test_infinity),
        cmocka_unit_test(test_tf_refused),    cmocka_unit_test(test_without_module),
        cmocka_unit_test(test_tf_translated), cmocka_unit_test(test_sinc_at_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
