/* SPDX-License-Identifier: Apache-2.0 */
/* Custom parts (leat/custom.h): copies of leat's own losses, activations and others train as those; files of both
 * Kerases with parts of their own are read and written; refused definitions and their messages. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/leat.h"
#include "nn/custom_parts.h"

#define assert_ok(status, err)                                                                               \
    do {                                                                                                     \
        if ((status) != LEAT_OK) fail_msg("%s", (err)->message);                                             \
    } while (0)

enum { SAMPLES = 6, FEATURES = 4, UNITS = 3 };

static leat_registry *registry; /* the registry of the present test */

static int open_registry(void **state) {
    (void)state;
    registry = custom_parts_registry();
    return 0;
}

static int close_registry(void **state) {
    (void)state;
    leat_registry_destroy(&registry);
    return 0;
}

/* ---- Models ---- */

#define LAYERS(...)                                                                                          \
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": [" __VA_ARGS__ "]}}"
#define LAYER(class_name, ...)  "{\"class_name\": \"" class_name "\", \"config\": {" __VA_ARGS__ "}}"
#define FIRST                   "\"batch_input_shape\": [null, 4], "
#define OBJECT(class_name, ...) "{\"class_name\": \"" class_name "\", \"config\": {" __VA_ARGS__ "}}"
#define SGD                     OBJECT("SGD", "\"learning_rate\": 0.1")

static leat_model *read_model(const char *json) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_ok(leat_model_from_json_with(&model, json, registry, &err), &err);
    return model;
}

/* Makes a Dense layer of 3 units with further keys. */
static leat_model *dense(const char *keys) {
    char json[1024];
    snprintf(json, sizeof json, LAYERS(LAYER("Dense", FIRST "\"name\": \"d\", \"units\": 3%s")), keys);
    return read_model(json);
}

static leat_status try_compile(leat_model *model, const char *optimizer, const char *loss,
                               const char *metrics, leat_error *err) {
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = optimizer;
    options.loss = loss;
    options.weighted_metrics = metrics;
    return leat_model_compile(model, &options, err);
}

static void compile(leat_model *model, const char *loss, const char *metrics) {
    leat_error err = {0};
    assert_ok(try_compile(model, SGD, loss, metrics, &err), &err);
}

static void refused(const char *json, const char *said) {
    leat_error err = {0};
    leat_model *model = NULL;
    assert_int_equal(leat_model_from_json_with(&model, json, registry, &err), LEAT_ENOTFOUND);
    assert_null(model);
    if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);
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

/* ---- Data ---- */

static float features[SAMPLES][FEATURES], targets[SAMPLES][UNITS], numbers[SAMPLES], weights[SAMPLES];
static float steps[SAMPLES][5][FEATURES];

static void draw(float *out, int64_t count, uint64_t stream) {
    leat_rng rng = leat_rng_for(5, 0, stream);
    for (int64_t i = 0; i < count; ++i) out[i] = (float)leat_rng_normal(&rng);
}

/* One batch.  The targets are class numbers if `by_number`, the inputs sequences if `sequences`. */
typedef struct batch {
    leat_array input, target;
    leat_arrays arrays;
} batch;

static void make_batch(batch *b, bool by_number, bool sequences) {
    *b = (batch){0};
    draw(&features[0][0], SAMPLES * FEATURES, 1);
    draw(&targets[0][0], SAMPLES * UNITS, 2);
    draw(&steps[0][0][0], SAMPLES * 5 * FEATURES, 3);
    for (int i = 0; i < SAMPLES; ++i) {
        numbers[i] = (float)(i % UNITS);
        weights[i] = (float)(1 + i) / 4;
    }
    b->input.tensor = sequences ? leat_tensor_view(LEAT_F32, 3, (int64_t[]){SAMPLES, 5, FEATURES}, steps)
                                : leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, FEATURES}, features);
    b->target.tensor = by_number ? leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, 1}, numbers)
                                 : leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, UNITS}, targets);
    b->arrays =
        (leat_arrays){.inputs = &b->input, .targets = &b->target, .input_count = 1, .target_count = 1};
}

/* Trains both compiled models on one batch: losses, metrics and weights must agree.  Destroys the models. */
static void same_training(leat_model *a, leat_model *b, batch *data) {
    leat_error err = {0};
    copy_weights(a, b);
    for (int step = 0; step < 5; ++step) {
        leat_logs p, q;
        assert_ok(leat_model_train_on_batch(a, &data->arrays, &p, &err), &err);
        assert_ok(leat_model_train_on_batch(b, &data->arrays, &q, &err), &err);
        assert_int_equal(p.count, q.count);
        for (int i = 0; i < p.count; ++i)
            if (!(fabs(p.items[i].value - q.items[i].value) < 2e-6 * (1 + fabs(q.items[i].value))))
                fail_msg("step %d: %s %.9g, %s %.9g", step, p.items[i].name, p.items[i].value,
                         q.items[i].name, q.items[i].value);
    }
    same_weights(a, b, 2e-6);
    leat_model_destroy(&a);
    leat_model_destroy(&b);
}

/* ---- Copies of leat's own ---- */

static void test_loss_trains_like_mse(void **state) {
    (void)state;
    leat_model *a = dense(", \"activation\": \"tanh\""), *b = dense(", \"activation\": \"tanh\"");
    leat_array weight = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, weights)};
    batch data;
    make_batch(&data, false, false);
    data.arrays.sample_weights = &weight;
    data.arrays.sample_weight_count = 1;
    compile(a, "MyMse", NULL);
    compile(b, "mse", NULL);
    same_training(a, b, &data);
}

static void test_loss_reads_its_keys(void **state) {
    (void)state;
    leat_model *a = dense(""), *b = dense("");
    batch data;
    make_batch(&data, false, false);
    compile(a, OBJECT("MyMse", "\"factor\": 2.0, \"reduction\": \"sum\""), NULL);
    compile(b, OBJECT("MeanSquaredError", "\"reduction\": \"sum\""), NULL);
    leat_logs p, q;
    copy_weights(a, b);
    assert_int_equal(leat_model_train_on_batch(a, &data.arrays, &p, NULL), LEAT_OK);
    assert_int_equal(leat_model_train_on_batch(b, &data.arrays, &q, NULL), LEAT_OK);
    assert_true(fabs(p.items[0].value - 2 * q.items[0].value) < 1e-4);
    leat_model_destroy(&a);
    leat_model_destroy(&b);
}

static void test_loss_of_class_numbers(void **state) {
    (void)state;
    leat_model *a = dense(", \"activation\": \"softmax\""), *b = dense(", \"activation\": \"softmax\"");
    batch data;
    make_batch(&data, true, false);
    compile(a, "my_classes", NULL);
    compile(b, "sparse_categorical_crossentropy", NULL);
    same_training(a, b, &data);
}

static void test_metric_counts_like_mae(void **state) {
    (void)state;
    leat_model *a = dense(""), *b = dense("");
    leat_array weight = {.tensor = leat_tensor_view(LEAT_F32, 1, (int64_t[]){SAMPLES}, weights)};
    batch data;
    make_batch(&data, false, false);
    data.arrays.sample_weights = &weight;
    data.arrays.sample_weight_count = 1;
    compile(a, "mse", "MyError,MyMse");
    compile(b, "mse", "mae,mse");
    same_training(a, b, &data);
}

static void test_metric_begins_with_reset(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *a = dense("");
    batch data;
    leat_logs p;
    make_batch(&data, false, false);
    compile(a, "mse", "[" OBJECT("MyError", "\"offset\": 3.0, \"name\": \"late\"") ", 'mae']");
    for (int run = 0; run < 2; ++run) {
        assert_ok(leat_model_evaluate(a, &data.arrays, 2, NULL, &p, &err), &err);
        assert_string_equal(p.items[1].name, "late");
        assert_true(fabs(p.items[1].value - p.items[2].value - 3) < 1e-6);
    }
    leat_model_destroy(&a);
}

static void test_activation_trains_like_tanh(void **state) {
    (void)state;
    leat_model *a = dense(", \"activation\": \"my_tanh\""), *b = dense(", \"activation\": \"tanh\"");
    batch data;
    make_batch(&data, false, false);
    compile(a, "mse", NULL);
    compile(b, "mse", NULL);
    same_training(a, b, &data);
}

static void test_activation_in_an_lstm(void **state) {
    (void)state;
#define STACK(activation)                                                                                    \
    LAYERS(LAYER("LSTM",                                                                                     \
                 "\"batch_input_shape\": [null, 5, 4], \"units\": 3, \"activation\": \"" activation "\""))
    leat_model *a = read_model(STACK("my_tanh")), *b = read_model(STACK("tanh"));
#undef STACK
    batch data;
    make_batch(&data, false, true);
    compile(a, "mse", NULL);
    compile(b, "mse", NULL);
    same_training(a, b, &data);
}

static void test_rules_train_like_leats(void **state) {
    (void)state;
    leat_model *a = dense(", \"kernel_regularizer\": " OBJECT(
                   "MyL2", "\"l2\": 0.1") ", \"activity_regularizer\": \"MyL2\", "
                                          "\"kernel_constraint\": " OBJECT("MyMaxNorm",
                                                                           "\"max_value\": 0.5")),
               *b = dense(", \"kernel_regularizer\": " OBJECT(
                   "L1L2", "\"l2\": 0.1") ", \"activity_regularizer\": \"l2\", "
                                          "\"kernel_constraint\": " OBJECT("MaxNorm", "\"max_value\": 0.5"));
    batch data;
    make_batch(&data, false, false);
    compile(a, "mse", NULL);
    compile(b, "mse", NULL);
    same_training(a, b, &data);
}

static void test_initializer_draws_like_random_uniform(void **state) {
    (void)state;
    static const char *const
        own[] = {", \"kernel_initializer\": \"MyUniform\"",
                 ", \"kernel_initializer\": " OBJECT("MyUniform", "\"maxval\": 1, \"seed\": 7")},
        *const leats[] = {", \"kernel_initializer\": \"RandomUniform\"",
                          ", \"kernel_initializer\": " OBJECT("RandomUniform", "\"maxval\": 1, \"seed\": 7")};
    for (int i = 0; i < 2; ++i) {
        leat_model *a = dense(own[i]), *b = dense(leats[i]);
        same_weights(a, b, 0);
        leat_model_destroy(&a);
        leat_model_destroy(&b);
    }
}

static void test_optimizer_trains_like_adam(void **state) {
    (void)state;
    static const char *const options[] = {"", "\"learning_rate\": 0.02, \"beta_1\": 0.5, \"clipnorm\": 0.3",
                                          "\"use_ema\": true, \"weight_decay\": 0.01"};
    for (int i = 0; i < 3; ++i) {
        leat_model *a = dense(", \"activation\": \"tanh\""), *b = dense(", \"activation\": \"tanh\"");
        leat_compile_options c = leat_compile_options_default();
        leat_error err = {0};
        char own[256], leats[256];
        batch data;
        snprintf(own, sizeof own, OBJECT("MyAdam", "%s"), options[i]);
        snprintf(leats, sizeof leats, OBJECT("Adam", "%s"), options[i]);
        make_batch(&data, false, false);
        c.loss = "mse";
        c.arithmetic = "keras3";
        c.optimizer = own;
        assert_ok(leat_model_compile(a, &c, &err), &err);
        c.optimizer = leats;
        assert_ok(leat_model_compile(b, &c, &err), &err);
        same_training(a, b, &data);
    }
}

static void test_optimizer_of_whole_weights(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *a = dense("");
    leat_logs logs;
    batch data;
    make_batch(&data, false, false);
    assert_ok(try_compile(a, "MyNormalized", "mse", NULL, &err), &err);
    assert_true(leat_model_learning_rate(a) == 0.5);
    leat_tensor kernel = leat_model_weight(a, 0);
    float before[FEATURES * UNITS];
    memcpy(before, kernel.data, sizeof before);
    assert_ok(leat_model_train_on_batch(a, &data.arrays, &logs, &err), &err);
    double moved = 0;
    for (int i = 0; i < FEATURES * UNITS; ++i)
        moved += pow((double)((float *)kernel.data)[i] - (double)before[i], 2);
    assert_true(fabs(sqrt(moved) - 0.5) < 1e-5);
    leat_model_destroy(&a);
}

/* More elements than one piece has. */
static void test_optimizer_of_many_weights(void **state) {
    (void)state;
    static const char text[] =
        LAYERS(LAYER("Dense", FIRST "\"units\": 30000") ", " LAYER("Dense", "\"units\": 3"));
    leat_model *a = read_model(text), *b = read_model(text);
    leat_error err = {0};
    batch data;
    make_batch(&data, false, false);
    assert_ok(try_compile(a, "MyAdam", "mse", NULL, &err), &err);
    assert_ok(try_compile(b, "Adam", "mse", NULL, &err), &err);
    same_training(a, b, &data);
}

/* ---- Cells ---- */

#define CELL(name)     OBJECT(name, "\"units\": 3")
#define LEATS          OBJECT("LSTMCell", "\"units\": 3, \"recurrent_activation\": \"sigmoid\"")
#define MASKED         LAYER("Masking", "\"batch_input_shape\": [null, 5, 4]")
#define RNN(cell, ...) LAYER("RNN", "\"batch_input_shape\": [null, 5, 4], \"cell\": " cell __VA_ARGS__)

static void same_cells(const char *own, const char *leats) {
    leat_model *a = read_model(own), *b = read_model(leats);
    batch data;
    make_batch(&data, false, true);
    memset(steps[1][3], 0, 2 * sizeof steps[1][3]); /* a Masking masks these */
    memset(steps[2][0], 0, sizeof steps[2][0]);
    compile(a, "mse", NULL);
    compile(b, "mse", NULL);
    same_training(a, b, &data);
}

static void test_cell_trains_like_lstm(void **state) {
    (void)state;
    same_cells(LAYERS(RNN(CELL("MyLSTMCell"))), LAYERS(RNN(LEATS)));
    same_cells(LAYERS(RNN(CELL("MyLSTMCell"), ", \"go_backwards\": true")),
               LAYERS(RNN(LEATS, ", \"go_backwards\": true")));
    same_cells(LAYERS(MASKED ", " RNN(CELL("MyLSTMCell"))), LAYERS(MASKED ", " RNN(LEATS)));
    same_cells(LAYERS(MASKED ", " RNN(CELL("MyLSTMCell"), ", \"return_sequences\": true") ", " RNN(LEATS)),
               LAYERS(MASKED ", " RNN(LEATS, ", \"return_sequences\": true") ", " RNN(LEATS)));
}

static void test_cells_in_a_stack(void **state) {
    (void)state;
#define STACK(first, second) LAYERS(RNN(OBJECT("StackedRNNCells", "\"cells\": [" first ", " second "]")))
    same_cells(STACK(CELL("MyLSTMCell"), LEATS), STACK(LEATS, LEATS));
    same_cells(STACK(LEATS, CELL("MyLSTMCell")), STACK(LEATS, LEATS));
#undef STACK
}

static void test_stateful_cell(void **state) {
    (void)state;
#define STATEFUL(cell)                                                                                       \
    LAYERS(LAYER("RNN", "\"batch_input_shape\": [6, 5, 4], \"stateful\": true, \"cell\": " cell))
    same_cells(STATEFUL(CELL("MyLSTMCell")), STATEFUL(LEATS));
#undef STATEFUL
}

static void test_cell_in_a_bidirectional(void **state) {
    (void)state;
#define BOTH(cell)                                                                                           \
    LAYERS(LAYER("Bidirectional",                                                                            \
                 "\"batch_input_shape\": [null, 5, 4], \"merge_mode\": \"sum\", \"layer\": " LAYER(          \
                     "RNN", "\"name\": \"inner\", \"cell\": " cell)))
    same_cells(BOTH(CELL("MyLSTMCell")), BOTH(LEATS));
#undef BOTH
#define BOTH(activation)                                                                                     \
    LAYERS(LAYER("Bidirectional",                                                                            \
                 "\"batch_input_shape\": [null, 5, 4], \"merge_mode\": \"sum\", \"layer\": " LAYER(          \
                     "GRU", "\"units\": 3, \"activation\": \"" activation "\"")))
    same_cells(BOTH("my_tanh"), BOTH("tanh"));
#undef BOTH
}

static void test_cell_of_current_keras(void **state) {
    (void)state;
    leat_error err = {0};
    char *json = NULL;
    leat_model *model = read_model(
        "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"module\": \"keras.layers\", \"class_name\": \"RNN\", \"config\": {\"name\": \"r\", "
        "\"batch_input_shape\": [null, 5, 4], \"cell\": {\"module\": null, \"class_name\": \"MyLSTMCell\", "
        "\"config\": {\"name\": \"c\", \"trainable\": true, \"dtype\": {\"module\": \"keras\", "
        "\"class_name\": "
        "\"DTypePolicy\", \"config\": {\"name\": \"float32\"}, \"registered_name\": null}, \"units\": 3}, "
        "\"registered_name\": \"cells>MyLSTMCell\"}}, \"registered_name\": null}]}, \"registered_name\": "
        "null}");
    assert_ok(leat_model_to_json(model, &json, &err), &err);
    if (!strstr(json, "\"registered_name\": \"cells>MyLSTMCell\"") ||
        !strstr(json, "\"class_name\": \"MyLSTMCell\""))
        fail_msg("%s", json);
    leat_string_free(json);
    leat_model_destroy(&model);
}

static void test_checks_the_gradient_of_a_cell(void **state) {
    (void)state;
    leat_error err = {0};
    double worst = 1;
    const leat_layer_definition d = custom_lstm_cell();
    const leat_tensor shapes[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 4}, NULL),
                                  leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 3}, NULL),
                                  leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 3}, NULL)};
    assert_ok(leat_layer_check_gradient(&d, "{'units': 3}", 3, shapes, &worst, &err), &err);
    assert_true(worst < 5e-3);
}

/* ---- Files ---- */

#define ALL_PARTS                                                                                            \
    ", \"activation\": \"my_tanh\", \"kernel_initializer\": " OBJECT(                                        \
        "MyUniform",                                                                                         \
        "\"seed\": 4") ", \"kernel_regularizer\": " OBJECT("MyL2",                                           \
                                                           "\"l2\": 0.25") ", \"kernel_constraint\": "       \
                                                                           "\"MyMaxNorm\""

/* Saves a compiled model with custom parts, loads it, and expects the same training. */
static void saved_and_loaded(const char *suffix) {
    leat_error err = {0};
    leat_model *a = dense(ALL_PARTS), *b = NULL;
    char path[] = "/tmp/leat-custom-XXXXXX", name[64];
    int file = mkstemp(path);
    batch data;
    leat_logs logs;
    assert_true(file >= 0);
    close(file);
    unlink(path);
    snprintf(name, sizeof name, "%s%s", path, suffix);
    make_batch(&data, false, false);
    assert_ok(try_compile(a, OBJECT("MyAdam", "\"learning_rate\": 0.05, \"beta_1\": 0.8"),
                          OBJECT("MyMse", "\"factor\": 0.5"), "[" OBJECT("MyError", "\"offset\": 1.0") "]",
                          &err),
              &err);
    assert_ok(leat_model_train_on_batch(a, &data.arrays, &logs, &err), &err);
    assert_ok(leat_model_save(a, name, true, &err), &err);
    assert_int_equal(leat_model_load(&b, name, &err), LEAT_ENOTFOUND);
    assert_ok(leat_model_load_with(&b, name, registry, &err), &err);
    unlink(name);
    assert_true(leat_model_is_compiled(b));
    same_training(a, b, &data);
}

static void test_saved_as_h5(void **state) {
    (void)state;
    saved_and_loaded(".h5");
}

static void test_saved_as_keras(void **state) {
    (void)state;
    saved_and_loaded(".keras");
}

/* The configuration of current Keras with a registered class and functions, and what is written back. */
static void test_registered_names_of_current_keras(void **state) {
    (void)state;
    static const char *const expected[] = {
        "\"activation\":{\"module\":\"builtins\",\"class_name\":\"function\",\"config\":\"my_tanh\","
        "\"registered_name\":\"function\"}",
        "\"kernel_regularizer\":{\"module\":null,\"class_name\":\"MyL2\",\"config\":{\"l2\":0.5},"
        "\"registered_name\":\"Custom>MyL2\"}",
        "\"kernel_initializer\":{\"module\":null,\"class_name\":\"MyUniform\",\"config\":{\"maxval\":0.05},"
        "\"registered_name\":\"MyUniform\"}"};
    leat_error err = {0};
    char *json = NULL, *text = NULL;
    leat_model *model = read_model(
        "{\"module\": \"keras\", \"class_name\": \"Sequential\", \"config\": {\"name\": \"m\", \"layers\": ["
        "{\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": "
        "3, "
        "\"batch_input_shape\": [null, 4], \"activation\": {\"module\": \"builtins\", \"class_name\": "
        "\"function\", \"config\": \"my_tanh\", \"registered_name\": \"function\"}, \"kernel_regularizer\": "
        "{\"module\": null, \"class_name\": \"MyL2\", \"config\": {\"l2\": 0.5}, \"registered_name\": "
        "\"Custom>MyL2\"}, \"kernel_initializer\": {\"module\": \"__main__\", \"class_name\": \"MyUniform\", "
        "\"config\": {}, \"registered_name\": \"MyUniform\"}}, \"registered_name\": null}]}, "
        "\"registered_name\": null}");
    assert_ok(leat_model_to_json(model, &json, &err), &err);
    text = malloc(strlen(json) + 1);
    assert_non_null(text);
    size_t used = 0;
    for (const char *c = json; *c; ++c)
        if (*c != ' ' && *c != '\n') text[used++] = *c;
    text[used] = '\0';
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; ++i)
        if (!strstr(text, expected[i])) fail_msg("expected %s in %s", expected[i], text);
    free(text);
    leat_string_free(json);
    leat_model_destroy(&model);
}

/* tf.keras writes the package into the class name. */
static void test_package_in_the_class_name(void **state) {
    (void)state;
    leat_model *model = dense("");
    compile(model, OBJECT("Custom>MyMse", "\"factor\": 1.0"), "my_package>MyError");
    leat_model_destroy(&model);
}

static void test_package_decides(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = dense(""), *clone = NULL;
    leat_loss_definition d = custom_mse();
    batch data;
    leat_logs p, q;
    d.name = "own>MeanSquaredError"; /* with a package, a name of leat's is free */
    d.values = custom_classes().values;
    d.gradient = NULL;
    assert_ok(leat_registry_add_loss(registry, &d, &err), &err);
    assert_ok(leat_model_use(model, registry, &err), &err);
    make_batch(&data, false, false);
    compile(model, "MeanSquaredError", NULL); /* leat's */
    assert_ok(leat_model_train_on_batch(model, &data.arrays, &p, &err), &err);
    assert_ok(leat_model_clone(&clone, model, true, &err), &err);
    compile(clone,
            "{'class_name': 'MeanSquaredError', 'config': {}, 'registered_name': "
            "'own>MeanSquaredError'}",
            NULL);
    assert_int_equal(leat_model_train_on_batch(clone, &data.arrays, &q, &err), LEAT_ENOTSUP);
    leat_model_destroy(&clone);
    leat_model_destroy(&model);
}

static void test_clone_knows_the_parts(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = dense(ALL_PARTS), *clone = NULL;
    batch data;
    make_batch(&data, false, false);
    assert_ok(leat_model_clone(&clone, model, true, &err), &err);
    leat_registry_destroy(&registry); /* the models hold what they need */
    compile(model, "MyMse", NULL);
    compile(clone, "MyMse", NULL);
    same_training(model, clone, &data);
}

/* ---- Refused ---- */

static void test_unknown_names(void **state) {
    (void)state;
    leat_error err = {0};
    leat_model *model = dense("");
    refused(LAYERS(LAYER("Dense", FIRST "\"units\": 3, \"activation\": \"snake\"")),
            "unknown activation 'snake': one of your own is written in C and registered under this name "
            "(leat_registry_add_activation in leat/custom.h; a plugin for the command: --layers)");
    refused(LAYERS(LAYER("Dense", FIRST "\"units\": 3, \"kernel_regularizer\": \"MyL3\"")),
            "unknown regularizer 'MyL3'; did you mean the registered 'MyL2'?");
    assert_int_equal(try_compile(model, SGD, "wasserstein", NULL, &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "leat_registry_add_loss"));
    assert_int_equal(try_compile(model, SGD, "mse", "fid", &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "leat_registry_add_metric"));
    assert_int_equal(try_compile(model, SGD, OBJECT("MyMse", "\"wrong\": 1"), NULL, &err), LEAT_ENOTSUP);
    assert_non_null(strstr(err.message, "loss 'MyMse'"));
    assert_non_null(strstr(err.message, "'wrong'"));
    leat_model_destroy(&model);
}

#define ADD_FAILS(kind, change, said)                                                                        \
    do {                                                                                                     \
        leat_error err = {0};                                                                                \
        change;                                                                                              \
        assert_int_equal(leat_registry_add_##kind(registry, &d, &err), LEAT_EINVAL);                         \
        if (!strstr(err.message, said)) fail_msg("expected '%s' in: %s", said, err.message);                 \
    } while (0)

static void test_refused_definitions(void **state) {
    (void)state;
    static const leat_layer_key far[] = {
        {.key = "factor", .kind = LEAT_KEY_FLOAT, .offset = 4, .preset = "1"}, {.key = NULL}};
    static const leat_layer_key drawn[] = {{.key = "factor", .kind = LEAT_KEY_INITIALIZER}, {.key = NULL}};
    leat_loss_definition d = custom_mse();
    ADD_FAILS(loss, (void)0, "loss 'MyMse' is already registered");
    ADD_FAILS(loss, d.name = "mse", "leat has this name already");
    ADD_FAILS(loss, d.name = "Custom>", "name: expected");
    ADD_FAILS(loss, d.name = NULL, "name: expected");
    ADD_FAILS(loss, (d.name = "x", d.keys = far), "its member lies outside of config_bytes (8)");
    ADD_FAILS(loss, d.keys = drawn, "key 'factor': expected the kind INT, FLOAT");
    ADD_FAILS(loss, d.values = NULL, "loss 'x': values is missing");
    ADD_FAILS(loss, (d = custom_mse(), d.value_rank = 9), "value_rank: expected 0 to 8, received 9");
    ADD_FAILS(loss, d.size = 8, "leat_loss_definition");
}

static void test_refused_cells(void **state) {
    (void)state;
    leat_layer_definition d = custom_lstm_cell();
    ADD_FAILS(cell, d.outputs = 2, "one input and one output more than the cell has states");
    ADD_FAILS(cell, (d = custom_lstm_cell(), d.infer = NULL), "infer is missing");
    ADD_FAILS(cell, d = custom_lstm_cell(), "registered already");
}

static void test_refused_optimizers(void **state) {
    (void)state;
    static const char *const slots[] = {"a", "b", "c", "d", NULL};
    leat_optimizer_definition d = custom_adam();
    ADD_FAILS(optimizer, d.name = "SGD", "leat has this name already");
    ADD_FAILS(optimizer, (d.name = "x", d.slots = slots), "expected at most 3 slots");
    ADD_FAILS(optimizer, d.learning_rate = NAN, "learning_rate: expected a finite number");
    ADD_FAILS(optimizer, d.update = NULL, "optimizer 'x': update is missing");
}

static void test_refused_metrics(void **state) {
    (void)state;
    leat_metric_definition d = custom_error();
    ADD_FAILS(metric, d.name = "accuracy", "leat has this name already");
    ADD_FAILS(metric, (d.name = "x", d.state_count = 0), "metric 'x': state_count: expected at least 1");
    ADD_FAILS(metric, d.result = NULL, "metric 'x': result is missing");
}

static void test_a_part_without_gradient_evaluates(void **state) {
    (void)state;
    leat_error err = {0};
    leat_loss_definition d = custom_mse();
    leat_model *model = dense("");
    batch data;
    leat_logs logs;
    d.name = "no_gradient";
    d.gradient = NULL;
    assert_ok(leat_registry_add_loss(registry, &d, &err), &err);
    assert_ok(leat_model_use(model, registry, &err), &err);
    make_batch(&data, false, false);
    compile(model, "no_gradient", NULL);
    assert_ok(leat_model_evaluate(model, &data.arrays, 2, NULL, &logs, &err), &err);
    assert_int_equal(leat_model_train_on_batch(model, &data.arrays, &logs, &err), LEAT_ENOTSUP);
    leat_model_destroy(&model);
}

/* ---- Checks of gradients ---- */

static leat_status wrong_gradient(const leat_loss_call *call, leat_error *err) {
    (void)err;
    for (int64_t i = 0; i < call->rows * call->row_elements; ++i) call->gradient[i] = 1;
    return LEAT_OK;
}

static void test_checks_gradients(void **state) {
    (void)state;
    leat_error err = {0};
    batch data;
    double worst = 1;
    make_batch(&data, false, false);
    leat_tensor t = data.target.tensor, x = data.input.tensor;
    leat_tensor p = leat_tensor_view(LEAT_F32, 2, (int64_t[]){SAMPLES, UNITS}, features);
    leat_loss_definition mse = custom_mse();
    const leat_activation_definition tanh_ = custom_tanh(), rows = custom_rows();
    const leat_regularizer_definition l2 = custom_l2();
    assert_ok(leat_loss_check_gradient(&mse, "{'factor': 3}", &t, &p, &worst, &err), &err);
    assert_true(worst < 1e-3);
    assert_ok(leat_activation_check_gradient(&tanh_, NULL, &x, &worst, &err), &err);
    assert_true(worst < 1e-3);
    assert_ok(leat_activation_check_gradient(&rows, "{'factor': 2}", &x, &worst, &err), &err);
    assert_true(worst < 1e-3);
    assert_ok(leat_regularizer_check_gradient(&l2, NULL, &x, &worst, &err), &err);
    assert_true(worst < 1e-3);
    mse.gradient = wrong_gradient;
    assert_ok(leat_loss_check_gradient(&mse, NULL, &t, &p, &worst, &err), &err);
    assert_true(worst > 0.1);
    mse.gradient = NULL;
    assert_int_equal(leat_loss_check_gradient(&mse, NULL, &t, &p, &worst, &err), LEAT_ENOTSUP);
    t.dtype = LEAT_I32;
    assert_int_equal(leat_loss_check_gradient(&mse, NULL, &t, &p, &worst, &err), LEAT_EDTYPE);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_registry, close_registry)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_loss_trains_like_mse),
        TEST(test_loss_reads_its_keys),
        TEST(test_loss_of_class_numbers),
        TEST(test_metric_counts_like_mae),
        TEST(test_metric_begins_with_reset),
        TEST(test_activation_trains_like_tanh),
        TEST(test_activation_in_an_lstm),
        TEST(test_rules_train_like_leats),
        TEST(test_initializer_draws_like_random_uniform),
        TEST(test_optimizer_trains_like_adam),
        TEST(test_optimizer_of_whole_weights),
        TEST(test_optimizer_of_many_weights),
        TEST(test_cell_trains_like_lstm),
        TEST(test_cells_in_a_stack),
        TEST(test_stateful_cell),
        TEST(test_cell_in_a_bidirectional),
        TEST(test_cell_of_current_keras),
        TEST(test_checks_the_gradient_of_a_cell),
        TEST(test_saved_as_h5),
        TEST(test_saved_as_keras),
        TEST(test_registered_names_of_current_keras),
        TEST(test_package_in_the_class_name),
        TEST(test_package_decides),
        TEST(test_clone_knows_the_parts),
        TEST(test_unknown_names),
        TEST(test_refused_definitions),
        TEST(test_refused_metrics),
        TEST(test_refused_optimizers),
        TEST(test_refused_cells),
        TEST(test_a_part_without_gradient_evaluates),
        TEST(test_checks_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
