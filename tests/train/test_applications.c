/* SPDX-License-Identifier: Apache-2.0 */
/* Small models of keras.applications against Keras 2.3.1: outputs of layers in the middle, prediction, one training
 * step's loss and the weights after it, number of parameters.  tests/golden/README.md says how weights and images are
 * made on both sides; tools/applications compares the models as they are. */
#include "cmocka_all.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/train.h"
#include "support/golden.h"

#define LAYER_TOLERANCE 1e-4
#define LOSS_TOLERANCE  1e-5
#define WEIGHT_TOLERANCE                                                                                     \
    1e-3 /* some channels have four values to normalise; a wrong gradient is off by far more */

enum {
    most_samples = 1 << 16,
    shut_streams = 1000003,
    image_stream = 2000003,
    sample_stream = 2000004,
    outputs_sampled = 64,
    weights_sampled = 16
};

typedef struct application {
    golden g;
    leat_model *model; /* the model of keras.applications, compiled */
    leat_model *probe; /* the same layers; some inner layers are its outputs */
    leat_array x, t;
    leat_arrays batch;
} application;

static leat_error err;

/* Returns number i of a stream of hashes in [0, 1). */
static double unit(uint32_t stream, int64_t i) {
    uint32_t x = (uint32_t)i * 0x9E3779B9u + stream * 0x85EBCA6Bu;
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return (double)(x ^ (x >> 16)) / 4294967296.0;
}

/* ---- Weights by rules ---- */

/* Makes the sum of each filter 0. */
static void center(float *values, int64_t rows, int64_t filters) {
    for (int64_t f = 0; f < filters; ++f) {
        double sum = 0;
        for (int64_t r = 0; r < rows; ++r) sum += (double)values[r * filters + f];
        for (int64_t r = 0; r < rows; ++r)
            values[r * filters + f] = (float)((double)values[r * filters + f] - sum / (double)rows);
    }
}

static void fill_weight(leat_tensor weight, const json_t *rule, uint32_t stream) {
    double low = json_number_value(json_object_get(rule, "low"));
    double high = json_number_value(json_object_get(rule, "high"));
    double shut = json_number_value(json_object_get(rule, "shut"));
    int64_t count = leat_tensor_count(&weight), filters = weight.shape[weight.rank - 1];
    float *values = weight.data;
    for (int64_t i = 0; i < count; ++i) {
        double value = low + (high - low) * unit(stream, i);
        values[i] = (float)(unit(stream + shut_streams, i) < shut ? -value : value);
    }
    if (json_is_true(json_object_get(rule, "center"))) center(values, count / filters, filters);
}

static void fill(const application *a, const char *rules, uint32_t first_stream) {
    const json_t *list = json_object_get(a->g.meta, rules);
    int count = leat_model_weight_count(a->model);
    assert_int_equal(count, json_array_size(list));
    for (int i = 0; i < count; ++i)
        fill_weight(leat_model_weight(a->model, i), json_array_get(list, (size_t)i),
                    first_stream + 2 * (uint32_t)i);
}

static void check_parameters(const application *a) {
    int64_t parameters = 0;
    for (int i = 0; i < leat_model_weight_count(a->model); ++i) {
        leat_tensor weight = leat_model_weight(a->model, i);
        parameters += leat_tensor_count(&weight);
    }
    assert_int_equal(parameters, json_integer_value(json_object_get(a->g.meta, "parameters")));
}

/* ---- The batch ---- */

static leat_tensor new_tensor(int rank, const int64_t *shape) {
    leat_tensor tensor = leat_tensor_view(LEAT_F32, rank, shape, NULL);
    tensor.data = calloc(1, leat_tensor_bytes(&tensor));
    assert_non_null(tensor.data);
    return tensor;
}

static void make_batch(application *a) {
    const json_t *labels = json_object_get(a->g.meta, "labels");
    int64_t samples = (int64_t)json_array_size(labels),
            classes = leat_model_output_shape(a->model, 0).shape[1];
    int64_t pixels = json_integer_value(json_object_get(a->g.meta, "pixels")), each = pixels * pixels * 3;
    a->x.tensor = new_tensor(4, (int64_t[]){samples, pixels, pixels, 3});
    a->t.tensor = new_tensor(2, (int64_t[]){samples, classes});
    float *x = a->x.tensor.data, *t = a->t.tensor.data;
    for (int64_t n = 0; n < samples; ++n) {
        t[n * classes + json_integer_value(json_array_get(labels, (size_t)n))] = 1;
        for (int64_t i = n * each; i < (n + 1) * each; ++i)
            x[i] =
                (float)(2.0 * unit(image_stream, i) - 1.0 + 3.0 * unit(sample_stream, 3 * n + i % 3) - 1.5);
    }
    a->batch = (leat_arrays){.inputs = &a->x, .targets = &a->t, .input_count = 1, .target_count = 1};
}

/* ---- Comparing ---- */

/* Appends at most this many elements, evenly spread over the tensor. */
static int64_t append_sample(float *to, int64_t used, const leat_tensor *from, int64_t most) {
    int64_t count = leat_tensor_count(from), step = (count + most - 1) / most;
    const float *values = from->data;
    for (int64_t i = 0; i < count; i += step < 1 ? 1 : step) {
        assert_true(used < most_samples);
        to[used++] = values[i];
    }
    return used;
}

/* Compares the sampled elements of each tensor relative to the tensor's own scale. */
static void compare_samples(const application *a, const char *member, const leat_tensor *tensors, int count,
                            int64_t most, double tolerance) {
    static float got[most_samples];
    leat_tensor expected = test_npz_get(a->g.npz, member);
    int64_t used = 0;
    for (int i = 0; i < count; ++i) {
        char what[64];
        int64_t first = used;
        snprintf(what, sizeof what, "%s %d", member, i);
        used = append_sample(got, used, &tensors[i], most);
        assert_true(used <= leat_tensor_count(&expected));
        golden_compare(&a->g, what, got + first, (const float *)expected.data + first, used - first,
                       tolerance);
    }
    assert_int_equal(used, leat_tensor_count(&expected));
}

static void copy_weights(const application *a) {
    for (int i = 0; i < leat_model_weight_count(a->probe); ++i) {
        leat_tensor to = leat_model_weight(a->probe, i), from = {0};
        for (int j = 0; j < leat_model_weight_count(a->model) && !from.data; ++j)
            if (strcmp(leat_model_weight_name(a->model, j), leat_model_weight_name(a->probe, i)) == 0)
                from = leat_model_weight(a->model, j);
        assert_non_null(from.data);
        if (from.data) memcpy(to.data, from.data, leat_tensor_bytes(&to));
    }
}

static void compare_layers(const application *a) {
    leat_tensor outputs[16], y = test_npz_get(a->g.npz, "y");
    copy_weights(a);
    int count = leat_model_output_count(a->probe);
    assert_true(count <= 16);
    if (leat_model_predict_on_batch(a->probe, &a->batch, outputs, &err) != LEAT_OK)
        fail_msg("%s", err.message);
    compare_samples(a, "outputs", outputs, count, outputs_sampled, LAYER_TOLERANCE);
    if (leat_model_predict_on_batch(a->model, &a->batch, outputs, &err) != LEAT_OK)
        fail_msg("%s", err.message);
    golden_compare(&a->g, "y", outputs[0].data, y.data, leat_tensor_count(&y), LAYER_TOLERANCE);
}

static void compare_step(const application *a) {
    leat_logs logs = {0};
    leat_tensor loss = test_npz_get(a->g.npz, "loss");
    int count = leat_model_weight_count(a->model);
    leat_tensor *weights = calloc((size_t)count, sizeof *weights);
    assert_non_null(weights);
    if (leat_model_train_on_batch(a->model, &a->batch, &logs, &err) != LEAT_OK) fail_msg("%s", err.message);
    golden_compare(&a->g, "loss", (float[]){(float)logs.items[0].value}, loss.data, 1, LOSS_TOLERANCE);
    for (int i = 0; i < count; ++i) weights[i] = leat_model_weight(a->model, i);
    compare_samples(a, "trained", weights, count, weights_sampled, WEIGHT_TOLERANCE);
    free(weights);
}

/* ---- A case ---- */

static leat_model *model_of(const json_t *config) {
    leat_model *model = NULL;
    char *text = json_dumps(config, 0);
    assert_non_null(text);
    if (leat_model_from_json(&model, text, &err) != LEAT_OK) fail_msg("%s", err.message);
    free(text);
    return model;
}

static void open_application(application *a, const char *name) {
    golden_open(&a->g, "applications", name);
    json_t *config = golden_json(&a->g, "config"), *outputs = json_array();
    a->model = model_of(config);
    const json_t *layers = json_object_get(a->g.meta, "layers");
    for (size_t i = 0; i < json_array_size(layers); ++i)
        json_array_append_new(outputs,
                              json_pack("[s,i,i]", json_string_value(json_array_get(layers, i)), 0, 0));
    json_object_set_new(json_object_get(config, "config"), "output_layers", outputs);
    a->probe = model_of(config);
    json_decref(config);
    leat_compile_options compile = leat_compile_options_default();
    compile.optimizer = "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 1.0}}";
    compile.loss = "categorical_crossentropy";
    if (leat_model_compile(a->model, &compile, &err) != LEAT_OK) fail_msg("%s", err.message);
    leat_model_set_threads(a->model, 1); /* short ops: a second one would mostly wait */
    leat_model_set_threads(a->probe, 1);
}

static void check(const char *name, void *user) {
    application a = {0};
    open_application(&a, name);
    check_parameters(&a);
    make_batch(&a);
    fill(&a, "natural", 0);
    compare_layers(&a);
    fill(&a, "steady", 1);
    compare_step(&a);
    free(a.x.tensor.data);
    free(a.t.tensor.data);
    leat_model_destroy(&a.probe);
    leat_model_destroy(&a.model);
    golden_close(&a.g);
    ++*(int *)user;
}

static void test_applications(void **state) {
    (void)state;
    int cases = 0;
    golden_each("applications", check, &cases);
    assert_true(cases >= 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_applications)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
