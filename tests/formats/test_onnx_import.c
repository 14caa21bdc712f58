/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files open as models: those of PyTorch in tests/golden/onnx (record_onnx.py) predict what ONNX Runtime
 * predicted, leat's own come back, models train and are saved for Keras, and what leat cannot express, or what is
 * damaged, is told. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/protobuf/message.h"
#include "leat/file.h"
#include "leat/inspect.h"
#include "leat/train.h"
#include "support/memory_failing.h"
#include "support/npz.h"

#define FILES LEAT_SOURCE_DIR "/tests/golden/onnx/"

static const char *const names[] = {"mlp",
                                    "mlp_batch_norm",
                                    "mlp_activations",
                                    "mlp_residual",
                                    "mlp_shared",
                                    "mlp_two_inputs",
                                    "cnn_batch_norm",
                                    "cnn_pools",
                                    "cnn_groups",
                                    "cnn_1d",
                                    "cnn_3d",
                                    "gan_generator",
                                    "unet",
                                    "squeeze_excite",
                                    "group_norm",
                                    "pixel_shuffle",
                                    "open_image",
                                    "conv_lstm",
                                    "lstm_steps_first",
                                    "lstm_last_state",
                                    "lstm_bidirectional",
                                    "lstm_states",
                                    "gru",
                                    "gru_bidirectional",
                                    "gru_without_bias",
                                    "rnn_relu",
                                    "text_classifier",
                                    "multi_head_attention",
                                    "transformer_encoder",
                                    "transformer_steps_first",
                                    "gpt",
                                    "attention_einsum",
                                    "mixer",
                                    "mlp_residual_fixed",
                                    "cnn_batch_norm_fixed",
                                    "lstm_bidirectional_fixed",
                                    "transformer_encoder_fixed",
                                    "mlp_residual_new",
                                    "cnn_batch_norm_new",
                                    "unet_new",
                                    "lstm_bidirectional_new",
                                    "transformer_encoder_new"};
enum { NAME_COUNT = sizeof names / sizeof names[0], MOST = 4 };

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

static leat_model *load(const char *path) {
    leat_error err = {0};
    leat_model *model = NULL;
    must(leat_model_load(&model, path, &err), &err);
    return model;
}

static leat_model *load_name(const char *name) {
    char path[256];
    snprintf(path, sizeof path, FILES "%s.onnx", name);
    return load(path);
}

/* The recorded inputs and outputs of a file. */
typedef struct vectors {
    leat_npz *npz;
    leat_array inputs[MOST];
    leat_tensor outputs[MOST];
    leat_arrays arrays;
    int output_count;
} vectors;

static void open_vectors(vectors *v, const char *name) {
    char path[128], key[8];
    snprintf(path, sizeof path, "onnx/%s.npz", name);
    *v = (vectors){.npz = test_npz_open(path)};
    for (int i = 0; i < MOST; ++i) {
        snprintf(key, sizeof key, "x%d", i);
        if (test_npz_has(v->npz, key)) v->inputs[v->arrays.input_count++].tensor = test_npz_get(v->npz, key);
        snprintf(key, sizeof key, "y%d", i);
        if (test_npz_has(v->npz, key)) v->outputs[v->output_count++] = test_npz_get(v->npz, key);
    }
    v->arrays.inputs = v->inputs;
}

static void check_close(const char *name, const leat_tensor *got, const leat_tensor *want, double limit) {
    assert_int_equal(leat_tensor_count(got), leat_tensor_count(want));
    double difference = 0, scale = 1e-3;
    const float *a = got->data, *b = want->data;
    for (int64_t i = 0; i < leat_tensor_count(want); ++i) {
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
        scale = fmax(scale, fabs((double)b[i]));
    }
    if (!(difference <= limit * scale)) fail_msg("%s: off by %g of the scale", name, difference / scale);
}

static void check_prediction(const char *name, leat_model *model, const vectors *v) {
    leat_error err = {0};
    leat_tensor outputs[MOST];
    assert_int_equal(leat_model_output_count(model), v->output_count);
    must(leat_model_predict_on_batch(model, &v->arrays, outputs, &err), &err);
    for (int i = 0; i < v->output_count; ++i) check_close(name, &outputs[i], &v->outputs[i], 1e-5);
}

static void files_of_pytorch_predict_what_onnx_runtime_does(void **state) {
    (void)state;
    for (int i = 0; i < NAME_COUNT; ++i) {
        vectors v;
        leat_model *model = load_name(names[i]);
        open_vectors(&v, names[i]);
        check_prediction(names[i], model, &v);
        leat_npz_close(&v.npz);
        leat_model_destroy(&model);
    }
}

/* A model of an ONNX file is one of current Keras: it is saved as .keras and comes back. */
static void models_are_saved_for_keras(void **state) {
    (void)state;
    for (int i = 0; i < NAME_COUNT; ++i) {
        vectors v;
        leat_error err = {0};
        leat_model *model = load_name(names[i]), *again = NULL;
        void *bytes = NULL;
        size_t size = 0;
        must(leat_model_save_memory(model, LEAT_MODEL_FORMAT_KERAS, true, &bytes, &size, &err), &err);
        must(leat_model_load_memory(&again, bytes, size, NULL, &err), &err);
        open_vectors(&v, names[i]);
        check_prediction(names[i], again, &v);
        leat_npz_close(&v.npz);
        leat_string_free(bytes);
        leat_model_destroy(&again);
        leat_model_destroy(&model);
    }
}

/* ---- Structure ---- */

static void a_layer_is_shared_where_its_weights_are(void **state) {
    (void)state;
    leat_model *model = load_name("mlp_shared");
    assert_int_equal(leat_model_weight_count(model), 4);
    assert_string_equal(leat_model_weight_name(model, 0), "a/kernel:0");
    assert_string_equal(leat_model_weight_name(model, 3), "b/bias:0");
    leat_model_destroy(&model);
}

/* Convolutions have the channels last: only the input changes its order. */
static void images_change_their_order_once(void **state) {
    (void)state;
    leat_model *model = load_name("cnn_batch_norm");
    leat_error err = {0};
    char *text = NULL;
    int permutes = 0;
    must(leat_model_to_json(model, &text, &err), &err);
    for (const char *at = text; (at = strstr(at, "\"class_name\": \"Permute\"")); ++at) ++permutes;
    assert_int_equal(permutes, 1);
    assert_non_null(strstr(text, "\"class_name\": \"Conv2D\""));
    leat_string_free(text);
    leat_model_destroy(&model);
}

static void a_model_trains(void **state) {
    (void)state;
    static const char *const trained[] = {"mlp", "cnn_batch_norm", "lstm_bidirectional",
                                          "transformer_encoder"};
    for (int i = 0; i < 4; ++i) {
        vectors v;
        leat_model *model = load_name(trained[i]);
        leat_compile_options compile = leat_compile_options_default();
        leat_error err = {0};
        double first = 0, last = 0;
        open_vectors(&v, trained[i]);
        leat_array target = {.tensor = v.outputs[0]};
        float *numbers = calloc((size_t)leat_tensor_count(&target.tensor), sizeof *numbers);
        assert_non_null(numbers);
        for (int64_t k = 0; k < leat_tensor_count(&target.tensor); ++k) numbers[k] = (float)(k % 3) * 0.3f;
        target.tensor.data = numbers;
        v.arrays.targets = &target, v.arrays.target_count = 1;
        compile.loss = "mse", compile.optimizer = "adam";
        must(leat_model_compile(model, &compile, &err), &err);
        for (int step = 0; step < 40; ++step) {
            leat_logs logs = {0};
            must(leat_model_train_on_batch(model, &v.arrays, &logs, &err), &err);
            assert_true(leat_logs_get(&logs, "loss", &last));
            if (step == 0) first = last;
        }
        if (!(last < 0.9 * first)) fail_msg("%s: the loss goes from %g to %g", trained[i], first, last);
        free(numbers);
        leat_npz_close(&v.npz);
        leat_model_destroy(&model);
    }
}

/* ---- leat's own files ---- */

#define LAYER(class, config) "{\"class_name\": \"" class "\", \"config\": {" config "}}"
#define SEQUENTIAL(layers)                                                                                   \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [" layers "]}}"

static const char *const own[] = {
    SEQUENTIAL(LAYER(
        "Conv2D",
        "\"name\": \"conv\", \"filters\": 4, \"kernel_size\": [3, 2], \"strides\": [2, 2], "
        "\"padding\": \"same\", \"activation\": \"relu\", \"batch_input_shape\": [null, 8, 8, "
        "3]") "," LAYER("BatchNormalization",
                        "\"name\": \"bn\"") "," LAYER("MaxPooling2D",
                                                      "\"name\": \"pool\", \"pool_size\": [2, "
                                                      "2]") "," LAYER("Flatten",
                                                                      "\"name\": \"flat\"") "," LAYER("Dense",
                                                                                                      "\"name"
                                                                                                      "\": "
                                                                                                      "\"dens"
                                                                                                      "e\", "
                                                                                                      "\"unit"
                                                                                                      "s\": "
                                                                                                      "3, "
                                                                                                      "\"acti"
                                                                                                      "vation"
                                                                                                      "\": "
                                                                                                      "\"soft"
                                                                                                      "max"
                                                                                                      "\"")),
    SEQUENTIAL(LAYER("LSTM",
                     "\"name\": \"lstm\", \"units\": 3, \"batch_input_shape\": [null, 5, 2], "
                     "\"return_sequences\": true") "," LAYER("Bidirectional",
                                                             "\"name\": \"both\", \"layer\": "
                                                             "{\"class_name\": \"GRU\", "
                                                             "\"config\": {\"name\": \"g\", "
                                                             "\"units\": 4, \"reset_after\": "
                                                             "true}}") "," LAYER("Dense", "\"name\": "
                                                                                          "\"dense\", "
                                                                                          "\"units\": 2")),
    SEQUENTIAL(LAYER("Embedding",
                     "\"name\": \"words\", \"input_dim\": 9, \"output_dim\": 4, "
                     "\"batch_input_shape\": [null, 6]") "," LAYER("SimpleRNN",
                                                                   "\"name\": \"rnn\", \"units\": 3, "
                                                                   "\"go_backwards\": true")),
    SEQUENTIAL(LAYER("LocallyConnected1D", "\"name\": \"local\", \"filters\": 3, \"kernel_size\": [2], "
                                           "\"batch_input_shape\": [null, 6, 2]"))};

static void fill(leat_tensor *tensor, float *numbers, int rank, const int64_t *shape) {
    tensor->data = numbers, tensor->rank = rank, tensor->dtype = LEAT_F32;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
}

static void files_of_leat_come_back(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{2, 8, 8, 3}, {2, 5, 2}, {2, 6}, {2, 6, 2}};
    static const int ranks[] = {4, 3, 2, 3};
    static float numbers[384];
    for (int i = 0; i < 4; ++i) {
        leat_error err = {0};
        leat_model *model = NULL, *again = NULL;
        leat_array input = {0};
        leat_tensor first, second;
        void *bytes = NULL, *kept;
        size_t size = 0;
        for (int k = 0; k < 384; ++k) numbers[k] = i == 2 ? (float)(k % 9) : (float)(k * 7 % 13) / 13 - 0.5f;
        fill(&input.tensor, numbers, ranks[i], shapes[i]);
        const leat_arrays arrays = {.inputs = &input, .input_count = 1};
        must(leat_model_from_json(&model, own[i], &err), &err);
        must(leat_model_save_memory(model, LEAT_MODEL_FORMAT_ONNX, true, &bytes, &size, &err), &err);
        must(leat_model_load_memory(&again, bytes, size, NULL, &err), &err);
        must(leat_model_predict_on_batch(model, &arrays, &first, &err), &err);
        const size_t first_bytes = (size_t)leat_tensor_count(&first) * sizeof(float);
        assert_non_null(kept = malloc(first_bytes));
        memcpy(kept, first.data, first_bytes);
        first.data = kept;
        must(leat_model_predict_on_batch(again, &arrays, &second, &err), &err);
        check_close(own[i], &second, &first, 1e-6);
        free(kept);
        leat_string_free(bytes);
        leat_model_destroy(&again);
        leat_model_destroy(&model);
    }
}

/* ---- Files by hand ---- */

enum { IR = 1, GRAPH = 7, OPSET = 8, NODE = 1, NAME = 2, INITIALIZER = 5, INPUT = 11, OUTPUT = 12 };

static void put_value(leati_message *graph, int field, const char *name, int rank, const int64_t *dims) {
    const size_t value = leati_message_begin(graph, field);
    leati_message_text(graph, 1, name);
    const size_t type = leati_message_begin(graph, 2), tensor = leati_message_begin(graph, 1);
    leati_message_int(graph, 1, 1);
    const size_t shape = leati_message_begin(graph, 2);
    for (int i = 0; i < rank; ++i) {
        const size_t dim = leati_message_begin(graph, 1);
        if (dims[i] > 0) leati_message_int(graph, 1, dims[i]);
        leati_message_end(graph, dim);
    }
    leati_message_end(graph, shape);
    leati_message_end(graph, tensor);
    leati_message_end(graph, type);
    leati_message_end(graph, value);
}

/* What a file by hand has: x (batch, 3) -> op -> y, and a constant w (3, 2). */
typedef struct by_hand {
    const char *op, *location; /* of external data; NULL: the numbers are in the file */
    int64_t opset, offset;
    const char *second; /* input 1 of the node */
} by_hand;

static void put_constant(leati_message *graph, const by_hand *h) {
    static const float numbers[] = {1, 2, 3, 4, 5, 6};
    char offset[32];
    const size_t tensor = leati_message_begin(graph, INITIALIZER);
    leati_message_int(graph, 1, 3);
    leati_message_int(graph, 1, 2);
    leati_message_int(graph, 2, 1);
    leati_message_text(graph, 8, "w");
    snprintf(offset, sizeof offset, "%lld", (long long)h->offset);
    const char *const entries[][2] = {{"location", h->location}, {"offset", offset}};
    for (int i = 0; i < 2 && h->location; ++i) {
        const size_t entry = leati_message_begin(graph, 13);
        leati_message_text(graph, 1, entries[i][0]);
        leati_message_text(graph, 2, entries[i][1]);
        leati_message_end(graph, entry);
    }
    if (h->location)
        leati_message_int(graph, 14, 1);
    else
        leati_message_bytes(graph, 9, numbers, sizeof numbers);
    leati_message_end(graph, tensor);
}

static leati_message write_by_hand(const by_hand *h) {
    static const int64_t in[] = {-1, 3}, out[] = {-1, 2};
    leati_message file = {0};
    leati_message_int(&file, IR, 8);
    const size_t graph = leati_message_begin(&file, GRAPH), node = leati_message_begin(&file, NODE);
    leati_message_text(&file, 1, "x");
    leati_message_text(&file, 1, h->second);
    leati_message_text(&file, 2, "y");
    leati_message_text(&file, 3, "step");
    leati_message_text(&file, 4, h->op);
    leati_message_end(&file, node);
    put_constant(&file, h);
    put_value(&file, INPUT, "x", 2, in);
    put_value(&file, OUTPUT, "y", 2, out);
    leati_message_end(&file, graph);
    const size_t opset = leati_message_begin(&file, OPSET);
    leati_message_int(&file, 2, h->opset);
    leati_message_end(&file, opset);
    assert_false(file.failed);
    return file;
}

static void what_leat_cannot_express_is_told(void **state) {
    (void)state;
    static const struct {
        by_hand file;
        leat_status status;
        const char *message;
    } cases[] = {
        {{.op = "MatMul", .opset = 17, .second = "w"}, LEAT_OK, ""},
        {{.op = "Frobnicate", .opset = 17, .second = "w"},
         LEAT_ENOTSUP,
         "node 'step' (Frobnicate, opset 17): leat does not have this operator"},
        {{.op = "MatMul", .opset = 5, .second = "w"}, LEAT_ENOTSUP, "found opset 5"},
        {{.op = "MatMul", .opset = 17, .second = "v"},
         LEAT_ENOTSUP,
         "input 'v' is not made by an earlier node"},
        {{.op = "Gemm", .opset = 17, .second = "x"},
         LEAT_ENOTSUP,
         "expected the matrix B, input 1, as a constant"},
        {{.op = "Concat", .opset = 17, .second = "x"}, LEAT_OK, ""},
        {{.op = "MatMul", .opset = 17, .second = "w", .location = "w.bin"},
         LEAT_ENOTSUP,
         "load the model by its path"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        leat_error err = {0};
        leat_model *model = NULL;
        leati_message file = write_by_hand(&cases[i].file);
        const leat_status status = leat_model_load_memory(&model, file.data, file.length, NULL, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].message))
            fail_msg("%zu: %s", i, err.message);
        assert_true((model != NULL) == (status == LEAT_OK));
        leat_model_destroy(&model);
        leati_message_fini(&file);
    }
}

/* External data is read only inside of the folder, and within the file. */
static void external_data_stays_beside_the_file(void **state) {
    (void)state;
    static const struct {
        const char *location;
        int64_t offset;
        leat_status status;
        const char *message;
    } cases[] = {{"w.bin", 8, LEAT_OK, ""},
                 {"w.bin", 16, LEAT_EFORMAT, "expected 24 bytes at 16, the file has 32 bytes"},
                 {"../w.bin", 8, LEAT_EFORMAT, "expected a path inside of the folder"},
                 {"/etc/passwd", 8, LEAT_EFORMAT, "expected a path inside of the folder"},
                 {"a/../../w.bin", 8, LEAT_EFORMAT, "expected a path inside of the folder"},
                 {"none.bin", 8, LEAT_ENOTFOUND, "none.bin"}};
    static const float numbers[] = {0, 0, 1, 2, 3, 4, 5, 6};
    leat_error err = {0};
    must(leat_file_replace("w.bin", numbers, sizeof numbers, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        leat_model *model = NULL;
        const by_hand hand = {.op = "MatMul",
                              .opset = 17,
                              .second = "w",
                              .location = cases[i].location,
                              .offset = cases[i].offset};
        leati_message file = write_by_hand(&hand);
        must(leat_file_replace("hand.onnx", file.data, file.length, &err), &err);
        const leat_status status = leat_model_load(&model, "hand.onnx", &err);
        if (status != cases[i].status || (status != LEAT_OK && !strstr(err.message, cases[i].message)))
            fail_msg("%s: %s", cases[i].location, err.message);
        if (model) assert_memory_equal(leat_model_weight(model, 0).data, numbers + 2, 24);
        leat_model_destroy(&model);
        leati_message_fini(&file);
    }
    remove("w.bin");
    remove("hand.onnx");
}

static void *read_file(const char *name, size_t *size) {
    char path[256];
    snprintf(path, sizeof path, FILES "%s.onnx", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    void *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

/* A file that ends early, or has a wrong byte, is told or gives some model; it never crashes. */
static void damaged_files_are_told(void **state) {
    (void)state;
    size_t size = 0;
    unsigned char *bytes = read_file("mlp_residual", &size);
    for (size_t i = 1; i < size; ++i) {
        leat_error err = {0};
        leat_model *model = NULL;
        const leat_status cut = leat_model_load_memory(&model, bytes, i, NULL, &err);
        assert_true((model != NULL) == (cut == LEAT_OK));
        if (cut != LEAT_OK) assert_true(err.message[0] != '\0');
        leat_model_destroy(&model);
        bytes[i] ^= 0x55;
        const leat_status changed = leat_model_load_memory(&model, bytes, size, NULL, &err);
        assert_int_not_equal(changed, LEAT_EINTERNAL);
        leat_model_destroy(&model);
        bytes[i] ^= 0x55;
    }
    free(bytes);
}

/* Loads bytes while allocation n fails.  Returns false if no allocation has failed. */
static bool load_with_failure(const char *name, const void *bytes, size_t size, int64_t n,
                              const char *expected) {
    leat_error err = {0};
    leat_model *model = NULL;
    char *text = NULL;
    const int64_t live = memory_live();
    memory_fail_at(n);
    const leat_status status = leat_model_load_memory(&model, bytes, size, NULL, &err);
    const bool failed = memory_failed();
    memory_fail_at(0);
    if (status != LEAT_OK && status != LEAT_ENOMEM)
        fail_msg("%s, allocation %d: %s", name, (int)n, err.message);
    if (model) {
        must(leat_model_to_json(model, &text, &err), &err);
        assert_string_equal(text, expected);
        leat_string_free(text);
    }
    leat_model_destroy(&model);
    assert_int_equal(memory_live(), live);
    return failed;
}

/* Each allocation fails once: the model is whole, or there is none. */
static void memory_failures_are_told(void **state) {
    (void)state;
    static const char *const some[] = {"mlp_shared", "cnn_pools", "lstm_states", "attention_einsum"};
    for (int i = 0; i < 4; ++i) {
        size_t size = 0;
        leat_error err = {0};
        char *text = NULL;
        void *bytes = read_file(some[i], &size);
        leat_model *model = load_name(some[i]);
        must(leat_model_to_json(model, &text, &err), &err);
        for (int64_t n = 1; load_with_failure(some[i], bytes, size, n, text); ++n) continue;
        leat_string_free(text);
        leat_model_destroy(&model);
        free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_pytorch_predict_what_onnx_runtime_does),
        cmocka_unit_test(models_are_saved_for_keras),
        cmocka_unit_test(a_layer_is_shared_where_its_weights_are),
        cmocka_unit_test(images_change_their_order_once),
        cmocka_unit_test(a_model_trains),
        cmocka_unit_test(files_of_leat_come_back),
        cmocka_unit_test(what_leat_cannot_express_is_told),
        cmocka_unit_test(external_data_stays_beside_the_file),
        cmocka_unit_test(damaged_files_are_told),
        cmocka_unit_test(memory_failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
