/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM and CuDNNLSTM, GRU and CuDNNGRU read each other's files of weights, and predict the same. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "leat/leat.h"
#include "leat/train.h"

static void must(leat_status status, const leat_error *err) {
    if (status != LEAT_OK) fail_msg("%s", err->message);
}

/* Makes a model of the layer, or of Bidirectional around the layer. */
static leat_model *model_of(const char *class_name, const char *more, bool both) {
    leat_error err = {0};
    leat_model *model = NULL;
    char json[1024], layer[512];
    snprintf(layer, sizeof layer, "{\"class_name\": \"%s\", \"config\": {\"units\": 3%s}}", class_name, more);
    snprintf(json, sizeof json,
             "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"InputLayer\", \"config\": "
             "{\"batch_input_shape\": [null, 5, 2]}}, %s%s%s]}",
             both ? "{\"class_name\": \"Bidirectional\", \"config\": {\"layer\": " : "", layer,
             both ? "}}" : "");
    must(leat_model_from_json(&model, json, &err), &err);
    must(leat_model_initialize(model, 3, &err), &err);
    return model;
}

static int predict(leat_model *model, float *out) {
    leat_error err = {0};
    float x[4 * 5 * 2];
    leat_tensor y;
    for (int i = 0; i < 40; ++i) x[i] = (float)(i * 7 % 11 - 5) / 4.0f;
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 3, (int64_t[]){4, 5, 2}, x)};
    must(leat_model_predict_on_batch(model, &(leat_arrays){.inputs = &input, .input_count = 1}, &y, &err),
         &err);
    memcpy(out, y.data, leat_tensor_bytes(&y));
    return (int)leat_tensor_count(&y);
}

/* Changes all weights, so that the two halves of a bias differ. */
static void vary(leat_model *model) {
    for (int i = 0; i < leat_model_weight_count(model); ++i) {
        leat_tensor w = leat_model_weight(model, i);
        for (int64_t j = 0; j < leat_tensor_count(&w); ++j)
            ((float *)w.data)[j] += (float)(j * 5 % 7 - 3) / 20.0f;
    }
}

static void transfer(leat_model *from, leat_model *to) {
    leat_error err = {0};
    char path[] = "/tmp/leat-cudnn-XXXXXX";
    float expected[64], got[64];
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    vary(from);
    must(leat_model_save_weights(from, path, &err), &err);
    must(leat_model_load_weights(to, path, false, &err), &err);
    unlink(path);
    int count = predict(from, expected);
    assert_int_equal(predict(to, got), count);
    for (int i = 0; i < count; ++i) assert_float_equal(got[i], expected[i], 2e-6);
    leat_model_destroy(&from);
    leat_model_destroy(&to);
}

static void both_ways(const char *plain, const char *more, const char *cudnn) {
    for (int both = 0; both < 2; ++both) {
        transfer(model_of(cudnn, "", both), model_of(plain, more, both));
        transfer(model_of(plain, more, both), model_of(cudnn, "", both));
        transfer(model_of(cudnn, "", both), model_of(cudnn, "", both));
    }
}

static void test_lstm(void **state) {
    (void)state;
    both_ways("LSTM", ", \"recurrent_activation\": \"sigmoid\"", "CuDNNLSTM");
}

static void test_gru(void **state) {
    (void)state;
    both_ways("GRU", ", \"recurrent_activation\": \"sigmoid\", \"reset_after\": true", "CuDNNGRU");
}

/* cuDNN has no GRU without reset_after. */
static void test_others_are_refused(void **state) {
    (void)state;
    leat_error err = {0};
    char path[] = "/tmp/leat-cudnn-XXXXXX";
    leat_model *from = model_of("CuDNNGRU", "", false), *to = model_of("GRU", "", false);
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    must(leat_model_save_weights(from, path, &err), &err);
    assert_int_equal(leat_model_load_weights(to, path, false, &err), LEAT_ESHAPE);
    unlink(path);
    leat_model_destroy(&from);
    leat_model_destroy(&to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lstm),
        cmocka_unit_test(test_gru),
        cmocka_unit_test(test_others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
