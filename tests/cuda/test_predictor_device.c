/* SPDX-License-Identifier: Apache-2.0 */
/* Predictors on a device: their predictions, weights and states are those of predictors on the CPU, in several threads
 * beside the trainer. */
#include "cmocka_all.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "leat/predictor.h"
#include "train/support.h"

enum { batch = 64, steps = 5 };

static const char network[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"network\", \"layers\": ["
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 8, \"kernel_size\": [3, 3],"
    " \"activation\": \"relu\", \"batch_input_shape\": [null, 8, 8, 3]}},"
    "{\"class_name\": \"Flatten\", \"config\": {\"name\": \"f\"}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 5, \"activation\": "
    "\"softmax\"}}]}}";
static const char recurrent[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"recurrent\", \"layers\": ["
    "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"l\", \"units\": 6, \"return_sequences\": true,"
    " \"batch_input_shape\": [null, 5, 4]}},"
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 2}}]}}";
static const char words[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"words\", \"layers\": ["
    "{\"class_name\": \"Embedding\", \"config\": {\"name\": \"e\", \"input_dim\": 7, \"output_dim\": 3,"
    " \"input_length\": 4, \"batch_input_shape\": [null, 4]}}]}}";

static leat_model *load(const char *architecture) {
    leat_model *model = NULL;
    leat_error err = {0};
    leat_compile_options options = leat_compile_options_default();
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.5}}";
    options.loss = "mse";
    expect_ok(leat_model_from_json(&model, architecture, &err), &err);
    expect_ok(leat_model_initialize(model, 2, &err), &err);
    expect_ok(leat_model_compile(model, &options, &err), &err);
    return model;
}

static leat_predictor *open_on(leat_model *model, const char *device, int64_t size, bool streaming) {
    leat_predictor_options options = leat_predictor_options_default();
    leat_predictor *predictor = NULL;
    leat_error err = {0};
    options.device = device;
    options.batch_size = size;
    options.streaming = streaming;
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    return predictor;
}

static void fill(float *x, int64_t count, int salt) {
    for (int64_t i = 0; i < count; ++i) x[i] = (float)((i * 7919 + 31 * salt) % 101) / 101 - 0.5f;
}

/* Runs both predictors on the same numbers, and fails unless their predictions are equal up to rounding. */
static void compare(leat_predictor *a, leat_predictor *b, int salt) {
    leat_error err = {0};
    leat_tensor x = leat_predictor_input(a, 0);
    fill(x.data, leat_tensor_count(&x), salt);
    expect_ok(leat_predictor_run(a, NULL, NULL, &err), &err);
    expect_ok(leat_predictor_run(b, (const void *[]){x.data}, NULL, &err), &err);
    leat_tensor got = leat_predictor_output(a, 0), expected = leat_predictor_output(b, 0);
    const float *p = got.data, *q = expected.data;
    assert_int_equal(leat_tensor_count(&got), leat_tensor_count(&expected));
    for (int64_t i = 0; i < leat_tensor_count(&got); ++i)
        if (!(fabsf(p[i] - q[i]) <= 1e-5f * (1 + fabsf(q[i]))))
            fail_msg("run %d, [%d]: got %g, expected %g", salt, (int)i, (double)p[i], (double)q[i]);
}

static void predictions_are_those_of_the_cpu(void **state) {
    (void)state;
    const char *const models[] = {network, recurrent};
    for (int m = 0; m < 2; ++m) {
        leat_model *model = load(models[m]);
        leat_predictor *on_device = open_on(model, "cuda", batch, false),
                       *on_host = open_on(model, "cpu", batch, false),
                       *another = open_on(model, NULL, batch, false);
        assert_string_equal(leat_predictor_device(on_device), "cuda:0");
        assert_string_equal(leat_predictor_device(on_host), "cpu");
        assert_string_equal(leat_predictor_device(another), "cpu"); /* whatever LEAT_DEVICE says */
        leat_model_destroy(&model);                                 /* the predictors go on */
        for (int run = 0; run < 4; ++run) compare(on_device, on_host, run);
        leat_predictor_destroy(&on_device);
        leat_predictor_destroy(&on_host);
        leat_predictor_destroy(&another);
    }
    assert_null(leat_predictor_device(NULL));
}

static void train(leat_model *model) {
    static float pixels[4 * 8 * 8 * 3], targets[4 * 5];
    leat_error err = {0};
    fill(pixels, 4 * 8 * 8 * 3, 9);
    fill(targets, 4 * 5, 3);
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 4, (int64_t[]){4, 8, 8, 3}, pixels)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){4, 5}, targets)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    expect_ok(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
}

/* The weights change with a sync, and only then; wherever the model trains. */
static void weights_follow_the_training(void **state) {
    (void)state;
    const char *const places[] = {"cpu", "cuda"};
    for (int place = 0; place < 2; ++place) {
        leat_model *model = load(network);
        leat_error err = {0};
        expect_ok(leat_model_set_device(model, places[place], &err), &err);
        leat_predictor *on_device = open_on(model, "cuda", batch, false),
                       *old = open_on(model, "cpu", batch, false);
        for (int round = 0; round < 4; ++round) {
            train(model);
            compare(on_device, old, round);
            expect_ok(leat_model_publish(model, &err), &err);
            compare(on_device, old, round);
            expect_ok(leat_predictor_sync(on_device, &err), &err);
            expect_ok(leat_predictor_sync(old, &err), &err);
            assert_int_equal(leat_predictor_version(on_device), leat_predictor_version(old));
            compare(on_device, old, round);
            expect_ok(leat_predictor_sync(on_device, &err), &err); /* nothing newer */
            compare(on_device, old, round + 10);
        }
        leat_predictor_destroy(&on_device);
        leat_predictor_destroy(&old);
        leat_model_destroy(&model);
    }
}

static void states_are_those_of_the_cpu(void **state) {
    (void)state;
    leat_model *model = load(recurrent);
    leat_predictor *a = open_on(model, "cuda", 3, true), *b = open_on(model, "cpu", 3, true);
    size_t bytes = leat_predictor_state_bytes(a);
    unsigned char *saved = malloc(bytes), *other = malloc(bytes);
    leat_error err = {0};
    assert_true(saved && other && bytes > 0 && bytes == leat_predictor_state_bytes(b));
    for (int t = 0; t < 3; ++t) compare(a, b, t);
    leat_predictor_save(a, saved);
    leat_predictor_save(b, other);
    for (int t = 3; t < 6; ++t) compare(a, b, t);
    leat_predictor_restore(a, saved);
    leat_predictor_restore(b, other);
    compare(a, b, 6);
    expect_ok(leat_model_publish(model, &err), &err);
    expect_ok(leat_predictor_sync(a, &err), &err); /* the states stay */
    compare(a, b, 7);
    leat_predictor_reset_sample(a, 1);
    leat_predictor_reset_sample(b, 1);
    compare(a, b, 8);
    float *h = leat_predictor_state(a, "l", 0).data;
    h[0] = ((float *)leat_predictor_state(b, "l", 0).data)[0] = 0.25f; /* written by the caller */
    compare(a, b, 9);
    leat_predictor_reset(a);
    leat_predictor_reset(b);
    compare(a, b, 10);
    free(saved), free(other);
    leat_predictor_destroy(&a);
    leat_predictor_destroy(&b);
    leat_model_destroy(&model);
}

/* A fault of the data has the CPU's words, and the next prediction works. */
static void faults_have_the_words_of_the_cpu(void **state) {
    (void)state;
    leat_model *model = load(words);
    leat_predictor *a = open_on(model, "cuda", 2, false), *b = open_on(model, "cpu", 2, false);
    leat_error on_device = {0}, on_host = {0};
    const float good[] = {0, 1, 2, 3, 4, 5, 6, 0}, bad[] = {0, 1, 2, 3, 7, 5, 6, 0};
    for (int run = 0; run < 3; ++run) {
        float got[24], expected[24];
        assert_int_equal(leat_predictor_run(b, (const void *[]){bad}, NULL, &on_host), LEAT_EINVAL);
        assert_int_equal(leat_predictor_run(a, (const void *[]){bad}, NULL, &on_device), LEAT_EINVAL);
        assert_string_equal(on_device.message, on_host.message);
        expect_ok(leat_predictor_run(a, (const void *[]){good}, (void *[]){got}, &on_device), &on_device);
        expect_ok(leat_predictor_run(b, (const void *[]){good}, (void *[]){expected}, &on_host), &on_host);
        assert_memory_equal(got, expected, sizeof got);
    }
    leat_predictor_destroy(&a);
    leat_predictor_destroy(&b);
    leat_model_destroy(&model);
}

/* ---- Threads ---- */

static atomic_bool ends;

/* Every prediction is from one version of the weights: the model's only weight is the slope, and all inputs are 1. */
static void *predict_always(void *user) {
    leat_predictor *predictor = user;
    leat_error err = {0};
    float last = 0;
    leat_tensor x = leat_predictor_input(predictor, 0);
    for (int64_t i = 0; i < leat_tensor_count(&x); ++i) ((float *)x.data)[i] = 1;
    for (bool last_round = false; !last_round;) {
        last_round = atomic_load(&ends);
        expect_ok(leat_predictor_sync(predictor, &err), &err);
        expect_ok(leat_predictor_run(predictor, NULL, NULL, &err), &err);
        leat_tensor y = leat_predictor_output(predictor, 0);
        const float *p = y.data;
        for (int64_t i = 1; i < leat_tensor_count(&y); ++i) assert_true(p[i] == p[0]);
        assert_true(p[0] >= last); /* the slope only grows */
        last = p[0];
    }
    return NULL;
}

static void threads_predict_beside_the_trainer(void **state) {
    (void)state;
    enum { threads = 3, rounds = 20 };
    leat_model *model = make_line(0.05);
    leat_predictor *predictors[threads];
    pthread_t ids[threads];
    leat_error err = {0};
    float x[2] = {1, 1}, y[2] = {8, 8};
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 1}, x)};
    leat_array target = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){2, 1}, y)};
    leat_arrays arrays = {.inputs = &input, .input_count = 1, .targets = &target, .target_count = 1};
    atomic_store(&ends, false);
    for (int i = 0; i < threads; ++i) predictors[i] = open_on(model, i == 0 ? "cpu" : "cuda", batch, false);
    for (int i = 0; i < threads; ++i)
        assert_int_equal(pthread_create(&ids[i], NULL, predict_always, predictors[i]), 0);
    for (int round = 0; round < rounds; ++round) {
        expect_ok(leat_model_train_on_batch(model, &arrays, NULL, &err), &err);
        expect_ok(leat_model_publish(model, &err), &err);
    }
    atomic_store(&ends, true);
    for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
    for (int i = 1; i < threads; ++i) {
        assert_int_equal(leat_predictor_version(predictors[i]), leat_predictor_version(predictors[0]));
        assert_true(*(const float *)leat_predictor_output(predictors[i], 0).data > 4);
    }
    for (int i = 0; i < threads; ++i) leat_predictor_destroy(&predictors[i]);
    leat_model_destroy(&model);
}

/* ---- Choosing ---- */

static void refuse(leat_model *model, leat_predictor_options options, leat_status expected,
                   const char *part) {
    leat_predictor *predictor = NULL;
    leat_error err = {0};
    assert_int_equal(leat_predictor_create(&predictor, model, &options, &err), expected);
    assert_null(predictor);
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
}

static void devices_are_refused_by_name(void **state) {
    (void)state;
    leat_model *model = make_classifier(1);
    leat_predictor_options options = leat_predictor_options_default();
    options.device = "tpu";
    refuse(model, options, LEAT_EINVAL, "there is no device 'tpu'");
    options.device = "cuda:99";
    refuse(model, options, LEAT_ENOTSUP, "there is no GPU 99");
    options.device = "cuda";
    options.weights_format = LEAT_WEIGHTS_BF16;
    refuse(model, options, LEAT_ENOTSUP, "a predictor on a GPU keeps its weights in f32");
    options.device = "auto"; /* then the CPU serves */
    leat_predictor *predictor = NULL;
    leat_error err = {0};
    expect_ok(leat_predictor_create(&predictor, model, &options, &err), &err);
    assert_string_equal(leat_predictor_device(predictor), "cpu");
    leat_predictor_destroy(&predictor);
    leat_model_destroy(&model);
}

/* One sample of a small model is faster on the CPU, on the simulated GPU and on each real one. */
static void auto_keeps_single_samples_on_the_cpu(void **state) {
    (void)state;
    leat_model *model = load(recurrent);
    leat_predictor *one = open_on(model, "auto", 1, true), *on_host = open_on(model, "cpu", 1, true);
    assert_string_equal(leat_predictor_device(one), "cpu");
    for (int t = 0; t < 4; ++t) compare(one, on_host, t); /* measuring has left no state behind */
    leat_predictor_destroy(&one);
    leat_predictor_destroy(&on_host);
    leat_model_destroy(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_are_those_of_the_cpu),
        cmocka_unit_test(weights_follow_the_training),
        cmocka_unit_test(states_are_those_of_the_cpu),
        cmocka_unit_test(faults_have_the_words_of_the_cpu),
        cmocka_unit_test(threads_predict_beside_the_trainer),
        cmocka_unit_test(devices_are_refused_by_name),
        cmocka_unit_test(auto_keeps_single_samples_on_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
