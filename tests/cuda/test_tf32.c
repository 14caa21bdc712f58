/* SPDX-License-Identifier: Apache-2.0 */
/* TF32: dense products and convolutions of float32 are rounded only where the model allows it, in predictions and in
 * training steps, and never on the CPU. */
#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/support.h"

enum { ROWS = 512, WIDTH = 256, UNITS = 288, IMAGES = 2, SIDE = 16, CHANNELS = 64 };
enum { MOST = IMAGES * SIDE * SIDE * CHANNELS };

static const char dense[] = "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"dense\", \"layers\": ["
                            "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 288, "
                            "\"batch_input_shape\": [null, 256]}}]}}";
static const char convolution[] =
    "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"convolution\", \"layers\": ["
    "{\"class_name\": \"Conv2D\", \"config\": {\"name\": \"c\", \"filters\": 64, \"kernel_size\": [3, 3],"
    " \"padding\": \"same\", \"batch_input_shape\": [null, 16, 16, 64]}}]}}";

/* A model with the numbers that it computes from. */
typedef struct job {
    leat_model *model;
    leat_array input, target;
    float *in, *out;
    int64_t outputs;
} job;

static void open_job(job *j, const char *architecture, leat_tensor input, leat_tensor target) {
    leat_compile_options options = leat_compile_options_default();
    leat_error err = {0};
    *j = (job){.outputs = leat_tensor_count(&target)};
    options.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.1}}";
    options.loss = "mse";
    j->in = malloc((size_t)leat_tensor_count(&input) * sizeof *j->in);
    j->out = calloc((size_t)j->outputs, sizeof *j->out);
    assert_true(j->in && j->out);
    for (int64_t i = 0; i < leat_tensor_count(&input); ++i)
        j->in[i] = (float)((i * 7919 + 13) % 1009) / 1009.0f - 0.5f;
    input.data = j->in;
    target.data = j->out;
    j->input.tensor = input;
    j->target.tensor = target;
    expect_ok(leat_model_from_json(&j->model, architecture, &err), &err);
    expect_ok(leat_model_initialize(j->model, 3, &err), &err);
    expect_ok(leat_model_compile(j->model, &options, &err), &err);
}

static void open_dense(job *j) {
    open_job(j, dense, leat_tensor_view(LEAT_F32, 2, (int64_t[]){ROWS, WIDTH}, NULL),
             leat_tensor_view(LEAT_F32, 2, (int64_t[]){ROWS, UNITS}, NULL));
}

static void open_convolution(job *j) {
    const int64_t shape[] = {IMAGES, SIDE, SIDE, CHANNELS};
    open_job(j, convolution, leat_tensor_view(LEAT_F32, 4, shape, NULL),
             leat_tensor_view(LEAT_F32, 4, shape, NULL));
}

static void close_job(job *j) {
    leat_model_destroy(&j->model);
    free(j->in);
    free(j->out);
}

static leat_arrays arrays_of(const job *j) {
    return (leat_arrays){.inputs = &j->input, .input_count = 1, .targets = &j->target, .target_count = 1};
}

/* Returns a copy of the predictions. */
static float *predict(job *j) {
    leat_arrays arrays = arrays_of(j);
    leat_tensor output;
    leat_error err = {0};
    float *copy = malloc((size_t)j->outputs * sizeof *copy);
    assert_non_null(copy);
    expect_ok(leat_model_predict_on_batch(j->model, &arrays, &output, &err), &err);
    memcpy(copy, output.data, (size_t)j->outputs * sizeof *copy);
    return copy;
}

/* Returns the largest difference, relative to the largest number. */
static double difference(const float *a, const float *b, int64_t count) {
    double most = 0, size = 0;
    for (int64_t i = 0; i < count; ++i) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        size = fmax(size, fabs((double)b[i]));
    }
    assert_true(size > 0);
    return most / size;
}

static void move(job *j, const char *device) {
    leat_error err = {0};
    expect_ok(leat_model_set_device(j->model, device, &err), &err);
}

/* On the CPU the option changes no byte; on the device, float32 is within 1e-5 and TF32 is not, but within 2e-3. */
static void check_predictions(void (*open)(job *j)) {
    job j;
    open(&j);
    move(&j, "cpu");
    float *host = predict(&j);
    leat_model_set_tf32(j.model, true);
    float *host_tf32 = predict(&j);
    assert_memory_equal(host, host_tf32, (size_t)j.outputs * sizeof *host);
    move(&j, "cuda");
    float *rounded = predict(&j);
    leat_model_set_tf32(j.model, false);
    float *whole = predict(&j);
    leat_model_set_tf32(j.model, true);
    float *again = predict(&j);
    assert_true(difference(whole, host, j.outputs) < 1e-5);
    double rounding = difference(rounded, host, j.outputs);
    if (rounding < 2e-5 || rounding > 2e-3) fail_msg("TF32 differs by %g", rounding);
    assert_memory_equal(rounded, again, (size_t)j.outputs * sizeof *rounded);
    free(host), free(host_tf32), free(rounded), free(whole), free(again);
    close_job(&j);
}

static void predictions_are_rounded_on_request(void **state) {
    (void)state;
    check_predictions(open_dense);
    check_predictions(open_convolution);
}

/* Trains for a step and returns a copy of the kernel. */
static float *train(void (*open)(job *j), const char *device, bool tf32, int64_t *count) {
    job j;
    leat_error err = {0};
    open(&j);
    move(&j, device);
    leat_model_set_tf32(j.model, tf32);
    leat_arrays arrays = arrays_of(&j);
    expect_ok(leat_model_train_on_batch(j.model, &arrays, NULL, &err), &err);
    const leat_tensor kernel = leat_model_weight(j.model, 0);
    *count = leat_tensor_count(&kernel);
    float *copy = malloc((size_t)*count * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, kernel.data, (size_t)*count * sizeof *copy);
    close_job(&j);
    return copy;
}

static void steps_are_rounded_on_request(void **state) {
    (void)state;
    void (*const models[])(job * j) = {open_dense, open_convolution};
    for (int i = 0; i < 2; ++i) {
        int64_t count = 0;
        float *host = train(models[i], "cpu", true, &count), *whole = train(models[i], "cuda", false, &count),
              *rounded = train(models[i], "cuda", true, &count),
              *again = train(models[i], "cuda", true, &count);
        assert_true(difference(whole, host, count) < 1e-5);
        assert_memory_not_equal(rounded, whole, (size_t)count * sizeof *whole);
        assert_true(difference(rounded, host, count) < 2e-3);
        assert_memory_equal(rounded, again, (size_t)count * sizeof *again);
        free(host), free(whole), free(rounded), free(again);
    }
}

static void a_clone_has_the_setting(void **state) {
    (void)state;
    job j;
    leat_error err = {0};
    open_dense(&j);
    leat_model_set_tf32(j.model, true);
    move(&j, "cuda");
    float *first = predict(&j);
    leat_model *clone = NULL;
    expect_ok(leat_model_clone(&clone, j.model, true, &err), &err);
    leat_model_destroy(&j.model);
    j.model = clone;
    move(&j, "cuda");
    float *second = predict(&j);
    assert_memory_equal(first, second, (size_t)j.outputs * sizeof *first);
    free(first), free(second);
    close_job(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_are_rounded_on_request),
        cmocka_unit_test(steps_are_rounded_on_request),
        cmocka_unit_test(a_clone_has_the_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
