/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files have the right structure, operators, names and weights; what ONNX cannot represent is refused.
 * tests/interop/check_onnx.py runs the files. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/protobuf/message.h"
#include "formats/onnx_reader.h"
#include "leat/model.h"
#include "nn/custom_layers.h"
#include "support/memory_failing.h"

#define LAYER(class, config) "{\"class_name\": \"" class "\", \"config\": {" config "}}"
#define SEQUENTIAL(layers)                                                                                   \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [" layers "]}}"

static const char cnn[] =
    SEQUENTIAL(LAYER("Conv2D", "\"name\": \"conv\", \"filters\": 4, \"kernel_size\": [3, 2], \"activation\": "
                               "\"relu\", \"batch_input_shape\": [null, 8, 8, 3]") ","             //
               LAYER("BatchNormalization", "\"name\": \"bn\"") ","                                 //
               LAYER("MaxPooling2D", "\"name\": \"pool\", \"pool_size\": [2, 2]") ","              //
               LAYER("Conv2D", "\"name\": \"conv2\", \"filters\": 5, \"kernel_size\": [1, 1]") "," //
               LAYER("Flatten", "\"name\": \"flat\"") ","                                          //
               LAYER("Dense", "\"name\": \"dense\", \"units\": 3, \"activation\": \"softmax\""));
static const char open_image[] = SEQUENTIAL(
    LAYER("Conv2D", "\"name\": \"conv\", \"filters\": 2, \"kernel_size\": [3, 3], \"strides\": [2, 2], "
                    "\"padding\": \"same\", \"batch_input_shape\": [null, null, null, 1]") "," //
    LAYER("Conv2D", "\"name\": \"conv2\", \"filters\": 1, \"kernel_size\": [3, 3], \"strides\": [2, 2]"));
#define EMBEDDING                                                                                            \
    LAYER("Embedding", "\"name\": \"words\", \"input_dim\": 9, \"output_dim\": 4, \"mask_zero\": true, "     \
                       "\"batch_input_shape\": [null, null]")
static const char masked_lstm[] = SEQUENTIAL(EMBEDDING "," LAYER("LSTM", "\"name\": \"lstm\", \"units\": 3"));
static const char lstm[] =
    SEQUENTIAL(LAYER("LSTM", "\"name\": \"lstm\", \"units\": 3, \"batch_input_shape\": "
                             "[null, null, 2]"));
static const char stateful[] = SEQUENTIAL(
    LAYER("GRU", "\"name\": \"gru\", \"units\": 3, \"stateful\": true, \"batch_input_shape\": [2, 5, 2]"));
static const char open_conv_lstm[] =
    SEQUENTIAL(LAYER("ConvLSTM2D", "\"name\": \"frames\", \"filters\": 2, \"kernel_size\": [2, 2], "
                                   "\"batch_input_shape\": [null, null, 4, 4, 1]"));

typedef struct content {
    void *data;
    size_t bytes;
} content;

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_model *model_of(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_from_json(&model, json, &err), &err);
    return model;
}

/* Exports a model and checks the file; returns its graph, whose bytes are file->data. */
static onnx_bytes exported(const char *json, content *file, char *ops, size_t room) {
    leat_error err = {0};
    leat_model *model = model_of(json);
    must(leat_model_save_memory(model, LEAT_MODEL_FORMAT_ONNX, true, &file->data, &file->bytes, &err), &err);
    leat_model_destroy(&model);
    return onnx_check(file->data, file->bytes, ops, room);
}

/* Checks the name and the shape of an input (field 11) or output (12): each dimension is a number or a name. */
static void expect_tensor(onnx_bytes graph, int field, int index, const char *name, const char *shape) {
    char found[128] = "";
    onnx_field dim;
    const onnx_bytes value = onnx_part(graph, field, index);
    const onnx_bytes dims = onnx_part(onnx_part(onnx_part(value, 2, 0), 1, 0), 2, 0);
    assert_string_equal(onnx_text(value, 1, 0), name);
    for (int i = 0; onnx_find(dims, 1, i, &dim); ++i) {
        const onnx_bytes message = {dim.data, dim.bytes};
        const size_t used = strlen(found);
        const char *text = onnx_text(message, 2, 0);
        if (text[0])
            snprintf(found + used, sizeof found - used, "%s ", text);
        else
            snprintf(found + used, sizeof found - used, "%d ", (int)onnx_number(message, 1, 0));
    }
    assert_string_equal(found, shape);
}

static void images_are_transposed_at_the_ends_only(void **state) {
    (void)state;
    char ops[512];
    content file = {0};
    const onnx_bytes graph = exported(cnn, &file, ops, sizeof ops);
    assert_string_equal(ops,
                        "Transpose Conv Relu BatchNormalization MaxPool Conv Transpose Reshape Gemm Softmax "
                        "Identity ");
    expect_tensor(graph, 11, 0, "conv_input", "batch 8 8 3 ");
    expect_tensor(graph, 12, 0, "dense", "batch 3 ");
    leat_bytes_free(file.data);
}

/* Returns the data of the initializer of that name, and its dimensions as text. */
static const float *initializer(onnx_bytes graph, const char *name, char dims[64]) {
    onnx_field field, dim;
    dims[0] = '\0';
    for (int i = 0; onnx_find(graph, 5, i, &field); ++i) {
        const onnx_bytes tensor = {field.data, field.bytes};
        if (strcmp(onnx_text(tensor, 8, 0), name) != 0) continue;
        for (int k = 0; onnx_find(tensor, 1, k, &dim); ++k)
            snprintf(dims + strlen(dims), 64 - strlen(dims), "%d ", (int)dim.value);
        return (const float *)(const void *)onnx_part(tensor, 9, 0).data;
    }
    fail_msg("there is no initializer '%s'", name);
    return NULL;
}

/* ONNX has (filters, channels, rows, columns), Keras (rows, columns, channels, filters). */
static void weights_have_their_names_and_values(void **state) {
    (void)state;
    char ops[512], dims[64];
    leat_error err = {0};
    content file = {0};
    leat_model *model = model_of(cnn);
    must(leat_model_save_memory(model, LEAT_MODEL_FORMAT_ONNX, true, &file.data, &file.bytes, &err), &err);
    const onnx_bytes graph = onnx_check(file.data, file.bytes, ops, sizeof ops);
    const float *keras = leat_model_weight(model, 0).data, *onnx = initializer(graph, "conv/kernel", dims);
    assert_string_equal(dims, "4 3 3 2 ");
    for (size_t f = 0; f < 4; ++f)
        for (size_t c = 0; c < 3; ++c)
            for (size_t p = 0; p < 6; ++p) {
                float a, b;
                memcpy(&a, &onnx[(f * 3 + c) * 6 + p], sizeof a);
                memcpy(&b, &keras[(p * 3 + c) * 4 + f], sizeof b);
                assert_true(a == b);
            }
    const float *dense = initializer(graph, "dense/kernel", dims);
    assert_string_equal(dims, "45 3 ");
    assert_memory_equal(dense, leat_model_weight(model, leat_model_weight_count(model) - 2).data,
                        45 * 3 * sizeof(float));
    leat_model_destroy(&model);
    leat_bytes_free(file.data);
}

static void open_steps_are_named_axes(void **state) {
    (void)state;
    char ops[1024];
    content file = {0};
    onnx_bytes graph = exported(lstm, &file, ops, sizeof ops);
    assert_string_equal(ops, "Transpose LSTM Squeeze Identity ");
    expect_tensor(graph, 11, 0, "lstm_input", "batch lstm_input_1 2 ");
    expect_tensor(graph, 12, 0, "lstm", "batch 3 ");
    leat_bytes_free(file.data);
    graph = exported(masked_lstm, &file, ops, sizeof ops);
    assert_non_null(strstr(ops, "Scan "));
    assert_null(strstr(ops, "LSTM "));
    expect_tensor(graph, 11, 0, "words_input", "batch words_input_1 ");
    leat_bytes_free(file.data);
}

/* The padding of a window with strides depends on the size of the image; ONNX computes it. */
static void padding_of_open_images_is_left_to_onnx(void **state) {
    (void)state;
    char ops[512];
    content file = {0};
    onnx_field field;
    const onnx_bytes graph = exported(open_image, &file, ops, sizeof ops);
    assert_string_equal(ops, "Transpose Conv Conv Transpose Identity ");
    for (int i = 0, convs = 0; onnx_find(graph, 1, i, &field); ++i) {
        const onnx_bytes node = {field.data, field.bytes};
        bool same = false;
        if (strcmp(onnx_text(node, 4, 0), "Conv") != 0) continue;
        for (int k = 0; onnx_find(node, 5, k, &field); ++k) {
            const onnx_bytes attr = {field.data, field.bytes};
            if (strcmp(onnx_text(attr, 1, 0), "auto_pad") != 0) continue;
            assert_string_equal(onnx_text(attr, 4, 0), "SAME_UPPER");
            same = true;
        }
        assert_true(same == (convs++ == 0));
    }
    expect_tensor(graph, 11, 0, "conv_input", "batch conv_input_1 conv_input_2 1 ");
    leat_bytes_free(file.data);
}

static void states_are_inputs_and_outputs(void **state) {
    (void)state;
    char ops[512];
    content file = {0};
    const onnx_bytes graph = exported(stateful, &file, ops, sizeof ops);
    expect_tensor(graph, 11, 0, "gru_input", "2 5 2 ");
    expect_tensor(graph, 11, 1, "gru_state", "2 3 ");
    expect_tensor(graph, 12, 0, "gru", "2 3 ");
    expect_tensor(graph, 12, 1, "gru_state_next", "2 3 ");
    leat_bytes_free(file.data);
}

static void a_file_has_the_bytes_of_memory(void **state) {
    (void)state;
    char folder[] = "/tmp/leat-onnx-XXXXXX", path[64], *read;
    leat_error err = {0};
    content file = {0};
    leat_model *model = model_of(cnn);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    must(leat_model_save_memory(model, LEAT_MODEL_FORMAT_ONNX, false, &file.data, &file.bytes, &err), &err);
    must(leat_model_save(model, path, true, &err), &err);
    read = malloc(file.bytes + 1);
    assert_non_null(read);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_int_equal(fread(read, 1, file.bytes + 1, stream), file.bytes);
    assert_memory_equal(read, file.data, file.bytes);
    fclose(stream);
    unlink(path);
    rmdir(folder);
    free(read);
    leat_bytes_free(file.data);
    leat_model_destroy(&model);
}

static void expect_refusal(leat_model *model, const char *message) {
    leat_error err = {0};
    content file = {&err, 5};
    assert_int_equal(leat_model_save_memory(model, LEAT_MODEL_FORMAT_ONNX, false, &file.data, &file.bytes,
                                            &err),
                     LEAT_ENOTSUP);
    if (!strstr(err.message, message)) fail_msg("expected '%s', received '%s'", message, err.message);
    assert_null(file.data);
    assert_int_equal(file.bytes, 0);
    leat_model_destroy(&model);
}

static void what_onnx_lacks_is_refused_by_name(void **state) {
    (void)state;
    static const char custom[] =
        SEQUENTIAL(LAYER("Product", "\"name\": \"own\", \"units\": 2, \"batch_input_shape\": [null, 3]"));
    leat_error err = {0};
    leat_model *model = NULL;
    leat_registry *registry = custom_registry();
    must(leat_model_load_memory(&model, custom, sizeof custom - 1, registry, &err), &err);
    expect_refusal(model,
                   "ONNX: layer 'own': a custom layer, or a lookup of integers, whose C code ONNX cannot "
                   "hold; replace it");
    leat_registry_destroy(&registry);
    expect_refusal(model_of(open_conv_lstm),
                   "layer 'frames': an open size of an input decides how many operations "
                   "this layer needs, which ONNX cannot represent; give the inputs");
}

/* Powers and remainders of tensors are calls of C's functions, for which ONNX has ops. */
static void calls_of_c_are_ops(void **state) {
    (void)state;
#define PAIR(name, function)                                                                                 \
    LAYER("Operation", "\"name\": \"" name "\", \"function\": \"" function                                   \
                       "\", \"args\": [{\"input\": 0}, {\"input\": 0}], \"batch_input_shape\": [null, 3]")
    static const char pairs[] = SEQUENTIAL(PAIR("power", "Power") "," PAIR("rest", "Fmod"));
    char ops[512];
    content file = {0};
    (void)exported(pairs, &file, ops, sizeof ops);
    assert_string_equal(ops, "Pow Mod Identity ");
    leat_bytes_free(file.data);
}

static void integers_and_texts_have_protobufs_encoding(void **state) {
    (void)state;
    static const unsigned char expected[] = {0x08, 0x96, 0x01, 0x12, 0x02, 'h',  'i',  0x18,
                                             0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                             0xff, 0x01, 0xa5, 0x01, 0,    0,    0x80, 0x3f};
    leati_message message = {0};
    leati_message_int(&message, 1, 150); /* the example of protobuf's documentation */
    leati_message_text(&message, 2, "hi");
    leati_message_int(&message, 3, -1);
    leati_message_float(&message, 20, 1.0f);
    assert_false(message.failed);
    assert_int_equal(message.length, sizeof expected);
    assert_memory_equal(message.data, expected, sizeof expected);
    leati_message_fini(&message);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    const char *const models[] = {cnn, masked_lstm, stateful};
    for (size_t i = 0; i < sizeof models / sizeof *models; ++i) {
        leat_model *model = model_of(models[i]);
        bool more = true;
        for (int64_t n = 1; more; ++n) {
            leat_error err = {0};
            content file = {0};
            const int64_t live = memory_live();
            memory_fail_at(n);
            leat_status status =
                leat_model_save_memory(model, LEAT_MODEL_FORMAT_ONNX, true, &file.data, &file.bytes, &err);
            more = memory_failed();
            memory_fail_at(0);
            if (status != (more ? LEAT_ENOMEM : LEAT_OK)) fail_msg("allocation %d: %s", (int)n, err.message);
            leat_bytes_free(file.data);
            assert_int_equal(memory_live(), live);
        }
        leat_model_destroy(&model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_transposed_at_the_ends_only),
        cmocka_unit_test(weights_have_their_names_and_values),
        cmocka_unit_test(open_steps_are_named_axes),
        cmocka_unit_test(padding_of_open_images_is_left_to_onnx),
        cmocka_unit_test(states_are_inputs_and_outputs),
        cmocka_unit_test(a_file_has_the_bytes_of_memory),
        cmocka_unit_test(what_onnx_lacks_is_refused_by_name),
        cmocka_unit_test(calls_of_c_are_ops),
        cmocka_unit_test(integers_and_texts_have_protobufs_encoding),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
